// SPDX-License-Identifier: Apache-2.0
// What rows of two layers have in common as areas only, by a sum over edges and crossings (kernels/spatial/overlay_table.cuh), where a queue runs.
#pragma once

#include "spatial/cell_frame.hpp"
#include "spatial/queue.hpp"

#include <kiln/spatial/overlay.hpp>

namespace kiln::spatial {

// Asked once for every ring: looking at some more edges costs less than dividing cells, unless they are very full.
inline constexpr cell_options table_cells{.cells_per_edge = 4, .split_above = 128, .edges_per_cell = 16};

// Of valid rows. By left row, then by right one.
[[nodiscard]] result<area_list> areas_in_common(queue& on, geometries const& left, geometries const& right,
                                                cell_options const& how = table_cells);

}  // namespace kiln::spatial
