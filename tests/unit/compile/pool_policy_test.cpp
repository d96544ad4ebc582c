// SPDX-License-Identifier: Apache-2.0
#include "compile/pool_policy.hpp"

#include <gtest/gtest.h>

namespace kiln::compile {
namespace {

using namespace std::chrono_literals;

base::time_point const start{1000s};

TEST(attempts, its_own_fault_costs_one_retry_whatever_the_faults_were) {
    for (auto const first : {mishap::crashed, mishap::hung, mishap::memory}) {
        attempts tries;
        EXPECT_TRUE(tries.may_try_again());
        tries.add(first);
        EXPECT_TRUE(tries.may_try_again());
        EXPECT_FALSE(tries.harmless());
        tries.add(mishap::crashed);
        EXPECT_FALSE(tries.may_try_again());
        EXPECT_EQ(tries.count(), 2);
    }
}

TEST(attempts, kills_from_outside_cost_four) {
    attempts tries;
    for (int i = 0; i < 4; ++i) tries.add(mishap::killed);
    EXPECT_TRUE(tries.may_try_again());
    EXPECT_TRUE(tries.harmless());
    tries.add(mishap::killed);
    EXPECT_FALSE(tries.may_try_again());
}

// Looks when it says so, at a worker that has had `cpu_at(t)` after `t`: when it was given up, and why.
struct given_up {
    std::chrono::nanoseconds after{};
    std::string why;
};
template <class CpuAt>
given_up watch(CpuAt cpu_at) {
    constexpr worker_time before{7s};  // of earlier jobs
    patience left{start, 100s, before};
    for (;;) {
        auto const after = left.next_look() - start;
        worker_time had{cpu_at(after)};
        had.used += before.used;
        if (auto const why = left.exhausted(left.next_look(), had)) return {after, *why};
    }
}

TEST(starvation, is_too_little_of_a_cpu_for_who_wants_more) {
    auto const is_starved = [](worker_time after) {
        starvation had;
        EXPECT_FALSE(had.seen(start, worker_time{7s, true}));
        EXPECT_EQ(had.next_look(), start + starvation::span);
        EXPECT_FALSE(had.seen(start + 1ms, worker_time{7s, true})) << "too soon to tell";
        after.used += 7s;
        return had.seen(start + 400ms, after);
    };
    EXPECT_TRUE(is_starved({10ms, true}));
    EXPECT_TRUE(is_starved({99ms, true}));
    EXPECT_FALSE(is_starved({100ms, true}));
    EXPECT_FALSE(is_starved({10ms, false})) << "it waits for a disk";
    starvation unknown;
    EXPECT_FALSE(unknown.seen(start, std::nullopt));
    EXPECT_FALSE(unknown.seen(start + 1s, std::nullopt));
}

TEST(patience, a_worker_that_uses_no_cpu_hangs) {
    auto const end = watch([](auto after) { return std::min<std::chrono::nanoseconds>(after, 50ms); });
    EXPECT_EQ(end.after, 100s);
    EXPECT_EQ(end.why, "no result, and no CPU time used for 100000 ms");
}

TEST(patience, a_worker_that_stops_using_cpu_hangs_from_then_on) {
    auto const end = watch([](auto after) { return std::min<std::chrono::nanoseconds>(after, 55s); });
    EXPECT_EQ(end.after, 160s);
    EXPECT_EQ(end.why, "no result, and no CPU time used for 100000 ms");
}

TEST(patience, a_worker_that_spins_has_the_limit_in_cpu_time) {
    auto const alone = watch([](auto after) { return after; });
    EXPECT_EQ(alone.after, 100s);
    EXPECT_EQ(alone.why, "no result within 100000 ms of CPU time");
    auto const one_of_three = watch([](auto after) { return after / 3; });
    EXPECT_EQ(one_of_three.after, 300s);
    EXPECT_EQ(one_of_three.why, "no result within 100000 ms of CPU time");
}

TEST(patience, threads_add_up_but_never_end_it_before_the_limit) {
    auto const end = watch([](auto after) { return 64 * after; });
    EXPECT_EQ(end.after, 100s);
    EXPECT_EQ(end.why, "no result within 100000 ms of CPU time");
}

TEST(patience, a_worker_that_gets_little_cpu_has_ten_limits) {
    for (auto const share : {20, 500}) {
        auto const end = watch([&](auto after) { return after / share; });
        EXPECT_EQ(end.after, 1000s);
        EXPECT_EQ(end.why, "no result within 1000000 ms");
    }
}

TEST(patience, a_worker_that_waits_for_a_cpu_does_not_hang) {
    auto const end = watch([](auto after) { return worker_time{after / 5000, true}; });
    EXPECT_EQ(end.after, 1000s);
    EXPECT_EQ(end.why, "no result within 1000000 ms");
}

TEST(patience, where_cpu_time_cannot_be_read_the_limit_is_all_there_is) {
    patience left{start, 100s, std::nullopt};
    EXPECT_FALSE(left.exhausted(start + 99s, std::nullopt));
    EXPECT_EQ(left.exhausted(start + 100s, std::nullopt), "no result within 100000 ms");
}

TEST(patience, excused_time_does_not_count) {
    patience of_a_busy_one{start, 100s, worker_time{}};
    of_a_busy_one.excuse(50s);
    EXPECT_FALSE(of_a_busy_one.exhausted(start + 149s, worker_time{100s}));
    EXPECT_TRUE(of_a_busy_one.exhausted(start + 150s, worker_time{100s}));

    patience of_an_idle_one{start, 100s, worker_time{}};
    EXPECT_FALSE(of_an_idle_one.exhausted(start + 90s, worker_time{1s}));
    of_an_idle_one.excuse(100s);
    EXPECT_FALSE(of_an_idle_one.exhausted(start + 289s, worker_time{1s}));
    EXPECT_TRUE(of_an_idle_one.exhausted(start + 290s, worker_time{1s}));
}

TEST(concurrency_limit, halves_once_per_shortage_down_to_one) {
    concurrency_limit limit{16};
    limit.halve(start);
    limit.halve(start + 10ms);
    EXPECT_EQ(limit.at(start + 10ms), 8);
    limit.halve(start + 2s);
    EXPECT_EQ(limit.at(start + 2s), 4);
    for (int i = 2; i < 8; ++i) limit.halve(start + i * 2s);
    EXPECT_EQ(limit.at(start + 14s), 1);
}

TEST(concurrency_limit, doubles_in_quiet_times_up_to_the_capacity) {
    concurrency_limit limit{6};
    EXPECT_EQ(limit.next_change(), base::time_point::max());
    limit.halve(start);
    limit.halve(start + 2s);
    EXPECT_EQ(limit.next_change(), start + 12s);
    EXPECT_EQ(limit.at(start + 11s), 1);
    EXPECT_EQ(limit.at(start + 12s), 2);
    EXPECT_EQ(limit.at(start + 100s), 6);
    EXPECT_EQ(limit.next_change(), base::time_point::max());
}

TEST(start_trouble, three_rounds_of_early_ends_and_a_rest) {
    start_trouble trouble;
    // Started together, ended together: one round.
    for (int i = 0; i < 16; ++i) trouble.ended_early(start, start + 1s + i * 1ms, "why");
    EXPECT_FALSE(trouble.resting(start + 2s));
    trouble.ended_early(start + 2s, start + 3s, "why");
    EXPECT_FALSE(trouble.resting(start + 3s));
    trouble.ended_early(start + 4s, start + 5s, "the last reason");
    EXPECT_TRUE(trouble.resting(start + 5s));
    EXPECT_EQ(trouble.why(), "the last reason");
    EXPECT_EQ(trouble.until(), start + 35s);
    EXPECT_FALSE(trouble.resting(start + 35s));
}

TEST(start_trouble, a_success_in_between_starts_the_count_again) {
    start_trouble trouble;
    trouble.ended_early(start, start + 1s, "why");
    trouble.ended_early(start + 2s, start + 3s, "why");
    trouble.succeeded();
    trouble.ended_early(start + 4s, start + 5s, "why");
    EXPECT_FALSE(trouble.resting(start + 5s));
}

}  // namespace
}  // namespace kiln::compile
