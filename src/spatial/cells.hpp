// SPDX-License-Identifier: Apache-2.0
// Builds the grid of kernels/spatial/cells.cuh over the rings of a layer, on the host.
#pragma once

#include "spatial/cell_frame.hpp"
#include "spatial/layer.hpp"

namespace kiln::spatial {

class host_cells {
public:
    explicit host_cells(host_layer const& of, cell_options const& how = {});  // borrows the layer's vertices

    [[nodiscard]] kiln_spatial::cell_grid view() const noexcept;
    [[nodiscard]] std::size_t bytes() const noexcept;

    // found(row, place) as locate() does.
    template <class Found>
    void locate(kiln_spatial::point p, Found found) const {
        kiln_spatial::locate<kiln_spatial::tie::on, kiln_spatial::certainty::exact>(view(), p, found);
    }

private:
    struct entry {
        std::uint64_t cell;
        std::uint32_t row, edge;  // edge == corner: the cell's corner is inside the row
    };
    static constexpr std::uint32_t corner = ~std::uint32_t{0};

    // Where a row crosses the lower line of cells; every two of them are a span of corners that are inside.
    struct crossed {
        std::uint32_t row;
        std::int32_t line, column;
    };

    // The frame, and what crosses its lines.
    [[nodiscard]] std::vector<crossed> make_frame(std::vector<std::int32_t> const& edges);
    [[nodiscard]] std::vector<crossed> crossed_lines(std::vector<std::int32_t> const& edges) const;
    [[nodiscard]] std::vector<entry> entries(std::vector<std::int32_t> const& edges,
                                             std::vector<crossed> const& lines) const;
    // How many times to halve the sides of a cell of a level; 0: leave it.
    [[nodiscard]] std::uint32_t divisions(std::span<entry const> cell, kiln_spatial::cell_frame const& frame,
                                          std::vector<std::uint32_t> const& corners, std::uint32_t edges,
                                          std::uint32_t parent_edges) const;
    // Records and heads of one level's entries, sorted; divides what is crowded.
    void write(std::vector<entry> sorted, kiln_spatial::cell_frame const& frame, std::size_t first_head, int level,
               std::uint32_t parent_edges);
    [[nodiscard]] std::vector<entry> divided(std::span<entry const> of, kiln_spatial::cell_frame const& whole,
                                             kiln_spatial::cell_frame const& parts) const;

    cell_options how_;
    kiln_spatial::layer layer_;
    kiln_spatial::cell_frame frame_{};
    double least_side_ = 0;
    std::vector<std::uint32_t> heads_;
    std::vector<kiln_spatial::cell_record> records_;
    std::vector<kiln_spatial::sub_grid> subs_;
};

}  // namespace kiln::spatial
