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
