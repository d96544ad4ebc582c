// SPDX-License-Identifier: Apache-2.0
// How segments of two layers cross once the left layer is moved by (e, e^2), e infinitesimal: there are no other contacts then. Only ties are decided by the move.
#pragma once

#include "segment_filter.cuh"

namespace kiln_spatial {

enum : u8 { crossed_not = 0, crossed_left = 1, crossed_right = 2, crossed_surely = 4 };  // surely: also before
static_assert(int{crossed_not} == int{apart});

// On which side of the moved segment a b of the left layer is what was on it; of a segment of the right layer, it is the other.
KILN_HD int side_of_tie(point a, point b) { return b.y != a.y ? (b.y > a.y ? 1 : -1) : b.x > a.x ? -1 : 1; }
KILN_HD int side_of_moved(int side, point a, point b) { return side != 0 ? side : side_of_tie(a, b); }
KILN_HD int side_of_fixed(int side, point c, point d) { return side != 0 ? side : -side_of_tie(c, d); }

// Which way a b goes across c d: crossed_left to its left.
KILN_HD u8 crossing_to(int side, bool surely) {
    return static_cast<u8>((side > 0 ? crossed_left : crossed_right) | (surely ? crossed_surely : 0));
}
KILN_HD u8 crossing_of(point a, point b, point c, point d) {
    int const at_c = orient(a, b, c), at_d = orient(a, b, d);
    if (side_of_moved(at_c, a, b) == side_of_moved(at_d, a, b)) return crossed_not;
    int const at_a = orient(c, d, a), at_b = orient(c, d, b), to = side_of_fixed(at_b, c, d);
    return side_of_fixed(at_a, c, d) == to ? u8{crossed_not} : crossing_to(to, at_a * at_b * at_c * at_d != 0);
}
// As far as filters can tell; or not_known.
KILN_HD u8 quick_crossing(point a, point b, point c, point d) {
    if (!boxes_meet(a, b, c, d)) return crossed_not;
    guess const at_c = orient_filter(a, b, c), at_d = orient_filter(a, b, d);
    bool const cd_sure = at_c.certain && at_d.certain;
    if (cd_sure && side_of_moved(at_c.side, a, b) == side_of_moved(at_d.side, a, b)) return crossed_not;
    guess const at_a = orient_filter(c, d, a), at_b = orient_filter(c, d, b);
    bool const ab_sure = at_a.certain && at_b.certain;
    int const to = side_of_fixed(at_b.side, c, d);
    if (ab_sure && side_of_fixed(at_a.side, c, d) == to) return crossed_not;
    if (!cd_sure || !ab_sure) return not_known;
    return crossing_to(to, at_a.side * at_b.side * at_c.side * at_d.side != 0);
}

}  // namespace kiln_spatial
