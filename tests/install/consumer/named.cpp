// SPDX-License-Identifier: Apache-2.0
// A program that knows what it needs by name and calls nothing else of a pack: `named prims sm_90`. Whoever runs it forbids
// compiling and hides caches, so that it is found in what ships or not at all; no GPU is needed.
#include <kiln/demand.hpp>
#include <kiln/plan.hpp>

#include <cstdio>
#include <string_view>

// A name or two of each pack.
KILN_REQUIRES(prims, "exclusive_scan_i32", "radix_sort_u64_i32");
KILN_REQUIRES(tropical, "tropical_maxplus_f32_nn", "tropical_backward_a_f64");
KILN_REQUIRES(spatial, "point_in_polygon", "polygon_predicates");

int main(int count, char** arguments) {
    if (count < 3) return std::fputs("usage: named PACK ARCH...\n", stderr), 2;
    auto const* const what = kiln::find_requirement(arguments[1]);
    if (what == nullptr) return std::fprintf(stderr, "nobody requires %s\n", arguments[1]), 2;
    std::vector<kiln::target> targets;
    for (int i = 2; i < count; ++i) targets.push_back(kiln::target::parse(arguments[i]).value());
    auto const report =
        kiln::plan{arguments[1], what->wants(), {.targets = targets}}.ensure_warm(std::chrono::seconds{60});
    for (auto const& c : report.cold) std::printf("%s: %s\n", c.name.c_str(), c.why.c_str());
    return report ? 0 : 1;
}
