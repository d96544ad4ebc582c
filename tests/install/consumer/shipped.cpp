// SPDX-License-Identifier: Apache-2.0
// What ships with the library, looked for by a user's program: `shipped prims 80 90`. Whoever runs it forbids compiling and
// hides caches, so that there is nowhere else to find it; no GPU is needed.
#include <kiln/catalogue.hpp>
#include <kiln/plan.hpp>

#include <algorithm>
#include <cstdio>

namespace {

std::vector<kiln::want> everything_in(std::string_view pack) {
    std::vector<kiln::want> out;
    for (auto const& s : kiln::catalogue()) {
        if (s.pack == pack) out.emplace_back(s.name);
    }
    return out;
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 3) return std::fputs("usage: shipped PACK ARCH...\n", stderr), 2;
    std::vector<kiln::target> targets;
    for (int i = 2; i < count; ++i) targets.push_back(kiln::target::parse(arguments[i]).value());
    auto const names = everything_in(arguments[1]);
    kiln::plan const all{arguments[1], names, {.targets = targets}};
    auto const report = all.ensure_warm(std::chrono::seconds{60});
    auto const units = kiln::status().units;
    // A second name of a unit is found in memory, and the unit has a line of its own.
    auto const shipped = std::ranges::count_if(units, [](kiln::unit_status const& u) {
        return kiln::find_spec(u.name) != nullptr &&
               (u.from == kiln::provenance::bundle || u.from == kiln::provenance::memory);
    });
    std::printf("%s: %zu names for %zu architectures, %td found in what ships\n", arguments[1], names.size(),
                targets.size(), shipped);
    if (!report) std::printf("%zu are not; of the first: %s\n", report.cold.size(), report.cold[0].why.c_str());
    auto const wanted = static_cast<std::ptrdiff_t>(names.size() * targets.size());
    return report && wanted > 0 && shipped == wanted ? 0 : 1;
}
