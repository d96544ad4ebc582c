// SPDX-License-Identifier: Apache-2.0
//
// Shapes made of rows: circles around points, and the part of points and lines in a rectangle. Decided once per call, on the CPU or
// the GPU, with the same bits; results live where it ran. Null rows stay null, empty ones empty.
//
//     auto const around = spatial::point_buffer(stream, stops, 50, {.quarter = 16}).value();
//     auto const in_map = spatial::clip_by_rect(stream, roads, {0, 0, 1000, 1000}).value();
#pragma once

#include <kiln/spatial/measures.hpp>

namespace KILN_PUBLIC kiln {
namespace spatial {

struct circle_options {
    int quarter = 8;  // sides of a quarter, 1 to 32
};
// Polygons with corners on the circle, clockwise from the east, as GEOS has them. The distance is above 0 and within the range of
// coordinates; an array of points is needed: else errc::invalid_argument. Waits for how many points there are.
[[nodiscard]] result<geometries> point_buffer(stream_ref on, geometries const& points, double distance,
                                              circle_options const& how = {});

// What lies in a closed rectangle: of points, those in it, the others empty; of lines, their parts of some length, as
// multilinestrings. Where a line crosses a side is correctly rounded. errc::unsupported for areas and mixed arrays. Waits
// for sizes.
[[nodiscard]] result<geometries> clip_by_rect(stream_ref on, geometries const& of, bounding_box const& to);

}  // namespace spatial
}  // namespace kiln
