// SPDX-License-Identifier: Apache-2.0
// Requests that name the same kernels in another order are one, and one artifact serves them all: each caller is given the kernels in the
// order of its own names.
#pragma once

#include "engine/engine_state.hpp"

namespace kiln::engine_detail {

[[nodiscard]] obtained in_order(obtained got, std::vector<std::string> const& names);
[[nodiscard]] ready_unit in_order(ready_unit got, std::vector<std::string> const& names);

}  // namespace kiln::engine_detail
