// SPDX-License-Identifier: Apache-2.0
#include "support/pretended_compiler.hpp"
#include "support/told_redis.hpp"

#include <kiln/engine.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
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

enum class server { answers, says_nothing };

// What a child does that goes on with the engine its parent held: it is answered, and what it made is kept.
[[nodiscard]] bool goes_on(engine& e, std::string const& name, server of = server::answers) {
    auto const made = test::get_sync(e, test::unit_called(name));
    auto const again = test::get_sync(e, test::unit_called(name));
    // Less than what a child has: who is killed by its alarm hangs elsewhere.
    bool const kept = e.flush_sync(std::chrono::seconds{8});
    if (!made || !again || (!kept && of == server::answers))
        std::fprintf(stderr, "%s: made %d, again %d, kept %d\n", name.c_str(), made.has_value(), again.has_value(),
                     kept);
    return made && again && (kept || of == server::says_nothing);
}

template <class Body>
::pid_t in_child(Body body) {
    auto const child = ::fork();
    if (child != 0) return child;
    ::alarm(20);
    ::_exit(body() ? 0 : 1);
}

// A machine of its own, whose compiler is none.
struct machine {
    explicit machine(std::string const& remote)
        : e{{.settings = {{"KILN_CACHE_DIR", scratch.path() / "cache"}, {"KILN_REMOTE", remote}}, .events = &events}} {
        test::compile_by(e, events, [](compile::job const& j) {
            if (j.name() == "slow") std::this_thread::sleep_for(std::chrono::milliseconds{300});
            return test::product_of(j, "image");
        });
    }
    base::temporary_directory scratch = base::temporary_directory::make("kiln-fork").value();
    event_log events;
    engine e;
};

class fork_with_a_remote : public ::testing::Test {
protected:
    void SetUp() override {
#if defined(__SANITIZE_THREAD__)
        GTEST_SKIP() << "ThreadSanitizer ends a child that starts threads after a fork with threads";
#endif
    }
    // Idle and in the middle of something, and once more in a child's child.
    static void children_go_on(std::string const& remote, server of = server::answers) {
        auto const here = std::make_unique<machine>(remote);
        auto& e = here->e;
        ASSERT_TRUE(test::get_sync(e, test::unit_called("parents")));
        EXPECT_EQ(status_of(in_child([&] { return goes_on(e, "childs", of); })), 0);
        EXPECT_EQ(status_of(in_child([&] {
                      if (!goes_on(e, "again", of)) return false;
                      ::alarm(60);  // its child has an alarm of its own, and says what it was at
                      return status_of(in_child([&] { return goes_on(e, "grandchilds", of); })) == 0;
                  })),
                  0);
        auto const t = target::parse("sm_90").value();
        auto const under_way =
            e.internals().requests->ask(test::order_of(test::unit_called("slow"), t), priority::declared).answer;
        ::usleep(50'000);
        EXPECT_EQ(status_of(in_child([&] { return goes_on(e, "slow", of) && goes_on(e, "other", of); })), 0)
            << "what its parent has under way is not";
        EXPECT_EQ(status_of(in_child([&] {
                      here->e.~engine();
                      return true;
                  })),
                  0)
            << "a child that never used it lets it go";
        EXPECT_TRUE(under_way.wait_sync());
        EXPECT_TRUE(goes_on(e, "parents_too", of));
    }
};

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

// What the compiler does at exit() takes a lock that a thread of the parent may have had.
TEST(engine_fork, children_end_while_threads_of_their_parent_compile_in_the_program) {
    auto const scratch = base::temporary_directory::make("kiln-fork").value();
    auto const fresh = ::fork();
    ASSERT_GE(fresh, 0);
    if (fresh == 0) {
        ::setenv("KILN_WORKERS", "0", 1);
        ::setenv("KILN_CACHE_DIR", (scratch.path() / "cache").c_str(), 1);
        fork_while_the_first_is_used();
    }
    ASSERT_EQ(status_of(fresh), 0);
}

TEST_F(fork_with_a_remote, P7_none) { children_go_on(""); }

TEST_F(fork_with_a_remote, R15_redis) {
    if (auto const what = test::redis_process::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
    test::redis_process redis;
    children_go_on(redis.url() + " trust=server");
    EXPECT_EQ(redis.say("EVAL \"return #redis.call('keys', 'kiln:1:l:*')\" 0"), ":0\r\n") << "leases are left";
    EXPECT_EQ(redis.say("EVAL \"return #redis.call('keys', 'kiln:1:*')\" 0"), ":14\r\n")
        << "of each unit two names: by its request and by its family";
}

TEST_F(fork_with_a_remote, R15_a_closed_port) {
    children_go_on(fmt::format("redis://127.0.0.1:{} trust=server", test::free_port()));
}

TEST_F(fork_with_a_remote, R15_a_server_that_says_nothing) {
    test::told_redis const told{[](auto const&) { return test::silence; }};
    children_go_on(told.url() + " trust=server timeout=1s", server::says_nothing);
}

}  // namespace kiln
