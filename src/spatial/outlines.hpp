// SPDX-License-Identifier: Apache-2.0
// Shapes around rows and of their edges, where a queue runs.
#pragma once

#include "spatial/queue.hpp"

#include <kiln/spatial/outlines.hpp>

namespace kiln::spatial {

[[nodiscard]] result<geometries> hulls_of_rows(queue& on, geometries const& of);
[[nodiscard]] result<geometries> boxes_around_rows(queue& on, geometries const& of);
[[nodiscard]] result<geometries> boundaries_of_rows(queue& on, geometries const& of);
[[nodiscard]] result<geometries> points_on_rows(queue& on, geometries const& of);

}  // namespace kiln::spatial
