// SPDX-License-Identifier: Apache-2.0
// All rings of one or two arrays of areas as one arrangement (kernels/spatial/overlay_noding.cuh, overlay_borders.cuh): what overlay,
// dissolve, union and make_valid are made of, where a queue runs.
#pragma once

#include "spatial/kept_cells.hpp"
#include "spatial/overlay/divisions.hpp"
#include "spatial/overlay_views.cuh"

namespace kiln::spatial {

struct world_list {
    buffer<std::int32_t> of_row = {};
    std::size_t worth_it = kept_worlds::always;  // so many are kept apart
};

class arrangement {
public:
    // Rows may overlap and cross themselves. Where there are worlds, one for each row, rows of different ones do not meet, and those
    // of a negative one are left out; else all rows are in one.
    // With a grid, coordinates are whole multiples of its step. What comes of a world does not depend on what others there are.
    [[nodiscard]] static result<arrangement> make(queue& on, kept_layer of, world_list worlds = {}, double grid = 0);

    // Its two steps apart, so that they can be taken of other rows at a time. A layer is divided for good, so that any of its
    // rows, with their worlds, are an arrangement without being divided again.
    [[nodiscard]] static result<arrangement> divided(queue& on, kept_layer of, world_list worlds, double grid,
                                                     division_source& by);
    [[nodiscard]] static result<arrangement> of_divided(queue& on, kept_layer of, world_list worlds = {});

    // What rounded crossings did.
    struct unrest_found {
        std::size_t moved_again = 0;  // divisions that were needed because they had moved segments onto others
        std::size_t snapped = 0;  // worlds that did not come to rest, or rows where there is one: they are on a grid
        double grid = 0;          // the coarsest step of these
    };

    // The first step of it alone: rings and lines that are divided wherever they meet. What runs along a ring has to be divided where the
    // ring is, by whatever that is; else rounding would part them.
    struct noded_paths {
        kept_layer layer;
        buffer<std::uint32_t> owned;  // by vertex: 1 where it was there before
        buffer<std::uint32_t>
            restless;  // by row, where it did not come to rest and that is told: 1 of those that did not
        unrest_found unrest;
    };
    enum class unrest : std::uint8_t { is_told, is_snapped };
    [[nodiscard]] static result<noded_paths> noded_layer(queue& on, kept_layer of, unrest what);

    [[nodiscard]] kiln_spatial::border_list view() const noexcept;
    [[nodiscard]] std::size_t borders() const noexcept { return borders_; }
    [[nodiscard]] std::size_t places() const noexcept { return places_; }
    [[nodiscard]] std::size_t rows() const noexcept { return layer_.rows(); }

    // Where its rows are, for what is asked beside its borders (cover_search). Two fences or more.
    [[nodiscard]] result<kept_cells> index_rows(queue& on) const;
    // Rows on both sides of every border, as cover_range has them: of border i from first[i] to before first[i + 1].
    struct covers {
        buffer<std::uint32_t> cover;
        buffer<std::int64_t> first;
    };
    [[nodiscard]] result<covers> find_covers(queue& on) const;

    // The rings as they are now.
    [[nodiscard]] kept_layer const& noded() const noexcept { return layer_; }
    [[nodiscard]] unrest_found const& found_unrest() const noexcept { return unrest_; }
    [[nodiscard]] kept_worlds const& worlds() const noexcept { return worlds_; }
    // Of what was divided without a grid, by row: 1 where a segment crosses another of its world, by exact arithmetic. Of two rows that cross, one
    // is told.
    [[nodiscard]] buffer<std::uint32_t> const& crossed_rows() const noexcept { return crossed_rows_; }

private:
    arrangement(kept_layer of, kept_worlds worlds) noexcept : layer_{std::move(of)}, worlds_{std::move(worlds)} {}
    [[nodiscard]] result<void> divide_all(queue& on, double grid);
    [[nodiscard]] result<void> require_coarse(queue& on, double grid) const;
    [[nodiscard]] result<void> snap_restless(queue& on, kept_layer const& before);
    [[nodiscard]] result<kept_grids> grids_of_worlds(queue& on) const;
    // False where crossings go on moving segments; `restless_` tells of which worlds, or, where there are none, of which rows.
    [[nodiscard]] result<bool> node(queue& on);
    // False where worlds do not come to rest since this round: what they have is taken from `found` and `moved`. `counts` are those
    // of the round before.
    [[nodiscard]] result<bool> judge(queue& on, int round, found_divisions& found, buffer<std::uint32_t> const& moved,
                                     buffer<std::uint64_t>& counts);
    [[nodiscard]] result<void> give_up_restless(queue& on, found_divisions& found,
                                                buffer<std::uint32_t> const& moved) const;
    [[nodiscard]] result<void> note_crossed(queue& on, buffer<std::uint32_t> const& moved) const;
    [[nodiscard]] result<void> note_restless(queue& on, buffer<std::uint32_t> const& moved);
    [[nodiscard]] result<std::size_t> rows_with(queue& on, std::uint32_t kinds) const;
    [[nodiscard]] result<void> snap(queue& on, kept_grids const& grids);
    // Returns where each vertex went.
    [[nodiscard]] result<buffer<std::int64_t>> divide(queue& on, found_divisions at);
    [[nodiscard]] result<void> carry_owned(queue& on, buffer<std::int64_t> const& place);
    [[nodiscard]] result<void> find_all(queue& on);
    [[nodiscard]] result<void> find_places(queue& on);
    [[nodiscard]] result<void> find_strands(queue& on);
    [[nodiscard]] result<void> find_borders(queue& on);

    division_source* by_ = nullptr;  // while it is divided
    kept_layer layer_;
    kept_worlds worlds_;
    buffer<std::uint32_t> owned_;  // empty: nobody asks
    buffer<std::uint32_t> restless_, crossed_rows_;
    buffer<std::int32_t> place_of_, place_first_, at_place_;  // by vertex; by place; vertices by place
    buffer<std::int64_t> strand_number_;
    buffer<std::int32_t> start_, member_, border_first_;
    std::size_t places_ = 0, borders_ = 0;
    unrest_found unrest_;
};

}  // namespace kiln::spatial
