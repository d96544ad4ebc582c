// SPDX-License-Identifier: Apache-2.0
//
// Lines and areas with fewer vertices, row by row: none that is left out is farther than the tolerance from what takes its place (Douglas and Peucker's
// rule, as GEOS has it). Of lines multilinestrings, without closed ones of which only the two ends would be left: they would have no length, and not be valid; of areas multipolygons, put right where that made rings cross, so that they are valid as OGC means
// it; rings of which no area is left are gone. Rows know nothing of each other: borders that two of them share need not stay the same, but for simplify_coverage().
// Decided once per call, on the CPU or the GPU, with the same bits; results live where it ran. Waits for sizes, and now and then for whether there is more to do.
//
//     auto const coarse = spatial::simplify(stream, coasts, 0.01).value();
//     auto const small_map = spatial::simplify_coverage(stream, counties, 0.01).value();
#pragma once

#include <kiln/spatial/geometry.hpp>

namespace KILN_PUBLIC kiln {
namespace spatial {

// The tolerance is 0 or within the range of coordinates, else errc::invalid_argument. Points are as they were. Of several
// of points, lines and areas, a mixed array.
[[nodiscard]] result<geometries> simplify(stream_ref on, geometries const& of, double tolerance);

// Areas that share borders, with fewer vertices: a border that several rows share stays one border, simplified once, and places where
// borders meet stay where they are. None that is left out is farther than the tolerance from what takes its place; where that alone would make borders cross or touch, or
// leave something on another side of one, more vertices stay. So rows that do not overlap do not overlap afterwards, neighbours stay neighbours with the same vertices along
// what they share, and no row, part or hole vanishes. A multipolygon for every row, valid as OGC means it; null rows stay null.
// Rows need not be a coverage. Where vertices of one row lie on a border of another, or borders cross, they are divided there first, as in an overlay (overlay.hpp),
// and that is a vertex of both in the result: rows that overlap go on to overlap, in the same way. Rings count by the even-odd rule.
// Points and lines are errc::unsupported, the tolerance is as above.
[[nodiscard]] result<geometries> simplify_coverage(stream_ref on, geometries const& areas, double tolerance);

}  // namespace spatial
}  // namespace kiln
