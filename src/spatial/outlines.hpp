// SPDX-License-Identifier: Apache-2.0
// Shapes around rows and of their edges, where a queue runs.
#pragma once

#include "spatial/kept_layer.hpp"

namespace kiln::spatial {

[[nodiscard]] result<geometries> hulls_of_rows(queue& on, geometries const& of);
[[nodiscard]] result<geometries> boxes_around_rows(queue& on, geometries const& of);
[[nodiscard]] result<geometries> boundaries_of_rows(queue& on, geometries const& of);
// Paths of these kinds (bits), as multilinestrings.
[[nodiscard]] result<geometries> paths_as_lines(queue& on, kept_layer const& l, std::uint32_t kinds);
[[nodiscard]] result<geometries> points_on_rows(queue& on, geometries const& of);

}  // namespace kiln::spatial
