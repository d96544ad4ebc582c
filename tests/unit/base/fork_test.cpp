// SPDX-License-Identifier: Apache-2.0
#include "base/exit_gate.hpp"

#include <gtest/gtest.h>

#include <atomic>
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

}  // namespace
}  // namespace kiln::base
