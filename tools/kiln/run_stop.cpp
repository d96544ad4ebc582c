// SPDX-License-Identifier: Apache-2.0
#include "run_stop.hpp"

#include "base/process_stat.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::cli {

namespace {

// "/proc/PID/stat", without memory to be had.
class stat_path {
public:
    explicit stat_path(pid_t process) noexcept {
        char digits[16];
        int count = 0;
        for (auto left = process; left > 0; left /= 10) digits[count++] = static_cast<char>('0' + left % 10);
        std::memcpy(text_, "/proc/", 6);
        std::reverse_copy(digits, digits + count, text_ + 6);
        std::memcpy(text_ + 6 + count, "/stat", 6);
    }
    [[nodiscard]] char const* get() const noexcept { return text_; }

private:
    char text_[32];
};

// 'T' for one that is stopped; 0 where that cannot be read.
char state_of(pid_t process) noexcept {
    int const file = ::open(stat_path{process}.get(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    char text[256];
    auto const size = ::read(file, text, sizeof text);
    ::close(file);
    auto const told = base::state_and_more({text, size > 0 ? static_cast<std::size_t>(size) : 0});
    return told.empty() ? char{0} : told.front();
}

bool is_stopped(pid_t process) noexcept { return state_of(process) == 'T'; }

// Until it is ended by who started it. Somebody may continue the program alone, or end it: its parent, which is stopped, does not hear of it.
[[noreturn]] void wake(pid_t parent, pid_t program) noexcept {
    constexpr long first_ns = 10'000'000, longest_ns = 320'000'000;
    ::setsid();  // who stops our group, or continues it, does not mean this one
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (auto pause = first_ns; ::getppid() == parent; pause = std::min(2 * pause, longest_ns)) {
        ::timespec const time{0, pause};
        ::nanosleep(&time, nullptr);
        if (!is_stopped(program)) ::kill(parent, SIGCONT);  // each time: it may be about to stop
    }
    ::_exit(0);
}

// Not fork(), which a handler may not call. It has no signal for its end, so that who waits for any child does not meet it.
pid_t start_waker(pid_t program) noexcept {
    auto const parent = ::getpid();
    auto const pid = static_cast<pid_t>(::syscall(SYS_clone, 0L, nullptr, nullptr, nullptr, 0L));
    if (pid == 0) wake(parent, program);
    return pid;
}

void end_waker(pid_t waker) noexcept {
    ::kill(waker, SIGKILL);
    while (::waitpid(waker, nullptr, __WALL) < 0 && errno == EINTR) {
    }
}

// One that has come is not heard.
void forget(int signal) noexcept {
    struct ::sigaction before {};
    struct ::sigaction ignored {};
    ignored.sa_handler = SIG_IGN;
    ::sigaction(signal, &ignored, &before);
    ::sigaction(signal, &before, nullptr);
}

}  // namespace

void stop_by(int signal) noexcept {
    struct ::sigaction before {};
    struct ::sigaction plain {};
    plain.sa_handler = SIG_DFL;
    if (signal != SIGSTOP) ::sigaction(signal, &plain, &before);
    ::sigset_t just_this, mask;
    ::sigemptyset(&just_this);
    ::sigaddset(&just_this, signal);
    // Sent first: where the terminal's own waits, too, they stop us together, and who continues us is rid of both.
    ::pthread_sigmask(SIG_BLOCK, &just_this, &mask);
    ::syscall(SYS_tgkill, ::getpid(), ::gettid(), signal);
    ::pthread_sigmask(SIG_UNBLOCK, &just_this, nullptr);
    ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    if (signal != SIGSTOP) ::sigaction(signal, &before, nullptr);
}

void stop_with(pid_t program, int signal) noexcept {
    if (::getpid() == 1) {
        ::kill(program, SIGCONT);
        return;
    }
    if (!is_stopped(program)) return;
    auto const waker = start_waker(program);
    if (waker < 0) return;
    stop_by(signal);
    end_waker(waker);
    // Who continued the whole group has told the program, too.
    if (!is_stopped(program)) forget(SIGCONT);
}

}  // namespace kiln::cli
