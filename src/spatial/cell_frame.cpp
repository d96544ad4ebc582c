// SPDX-License-Identifier: Apache-2.0
#include "spatial/cell_frame.hpp"

#include <algorithm>

namespace kiln::spatial {

framed_cells frame_cells(kiln_spatial::box const& all, std::size_t edges, cell_options const& how) {
    if (edges == 0 || !(all.min_x <= all.max_x)) return {{0, 0, 1, 1, 1, 1}, 1};
    auto const most = static_cast<double>(most_cells_for(edges, how));
    double const cells =
        std::clamp(how.cells_per_edge * static_cast<double>(edges), static_cast<double>(how.least_cells), most);
    return {kiln_spatial::frame_around(all, cells, most), kiln_spatial::least_side_of(all)};
}

std::optional<framed_cells> coarser(kiln_spatial::cell_frame const& than, kiln_spatial::box const& around,
                                    std::size_t edges, cell_options const& how) {
    auto const now = cells_in(than);
    if (now <= 64 || edges == 0) return {};
    auto fewer = how;
    fewer.least_cells = 1;
    fewer.cells_per_edge = static_cast<double>(now / 4) / static_cast<double>(edges);
    auto const out = frame_cells(around, edges, fewer);
    return cells_in(out.frame) < now ? std::optional{out} : std::nullopt;
}

}  // namespace kiln::spatial
