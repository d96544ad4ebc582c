// SPDX-License-Identifier: Apache-2.0
// From where on a program does what it will go on doing.
#include "unit/audit/scene.hpp"

#include <gtest/gtest.h>

namespace kiln::audit::testing {
namespace {

TEST(audit_windows, are_of_most_steps_where_every_third_one_is_late) {
    for (int const steps : {900, 901, 902}) {
        scene x;
        x.repeat(steps, [](scene& y, int i) {
            plain_step(y);
            y.on("a.py:3").read(4).passes(i % 3 == 2 ? 3000 : 500);
        });
        auto const seen = judge_scene(x);
        auto const& p = seen.m.processes.front();
        EXPECT_LE(p.steady_from_step, 226u);
        ASSERT_NE(seen.found("R22"), nullptr) << seen.rules();
        EXPECT_GE(seen.found("R22")->level, severity::high) << seen.rules();
    }
    scene few;
    few.repeat(10, [](scene& y, int i) { plain_step(y), y.passes(i % 3 == 2 ? 3000 : 500); });
    EXPECT_GE(judge_scene(few).m.processes.front().steady_from_step, 7u) << "too few to tell";
}

TEST(audit_windows, are_of_most_steps_where_the_last_few_are_not_late) {
    scene x;
    x.repeat(900, [](scene& y, int i) {
        plain_step(y);
        y.on("a.py:3").read(4).passes(i % 3 == 2 && i < 880 ? 3000 : 500);
    });
    auto const seen = judge_scene(x);
    EXPECT_LE(seen.m.processes.front().steady_from_step, 226u);
    ASSERT_NE(seen.found("R22"), nullptr) << seen.rules();
    EXPECT_GE(seen.found("R22")->level, severity::high) << seen.rules();
}

TEST(audit_windows, without_steps_begin_when_nearly_all_is_loaded) {
    scene x;
    x.call("cuModuleLoadData", 400'000);
    std::uint32_t chance = 1;
    x.repeat(1500, [&](scene& y, int) {  // in no order
        chance = chance * 1664525 + 1013904223;
        auto const which = chance >> 28;
        y.on(fmt::format("a.py:{}", 10 + which)).launch(fmt::format("k{}", which));
        if (which % 3 == 0) y.on("a.py:3").read(4).passes(1000);
    });
    x.call("cuModuleLoadData", 1000);
    x.launch("mean");
    auto const seen = judge_scene(x);
    auto const& p = seen.m.processes.front();
    ASSERT_FALSE(p.cycle.found()) << p.cycle.anchor;
    EXPECT_GT(p.steady.length(), 500 * ms);
    ASSERT_NE(seen.found("R22"), nullptr) << seen.rules();
    EXPECT_GE(seen.found("R22")->level, severity::high) << seen.rules();
}

TEST(audit_windows, without_steps_do_not_wait_for_the_last_kernel) {
    for (double const at_first : {0.0, 1000.0}) {
        scene x;
        if (at_first > 0) x.call("cuModuleLoadData", at_first);
        std::uint32_t chance = 1;
        x.repeat(1500, [&](scene& y, int) {  // in no order
            chance = chance * 1664525 + 1013904223;
            auto const which = chance >> 28;
            y.on(fmt::format("a.py:{}", 10 + which)).launch(fmt::format("k{}", which));
            if (which % 3 == 0) y.on("a.py:3").read(4).passes(1000);
        });
        x.compile(100'000).launch("mean");
        auto const seen = judge_scene(x);
        auto const& p = seen.m.processes.front();
        ASSERT_FALSE(p.cycle.found()) << p.cycle.anchor;
        EXPECT_GT(p.steady.length(), 500 * ms);
        ASSERT_NE(seen.found("R22"), nullptr) << seen.rules();
        EXPECT_GE(seen.found("R22")->level, severity::high) << seen.rules();
    }
}

TEST(audit_windows, do_not_wait_for_shapes_that_follow_the_data) {
    scene x;
    x.repeat(900, [](scene& y, int i) {
        auto const threads = i % 100 == 37 ? 512u : i % 100 == 73 ? 1024u : 64u << (i % 3);
        y.on("a.py:1").launch("mul").on("a.py:2").launch("sum", {.takes = 5, .threads = threads});
        y.on("a.py:3").read(4).passes(1000);
    });
    auto const seen = judge_scene(x);
    EXPECT_LE(seen.m.processes.front().steady_from_step, 8u);
    EXPECT_EQ(seen.found("R15"), nullptr) << seen.rules();
    ASSERT_NE(seen.found("R22"), nullptr) << seen.rules();
    EXPECT_GE(seen.found("R22")->level, severity::high) << seen.rules();
    for (unsigned const sizes : {3u, 6u, 16u}) {  // one as often as the other
        scene any;
        std::uint32_t chance = sizes;
        any.repeat(900, [&](scene& y, int) {
            chance = chance * 1664525 + 1013904223;
            y.on("a.py:1").launch("mul").on("a.py:2").launch(
                "sum", {.takes = 5, .threads = 64 + 32 * ((chance >> 16) % sizes)});
            y.on("a.py:3").read(4).passes(1000);
        });
        auto const of_any = judge_scene(any);
        EXPECT_LE(of_any.m.processes.front().steady_from_step, 8u) << sizes;
        EXPECT_EQ(of_any.found("R15"), nullptr) << of_any.rules();
    }
}

TEST(audit_windows, are_of_what_ran_most_whatever_comes_last) {
    scene x;
    auto const step = [](scene& y, unsigned threads) {
        y.on("a.py:1").launch("mul").on("a.py:2").launch("sum", {.takes = 5, .threads = threads});
        y.on("a.py:3").read(4).passes(1000);
    };
    for (int epoch = 0; epoch < 5; ++epoch) {
        x.repeat(180, [&](scene& y, int) { step(y, 256); });
        step(x, 96);  // what is left of the data
    }
    x.repeat(40, [](scene& y, int) { y.on("test.py:5").launch("sum", {.takes = 5, .threads = 512}); });
    auto const seen = judge_scene(x);
    EXPECT_LE(seen.m.processes.front().steady_from_step, 8u);
    EXPECT_EQ(seen.found("R15"), nullptr) << seen.rules();
    ASSERT_NE(seen.found("R22"), nullptr) << seen.rules();
    EXPECT_GE(seen.found("R22")->level, severity::high) << seen.rules();
}

TEST(audit_windows, wait_for_trials_in_a_row_and_once_more) {
    scene x;
    auto const step = [](scene& y, unsigned threads) {
        y.on("a.py:1").launch("mul").on("a.py:2").launch("sum", {.takes = 5, .threads = threads});
        y.on("a.py:3").read(4).passes(1000);
    };
    for (int round = 0; round < 2; ++round) {
        for (auto const threads : {64u, 256u, 512u}) x.repeat(200, [&](scene& y, int) { step(y, threads); });
        x.repeat(3000, [&](scene& y, int) { step(y, 128); });
    }
    auto const seen = judge_scene(x);
    EXPECT_GE(seen.m.processes.front().steady_from_step, 4190u);
    EXPECT_NE(seen.found("R15"), nullptr) << seen.rules();
}

TEST(audit_windows, without_steps_are_not_what_is_left_of_compiling) {
    scene x;
    std::uint32_t chance = 1;
    x.repeat(130, [&](scene& y, int i) {
        chance = chance * 1664525 + 1013904223;
        y.call("cuModuleLoadData", 100'000);
        y.on(fmt::format("a.py:{}", 10 + (chance >> 28))).launch(fmt::format("k{}", i)).passes(100);
    });
    auto const seen = judge_scene(x);
    ASSERT_FALSE(seen.m.processes.front().cycle.found());
    EXPECT_LT(seen.m.processes.front().steady.length(), 100 * ms);
}

TEST(audit_windows, begin_after_an_epoch_that_its_data_slowed) {
    for (int const n : {25, 100, 500}) {
        scene x;
        double const busy = 1'500'000.0 / n;
        x.repeat(2 * n, [&](scene& y, int i) {
            y.on("data.py:1").copy(direction::to_device, 1 << 20);
            y.on("a.py:1").launch("mul", {.takes = busy / 2}).on("a.py:2").launch("sum", {.takes = busy / 2});
            y.on("a.py:3").read(4).passes(i < n ? 0.7 * busy : 0.001 * busy);
        });
        auto const seen = judge_scene(x);
        EXPECT_EQ(seen.m.processes.front().steady_from_step, static_cast<std::size_t>(n));
        for (auto const& f : seen.r.findings) EXPECT_LE(f.level, severity::medium) << seen.rules();
    }
}

TEST(audit_windows, without_steps_are_no_compiling_to_the_end) {
    scene x;
    x.repeat(5, [](scene& y, int i) {
        y.on(fmt::format("a.py:{}", 10 + i)).compile(92'000).launch(fmt::format("k{}", i), {.takes = 308'000});
        y.on("a.py:1").wait("cudaStreamSynchronize");
    });
    auto const seen = judge_scene(x);
    ASSERT_FALSE(seen.m.processes.front().cycle.found());
    for (auto const& f : seen.r.findings) EXPECT_LE(f.level, severity::medium) << seen.rules();
}

}  // namespace
}  // namespace kiln::audit::testing
