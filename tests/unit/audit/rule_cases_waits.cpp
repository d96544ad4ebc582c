// SPDX-License-Identifier: Apache-2.0
// Waits, streams, copies and memory (R20 to R46).
#include "unit/audit/rule_cases.hpp"

namespace kiln::audit::testing {

std::vector<rule_case> cases_of_waits() {
    using enum expected;
    using enum direction;
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
    return {
        {"R20", "fires", fires,
         loop(40, [](s y, int) { y.on("a.py:1").launch("k").on("a.py:2").wait("cudaStreamSynchronize").passes(30); })},
        {"R20", "few", below,
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
        {"R21", "few", below,
         loop(19, [](s y, int) { y.on("a.py:1").launch("k").on("a.py:2").wait("cudaDeviceSynchronize").passes(30); })},
        {"R21", "timing", exempt,
         loop(40,
              [](s y, int) {
                  y.on("a.py:1").launch("k").on("a.py:2").wait("cudaDeviceSynchronize").call("cudaEventElapsedTime", 1);
                  y.passes(30);
              })},
        {"R22", "fires", fires, loop(40, [](s y, int) { y.on("a.py:1").launch("k").on("a.py:2").read(4).passes(30); })},
        {"R22", "few", below, loop(19, [](s y, int) { y.on("a.py:1").launch("k").on("a.py:2").read(4).passes(30); })},
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
        {"R23", "scalar", passes,
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
        {"R23", "few", below,
         loop(50,
              [](s y, int i) {
                  plain_step(y);
                  if (i >= 43) y.on("a.py:3").read(4096);
              })},
        {"R23", "then_new_input", exempt,
         loop(40,
              [](s y, int) {
                  y.on("a.py:2").launch("k").read(4096).on("a.py:1").copy(to_device, 2048).on("a.py:2").passes(30);
              })},
        {"R24", "fires", fires,
         loop(40,
              [](s y, int) {
                  y.on("a.py:1").launch("k").on("a.py:2").copy(to_host, 4096, {.takes = 30, .async = false});
              })},
        {"R24", "few", below,
         loop(19,
              [](s y, int) {
                  y.on("a.py:1").launch("k").on("a.py:2").copy(to_host, 4096, {.takes = 30, .async = false});
              })},
        {"R24", "on_the_device", passes,
         loop(40,
              [](s y, int) {
                  y.on("a.py:1").launch("k").on("a.py:2").copy(on_device, 4096, {.takes = 30, .async = false});
              })},
        {"R27", "fires", fires, two_streams(1, scene::null_stream, 8)},
        {"R27", "no_null_stream", below, two_streams(1, 9, 8)},
        {"R27", "non_blocking", passes, two_streams(2, scene::null_stream, 8)},
        {"R28", "fires", fires, two_streams(2, 9, 8)},
        {"R28", "one_stream", below, two_streams(2, 8, 8)},
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
        {"R30", "pinned", below,
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
        {"R31", "two_per_step", below,
         loop(40, [](s y, int) { y.on("a.py:1").copy(to_device, 4).copy(to_device, 8).on("a.py:2").launch("k"); })},
        {"R31", "large", passes,
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
        {"R32", "two", below,
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
        {"R32", "other_content", passes,
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
        {"R33", "begin_alike", exempt,
         [](s x) {
             x.repeat(20, [](s y, int) { y.on("a.py:9").copy(to_device, 8192, {.hash = 7}).passes(10); });
             x.on("a.py:9").compile(1000).repeat(40, [](s y, int) { plain_step(y); });
         }},
        {"R33", "fires", fires,
         loop(20, [](s y, int) { y.on("a.py:1").copy(to_device, 8192, {.hash = 7}).on("a.py:2").launch("k"); })},
        {"R33", "small", below,
         loop(20, [](s y, int) { y.on("a.py:1").copy(to_device, 2048, {.hash = 7}).on("a.py:2").launch("k"); })},
        {"R33", "new_content", passes,
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
        {"R36", "little", below,
         loop(60,
              [](s y, int) {
                  y.on("a.py:1").launch("k", {.takes = 90}).on("a.py:2").copy(on_device, 1 << 20, {.takes = 10});
              })},
        {"R36",
         "budget_allows",
         passes,
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
        {"R37", "small", below,
         [](s x) {
             x.on("a.py:1").allocate(10, 0, 1 << 19);
             x.p().memory.back().memory = 5;
             x.repeat(10, [](s y, int) { plain_step(y); });
         }},
        {"R37", "device_memory", passes,
         [](s x) {
             x.on("a.py:1").allocate();
             x.repeat(10, [](s y, int) { plain_step(y); });
         }},
        {"R40", "fires", fires,
         loop(40, [](s y, int) { y.on("a.py:1").allocate().on("a.py:2").launch("k").on("a.py:3").release(); })},
        {"R40", "few", below,
         loop(19, [](s y, int) { y.on("a.py:1").allocate().on("a.py:2").launch("k").on("a.py:3").release(); })},
        {"R40", "one_slow_call", fires,
         [](s x) {
             x.repeat(40, [](s y, int i) {
                 y.on("a.py:1").allocate(i == 38 ? 60000 : 20).on("a.py:2").launch("k").on("a.py:3").release();
             });
         }},
        {"R40", "from_a_pool", passes,
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
        {"R41", "four_frees", below,
         loop(20,
              [](s y, int) {
                  y.repeat(4, [](s z, int) { z.on("a.py:1").allocate(); })
                      .on("a.py:2")
                      .launch("k")
                      .repeat(4, [](s z, int) { z.on("a.py:3").release(); });
              })},
        {"R41", "at_the_end", passes,
         [](s x) {
             x.repeat(20, [](s y, int) { plain_step(y); });
             x.repeat(30, [](s z, int) { z.on("a.py:3").release(); });
         }},
        {"R42", "fires", fires,
         [](s x) {
             x.on("a.py:1").allocate(10, 2).release().allocate();
             x.repeat(10, [](s y, int) { plain_step(y); });
         }},
        {"R42", "nothing_freed", below,
         [](s x) {
             x.on("a.py:1").allocate(10, 2).allocate();
             x.repeat(10, [](s y, int) { plain_step(y); });
         }},
        {"R42", "no_failure", passes,
         [](s x) {
             x.on("a.py:1").allocate().release().allocate();
             x.repeat(10, [](s y, int) { plain_step(y); });
         }},
        {"R46", "fires", fires, growth(6, 1.5, true)},
        {"R46", "three_times", below, growth(4, 1.5, true)},
        {"R46", "nothing_copied", exempt, growth(6, 1.5, false)},
    };
}

}  // namespace kiln::audit::testing
