// SPDX-License-Identifier: Apache-2.0
// Every rule three times: where it fires, just below, and where it lets pass.
#include "unit/audit/rule_cases.hpp"

#include <gtest/gtest.h>

#include <ctime>

namespace kiln::audit::testing {
namespace {

std::vector<rule_case> cases() {
    std::vector<rule_case> out;
    for (auto const& part : {cases_of_the_first(), cases_of_waits(), cases_of_launches()})
        out.insert(out.end(), part.begin(), part.end());
    return out;
}

class audit_rule : public ::testing::TestWithParam<rule_case> {};

TEST_P(audit_rule, fires_where_it_should) {
    auto const& c = GetParam();
    scene x;
    c.make(x);
    auto const seen = judge_scene(x, c.how);
    auto const* const f = seen.found(c.rule);
    if (c.what == expected::fires) {
        ASSERT_NE(f, nullptr) << seen.rules();
        EXPECT_FALSE(f->what.empty());
        if (c.times > 0) {
            EXPECT_EQ(f->count, c.times) << seen.rules();
        }
    } else {
        EXPECT_EQ(f, nullptr) << seen.rules();
    }
    if (c.what == expected::exempt) {
        EXPECT_GT(seen.exempt(c.rule), 0u) << seen.rules();
    }
}

INSTANTIATE_TEST_SUITE_P(each, audit_rule, ::testing::ValuesIn(cases()),
                         [](auto const& about) { return about.param.rule + "_" + about.param.name; });

// As frameworks do that can name each operation (emit_nvtx): looking at all the work for each of them takes 16 s.
TEST(audit_rules, take_no_longer_where_each_launch_has_a_range_of_its_own) {
    scene x;
    x.repeat(60'000, [](scene& y, int) {
        format::range_record r;
        r.start = scene::ns(y.now());
        y.launch("k", {.takes = 2}).passes(10);
        r.end = scene::ns(y.now());
        r.name = y.text("layer");
        y.p().ranges.push_back(r);
    });
    x.ends();
    auto const m = model_of(x.all());
    auto const before = std::clock();
    (void)audit(m);
    EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 5.0);
}

// A kernel that outlives them all was queued before they were.
TEST(audit_rules, take_no_longer_where_ranges_lie_in_one_another) {
    constexpr int many = 80'000;
    scene x;
    x.launch("long");
    x.p().kernels.back().end = scene::ns(60e6);
    auto const begun = x.now();
    x.repeat(many, [](scene& y, int) { y.launch("k", {.takes = 2}).passes(10); });
    for (int i = 0; i < many; ++i) {
        format::range_record r;
        r.start = scene::ns(begun) + static_cast<std::uint64_t>(i);
        r.end = scene::ns(x.now()) - static_cast<std::uint64_t>(i);
        r.name = x.text("layer");
        x.p().ranges.push_back(r);
    }
    x.ends();
    auto const m = model_of(x.all());
    auto const before = std::clock();
    auto const r = audit(m);
    EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 2.0);
    EXPECT_TRUE(std::ranges::none_of(r.findings, [](finding const& f) { return f.rule == "R94"; }));
}

TEST(audit_rules, are_forty_two_and_five_and_each_is_seen_three_times) {
    std::map<std::string, std::set<expected>> seen;
    for (auto const& c : cases()) {
        ASSERT_NE(find_rule(c.rule), nullptr) << c.rule;
        seen[c.rule].insert(c.what == expected::exempt ? expected::passes : c.what);
    }
    std::size_t validity = 0;
    for (auto const& r : rules()) {
        validity += r.id >= "R90" ? 1 : 0;
        EXPECT_FALSE(r.fires.empty() || r.remedy.empty() || r.level.empty() || r.plain.empty()) << r.id;
        if (r.apply == nullptr) continue;  // diff judges it: see judgement_test.cpp
        for (auto const what : {expected::fires, expected::below, expected::passes})
            EXPECT_TRUE(seen[std::string{r.id}].contains(what)) << r.id << " lacks case " << static_cast<int>(what);
    }
    EXPECT_EQ(rules().size() - validity, 42u);
    EXPECT_EQ(validity, 5u);
}

}  // namespace
}  // namespace kiln::audit::testing
