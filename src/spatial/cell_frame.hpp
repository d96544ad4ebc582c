// SPDX-License-Identifier: Apache-2.0
// The undivided grid of kernels/spatial/cells.cuh: how many cells, how large and where.
#pragma once

#include "spatial/cells.cuh"

#include <cstddef>
#include <cstdint>

namespace kiln::spatial {

struct cell_options {
    double cells_per_edge = 4;
    std::size_t least_cells = 1 << 6, most_cells = 1 << 22;  // of the undivided grid; more of very many edges
    std::uint32_t split_above = 8;                           // edges in a cell
    double edges_per_cell = 2;                               // after dividing
    int levels = 4;
};

struct framed_cells {
    kiln_spatial::cell_frame frame;
    double least_side;  // below which cells are not divided: what visit_cells() can tell apart
};
// Beyond most_cells a third of the edges: else nearly every cell would be divided, and everything sorted twice.
[[nodiscard]] constexpr std::size_t most_cells_for(std::size_t edges, cell_options const& how) noexcept {
    return edges / 3 > how.most_cells ? edges / 3 : how.most_cells;
}
// Around so many edges in this box; one cell where there are none.
[[nodiscard]] framed_cells frame_cells(kiln_spatial::box const& around, std::size_t edges, cell_options const& how);

}  // namespace kiln::spatial
