// SPDX-License-Identifier: Apache-2.0
// Nearest rows, where a queue runs.
#pragma once

#include "spatial/queue.hpp"

#include <kiln/spatial/nearest.hpp>

namespace kiln::spatial {

// One nearest row for each, or all that are as near. Both lie where the queue runs.
[[nodiscard]] result<near_list> nearest_rows_of(queue& on, geometries const& left, geometries const& right,
                                                nearest_options const& how);

}  // namespace kiln::spatial
