// SPDX-License-Identifier: Apache-2.0
#include "base/exit_gate.hpp"

#include "base/clock.hpp"
#include "base/fork_guard.hpp"

#include <atomic>
#include <cstdlib>
#include <openssl/crypto.h>
#include <thread>

namespace kiln::base {

namespace {

// A signature takes a tenth of a millisecond, a turn of libcurl seldom more: who is inside for longer has no processor, and would find
// what he uses gone when he gets one. Who shakes hands with a silent server is not waited for.
constexpr std::chrono::milliseconds patience_with_work{2000};
constexpr std::chrono::milliseconds patience_with_waiting{50};

constinit std::atomic<bool> closed{false};
constinit std::atomic<int> users{0};
constinit std::atomic<int> waiting_users{0};  // of them, for a server
constinit std::atomic<int> forks{0};          // under way
constinit thread_local int users_here = 0;    // exit() may be called by one of them

void wait_until_nobody_else_is_inside() noexcept {
    auto const until = [](std::chrono::milliseconds most, auto const& is_over) {
        auto const end = clock::now() + most;
        while (!is_over() && clock::now() < end) std::this_thread::sleep_for(std::chrono::microseconds{50});
    };
    until(patience_with_work, [] { return users.load() - waiting_users.load() <= users_here; });
    until(patience_with_waiting, [] { return users.load() <= users_here; });
}

void close_gate() noexcept {
    closed.store(true);
    wait_until_nobody_else_is_inside();
}

}  // namespace

void wait_for_library_users() noexcept {
    forks.fetch_add(1);
    wait_until_nobody_else_is_inside();
}

void let_library_users_go_on() noexcept {
    if (forks.fetch_sub(1) == 1) forks.notify_all();
}

// It has no thread but the one that forked.
void forget_library_users_of_parent() noexcept {
    users.store(users_here);
    waiting_users.store(0);
    forks.store(1);  // this one
}

void keep_openssl() noexcept {
    // Without any other wish it does nothing more: no configuration is read, no algorithm loaded.
    static_assert(openssl_without_cleanup == OPENSSL_INIT_NO_ATEXIT);
    (void)OPENSSL_init_crypto(openssl_without_cleanup, nullptr);
}

void close_gate_at_exit() noexcept {
    keep_openssl();
    static constinit std::atomic<bool> registered{false};  // children inherit it, and the handler with it
    if (!registered.exchange(true)) static_cast<void>(std::atexit(close_gate));
}

library_use::library_use(stay how) noexcept : how_{how} {
    users.fetch_add(1);
    // Who is inside already, or has what fork() waits for, may go further in; all others wait outside while somebody forks.
    while (users_here == 0 && !keeps_fork_away()) {
        auto const under_way = forks.load();
        if (under_way == 0) break;
        users.fetch_sub(1);
        forks.wait(under_way);
        users.fetch_add(1);
    }
    ++users_here;
    is_inside_ = !closed.load();
    if (is_inside_) {
        if (how_ == stay::until_answered) waiting_users.fetch_add(1);
        return;
    }
    --users_here;
    users.fetch_sub(1);
}

library_use::~library_use() {
    if (!is_inside_) return;
    if (how_ == stay::until_answered) waiting_users.fetch_sub(1);
    --users_here;
    users.fetch_sub(1);
}

bool is_gate_closed() noexcept { return closed.load(); }

}  // namespace kiln::base
