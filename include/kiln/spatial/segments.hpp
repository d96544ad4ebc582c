// SPDX-License-Identifier: Apache-2.0
//
// Where the segments of two arrays meet: each pair of them that is not apart, with how they meet and, where that is in one point,
// the point. A crossing inside both is correctly rounded from the exact one, so it does not depend on the order or direction of
// the segments. Points of the arrays count as segments without length. Decided once per call; results live where it ran.
#pragma once

#include <kiln/spatial/geometry.hpp>

namespace KILN_PUBLIC kiln {
namespace spatial {

enum class meeting : std::uint8_t {
    crossing = 1,  // in one point, inside both
    touching,      // in one point, an end of at least one
    overlapping,   // in more than one point: x and y are NaN
};
// By the segments of the left array in their order, then those of the right one.
struct segment_list {
    buffer<std::int32_t> left, right;  // rows
    buffer<meeting> how;
    buffer<double> x, y;
    [[nodiscard]] std::size_t size() const noexcept { return left.size(); }
};
[[nodiscard]] result<segment_list> segment_intersections(stream_ref on, geometries const& left,
                                                         geometries const& right);

}  // namespace spatial
}  // namespace kiln
