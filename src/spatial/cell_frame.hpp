// SPDX-License-Identifier: Apache-2.0
// The undivided grid of kernels/spatial/cells.cuh: how many cells, how large and where.
#pragma once

#include "spatial/cells.cuh"

#include <cstddef>
#include <cstdint>
#include <optional>

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

[[nodiscard]] constexpr std::size_t cells_in(kiln_spatial::cell_frame const& f) noexcept {
    return static_cast<std::size_t>(f.columns) * static_cast<std::size_t>(f.rows);
}
// Every cell lists all rows that its corner lies in. Where areas lie over each other so often that there would be more than this many, fewer and larger cells
// are as good: whoever asks there has as many answers.
[[nodiscard]] constexpr std::size_t most_corners_for(std::size_t cells) noexcept { return 8 * cells; }
// A quarter of the cells; nothing where there are few.
[[nodiscard]] std::optional<framed_cells> coarser(kiln_spatial::cell_frame const& than, kiln_spatial::box const& around,
                                                  std::size_t edges, cell_options const& how);

}  // namespace kiln::spatial
