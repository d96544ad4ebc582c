// SPDX-License-Identifier: Apache-2.0
// Areas put over each other, where a queue runs.
#pragma once

#include "spatial/overlay/drawing.hpp"

#include <kiln/spatial/overlay.hpp>

namespace kiln::spatial {

// Of each world, all its rows together: its left ones, of which there are so many in all, with its right ones.
struct world_question {
    std::string_view operation;
    buffer<std::int32_t> worlds = {};
    std::size_t left_rows = 0;
    kiln_spatial::set_operation what = kiln_spatial::set_operation::union_;
    double grid = 0;
    std::size_t worth_it = kept_worlds::always;  // so many worlds are kept apart
};
// A row for every world from 0 to before `rows`.
[[nodiscard]] result<geometry_parts> put_together(queue& on, kept_layer of, world_question const& how,
                                                  std::size_t rows);
[[nodiscard]] result<geometry_parts> put_together(queue& on, arrangement const& in, world_question const& how,
                                                  std::size_t rows);

// errc::unsupported where other rows than polygons and multipolygons are there.
[[nodiscard]] result<void> require_areas(std::string_view operation, geometries const& of);

// overlay_parts of a kind, and those of two layers that are arranged, ready to be drawn or measured.
[[nodiscard]] std::uint32_t parts_of(overlay_kind what) noexcept;
[[nodiscard]] result<drawing> ordered_parts(queue& on, arrangement const& in, std::size_t left_rows,
                                            std::uint32_t parts);
// Rounded crossings that made others cross are told, and so is what is on a grid that nobody asked for.
void tell_how_divided(std::string_view operation, arrangement::unrest_found const& found);
// Areas of a distinct layer, each in a world of its own, to be drawn anew. Rows that are none stay, without paths.
struct areas_to_draw {
    kept_layer layer;
    buffer<std::int32_t> worlds;
    buffer<std::uint32_t> shrunk;  // by row, of all of them: 1 where a line or ring has no length
};
[[nodiscard]] result<areas_to_draw> areas_of_rows(queue& on, geometries const& of);
// By row: rows that are the same, whatever the order of their parts, have the same number.
[[nodiscard]] result<buffer<std::uint64_t>> marks_of(queue& on, kept_layer const& of);

[[nodiscard]] result<overlay_rows> overlaid_rows(queue& on, geometries const& left, geometries const& right,
                                                 overlay_kind what, overlay_options const& how = {});
// What of each left row lies in any right one.
[[nodiscard]] result<geometries> areas_in_areas(queue& on, geometries const& left, geometries const& right);
[[nodiscard]] result<geometries> overlaid_row_by_row(queue& on, geometries const& left, geometries const& right,
                                                     kiln_spatial::set_operation what, double grid = 0);
// Rows that have no more edges than this on average are held against each other edge by edge.
inline constexpr std::size_t most_edges_in_pairs = 128;
[[nodiscard]] result<buffer<double>> areas_in_common_row_by_row(queue& on, geometries const& left,
                                                                geometries const& right,
                                                                std::size_t most_edges = most_edges_in_pairs);
[[nodiscard]] result<buffer<double>> overlaps_row_by_row(queue& on, geometries const& left, geometries const& right);
[[nodiscard]] result<geometries> dissolved_rows(queue& on, geometries const& of, buffer<std::int32_t> const& key,
                                                std::size_t keys);
[[nodiscard]] result<geometries> united_rows(queue& on, geometries const& of);
// Rows that are no areas come out empty; what is told of them is whether their lines have any length.
[[nodiscard]] result<mended_rows> rows_mended(queue& on, geometries const& of);
// Only its rows, and those that are no areas as they were.
[[nodiscard]] result<geometries> areas_mended(queue& on, geometries const& of);

}  // namespace kiln::spatial
