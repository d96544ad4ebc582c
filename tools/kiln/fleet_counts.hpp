// SPDX-License-Identifier: Apache-2.0
// What was counted of the servers that many machines share, by all processes of a cache directory: for 'cache stats' and 'remote status'.
#pragma once

#include "command.hpp"
#include "store/statistics.hpp"

namespace kiln::cli {

// Every counter, also while it is zero, errors by kind, and what answers took.
[[nodiscard]] json fleet_json(store::statistics const& s);
// Name and number of what is not zero.
[[nodiscard]] std::vector<std::vector<std::string>> fleet_rows(store::statistics const& s);

}  // namespace kiln::cli
