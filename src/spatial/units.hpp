// SPDX-License-Identifier: Apache-2.0
// The pack's units: one per file of kernels in kernels/spatial, with the text they share.
#pragma once

#include <kiln/unit.hpp>

#include <vector>

namespace kiln::spatial {

// "point_in_polygon", "segment_intersection", "polygon_predicates", "spatial_index", "point_distance".
[[nodiscard]] std::vector<unit> all_units();

}  // namespace kiln::spatial
