// SPDX-License-Identifier: Apache-2.0
#include "engine/kernel_order.hpp"

#include <algorithm>

namespace kiln::engine_detail {

namespace {

// nullopt: they are in this order, or none is asked for.
std::optional<std::vector<kernel_info>> reordered(std::vector<kernel_info> const& all,
                                                  std::vector<std::string> const& names) {
    if (names.empty() || std::ranges::equal(all, names, {}, &kernel_info::name)) return std::nullopt;
    std::vector<kernel_info> out;
    for (auto const& name : names) {
        auto const at = std::ranges::find(all, name, &kernel_info::name);
        if (at == all.end()) return std::nullopt;
        out.push_back(*at);
    }
    return out;
}

}  // namespace

obtained in_order(obtained got, std::vector<std::string> const& names) {
    auto kernels = reordered(got.what->kernels, names);
    if (!kernels) return got;
    auto copy = *got.what;
    copy.kernels = *std::move(kernels);
    got.what = std::make_shared<artifact const>(std::move(copy));
    return got;
}

ready_unit in_order(ready_unit got, std::vector<std::string> const& names) {
    auto kernels = reordered(got.kernels(), names);
    if (!kernels) return got;
    auto copy = got.internals();
    copy.kernels = *std::move(kernels);
    copy.of = std::make_shared<ready_unit const>(std::move(got));
    return ready_unit{std::make_shared<ready_unit::state const>(std::move(copy))};
}

}  // namespace kiln::engine_detail
