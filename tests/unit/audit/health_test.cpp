// SPDX-License-Identifier: Apache-2.0
#include "audit/health.hpp"
#include "unit/audit/scene.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace kiln::audit::testing {
namespace {

TEST(health, the_classes_add_up) {
    scene x;
    x.launch("k").under(1).dispatch(1, R"({"kind":"dispatched","op":"scan","selected":"gpu"})");
    x.dispatch(2, R"({"kind":"dispatched","op":"scan","selected":"cpu","reason":"small"})");
    x.dispatch(3, R"({"kind":"fell_back","op":"scan","reason":"no memory"})")
        .dispatch(4, R"({"kind":"failed","op":"scan"})")
        .dispatch(5, R"({"kind":"dispatched","op":"scan","selected":"gpu"})");
    auto const seen = judge_scene(x);
    health h;
    add_health(seen.m, "t", h);
    auto const& d = h.dispatches;
    EXPECT_EQ(d.all, 5u);
    EXPECT_EQ(d.gpu + d.cpu + d.fell_back + d.failed, d.all);
    EXPECT_DOUBLE_EQ(d.gpu_share(), 0.4);
    EXPECT_DOUBLE_EQ(d.verified_share(), 0.2);
    EXPECT_EQ(h.reasons.at("small"), 1u);
}

TEST(health, words_of_another_type_are_none) {
    scene x;
    x.launch("k").dispatch(1, R"({"kind":"dispatched","op":[],"selected":7,"items":"none","reason":{}})");
    x.dispatch(2, R"({"kind":"fell_back","op":1,"requested":true,"reason":3})");
    x.dispatch(3, R"({"kind":5})").dispatch(4, "[]").dispatch(5, "{");
    auto const seen = judge_scene(x);
    ASSERT_NE(seen.found("R03"), nullptr) << seen.rules();
    EXPECT_EQ(seen.found("R03")->what, "'?' fell back to the CPU: no reason given");
    EXPECT_EQ(seen.found("R07"), nullptr) << seen.rules();
    health h;
    add_health(seen.m, "t", h);
    EXPECT_EQ(h.dispatches.all, 2u);
    EXPECT_TRUE(h.reasons.empty());
}

TEST(health, counts_processes_that_used_no_gpu_but_not_those_that_only_started_others) {
    scene x;
    x.launch("k").child("/usr/bin/python3", 10).child("/usr/bin/gcc", 10).child("/bin/sh", 10);
    x.p().children.push_back({.pid = 2000, .parent = 1003, .name = x.text("/usr/bin/python3"), .event = 1, .time = 5});
    auto const seen = judge_scene(x);
    health h;
    add_health(seen.m, "a", h);
    EXPECT_EQ(h.processes.all, 3u);  // the one that launched, and two of Python
    EXPECT_EQ(h.processes.gpu, 1u);
    EXPECT_EQ(h.processes.cpu, 2u);
}

// pyenv's python3 is a script that asks readlink and basename, in shells of its own, before it becomes Python.
TEST(health, tools_that_scripts_ask_are_no_work) {
    scene x;
    x.launch("k")
        .child("/usr/bin/readlink", 1)
        .child("/bin/bash", 1)
        .child("/usr/bin/locale", 1)
        .child("/sbin/ldconfig", 1)
        .child("/sbin/ldconfig.real", 1);
    x.p().children.push_back({.pid = 3000, .parent = 1, .event = 4, .time = 5});  // forked, and never a program
    auto const seen = judge_scene(x);
    health h;
    add_health(seen.m, "a", h);
    EXPECT_EQ(h.processes.all, 1u) << to_text(h);
    EXPECT_EQ(h.processes.gpu, 1u);
}

TEST(health, a_test_that_asks_tools_is_counted_and_its_runner_is_not_whatever_lies_between) {
    scene x;
    auto const began = [&](std::uint32_t pid, std::uint32_t parent, char const* name) {
        x.p().children.push_back({.pid = pid, .parent = parent, .name = x.text(name), .event = 1, .time = 5});
    };
    began(10, 1, "/usr/bin/run_tests");
    began(11, 10, "/bin/sh");
    began(12, 11, "/usr/bin/test_of_the_cpu");
    began(13, 12, "/bin/bash");
    began(14, 13, "/usr/bin/uname");
    x.launch("k");
    auto const seen = judge_scene(x);
    health h;
    add_health(seen.m, "a", h);
    EXPECT_EQ(h.processes.all, 2u) << to_text(h);
    EXPECT_EQ(h.processes.cpu, 1u);
    EXPECT_NE(to_text(h).find("no kernel  test_of_the_cpu"), std::string::npos) << to_text(h);
    began(15, 10, ("/usr/bin/" + std::string(3000, 'n')).c_str());
    h = {};
    add_health(judge_scene(x).m, {}, h);
    EXPECT_LT(to_text(h).size(), 600u) << "whatever its name is";
}

TEST(health, counts_processes_where_kiln_says_nothing) {
    scene x, idle;
    x.launch("k");
    health h;
    auto const seen = judge_scene(x), none = judge_scene(idle);
    add_health(seen.m, "a", h);
    add_health(none.m, "b", h);
    EXPECT_EQ(h.processes.all, 2u);
    EXPECT_EQ(h.processes.gpu, 1u);
}

// ---- what is a unit

class suite {
public:
    suite() { x_.launch("k"); }
    suite& began(std::uint32_t pid, std::uint32_t parent, std::string_view program, std::uint64_t time = 5,
                 std::uint32_t identity = 0) {
        x_.p().children.push_back(
            {.pid = pid, .parent = parent, .name = x_.text(program), .event = 1, .time = time, .status = identity});
        return *this;
    }
    suite& collected(std::uint32_t pid, std::uint32_t parent, std::uint64_t time) {
        x_.p().children.push_back({.pid = pid, .parent = parent, .event = 4, .time = time});
        return *this;
    }
    [[nodiscard]] scene& of() { return x_; }
    [[nodiscard]] health counted() {
        health out;
        add_health(judge_scene(x_).m, {}, out);
        return out;
    }

private:
    scene x_;
};

TEST(health, a_test_that_is_called_like_a_tool_or_a_compiler_is_counted) {
    for (auto const* const program : {"/work/build/sort", "t/cut", "./find", "/opt/app/bin/seq", "/home/ann/test-as",
                                      "./x-ld", "build/cc", "/home/ann/ld"})
        EXPECT_EQ(suite{}.began(10, 1, program).counted().processes.cpu, 1u) << program;
    for (auto const* const program :
         {"/usr/bin/sort", "/bin/cut", "/usr/bin/as", "/usr/bin/x86_64-linux-gnu-ld.bfd", "/home/ann/bin/gcc-13",
          "/home/ann/conda/bin/x86_64-conda-linux-gnu-cc", "/home/ann/triton/bin/ptxas", "/home/ann/venv/bin/ninja",
          "/usr/bin/cmake\tcmake -E cmake_echo_color --cyan Running tests..."})
        EXPECT_EQ(suite{}.began(10, 1, program).counted().processes.cpu, 0u) << program;
    EXPECT_EQ(suite{}.began(10, 1, "/usr/bin/cmake\tcmake -P check.cmake").counted().processes.cpu, 1u);
}

TEST(health, a_test_that_starts_a_compiler_is_no_runner) {
    auto const h = suite{}
                       .began(10, 1, "/usr/bin/python3\tpython3 run_tests.py")
                       .began(11, 10, "/usr/bin/python3\tpython3 test_compiled.py")
                       .began(12, 11, "/usr/bin/gcc")
                       .began(13, 12, "/usr/libexec/gcc/cc1")
                       .began(14, 11, "/bin/sh")
                       .began(15, 14, "/home/ann/conda/bin/x86_64-conda-linux-gnu-gcc")
                       .began(16, 15, "/home/ann/conda/bin/as")
                       .counted();
    ASSERT_EQ(h.processes.cpu, 1u) << to_text(h);
    EXPECT_EQ(h.units.back().name, "python3 test_compiled.py");
}

TEST(health, a_number_that_comes_again_is_another_process) {
    // 42 is the one that launched; the second has its number after it was collected.
    auto const again = suite{}
                           .began(42, 1, "/t/scan\tscan", 900'000)
                           .collected(42, 1, 9'000'000'000)
                           .began(42, 1, "/t/reduce\treduce", 9'000'000'100)
                           .collected(42, 1, 9'000'000'200)
                           .counted();
    EXPECT_EQ(again.processes.all, 2u) << to_text(again);
    EXPECT_EQ(again.processes.cpu, 1u);
    // In another namespace of processes nobody collects it by that number.
    auto const apart = suite{}
                           .began(1, 0, "/t/a\ta", 10, 7)
                           .began(1, 0, "/t/b\tb", 11, 8)
                           .began(1, 0, "/t/c\tc", 12, 7)  // an exec of the first
                           .counted();
    EXPECT_EQ(apart.processes.cpu, 2u) << to_text(apart);
    EXPECT_EQ(suite{}.began(9, 1, "/t/a\ta", 10, 7).began(9, 1, "/t/b\tb", 11, 7).counted().processes.cpu, 1u);
}

TEST(health, recordings_add_up_in_any_order) {
    scene processes, dispatches;
    processes.launch("k");
    dispatches.launch("k").under(1).dispatch(1, R"({"kind":"dispatched","selected":"gpu"})");
    dispatches.dispatch(2, R"({"kind":"dispatched","selected":"cpu"})");
    auto const a = judge_scene(processes), b = judge_scene(dispatches);
    health one, other;
    add_health(a.m, "a", one);
    add_health(b.m, "b", one);
    add_health(b.m, "b", other);
    add_health(a.m, "a", other);
    EXPECT_EQ(to_text(one), to_text(other));
    EXPECT_EQ(one.dispatches.all, 2u);
    EXPECT_EQ(one.processes.all, 2u);
    EXPECT_DOUBLE_EQ(one.gpu_share(), 0.5);
}

TEST(health, without_the_companion_it_is_not_whole) {
    scene x;
    x.launch("k");
    x.all().about = R"({"hook":"none","why_no_hook":"a blank in a path"})";
    EXPECT_NE(why_not_counted(judge_scene(x).m).find("a blank in a path"), std::string::npos);
    x.all().about = "{}";
    EXPECT_EQ(why_not_counted(judge_scene(x).m), "");
}

// ---- baselines

health of_units(std::vector<std::pair<std::string, int>> const& units) {
    health out;
    for (auto const& [name, kernels] : units) {
        out.units.push_back({name, static_cast<std::uint64_t>(kernels), kernels > 0});
        ++out.processes.all;
        ++(kernels > 0 ? out.processes.gpu : out.processes.cpu);
    }
    out.processes.verified = out.processes.gpu;
    return out;
}
health_baseline baseline_of(health const& h) { return parse_health_baseline(to_json(h).dump()).value(); }

TEST(health_baseline, one_test_of_many_that_left_the_gpu_is_named) {
    std::vector<std::pair<std::string, int>> units;
    for (int i = 0; i < 1200; ++i) units.emplace_back(fmt::format("t --case={}", i), 3);
    auto const before = baseline_of(of_units(units));
    EXPECT_TRUE(compare(before, of_units(units)).broken.empty());
    units[700].second = 0;
    units.emplace_back("t --case=new", 1);  // and the share is as good as ever
    auto const off = compare(before, of_units(units));
    ASSERT_EQ(off.broken.size(), 1u);
    EXPECT_EQ(off.broken.front(), "'t --case=700' was on the GPU, and is on the CPU now");
    units.erase(units.begin() + 700);
    auto const gone = compare(before, of_units(units));
    ASSERT_EQ(gone.broken.size(), 1u);
    EXPECT_EQ(gone.broken.front(), "'t --case=700' was on the GPU, and is missing now");
}

TEST(health_baseline, tests_of_one_name_are_held_to_their_number) {
    auto const before = baseline_of(of_units({{"t", 1}, {"t", 1}, {"t", 0}}));
    EXPECT_TRUE(compare(before, of_units({{"t", 0}, {"t", 1}, {"t", 1}, {"t", 9}})).broken.empty());
    auto const less = compare(before, of_units({{"t", 1}, {"t", 0}, {"u", 1}}));
    ASSERT_EQ(less.broken.size(), 1u);
    EXPECT_EQ(less.broken.front(), "'t' was on the GPU 2 times, and is 1 times now (1 on the CPU)");
}

TEST(health_baseline, what_differs_from_run_to_run_in_a_name_is_not_compared) {
    auto const before = baseline_of(of_units({{"serve --port=43121 --out=tmpa8s7", 1}, {"scan 12", 1}}));
    EXPECT_TRUE(compare(before, of_units({{"serve --port=5000 --out=tmpzzzz", 1}, {"scan 12", 1}})).broken.empty());
    EXPECT_EQ(compare(before, of_units({{"serve --port=5000 --out=tmpzz", 1}, {"scan 13", 1}})).broken.size(), 1u);
}

TEST(health_baseline, one_of_old_is_compared_by_what_it_says) {
    auto const old = parse_health_baseline(R"({"of":"processes","all":2,"gpu":2,"gpu_share":1.0})").value();
    EXPECT_TRUE(compare(old, of_units({{"a", 1}, {"b", 1}})).broken.empty());
    EXPECT_EQ(compare(old, of_units({{"a", 1}})).broken.size(), 1u) << "all of less";
    auto const oldest = parse_health_baseline(R"({"gpu_share":0.5})").value();
    EXPECT_TRUE(compare(oldest, of_units({{"a", 1}, {"b", 0}})).broken.empty());
    EXPECT_EQ(compare(oldest, of_units({{"a", 1}, {"b", 0}, {"c", 0}})).broken.size(), 1u);
    EXPECT_NE(compare(parse_health_baseline(R"({"gpu_share":0})").value(), of_units({{"a", 0}})).why_not, "");
    for (auto const* const odd :
         {"", "{", "[]", R"({"gpu_share":"x"})", R"({"gpu_share":7})", R"({"gpu_share":1,"verified_share":-1})"})
        EXPECT_FALSE(parse_health_baseline(odd)) << odd;
}

TEST(health_baseline, dispatches_and_processes_are_both_judged) {
    auto all = of_units({{"kiln", 1}, {"a", 1}, {"b", 1}});
    all.dispatches = {.all = 10, .gpu = 10, .verified = 10};
    auto const before = baseline_of(all);
    EXPECT_TRUE(compare(before, all).broken.empty());
    auto off = of_units({{"kiln", 1}, {"a", 0}, {"b", 0}});
    off.dispatches = all.dispatches;
    EXPECT_EQ(compare(before, off).broken.size(), 3u) << "two by name, and the share of processes";
    auto words = all;
    words.dispatches.verified = 0;
    auto const told = compare(before, words);
    ASSERT_EQ(told.broken.size(), 1u);
    EXPECT_NE(told.broken.front().find("verified by kernels fell from 100.00 % to 0.00 %"), std::string::npos);
    EXPECT_EQ(compare(before, of_units({{"kiln", 0}, {"a", 1}, {"b", 1}})).broken.size(), 1u) << "no dispatch is left";
    auto const mute = parse_health_baseline(R"({"of":"dispatches","gpu_share":0.9})").value();
    EXPECT_NE(compare(mute, of_units({{"a", 1}})).why_not, "");
}

}  // namespace
}  // namespace kiln::audit::testing
