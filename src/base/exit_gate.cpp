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

// A signature takes a tenth of a millisecond, a turn of libcurl seldom more. Who shakes hands with a silent server is not waited for.
constexpr std::chrono::milliseconds patience_with_users{50};
constexpr std::chrono::milliseconds patience_at_fork{100};

constinit std::atomic<bool> closed{false};
constinit std::atomic<int> users{0};
constinit std::atomic<int> forks{0};        // under way
constinit thread_local int users_here = 0;  // exit() may be called by one of them

void wait_until_nobody_else_is_inside(std::chrono::milliseconds most) noexcept {
    auto const end = clock::now() + most;
    while (users.load() > users_here && clock::now() < end) std::this_thread::sleep_for(std::chrono::microseconds{50});
}

void close_gate() noexcept {
    closed.store(true);
    wait_until_nobody_else_is_inside(patience_with_users);
}

}  // namespace

void wait_for_library_users() noexcept {
    forks.fetch_add(1);
    wait_until_nobody_else_is_inside(patience_at_fork);
}

void let_library_users_go_on() noexcept {
    if (forks.fetch_sub(1) == 1) forks.notify_all();
}

// It has no thread but the one that forked.
void forget_library_users_of_parent() noexcept {
    users.store(users_here);
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

library_use::library_use() noexcept {
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
    if (is_inside_) return;
    --users_here;
    users.fetch_sub(1);
}

library_use::~library_use() {
    if (!is_inside_) return;
    --users_here;
    users.fetch_sub(1);
}

bool is_gate_closed() noexcept { return closed.load(); }

}  // namespace kiln::base
