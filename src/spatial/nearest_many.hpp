// SPDX-License-Identifier: Apache-2.0
// Several nearest rows, where a queue runs.
#pragma once

#include "spatial/queue.hpp"

#include <kiln/spatial/nearest.hpp>

namespace kiln::spatial {

// Any number of nearest rows for each. Both lie where the queue runs.
[[nodiscard]] result<near_list> nearest_many_of(queue& on, geometries const& left, geometries const& right,
                                                nearest_options const& how);

}  // namespace kiln::spatial
