// SPDX-License-Identifier: Apache-2.0
// Exact planar predicates on doubles, after Shewchuk (1997). A sum of doubles that do not overlap, smallest first, is an
// "expansion": it holds a number of any length without error, and its sign is that of its last nonzero component. Each
// predicate has a filter, which is one rounded evaluation with a proved error bound, and is decided by it nearly always; what is
// left goes through stages that are each more exact and stop as soon as the sign is certain.
//
// Domain: finite coordinates that are 0 or between 2^-300 and 2^330 in magnitude (see in_domain): then no product of three
// differences overflows, and none loses bits below the smallest double. Arrays are checked once, where they are made.
#pragma once

#include "support.cuh"

namespace kiln_spatial {

constexpr int least_exponent = -300;
constexpr int most_exponent = 330;

KILN_HD bool in_domain(double v) {
    int const exponent = static_cast<int>(bits_of(v) >> 52 & 0x7ff) - 1023;
    return v == 0 || (exponent >= least_exponent && exponent < most_exponent);
}

// ---- Sums and products without error ---------------------------------------------------------------------------------

struct two {
    double high, low;  // the rounded result, and what rounding took away
};

KILN_HD two two_sum(double a, double b) {
    double const s = add(a, b), from_b = sub(s, a);
    return {s, add(sub(a, sub(s, from_b)), sub(b, from_b))};
}
// |a| >= |b|, or a is 0.
KILN_HD two quick_sum(double a, double b) {
    double const s = add(a, b);
    return {s, sub(b, sub(s, a))};
}
KILN_HD two two_difference(double a, double b) {
    double const s = sub(a, b), from_b = sub(a, s);
    return {s, add(sub(a, add(s, from_b)), sub(from_b, b))};
}
KILN_HD two two_product(double a, double b) {
    double const p = mul(a, b);
    return {p, fused(a, b, -p)};
}

// to[0..3] = a - b
KILN_HD void difference_of_twos(two a, two b, double* to) {
    two const first = two_difference(a.low, b.low);
    two const second = two_sum(a.high, first.high);
    two const third = two_difference(second.low, b.high);
    two const last = two_sum(second.high, third.high);
    to[0] = first.low, to[1] = third.low, to[2] = last.low, to[3] = last.high;
}

// e[0..N] = e[0..N-1] + b. N is known, so everything stays in registers.
template <int N>
KILN_HD void grow(double* e, double b) {
    KILN_UNROLL
    for (int i = 0; i < N; ++i) {
        two const s = two_sum(b, e[i]);
        e[i] = s.low, b = s.high;
    }
    e[N] = b;
}
template <int N>
KILN_HD void grow_by_four(double* e, double const* by) {
    grow<N>(e, by[0]), grow<N + 1>(e, by[1]), grow<N + 2>(e, by[2]), grow<N + 3>(e, by[3]);
}

template <int N>
KILN_HD int expansion_sign(double const* e) {
    int out = 0;
    KILN_UNROLL
    for (int i = 0; i < N; ++i) out = e[i] != 0 ? sign_of(e[i]) : out;
    return out;
}

// e[0..15] = ux * vy - uy * vx, each factor the exact difference of two coordinates. Small terms first.
KILN_HD void cross_expansion(two ux, two uy, two vx, two vy, double* e) {
    double f[4];
    difference_of_twos(two_product(ux.low, vy.low), two_product(uy.low, vx.low), e);
    difference_of_twos(two_product(ux.low, vy.high), two_product(uy.low, vx.high), f);
    grow_by_four<4>(e, f);
    difference_of_twos(two_product(ux.high, vy.low), two_product(uy.high, vx.low), f);
    grow_by_four<8>(e, f);
    difference_of_twos(two_product(ux.high, vy.high), two_product(uy.high, vx.high), f);
    grow_by_four<12>(e, f);
}

// ---- Orientation -----------------------------------------------------------------------------------------------------

// On which side of the line from a to b is c? +1 left, -1 right, 0 on it.

// The filter alone, for hot loops: what it cannot decide goes onto a list for a kernel that calls orient().
struct guess {
    int side;
    bool certain;
};
KILN_HD guess orient_filter(point a, point b, point c) {
    double const left = mul(sub(a.x, c.x), sub(b.y, c.y)), right = mul(sub(a.y, c.y), sub(b.x, c.x));
    double const d = sub(left, right);
    double const bound = mul(3.3306690738754716e-16, add(magnitude(left), magnitude(right)));  // (3 + 16u)u
    return {sign_of(d), magnitude(d) >= bound};
}

// Shewchuk's later stages. `size` is the sum of the magnitudes of the two products.
KILN_HD_COLD int orient_stages(point a, point b, point c, double size) {
    two const ux = two_difference(a.x, c.x), uy = two_difference(a.y, c.y);
    two const vx = two_difference(b.x, c.x), vy = two_difference(b.y, c.y);
    // B: the differences as they were rounded, their products exactly.
    double e[4];
    difference_of_twos(two_product(ux.high, vy.high), two_product(uy.high, vx.high), e);
    double d = add(add(add(e[0], e[1]), e[2]), e[3]);
    if (magnitude(d) >= mul(2.2204460492503146e-16, size)) return sign_of(d);
    if (ux.low == 0 && uy.low == 0 && vx.low == 0 && vy.low == 0) return expansion_sign<4>(e);
    // C: what the differences lost, to first order.
    double const bound = add(mul(1.1093356479670487e-31, size), mul(3.3306690738754706e-16, magnitude(d)));
    d = add(d, sub(add(mul(ux.high, vy.low), mul(vy.high, ux.low)), add(mul(uy.high, vx.low), mul(vx.high, uy.low))));
    if (magnitude(d) >= bound) return sign_of(d);
    // D: everything.
    double all[16];
    cross_expansion(ux, uy, vx, vy, all);
    return expansion_sign<16>(all);
}

KILN_HD int orient(point a, point b, point c) {
    double const left = mul(sub(a.x, c.x), sub(b.y, c.y)), right = mul(sub(a.y, c.y), sub(b.x, c.x));
    double const d = sub(left, right), size = add(magnitude(left), magnitude(right));
    if (magnitude(d) >= mul(3.3306690738754716e-16, size)) return sign_of(d);
    return orient_stages(a, b, c, size);
}

// ---- Segments --------------------------------------------------------------------------------------------------------

KILN_HD bool in_box_of(point a, point b, point p) {
    return p.x >= least(a.x, b.x) && p.x <= most(a.x, b.x) && p.y >= least(a.y, b.y) && p.y <= most(a.y, b.y);
}
KILN_HD bool boxes_meet(point a, point b, point c, point d) {
    return most(a.x, b.x) >= least(c.x, d.x) && most(c.x, d.x) >= least(a.x, b.x) && most(a.y, b.y) >= least(c.y, d.y) &&
           most(c.y, d.y) >= least(a.y, b.y);
}

// The closed segment, which may have no length.
KILN_HD bool on_segment(point a, point b, point p) { return in_box_of(a, b, p) && orient(a, b, p) == 0; }

enum segment_contact : int {
    apart = 0,
    crossing = 1,  // in one point, inside both
    touching = 2,  // in one point, an end of at least one
    overlapping = 3  // in more than one point
};

KILN_HD segment_contact contact_of(point a, point b, point c, point d) {
    if (!boxes_meet(a, b, c, d)) return apart;
    if (a == b) return on_segment(c, d, a) ? touching : apart;
    if (c == d) return on_segment(a, b, c) ? touching : apart;
    int const side_c = orient(a, b, c), side_d = orient(a, b, d);
    if (side_c * side_d > 0) return apart;
    int const side_a = orient(c, d, a), side_b = orient(c, d, b);
    if (side_a * side_b > 0) return apart;
    if (side_c != 0 || side_d != 0) return side_c * side_d < 0 && side_a * side_b < 0 ? crossing : touching;
    // On one line: compared along x, or along y where the line is upright. The boxes meet, so the segments do.
    bool const upright = a.x == b.x;
    double const a0 = upright ? a.y : a.x, a1 = upright ? b.y : b.x, c0 = upright ? c.y : c.x, c1 = upright ? d.y : d.x;
    double const from = most(least(a0, a1), least(c0, c1)), to = least(most(a0, a1), most(c0, c1));
    return from < to ? overlapping : touching;
}

// ---- The point where two segments cross, correctly rounded -----------------------------------------------------------

// Rounded to nearest, ties to even, from the exact rational: so it does not depend on the order or direction of the segments,
// and equal crossings have equal coordinates.

// e as an unevaluated sum of two doubles, to about 2^-104.
KILN_HD two rounded_expansion(double const* e, int n) {
    double high = e[0];
    for (int i = 1; i < n; ++i) high = add(high, e[i]);
    double rest = 0, q = -high;
    for (int i = 0; i < n; ++i) {
        two const s = two_sum(q, e[i]);
        rest = add(rest, s.low), q = s.high;
    }
    return quick_sum(high, add(rest, q));
}

// To about 2^-102.
KILN_HD two quotient_of_twos(two n, two d) {
    double const first = quotient(n.high, d.high);
    two p = two_product(first, d.high);
    two r = two_difference(n.high, p.high);
    double rest = add(r.low, sub(sub(n.low, p.low), mul(first, d.low)));
    two t = quick_sum(first, quotient(add(r.high, rest), d.high));
    p = two_product(t.high, d.high);
    r = two_difference(n.high, p.high);
    rest = add(r.high, add(r.low, sub(sub(sub(n.low, p.low), mul(t.high, d.low)), mul(t.low, d.high))));
    return quick_sum(t.high, add(t.low, quotient(rest, d.high)));
}

// e[0..n) += f * b; returns the new n. Components that are 0 are left out.
KILN_HD int add_scaled(double* e, int n, double const* f, int m, double b) {
    for (int j = 0; j < m; ++j) {
        two const p = two_product(f[j], b);
        for (int half = 0; half < 2; ++half) {
            double q = half == 0 ? p.low : p.high;
            int kept = 0;
            for (int i = 0; i < n; ++i) {
                two const s = two_sum(q, e[i]);
                if (s.low != 0) e[kept++] = s.low;
                q = s.high;
            }
            if (q != 0) e[kept++] = q;
            n = kept;
        }
    }
    return n;
}

// The sign of top / bottom - (x + half), exactly.
KILN_HD int compare_quotient(double const* top, int n, double const* bottom, int bottom_sign, double x, double half) {
    double e[160];
    for (int i = 0; i < n; ++i) e[i] = top[i];
    n = add_scaled(e, n, bottom, 16, -x);
    n = add_scaled(e, n, bottom, 16, -half);
    return (n > 0 ? sign_of(e[n - 1]) : 0) * bottom_sign;
}

// a + (b - a) * t for t = top / bottom where two doubles of t were not enough: mostly exact ties, as on lattices.
KILN_HD_COLD double round_exactly(double a, two step, double const* top, double const* bottom) {
    double n_all[96];
    int n = add_scaled(n_all, 0, top, 16, step.low);
    n = add_scaled(n_all, n, top, 16, step.high);
    n = add_scaled(n_all, n, bottom, 16, a);
    if (n == 0) return 0;
    int const s = expansion_sign<16>(bottom);
    double x = quotient_of_twos(rounded_expansion(n_all, n), rounded_expansion(bottom, 16)).high;
    // x is the answer or next to it: compare with the middles to both sides.
    for (int turn = 0; turn < 6; ++turn) {
        double const up = next_up(x), down = next_down(x);
        int const above = compare_quotient(n_all, n, bottom, s, x, mul(sub(up, x), 0.5));
        int const below = compare_quotient(n_all, n, bottom, s, x, mul(sub(down, x), 0.5));
        if (above > 0) x = up;
        else if (below < 0) x = down;
        else {
            bool const odd = (bits_of(x) & 1) != 0;
            if (odd && above == 0) return up;
            if (odd && below == 0) return down;
            return x;
        }
    }
    return x;
}

KILN_HD double rounded_coordinate(double a, double b, two t, double const* top, double const* bottom) {
    two const step = two_difference(b, a);
    if (step.high == 0) return a;
    two m = two_product(t.high, step.high);
    m = quick_sum(m.high, add(m.low, add(mul(t.high, step.low), mul(t.low, step.high))));
    two const s = two_sum(a, m.high), w = two_sum(s.low, m.low);
    two x = quick_sum(s.high, w.high);
    x = quick_sum(x.high, add(x.low, w.low));
    // 2^-98 of the product, 2^-101 of the sum: if both ends of that interval round alike, so does the truth.
    double const error = add(mul(3.2e-30, magnitude(m.high)), mul(4e-31, magnitude(a)));
    double const up = add(x.high, add(x.low, error)), down = add(x.high, sub(x.low, error));
    return up == down ? up : round_exactly(a, step, top, bottom);
}

// Of segments that are not parallel: crossing, or touching at an angle.
KILN_HD_COLD point crossing_point(point a, point b, point c, point d) {
    two const ux = two_difference(b.x, a.x), uy = two_difference(b.y, a.y);
    two const vx = two_difference(d.x, c.x), vy = two_difference(d.y, c.y);
    double top[16], bottom[16];
    cross_expansion(two_difference(c.x, a.x), two_difference(c.y, a.y), vx, vy, top);
    cross_expansion(ux, uy, vx, vy, bottom);
    two const t = quotient_of_twos(rounded_expansion(top, 16), rounded_expansion(bottom, 16));
    return {rounded_coordinate(a.x, b.x, t, top, bottom), rounded_coordinate(a.y, b.y, t, top, bottom)};
}

}  // namespace kiln_spatial
