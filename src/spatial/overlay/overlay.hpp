// SPDX-License-Identifier: Apache-2.0
// Areas put over each other, where a queue runs.
#pragma once

#include "spatial/overlay_views.cuh"
#include "spatial/queue.hpp"

#include <kiln/spatial/overlay.hpp>

namespace kiln::spatial {

[[nodiscard]] result<overlay_rows> overlaid_rows(queue& on, geometries const& left, geometries const& right,
                                                 overlay_kind what, overlay_options const& how = {});
[[nodiscard]] result<area_list> areas_in_common(queue& on, geometries const& left, geometries const& right);
[[nodiscard]] result<geometries> overlaid_row_by_row(queue& on, geometries const& left, geometries const& right,
                                                     kiln_spatial::set_operation what);
// Rows that have no more edges than this on average are held against each other edge by edge.
inline constexpr std::size_t most_edges_in_pairs = 128;
[[nodiscard]] result<buffer<double>> areas_in_common_row_by_row(queue& on, geometries const& left,
                                                                geometries const& right,
                                                                std::size_t most_edges = most_edges_in_pairs);
[[nodiscard]] result<buffer<double>> overlaps_row_by_row(queue& on, geometries const& left, geometries const& right);
[[nodiscard]] result<geometries> dissolved_rows(queue& on, geometries const& of, buffer<std::int32_t> const& key,
                                                std::size_t keys);
[[nodiscard]] result<geometries> united_rows(queue& on, geometries const& of);
[[nodiscard]] result<geometries> valid_rows(queue& on, geometries const& of);

}  // namespace kiln::spatial
