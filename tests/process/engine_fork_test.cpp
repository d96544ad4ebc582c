// SPDX-License-Identifier: Apache-2.0
#include <kiln/engine.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace kiln {

namespace {

// In a process that has no engine yet: a thread makes the first, and children that are forked meanwhile make theirs. Ends with how many
// of them did not.
[[noreturn]] void fork_while_the_first_is_made(int pause_us) {
    std::thread first{[] { (void)engine::process(); }};
    std::vector<::pid_t> children;
    for (int n = 0; n < 8; ++n) {
        ::usleep(static_cast<::useconds_t>(pause_us));
        auto const child = ::fork();
        if (child == 0) {
            ::alarm(20);
            ::_exit(engine::process().status().requests == 0 ? 0 : 1);
        }
        children.push_back(child);
    }
    int left = 0;
    for (auto const child : children) {
        int status = 0;
        if (::waitpid(child, &status, 0) != child || status != 0) ++left;
    }
    first.join();
    ::_exit(left);
}

}  // namespace

TEST(engine_fork, a_child_has_an_engine_although_its_parents_was_just_being_made) {
    for (int pause_us : {0, 50, 200, 1000}) {
        auto const fresh = ::fork();
        ASSERT_GE(fresh, 0);
        if (fresh == 0) fork_while_the_first_is_made(pause_us);
        int status = 0;
        ASSERT_EQ(::waitpid(fresh, &status, 0), fresh);
        EXPECT_EQ(status, 0) << "children were left waiting, " << pause_us << " us apart";
        if (status != 0) return;
    }
}

}  // namespace kiln
