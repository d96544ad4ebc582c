// SPDX-License-Identifier: Apache-2.0
// Arrays of which points, lines and areas become others, each in their own way, where a queue runs.
#pragma once

#include "spatial/queue.hpp"

#include <kiln/spatial/geometry.hpp>

#include <functional>
#include <span>

namespace kiln::spatial {

inline constexpr std::uint32_t of_points = 1, of_lines = 2, of_areas = 4;  // bits, by dimension

struct row_maker {
    std::uint32_t dimensions;
    // A row for every row, of one family that no other maker's rows and no row that stays has.
    std::function<result<geometries>(queue& on, geometries const& of)> make;
};
// Each maker is given the rows of its dimensions, and what it makes of them is put where they were; other rows stay as they are. An array that one
// maker is for is given to it whole, with its null rows. Else the result is mixed. One fence for each maker then.
[[nodiscard]] result<geometries> remade_rows(queue& on, geometries const& of, std::span<row_maker const> makers);

// Those its memory has rows of. An array without any is one of areas.
[[nodiscard]] std::uint32_t dimensions_in(geometries const& of) noexcept;

}  // namespace kiln::spatial
