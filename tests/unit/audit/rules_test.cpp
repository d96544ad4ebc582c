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

// ---- who is to blame

TEST(audit_blame, is_of_each_line_that_copies_and_not_of_the_last) {
    auto const play = [](scene& x) {
        copy_options const pageable{.takes = 3000, .host = memory_kind::pageable, .call_takes = 3000};
        x.repeat(40,
                 [&](scene& y, int) { y.on("big.py:1").copy(direction::to_device, 32 << 20, pageable).launch("k"); });
        x.on("small.py:9").copy(direction::to_device, 100 << 10, pageable).launch("l");
    };
    scene one, other;
    play(one);
    play(other);
    auto const seen = judge_scene(one);
    ASSERT_NE(seen.found("R30"), nullptr) << seen.rules();
    EXPECT_EQ(seen.found("R30")->where, "big.py:1");
    EXPECT_EQ(seen.found("R30")->count, 40u);
    EXPECT_NE(judge_scene(other, {.allowed = {{"R30", "small.py:9", "once"}}}).found("R30"), nullptr);
}

TEST(audit_blame, of_a_few_copies_at_many_lines_is_told_once) {
    scene x;
    x.repeat(20, [](scene& y, int i) {
        y.on(fmt::format("a.py:{}", i))
            .copy(direction::to_device, 1 << 20, {.host = memory_kind::pageable})
            .launch("k");
    });
    auto const seen = judge_scene(x);
    ASSERT_NE(seen.found("R30"), nullptr) << seen.rules();
    EXPECT_EQ(seen.found("R30")->count, 20u);
    EXPECT_EQ(std::ranges::count(seen.r.findings, "R30", &finding::rule), 1);
}

TEST(audit_blame, one_line_with_many_copies_does_not_hide_many_with_a_few) {
    scene x;
    copy_options const pageable{.host = memory_kind::pageable};
    x.repeat(20, [&](scene& y, int i) {
        y.on("many.py:1").copy(direction::to_device, 1 << 20, pageable);
        y.on(fmt::format("a.py:{}", i)).copy(direction::to_device, 1 << 20, pageable).launch("k");
    });
    std::uint64_t told = 0;
    for (auto const& f : judge_scene(x).r.findings) told += f.rule == "R30" ? f.count : 0;
    EXPECT_EQ(told, 40u);
}

TEST(audit_blame, is_of_the_line_that_compiles_longest) {
    scene x;
    x.repeat(40, [](scene& y, int i) {
        plain_step(y);
        if (i > 10) y.on("slow.py:5"), y.call("cuModuleLoadData", 2000);
    });
    x.on("quick.py:7");
    x.call("cuModuleLoadData", 1);
    x.on("a.py:1").launch("last");
    auto const seen = judge_scene(x);
    ASSERT_NE(seen.found("R16"), nullptr) << seen.rules();
    EXPECT_EQ(seen.found("R16")->where, "slow.py:5");
}

TEST(audit_blame, is_of_the_line_before_which_the_host_computes_longest) {
    scene x;
    x.repeat(20, [](scene& y, int) {
        y.on("slow.py:1").launch("k", {.takes = 1000}).passes(9000);
        y.on("slow.py:2").launch("l", {.takes = 1000}).passes(2100);
    });
    x.launch("l");
    auto const seen = judge_scene(x);
    ASSERT_NE(seen.found("R66"), nullptr) << seen.rules();
    EXPECT_EQ(seen.found("R66")->where, "slow.py:2") << seen.rules();
    scene other;
    other.repeat(20, [](scene& y, int) {
        y.on("slow.py:1").launch("k", {.takes = 1000}).passes(2100);
        y.on("slow.py:2").launch("l", {.takes = 1000}).passes(9000);
    });
    other.on("slow.py:1").launch("k", {.takes = 1000}).passes(2100).on("slow.py:2").launch("l");
    auto const last = judge_scene(other);
    ASSERT_NE(last.found("R66"), nullptr) << last.rules();
    EXPECT_EQ(last.found("R66")->where, "slow.py:1") << "and not of the last";
}

TEST(audit_blame, is_of_what_keeps_the_null_stream_busy) {
    scene x;
    x.stream_flag(8, 1);
    x.on("once.py:1").launch("first", {.on_stream = scene::null_stream});
    x.repeat(60, [](scene& y, int) {
        y.on("a.py:1").launch("k", {.on_stream = 8});
        y.on("a.py:2").launch("l", {.on_stream = scene::null_stream});
    });
    auto const seen = judge_scene(x);
    ASSERT_NE(seen.found("R27"), nullptr) << seen.rules();
    EXPECT_EQ(seen.found("R27")->where, "a.py:2");
}

TEST(audit_rules, copies_alone_keep_the_null_stream_busy_only_if_nobody_waits_for_them) {
    for (bool const is_async : {true, false}) {
        scene x;
        x.stream_flag(8, 1);
        x.repeat(60, [&](scene& y, int) {
            y.on("a.py:1").launch("k", {.on_stream = 8});
            y.on("a.py:2").copy(direction::to_device, 4096, {.async = is_async, .on_stream = scene::null_stream});
        });
        auto const seen = judge_scene(x);
        ASSERT_EQ(seen.found("R27") != nullptr, is_async) << seen.rules();
        EXPECT_EQ(is_async ? seen.found("R27")->count : 60u, 60u);
    }
}

TEST(audit_costs, of_waits_are_without_what_is_compiled_after_them) {
    for (bool const reads : {true, false}) {
        scene x;
        x.repeat(1000, [&](scene& y, int i) {
            y.on("a.py:1").launch("mul", {.takes = 1000}).on("a.py:2");
            reads ? y.read(4) : y.wait("cudaStreamSynchronize");
            if (i == 600 || i == 800) y.compile(300'000);
        });
        auto const seen = judge_scene(x);
        for (auto const& f : seen.r.findings) {
            if (f.rule != "R20" && f.rule != "R22") continue;
            EXPECT_LT(f.cost, 0.01) << seen.rules();
            EXPECT_LE(f.level, severity::low) << seen.rules();
        }
        ASSERT_NE(seen.found("R60"), nullptr) << seen.rules();
        EXPECT_NE(seen.found("R60")->what.find("first call leaves the GPU idle"), std::string::npos);
    }
}

TEST(audit_costs, of_waits_are_theirs_while_a_compiler_runs_beside_them) {
    scene x;
    double from = 0, to = 0;
    x.repeat(2000, [&](scene& y, int i) {
        if (i == 1010) from = y.now();
        y.on("a.py:1").launch("mul", {.takes = 500}).on("a.py:2").launch("sum", {.takes = 500});
        y.on("a.py:3").read(4).passes(80);
        if (i == 1990) to = y.now();
    });
    x.p().children.push_back({.pid = 2000,
                              .parent = 42,
                              .name = x.text("ptxas"),
                              .event = 1,
                              .time = static_cast<std::uint64_t>(scene::ns(from))});
    x.p().children.push_back({.pid = 2000,
                              .parent = 42,
                              .name = x.text("ptxas"),
                              .event = 4,
                              .time = static_cast<std::uint64_t>(scene::ns(to))});
    auto const seen = judge_scene(x);
    ASSERT_NE(seen.found("R22"), nullptr) << seen.rules();
    EXPECT_GE(seen.found("R22")->level, severity::high) << seen.rules();
}

TEST(audit_costs, are_no_more_than_the_time) {
    scene loads, demoted;
    loads.repeat(60, [](scene& y, int) {  // the driver compiles while it loads
        plain_step(y);
        auto const from = y.now();
        y.call("cuModuleLoadData", 2000);
        y.p().jits.push_back(
            {.thread = scene::thread, .operation = 3, .start = scene::ns(from + 1), .end = scene::ns(from + 1999)});
    });
    auto const seen = judge_scene(loads);
    auto const* const f = seen.found("R16");
    ASSERT_NE(f, nullptr) << seen.rules();
    EXPECT_LE(f->cost, 1);
    EXPECT_GT(f->cost, 0.8);
    demoted.repeat(20, [](scene& y, int) {
        y.on("w.py:1").copy(direction::to_host, 4 << 20).wait("cudaStreamSynchronize").passes(100'000);
        y.on("w.py:2").copy(direction::to_device, 4 << 20).launch("w");
    });
    demoted.on("w.py:5");
    demoted.call("cuModuleLoadData", 5000);
    plain_steps(100)(demoted);
    auto const before = judge_scene(demoted);
    for (auto const& one : before.r.findings) EXPECT_LE(one.cost, 1) << one.rule << "\n" << before.rules();
    ASSERT_NE(before.found("R06"), nullptr) << before.rules();
    scene pieces;  // of one call, and the GPU is idle after it once
    pieces.repeat(60, [](scene& y, int) {
        y.on("a.py:1").launch("k").on("a.py:2").copy(direction::to_host, 8, {.async = false});
        auto second = y.p().copies.back();
        second.start = second.end;
        second.end += 1000;
        y.p().copies.push_back(second);
        y.passes(1000);
    });
    auto const read = judge_scene(pieces);
    ASSERT_NE(read.found("R22"), nullptr) << read.rules();
    EXPECT_LE(read.found("R22")->cost, 1);
    EXPECT_GT(read.found("R22")->cost, 0.8);
}

TEST(audit_rules, tell_once_what_falls_back_or_lies_for_one_reason) {
    scene x;
    plain_steps(40)(x);
    for (std::uint64_t id = 1; id <= 90; ++id)
        x.dispatch(
            id,
            fmt::format(R"({{"kind":"{}","op":"scan","requested":"auto","selected":"gpu","reason":"{}","items":{}}})",
                        id % 3 == 0 ? "fell_back" : "dispatched", id % 2 == 0 ? "no device" : "no memory",
                        id % 3 == 1 ? 9 : 0));
    auto const seen = judge_scene(x);
    std::map<std::string, std::uint64_t> times, findings;
    for (auto const& f : seen.r.findings) {
        ++findings[f.rule];
        times[f.rule] += f.count;
    }
    EXPECT_EQ(findings["R03"], 2u) << seen.rules();
    EXPECT_EQ(times["R03"], 30u);
    EXPECT_EQ(findings["R07"], 1u);
    EXPECT_EQ(times["R07"], 30u);
    EXPECT_EQ(seen.exempt("R07"), 30u);
    EXPECT_EQ(std::ranges::count(seen.r.exempt, "R07", &exemption::rule), 1);
}

TEST(audit_rules, name_the_kernel_that_takes_longest_and_its_own_limit) {
    scene x;
    x.launch("early", {.takes = 20, .blocks = 100, .threads = 64, .registers = 250});
    x.repeat(60, [](scene& y, int) {
        y.on("a.py:1").launch("rare", {.takes = 15, .blocks = 100, .threads = 64, .registers = 255, .shared = 1 << 10});
        y.on("a.py:2").launch("often", {.takes = 300, .blocks = 2, .threads = 64, .shared = 100 << 10});
    });
    auto const seen = judge_scene(x);
    auto const *const grid = seen.found("R52"), *const occupancy = seen.found("R54");
    ASSERT_TRUE(grid != nullptr && occupancy != nullptr) << seen.rules();
    EXPECT_NE(grid->what.find("('often': 2)"), std::string::npos) << grid->what;
    EXPECT_GT(grid->cost, 0.5);
    EXPECT_NE(occupancy->what.find("'often'"), std::string::npos) << occupancy->what;
    EXPECT_NE(occupancy->what.find("shared memory"), std::string::npos) << occupancy->what;
}

TEST(audit_rules, say_of_another_process_what_is_true_of_it) {
    scene x;
    x.repeat(300, [](scene& y, int) { plain_step(y); });
    x.another_process(43).repeat(60, [](scene& y, int) { plain_step(y), y.compile(2000); });
    auto const seen = judge_scene(x);
    ASSERT_NE(seen.found("R92"), nullptr) << seen.rules();
    EXPECT_EQ(seen.found("R92")->pid, 43u);
    EXPECT_TRUE(seen.found("R92")->what.starts_with("it never settled")) << seen.found("R92")->what;
}

TEST(audit_rules, know_no_share_of_a_core_that_was_not_sampled) {
    scene x;
    x.repeat(300, [](scene& y, int) { y.on("a.py:1").launch("k").on("a.py:2").launch("l").passes(10'000); });
    auto const seen = judge_scene(x);
    ASSERT_NE(seen.found("R02"), nullptr) << seen.rules();
    EXPECT_EQ(seen.found("R02")->what.find("of a core"), std::string::npos) << seen.found("R02")->what;
}

TEST(audit_rules, count_the_streams_that_wait_for_the_null_stream) {
    scene x;
    x.stream_flag(8, 1);
    for (std::uint32_t const s : {9u, 10u, 11u}) x.stream_flag(s, 2);
    x.repeat(60, [](scene& y, int) {
        for (std::uint32_t const s : {8u, 9u, 10u, 11u}) y.on("a.py:1").launch("k", {.on_stream = s});
        y.on("a.py:2").launch("l", {.on_stream = scene::null_stream});
    });
    auto const seen = judge_scene(x);
    ASSERT_NE(seen.found("R27"), nullptr) << seen.rules();
    EXPECT_NE(seen.found("R27")->what.find("1 blocking stream waits"), std::string::npos) << seen.found("R27")->what;
}

TEST(audit_rules, take_no_longer_where_each_step_loads) {
    scene x;
    x.repeat(80'000, [](scene& y, int i) {
        y.launch("k", {.takes = 2}).passes(10);
        y.call("cuModuleLoadData", 20);
        if (i % 3 == 0) y.compile(20);
    });
    x.ends();
    auto const before = std::clock();
    (void)audit(model_of(x.all()));
    EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 6.0);
}

TEST(audit_rules, take_no_longer_where_all_of_the_run_is_known) {
    scene x;
    x.repeat(40'000,
             [](scene& y, int) {  // the GPU works until the next call has begun, and that ends when it works again
                 y.launch("k", {.takes = 10}).passes(8);
                 y.call("cuModuleLoadData", 5);
             });
    x.ends();
    auto const before = std::clock();
    (void)audit(model_of(x.all()));
    EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 6.0);
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
