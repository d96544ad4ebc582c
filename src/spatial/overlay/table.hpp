// SPDX-License-Identifier: Apache-2.0
// What rows of two layers have in common as areas only, by a sum over edges and crossings (kernels/spatial/overlay_table.cuh), where a queue runs.
#pragma once

#include "spatial/queue.hpp"

#include <kiln/spatial/overlay.hpp>

namespace kiln::spatial {

// Of valid rows. By left row, then by right one.
[[nodiscard]] result<area_list> areas_in_common(queue& on, geometries const& left, geometries const& right);

}  // namespace kiln::spatial
