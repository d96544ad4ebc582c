// SPDX-License-Identifier: Apache-2.0
// How far a file of ours may grow in somebody else's process. Nothing to link: recorder and companion both ask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace kiln::audit {

// A write beyond the process's limit on files (ulimit -f) is answered with SIGXFSZ, which would end the program.
inline bool may_grow(int fd, std::size_t by) {
    ::rlimit most{};
    struct ::stat about {};
    if (::getrlimit(RLIMIT_FSIZE, &most) != 0 || most.rlim_cur == RLIM_INFINITY) return true;
    return ::fstat(fd, &about) == 0 && static_cast<std::uint64_t>(about.st_size) + by <= most.rlim_cur;
}

// Whether the process has locked itself in since (seccomp): a file that it opens might be its end. What it has at `first`, a container's
// own for one, lets files be opened.
inline int lock_of_process() { return ::prctl(PR_GET_SECCOMP); }
inline bool has_locked_itself_in(int first) { return lock_of_process() != first; }

}  // namespace kiln::audit
