// SPDX-License-Identifier: Apache-2.0
// Room for rows that kernels write, and what their validity is.
#pragma once

#include "spatial/kept_layer.hpp"

namespace kiln::spatial {

// Multilinestrings: so many lines (high) and vertices (low), as summed counts have them.
[[nodiscard]] result<geometry_parts> room_for_lines(queue& on, std::size_t rows, std::int64_t lines_and_vertices);
// Multipoints.
[[nodiscard]] result<geometry_parts> room_for_multipoints(queue& on, std::size_t rows, std::int64_t points);
// Null where the layer's rows are.
[[nodiscard]] result<buffer<std::uint8_t>> validity_of_rows(queue& on, kept_layer const& l);

}  // namespace kiln::spatial
