// SPDX-License-Identifier: Apache-2.0
#include "base/standard_streams.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace kiln::base {

int clear_of_standard_streams(int fd) noexcept {
    if (fd < 0 || fd > STDERR_FILENO) return fd;
    int const higher = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int const why = errno;
    ::close(fd);
    errno = why;
    return higher;
}

int memory_file(char const* name, unsigned flags) noexcept {
    int const first = ::memfd_create(name, flags);
    int const out = clear_of_standard_streams(first);
    if (out == first || out < 0) return out;
    // What was written to it meanwhile, as to a standard stream.
    if (::ftruncate(out, 0) == 0 && ::lseek(out, 0, SEEK_SET) == 0) return out;
    int const why = errno;
    ::close(out);
    errno = why;
    return -1;
}

}  // namespace kiln::base
