// SPDX-License-Identifier: Apache-2.0
#include "remote/answer_times.hpp"

#include <gtest/gtest.h>

namespace kiln::remote {

namespace {

using namespace std::chrono_literals;

TEST(answer_times, what_was_counted_by_many_is_one_distribution) {
    store::counter_map counts;
    EXPECT_EQ(answer_quantile_ms(counts, 0.5), std::nullopt);
    for (int i = 0; i < 90; ++i) ++counts[answer_time_counter(100us)];
    for (int i = 0; i < 10; ++i) ++counts[answer_time_counter(40ms)];
    counts["asked"] = 1000;
    EXPECT_DOUBLE_EQ(answer_quantile_ms(counts, 0.5).value(), 0.128);
    EXPECT_DOUBLE_EQ(answer_quantile_ms(counts, 0.95).value(), 49.152);
}

TEST(answer_times, none_is_said_to_be_shorter_than_it_was_nor_much_longer) {
    for (auto t = 1us; t < 60s; t += t / 7 + 1us) {
        store::counter_map const one{{answer_time_counter(t), 1}};
        auto const ms = answer_quantile_ms(one, 0.5).value();
        auto const real = static_cast<double>(t.count()) / 1000;
        EXPECT_GE(ms, real);
        EXPECT_LE(ms, std::max(real * 1.5, 0.016));
    }
    EXPECT_EQ(answer_time_counter(-1ns), answer_time_counter(1us));
    EXPECT_EQ(answer_time_counter(24h), answer_time_counter(48h));
}

TEST(answer_times, names_that_are_none_count_for_nothing) {
    store::counter_map const some{{"answered_us.", 1}, {"answered_us.x", 2}, {"answered_us.-5", 3}, {"answered", 4}};
    EXPECT_EQ(answer_quantile_ms(some, 0.5), std::nullopt);
}

}  // namespace

}  // namespace kiln::remote
