// SPDX-License-Identifier: Apache-2.0
#include "base/exit_gate.hpp"
#include "base/fork_guard.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <optional>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kiln::base {
namespace {

// Locks of OpenSSL's that a thread held are nobody's in a child, which would wait for them for ever.
TEST(fork_test, fork_waits_for_who_is_in_a_library) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer ends a child with threads of its parent that have ended, and were not joined "
                    "there, as a failure";
#endif
    int waited = 0;
    for (int i = 0; i < 10; ++i) {
        std::atomic<bool> is_inside{false}, has_left{false};
        std::thread user{[&] {
            library_use const it;
            is_inside = true;
            is_inside.notify_all();
            std::this_thread::sleep_for(std::chrono::milliseconds{5});
            has_left = true;
        }};
        is_inside.wait(false);
        auto const child = ::fork();
        if (child == 0) {
            library_use const it;
            ::_exit(it && has_left ? 0 : 1);
        }
        int status = -1;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        waited += status == 0 ? 1 : 0;
        user.join();
    }
    EXPECT_GE(waited, 5) << "a machine that is very busy may keep one of them in there for longer than anybody waits";
}

// And who comes while somebody forks goes in afterwards.
TEST(fork_test, forks_and_users_of_libraries_do_not_keep_each_other) {
    std::atomic<bool> stop{false};
    std::atomic<int> uses{0};
    std::vector<std::thread> users;
    for (int i = 0; i < 4; ++i) {
        users.emplace_back([&] {
            while (!stop) {
                library_use const outer;
                library_use const inner;
                uses += outer && inner ? 1 : 0;
            }
        });
    }
    for (int i = 0; i < 50; ++i) {
        auto const child = ::fork();
        if (child == 0) {
            library_use const it;
            ::_exit(it ? 0 : 1);
        }
        int status = -1;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    stop = true;
    for (auto& u : users) u.join();
    EXPECT_GT(uses, 0);
}

// The loader has locks of its own: who keeps fork() away and waits for them must not be waited for by who has them.
TEST(fork_test, who_keeps_fork_away_keeps_nobody_else_waiting) {
    std::promise<void> other_is_in;
    std::optional<no_fork_meanwhile> mine{std::in_place};
    std::thread other{[&] {
        no_fork_meanwhile const its;
        other_is_in.set_value();
    }};
    auto const came = other_is_in.get_future().wait_for(std::chrono::seconds{10});
    EXPECT_EQ(came, std::future_status::ready);
    if (came != std::future_status::ready) mine.reset();
    // The thread itself may fork, and so may its child.
    other.join();
    auto const child = ::fork();
    if (child == 0) {
        auto const grandchild = ::fork();
        if (grandchild == 0) ::_exit(7);
        int status = -1;
        ::waitpid(grandchild, &status, 0);
        ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
}

TEST(fork_test, fork_waits_for_who_keeps_it_away) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "see above";
#endif
    std::atomic<int> inside{0}, left{0};
    std::vector<std::thread> keepers;
    for (int i = 0; i < 2; ++i) {
        keepers.emplace_back([&] {
            no_fork_meanwhile const its;
            inside += 1;
            inside.notify_all();
            std::this_thread::sleep_for(std::chrono::milliseconds{5});
            left += 1;
        });
    }
    for (int now = inside; now < 2; now = inside) inside.wait(now);
    auto const child = ::fork();
    if (child == 0) ::_exit(left);
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << status;
    for (auto& one : keepers) one.join();
}

}  // namespace
}  // namespace kiln::base
