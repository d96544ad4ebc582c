// SPDX-License-Identifier: Apache-2.0
#include "writer_thread.hpp"

#include <climits>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace kiln::recorder {

namespace {

constexpr unsigned unshare = 1u << 1;  // CLOSE_RANGE_UNSHARE, of Linux 5.9

}  // namespace

// Not by what libc has for it: those are points where a thread may be cancelled.
void writer_thread::wait_while(std::uint32_t is) {
    while (state_ == is) ::syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, is, nullptr, nullptr, 0);
}
void writer_thread::set(std::uint32_t to) {
    state_ = to;
    ::syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void* writer_thread::serve(void* self) {
    auto& me = *static_cast<writer_thread*>(self);
    // A table without any of the program's files: they must not be held open here.
    bool const is_apart = ::syscall(SYS_close_range, 0u, ~0u, unshare) == 0;
    me.set(is_apart ? idle : none);
    if (!is_apart) return nullptr;
    for (;;) {
        me.wait_while(idle);
        me.write_(me.of_);
        me.set(idle);
    }
}

void writer_thread::begin() {
    ::pthread_t thread{};
    owner_ = ::getpid();
    state_ = asked;
    if (::pthread_create(&thread, nullptr, serve, this) == 0) ::pthread_detach(thread);
}

bool writer_thread::is_there() const { return state_ == idle && ::getpid() == owner_; }

void writer_thread::call(void (*write)(void*), void* of) {
    write_ = write;
    of_ = of;
    set(asked);
    wait_while(asked);
}

}  // namespace kiln::recorder
