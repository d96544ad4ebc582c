// SPDX-License-Identifier: Apache-2.0
// Layers and points to measure with: the same as those of the figures in docs/measurements/spatial.md.
#pragma once

#include <kiln/spatial/geometry.hpp>

#include <optional>
#include <string>

namespace kiln::spatial_bench {

struct extent {
    double x0, y0, x1, y1;
};
inline constexpr extent world{-180, -90, 180, 90};

// A number in [0, 1) that belongs to k.
[[nodiscard]] double unit_number(std::uint64_t k) noexcept;
[[nodiscard]] std::uint64_t mixed(std::uint64_t k) noexcept;

// Zones that tile a rectangle: nodes of a grid moved a little, borders displaced at their middles `halvings` times, each used by
// both neighbours. 4 * 2^halvings edges a zone. Borders cannot cross.
struct tiling_options {
    int columns, rows, halvings;
    std::uint64_t seed = 11;
    extent over = world;
};
[[nodiscard]] spatial::geometries tiling(tiling_options const& how);
// Overlapping stars, a hole in every third.
[[nodiscard]] spatial::geometries stars(int count, int corners, double radius, std::uint64_t seed);
// Lines of one segment, anywhere in the unit square and in any direction.
[[nodiscard]] spatial::geometries short_lines(std::size_t n, double length, std::uint64_t seed);
// About ten neighbours each; a few large ones where asked. Diagonals of the boxes.
[[nodiscard]] spatial::geometries box_lines(std::size_t n, double large_share);
// Lines of so many steps, each turned a little from the one before.
[[nodiscard]] spatial::geometries walks(std::size_t count, std::size_t steps, std::uint64_t seed);
// Squares on whole numbers that stand aslant, and points that lie exactly on their edges: no filter decides any of them.
[[nodiscard]] spatial::geometries slanted_zones(int columns, int lines);
[[nodiscard]] spatial::geometries middles_of_edges(std::size_t n, spatial::geometries const& of_zones);
// Houses in metres, each beside where another map has it.
[[nodiscard]] spatial::geometries houses(std::size_t n, std::uint64_t seed, double moved);
// Of a folder with layers as tests/unit/spatial/unpack_layer.py writes them.
[[nodiscard]] std::optional<spatial::geometries> read_layer(std::string const& file);

[[nodiscard]] extent extent_of(spatial::geometries const& g);
[[nodiscard]] spatial::geometries uniform_points(std::size_t n, extent const& over);
// Within 0.3 of a vertex.
[[nodiscard]] spatial::geometries points_near_vertices(std::size_t n, spatial::geometries const& of);

}  // namespace kiln::spatial_bench
