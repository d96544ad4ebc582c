// SPDX-License-Identifier: Apache-2.0
// Whether it ran on the GPU, and what was done for the first time (R01 to R16).
#include "unit/audit/rule_cases.hpp"

namespace kiln::audit::testing {

namespace {

making busy_cpu(double busy, double cpu) {  // 3 s; shares of the time
    return [=](s x) {
        x.cpu(0, 0);
        x.repeat(300, [&](s y, int) {
            y.on("a.py:1")
                .launch("k", {.takes = 10000 * busy})
                .on("a.py:2")
                .launch("l", {.takes = 1})
                .passes(9994)
                .cpu(0, (y.now() - 2000) * cpu);
        });
    };
}

making fails_then_computes(double quiet_us) {
    return [=](s x) {
        plain_steps(20)(x);
        x.on("a.py:5").allocate(10, 2).cpu(0, 0).passes(quiet_us).cpu(0, quiet_us * 0.95);
    };
}

// A call that asks whether something is ready, and is told no.
body probes() {
    return [](s y, int) {
        plain_step(y);
        y.call("cudaStreamSynchronize", 1);
        y.p().calls.back().status = 600;
    };
}

body host_between(double host_us, std::uint64_t back) {
    return [=](s y, int i) {
        y.on("a.py:1")
            .launch("k")
            .on("a.py:2")
            .copy(direction::to_host, 2 << 20, {.pointer = static_cast<std::uint64_t>(i + 1)})
            .wait("cudaStreamSynchronize")
            .passes(host_us)
            .on("a.py:3")
            .copy(direction::to_device, back)
            .launch("l");
    };
}

enum class ran { nothing, kernel };
making dispatched(ran what, int items) {
    return then_plain(10, [=](s x) {
        x.launch("k");
        if (what == ran::kernel) x.under(5);
        x.dispatch(5,
                   fmt::format(R"({{"kind":"dispatched","op":"scan","requested":"auto","selected":"gpu","items":{}}})",
                               items));
    });
}

// ---- once, before thirty steps

making before_steps(making const& what) {
    return then_plain(30, [=](s x) {
        what(x);
        x.launch("made");
    });
}
making nvrtc(double us, std::uint64_t bytes = 100) {
    return before_steps([=](s x) { x.on("a.py:9").compile(us, bytes); });
}
making driver_jit(std::uint8_t operation, double us) {
    return before_steps([=](s x) { x.jit(operation, us); });
}
making driver_jit_inside_load(double us) {
    return before_steps([=](s x) {
        auto const id = x.call("cuModuleLoadData", 1);
        x.p().sites.push_back({.correlation = id, .bytes = 2});
        x.p().calls.back().end = scene::ns(x.now() + us);
        x.jit(3, us);
    });
}
making driver_jit_inside_nvrtc(double us) {
    return before_steps([=](s x) {
        auto const from = x.now();
        x.jit(3, us);
        x.p().compiles.push_back({.what = 1, .start = scene::ns(from), .end = scene::ns(from + us), .bytes = 10});
    });
}
making called(char const* name, double us) {
    return before_steps([=](s x) { x.call(name, us); });
}
making child(char const* name, double us) {
    return before_steps([=](s x) { x.child(name, us); });
}

making tries(int variants, int times) {
    return [=](s x) {
        x.repeat(variants, [&](s y, int v) {
            for (int k = 0; k < times; ++k)
                y.launch("tuned", {.takes = 10, .threads = 32u * static_cast<std::uint32_t>(v + 1)}).passes(8000);
        });
        x.repeat(40, [](s y, int) { y.on("a.py:1").launch("tuned", {.takes = 10, .threads = 64}); });
    };
}
body grids_that_follow_data() {
    return
        [](s y, int i) { y.launch("k", {.takes = 10, .blocks = 100u + static_cast<std::uint32_t>(i)}).passes(8000); };
}
body compiles_from(int step) {
    return [=](s y, int i) {
        plain_step(y);
        if (i >= step) y.compile(2000);
    };
}

void not_recorded(s x) { x.p().notes.push_back({.what = 1, .text = x.text("no libcupti was found"), .time = 1}); }

}  // namespace

std::vector<rule_case> cases_of_the_first() {
    using enum expected;
    rule_options const gpu{.expect_gpu = true};
    auto const of_f32 = [](double gemm, double other) {
        return pair({"cutlass_80_simt_sgemm_128", {.takes = gemm}}, {"k", {.takes = other}});
    };
    return {
        {"R01", "fires", fires, [](s) {}, gpu},
        {"R01", "one_kernel", below, [](s x) { x.launch("k"); }, gpu},
        {"R01", "not_recorded", passes, not_recorded, gpu},
        {"R02", "fires", fires, busy_cpu(0.03, 0.9)},
        {"R02", "busy_enough", below, busy_cpu(0.6, 0.9)},
        {"R02", "idle_cpu", exempt, busy_cpu(0.03, 0.2)},
        {"R03", "fires", fires, fails_then_computes(1.5e6)},
        {"R03", "short", below, fails_then_computes(0.8e6)},
        {"R03", "probe", exempt, loop(10, probes())},
        {"R04", "fires", fires, driver_jit(3, 60000)},
        {"R04", "from_the_cache", below, driver_jit(1, 60000)},
        {"R04", "of_a_jit", passes, driver_jit_inside_load(60000)},
        {"R05", "fires", fires, loop(30, of_f32(90, 10))},
        {"R05", "little", below, loop(30, of_f32(15, 85))},
        {"R05", "fast_at_it", passes, loop(30, pair({"scan_f64", {.takes = 90}}, {"k", {.takes = 10}}))},
        {"R06", "fires", fires, loop(9, host_between(60000, 2 << 20))},
        {"R06", "shorter", below, loop(9, host_between(30000, 2 << 20))},
        {"R06", "another_size", passes, loop(9, host_between(60000, 4 << 20))},
        {"R07", "fires", fires, dispatched(ran::nothing, 9)},
        {"R07", "ran", below, dispatched(ran::kernel, 9)},
        {"R07", "no_items", exempt, dispatched(ran::nothing, 0)},
        {"R10", "fires", fires, nvrtc(120000)},
        {"R10", "below", below, nvrtc(80000)},
        {"R10", "empty", exempt, nvrtc(120000, 0)},
        {"R11", "fires", fires, driver_jit(3, 60000)},
        {"R11", "below", below, driver_jit(3, 40000)},
        {"R11", "inside_nvrtc", passes, driver_jit_inside_nvrtc(60000)},
        {"R12", "fires", fires, called("cuModuleLoadData", 150000)},
        {"R12", "below", below, called("cuModuleLoadData", 90000)},
        {"R12", "names_only", passes, called("cuModuleGetFunction", 150000)},
        {"R13", "fires", fires, called("cuDevicePrimaryCtxRetain", 400000)},
        {"R13", "below", below, called("cuDevicePrimaryCtxRetain", 200000)},
        {"R13", "other_call", passes, called("cuDeviceGetAttribute", 400000)},
        {"R14", "fires", fires, child("/usr/bin/ptxas", 150000)},
        {"R14", "below", below, child("/usr/bin/ptxas", 90000)},
        {"R14", "no_compiler", passes, child("/usr/bin/git", 150000)},
        {"R15", "fires", fires, tries(8, 3)},
        {"R15", "two_variants", below, tries(2, 9)},
        {"R15", "grids_follow_data", passes, loop(60, grids_that_follow_data())},
        {"R16", "fires", fires, loop(40, compiles_from(10))},
        {"R16", "twice", below, loop(40, compiles_from(38))},
        {"R16", "at_the_beginning", passes, loop(40, compiles_before(6))},
    };
}

}  // namespace kiln::audit::testing
