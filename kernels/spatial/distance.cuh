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

// The greatest square whose root is rounded to the same distance. Several squares have one root: whoever orders by these orders by distances as they are
// reported, and what is reported as equally far is a tie. No more than three are tried, and only where something is no farther than the best so far.
KILN_HD double square_as_reported(double square) {
    if (!(square > 0)) return square;
    double const distance = root(square);
    double out = square;
    for (double next = next_up(out); root(next) == distance; next = next_up(next)) out = next;
    return out;
}

// The same without a root where there is nothing to compare: no square with the same root as another is more than 2^-51 of it away.
KILN_HD double with_ties(double square) { return mul(square, 1 + 0x1p-50); }
KILN_HD bool is_same_distance(double one, double other) {
    return one == other || (one <= with_ties(other) && other <= with_ties(one) && root(one) == root(other));
}

// Between the intervals from a to b and from c to d, in either order; 0 where they meet.
KILN_HD double gap_between(double a, double b, double c, double d) {
    return most(0, most(sub(least(c, d), most(a, b)), sub(least(a, b), most(c, d))));
}

// Of a point from a segment, which may have no length.
KILN_HD double square_from_segment(point p, point a, point b) {
    double const dx = sub(b.x, a.x), dy = sub(b.y, a.y), length = add(mul(dx, dx), mul(dy, dy));
    if (length == 0) return square_between(p, a);
    double const ux = sub(p.x, a.x), uy = sub(p.y, a.y), along = add(mul(ux, dx), mul(uy, dy));
    if (along <= 0) return square_between(p, a);
    if (along >= length) return square_between(p, b);
    double const aside = sub(mul(uy, dx), mul(ux, dy));
    // Divided before it is squared: its square may be beyond all doubles, or below them, where coordinates are not.
    // Never less than from the segment's box, which no rounding of what cancels here would heed: so whoever leaves things out by
    // their boxes leaves out nothing that is nearer, whatever the order.
    double const out = mul(quotient(aside, length), aside), x = gap_between(p.x, p.x, a.x, b.x), y = gap_between(p.y, p.y, a.y, b.y);
    return most(out, add(mul(x, x), mul(y, y)));
}

// Of elements that do not meet: the least of the four ends' distances, kept above 0.
KILN_HD double square_of_apart(point a, point b, point c, point d) {
    double const from_cd = least(square_from_segment(a, c, d), square_from_segment(b, c, d));
    double const from_ab = least(square_from_segment(c, a, b), square_from_segment(d, a, b));
    double const out = least(from_cd, from_ab);
    return out > 0 ? out : from_bits(1);
}
// Do they meet? 1 and 0 are certain; -1: a filter cannot tell.
KILN_HD int quick_meet(point a, point b, point c, point d) {
    if (!boxes_meet(a, b, c, d)) return 0;
    guess const c_side = orient_filter(a, b, c), d_side = orient_filter(a, b, d);
    bool const cd_sure = c_side.certain && d_side.certain;
    if (cd_sure && c_side.side * d_side.side > 0) return 0;
    guess const a_side = orient_filter(c, d, a), b_side = orient_filter(c, d, b);
    bool const ab_sure = a_side.certain && b_side.certain;
    if (ab_sure && a_side.side * b_side.side > 0) return 0;
    return cd_sure && ab_sure && c_side.side * d_side.side < 0 && a_side.side * b_side.side < 0 ? 1 : -1;
}

// 0 exactly where they meet.
KILN_HD double square_between_elements(point a, point b, point c, point d) {
    return contact_of(a, b, c, d) != apart ? 0 : square_of_apart(a, b, c, d);
}

}  // namespace kiln_spatial
