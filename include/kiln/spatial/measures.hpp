// SPDX-License-Identifier: Apache-2.0
//
// Numbers of geometries, row by row: boxes, areas, lengths, centroids, as GEOS defines them: the length of an area is that of its
// rings, holes take area away whichever way they run, the centroid is that of the highest dimension with any extent. Boxes
// are exact. Null rows have no value; empty ones have no box and no centroid, and area and length 0.
#pragma once

#include <kiln/spatial/geometry.hpp>

namespace KILN_PUBLIC kiln {
namespace spatial {

struct bounding_box {
    double min_x = 0, min_y = 0, max_x = 0, max_y = 0;
    bool operator==(bounding_box const&) const = default;
};
struct location {
    double x = 0, y = 0;
};

namespace cpu {
[[nodiscard]] result<std::vector<std::optional<bounding_box>>> bounds(geometries const& of);
// Of all rows; nothing where there is no vertex.
[[nodiscard]] result<std::optional<bounding_box>> total_bounds(geometries const& of);
[[nodiscard]] result<std::vector<std::optional<double>>> area(geometries const& of);
[[nodiscard]] result<std::vector<std::optional<double>>> length(geometries const& of);
[[nodiscard]] result<std::vector<std::optional<location>>> centroid(geometries const& of);
}  // namespace cpu

}  // namespace spatial
}  // namespace kiln
