// SPDX-License-Identifier: Apache-2.0
// Workers that crash, hang, lie, run out of memory or are killed: G1, G2 and G3 of the fault list.
#include "compile/reproduction.hpp"
#include "pool_fixture.hpp"

#include <gmock/gmock.h>

#include <set>

namespace kiln::compile::testing {

using ::testing::AnyOf;
using ::testing::HasSubstr;

struct fault {
    char const* name;
    char const* source;
    char const* words;  // in the error's message
};
void PrintTo(fault const& f, std::ostream* out) { *out << f.name; }

class g1_crash : public worker_pool_test, public ::testing::WithParamInterface<fault> {};

TEST_P(g1_crash, costs_one_retry_and_then_an_error_with_a_reproduction_file_while_others_succeed) {
    open(options(2));
    auto bad = submit(make_job("bad", GetParam().source));
    std::vector<std::future<outcome>> good;
    for (int i = 0; i < 10; ++i) good.push_back(submit("echo fine"));
    auto const failed = bad.get();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code(), errc::worker_failed);
    EXPECT_THAT(failed.error().message(), HasSubstr("bad for sm_90"));
    EXPECT_THAT(failed.error().message(), HasSubstr(GetParam().words));
    for (auto& one : good) EXPECT_EQ(image_text(one.get()), "fine");
    EXPECT_EQ(pool_->count().retried, 1u);
    EXPECT_EQ(pool_->count().died, 2u);

    auto const files = std::vector<fs::directory_entry>{fs::directory_iterator{scratch("repro")}, {}};
    ASSERT_EQ(files.size(), 1u);
    EXPECT_THAT(failed.error().message(), HasSubstr(files[0].path().native()));
    auto const again = read_reproduction(files[0].path());
    EXPECT_EQ(std::get<compile_job>(again.value().task).unit.source, GetParam().source);
    for (auto const& e : events(event_kind::worker_ended)) {
        if (e.unit.view() == "bad") {
            EXPECT_EQ(e.reason.view(), "crashed");
        }
    }
}

// hang-up is not here: whoever hangs up and lives on is killed by us, which looks like a kill from outside.
INSTANTIATE_TEST_SUITE_P(all, g1_crash,
                         ::testing::Values(fault{"segfault", "signal 11", "killed by signal 11 (Segmentation fault)"},
                                           fault{"abort", "signal 6", "killed by signal 6"},
                                           fault{"exit", "exit 3", "exited with status 3"},
                                           fault{"clean_exit", "exit 0", "exited with status 0"},
                                           fault{"stack", "recurse", "killed by signal 11"},
                                           fault{"garbage", "garbage", "malformed unknown frame"},
                                           fault{"wrong_id", "wrong-id", "an answer nobody asked for"}),
                         [](auto const& one) { return std::string{one.param.name}; });

TEST_F(worker_pool_test, g1_a_crash_that_does_not_come_again_is_not_noticed) {
    open(options(2));
    EXPECT_TRUE(submit("once " + scratch("crashed").native()).get());
    EXPECT_EQ(pool_->count().retried, 1u);
}

TEST_F(worker_pool_test, g1_a_job_that_crashed_is_quarantined) {
    open(options(2));
    auto const first = submit("signal 11").get();
    auto const started = pool_->count().started;
    auto const second = submit("signal 11").get();
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().message(), first.error().message());
    EXPECT_LE(pool_->count().started, started + 1);
    EXPECT_EQ(pool_->count().died, 2u);
    EXPECT_TRUE(submit("echo").get());
}

TEST_F(worker_pool_test, g1_what_a_crashing_compiler_said_is_in_the_log) {
    open(options(1));
    auto const failed = submit("abort-for-memory").get();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code(), errc::out_of_memory);
    EXPECT_THAT(failed.error().log(), HasSubstr("LLVM ERROR: out of memory"));
}

TEST_F(worker_pool_test, a_worker_that_hangs_up_is_replaced) {
    open(options(1));
    auto const failed = submit("hang-up").get();
    EXPECT_EQ(failed.error().code(), errc::worker_failed);
    EXPECT_TRUE(submit("echo").get());
}

class g2_hang : public worker_pool_test, public ::testing::WithParamInterface<char const*> {};

TEST_P(g2_hang, ends_at_the_deadline_with_a_timeout) {
    auto o = options(2);
    o.compile_timeout = 200ms;
    open(std::move(o));
    auto stuck = submit(make_job("stuck", GetParam()));
    EXPECT_TRUE(submit("echo").get());
    auto const failed = stuck.get();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code(), errc::timeout);
    EXPECT_THAT(failed.error().message(), HasSubstr("no CPU time used for 200 ms"));
    EXPECT_THAT(failed.error().message(), HasSubstr(".kiln-repro"));
    EXPECT_EQ(pool_->count().retried, 1u);
    ASSERT_TRUE(eventually([&] { return events_.count(event_kind::worker_ended) == 2; }));
    for (auto const& e : events(event_kind::worker_ended)) EXPECT_EQ(e.reason.view(), "hung");
    EXPECT_TRUE(submit("echo").get());
}

// 19 is SIGSTOP.
INSTANTIATE_TEST_SUITE_P(all, g2_hang, ::testing::Values("hang", "signal 19"),
                         [](auto const& one) { return one.index == 0 ? "asleep" : "stopped"; });

// The deadlines of what follows are so long that a worker at low priority gets some CPU time within them, also on a machine
// that is busy with other tests.

TEST_F(worker_pool_test, g2_a_worker_that_spins_has_the_deadline_in_cpu_time) {
    auto o = options(1);
    o.compile_timeout = 1s;
    open(std::move(o));
    auto const failed = submit("spin").get();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code(), errc::timeout);
    // The second where the machine has not one second to spare in ten.
    EXPECT_THAT(failed.error().message(),
                AnyOf(HasSubstr("no result within 1000 ms of CPU time"), HasSubstr("no result within 10000 ms")));
}

// A held worker looks for its file all the time and gets little done: like one on a machine that has no time for it.
TEST_F(worker_pool_test, g2_a_slow_worker_outlives_the_deadline) {
    auto o = options(1);
    o.compile_timeout = 1s;
    open(std::move(o));
    auto slow = submit(hold());
    ASSERT_TRUE(eventually([&] {
        auto const all = pool_->workers();
        return pool_->count().retried > 0 || (!all.empty() && all[0].busy_ns > 2'000'000'000);
    }));
    release();
    EXPECT_TRUE(slow.get());
    EXPECT_EQ(pool_->count().retried, 0u);
}

TEST_F(worker_pool_test, g2_a_slow_worker_has_ten_deadlines) {
    auto o = options(1);
    o.compile_timeout = 300ms;
    open(std::move(o));
    auto const failed = submit(hold()).get();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code(), errc::timeout);
    EXPECT_THAT(failed.error().message(), HasSubstr("no result within 3000 ms"));
}

TEST_F(worker_pool_test, g3_a_worker_out_of_memory_is_bounded_and_halves_the_concurrency) {
    auto o = options(4);
    o.worker_memory = std::uint64_t{256} << 20;
    open(std::move(o));
    auto const failed = submit(make_job("large", "allocate")).get();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code(), errc::out_of_memory);
    EXPECT_THAT(failed.error().message(), HasSubstr("256 MiB"));
    EXPECT_THAT(failed.error().message(), HasSubstr(".kiln-repro"));
    ASSERT_TRUE(eventually([&] { return events_.count(event_kind::worker_ended) == 2; }));
    for (auto const& e : events(event_kind::worker_ended)) EXPECT_EQ(e.reason.view(), "memory");

    // Both tries within a second are one shortage: four workers become two.
    std::vector<std::future<outcome>> all;
    for (int i = 0; i < 4; ++i) all.push_back(submit(hold()));
    ASSERT_TRUE(eventually([&] { return held().size() == 2; }));
    EXPECT_LE(pool_->workers().size(), 2u);
    release();
    for (auto& one : all) EXPECT_TRUE(one.get());
}

TEST_F(worker_pool_test, kill_9_of_every_worker_in_the_middle_of_twenty_jobs) {
    open(options(4));
    std::vector<std::future<outcome>> all;
    for (int i = 0; i < 20; ++i) all.push_back(submit(hold()));
    // Three times over: the same jobs lose their workers again and again.
    std::set<pid_t> killed;
    for (std::size_t round = 1; round <= 3; ++round) {
        ASSERT_TRUE(eventually([&] { return held().size() == 4 * round; }));
        for (auto const pid : held()) {
            if (killed.insert(pid).second) send_signal(pid, SIGKILL);
        }
    }
    release();
    for (auto& one : all) EXPECT_TRUE(one.get());
    EXPECT_EQ(pool_->count().done, 20u);
    EXPECT_EQ(pool_->count().died, 12u);
    EXPECT_EQ(pool_->count().retried, 12u);
}

TEST_F(worker_pool_test, a_job_whose_worker_is_always_killed_is_given_up_but_not_quarantined) {
    open(options(1));
    auto const failed = submit("signal 9").get();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code(), errc::worker_failed);
    EXPECT_THAT(failed.error().message(), HasSubstr("killed 5 times"));
    static_cast<void>(submit("signal 9").get());
    EXPECT_EQ(pool_->count().died, 10u);
}

TEST_F(worker_pool_test, an_idle_worker_that_was_killed_is_replaced) {
    open(options(1));
    EXPECT_TRUE(submit("echo").get());
    ASSERT_TRUE(eventually([&] { return pool_->workers().size() == 1 && !pool_->workers()[0].busy; }));
    send_signal(pool_->workers()[0].pid, SIGKILL);
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(submit("echo").get());
}

TEST_F(worker_pool_test, reproduction_files_are_bounded) {
    open(options(4));
    std::vector<std::future<outcome>> all;
    for (int i = 0; i < 20; ++i) all.push_back(submit(fmt::format("exit 1 {}", i)));
    for (auto& one : all) EXPECT_FALSE(one.get());
    auto const files = std::distance(fs::directory_iterator{scratch("repro")}, fs::directory_iterator{});
    EXPECT_EQ(files, 16);
}

}  // namespace kiln::compile::testing
