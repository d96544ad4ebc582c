// SPDX-License-Identifier: Apache-2.0
// How work is cut into launches, and whether it is evidence (R50 to R94).
#include "unit/audit/rule_cases.hpp"

namespace kiln::audit::testing {

std::vector<rule_case> cases_of_launches() {
    using enum expected;
    auto const costs = [](double from, double us) {  // beside a second of steps that begin at 200 ms
        return [=](s x) {
            x.p().overheads.push_back({.what = 2, .start = scene::ns(from), .end = scene::ns(from + us)});
            x.passes(198000).repeat(1000, [](s y, int) {
                plain_step(y);
                y.passes(900);
            });
        };
    };
    return {
        {"R50", "fires", fires,
         loop(600,
              [](s y, int) {
                  y.on("a.py:1").launch("k", {.takes = 2}).passes(10).on("a.py:2").launch("l", {.takes = 2}).passes(10);
              })},
        {"R50", "fewer", below,
         loop(400,
              [](s y, int) {
                  y.on("a.py:1").launch("k", {.takes = 2}).passes(10).on("a.py:2").launch("l", {.takes = 2}).passes(10);
              })},
        {"R50", "graphs", passes,
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
        {"R52", "enough_blocks", below,
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
        {"R53", "little", below,
         loop(60,
              [](s y, int) {
                  y.on("a.py:1").launch("k", {.takes = 2, .threads = 100}).on("a.py:2").launch("l", {.takes = 50});
              })},
        {"R53", "whole_warps", passes,
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
        {"R54", "fits", below,
         loop(60,
              [](s y, int) {
                  y.on("a.py:1")
                      .launch("k", {.takes = 50, .threads = 512, .shared = 50 * 1024})
                      .on("a.py:2")
                      .launch("l", {.takes = 50});
              })},
        {"R54", "all_of_it", passes,
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
        {"R57", "thirty", below,
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
        {"R58", "few_steps", below, loop(18, [](s y, int) { plain_step(y), y.passes(60); })},
        {"R58", "waits", passes,
         loop(40, [](s y, int) { plain_step(y), y.on("a.py:3").wait("cudaStreamSynchronize").passes(60); })},
        {"R60", "fires", fires,
         loop(40,
              [](s y, int) {
                  work(y, 50);
                  y.on("a.py:2").launch("l", {.takes = 1}).passes(100);
              })},
        {"R60", "little", below,
         loop(40,
              [](s y, int) {
                  work(y, 400);
                  y.on("a.py:2").launch("l", {.takes = 1}).passes(396 + 12);
              })},
        {"R60",
         "budget_allows",
         passes,
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
        {"R62", "enough", below,
         loop(60,
              [](s y, int) {
                  y.on("a.py:1")
                      .launch("k", {.takes = 100, .blocks = 45})
                      .on("a.py:2")
                      .launch("l", {.takes = 2, .blocks = 45});
              })},
        {"R62",
         "budget_allows",
         passes,
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
        {"R65", "steady_count", below,
         loop(40,
              [](s y, int) {
                  for (int k = 0; k < 6; ++k) y.on("a.py:1").launch("k");
                  y.on("a.py:2").read(4);
              })},
        {"R65", "short_loops", passes,
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
        {"R66", "short_gaps", below,
         loop(20,
              [](s y, int) {
                  y.on("a.py:1").launch("k", {.takes = 3000}).on("a.py:2").launch("l", {.takes = 1}).passes(3500);
              })},
        {"R66",
         "budget_allows",
         passes,
         loop(20,
              [](s y, int) {
                  y.on("a.py:1").launch("k", {.takes = 3000}).on("a.py:2").launch("l", {.takes = 1}).passes(6000);
              }),
         {.numbers = {{"R66.share", 0.99}}}},
        {"R90", "fires", fires, costs(300000, 120000)},
        {"R90", "below", below, costs(300000, 90000)},
        {"R90", "once_at_the_beginning", passes, costs(1200, 190000)},
        {"R91", "fires", fires,
         [](s x) {
             x.repeat(40, [](s y, int) { plain_step(y); });
             x.ends().p().ends.back().dropped = 5;
         }},
        {"R91", "a_few_of_many", below,
         [](s x) {
             x.repeat(2000, [](s y, int) { plain_step(y); });
             x.ends().p().ends.back().dropped = 5;
         }},
        {"R91", "none", passes, [](s x) { x.repeat(40, [](s y, int) { plain_step(y); }); }},
        {"R92", "fires", fires, [](s x) { x.launch("a").launch("b").launch("c"); }},
        {"R92", "eight_steps", below, loop(8, [](s y, int) { plain_step(y); })},
        {"R92", "compiles_at_the_beginning", passes,
         [](s x) {
             x.repeat(40, [](s y, int i) {
                 plain_step(y);
                 if (i < 6) y.compile(2000);
             });
         }},
        {"R93", "fires", fires,
         [](s x) {
             x.all().about = R"({"environment":{"CUDA_LAUNCH_BLOCKING":"1"}})";
             x.repeat(40, [](s y, int) { plain_step(y); });
         }},
        {"R93", "lazy", below,
         [](s x) {
             x.all().about = R"({"environment":{"CUDA_MODULE_LOADING":"LAZY"}})";
             x.repeat(40, [](s y, int) { plain_step(y); });
         }},
        {"R93", "off", passes,
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
        {"R94", "hardly", below,
         [](s x) {
             auto const from = x.now();
             x.repeat(40, [](s y, int) { plain_step(y); });
             x.launch("short", {.takes = 90});
             x.p().ranges.push_back(
                 {.thread = 1, .name = x.text("timed"), .start = scene::ns(from), .end = scene::ns(x.now())});
         }},
        {"R94", "waits", passes,
         [](s x) {
             auto const from = x.now();
             x.repeat(40, [](s y, int) { plain_step(y); });
             x.launch("long", {.takes = 5000}).wait("cudaDeviceSynchronize");
             x.p().ranges.push_back(
                 {.thread = 1, .name = x.text("timed"), .start = scene::ns(from), .end = scene::ns(x.now())});
         }},
    };
}

}  // namespace kiln::audit::testing
