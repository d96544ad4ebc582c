// SPDX-License-Identifier: Apache-2.0
// Every rule three times: where it fires, just below, and where it lets pass.
#include "audit/judgement.hpp"
#include "unit/audit/scene.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace kiln::audit::testing {
namespace {

enum class expected { fires, quiet, exempt };

struct rule_case {
    std::string rule, name;
    expected what;
    std::function<void(scene&)> make;
    rule_options how = {};
    std::uint64_t times = 0;  // that it must count; 0: any
};

using s = scene&;
using body = std::function<void(scene&, int)>;

std::function<void(scene&)> loop(int times, body const& step) {
    return [=](s x) { x.repeat(times, [&](s y, int i) { step(y, i); }); };
}

void work(s x, double takes = 50) { x.on("a.py:1").launch("mul", {.takes = takes}); }

std::vector<rule_case> cases() {
    using enum expected;
    using enum direction;
    auto const cold = [](double us, auto const& what) {
        return [=](s x) {
            what(x, us);
            x.repeat(30, [](s y, int) { plain_step(y); });
        };
    };
    auto const nvrtc = [](s x, double us) { x.on("a.py:9").compile(us).launch("made"); };
    auto const two_streams = [](std::uint32_t flag, std::uint32_t other, std::uint32_t blocks) {
        return [=](s x) {
            x.stream_flag(8, flag).stream_flag(9, flag);
            x.repeat(60, [&](s y, int) {
                y.on("a.py:1")
                    .launch("left", {.takes = 60, .blocks = blocks, .on_stream = 8})
                    .on("a.py:2")
                    .launch("right", {.takes = 60, .blocks = blocks, .on_stream = other})
                    .passes(110);
            });
        };
    };
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
    auto const after_read = [](std::string_view kernel_before, std::uint32_t grid_change) {
        return loop(40, [=](s y, int i) {
            y.on("a.py:1")
                .launch(kernel_before)
                .on("a.py:2")
                .read(8)
                .on("a.py:3")
                .launch("fill", {.takes = 20, .blocks = 500 + grid_change * static_cast<std::uint32_t>(i)})
                .passes(10);
        });
    };
    auto const compiles_in = [](int steps, int of) {
        return [=](s x) {
            x.repeat(of, [&](s y, int i) {
                plain_step(y);
                if (i >= of - steps) y.compile(2000);
            });
        };
    };
    auto const growth = [](int times, double by, bool copies) {
        return [=](s x) {
            double bytes = 1 << 20;
            for (int i = 0; i < times; ++i, bytes *= by) {
                x.on("a.py:4").allocate(10, 0, static_cast<std::uint64_t>(bytes));
                if (copies) x.copy(on_device, 1 << 20);
            }
            x.repeat(10, [](s y, int) { plain_step(y); });
        };
    };
    auto const costs = [](double from, double us) {  // beside 100 ms of steps that begin at 20 ms
        return [=](s x) {
            x.p().overheads.push_back({.what = 2, .start = scene::ns(from), .end = scene::ns(from + us)});
            x.passes(18000).repeat(1000, [](s y, int) { plain_step(y); });
        };
    };
    return {
        {"R01", "fires", fires, [](s) {}, {.expect_gpu = true}},
        {"R01", "one_kernel", quiet, [](s x) { x.launch("k"); }, {.expect_gpu = true}},
        {"R01",
         "not_recorded",
         quiet,
         [](s x) { x.p().notes.push_back({.what = 1, .text = x.text("no libcupti was found"), .time = 1}); },
         {.expect_gpu = true}},
        {"R02", "fires", fires, busy_cpu(0.03, 0.9)},
        {"R02", "busy_enough", quiet, busy_cpu(0.6, 0.9)},
        {"R02", "idle_cpu", exempt, busy_cpu(0.03, 0.2)},
        {"R03", "fires", fires, failed_call(1.5e6, 0.95)},
        {"R03", "short", quiet, failed_call(0.8e6, 0.95)},
        {"R03", "probe", exempt,
         [](s x) {
             x.repeat(10, [](s y, int) {
                 plain_step(y);
                 y.call("cudaStreamSynchronize", 1);
                 y.p().calls.back().status = 600;
             });
         }},
        {"R04", "fires", fires, cold(60000, [](s x, double us) { x.jit(3, us).launch("k"); })},
        {"R04", "from_the_cache", quiet, cold(60000, [](s x, double us) { x.jit(1, us).launch("k"); })},
        {"R04", "of_a_jit", quiet,
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
        {"R05", "little", quiet,
         loop(30,
              [](s y, int) {
                  y.on("a.py:1")
                      .launch("cutlass_80_simt_sgemm_128", {.takes = 15})
                      .on("a.py:2")
                      .launch("k", {.takes = 85});
              })},
        {"R05", "fast_at_it", quiet,
         loop(30,
              [](s y, int) {
                  y.on("a.py:1").launch("scan_f64", {.takes = 90}).on("a.py:2").launch("k", {.takes = 10});
              })},
        {"R06", "fires", fires, demoted(9, 60000, 2 << 20)},
        {"R06", "shorter", quiet, demoted(9, 30000, 2 << 20)},
        {"R06", "another_size", quiet, demoted(9, 60000, 4 << 20)},
        {"R07", "fires", fires, dispatch("gpu", false, 9)},
        {"R07", "ran", quiet, dispatch("gpu", true, 9)},
        {"R07", "no_items", exempt, dispatch("gpu", false, 0)},
        {"R10", "fires", fires, cold(120000, nvrtc)},
        {"R10", "below", quiet, cold(80000, nvrtc)},
        {"R10", "empty", exempt, cold(120000, [](s x, double us) { x.compile(us, 0).launch("k"); })},
        {"R11", "fires", fires, cold(60000, [](s x, double us) { x.jit(3, us).launch("k"); })},
        {"R11", "below", quiet, cold(40000, [](s x, double us) { x.jit(3, us).launch("k"); })},
        {"R11", "inside_nvrtc", quiet,
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
        {"R12", "below", quiet,
         cold(90000,
              [](s x, double us) {
                  x.call("cuModuleLoadData", us);
                  x.launch("k");
              })},
        {"R12", "names_only", quiet,
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
        {"R13", "below", quiet,
         cold(200000,
              [](s x, double us) {
                  x.call("cuDevicePrimaryCtxRetain", us);
                  x.launch("k");
              })},
        {"R13", "other_call", quiet,
         cold(400000,
              [](s x, double us) {
                  x.call("cuDeviceGetAttribute", us);
                  x.launch("k");
              })},
        {"R14", "fires", fires, cold(150000, [](s x, double us) { x.child("/usr/bin/ptxas", us).launch("k"); })},
        {"R14", "below", quiet, cold(90000, [](s x, double us) { x.child("/usr/bin/ptxas", us).launch("k"); })},
        {"R14", "no_compiler", quiet, cold(150000, [](s x, double us) { x.child("/usr/bin/git", us).launch("k"); })},
        {"R15", "fires", fires,
         [](s x) {
             x.repeat(8, [](s y, int v) {
                 for (int k = 0; k < 3; ++k)
                     y.launch("tuned", {.takes = 10, .threads = 32u * static_cast<std::uint32_t>(v + 1)}).passes(8000);
             });
             x.repeat(40, [](s y, int) { y.on("a.py:1").launch("tuned", {.takes = 10, .threads = 64}); });
         }},
        {"R15", "two_variants", quiet,
         [](s x) {
             x.repeat(2, [](s y, int v) {
                 for (int k = 0; k < 9; ++k)
                     y.launch("tuned", {.takes = 10, .threads = 32u * static_cast<std::uint32_t>(v + 1)}).passes(8000);
             });
             x.repeat(40, [](s y, int) { y.on("a.py:1").launch("tuned", {.takes = 10, .threads = 64}); });
         }},
        {"R15", "grids_follow_data", quiet,
         [](s x) {
             x.repeat(60, [](s y, int v) {
                 y.launch("k", {.takes = 10, .blocks = 100u + static_cast<std::uint32_t>(v)}).passes(8000);
             });
         }},
        {"R16", "fires", fires, compiles_in(30, 40)},
        {"R16", "twice", quiet, compiles_in(2, 40)},
        {"R16", "at_the_beginning", quiet,
         [](s x) {
             x.repeat(40, [](s y, int i) {
                 plain_step(y);
                 if (i < 6) y.compile(2000);
             });
         }},
        {"R20", "fires", fires,
         loop(40, [](s y, int) { y.on("a.py:1").launch("k").on("a.py:2").wait("cudaStreamSynchronize").passes(30); })},
        {"R20", "few", quiet,
         loop(19, [](s y, int) { y.on("a.py:1").launch("k").on("a.py:2").wait("cudaStreamSynchronize").passes(30); })},
        {"R20", "timing", exempt,
         loop(40,
              [](s y, int) {
                  y.on("a.py:1").launch("k").on("a.py:2").wait("cudaStreamSynchronize").call("cudaEventElapsedTime", 1);
                  y.passes(30);
              })},
        {"R20", "tried_out", exempt,
         [](s x) {
             x.repeat(60, [](s y, int i) {
                 y.launch(fmt::format("variant{}", i)).wait("cudaStreamSynchronize").passes(30);
             });
             x.repeat(200, [](s y, int i) {
                 y.launch("mul").launch("add").passes(94);
                 if (i % 20 == 0) y.wait("cudaStreamSynchronize").passes(30);
             });
         }},
        {"R21", "fires", fires,
         loop(40, [](s y, int) { y.on("a.py:1").launch("k").on("a.py:2").wait("cudaDeviceSynchronize").passes(30); })},
        {"R21", "few", quiet,
         loop(19, [](s y, int) { y.on("a.py:1").launch("k").on("a.py:2").wait("cudaDeviceSynchronize").passes(30); })},
        {"R21", "timing", exempt,
         loop(40,
              [](s y, int) {
                  y.on("a.py:1").launch("k").on("a.py:2").wait("cudaDeviceSynchronize").call("cudaEventElapsedTime", 1);
                  y.passes(30);
              })},
        {"R22", "fires", fires, loop(40, [](s y, int) { y.on("a.py:1").launch("k").on("a.py:2").read(4).passes(30); })},
        {"R22", "few", quiet, loop(19, [](s y, int) { y.on("a.py:1").launch("k").on("a.py:2").read(4).passes(30); })},
        {"R22", "fence", exempt, after_read("DeviceReduce", 1)},
        {"R23", "fires", fires,
         loop(40,
              [](s y, int) {
                  y.on("a.py:1")
                      .launch("k")
                      .on("a.py:2")
                      .read(4096)
                      .on("a.py:3")
                      .launch("l")
                      .on("a.py:4")
                      .copy(to_device, 16)
                      .passes(30);
              })},
        {"R23", "scalar", quiet,
         loop(40,
              [](s y, int) {
                  y.on("a.py:1")
                      .launch("k")
                      .on("a.py:2")
                      .read(64)
                      .on("a.py:3")
                      .launch("l")
                      .on("a.py:4")
                      .copy(to_device, 16)
                      .passes(30);
              })},
        {"R23", "few", quiet,
         loop(50,
              [](s y, int i) {
                  plain_step(y);
                  if (i >= 43) y.on("a.py:3").read(4096);
              })},
        {"R24", "fires", fires,
         loop(40,
              [](s y, int) {
                  y.on("a.py:1").launch("k").on("a.py:2").copy(to_host, 4096, {.takes = 30, .async = false});
              })},
        {"R24", "few", quiet,
         loop(19,
              [](s y, int) {
                  y.on("a.py:1").launch("k").on("a.py:2").copy(to_host, 4096, {.takes = 30, .async = false});
              })},
        {"R24", "on_the_device", quiet,
         loop(40,
              [](s y, int) {
                  y.on("a.py:1").launch("k").on("a.py:2").copy(on_device, 4096, {.takes = 30, .async = false});
              })},
        {"R27", "fires", fires, two_streams(1, scene::null_stream, 8)},
        {"R27", "no_null_stream", quiet, two_streams(1, 9, 8)},
        {"R27", "non_blocking", quiet, two_streams(2, scene::null_stream, 8)},
        {"R28", "fires", fires, two_streams(2, 9, 8)},
        {"R28", "one_stream", quiet, two_streams(2, 8, 8)},
        {"R28", "full_kernels", exempt, two_streams(2, 9, 1000)},
        {"R28", "next_to_nothing", exempt,
         loop(60,
              [](s y, int) {
                  y.on("a.py:1")
                      .launch("k", {.takes = 2, .blocks = 8, .on_stream = 8})
                      .passes(20000)
                      .on("a.py:2")
                      .copy(to_device, 16, {.takes = 1, .on_stream = 9});
              })},
        {"R30", "fires", fires,
         loop(20,
              [](s y, int) {
                  y.on("a.py:1")
                      .copy(to_device, 1 << 20, {.takes = 40, .host = memory_kind::pageable})
                      .on("a.py:2")
                      .launch("k");
              })},
        {"R30", "pinned", quiet,
         loop(20,
              [](s y, int) {
                  y.on("a.py:1")
                      .copy(to_device, 1 << 20, {.takes = 40, .host = memory_kind::pinned})
                      .on("a.py:2")
                      .launch("k");
              })},
        {"R30", "waits_itself", exempt,
         loop(20,
              [](s y, int) {
                  y.on("a.py:1")
                      .copy(to_device, 1 << 20, {.takes = 40, .host = memory_kind::pageable})
                      .wait("cudaStreamSynchronize")
                      .on("a.py:2")
                      .launch("k");
              })},
        {"R31", "fires", fires,
         loop(40,
              [](s y, int) {
                  y.on("a.py:1").copy(to_device, 4).copy(to_device, 8).copy(to_device, 12).on("a.py:2").launch("k");
              })},
        {"R31", "two_per_step", quiet,
         loop(40, [](s y, int) { y.on("a.py:1").copy(to_device, 4).copy(to_device, 8).on("a.py:2").launch("k"); })},
        {"R31", "large", quiet,
         loop(40,
              [](s y, int) {
                  y.on("a.py:1")
                      .copy(to_device, 1 << 17)
                      .copy(to_device, 1 << 17)
                      .copy(to_device, 1 << 17)
                      .on("a.py:2")
                      .launch("k");
              })},
        {"R32", "fires", fires,
         loop(20,
              [](s y, int i) {
                  auto const h = 100u + static_cast<std::uint64_t>(i);
                  y.on("a.py:1")
                      .launch("k")
                      .on("a.py:2")
                      .copy(to_host, 8192, {.hash = h})
                      .wait("cudaStreamSynchronize")
                      .on("a.py:3")
                      .copy(to_device, 8192, {.hash = h});
              })},
        {"R32", "two", quiet,
         [](s x) {
             x.repeat(2, [](s y, int) {
                 y.on("a.py:2")
                     .copy(to_host, 8192, {.hash = 9})
                     .wait("cudaStreamSynchronize")
                     .on("a.py:3")
                     .copy(to_device, 8192, {.hash = 9});
             });
             x.repeat(20, [](s y, int) { plain_step(y); });
         }},
        {"R32", "other_content", quiet,
         loop(20,
              [](s y, int i) {
                  auto const h = 100u + static_cast<std::uint64_t>(i);
                  y.on("a.py:1")
                      .launch("k")
                      .on("a.py:2")
                      .copy(to_host, 8192, {.hash = h})
                      .wait("cudaStreamSynchronize")
                      .on("a.py:3")
                      .copy(to_device, 8192, {.hash = h + 1000});
              })},
        {"R33", "fires", fires,
         loop(20, [](s y, int) { y.on("a.py:1").copy(to_device, 8192, {.hash = 7}).on("a.py:2").launch("k"); })},
        {"R33", "small", quiet,
         loop(20, [](s y, int) { y.on("a.py:1").copy(to_device, 2048, {.hash = 7}).on("a.py:2").launch("k"); })},
        {"R33", "new_content", quiet,
         loop(20,
              [](s y, int i) {
                  y.on("a.py:1")
                      .copy(to_device, 8192, {.hash = 7u + static_cast<std::uint64_t>(i)})
                      .on("a.py:2")
                      .launch("k");
              })},
        {"R36", "fires", fires,
         loop(60,
              [](s y, int) {
                  y.on("a.py:1").launch("k", {.takes = 80}).on("a.py:2").copy(on_device, 1 << 20, {.takes = 30});
              })},
        {"R36", "little", quiet,
         loop(60,
              [](s y, int) {
                  y.on("a.py:1").launch("k", {.takes = 90}).on("a.py:2").copy(on_device, 1 << 20, {.takes = 10});
              })},
        {"R36",
         "budget_allows",
         quiet,
         loop(60,
              [](s y, int) {
                  y.on("a.py:1").launch("k", {.takes = 80}).on("a.py:2").copy(on_device, 1 << 20, {.takes = 30});
              }),
         {.numbers = {{"R36.share", 0.5}}}},
        {"R37", "fires", fires,
         [](s x) {
             x.on("a.py:1").allocate();
             x.p().memory.back().memory = 5;
             x.repeat(10, [](s y, int) { plain_step(y); });
         }},
        {"R37", "small", quiet,
         [](s x) {
             x.on("a.py:1").allocate(10, 0, 1 << 19);
             x.p().memory.back().memory = 5;
             x.repeat(10, [](s y, int) { plain_step(y); });
         }},
        {"R37", "device_memory", quiet,
         [](s x) {
             x.on("a.py:1").allocate();
             x.repeat(10, [](s y, int) { plain_step(y); });
         }},
        {"R40", "fires", fires,
         loop(40, [](s y, int) { y.on("a.py:1").allocate().on("a.py:2").launch("k").on("a.py:3").release(); })},
        {"R40", "few", quiet,
         loop(19, [](s y, int) { y.on("a.py:1").allocate().on("a.py:2").launch("k").on("a.py:3").release(); })},
        {"R40", "one_slow_call", fires,
         [](s x) {
             x.repeat(40, [](s y, int i) {
                 y.on("a.py:1").allocate(i == 38 ? 60000 : 20).on("a.py:2").launch("k").on("a.py:3").release();
             });
         }},
        {"R40", "from_a_pool", quiet,
         loop(40,
              [](s y, int) {
                  y.on("a.py:1").call("cudaMallocAsync", 5);
                  y.on("a.py:2").launch("k").on("a.py:3").call("cudaFreeAsync", 5);
              })},
        {"R41",
         "fires",
         fires,
         loop(20,
              [](s y, int) {
                  y.repeat(6, [](s z, int) { z.on("a.py:1").allocate(); })
                      .on("a.py:2")
                      .launch("k")
                      .repeat(6, [](s z, int) { z.on("a.py:3").release(); });
              }),
         {},
         20},
        {"R41", "four_frees", quiet,
         loop(20,
              [](s y, int) {
                  y.repeat(4, [](s z, int) { z.on("a.py:1").allocate(); })
                      .on("a.py:2")
                      .launch("k")
                      .repeat(4, [](s z, int) { z.on("a.py:3").release(); });
              })},
        {"R41", "at_the_end", quiet,
         [](s x) {
             x.repeat(20, [](s y, int) { plain_step(y); });
             x.repeat(30, [](s z, int) { z.on("a.py:3").release(); });
         }},
        {"R42", "fires", fires,
         [](s x) {
             x.on("a.py:1").allocate(10, 2).release().allocate();
             x.repeat(10, [](s y, int) { plain_step(y); });
         }},
        {"R42", "nothing_freed", quiet,
         [](s x) {
             x.on("a.py:1").allocate(10, 2).allocate();
             x.repeat(10, [](s y, int) { plain_step(y); });
         }},
        {"R42", "no_failure", quiet,
         [](s x) {
             x.on("a.py:1").allocate().release().allocate();
             x.repeat(10, [](s y, int) { plain_step(y); });
         }},
        {"R46", "fires", fires, growth(6, 1.5, true)},
        {"R46", "three_times", quiet, growth(4, 1.5, true)},
        {"R46", "nothing_copied", exempt, growth(6, 1.5, false)},
        {"R50", "fires", fires,
         loop(600,
              [](s y, int) {
                  y.on("a.py:1").launch("k", {.takes = 2}).passes(10).on("a.py:2").launch("l", {.takes = 2}).passes(10);
              })},
        {"R50", "fewer", quiet,
         loop(400,
              [](s y, int) {
                  y.on("a.py:1").launch("k", {.takes = 2}).passes(10).on("a.py:2").launch("l", {.takes = 2}).passes(10);
              })},
        {"R50", "graphs", quiet,
         loop(600,
              [](s y, int) {
                  y.on("a.py:1")
                      .launch("k", {.takes = 2, .graph = 3})
                      .passes(10)
                      .on("a.py:2")
                      .launch("l", {.takes = 2, .graph = 3})
                      .passes(10);
              })},
        {"R52", "fires", fires,
         loop(60,
              [](s y, int) {
                  y.on("a.py:1").launch("k", {.takes = 100, .blocks = 8}).on("a.py:2").launch("l", {.takes = 5});
              })},
        {"R52", "enough_blocks", quiet,
         loop(60,
              [](s y, int) {
                  y.on("a.py:1").launch("k", {.takes = 100, .blocks = 132}).on("a.py:2").launch("l", {.takes = 5});
              })},
        {"R52", "tuned", exempt,
         loop(60,
              [](s y, int) {
                  y.on("a.py:1")
                      .launch("sm90_xmma_gemm", {.takes = 100, .blocks = 8})
                      .on("a.py:2")
                      .launch("l", {.takes = 5});
              })},
        {"R53", "fires", fires,
         loop(60,
              [](s y, int) {
                  y.on("a.py:1").launch("k", {.takes = 10, .threads = 100}).on("a.py:2").launch("l", {.takes = 50});
              })},
        {"R53", "little", quiet,
         loop(60,
              [](s y, int) {
                  y.on("a.py:1").launch("k", {.takes = 2, .threads = 100}).on("a.py:2").launch("l", {.takes = 50});
              })},
        {"R53", "whole_warps", quiet,
         loop(60,
              [](s y, int) {
                  y.on("a.py:1").launch("k", {.takes = 10, .threads = 96}).on("a.py:2").launch("l", {.takes = 50});
              })},
        {"R54", "fires", fires,
         loop(60,
              [](s y, int) {
                  y.on("a.py:1")
                      .launch("k", {.takes = 50, .threads = 64, .shared = 100 * 1024})
                      .on("a.py:2")
                      .launch("l", {.takes = 50});
              })},
        {"R54", "fits", quiet,
         loop(60,
              [](s y, int) {
                  y.on("a.py:1")
                      .launch("k", {.takes = 50, .threads = 512, .shared = 50 * 1024})
                      .on("a.py:2")
                      .launch("l", {.takes = 50});
              })},
        {"R54", "all_of_it", quiet,
         loop(60,
              [](s y, int) {
                  y.on("a.py:1")
                      .launch("k", {.takes = 50, .threads = 64, .shared = 200 * 1024})
                      .on("a.py:2")
                      .launch("l", {.takes = 50});
              })},
        {"R57", "fires", fires,
         loop(12,
              [](s y, int) {
                  for (int k = 0; k < 40; ++k) y.on("a.py:1").launch("row", {.takes = 5, .blocks = 4}).passes(10);
                  y.on("a.py:2").launch("all");
              })},
        {"R57", "thirty", quiet,
         loop(12,
              [](s y, int) {
                  for (int k = 0; k < 30; ++k) y.on("a.py:1").launch("row", {.takes = 5, .blocks = 4}).passes(10);
                  y.on("a.py:2").launch("all");
              })},
        {"R57", "layers", exempt,
         loop(12,
              [](s y, int) {
                  for (int k = 0; k < 40; ++k)
                      y.on(fmt::format("a.py:{}", 10 + k)).launch("row", {.takes = 5, .blocks = 4}).passes(10);
                  y.on("a.py:2").launch("all");
              })},
        {"R58", "fires", fires, loop(40, [](s y, int) { plain_step(y), y.passes(60); })},
        {"R58", "few_steps", quiet, loop(18, [](s y, int) { plain_step(y), y.passes(60); })},
        {"R58", "waits", quiet,
         loop(40, [](s y, int) { plain_step(y), y.on("a.py:3").wait("cudaStreamSynchronize").passes(60); })},
        {"R60", "fires", fires,
         loop(40,
              [](s y, int) {
                  work(y, 50);
                  y.on("a.py:2").launch("l", {.takes = 1}).passes(100);
              })},
        {"R60", "little", quiet,
         loop(40,
              [](s y, int) {
                  work(y, 400);
                  y.on("a.py:2").launch("l", {.takes = 1}).passes(396 + 12);
              })},
        {"R60",
         "budget_allows",
         quiet,
         loop(40,
              [](s y, int) {
                  work(y, 50);
                  y.on("a.py:2").launch("l", {.takes = 1}).passes(100);
              }),
         {.numbers = {{"R60.share", 0.99}}}},
        {"R62", "fires", fires,
         loop(60,
              [](s y, int) {
                  y.on("a.py:1")
                      .launch("k", {.takes = 100, .blocks = 30})
                      .on("a.py:2")
                      .launch("l", {.takes = 2, .blocks = 30});
              })},
        {"R62", "enough", quiet,
         loop(60,
              [](s y, int) {
                  y.on("a.py:1")
                      .launch("k", {.takes = 100, .blocks = 45})
                      .on("a.py:2")
                      .launch("l", {.takes = 2, .blocks = 45});
              })},
        {"R62",
         "budget_allows",
         quiet,
         loop(60,
              [](s y, int) {
                  y.on("a.py:1")
                      .launch("k", {.takes = 100, .blocks = 30})
                      .on("a.py:2")
                      .launch("l", {.takes = 2, .blocks = 30});
              }),
         {.numbers = {{"R62.share", 0.1}}}},
        {"R65", "fires", fires,
         loop(40,
              [](s y, int i) {
                  for (int k = 0; k < 4 + (i * 7) % 9; ++k) y.on("a.py:1").launch("k");
                  y.on("a.py:2").read(4);
              })},
        {"R65", "steady_count", quiet,
         loop(40,
              [](s y, int) {
                  for (int k = 0; k < 6; ++k) y.on("a.py:1").launch("k");
                  y.on("a.py:2").read(4);
              })},
        {"R65", "short_loops", quiet,
         loop(40,
              [](s y, int i) {
                  for (int k = 0; k < 1 + i % 3; ++k) y.on("a.py:1").launch("k");
                  y.on("a.py:2").read(4);
              })},
        {"R66", "fires", fires,
         loop(20,
              [](s y, int) {
                  y.on("a.py:1").launch("k", {.takes = 3000}).on("a.py:2").launch("l", {.takes = 1}).passes(6000);
              })},
        {"R66", "short_gaps", quiet,
         loop(20,
              [](s y, int) {
                  y.on("a.py:1").launch("k", {.takes = 3000}).on("a.py:2").launch("l", {.takes = 1}).passes(3500);
              })},
        {"R66",
         "budget_allows",
         quiet,
         loop(20,
              [](s y, int) {
                  y.on("a.py:1").launch("k", {.takes = 3000}).on("a.py:2").launch("l", {.takes = 1}).passes(6000);
              }),
         {.numbers = {{"R66.share", 0.99}}}},
        {"R90", "fires", fires, costs(20000, 20000)},
        {"R90", "below", quiet, costs(20000, 3000)},
        {"R90", "once_at_the_beginning", quiet, costs(1200, 18000)},
        {"R91", "fires", fires,
         [](s x) {
             x.repeat(40, [](s y, int) { plain_step(y); });
             x.ends().p().ends.back().dropped = 5;
         }},
        {"R91", "none", quiet, [](s x) { x.repeat(40, [](s y, int) { plain_step(y); }); }},
        {"R92", "fires", fires, [](s x) { x.launch("a").launch("b").launch("c"); }},
        {"R92", "steps", quiet, loop(40, [](s y, int) { plain_step(y); })},
        {"R93", "fires", fires,
         [](s x) {
             x.all().about = R"({"environment":{"CUDA_LAUNCH_BLOCKING":"1"}})";
             x.repeat(40, [](s y, int) { plain_step(y); });
         }},
        {"R93", "off", quiet,
         [](s x) {
             x.all().about = R"({"environment":{"CUDA_LAUNCH_BLOCKING":"0"}})";
             x.repeat(40, [](s y, int) { plain_step(y); });
         }},
        {"R94", "fires", fires,
         [](s x) {
             auto const from = x.now();
             x.repeat(40, [](s y, int) { plain_step(y); });
             x.launch("long", {.takes = 5000});
             x.p().ranges.push_back(
                 {.thread = 1, .name = x.text("timed"), .start = scene::ns(from), .end = scene::ns(x.now())});
         }},
        {"R94", "waits", quiet,
         [](s x) {
             auto const from = x.now();
             x.repeat(40, [](s y, int) { plain_step(y); });
             x.launch("long", {.takes = 5000}).wait("cudaDeviceSynchronize");
             x.p().ranges.push_back(
                 {.thread = 1, .name = x.text("timed"), .start = scene::ns(from), .end = scene::ns(x.now())});
         }},
    };
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

TEST(audit_rules, are_forty_two_and_five_with_three_cases_each) {
    std::map<std::string, int> counted;
    for (auto const& c : cases()) ++counted[c.rule];
    std::size_t validity = 0;
    for (auto const& r : rules()) {
        validity += r.id >= "R90" ? 1 : 0;
        if (r.id == "R17") continue;  // judged by diff: see judgement_test.cpp
        EXPECT_GE(counted[std::string{r.id}], r.id >= "R90" ? 2 : 3) << r.id;
        EXPECT_FALSE(r.fires.empty() || r.remedy.empty() || r.level.empty()) << r.id;
    }
    EXPECT_EQ(rules().size() - validity, 42u);
    EXPECT_EQ(validity, 5u);
}

}  // namespace
}  // namespace kiln::audit::testing
