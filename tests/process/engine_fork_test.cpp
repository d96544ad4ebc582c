// SPDX-License-Identifier: Apache-2.0
#include <kiln/engine.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace kiln {

namespace {

constexpr int some = 8;

// In a process that has no engine yet: a thread makes the first, and children that are forked meanwhile make theirs. Ends with how many
// of them did not, or took their parent's. A thread's memory is not where the children's engines are, which their only thread makes.
[[noreturn]] void fork_while_the_first_is_made(int pause_us) {
    auto* const theirs = static_cast<engine**>(
        ::mmap(nullptr, some * sizeof(engine*), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    std::thread first{[] { (void)engine::process(); }};
    std::vector<::pid_t> children;
    for (int n = 0; n < some; ++n) {
        ::usleep(static_cast<::useconds_t>(pause_us));
        auto const child = ::fork();
        if (child == 0) {
            ::alarm(20);
            theirs[n] = &engine::process();
            ::_exit(theirs[n]->status().requests == 0 ? 0 : 1);
        }
        children.push_back(child);
    }
    int wrong = 0;
    for (auto const child : children) {
        int status = 0;
        if (::waitpid(child, &status, 0) != child || status != 0) ++wrong;
    }
    first.join();
    for (int n = 0; n < some; ++n) wrong += theirs[n] == &engine::process();
    ::_exit(wrong);
}

// In a process that has no engine yet: threads use the first while children are forked, all of which end, as does their parent.
[[noreturn]] void fork_while_the_first_is_used() {
    ::alarm(60);
    std::atomic<bool> done{false};
    std::vector<std::thread> users;
    for (int n = 0; n < 4; ++n) {
        users.emplace_back([&, n] {
            for (int i = 0; i < 20 && !done; ++i)
                (void)engine::process().artifact_sync(
                    {.name = "k", .source = "__global__ void k" + std::to_string(20 * n + i) + "() {}"},
                    target::parse("sm_90").value());
        });
    }
    int wrong = 0;
    for (int n = 0; n < 200; ++n) {
        auto const child = ::fork();
        if (child == 0) {
            ::alarm(20);
            std::exit(0);
        }
        int status = 0;
        if (::waitpid(child, &status, 0) != child || status != 0) ++wrong;
    }
    done = true;
    for (auto& one : users) one.join();
    ::_exit(wrong);
}

int status_of(::pid_t child) {
    int status = -1;
    return ::waitpid(child, &status, 0) == child ? status : -1;
}

}  // namespace

TEST(engine_fork, a_child_has_an_engine_although_its_parents_was_just_being_made) {
    for (int pause_us : {0, 10, 20, 30, 40, 50, 60, 80, 100, 150, 200, 300, 500, 1000}) {
        auto const fresh = ::fork();
        ASSERT_GE(fresh, 0);
        if (fresh == 0) fork_while_the_first_is_made(pause_us);
        ASSERT_EQ(status_of(fresh), 0) << "children were left waiting or took another's, " << pause_us << " us apart";
    }
}

TEST(engine_fork, children_end_while_threads_of_their_parent_ask_for_the_first_time) {
    for (int n = 0; n < 3; ++n) {
        auto const fresh = ::fork();
        ASSERT_GE(fresh, 0);
        if (fresh == 0) fork_while_the_first_is_used();
        ASSERT_EQ(status_of(fresh), 0);
    }
}

}  // namespace kiln
