// SPDX-License-Identifier: Apache-2.0
#include "spatial/timed_queue.hpp"

#include <algorithm>
#include <cstdio>
#include <map>

namespace kiln::spatial_bench {

void timed_queue::print_sync(std::size_t most) const {
    if (laps_.empty()) return;
    laps_.back().end.wait_sync().value();
    struct sum {
        double ms = 0;
        int times = 0;
    };
    std::map<std::string, sum> by_name;
    for (auto const& l : laps_) {
        auto& to = by_name[l.name];
        to.ms += elapsed_ms(l.begin, l.end).value(), ++to.times;
    }
    std::vector<std::pair<std::string, sum>> all{by_name.begin(), by_name.end()};
    std::ranges::sort(all, [](auto const& a, auto const& b) { return a.second.ms > b.second.ms; });
    double others = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        auto const& [name, of] = all[i];
        if (i < most) std::printf("      %8.3f ms  %3d times  %s\n", of.ms, of.times, name.c_str());
        else others += of.ms;
    }
    std::printf("      %8.3f ms  all others; %zu launches, %zu fences\n", others, laps_.size(), fences_);
}

}  // namespace kiln::spatial_bench
