// SPDX-License-Identifier: Apache-2.0
// Shapes made of rows, where a queue runs.
#pragma once

#include "spatial/queue.hpp"

#include <kiln/spatial/shapes.hpp>

namespace kiln::spatial {

[[nodiscard]] result<geometries> circles_around(queue& on, geometries const& points, double distance,
                                                circle_options const& how);
[[nodiscard]] result<geometries> clipped_rows(queue& on, geometries const& of, bounding_box const& to);

}  // namespace kiln::spatial
