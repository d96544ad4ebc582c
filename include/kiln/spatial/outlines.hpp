// SPDX-License-Identifier: Apache-2.0
//
// Shapes around rows and of their edges, row by row, as GEOS defines them: convex hulls, boxes, boundaries, a point inside. Decided once per call, on
// the CPU or the GPU, with the same bits; results live where it ran. Null rows stay null, empty ones empty. Waits for sizes.
//
//     auto const hulls = spatial::convex_hull(stream, flocks).value();
//     auto const labels = spatial::point_on_surface(stream, countries).value();      // an array of points
#pragma once

#include <kiln/spatial/geometry.hpp>

namespace KILN_PUBLIC kiln {
namespace spatial {

// Polygons, counter-clockwise from the leftmost lowest vertex. Where some rows have a hull or box that is a point or a line, a mixed array with these
// as what they are.
[[nodiscard]] result<geometries> convex_hull(stream_ref on, geometries const& of);
[[nodiscard]] result<geometries> envelope(stream_ref on, geometries const& of);

// Of areas their rings, as multilinestrings; of lines the points in which an odd number of them ends, as multipoints, by x, then y; of points
// empty multipoints. Of areas with others, a mixed array.
[[nodiscard]] result<geometries> boundary(stream_ref on, geometries const& of);

// Of areas the middle of the widest part inside along a level line halfway up each polygon, between the vertices next to it; of lines the vertex nearest to
// the centroid, an end only where there is no other; of points the nearest to it. Points, empty where a row is.
[[nodiscard]] result<geometries> point_on_surface(stream_ref on, geometries const& of);

}  // namespace spatial
}  // namespace kiln
