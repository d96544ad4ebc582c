// SPDX-License-Identifier: Apache-2.0
#include "spatial/figures.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>

namespace kiln::spatial_bench {

namespace {

nlohmann::json& rows() {
    static auto all = nlohmann::json::array();
    return all;
}
int failures = 0;

}  // namespace

void row(figure const& f) {
    double const ratio = f.prototype == 0 ? 0 : f.is == better::higher ? f.value / f.prototype : f.prototype / f.value;
    std::printf("%-66s %10.3f %-9s", f.name.c_str(), f.value, f.unit.c_str());
    if (f.prototype > 0) std::printf("  prototype %8.2f  %5.2fx", f.prototype, ratio);
    std::printf("%s\n", f.right ? "" : "  WRONG");
    std::fflush(stdout);
    if (!f.right) ++failures;
    rows().push_back(
        {{"name", f.name}, {"value", f.value}, {"unit", f.unit}, {"prototype", f.prototype}, {"right", f.right}});
}

int finish(options const& how) {
    if (!how.json.empty()) std::ofstream{how.json} << rows().dump(1) << "\n";
    return failures == 0 ? 0 : 1;
}

}  // namespace kiln::spatial_bench
