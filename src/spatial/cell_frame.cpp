// SPDX-License-Identifier: Apache-2.0
#include "spatial/cell_frame.hpp"

#include <algorithm>
#include <cmath>

namespace kiln::spatial {

namespace {

double power_of_two_from(double v) { return std::ldexp(1.0, static_cast<int>(std::ceil(std::log2(v)))); }

}  // namespace

// Power-of-two sides and a corner on a multiple of them, so that all corners are exact; one empty cell of margin, whose corners
// are outside of everything.
framed_cells frame_cells(kiln_spatial::box const& all, std::size_t edges, cell_options const& how) {
    if (edges == 0 || !(all.min_x <= all.max_x)) return {{0, 0, 1, 1, 1, 1}, 1};
    double const far =
        std::max({std::fabs(all.min_x), std::fabs(all.max_x), std::fabs(all.min_y), std::fabs(all.max_y)});
    framed_cells out{};
    out.least_side = std::max(std::ldexp(far, -27), 0x1p-320);
    auto const most = static_cast<double>(most_cells_for(edges, how));
    double const cells =
        std::clamp(how.cells_per_edge * static_cast<double>(edges), static_cast<double>(how.least_cells), most);
    double const dx = std::max(all.max_x - all.min_x, out.least_side),
                 dy = std::max(all.max_y - all.min_y, out.least_side);
    // Square, unless all lies in a strip: long edges would cross a million columns, and each would list them all.
    double const along = 2 * std::sqrt(cells);
    double width = std::sqrt(dx) * std::sqrt(dy) / std::sqrt(cells), height = width;
    if (dx > along * width) width = dx / along, height = height * (height / width);
    if (dy > along * height) height = dy / along, width = width * (width / height);
    auto& f = out.frame;
    f.width = power_of_two_from(std::max({width, out.least_side, dx / most}));
    f.height = power_of_two_from(std::max({height, out.least_side, dy / most}));
    if (dx / f.width * (dy / f.height) * 2.2 < cells && f.width / 2 >= out.least_side) f.width /= 2;
    f.x = (std::floor(all.min_x / f.width) - 1) * f.width;
    f.y = (std::floor(all.min_y / f.height) - 1) * f.height;
    f.columns = static_cast<std::int32_t>(std::floor((all.max_x - f.x) / f.width)) + 2;
    f.rows = static_cast<std::int32_t>(std::floor((all.max_y - f.y) / f.height)) + 2;
    return out;
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
