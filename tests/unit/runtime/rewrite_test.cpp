// SPDX-License-Identifier: Apache-2.0
#include <kiln/runtime/precision.hpp>
#include <kiln/runtime/rewrite.hpp>

#include <algorithm>
#include <gtest/gtest.h>
#include <kiln/event.hpp>
#include <random>
#include <vector>

namespace kiln {

namespace {

constinit rewrite const sort_of_sorted{"sort-of-sorted", "sort", "sort"};

// An operation that knows what made its input: the shape every user of rewrites has.
struct tagged {
    std::vector<int> values;
    std::string_view made_by;
};
tagged sort(tagged const& in) {
    if (take(sort_of_sorted, in.made_by)) return in;
    tagged out{in.values, "sort"};
    std::ranges::sort(out.values);
    return out;
}

}  // namespace

class rewrite_test : public testing::Test {
protected:
    ~rewrite_test() override { set_rewrites({}); }
};

TEST_F(rewrite_test, gives_the_same_bits_as_what_it_replaces) {
    std::minstd_rand random{5};
    for (std::size_t n = 0; n < 200; ++n) {
        tagged in{std::vector<int>(n), ""};
        for (auto& v : in.values) v = static_cast<int>(random() % 50);
        set_rewrites(false);
        auto const plain = sort(sort(in));
        set_rewrites(true);
        EXPECT_EQ(sort(sort(in)).values, plain.values);
    }
}

TEST_F(rewrite_test, that_is_taken_is_an_event_and_one_that_is_off_is_not_taken) {
    auto& log = event_log::process();
    auto const before = log.count(event_kind::rewritten);
    set_rewrites(true);
    EXPECT_FALSE(take(sort_of_sorted, "scan"));
    EXPECT_TRUE(take(sort_of_sorted, "sort"));
    EXPECT_EQ(log.count(event_kind::rewritten), before + 1);
    EXPECT_EQ(log.recent(1).back().reason.view(), "sort-of-sorted");
    set_rewrites(false);
    EXPECT_FALSE(take(sort_of_sorted, "sort"));
    EXPECT_EQ(log.count(event_kind::rewritten), before + 1);
}

TEST_F(rewrite_test, are_on_unless_the_environment_says_no) {
    set_rewrites({});
    EXPECT_TRUE(rewrites_enabled());
}

TEST(precision_test, is_full_where_the_device_is_good_at_it) {
    for (auto const what : {precision_class::coarse, precision_class::metric, precision_class::predicate,
                            precision_class::constructive}) {
        EXPECT_EQ(plan_precision(what, scalar::f64, 2), precision_plan{});
        EXPECT_EQ(plan_precision(what, scalar::f32, 64).compute, scalar::f32);
    }
}

TEST(precision_test, depends_on_what_the_result_is_for_where_it_is_not) {
    EXPECT_EQ(plan_precision(precision_class::coarse, scalar::f64, 64), (precision_plan{.compute = scalar::f32}));
    EXPECT_EQ(plan_precision(precision_class::metric, scalar::f64, 64),
              (precision_plan{.compute = scalar::f32, .compensation = compensation::error_free_sums}));
    EXPECT_EQ(plan_precision(precision_class::predicate, scalar::f64, 64),
              (precision_plan{.compute = scalar::f32, .refinement = refinement::doubtful}));
    EXPECT_EQ(plan_precision(precision_class::constructive, scalar::f64, 64), precision_plan{});
}

}  // namespace kiln
