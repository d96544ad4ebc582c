// SPDX-License-Identifier: Apache-2.0
// All rings of one or two arrays of areas as one arrangement (kernels/spatial/overlay_noding.cuh, overlay_borders.cuh): what overlay,
// dissolve, union and make_valid are made of, where a queue runs.
#pragma once

#include "spatial/kept_cells.hpp"
#include "spatial/overlay/divisions.hpp"
#include "spatial/overlay_views.cuh"

namespace kiln::spatial {

class arrangement {
public:
    // Rows may overlap and cross themselves. Where there are worlds, one for each row, rows of different ones do not meet, and those
    // of a negative one are left out; else all rows are in one.
    // With a grid, coordinates are whole multiples of its step.
    [[nodiscard]] static result<arrangement> make(queue& on, kept_layer of, buffer<std::int32_t> worlds = {},
                                                  double grid = 0);

    // Its two steps apart, so that they can be taken of other rows at a time. A layer is divided for good, so that any of its
    // rows, with their worlds, are an arrangement without being divided again.
    [[nodiscard]] static result<arrangement> divided(queue& on, kept_layer of, buffer<std::int32_t> worlds, double grid,
                                                     division_source& by);
    [[nodiscard]] static result<arrangement> of_divided(queue& on, kept_layer of, buffer<std::int32_t> worlds = {});

    // The first step of it alone: rings and lines that are divided wherever they meet. What runs along a ring has to be divided where the
    // ring is, by whatever that is; else rounding would part them.
    struct noded_paths {
        kept_layer layer;
        buffer<std::uint32_t> owned;  // by vertex: 1 where it was there before
    };
    [[nodiscard]] static result<noded_paths> noded_layer(queue& on, kept_layer of);

    [[nodiscard]] kiln_spatial::border_list view() const noexcept;
    [[nodiscard]] std::size_t borders() const noexcept { return borders_; }
    [[nodiscard]] std::size_t places() const noexcept { return places_; }
    [[nodiscard]] std::size_t rows() const noexcept { return layer_.rows(); }

    // Rows on both sides of every border, as cover_range has them: of border i from first[i] to before first[i + 1].
    struct covers {
        buffer<std::uint32_t> cover;
        buffer<std::int64_t> first;
    };
    [[nodiscard]] result<covers> find_covers(queue& on) const;

    // The rings as they are now.
    [[nodiscard]] kept_layer const& noded() const noexcept { return layer_; }
    // Divisions that were needed because rounded crossings had moved segments onto others.
    [[nodiscard]] std::size_t moved_again() const noexcept { return moved_again_; }
    // Of what was divided without a grid, by row: 1 where a segment crosses another of its world, by exact arithmetic. Of two rows that cross, one
    // is told.
    [[nodiscard]] buffer<std::uint32_t> const& crossed_rows() const noexcept { return crossed_rows_; }
    // The step of the grid that it is on, because it was asked for or because these did not end; else 0.
    [[nodiscard]] double grid() const noexcept { return grid_; }

private:
    arrangement(kept_layer of, buffer<std::int32_t> worlds) noexcept
        : layer_{std::move(of)}, worlds_{std::move(worlds)} {}
    [[nodiscard]] result<void> divide_all(queue& on, double grid);
    [[nodiscard]] result<void> require_coarse(queue& on, double grid) const;
    // False where crossings go on moving segments; where there are worlds, `restless_` tells of which.
    [[nodiscard]] result<bool> node(queue& on);
    [[nodiscard]] result<void> note_crossed(queue& on, buffer<std::uint32_t> const& moved) const;
    [[nodiscard]] result<void> note_restless(queue& on, buffer<std::uint32_t> const& moved);
    [[nodiscard]] result<buffer<std::int32_t>> worlds_that(queue& on, std::uint32_t restless) const;
    [[nodiscard]] result<void> snap(queue& on, double grid);
    // Returns where each vertex went.
    [[nodiscard]] result<buffer<std::int64_t>> divide(queue& on, found_divisions at);
    [[nodiscard]] result<void> carry_owned(queue& on, buffer<std::int64_t> const& place);
    [[nodiscard]] result<void> find_all(queue& on);
    [[nodiscard]] result<void> find_places(queue& on);
    [[nodiscard]] result<void> find_strands(queue& on);
    [[nodiscard]] result<void> find_borders(queue& on);

    [[nodiscard]] std::int32_t const* worlds() const noexcept { return numbers_of_worlds(worlds_); }

    division_source* by_ = nullptr;  // while it is divided
    kept_layer layer_;
    buffer<std::int32_t> worlds_;
    buffer<std::uint32_t> owned_;  // empty: nobody asks
    buffer<std::uint32_t> restless_, crossed_rows_;
    buffer<std::int32_t> place_of_, place_first_, at_place_;  // by vertex; by place; vertices by place
    buffer<std::int64_t> strand_number_;
    buffer<std::int32_t> start_, member_, border_first_;
    std::size_t places_ = 0, borders_ = 0, moved_again_ = 0;
    double grid_ = 0;
};

}  // namespace kiln::spatial
