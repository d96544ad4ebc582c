// SPDX-License-Identifier: Apache-2.0
// Steps, windows, the ledger, and in which order findings are told.
#include "audit/call_class.hpp"
#include "audit/report.hpp"
#include "unit/audit/scene.hpp"

#include <gtest/gtest.h>

#include <ctime>
#include <functional>
#include <random>

namespace kiln::audit::testing {
namespace {

using making_of = std::function<void(scene&)>;

TEST(audit_checklist, has_an_answer_in_every_box) {
    EXPECT_EQ(checklist().size(), 78u);
    for (auto const& b : checklist()) {
        EXPECT_FALSE(b.rules.empty() && b.evidence.empty() && b.question.empty()) << b.section << " " << b.number;
        for (std::size_t at = 0; at < b.rules.size(); at += 4)
            EXPECT_NE(find_rule(b.rules.substr(at, 3)), nullptr) << b.rules;
    }
}

TEST(audit_calls, that_come_with_every_launch_are_known) {
    for (auto const* const name :
         {"cudaLaunchKernel_v7000", "cuLaunchKernelEx", "cuKernelGetFunction", "cudaMemsetAsync_v3020"})
        EXPECT_TRUE(comes_with_launches(name)) << name;
    for (auto const* const name :
         {"cudaMemcpyAsync_v3020", "cudaStreamSynchronize_v3020", "cudaMalloc_v3020", "cuModuleLoadData"})
        EXPECT_FALSE(comes_with_launches(name)) << name;
}

TEST(audit_model, a_grid_may_have_more_blocks_than_a_number_holds) {
    scene x;
    x.launch("k", {.blocks = 65536});
    x.p().kernels.back().grid_y = 65536;
    EXPECT_EQ(judge_scene(x).m.processes.front().ops.front().blocks, 0xffff'ffffu);
}

TEST(audit_model, who_got_a_gpu_and_left_no_recording_cannot_be_judged) {
    for (std::uint32_t const status : {0u, 100u}) {
        scene x;
        format::compile_record c;
        c.what = static_cast<std::uint8_t>(format::compiler::driver_init);
        c.status = status;
        x.all().processes.front() = {};
        x.p().compiles.push_back(c);
        auto const seen = judge_scene(x);
        EXPECT_FALSE(seen.r.can_be_judged);
        EXPECT_EQ(seen.r.nothing_ran, status != 0);
    }
}

TEST(audit_model, where_nothing_ran_there_is_nothing_to_judge) {
    scene x, one;
    auto const seen = judge_scene(x), ran = judge_scene(one.launch("k"));
    EXPECT_FALSE(seen.r.can_be_judged);
    EXPECT_TRUE(seen.r.nothing_ran);
    EXPECT_TRUE(ran.r.can_be_judged);
    ASSERT_NE(seen.found("R01"), nullptr);
    EXPECT_EQ(seen.found("R01")->level, severity::info);
    scene expected;
    EXPECT_EQ(judge_scene(expected, {.expect_gpu = true}).found("R01")->level, severity::blocking);
}

TEST(audit_model, copies_without_a_kernel_are_nothing_to_judge) {
    scene x;
    x.repeat(40, [](scene& y, int) { y.copy(direction::to_device, 4096).passes(10); });
    auto const seen = judge_scene(x);
    EXPECT_FALSE(seen.r.can_be_judged);
    EXPECT_TRUE(seen.r.nothing_ran);
    EXPECT_EQ(seen.r.why_not, "no kernel ran on a GPU, so there is nothing to judge");
    EXPECT_NE(seen.found("R01"), nullptr) << seen.rules();
    report_input const in{.m = seen.m, .result = seen.r, .recording = "", .files = {}};
    EXPECT_EQ(verdict(in), "no kernel ran on a GPU, only copies and sets");
}

// Of a process that could write no more after a while: it dropped its rights, changed its root, or its disk was full.
TEST(audit_losses, are_told_and_nothing_is_judged) {
    auto const judged_without_end = [](making_of const& make) {
        scene x;
        make(x);
        judged out;
        out.m = model_of(x.all());
        out.r = audit(out.m);
        return out;
    };
    auto const reason = [](judged const& j) { return j.r.can_be_judged ? std::string{} : j.r.why_not; };
    auto const mute = judged_without_end([](scene&) {});
    EXPECT_NE(reason(mute).find("process 42 got a GPU, ended without a word and left nothing"), std::string::npos);
    EXPECT_FALSE(mute.r.nothing_ran);
    EXPECT_EQ(mute.found("R01"), nullptr) << "nobody knows";
    auto const ends_at = [](double us) {
        return [us](scene& x) {
            x.p().about.parent = 7;
            x.all().about = fmt::format(R"({{"runner":7,"ended_ns":{}}})", scene::ns(us));
            x.passes(20'000'000).launch("k");
        };
    };
    EXPECT_EQ(reason(judged_without_end(ends_at(21'000'000))), "") << "a second of twenty may be missing";
    EXPECT_NE(reason(judged_without_end(ends_at(29'000'000))).find("the last 9.0 s of process 42 are missing"),
              std::string::npos)
        << reason(judged_without_end(ends_at(29'000'000)));
    EXPECT_NE(reason(judged_without_end([](scene& x) { x.launch("k"); })).find("up to a second of its 0.0 s"),
              std::string::npos);
    auto const outlives = [](scene& x) {
        x.all().about = R"({"still_running":[42]})";
        x.launch("k");
    };
    EXPECT_NE(reason(judged_without_end(outlives)).find("still at work"), std::string::npos);
    scene ended;
    outlives(ended);
    EXPECT_EQ(reason(judge_scene(ended)), "") << "it ended later, and all of it is there";
    auto const has_its_number = [](std::uint64_t began_ns) {
        return [began_ns](scene& x) {
            x.p().about.started = 1'000'000'000;
            x.all().about = fmt::format(R"({{"still_running":[7,42],"still_running_began_ns":[1,{}]}})", began_ns);
            x.launch("k");
        };
    };
    EXPECT_NE(reason(judged_without_end(has_its_number(1'010'000'000))).find("still at work"), std::string::npos);
    EXPECT_EQ(reason(judged_without_end(has_its_number(2'000'000'000))).find("still at work"), std::string::npos)
        << "another got its number";
}

TEST(audit_model, nothing_is_certain_of_what_was_not_looked_at) {
    auto const of = [](std::string const& about, bool has_child) {
        scene x;
        x.all().about = about;
        if (has_child) x.child("/usr/bin/perl", 10).p().children.pop_back();  // nobody waited for it
        return judge_scene(x, {.expect_gpu = true});
    };
    auto const plain = of("{}", true), hookless = of(R"({"hook":"none"})", false),
               left = of(R"({"still_running":[1001]})", true), small = of(R"({"still_running":[1002]})", true);
    EXPECT_EQ(plain.found("R01")->sure, confidence::certain);
    EXPECT_EQ(small.found("R01")->sure, confidence::certain) << "that one is nobody who was seen";
    EXPECT_EQ(hookless.found("R01")->sure, confidence::likely);
    EXPECT_NE(hookless.found("R01")->what.find("--hook none"), std::string::npos);
    EXPECT_EQ(left.found("R01")->sure, confidence::likely);
    EXPECT_NE(left.found("R01")->what.find("perl (process 1001) outlived"), std::string::npos);
}

TEST(audit_model, what_is_cut_short_is_not_called_cpu_code) {
    for (int const how : {0, 1, 2, 3, 4}) {
        scene x;
        if (how == 4) x.p().missing_chunks = 1;
        if (how == 0) x.all().has_end = false;
        if (how == 1) x.all().spoilt_files = 1;
        if (how == 2) x.p().skipped_bytes = 1;
        if (how == 3) x.p().ends.push_back({.discarded = 1});
        auto const seen = judge_scene(x, {.expect_gpu = true});
        EXPECT_EQ(seen.found("R01"), nullptr) << how;
        EXPECT_NE(seen.found("R91"), nullptr) << how;
    }
}

TEST(audit_model, what_the_machine_lacks_is_the_first_remedy) {
    auto const remedy = [](std::string const& about) {
        scene x;
        x.all().processes.front() = {};
        x.all().about = about;
        return std::string{remedy_of(*judge_scene(x).found("R01"))};
    };
    EXPECT_TRUE(remedy("{}").starts_with("check that the program was given a device"));
    EXPECT_TRUE(remedy(R"({"missing":["libcuda.so.1"]})").starts_with("install the NVIDIA driver (libcuda.so.1"));
    EXPECT_TRUE(remedy(R"({"missing":["libcupti"]})").starts_with("install CUPTI (libcupti.so.13"));
    EXPECT_TRUE(remedy(R"({"missing":["libcupti","libcuda.so.1"]})").starts_with("install the NVIDIA driver"));
}

TEST(audit_losses, children_out_of_sight_are_named) {
    for (auto const* const name :
         {"/usr/bin/train", "/bin/sh", "/usr/bin/gcc", "/usr/bin/sleep", "/sbin/ldconfig.real"}) {
        scene x;
        x.launch("k").child(name, 10);
        x.p().children[0].event = 5;
        auto const seen = judge_scene(x);
        bool const may = std::string_view{name}.ends_with("train") || std::string_view{name}.ends_with("sh");
        EXPECT_EQ(seen.r.can_be_judged, !may) << name;
        if (may) {
            EXPECT_NE(seen.r.why_not.find(base_name(name) + " (process 1001) was not recorded"), std::string::npos)
                << seen.r.why_not;
        }
    }
}

// A number that comes again is another process.
TEST(audit_losses, what_is_out_of_sight_is_not_forgotten_for_another_with_its_number) {
    for (unsigned const how : {0u, 1u, 2u, 3u}) {
        bool const was_collected = (how & 1u) != 0, is_asked_for = (how & 2u) != 0;
        for (auto const* const name : {"/usr/bin/readlink", "/usr/bin/gcc", "/usr/bin/other"}) {
            scene x;
            x.launch("k");
            auto const tell = [&](std::uint32_t event, char const* program, std::uint64_t time) {
                x.p().children.push_back(
                    {.pid = 4001, .parent = 42, .name = x.text(program), .event = event, .time = time});
            };
            tell(1, "/usr/bin/env", 1000);
            tell(5, "/usr/bin/train", 2000);
            if (was_collected) tell(4, "", 3000);
            if (is_asked_for) tell(3, name, 3500);
            tell(1, name, 4000);
            tell(4, "", 5000);
            auto const seen = judge_scene(x);
            EXPECT_NE(seen.r.why_not.find("train (process 4001) was not recorded"), std::string::npos)
                << seen.r.why_not;
            EXPECT_EQ(seen.r.why_not.find("other"), std::string::npos) << seen.r.why_not;
            EXPECT_EQ(std::ranges::count(seen.m.children, 4001u, &child_process::pid), 2);
        }
    }
}

TEST(audit_model, a_process_that_becomes_another_program_is_one) {
    scene x;
    x.launch("k");
    auto const tell = [&](std::uint32_t pid, std::uint32_t parent, std::uint32_t event, char const* name,
                          std::uint64_t time) {
        x.p().children.push_back({.pid = pid, .parent = parent, .name = x.text(name), .event = event, .time = time});
    };
    tell(50, 42, 1, "/bin/sh", 1000);
    tell(50, 42, 1, "/usr/bin/one", 2000);
    tell(50, 1, 1, "/usr/bin/two", 3000);  // its parent is gone
    tell(60, 42, 1, "/bin/sh", 3500);
    tell(70, 42, 4, "", 4000);
    tell(70, 42, 3, "/bin/late", 5000);  // told by a thread that had no processor
    auto const seen = judge_scene(x);
    EXPECT_EQ(std::ranges::count(seen.m.children, 50u, &child_process::pid), 1);
    EXPECT_EQ(std::ranges::count(seen.m.children, 70u, &child_process::pid), 1);
    tell(50, 60, 1, "/usr/bin/three", 6000);
    EXPECT_EQ(std::ranges::count(judge_scene(x).m.children, 50u, &child_process::pid), 2) << "started by another";
}

TEST(audit_losses, names_are_one_short_line) {
    scene x;
    x.launch("k").child("/bin/a\nb\x1b" + std::string(3000, 'A'), 10);
    x.p().children[0].event = 5;
    auto const why = judge_scene(x).r.why_not;
    EXPECT_NE(why.find("a?b?AAA"), std::string::npos) << why;
    EXPECT_LT(why.size(), 300u);
}

TEST(audit_gaps, a_stream_waits_for_another_only_where_there_is_one) {
    for (std::uint32_t const other : {own_stream, 9u}) {
        scene x;
        x.repeat(40, [&](scene& y, int) {
            y.on("a.py:1").launch("k", {.takes = 50}).on("a.py:2").launch("l", {.on_stream = other});
            y.p().kernels.back().start += 30 * us;
            y.p().kernels.back().end += 30 * us;
            y.passes(200);
        });
        std::map<gap_cause, std::size_t> causes;
        auto const seen = judge_scene(x);
        for (auto const& g : seen.m.processes.front().gaps) ++causes[g.cause];
        bool const is_one_stream = other == own_stream;
        EXPECT_GT(causes[is_one_stream ? gap_cause::other : gap_cause::dependency], 20u);
        EXPECT_EQ(causes[is_one_stream ? gap_cause::dependency : gap_cause::other], 0u);
    }
}

TEST(audit_cold, time_before_the_steady_state_is_that) {
    scene x;
    x.compile(300'000);
    x.repeat(60, [](scene& y, int i) {
        plain_step(y);
        if (i == 50) y.compile(200'000);
    });
    auto const seen = judge_scene(x);
    ASSERT_NE(seen.found("R10"), nullptr) << seen.rules();
    EXPECT_EQ(seen.found("R10")->arithmetic, "500 ms, 300 of them before the steady state");
}

TEST(audit_gaps, idle_after_waits_that_are_let_pass_is_no_finding) {
    scene x;
    x.repeat(200, [](scene& y, int) {
        y.on("a.py:1").launch("k").on("a.py:2").wait("cudaEventSynchronize").call("cudaEventElapsedTime", 2);
        y.passes(30);
    });
    auto const seen = judge_scene(x);
    EXPECT_GT(seen.exempt("R20"), 0u) << seen.rules();
    EXPECT_EQ(seen.found("R60"), nullptr) << seen.rules();
    EXPECT_EQ(seen.exempt("R60"), 1u) << seen.rules();
}

TEST(audit_gaps, idle_after_waits_that_a_project_allows_is_no_finding_either) {
    auto const of = [](std::vector<allowance> allowed) {
        scene x;
        x.repeat(200, [](scene& y, int) { y.on("a.py:1").launch("k").on("a.py:2").read(4).passes(30); });
        return judge_scene(x, {.allowed = std::move(allowed)});
    };
    auto const before = of({}), after = of({{"R22", "a.py:2", "it is shown"}}), other = of({{"R22", "a.py:3", "no"}});
    ASSERT_NE(before.found("R22"), nullptr) << before.rules();
    EXPECT_NE(before.found("R60"), nullptr) << before.rules();
    EXPECT_EQ(after.found("R22"), nullptr) << after.rules();
    EXPECT_EQ(after.found("R60"), nullptr) << after.rules();
    EXPECT_EQ(after.exempt("R60"), 1u) << after.rules();
    EXPECT_NE(other.found("R60"), nullptr) << "another line was allowed";
}

TEST(audit_rules, that_judge_the_evidence_are_not_allowed_away) {
    scene x;
    plain_step(x);
    x.p().skipped_bytes = 1;
    auto const seen = judge_scene(x, {.allowed = {{"R91", "the recording", "nobody looks"}}});
    EXPECT_EQ(seen.found("R91"), nullptr) << "it is said among the exemptions";
    EXPECT_EQ(seen.exempt("R91"), 1u);
    EXPECT_FALSE(seen.r.can_be_judged);
}

TEST(audit_rules, name_no_option_that_is_not_there) {
    for (auto const& r : rules()) EXPECT_EQ(r.remedy.find("--duration"), r.remedy.npos) << r.id;
}

TEST(audit_order, a_blocking_finding_folds_the_later_ones) {
    scene x;
    x.repeat(9000, [](scene& y, int) {
        y.on("a.py:1").launch("k", {.takes = 3, .blocks = 4}).on("a.py:2").read(4).passes(80);
    });
    auto const seen = judge_scene(x);
    auto const* const read = seen.found("R22");
    ASSERT_NE(read, nullptr) << seen.rules();
    EXPECT_EQ(read->level, severity::blocking) << seen.rules();
    EXPECT_EQ(read->count, 9000u);
    EXPECT_EQ(read->where, "a.py:2");
    EXPECT_TRUE(read->caller);
    ASSERT_NE(seen.found("R62"), nullptr) << seen.rules();
    EXPECT_TRUE(seen.found("R62")->is_later);
}

// A compiler that was started by a process, and ran for so long from then on.
void compiles_apart(scene& x, std::uint32_t pid, std::uint32_t by, double takes,
                    std::string_view name = "/usr/bin/ptxas") {
    for (std::uint32_t const event : {1u, 4u}) {
        x.p().children.push_back(
            {.pid = pid, .parent = by, .name = x.text(name), .event = event, .time = scene::ns(x.now())});
        x.passes(event == 1 ? takes : 0);
    }
}

TEST(audit_children, compilers_are_of_who_started_them) {
    scene x;
    x.p().children.push_back(
        {.pid = 500, .parent = 42, .name = x.text("/usr/bin/python3"), .event = 1, .time = scene::ns(x.now())});
    for (std::uint32_t n = 0; n < 3; ++n) compiles_apart(x, 2000 + n, n == 0 ? 42 : 500, 100'000);
    x.repeat(60, [](scene& y, int) { plain_step(y); });
    x.another_process(43).passes(100'000);
    x.repeat(60, [](scene& y, int) { plain_step(y); });
    auto const seen = judge_scene(x);
    ASSERT_EQ(std::ranges::count(seen.r.findings, "R14", &finding::rule), 1) << seen.rules();
    EXPECT_EQ(seen.found("R14")->pid, 42u);
    EXPECT_EQ(seen.found("R14")->count, 3u);
    for (auto const& p : seen.m.processes)
        EXPECT_EQ(std::ranges::count(p.firsts, first_kind::child, &first_event::kind), p.pid == 42 ? 3 : 0) << p.pid;
}

TEST(audit_children, who_compiles_beside_a_program_is_none_of_its_steps) {
    for (bool const is_beside : {true, false}) {
        scene x;
        x.all().about = R"({"runner":7})";
        x.p().about.parent = 30;
        for (std::uint32_t const pid : {30u, 31u})  // a shell, and make
            x.p().children.push_back(
                {.pid = pid, .parent = pid == 30 ? 7u : 30u, .name = x.text("/bin/sh"), .event = 1, .time = 5});
        x.repeat(60, [&](scene& y, int i) {
            plain_step(y);
            if (i > 10)
                compiles_apart(y, 2000 + static_cast<std::uint32_t>(i), is_beside ? 31 : 42, 3000, "/usr/bin/cc1");
        });
        auto const seen = judge_scene(x);
        EXPECT_EQ(seen.found("R16") == nullptr, is_beside) << seen.rules();
        EXPECT_NE(seen.found("R14"), nullptr) << "somebody compiled: " << seen.rules();
    }
}

TEST(audit_losses, nothing_that_is_left_is_no_answer) {
    scene x;
    x.launch("k").launch("k").p().calls = {};
    x.p().kernels.consume([](auto const&) {});
    for (int i = 0; i < 9; ++i) x.p().kernels.push_back({});  // without a time
    auto const seen = judge_scene(x, {.expect_gpu = true});
    EXPECT_EQ(seen.m.records, 0u);
    EXPECT_EQ(seen.m.dropped, 9u);
    EXPECT_FALSE(seen.r.can_be_judged || seen.r.nothing_ran) << seen.r.why_not;
    EXPECT_EQ(seen.found("R01"), nullptr) << "whether one ran nobody knows";
}

// Eight launches of one kernel and an upload of any of many sizes, over and over: nearly every lag is nearly one.
TEST(audit_steps, take_no_longer_where_one_kernel_is_nearly_all) {
    std::minstd_rand sizes;
    std::vector<std::uint32_t> symbols;
    for (int i = 0; i < 300'000; ++i) {
        symbols.insert(symbols.end(), 8, 1u);
        symbols.push_back(2u + static_cast<std::uint32_t>(sizes() % 7'000));
    }
    auto const before = std::clock();
    EXPECT_EQ(period_of(symbols), 0u);
    EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 5.0);
}

TEST(audit_ledger, sums_to_the_time_until_steady) {
    scene x;
    x.compile(300000).launch("k");
    x.child("/usr/bin/ptxas", 200000);
    x.call("cuModuleLoadData", 50000);
    x.repeat(40, [](scene& y, int) { plain_step(y); });
    auto const seen = judge_scene(x);
    auto const& p = seen.m.processes.front();
    time_ns sum = 0;
    std::map<std::string, time_ns> rows;
    for (auto const& r : p.ledger) {
        sum += r.wall;
        rows[r.cause] = r.wall;
    }
    EXPECT_EQ(sum, p.steady.from - p.started);
    EXPECT_EQ(rows["NVRTC"], 300 * ms);
    EXPECT_EQ(rows["compiler processes"], 200 * ms);
    EXPECT_EQ(rows["load and link"], 50 * ms);
}

TEST(audit_steps, are_found_by_lines_then_by_operations) {
    scene lines;
    lines.repeat(30, [](scene& y, int) { plain_step(y); });
    auto const a = judge_scene(lines);
    auto const& p = a.m.processes.front();
    EXPECT_EQ(p.cycle.starts.size(), 30u);
    EXPECT_TRUE(p.cycle.anchor.starts_with("line a.py:")) << p.cycle.anchor;
    scene blind;
    blind.repeat(30, [](scene& y, int) { y.launch("mul").launch("add").launch("exp").passes(100); });
    auto const b = judge_scene(blind);
    EXPECT_EQ(b.m.processes.front().cycle.anchor, "every 3 operations");
    scene none;
    none.repeat(30, [](scene& y, int i) { y.launch(fmt::format("k{}", i)); });
    auto const c = judge_scene(none);
    EXPECT_FALSE(c.m.processes.front().cycle.found());
}

TEST(audit_steps, begin_where_the_cycle_begins) {
    scene x;
    x.repeat(60, [](scene& y, int i) { y.launch(fmt::format("variant{}", i)).passes(100); });
    x.repeat(100, [](scene& y, int i) {
        y.launch("mul").launch("add").passes(100);
        if (i % 25 == 24) y.launch("log");  // now and then
    });
    auto const seen = judge_scene(x);
    auto const& p = seen.m.processes.front();
    EXPECT_EQ(p.cycle.anchor, "every 2 operations");
    EXPECT_EQ(p.cycle.starts.front(), p.ops[60].start);
    EXPECT_EQ(p.steady.from, p.ops[60].start);
}

TEST(audit_steps, an_inner_loop_of_one_line_is_one_entry) {
    scene x;
    x.repeat(20, [](scene& y, int) {
        for (int k = 0; k < 7; ++k) y.on("a.py:5").launch("row");
        y.on("a.py:6").launch("all");
    });
    auto const seen = judge_scene(x);
    EXPECT_EQ(seen.m.processes.front().cycle.starts.size(), 20u) << seen.m.processes.front().cycle.anchor;
}

TEST(audit_steps, that_were_asked_for_and_are_not_there_are_told) {
    scene x;
    x.repeat(40, [](scene& y, int) { plain_step(y); }).ends();
    for (auto const* const step : {"a.py:1", "nosuch"}) {
        auto all = x.all();
        judged seen{.m = model_of(all, {.step = step}), .r = {}};
        seen.r = audit(seen.m);
        EXPECT_TRUE(seen.m.processes.front().cycle.found());
        auto const* const told = seen.found("R92");
        ASSERT_EQ(told != nullptr, std::string_view{step} == "nosuch") << seen.rules();
        if (told != nullptr) {
            EXPECT_NE(told->what.find("no step begins with 'nosuch'"), std::string::npos) << told->what;
        }
    }
}

TEST(audit_steps, of_many_processes_their_absence_is_told_once) {
    scene x;
    x.launch("a").launch("b").ends();
    for (std::uint32_t pid = 43; pid < 50; ++pid) {
        x.all().processes.push_back(x.p());
        x.all().processes.back().about.pid = pid;
    }
    auto const seen = judge_scene(x);
    EXPECT_EQ(std::ranges::count(seen.r.findings, "R92", &finding::rule), 1) << seen.rules();
    EXPECT_EQ(seen.found("R92")->count, 8u);
}

TEST(audit_rules, that_had_nothing_to_look_at_rest) {
    auto const rests = [](judged const& j, std::string_view rule) {
        return std::ranges::any_of(j.r.resting, [&](rested_rule const& r) { return r.rule == rule; });
    };
    scene once, often;
    once.launch("a").launch("b");
    often.repeat(40, [](scene& y, int) { plain_step(y); });
    auto const little = judge_scene(once), enough = judge_scene(often);
    for (auto const* const rule : {"R16", "R20", "R31", "R41", "R58"}) {
        EXPECT_TRUE(rests(little, rule)) << rule;
        EXPECT_FALSE(rests(enough, rule)) << rule;
    }
    EXPECT_FALSE(rests(little, "R07")) << "it needs no steps";
    EXPECT_TRUE(enough.r.resting.empty());
}

TEST(audit_rules, structural_is_in_nearly_every_step) {
    for (int const of_ten : {10, 9, 7}) {
        scene x;
        x.repeat(100, [&](scene& y, int i) {
            auto const threads = i % 10 < of_ten ? 100u : 128u;
            y.on("a.py:1").launch("k", {.threads = threads}).on("a.py:2").launch("l").passes(94);
        });
        auto const seen = judge_scene(x);
        ASSERT_NE(seen.found("R53"), nullptr) << seen.rules();
        EXPECT_EQ(seen.found("R53")->structural, of_ten > 7) << of_ten;
    }
    scene burst;  // two per step, all in one
    burst.repeat(100, [](scene& y, int i) {
        y.on("a.py:1").launch("k");
        if (i == 50) y.repeat(200, [](scene& z, int) { z.launch("odd", {.threads = 100}); });
        y.on("a.py:2").launch("l").passes(94);
    });
    auto const seen = judge_scene(burst);
    ASSERT_NE(seen.found("R53"), nullptr) << seen.rules();
    EXPECT_GT(seen.found("R53")->per_step, 1);
    EXPECT_FALSE(seen.found("R53")->structural);
}

TEST(audit_losses, of_a_process_that_could_not_be_recorded_are_said_once) {
    scene x;
    x.p().about.level = 0;
    judged seen{.m = model_of(x.all()), .r = {}};
    seen.r = audit(seen.m, {.expect_gpu = true, .numbers = {}});
    EXPECT_EQ(seen.found("R01"), nullptr) << "level 0 records no kernels";
    EXPECT_EQ(seen.found("R91"), nullptr) << seen.rules();
    EXPECT_FALSE(seen.r.can_be_judged || seen.r.nothing_ran);
    EXPECT_NE(seen.r.why_not.find("level 0 records no kernels"), std::string::npos) << seen.r.why_not;
}

TEST(audit_steps, a_program_that_compiles_on_never_settles) {
    scene x;
    x.repeat(40, [](scene& y, int) {
        plain_step(y);
        y.compile(1000);
    });
    auto const seen = judge_scene(x);
    EXPECT_FALSE(seen.m.processes.front().settled);
    EXPECT_NE(seen.found("R92"), nullptr);
}

TEST(audit_gaps, are_told_apart_by_what_the_thread_did) {
    for (bool const spins : {true, false}) {
        scene x;
        double used = 0;
        x.repeat(30, [&](scene& y, int) {
            y.on("a.py:1").launch("k", {.takes = 20}).on("a.py:2").launch("l", {.takes = 20});
            y.passes(60).cpu(scene::thread, used += spins ? 60 : 5);
            y.passes(100).cpu(scene::thread, used += spins ? 100 : 5);
        });
        auto const seen = judge_scene(x);
        std::map<gap_cause, std::size_t> causes;
        for (auto const& g : seen.m.processes.front().gaps) ++causes[g.cause];
        EXPECT_GT(causes[spins ? gap_cause::host_compute : gap_cause::host_wait], 20u) << spins;
        EXPECT_LE(causes[spins ? gap_cause::host_wait : gap_cause::host_compute], 1u) << "after the last sample";
    }
}

TEST(audit_steps, a_lag_is_found_in_a_long_sequence_and_none_where_there_is_no_order) {
    std::vector<std::uint32_t> regular, late, disordered;
    std::uint32_t state = 1;
    auto const any = [&] { return state = state * 1664525u + 1013904223u, state >> 8; };
    for (std::uint32_t i = 0; i < 100'000; ++i) {
        regular.push_back(any() % 40 == 0 ? 99 : i % 7);  // but for one in forty
        late.push_back(i < 53'000 ? any() % 500 : i % 7);
        disordered.push_back(any() % 3000);
    }
    EXPECT_EQ(period_of(regular), 7u);
    EXPECT_EQ(period_of(late), 7u);
    EXPECT_EQ(period_of(disordered), 0u);
}

// Reads of as many threads: it was a minute of a processor.
TEST(audit_consumers, of_many_threads_are_found_without_looking_at_all_for_each) {
    constexpr int threads = 200'000;
    scene x;
    x.repeat(threads, [](scene& y, int i) {
        y.copy(direction::to_host, 8);
        y.p().calls.back().thread = static_cast<std::uint32_t>(i) + 1;
        y.wait("cudaStreamSynchronize");
        y.p().calls.back().thread = static_cast<std::uint32_t>(i) + 1;
    });
    auto const begin = std::clock();
    auto const seen = judge_scene(x);
    EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 20);
    auto const& reads = seen.m.processes.front().reads;
    EXPECT_EQ(reads.size(), std::size_t{threads});
    EXPECT_TRUE(std::ranges::all_of(reads, [](read_use const& r) { return r.wait >= 0; }));
}

TEST(audit_consumers, take_what_lies_on_their_stream_and_what_nobody_took) {
    scene x;
    for (auto const on : {7u, 9u, 7u, 9u}) x.copy(direction::to_host, 8, {.on_stream = on});
    x.wait("cudaStreamSynchronize").copy(direction::to_host, 8).wait("cudaDeviceSynchronize");
    x.p().calls.back().thread = 5;  // who looks at all that came before
    auto const seen = judge_scene(x);
    std::map<std::int32_t, std::set<std::int32_t>> ops_of_wait;
    for (auto const& r : seen.m.processes.front().reads) ops_of_wait[r.wait].insert(r.op);
    std::map<std::int32_t, std::set<std::int32_t>> const expected{{0, {0, 2}}, {1, {1, 3, 4}}};
    EXPECT_EQ(ops_of_wait, expected);
}

TEST(audit_operations, whose_times_make_no_sense_hide_no_others) {
    for (bool const is_early : {false, true}) {
        for (bool const was_killed : {false, true}) {
            scene x;
            x.passes(3600e6);
            x.p().about.begun = scene::ns(x.now());
            x.repeat(60, [&](scene& y, int i) {
                plain_step(y);
                if (i != 30) return;
                auto& k = y.p().kernels.back();
                (is_early ? k.start : k.end) = is_early ? 1 : ~0ull;
            });
            if (!was_killed) x.ends();
            auto const m = model_of(x.all());
            auto const& p = m.processes.at(0);
            EXPECT_EQ(p.lost, 1u);
            EXPECT_EQ(p.ops.size(), 119u);
            EXPECT_EQ(p.cycle.starts.size(), 60u);
            EXPECT_LT(p.span(), 1'000'000'000u);
            EXPECT_LT(p.steady_busy, p.span());
        }
    }
}

TEST(audit_places, of_files_with_one_name_are_told_apart) {
    scene x;
    x.repeat(15, [](scene& y, int) {
        for (auto const* const line : {"a/utils.py:2", "b/utils.py:2"})
            y.on("a/utils.py:1").launch("k").on(line).wait("cudaStreamSynchronize").passes(30);
    });
    EXPECT_EQ(judge_scene(x).found("R20"), nullptr) << "twice 15 waits are not 30";
    scene often;
    often.repeat(40, [](scene& y, int) {
        for (auto const* const line : {"a/utils.py:2", "b/utils.py:2"})
            y.on("main.py:1").launch("k").on(line).wait("cudaStreamSynchronize").passes(30);
    });
    auto named = often.ends().all(), one = often.all();
    auto const seen = judge_scene(often);
    std::set<std::string> where;
    for (auto const& f : seen.r.findings)
        if (f.rule == "R20") where.insert(f.where);
    EXPECT_EQ(where, (std::set<std::string>{"a/utils.py:2", "b/utils.py:2"})) << seen.rules();
    EXPECT_EQ(seen.m.processes.front().place_at(1).label, "main.py:1") << "there is but one";
    EXPECT_EQ(model_of(named, {.step = "utils.py:2"}).processes.front().missing_step, "");
    EXPECT_EQ(model_of(one, {.step = "b/utils.py:2"}).processes.front().missing_step, "");
}

TEST(audit_places, get_as_much_of_their_folders_as_it_takes) {
    auto const labels = [](std::vector<std::string> const& files) {
        std::vector<place> places;
        for (auto const& file : files) places.push_back(place_from(file + "\t3\tf\n"));
        tell_apart(places);
        std::vector<std::string> out;
        for (auto const& p : places) out.push_back(p.label);
        return out;
    };
    using strings = std::vector<std::string>;
    EXPECT_EQ(labels({"/x/a/m.py", "/x/b/m.py", "/x/c.py"}), (strings{"a/m.py:3", "b/m.py:3", "c.py:3"}));
    EXPECT_EQ(labels({"/x/a/u/m.py", "/x/b/u/m.py", "/x/b/m.py"}), (strings{"a/u/m.py:3", "b/u/m.py:3", "b/m.py:3"}));
    EXPECT_EQ(labels({"/m.py", "/1/2/3/4/5/6/m.py", "/0/2/3/4/5/6/m.py"}),
              (strings{"m.py:3", "/1/2/3/4/5/6/m.py:3", "/0/2/3/4/5/6/m.py:3"}));
    EXPECT_EQ(labels({"/x/a.cu", "/x/./b/../a.cu", "a.cu"}), (strings{"a.cu:3", "a.cu:3", "a.cu:3"})) << "one file";
    EXPECT_TRUE(is_called("a/m.py:3", "m.py:3") && is_called("m.py:3", "m.py:3"));
    EXPECT_FALSE(is_called("am.py:3", "m.py:3") || is_called("m.py:3", "a/m.py:3"));
}

TEST(audit_places, name_the_line_of_the_user) {
    auto const direct = place_from("/home/ann/train.py\t12\tstep\n/home/ann/train.py\t40\tmain\n");
    EXPECT_EQ(direct.label, "train.py:12");
    EXPECT_TRUE(direct.caller);
    auto const wrapped =
        place_from("/opt/lib/python3.12/site-packages/torch/_tensor.py\t9\titem\n/home/ann/train.py\t12\tstep\n");
    EXPECT_EQ(wrapped.label, "train.py:12");
    EXPECT_FALSE(wrapped.caller);
    EXPECT_EQ(place_from("garbage").label, "?");
    EXPECT_EQ(short_kernel_name("_ZN3cub18DeviceReduceKernelIfEEvPT_i"), "cub::DeviceReduceKernel");
    EXPECT_EQ(short_kernel_name("_ZN3cub16CUB_300102_SM_906detail6reduce28DeviceReduceSingleTileKernelIfEEvPT_", 100),
              "cub::detail::reduce::DeviceReduceSingleTileKernel");
    EXPECT_EQ(short_kernel_name("spin"), "spin");
}

}  // namespace
}  // namespace kiln::audit::testing
