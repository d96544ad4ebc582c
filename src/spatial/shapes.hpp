// SPDX-License-Identifier: Apache-2.0
// Shapes made of rows, where a queue runs.
#pragma once

#include "spatial/circle.cuh"
#include "spatial/queue.hpp"

#include <kiln/spatial/shapes.hpp>

namespace kiln::spatial {

// The corners of every circle, whoever draws it.
[[nodiscard]] kiln_spatial::quarter_circle quarter_of(int steps);
[[nodiscard]] result<geometries> circles_around(queue& on, geometries const& points, double distance,
                                                circle_options const& how);
[[nodiscard]] result<geometries> clipped_rows(queue& on, geometries const& of, bounding_box const& to);

}  // namespace kiln::spatial
