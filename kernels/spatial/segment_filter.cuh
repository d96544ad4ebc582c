// SPDX-License-Identifier: Apache-2.0
// How two segments meet, as far as filters can tell.
#pragma once

#include "exact.cuh"

namespace kiln_spatial {

enum : u8 { not_known = 4 };

// `apart`, `crossing` or not_known.
KILN_HD u8 quick_contact(point a, point b, point c, point d) {
    if (!boxes_meet(a, b, c, d)) return apart;
    guess const c_side = orient_filter(a, b, c), d_side = orient_filter(a, b, d);
    bool const cd_sure = c_side.certain && d_side.certain;
    if (cd_sure && c_side.side * d_side.side > 0) return apart;
    guess const a_side = orient_filter(c, d, a), b_side = orient_filter(c, d, b);
    bool const ab_sure = a_side.certain && b_side.certain;
    if (ab_sure && a_side.side * b_side.side > 0) return apart;
    bool const crosses = cd_sure && ab_sure && c_side.side * d_side.side < 0 && a_side.side * b_side.side < 0;
    return crosses ? u8{crossing} : u8{not_known};
}

}  // namespace kiln_spatial
