// SPDX-License-Identifier: Apache-2.0
// The pack's units: one per file of kernels in kernels/spatial, with the text they share.
#pragma once

#include "engine/pack.hpp"

#include <string_view>
#include <vector>

namespace kiln::spatial {

[[nodiscard]] std::vector<unit> const& all_units();
// The one that has this kernel.
[[nodiscard]] unit const& unit_with(std::string_view kernel);
[[nodiscard]] std::vector<engine_detail::named_unit> named_units();

}  // namespace kiln::spatial
