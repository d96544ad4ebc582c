// SPDX-License-Identifier: Apache-2.0
#include <kiln/tropical/run.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln {

using testing::ElementsAre;
using testing::HasSubstr;

namespace {
template <class T>
std::vector<T> values_of(buffer<T> const& b) {
    return {b.host_span().begin(), b.host_span().end()};
}
}  // namespace

TEST(tropical_operation, runs_small_products_on_the_cpu_and_says_so) {
    run::tropical_product<int> const longest{tropical::semiring::max_plus, tropical::with_winners::yes};
    auto const a = buffer<int>::copy_of(std::vector<int>{1, 5, 2, 0});
    auto const before = activity_so_far();
    auto const out = longest(nullptr, {.m = 2, .n = 2, .k = 2}, a, a).value();
    EXPECT_THAT(values_of(out.c), ElementsAre(7, 6, 3, 7));
    EXPECT_THAT(values_of(*out.winners), ElementsAre(1, 0, 0, 0));
    EXPECT_EQ(activity_so_far().since(before).dispatched_to_cpu, 1u);
}

TEST(tropical_operation, refuses_operands_that_are_too_small_or_in_two_places) {
    run::tropical_product<float> const shorter{tropical::semiring::min_plus};
    auto const a = buffer<float>::on_host(4);
    EXPECT_THAT(shorter(nullptr, {.m = 2, .n = 2, .k = 3}, a, a).error().message(), HasSubstr("a holds 4"));
    auto const there = buffer<float>::borrow(a.data(), 4, residency::device);
    EXPECT_THAT(shorter(nullptr, {.m = 2, .n = 2, .k = 2}, a, there).error().message(), HasSubstr("by name"));
    EXPECT_EQ(shorter(nullptr, {.m = -1, .n = 2, .k = 2}, a, a).error().code(), errc::invalid_argument);
}

}  // namespace kiln
