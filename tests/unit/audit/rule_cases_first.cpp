// SPDX-License-Identifier: Apache-2.0
// Whether it ran on the GPU, and what was done for the first time (R01 to R16).
#include "unit/audit/rule_cases.hpp"

namespace kiln::audit::testing {

std::vector<rule_case> cases_of_the_first() {
    using enum expected;
    using enum direction;
    auto const cold = [](double us, auto const& what) {
        return [=](s x) {
            what(x, us);
            x.repeat(30, [](s y, int) { plain_step(y); });
        };
    };
    auto const nvrtc = [](s x, double us) { x.on("a.py:9").compile(us).launch("made"); };
    auto const busy_cpu = [](double busy, double cpu) {  // 3 s; shares of the time
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
    };
    auto const dispatch = [](char const* selected, bool kernel, int items) {
        return [=](s x) {
            x.launch("k");
            if (kernel) x.under(5);
            x.dispatch(
                5, fmt::format(R"({{"kind":"dispatched","op":"scan","requested":"auto","selected":"{}","items":{}}})",
                               selected, items));
            x.repeat(10, [](s y, int) { plain_step(y); });
        };
    };
    auto const demoted = [](int times, double host_us, std::uint64_t back) {
        return loop(times, [=](s y, int i) {
            y.on("a.py:1")
                .launch("k")
                .on("a.py:2")
                .copy(to_host, 2 << 20, {.pointer = static_cast<std::uint64_t>(i + 1)})
                .wait("cudaStreamSynchronize")
                .passes(host_us)
                .on("a.py:3")
                .copy(to_device, back)
                .launch("l");
        });
    };
    auto const failed_call = [](double quiet_us, double cpu) {
        return [=](s x) {
            x.repeat(20, [](s y, int) { plain_step(y); });
            x.on("a.py:5").allocate(10, 2).cpu(0, 0).passes(quiet_us).cpu(0, quiet_us * cpu);
        };
    };
    auto const compiles_in = [](int steps, int of) {
        return [=](s x) {
            x.repeat(of, [&](s y, int i) {
                plain_step(y);
                if (i >= of - steps) y.compile(2000);
            });
        };
    };
    return {
        {"R01", "fires", fires, [](s) {}, {.expect_gpu = true}},
        {"R01", "one_kernel", below, [](s x) { x.launch("k"); }, {.expect_gpu = true}},
        {"R01",
         "not_recorded",
         passes,
         [](s x) { x.p().notes.push_back({.what = 1, .text = x.text("no libcupti was found"), .time = 1}); },
         {.expect_gpu = true}},
        {"R02", "fires", fires, busy_cpu(0.03, 0.9)},
        {"R02", "busy_enough", below, busy_cpu(0.6, 0.9)},
        {"R02", "idle_cpu", exempt, busy_cpu(0.03, 0.2)},
        {"R03", "fires", fires, failed_call(1.5e6, 0.95)},
        {"R03", "short", below, failed_call(0.8e6, 0.95)},
        {"R03", "probe", exempt,
         [](s x) {
             x.repeat(10, [](s y, int) {
                 plain_step(y);
                 y.call("cudaStreamSynchronize", 1);
                 y.p().calls.back().status = 600;
             });
         }},
        {"R04", "fires", fires, cold(60000, [](s x, double us) { x.jit(3, us).launch("k"); })},
        {"R04", "from_the_cache", below, cold(60000, [](s x, double us) { x.jit(1, us).launch("k"); })},
        {"R04", "of_a_jit", passes,
         cold(60000,
              [](s x, double us) {
                  auto const id = x.call("cuModuleLoadData", 1);
                  x.p().sites.push_back({.correlation = id, .bytes = 2});
                  x.p().calls.back().end = scene::ns(x.now() + us);
                  x.jit(3, us).launch("k");
              })},
        {"R05", "fires", fires,
         loop(30,
              [](s y, int) {
                  y.on("a.py:1")
                      .launch("cutlass_80_simt_sgemm_128", {.takes = 90})
                      .on("a.py:2")
                      .launch("k", {.takes = 10});
              })},
        {"R05", "little", below,
         loop(30,
              [](s y, int) {
                  y.on("a.py:1")
                      .launch("cutlass_80_simt_sgemm_128", {.takes = 15})
                      .on("a.py:2")
                      .launch("k", {.takes = 85});
              })},
        {"R05", "fast_at_it", passes,
         loop(30,
              [](s y, int) {
                  y.on("a.py:1").launch("scan_f64", {.takes = 90}).on("a.py:2").launch("k", {.takes = 10});
              })},
        {"R06", "fires", fires, demoted(9, 60000, 2 << 20)},
        {"R06", "shorter", below, demoted(9, 30000, 2 << 20)},
        {"R06", "another_size", passes, demoted(9, 60000, 4 << 20)},
        {"R07", "fires", fires, dispatch("gpu", false, 9)},
        {"R07", "ran", below, dispatch("gpu", true, 9)},
        {"R07", "no_items", exempt, dispatch("gpu", false, 0)},
        {"R10", "fires", fires, cold(120000, nvrtc)},
        {"R10", "below", below, cold(80000, nvrtc)},
        {"R10", "empty", exempt, cold(120000, [](s x, double us) { x.compile(us, 0).launch("k"); })},
        {"R11", "fires", fires, cold(60000, [](s x, double us) { x.jit(3, us).launch("k"); })},
        {"R11", "below", below, cold(40000, [](s x, double us) { x.jit(3, us).launch("k"); })},
        {"R11", "inside_nvrtc", passes,
         cold(60000,
              [](s x, double us) {
                  auto const from = x.now();
                  x.jit(3, us);
                  x.p().compiles.push_back(
                      {.what = 1, .start = scene::ns(from), .end = scene::ns(from + us), .bytes = 10});
                  x.launch("k");
              })},
        {"R12", "fires", fires,
         cold(150000,
              [](s x, double us) {
                  x.call("cuModuleLoadData", us);
                  x.launch("k");
              })},
        {"R12", "below", below,
         cold(90000,
              [](s x, double us) {
                  x.call("cuModuleLoadData", us);
                  x.launch("k");
              })},
        {"R12", "names_only", passes,
         cold(150000,
              [](s x, double us) {
                  x.call("cuModuleGetFunction", us);
                  x.launch("k");
              })},
        {"R13", "fires", fires,
         cold(400000,
              [](s x, double us) {
                  x.call("cuDevicePrimaryCtxRetain", us);
                  x.launch("k");
              })},
        {"R13", "below", below,
         cold(200000,
              [](s x, double us) {
                  x.call("cuDevicePrimaryCtxRetain", us);
                  x.launch("k");
              })},
        {"R13", "other_call", passes,
         cold(400000,
              [](s x, double us) {
                  x.call("cuDeviceGetAttribute", us);
                  x.launch("k");
              })},
        {"R14", "fires", fires, cold(150000, [](s x, double us) { x.child("/usr/bin/ptxas", us).launch("k"); })},
        {"R14", "below", below, cold(90000, [](s x, double us) { x.child("/usr/bin/ptxas", us).launch("k"); })},
        {"R14", "no_compiler", passes, cold(150000, [](s x, double us) { x.child("/usr/bin/git", us).launch("k"); })},
        {"R15", "fires", fires,
         [](s x) {
             x.repeat(8, [](s y, int v) {
                 for (int k = 0; k < 3; ++k)
                     y.launch("tuned", {.takes = 10, .threads = 32u * static_cast<std::uint32_t>(v + 1)}).passes(8000);
             });
             x.repeat(40, [](s y, int) { y.on("a.py:1").launch("tuned", {.takes = 10, .threads = 64}); });
         }},
        {"R15", "two_variants", below,
         [](s x) {
             x.repeat(2, [](s y, int v) {
                 for (int k = 0; k < 9; ++k)
                     y.launch("tuned", {.takes = 10, .threads = 32u * static_cast<std::uint32_t>(v + 1)}).passes(8000);
             });
             x.repeat(40, [](s y, int) { y.on("a.py:1").launch("tuned", {.takes = 10, .threads = 64}); });
         }},
        {"R15", "grids_follow_data", passes,
         [](s x) {
             x.repeat(60, [](s y, int v) {
                 y.launch("k", {.takes = 10, .blocks = 100u + static_cast<std::uint32_t>(v)}).passes(8000);
             });
         }},
        {"R16", "fires", fires, compiles_in(30, 40)},
        {"R16", "twice", below, compiles_in(2, 40)},
        {"R16", "at_the_beginning", passes,
         [](s x) {
             x.repeat(40, [](s y, int i) {
                 plain_step(y);
                 if (i < 6) y.compile(2000);
             });
         }},
    };
}

}  // namespace kiln::audit::testing
