// SPDX-License-Identifier: Apache-2.0
#include "compile/worker_life.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace kiln::compile {

namespace {

constexpr int keep_on_heap = 256 << 20;
constexpr int grow_heap_by = 8 << 20;

bool is_hung_up(int socket, int patience_ms) {
    ::pollfd hangup{socket, POLLRDHUP, 0};
    return ::poll(&hangup, 1, patience_ms) > 0 && (hangup.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0;
}

int volatile peer = -1;
bool settled_in = false;  // set before there is another thread

}  // namespace

bool is_worker() noexcept { return settled_in; }

void settle_in_as_worker() {
    settled_in = true;
    // Keys pressed in the terminal reach the whole process group; what they mean is the parent's affair.
    // A file that may not grow (ulimit -f) is an error of that write.
    for (int const signal : {SIGINT, SIGQUIT, SIGHUP, SIGXFSZ}) std::signal(signal, SIG_IGN);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::umask(077);
    [[maybe_unused]] int const ignored = ::chdir("/");  // so that no mount is kept busy
    // A front end allocates and frees tens of megabytes for the smallest unit. Kept until the worker is idle, they are
    // not paged in anew for every compile.
    ::mallopt(M_TRIM_THRESHOLD, keep_on_heap);
    ::mallopt(M_MMAP_THRESHOLD, keep_on_heap);
    ::mallopt(M_TOP_PAD, grow_heap_by);
    ::rlimit const no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    // When memory runs out the kernel should take a worker, never the program that uses it.
    if (int const fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC); fd >= 0) {
        [[maybe_unused]] auto const written = ::write(fd, "500", 3);
        ::close(fd);
    }
}

void end_with_peer(int socket) {
    std::thread{[socket] {
        while (!is_hung_up(socket, -1)) continue;
        ::_exit(0);
    }}.detach();
}

void end_with_peer_by_signal(int socket) {
    peer = socket;
    struct ::sigaction action {};
    action.sa_flags = SA_RESTART;
    action.sa_handler = [](int) {
        int const before = errno;
        if (is_hung_up(peer, 0)) ::_exit(0);
        errno = before;
    };
    ::sigaction(SIGIO, &action, nullptr);
    int const flags = ::fcntl(socket, F_GETFL);
    if (flags < 0 || ::fcntl(socket, F_SETOWN, ::getpid()) != 0 || ::fcntl(socket, F_SETFL, flags | O_ASYNC) != 0)
        return end_with_peer(socket);
    // It may have hung up before it could be heard.
    if (is_hung_up(socket, 0)) ::_exit(0);
}

}  // namespace kiln::compile
