// SPDX-License-Identifier: Apache-2.0
// How work is cut into launches, and whether it is evidence (R50 to R94).
#include "unit/audit/rule_cases.hpp"

namespace kiln::audit::testing {

namespace {

making costs(double from, double us) {  // beside a second of steps that begin at 200 ms
    return [=](s x) {
        x.p().overheads.push_back({.what = 2, .start = scene::ns(from), .end = scene::ns(from + us)});
        x.passes(198000).repeat(1000, [](s y, int) {
            plain_step(y);
            y.passes(900);
        });
    };
}

enum class from_lines { one, many };
body rows(int times, from_lines which) {
    return [=](s y, int) {
        for (int k = 0; k < times; ++k)
            y.on(fmt::format("a.py:{}", which == from_lines::one ? 10 : 10 + k))
                .launch("row", {.takes = 5, .blocks = 4})
                .passes(10);
        y.on("a.py:2").launch("all");
    };
}

// So many launches between reads of a value, by the number of the step.
body reads_after(int (*launches)(int)) {
    return [=](s y, int i) {
        for (int k = 0; k < launches(i); ++k) y.on("a.py:1").launch("k");
        y.on("a.py:2").read(4);
    };
}

// As a validation after each hundred steps.
body reads_after_four_or_many() {
    return reads_after([](int i) { return i % 100 == 50 ? 2000 : 5; });
}

// Of a kernel whose times make no sense.
making ends_at(std::uint64_t time) {
    return then_plain(40, [=](s x) {
        x.launch("k");
        auto& k = x.p().kernels.back();
        k.start = std::min(k.start, time);
        k.end = time;
    });
}
making loses(int steps, std::uint64_t records) {
    return [=](s x) {
        plain_steps(steps)(x);
        x.ends().p().ends.back().dropped = records;
    };
}

making with_environment(char const* setting) {
    return [=](s x) {
        x.all().about = fmt::format(R"({{"environment":{{{}}}}})", setting);
        plain_steps(40)(x);
    };
}

enum class at_the_end { nothing, waits };
making timed(double last_takes, at_the_end then) {
    return [=](s x) {
        auto const from = x.now();
        plain_steps(40)(x);
        x.launch("last", {.takes = last_takes});
        if (then == at_the_end::waits) x.wait("cudaDeviceSynchronize");
        x.p().ranges.push_back(
            {.thread = 1, .name = x.text("timed"), .start = scene::ns(from), .end = scene::ns(x.now())});
    };
}

}  // namespace

std::vector<rule_case> cases_of_launches() {
    using enum expected;
    launch_options const tiny{.takes = 2}, in_graph{.takes = 2, .graph = 3};
    auto const some = [](std::uint32_t blocks) {
        return pair({.takes = 100, .blocks = blocks}, {.takes = 2, .blocks = blocks});
    };
    auto const few_blocks = [](std::string name, std::uint32_t blocks) {
        return pair({std::move(name), {.takes = 100, .blocks = blocks}}, {"l", {.takes = 5}});
    };
    auto const odd = [](double takes, std::uint32_t threads) {
        return pair({.takes = takes, .threads = threads}, {.takes = 50});
    };
    auto const shares = [](std::uint32_t threads, std::uint32_t kib) {
        return pair({.takes = 50, .threads = threads, .shared = kib * 1024}, {.takes = 50});
    };
    auto const pauses = [](s y, int) { plain_step(y), y.passes(60); };
    return {
        {"R50", "fires", fires, loop(600, pair(tiny, tiny, 10))},
        {"R50", "fewer", below, loop(400, pair(tiny, tiny, 10))},
        {"R50", "graphs", passes, loop(600, pair(in_graph, in_graph, 10))},
        {"R52", "fires", fires, loop(60, few_blocks("k", 8))},
        {"R52", "enough_blocks", below, loop(60, few_blocks("k", 132))},
        {"R52", "tuned", exempt, loop(60, few_blocks("sm90_xmma_gemm", 8))},
        {"R53", "fires", fires, loop(60, odd(10, 100))},
        {"R53", "little", below, loop(60, odd(2, 100))},
        {"R53", "whole_warps", passes, loop(60, odd(10, 96))},
        {"R54", "fires", fires, loop(60, shares(64, 100))},
        {"R54", "fits", below, loop(60, shares(512, 50))},
        {"R54", "all_of_it", passes, loop(60, shares(64, 200))},
        {"R57", "fires", fires, loop(12, rows(40, from_lines::one))},
        {"R57", "thirty", below, loop(12, rows(30, from_lines::one))},
        {"R57", "layers", exempt, loop(12, rows(40, from_lines::many))},
        {"R58", "fires", fires, loop(40, pauses)},
        {"R58", "few_steps", below, loop(18, pauses)},
        {"R58", "waits", passes,
         loop(40, [](s y, int) { plain_step(y), y.on("a.py:3").wait("cudaStreamSynchronize").passes(60); })},
        {"R60", "fires", fires, loop(40, host_after(50, 100))},
        {"R60", "little", below, loop(40, host_after(400, 408))},
        {"R60", "budget_allows", passes, loop(40, host_after(50, 100)), {.numbers = {{"R60.share", 0.99}}}},
        {"R62", "fires", fires, loop(60, some(30))},
        {"R62", "enough", below, loop(60, some(45))},
        {"R62", "budget_allows", passes, loop(60, some(30)), {.numbers = {{"R62.share", 0.1}}}},
        {"R65", "fires", fires, loop(40, reads_after([](int i) { return 4 + (i * 7) % 9; }))},
        {"R65", "steady_count", below, loop(40, reads_after([](int) { return 6; }))},
        {"R65", "now_and_then_something_else", passes, loop(200, reads_after_four_or_many())},
        {"R65", "short_loops", passes, loop(40, reads_after([](int i) { return 1 + i % 3; }))},
        {"R66", "fires", fires, loop(20, host_after(3000, 6000))},
        {"R66", "short_gaps", below, loop(20, host_after(3000, 3500))},
        {"R66", "budget_allows", passes, loop(20, host_after(3000, 6000)), {.numbers = {{"R66.share", 0.99}}}},
        {"R90", "fires", fires, costs(300000, 120000)},
        {"R90", "below", below, costs(300000, 90000)},
        {"R90", "once_at_the_beginning", passes, costs(1200, 190000)},
        {"R91", "fires", fires, loses(40, 5)},
        {"R91", "without_a_time", fires, ends_at(0), {}, 1},
        {"R91", "after_its_process", fires, ends_at(~0ull), {}, 1},
        {"R91", "a_few_of_many", below, loses(2000, 5)},
        {"R91", "none", passes, plain_steps(40)},
        {"R92", "fires", fires, [](s x) { x.launch("a").launch("b").launch("c"); }},
        {"R92", "eight_steps", below, plain_steps(8)},
        {"R92", "compiles_at_the_beginning", passes, loop(40, compiles_before(6))},
        {"R93", "fires", fires, with_environment(R"("CUDA_LAUNCH_BLOCKING":"1")")},
        {"R93", "lazy", below, with_environment(R"("CUDA_MODULE_LOADING":"LAZY")")},
        {"R93", "off", passes, with_environment(R"("CUDA_LAUNCH_BLOCKING":"0")")},
        {"R94", "fires", fires, timed(5000, at_the_end::nothing)},
        {"R94", "hardly", below, timed(90, at_the_end::nothing)},
        {"R94", "waits", passes, timed(5000, at_the_end::waits)},
    };
}

}  // namespace kiln::audit::testing
