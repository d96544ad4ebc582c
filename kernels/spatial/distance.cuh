// SPDX-License-Identifier: Apache-2.0
// Squared distances of elements. Rounded once per operation in a fixed order: the device and the host give the same bits. Whether
// a distance is 0 is exact.
#pragma once

#include "layer.cuh"

namespace kiln_spatial {

KILN_HD double square_between(point a, point b) {
    double const x = sub(a.x, b.x), y = sub(a.y, b.y);
    return add(mul(x, x), mul(y, y));
}

// Of a point from a segment, which may have no length.
KILN_HD double square_from_segment(point p, point a, point b) {
    double const dx = sub(b.x, a.x), dy = sub(b.y, a.y), length = add(mul(dx, dx), mul(dy, dy));
    if (length == 0) return square_between(p, a);
    double const ux = sub(p.x, a.x), uy = sub(p.y, a.y), along = add(mul(ux, dx), mul(uy, dy));
    if (along <= 0) return square_between(p, a);
    if (along >= length) return square_between(p, b);
    double const aside = sub(mul(uy, dx), mul(ux, dy));
    return quotient(mul(aside, aside), length);
}

// 0 exactly where they meet; where they do not, the least of the four ends' distances, kept above 0.
KILN_HD double square_between_elements(point a, point b, point c, point d) {
    if (contact_of(a, b, c, d) != apart) return 0;
    double const from_cd = least(square_from_segment(a, c, d), square_from_segment(b, c, d));
    double const from_ab = least(square_from_segment(c, a, b), square_from_segment(d, a, b));
    double const out = least(from_cd, from_ab);
    return out > 0 ? out : from_bits(1);
}

}  // namespace kiln_spatial
