// SPDX-License-Identifier: Apache-2.0
//
// What lies within a distance of points, lines and areas, as multipolygons: row by row, of all families, valid as OGC means it. A negative
// distance leaves of areas what is farther than that from their rings; of points and lines nothing. Corners are those of GEOS: arcs in as
// many steps as `quarter` says for a quarter of a circle, from one side to the other; but rows are not simplified first, so that no detail is
// left out. Decided once per call, on the CPU or the GPU, with the same bits; results live where it ran. Waits for sizes.
//
//     auto const near = spatial::buffer_of(stream, roads, 50, {.caps = spatial::cap_style::flat}).value();
#pragma once

#include <kiln/spatial/geometry.hpp>

namespace KILN_PUBLIC kiln {
namespace spatial {

// At the ends of lines; of points circles, nothing, or upright squares.
enum class cap_style : std::uint8_t { round, flat, square };
// Outside of corners. A mitre that would be farther from its corner than the limit allows is cut off there.
enum class join_style : std::uint8_t { round, mitre, bevel };

struct buffer_options {
    int quarter = 8;  // sides of a quarter of a circle, 1 to 32
    cap_style caps = cap_style::round;
    join_style joins = join_style::round;
    double mitre_limit = 5;  // in distances; at least 1
};
// Null rows stay null. errc::invalid_argument for options out of their range and distances out of that of coordinates. The time is that of an overlay of
// the strips along all segments: distances far above the length of segments make many of them lie over each other.
[[nodiscard]] result<geometries> buffer_of(stream_ref on, geometries const& of, double distance,
                                           buffer_options const& how = {});

}  // namespace spatial
}  // namespace kiln
