// SPDX-License-Identifier: Apache-2.0
// While one lives, a write of ours that meets a limit of the program's (ulimit -f) or a closed pipe is an error and no signal,
// which would end a program that wrote nothing itself.
#pragma once

#include <cerrno>
#include <csignal>
#include <ctime>
#include <sys/resource.h>

namespace kiln::base {

// Whether the program may write files of a certain size only.
[[nodiscard]] inline bool has_bound_on_files() noexcept {
    ::rlimit size{};
    return ::getrlimit(RLIMIT_FSIZE, &size) != 0 || size.rlim_cur != RLIM_INFINITY;
}

class quiet_writes {
public:
    quiet_writes() noexcept {
        ::sigemptyset(&ours_);
        ::sigaddset(&ours_, SIGXFSZ);
        ::sigaddset(&ours_, SIGPIPE);
        ::sigset_t waiting;
        if (::sigpending(&waiting) == 0) {
            for (int const signal : {SIGXFSZ, SIGPIPE}) {
                if (::sigismember(&waiting, signal) == 1) ::sigdelset(&ours_, signal);  // the program's own
            }
        }
        ::pthread_sigmask(SIG_BLOCK, &ours_, &before_);
    }
    ~quiet_writes() {
        int const why = errno;  // of the write
        ::timespec const now{};
        while (::sigtimedwait(&ours_, nullptr, &now) > 0 || errno == EINTR) continue;
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
        errno = why;
    }
    quiet_writes(quiet_writes const&) = delete;
    quiet_writes& operator=(quiet_writes const&) = delete;

private:
    ::sigset_t ours_{};
    ::sigset_t before_{};
};

}  // namespace kiln::base
