// SPDX-License-Identifier: Apache-2.0
#include "base/exit_gate.hpp"

#include "base/clock.hpp"

#include <atomic>
#include <cstdlib>
#include <openssl/crypto.h>
#include <pthread.h>
#include <thread>

namespace kiln::base {

namespace {

// A signature takes a tenth of a millisecond, a turn of libcurl seldom more. Who shakes hands with a silent server is not waited for.
constexpr std::chrono::milliseconds patience_with_users{50};

constinit std::atomic<bool> closed{false};
constinit std::atomic<int> users{0};
constinit thread_local int users_here = 0;  // exit() may be called by one of them

void close_gate() noexcept {
    closed.store(true);
    auto const end = clock::now() + patience_with_users;
    while (users.load() > users_here && clock::now() < end) std::this_thread::sleep_for(std::chrono::microseconds{100});
}

// A child has no thread but the one that forked.
[[maybe_unused]] int const counted_anew_in_children =
    ::pthread_atfork(nullptr, nullptr, [] { users.store(users_here); });

}  // namespace

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
