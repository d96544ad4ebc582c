// SPDX-License-Identifier: Apache-2.0
//
// Lines and areas with fewer vertices, row by row: none that is left out is farther than the tolerance from what takes its place (Douglas and Peucker's
// rule, as GEOS has it). Of lines multilinestrings; of areas multipolygons, put right where that made rings cross, so that they are valid as OGC means
// it; rings of which no area is left are gone. Rows know nothing of each other: borders that two of them share need not stay the same.
// Decided once per call, on the CPU or the GPU, with the same bits; results live where it ran. Waits for sizes, and now and then for whether there is more to do.
//
//     auto const coarse = spatial::simplify(stream, coasts, 0.01).value();
#pragma once

#include <kiln/spatial/geometry.hpp>

namespace KILN_PUBLIC kiln {
namespace spatial {

// The tolerance is 0 or within the range of coordinates, else errc::invalid_argument. Points are as they were. Of several
// of points, lines and areas, a mixed array.
[[nodiscard]] result<geometries> simplify(stream_ref on, geometries const& of, double tolerance);

}  // namespace spatial
}  // namespace kiln
