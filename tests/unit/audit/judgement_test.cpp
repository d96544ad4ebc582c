// SPDX-License-Identifier: Apache-2.0
#include "audit/judgement.hpp"
#include "audit/source_text.hpp"
#include "base/files.hpp"
#include "unit/audit/scene.hpp"

#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <deque>

namespace kiln::audit::testing {
namespace {

void reads(scene& x, int times) {
    x.all().about = R"({"command":["python","train.py"],"label":"join","wall_s":2.0})";
    x.repeat(times, [](scene& y, int) { y.on("train.py:1").launch("k").on("train.py:2").read(4).passes(30); });
}

report_input input(judged const& j) { return {.m = j.m, .result = j.r, .recording = "", .files = {}}; }

TEST(budget, lines_are_kept_or_broken_with_what_was_measured) {
    scene x;
    reads(x, 40);
    auto const seen = judge_scene(x);
    auto const b =
        parse_budget("# ours\nR22.per_step <= 0.5\nR22.count <= 40\nsteady.gpu_busy >= 1%\nseverity <= blocking\n")
            .value();
    auto const lines = check(b, input(seen));
    ASSERT_EQ(lines.size(), 4u);
    EXPECT_FALSE(lines[0].kept);
    EXPECT_NE(lines[0].text.find("measured 1"), std::string::npos) << lines[0].text;
    EXPECT_TRUE(lines[1].kept) << lines[1].text;
    EXPECT_TRUE(lines[2].kept) << lines[2].text;
    EXPECT_TRUE(lines[3].kept);
}

TEST(budget, what_it_allows_is_no_finding_and_is_said) {
    for (auto const* const what : {"R22 at train.py:step", "scalar-read at train.py:2"}) {
        scene x;
        reads(x, 40);
        auto const b = parse_budget(fmt::format("allow {} because it sizes the output", what)).value();
        auto const seen = judge_scene(x, b.apply({}));
        EXPECT_EQ(seen.found("R22"), nullptr) << what;
        EXPECT_EQ(seen.exempt("R22"), 40u) << what;
        EXPECT_EQ(seen.found("R60"), nullptr) << "nor is what it leaves idle: " << seen.rules();
    }
}

verdict_line line_of(judged const& seen, char const* text) {
    return check(parse_budget(text).value(), input(seen)).at(0);
}

// A busy one that did most, and one that waits for what it reads; both have steps.
void two_processes(scene& x) {
    x.repeat(300, [](scene& y, int) { plain_step(y); });
    x.another_process(43).compile(300'000);
    reads(x, 60);
}

TEST(budget, each_process_that_is_at_work_has_to_keep_a_line) {
    scene x;
    two_processes(x);
    auto const seen = judge_scene(x);
    ASSERT_EQ(main_process(seen.m)->pid, 42u);
    for (auto const* const text : {"steady.gpu_busy >= 80%", "cold.ms <= 100", "step.ms >= 0.095"}) {
        auto const line = line_of(seen, text);
        EXPECT_FALSE(line.kept || line.unknown) << line.text;
        EXPECT_NE(line.text.find("(process 43)"), std::string::npos) << line.text;
    }
    EXPECT_FALSE(line_of(seen, "bytes_to_host <= 239").kept) << "60 times 4 bytes, by the other one";
    EXPECT_TRUE(line_of(seen, "bytes_to_host <= 240").kept);
    EXPECT_TRUE(line_of(seen, "steady.gpu_busy >= 1%").kept);
}

TEST(budget, counts_per_step_are_those_of_a_process) {
    scene x;
    reads(x, 60);
    x.another_process(43);
    reads(x, 60);
    auto const seen = judge_scene(x);
    auto const kept = line_of(seen, "R22.per_step <= 1"), broken = line_of(seen, "R22.per_step <= 0.9");
    EXPECT_TRUE(kept.kept) << kept.text;
    EXPECT_FALSE(broken.kept || broken.unknown) << broken.text;
    EXPECT_TRUE(line_of(seen, "R22.count <= 120").kept);
    EXPECT_FALSE(line_of(seen, "R22.count <= 119").kept);
}

TEST(budget, lines_of_one_rule_cost_no_more_than_the_time) {
    scene x;
    copy_options const pageable{.takes = 10, .host = memory_kind::pageable, .call_takes = 1000};
    x.repeat(40, [&](scene& y, int) {
        for (auto const* const line : {"a.py:1", "a.py:2"}) {
            y.on(line).copy(direction::to_device, 1 << 20, pageable);
            y.p().calls.back().start -= scene::ns(line[5] == '2' ? 1000 : 0);  // two threads copy at once
            y.p().calls.back().thread = static_cast<std::uint32_t>(line[5]);
        }
        y.on("a.py:3").launch("k");
    });
    auto const seen = judge_scene(x);
    EXPECT_TRUE(line_of(seen, "R30.cost <= 100%").kept) << line_of(seen, "R30.cost <= 100%").text << seen.rules();
    EXPECT_FALSE(line_of(seen, "R30.cost <= 90%").kept);
}

TEST(budget, a_process_without_steps_leaves_no_answer_unless_it_did_next_to_nothing) {
    for (int const kernels : {2, 60}) {
        scene x;
        reads(x, 60);
        x.another_process(43).repeat(kernels, [](scene& y, int i) { y.launch(fmt::format("k{}", i), {.takes = 1}); });
        auto const seen = judge_scene(x);
        for (auto const* const text : {"steady.gpu_busy >= 1%", "R22.per_step <= 2", "step.ms <= 1000"})
            EXPECT_EQ(line_of(seen, text).unknown, kernels == 60) << line_of(seen, text).text;
        EXPECT_FALSE(line_of(seen, "R22.per_step <= 0.5").unknown) << "what is known breaks it";
    }
}

TEST(budget, a_rule_that_had_nothing_to_look_at_keeps_nothing) {
    scene once, often;
    once.launch("a").launch("b");
    often.repeat(40, [](scene& y, int) { plain_step(y); });
    auto const little = judge_scene(once), enough = judge_scene(often);
    for (auto const* const text : {"R16.count <= 0", "R31.count <= 0", "R41.cost <= 0", "R58.count <= 0"}) {
        auto const line = line_of(little, text);
        EXPECT_TRUE(line.unknown && !line.kept) << line.text;
        EXPECT_NE(line.text.find("no steps were found, so R"), std::string::npos) << line.text;
        EXPECT_FALSE(line_of(enough, text).unknown) << text;
    }
    EXPECT_TRUE(line_of(little, "R22.count <= 0").kept) << "that one needs no steps";
}

TEST(budget, without_a_companion_the_share_of_processes_is_not_known) {
    for (bool const is_hooked : {true, false}) {
        scene x;
        reads(x, 40);
        if (!is_hooked) x.all().about = R"({"command":["ctest"],"hook":"none"})";
        auto const line = line_of(judge_scene(x), "health.gpu_share >= 95%");
        EXPECT_EQ(line.kept, is_hooked) << line.text;
        EXPECT_EQ(line.unknown, !is_hooked) << line.text;
    }
}

TEST(budget, an_unknown_name_is_answered_with_the_nearest) {
    for (auto const* bad :
         {"R22.per_stp <= 1", "stedy.gpu_busy >= 60%", "R22.per_step <= many", "R22.per_step = 1", "nonsense",
          "severity >= low", "allow R99 at a because b", "severity <= awful", "cold.ms <= nan",
          // A share above all of it is always kept, or never; so is a share of what is none, and what takes two runs.
          "R22.cost <= 5", "steady.gpu_busy >= 60", "health.gpu_share >= 95", "R22.count <= 50%", "wall.s <= 5%",
          "R17.count <= 0", "allow R17 at a because b", "allow R22 at  because b", "allow R22 at because b"}) {
        auto const parsed = parse_budget(bad);
        ASSERT_FALSE(parsed) << bad;
        EXPECT_EQ(parsed.error().code(), errc::invalid_argument);
        EXPECT_NE(parsed.error().message().find("line 1"), std::string::npos);
    }
    EXPECT_NE(parse_budget("R22.per_stp <= 1").error().message().find("'R22.per_step'"), std::string::npos);
}

TEST(budget, what_cannot_be_measured_is_no_answer) {
    scene x;
    x.launch("k");
    auto const seen = judge_scene(x);
    auto const lines = check(parse_budget("R22.per_step <= 1").value(), input(seen));
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_TRUE(lines[0].unknown);
    for (auto const* const line : {"steady.gpu_busy >= 0%", "steady.ms <= 1000", "step.ms <= 1000"})
        EXPECT_TRUE(check(parse_budget(line).value(), input(seen)).front().unknown) << line;
}

TEST(diff, a_new_finding_breaks_and_a_lost_one_does_not) {
    scene good, bad;
    good.all().about = bad.all().about = R"({"command":["python","train.py"],"label":"join","wall_s":2.0})";
    good.repeat(60, [](scene& y, int) {
        y.on("train.py:1").launch("k", {.takes = 90}).on("train.py:2").launch("l").passes(130);
    });
    bad.repeat(60, [](scene& y, int) {
        y.on("train.py:1")
            .launch("k", {.takes = 90})
            .on("train.py:2")
            .launch("l")
            .on("train.py:3")
            .read(4096)
            .on("train.py:4")
            .launch("m")
            .passes(60);
    });
    auto const a = judge_scene(good), b = judge_scene(bad);
    auto const worse = compare(input(a), input(b), strictness::same_only).value();
    EXPECT_TRUE(worse.broken);
    EXPECT_FALSE(compare(input(a), input(a), strictness::same_only).value().broken);
    scene other;
    reads(other, 30);
    other.all().about = R"({"command":["python","other.py"]})";
    auto const c = judge_scene(other);
    EXPECT_EQ(compare(input(a), input(c), strictness::same_only).error().code(), errc::invalid_argument);
    EXPECT_TRUE(compare(input(a), input(c), strictness::any));
}

TEST(diff, a_run_that_left_the_gpu_is_broken_and_one_that_came_to_it_is_of_another_device) {
    scene gpu, cpu;
    reads(gpu, 40);
    cpu.all().about = gpu.all().about;
    auto const a = judge_scene(gpu), b = judge_scene(cpu);
    for (auto const how : {strictness::same_only, strictness::any}) {
        auto const left = compare(input(a), input(b), how);
        ASSERT_TRUE(left);
        EXPECT_TRUE(left->broken);
        EXPECT_NE(left->lines.front().find("now nothing runs on a GPU"), std::string::npos) << left->lines.front();
    }
    recording nothing;
    nothing.about = gpu.all().about;
    judged c{.m = model_of(nothing), .r = {}};
    c.r = audit(c.m);
    auto const refused = compare(input(c), input(a), strictness::same_only);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message().find("another device: no device and NVIDIA H200"), std::string::npos)
        << refused.error().message();
    EXPECT_TRUE(compare(input(c), input(a), strictness::any));
}

TEST(sign_off, calls_most_of_it_what_is_more_than_half) {
    for (auto const& [idle, said] :
         {std::pair{1200.0, "the largest part of it before a.py:"}, {9000.0, "most of it before a.py:2"}}) {
        scene x;
        x.repeat(100, [idle = idle](scene& y, int) {
            y.on("a.py:1").launch("k", {.takes = 2000}).passes(idle + 2000);
            y.on("a.py:2")
                .launch("l", {.takes = 500})
                .passes(1700)
                .on("a.py:3")
                .launch("m", {.takes = 500})
                .passes(1700);
        });
        auto const seen = judge_scene(x);
        EXPECT_NE(sign_off_of(input(seen)).forced_by.find(said), std::string::npos)
            << sign_off_of(input(seen)).forced_by;
    }
}

TEST(words, of_sizes) {
    EXPECT_EQ(size_text(1), "1 byte");
    EXPECT_EQ(size_text(1023), "1023 bytes");
    EXPECT_EQ(size_text(1536), "1.5 KiB");
    EXPECT_EQ(size_text(4 << 20), "4 MiB");
    EXPECT_EQ(size_text(std::uint64_t{5} << 40), "5120 GiB");
}

TEST(diff, looks_at_every_process) {
    scene one, two, slower;
    for (auto* x : {&one, &two, &slower}) {
        x->repeat(100, [](scene& y, int) { plain_step(y); });
        x->another_process(43).repeat(60, [&](scene& y, int) {
            y.on("b.py:1").launch("other").on("b.py:2").launch("add").passes(x == &slower ? 300 : 100);
            if (x == &two) y.read(4096);
        });
    }
    auto const a = judge_scene(one), b = judge_scene(two), c = judge_scene(slower);
    auto const has = [](difference const& d, std::string_view text) {
        return std::ranges::any_of(d.lines, [&](std::string const& l) { return l.starts_with(text); });
    };
    auto const reads_more = compare(input(a), input(b), strictness::any).value();
    EXPECT_TRUE(has(reads_more, "WORSE  read"));
    auto const takes_longer = compare(input(a), input(c), strictness::any).value();
    EXPECT_TRUE(has(takes_longer, "WORSE  step"));
    scene alone;
    alone.repeat(100, [](scene& y, int) { plain_step(y); });
    EXPECT_TRUE(
        has(compare(input(judge_scene(alone)), input(a), strictness::any).value(), "       new kernel    other"));
}

TEST(diff, a_finding_is_no_new_one_because_another_file_of_that_name_was_seen) {
    scene before, after;
    for (auto* x : {&before, &after})
        x->repeat(60, [&](scene& y, int) {
            y.on("main.py:1").launch("k").on("a/utils.py:2").read(4).passes(30);
            if (x == &after) y.on("b/utils.py:9").launch("k");
        });
    auto const a = judge_scene(before), b = judge_scene(after);
    ASSERT_EQ(a.found("R22")->where, "utils.py:2") << a.rules();
    ASSERT_EQ(b.found("R22")->where, "a/utils.py:2") << b.rules();
    for (auto const& f : compare(input(a), input(b), strictness::any).value().new_findings) EXPECT_NE(f.rule, "R22");
    for (auto const& f : compare(input(b), input(a), strictness::any).value().new_findings) EXPECT_NE(f.rule, "R22");
}

// A loop that reads a value at a line of step(), so that the GPU idles for so long after it.
void reads_at(scene& x, std::string_view line, double idle) {
    x.repeat(60,
             [&](scene& y, int) { y.on("train.py:1").launch("k", {.takes = 20000}).on(line).read(4).passes(idle); });
}

TEST(diff, a_line_that_moved_within_its_function_is_no_new_finding) {
    scene before, after, more;
    reads_at(before, "train.py:12", 9000);
    reads_at(after, "train.py:13", 9000);
    more.repeat(60, [](scene& y, int) {
        y.on("train.py:1").launch("k", {.takes = 20000}).on("train.py:13").read(4).passes(9000);
        y.on("train.py:1").launch("k", {.takes = 20000}).on("train.py:15").read(4).passes(9000);
    });
    auto const a = judge_scene(before), b = judge_scene(after), c = judge_scene(more);
    ASSERT_GE(a.found("R22")->level, severity::medium) << a.rules();
    auto const moved = compare(input(a), input(b), strictness::any).value();
    EXPECT_FALSE(moved.broken);
    EXPECT_TRUE(moved.new_findings.empty() && moved.gone_findings.empty());
    EXPECT_TRUE(std::ranges::any_of(
        moved.lines, [](std::string const& l) { return l.ends_with("R22 moved from train.py:12 to train.py:13"); }));
    auto const one_more = compare(input(a), input(c), strictness::any).value();
    EXPECT_TRUE(one_more.broken);
    EXPECT_EQ(std::ranges::count(one_more.new_findings, "R22", &finding::rule), 1) << c.rules();
}

// Two lines of step() that read, each so that the GPU idles for so long after it.
struct reading {
    std::string_view line;
    double idle;
};
judged two_reads(scene& x, reading const& one, reading const& other, std::string_view file = {}) {
    x.repeat(60, [&](scene& y, int) {
        if (!file.empty()) y.on(file).launch("m");
        for (auto const& [line, idle] : {one, other})
            y.on("train.py:1").launch("k", {.takes = 20000}).on(line).read(4).passes(idle);
    });
    return judge_scene(x);
}

TEST(diff, lines_that_moved_to_where_another_was_are_no_new_findings) {
    scene of_a, of_down, of_up, of_changed, of_both;
    auto const a = two_reads(of_a, {"train.py:12", 5}, {"train.py:15", 9000});
    ASSERT_EQ(std::ranges::count(a.r.findings, "R22", &finding::rule), 2) << a.rules();
    auto const down = two_reads(of_down, {"train.py:15", 5}, {"train.py:18", 9000});
    auto const up = two_reads(of_up, {"train.py:9", 5}, {"train.py:12", 9000});
    auto const changed_places = two_reads(of_changed, {"train.py:12", 9000}, {"train.py:15", 5});
    for (auto const* const b : {&down, &up, &changed_places}) {
        auto const found = compare(input(a), input(*b), strictness::any).value();
        EXPECT_FALSE(found.broken) << fmt::format("{}", fmt::join(found.lines, "\n"));
        EXPECT_TRUE(found.gone_findings.empty());
    }
    auto const both_high = two_reads(of_both, {"train.py:12", 9000}, {"train.py:15", 9000});
    auto const one_more = compare(input(a), input(both_high), strictness::any).value();
    EXPECT_EQ(std::ranges::count(one_more.new_findings, "R22", &finding::rule), 1) << both_high.rules();
}

TEST(diff, of_lines_that_moved_the_first_is_the_first) {
    scene of_a, of_b;
    auto const a = two_reads(of_a, {"train.py:12", 9000}, {"train.py:15", 8000});
    auto const b = two_reads(of_b, {"train.py:13", 8000}, {"train.py:16", 9000});
    auto const found = compare(input(a), input(b), strictness::any).value();
    EXPECT_FALSE(found.broken);
    for (auto const* const what :
         {"R22 moved from train.py:12 to train.py:13", "R22 moved from train.py:15 to train.py:16"})
        EXPECT_TRUE(std::ranges::any_of(found.lines, [&](std::string const& l) { return l.ends_with(what); }))
            << what << "\n"
            << fmt::format("{}", fmt::join(found.lines, "\n"));
}

TEST(diff, a_line_of_another_file_of_that_name_has_not_moved) {
    scene of_a, of_b;
    auto const a = two_reads(of_a, {"a/utils.py:2", 9000}, {"train.py:15", 9000}, "b/utils.py:9");
    auto const b = two_reads(of_b, {"b/utils.py:7", 9000}, {"train.py:15", 9000}, "a/utils.py:1");
    ASSERT_TRUE(a.rules().find("a/utils.py:2") != std::string::npos &&
                b.rules().find("b/utils.py:7") != std::string::npos)
        << a.rules() << b.rules();
    auto const found = compare(input(a), input(b), strictness::any).value();
    EXPECT_EQ(std::ranges::count(found.new_findings, "R22", &finding::rule), 1);
    EXPECT_EQ(std::ranges::count(found.gone_findings, "R22", &finding::rule), 1);
}

TEST(diff, a_line_that_moved_has_moved_in_every_process) {
    std::vector<judged> all;
    std::deque<scene> scenes;
    for (auto const& [processes, line] : {std::pair{2u, "train.py:12"}, {3u, "train.py:13"}}) {
        auto& x = scenes.emplace_back();
        reads_at(x, line, 9000);
        for (auto pid = 43u; pid < 42u + processes; ++pid) reads_at(x.another_process(pid), line, 9000);
        all.push_back(judge_scene(x));
    }
    auto const found = compare(input(all[0]), input(all[1]), strictness::any).value();
    EXPECT_TRUE(found.new_findings.empty() && found.gone_findings.empty())
        << fmt::format("{}", fmt::join(found.lines, "\n"));
    EXPECT_EQ(
        std::ranges::count_if(found.lines, [](std::string const& l) { return l.find(" R22 moved from ") != l.npos; }),
        1);
}

TEST(diff, what_hardly_mattered_and_is_high_now_is_new) {
    scene before, after;
    reads_at(before, "train.py:12", 5);
    reads_at(after, "train.py:12", 9000);
    auto const a = judge_scene(before), b = judge_scene(after);
    ASSERT_EQ(a.found("R22")->level, severity::low) << a.rules();
    ASSERT_GE(b.found("R22")->level, severity::high) << b.rules();
    auto const found = compare(input(a), input(b), strictness::any).value();
    EXPECT_EQ(std::ranges::count(found.new_findings, "R22", &finding::rule), 1);
    EXPECT_TRUE(compare(input(b), input(a), strictness::any).value().new_findings.empty());
}

TEST(diff, tells_what_is_gone_and_breaks_where_nothing_was_read_or_less_memory_held) {
    scene plain, reading, large;
    for (auto* x : {&plain, &reading, &large}) {
        x->allocate();
        x->p().memory.back().address = 1;
        if (x == &large) x->p().memory.back().bytes = 2u << 20;
        x->repeat(40, [&](scene& y, int) {
            y.on("a.py:1").launch("k").on("a.py:2");
            if (x == &reading) y.read(4);
            y.launch("l").passes(94);
        });
    }
    auto const a = judge_scene(plain), b = judge_scene(reading), c = judge_scene(large);
    auto const lines = [](result<difference> const& d) {
        std::string out;
        for (auto const& l : d.value().lines) out += l + "\n";
        return out;
    };
    auto const mended = compare(input(b), input(a), strictness::any);
    EXPECT_FALSE(mended.value().broken) << lines(mended);
    EXPECT_NE(lines(mended).find("gone   MEDIUM R60"), std::string::npos) << lines(mended);
    EXPECT_NE(lines(compare(input(a), input(b), strictness::any)).find("WORSE  read"), std::string::npos);
    auto const grown = compare(input(a), input(c), strictness::any);
    EXPECT_TRUE(grown.value().broken) << lines(grown);
    EXPECT_NE(lines(grown).find("WORSE  memory"), std::string::npos) << lines(grown);
}

TEST(diff, kernels_of_one_name_are_told_once_and_numbers_are_numbers) {
    scene one, two;
    reads(one, 40);
    reads(two, 40);
    two.launch("_Z3mulIiEvT_").launch("_Z3mulIfEvT_");
    auto const a = judge_scene(one), b = judge_scene(two);
    auto const found = compare(input(a), input(b), strictness::any).value();
    EXPECT_EQ(found.new_kernels, std::vector<std::string>{"mul"});
    auto const data = to_json(found);
    EXPECT_EQ(data["measures"][0]["what"], "wall");
    EXPECT_DOUBLE_EQ(data["measures"][0]["before"].get<double>(), 2.0);
    EXPECT_EQ(data["kernels"]["new"], nlohmann::ordered_json::array({"mul"}));
}

TEST(diff, a_run_that_failed_is_broken_however_short_it_was) {
    scene whole, failed;
    for (auto* x : {&whole, &failed}) {
        reads(*x, 40);
        x->all().about = fmt::format(R"({{"wall_s":{},"exit_status":{}}})", x == &whole ? 2 : 1, x == &whole ? 0 : 139);
    }
    auto const a = judge_scene(whole), b = judge_scene(failed);
    auto const found = compare(input(a), input(b), strictness::any).value();
    EXPECT_TRUE(found.broken);
    EXPECT_NE(found.lines.front().find("ended with 139"), std::string::npos) << found.lines.front();
    EXPECT_EQ(to_json(found)["exit_status"]["after"], 139);
    EXPECT_FALSE(compare(input(b), input(b), strictness::any).value().broken) << "as it did before";
    EXPECT_FALSE(compare(input(b), input(a), strictness::any).value().lines.front().starts_with("WORSE  the program"));
}

TEST(diff, compiling_again_is_r17) {
    scene first, second, third, half;
    for (auto* x : {&first, &second, &third, &half}) {
        if (x != &third) x->compile(x == &half ? 149'000 : 300'000);
        x->repeat(40, [](scene& y, int) { y.on("a.py:1").launch("k").on("a.py:2").launch("l").passes(94); });
    }
    auto const a = judge_scene(first), b = judge_scene(second), c = judge_scene(third), d = judge_scene(half);
    auto const has = [](difference const& d) {
        return std::ranges::any_of(d.lines, [](std::string const& l) { return l.find("R17") != l.npos; });
    };
    EXPECT_TRUE(has(compare(input(a), input(b), strictness::any).value()));
    EXPECT_FALSE(has(compare(input(a), input(c), strictness::any).value()));
    EXPECT_FALSE(has(compare(input(a), input(d), strictness::any).value())) << "less than half of it";
}

TEST(report, the_trace_of_a_long_run_has_all_of_its_beginning) {
    scene x;
    x.repeat(120'000, [](scene& y, int) { y.launch("mul", {.takes = 3}).passes(20); });
    auto const trace = to_perfetto(input(judge_scene(x)));
    for (auto const* const part : {"mul", "cudaLaunchKernel", "later events are not shown"})
        EXPECT_NE(trace.find(part), trace.npos) << part;
    scene y;
    reads(y, 40);
    EXPECT_EQ(to_perfetto(input(judge_scene(y))).find("cut short"), std::string::npos);
}

TEST(report, a_name_cannot_speak_to_the_terminal) {
    EXPECT_EQ(plain_text("a\x1b[31mb\nc\x7f\xc2\x9b"
                         "d"),
              "a?[31mb?c??d");
    EXPECT_EQ(plain_text("tr\xc3\xa4in.py"), "tr\xc3\xa4in.py");
    scene x;
    reads(x, 40);
    x.all().about = "{\"command\":[\"python\",\"\\u001b]0;owned\\u0007.py\"],\"scale\":\"rows=1e6\"}";
    auto const seen = judge_scene(x);
    EXPECT_EQ(to_text(input(seen)).find('\x1b'), std::string::npos);
    EXPECT_EQ(to_json(input(seen))["scale"], "rows=1e6");
    EXPECT_NE(to_html(input(seen)).find("rows=1e6"), std::string::npos);
}

TEST(report, fits_a_terminal_and_has_no_open_ends) {
    scene x;
    reads(x, 3000);
    x.all().about = R"({"command":["python","<script>alert(1)</script>.py"],"wall_s":2.0})";
    auto const seen = judge_scene(x);
    auto const text = to_text(input(seen));
    EXPECT_LE(std::ranges::count(text, '\n'), 45);
    EXPECT_NE(text.find("R22"), text.npos) << text;
    auto const page = to_html(input(seen));
    EXPECT_EQ(page.find("<script"), page.npos);
    EXPECT_NE(page.find("default-src 'none'"), page.npos);
    for (auto const* part : {"http://", "https://", " src=", "@import", "url("})
        EXPECT_EQ(page.find(part), page.npos) << part;
    for (auto const* tag : {"article", "details", "table", "svg", "main", "ul"}) {
        auto const count = [&](std::string const& what) {
            std::size_t n = 0;
            for (auto at = page.find(what); at != page.npos; at = page.find(what, at + 1)) ++n;
            return n;
        };
        EXPECT_EQ(count(fmt::format("<{}>", tag)) + count(fmt::format("<{} ", tag)), count(fmt::format("</{}>", tag)))
            << tag;
    }
    auto const json = to_json(input(seen));
    EXPECT_EQ(json["findings"][0]["rule"], "R22");
    EXPECT_EQ(json["processes"][0]["kernels"], 3000);
    auto const trace = to_perfetto(input(seen));
    EXPECT_EQ(trace.front(), '\x0a') << "a packet of a trace";
}

TEST(report, of_a_short_run_says_why_nothing_is_worse_than_medium) {
    scene x, longer;
    reads(x, 40);
    reads(longer, 9000);
    auto const little = judge_scene(x), enough = judge_scene(longer);
    EXPECT_NE(to_text(input(little)).find("a short run"), std::string::npos) << to_text(input(little));
    EXPECT_NE(to_html(input(little)).find("Audit a longer run"), std::string::npos);
    EXPECT_EQ(to_text(input(enough)).find("a short run"), std::string::npos) << to_text(input(enough));
    EXPECT_EQ(to_html(input(enough)).find("Audit a longer run"), std::string::npos);
}

// Who ran the program reads the source, as long as it is what ran; whoever makes a page of the recording opens nothing.
TEST(report, shows_source_only_as_it_was_when_it_ran) {
    auto const place = base::temporary_directory::make("kiln-audit-test").value();
    auto const file = place.path() / "train.py";
    base::write_output(file, base::as_bytes(std::string_view{"first\nloss.item() # second\nthird\n"})).value();
    enum class sources { kept, named };
    auto const page_of = [&](char const* date, sources of) {
        scene x;
        reads(x, 40);
        x.all().about = fmt::format(R"({{"date":"{}"}})", date);
        for (auto& s : x.p().sites) s.stack = x.text(fmt::format("{}\t2\tstep\n", file.native()));
        if (of == sources::kept) x.all().sources = read_sources(x.all());
        auto const seen = judge_scene(x);
        return to_html(input(seen));
    };
    constexpr auto shown = "loss.item() # second";
    EXPECT_NE(page_of("2999-01-01T00:00:00Z", sources::kept).find(shown), std::string::npos);
    EXPECT_EQ(page_of("2999-01-01T00:00:00Z", sources::named).find(shown), std::string::npos)
        << "any file of the reader's";
    EXPECT_EQ(page_of("2001-01-01T00:00:00Z", sources::kept).find(shown), std::string::npos) << "it has changed since";
    EXPECT_EQ(page_of("", sources::kept).find(shown), std::string::npos);
}

TEST(report, calls_idle_time_what_it_is) {
    scene x;
    x.launch("a").compile(1000).passes(3000).launch("b").launch("c");
    auto const page = to_html(input(judge_scene(x)));
    EXPECT_NE(page.find("before its first operation <span class=\"dim\">3.0 ms"), page.npos) << page;
    EXPECT_EQ(page.find("gaps below 5 µs <span"), page.npos) << "there are none";
}

TEST(report, names_of_a_recording_are_no_markup) {
    scene x;
    reads(x, 40);
    x.all().about = R"({"environment":{"<script>alert(1)</script>":"<b>"},"label":"<i>"})";
    auto const page = to_html(input(judge_scene(x)));
    EXPECT_EQ(page.find("<script"), page.npos);
    EXPECT_NE(page.find("&lt;script&gt;alert(1)&lt;/script&gt;<td"), page.npos) << page;
}

TEST(report, verdict_and_sign_off_speak_of_one_thing) {
    scene x;
    reads(x, 40);
    auto seen = judge_scene(x);
    seen.r.findings.resize(2);
    seen.r.findings[0].rule = "R02";
    seen.r.findings[0].where = "python3 train.py";
    seen.r.findings[0].place = 0;
    seen.r.findings[1].rule = "R16";
    seen.r.findings[1].where = "train.py:22";
    seen.r.findings[1].place = 1;
    for (auto& f : seen.r.findings) f.level = severity::blocking;
    EXPECT_NE(verdict(input(seen)).find("compiling in the loop at train.py:22"), std::string::npos);
    auto const page = to_html(input(seen));
    auto const sign_off = page.substr(page.find("Sign-off"));
    EXPECT_NE(sign_off.find("compiling in the loop at train.py:22"), std::string::npos) << sign_off;
    EXPECT_NE(sign_off.find(find_rule("R16")->remedy), std::string::npos) << sign_off;
}

TEST(report, says_why_it_was_not_recorded_and_nothing_else) {
    scene x;
    x.all().about = R"({"environment":{"CUDA_LAUNCH_BLOCKING":"1"}})";
    x.p().notes.push_back({.what = 5, .text = x.text("50: not supported"), .time = 1});  // a kind of record
    x.p().notes.push_back({.what = 1, .text = x.text("no libcupti was found"), .time = 2});
    auto const seen = judge_scene(x);
    EXPECT_EQ(seen.r.why_not, "it was not recorded (no libcupti was found)");
    EXPECT_EQ(verdict(input(seen)), "it cannot be judged: " + seen.r.why_not);
}

TEST(report, of_what_was_not_recorded_nothing_is_known) {
    recording all;
    all.about = R"({"not_recorded":"this build has no recorder"})";
    judged seen{.m = model_of(all), .r = {}};
    seen.r = audit(seen.m);
    EXPECT_EQ(shape_of(input(seen)), cpu_shape::not_known);
    EXPECT_TRUE(to_json(input(seen))["cpu_shaped"].is_null());
    EXPECT_EQ(to_text(input(seen)).find("CPU code"), std::string::npos) << to_text(input(seen));
    EXPECT_EQ(to_html(input(seen)).find("it is CPU code"), std::string::npos);
    model const nothing;
    auto const r = audit(nothing);
    EXPECT_EQ(shape_of({.m = nothing, .result = r, .recording = "", .files = {}}), cpu_shape::cpu_code);
}

TEST(report, a_gap_that_the_host_leaves_is_what_forces_it_and_not_the_first_finding) {
    scene x;
    x.on("a.py:9").compile(2'000'000).launch("made");
    x.repeat(100, [](scene& y, int) { y.on("a.py:1").launch("k", {.takes = 5}).on("a.py:2").launch("l").passes(500); });
    auto const seen = judge_scene(x);
    ASSERT_EQ(seen.r.findings.front().rule, "R10") << seen.rules();
    auto const all = sign_off_of(input(seen));
    EXPECT_EQ(all.shape, cpu_shape::yes);
    EXPECT_TRUE(all.forced_by.starts_with("host ") && all.forced_by.ends_with("before a.py:1")) << all.forced_by;
    EXPECT_EQ(all.change.find("cache"), std::string::npos) << all.change;
    ASSERT_FALSE(all.first.empty());
    EXPECT_EQ(all.first.front()->rule, "R10") << "in the order of the findings";
    EXPECT_NE(to_text(input(seen)).find(all.forced_by), std::string::npos) << to_text(input(seen));
}

TEST(report, where_nothing_makes_it_cpu_code_nothing_is_said_to) {
    scene x;
    x.on("a.py:9").compile(2'000'000).launch("made");
    x.repeat(100, [](scene& y, int) { plain_step(y); });
    auto const seen = judge_scene(x);
    auto const all = sign_off_of(input(seen));
    EXPECT_EQ(all.shape, cpu_shape::no) << seen.rules();
    EXPECT_EQ(all.forced_by, "");
    EXPECT_TRUE(all.change.starts_with("compiling by NVRTC")) << all.change;
}

TEST(report, has_a_bar_for_each_process_that_is_at_work) {
    scene x, alone;
    two_processes(x);
    reads(alone, 40);
    auto const page = to_html(input(judge_scene(x))), other = to_html(input(judge_scene(alone)));
    for (auto const* const part : {"The steady state of process 42: ", "The steady state of process 43: "})
        EXPECT_NE(page.find(part), page.npos) << part;
    EXPECT_NE(other.find("The steady state: "), other.npos);
}

TEST(report, of_much_that_was_found_ends_with_its_sign_off_and_files) {
    scene x;
    two_processes(x);
    auto seen = judge_scene(x);
    finding f;
    f.rule = "R33";
    f.level = severity::medium;
    seen.r.findings.assign(200, f);
    for (std::size_t i = 0; i < 200; ++i) seen.r.findings[i].where = fmt::format("a.py:{}", i + 1000);
    seen.r.exempt.assign(9, {"R22", "a.py:1", "every n-th step", 9});
    seen.r.good.assign(2, "the queue stays full");
    for (std::uint32_t pid = 1; pid < 9; ++pid) seen.m.compiles.emplace_back().pid = pid;
    auto in = input(seen);
    in.files = {"page.html", "trace", "recording"};
    auto const text = to_text(in);
    EXPECT_TRUE(text.ends_with("             page.html\n             trace\n             recording\n")) << text;
    EXPECT_NE(text.find("sign-off "), text.npos) << text;
    EXPECT_EQ(std::ranges::count(text, '\n'), 45);
    auto const page = to_html(in);
    EXPECT_EQ(page.find("a.py:1060"), page.npos);
    EXPECT_NE(page.find("140 more are not shown here"), page.npos) << "what is left out is said";
}

TEST(report, shows_no_source_of_another_process_with_the_same_number) {
    scene x;
    reads(x, 40);
    x.another_process(42).on("other.py:1").launch("k").on("other.py:77").launch("l");
    auto const seen = judge_scene(x);
    auto const read = seen.found("R22");
    ASSERT_TRUE(read != nullptr && seen.m.processes.at(1).places.size() > read->place) << seen.rules();
    auto const& other = seen.m.processes[1].places[read->place];
    x.all().sources[{other.file, other.line}] = {.first = other.line, .lines = {"nothing to do with it"}};
    EXPECT_EQ(to_html(input(seen)).find("nothing to do with it"), std::string::npos);
}

TEST(report, a_kernel_has_all_its_launch_shapes) {
    scene x;
    x.repeat(20, [](scene& y, int) {
        y.launch("spin", {.takes = 100, .blocks = 8, .threads = 100}).launch("spin", {.blocks = 1}).passes(200);
    });
    auto const page = to_html(input(judge_scene(x)));
    EXPECT_NE(page.find("8 × 100 and 1 more"), page.npos) << page;
}

TEST(report, allocations_have_what_was_held_at_a_time_and_at_the_end) {
    scene x;
    x.on("a.py:3").launch("k");
    for (std::uint64_t i = 0; i < 4; ++i) {  // each is freed before the next but the last
        x.allocate();
        x.p().memory.back().address = i + 1;
        if (i == 3) break;
        auto freed = x.p().memory.back();
        freed.operation = 2;
        x.p().memory.push_back(freed);
    }
    auto const page = to_html(input(judge_scene(x)));
    EXPECT_NE(page.find("<td>device<td>a.py:3<td class=n>4<td class=n>4 MiB<td class=n>1 MiB<td class=n>1 MiB"),
              page.npos)
        << page;
}

TEST(report, of_a_run_without_a_gpu_says_what_to_look_at_and_praises_nothing) {
    model const m;
    auto const r = audit(m);
    auto const page = to_html({.m = m, .result = r, .recording = "", .files = {}});
    EXPECT_EQ(page.find("none is needed"), page.npos);
    EXPECT_EQ(page.find("rules found nothing"), page.npos);
    EXPECT_EQ(page.find("The evidence can be judged"), page.npos);
    EXPECT_NE(page.find("Check that the program was given a device"), page.npos);
}

TEST(report, commands_are_cut_between_words) {
    EXPECT_EQ(short_command("/opt/torch/.venv/bin/python3 /home/ann/kiln/tests/audit/with_cupy.py in_loop 100"),
              "python3 with_cupy.py in_loop 100");
    EXPECT_EQ(short_command("a bcd efg", 6), "a bcd");
    EXPECT_EQ(short_command(""), "");
}

TEST(report, of_a_run_without_a_steady_state_has_no_bar_of_it) {
    scene x;
    x.launch("a").launch("b");
    auto seen = judge_scene(x);
    seen.m.processes.front().steady_busy = 0;
    EXPECT_NE(to_html(input(seen)).find("ended before anything was done over and over"), std::string::npos);
}

TEST(report, of_nothing_is_a_report) {
    model const m;
    auto const r = audit(m);
    report_input const in{.m = m, .result = r, .recording = "", .files = {}};
    EXPECT_NE(to_text(in).find("nothing ran on a GPU"), std::string::npos);
    EXPECT_NE(to_html(in).find("Nothing ran on a GPU"), std::string::npos);
    EXPECT_TRUE(to_json(in)["findings"].is_array());
}

}  // namespace
}  // namespace kiln::audit::testing
