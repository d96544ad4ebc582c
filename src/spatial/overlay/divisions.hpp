// SPDX-License-Identifier: Apache-2.0
// Where segments of a layer have to be divided (kernels/spatial/overlay_noding.cuh), where a queue runs.
#pragma once

#include "spatial/kept_layer.hpp"
#include "spatial/overlay_noding.cuh"

namespace kiln::spatial {

// The grids that rows are on.
struct kept_grids {
    double step = 0;             // of all; else the coarsest of them
    buffer<double> scales = {};  // by row, where worlds have their own: 1 / step
    [[nodiscard]] kiln_spatial::row_grids view() const noexcept {
        return {step == 0 ? 0 : 1 / step, step, scales.empty() ? nullptr : scales.data()};
    }
};

// Segments with places on them, or next to them, in no particular order.
struct found_divisions {
    std::size_t count = 0;
    std::size_t crossings = 0;                // of squares: how many divisions the crossings in them would be
    buffer<std::int32_t> segment_of, number;  // numbers are 0, 1, 2 and so on
    buffer<kiln_spatial::point> at;
};

// What is asked of a layer that has its elements, by their worlds: rows of different ones do not meet, those of a negative one meet nothing.
struct division_question {
    kept_layer const& of;
    kiln_spatial::row_grids grids = {};
    std::uint8_t const* roles = nullptr;  // row_role, by row; null: all are own rows
};
// Pairs of segments that meet otherwise than in common ends. `asks`, by segment: pairs of which neither does have been asked;
// null: none have. `moved`, by segment, is set where a rounded crossing lies beside it. Two fences.
[[nodiscard]] result<found_divisions> find_divisions(queue& on, division_question const& what,
                                                     std::uint32_t const* asks, buffer<std::uint32_t> const& moved);
// On a grid, segments that come through the squares of vertices, where these are hot, and of crossings. One fence.
enum class hot_vertices : std::uint8_t { all, none };
[[nodiscard]] result<found_divisions> find_hot(queue& on, division_question const& what,
                                               found_divisions const& crossings, hot_vertices which);

// Where the divisions of a layer come from: from all of it at once, or from a few rows at a time (chunks.hpp).
class division_source {
public:
    virtual ~division_source() = default;
    // Of a layer where `home` runs, as above.
    [[nodiscard]] virtual result<found_divisions> crossings(queue& home, kept_layer& of, kept_worlds const& worlds,
                                                            buffer<std::uint32_t> const& asks,
                                                            buffer<std::uint32_t> const& moved) = 0;
    [[nodiscard]] virtual result<found_divisions> squares(queue& home, kept_layer& of, kept_worlds const& worlds,
                                                          kept_grids const& grids, hot_vertices which) = 0;
};
class all_at_once final : public division_source {
public:
    [[nodiscard]] result<found_divisions> crossings(queue& home, kept_layer& of, kept_worlds const& worlds,
                                                    buffer<std::uint32_t> const& asks,
                                                    buffer<std::uint32_t> const& moved) override;
    [[nodiscard]] result<found_divisions> squares(queue& home, kept_layer& of, kept_worlds const& worlds,
                                                  kept_grids const& grids, hot_vertices which) override;
};

}  // namespace kiln::spatial
