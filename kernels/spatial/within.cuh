// SPDX-License-Identifier: Apache-2.0
// Whether two elements are at most d apart, exactly: a comparison of polynomials of degree four in the coordinates, never of
// rounded distances. A filter decides nearly always. What is left does not fit expansions of doubles, whose products of four would
// leave the range of the exponent, and is compared in whole numbers of as many words as the domain of exact.cuh can need.
#pragma once

#include "distance.cuh"

namespace kiln_spatial {

// A whole number times a power of two that all numbers of a comparison share. Differences of coordinates have 684 bits at most.
struct long_number {
    static constexpr int most_words = 92;  // of a product of four, and a sum
    u32 word[most_words];
    int words;
    bool negative;
};

KILN_HD void trim(long_number& n) {
    while (n.words > 0 && n.word[n.words - 1] == 0) --n.words;
    if (n.words == 0) n.negative = false;
}

// The exponent of the last bit of a number that is not 0.
KILN_HD int last_exponent(double v) {
    u64 const mantissa = (bits_of(v) & ((u64{1} << 52) - 1)) | u64{1} << 52;
    int out = static_cast<int>(bits_of(v) >> 52 & 0x7ff) - 1075;
    for (u64 m = mantissa; (m & 1) == 0; m >>= 1) ++out;
    return out;
}
KILN_HD int least_unit(int so_far, double v) {
    if (v == 0) return so_far;
    int const e = last_exponent(v);
    return e < so_far ? e : so_far;
}

// v in units of 2^unit, which is no more than v's last bit.
KILN_HD void set(long_number& to, double v, int unit) {
    to.words = 0, to.negative = v < 0;
    if (v == 0) return;
    u64 const mantissa = (bits_of(v) & ((u64{1} << 52) - 1)) | u64{1} << 52;
    int const shift = static_cast<int>(bits_of(v) >> 52 & 0x7ff) - 1075 - unit;
    if (shift < 0) {  // the bits that go are 0
        to.word[0] = static_cast<u32>(mantissa >> -shift), to.word[1] = static_cast<u32>(mantissa >> -shift >> 32);
        to.words = 2;
        return trim(to);
    }
    int const skipped = shift / 32, rest = shift % 32;
    for (int i = 0; i < skipped; ++i) to.word[i] = 0;
    u64 const low = mantissa << rest;
    to.word[skipped] = static_cast<u32>(low), to.word[skipped + 1] = static_cast<u32>(low >> 32);
    to.word[skipped + 2] = rest == 0 ? 0 : static_cast<u32>(mantissa >> (64 - rest));
    to.words = skipped + 3;
    trim(to);
}

KILN_HD int compare_magnitudes(long_number const& a, long_number const& b) {
    if (a.words != b.words) return a.words < b.words ? -1 : 1;
    for (int i = a.words - 1; i >= 0; --i)
        if (a.word[i] != b.word[i]) return a.word[i] < b.word[i] ? -1 : 1;
    return 0;
}
// to = |a| + |b| or, where |a| >= |b|, |a| - |b|. `to` may be a.
KILN_HD void add_magnitudes(long_number& to, long_number const& a, long_number const& b) {
    int const n = a.words > b.words ? a.words : b.words;
    u64 carry = 0;
    for (int i = 0; i < n; ++i) {
        carry += (i < a.words ? a.word[i] : 0U);
        carry += (i < b.words ? b.word[i] : 0U);
        to.word[i] = static_cast<u32>(carry), carry >>= 32;
    }
    to.words = n;
    if (carry != 0) to.word[to.words++] = static_cast<u32>(carry);
}
KILN_HD void subtract_magnitudes(long_number& to, long_number const& a, long_number const& b) {
    u64 borrow = 0;
    int const n = a.words;
    for (int i = 0; i < n; ++i) {
        u64 const v = u64{a.word[i]} - (i < b.words ? b.word[i] : 0U) - borrow;
        to.word[i] = static_cast<u32>(v), borrow = v >> 63;
    }
    to.words = n;
}
KILN_HD void sum_of(long_number& to, long_number const& a, long_number const& b) {
    bool const sign_a = a.negative, sign_b = b.negative;
    if (sign_a == sign_b) {
        add_magnitudes(to, a, b), to.negative = sign_a;
    } else if (compare_magnitudes(a, b) >= 0) {
        subtract_magnitudes(to, a, b), to.negative = sign_a;
    } else {
        subtract_magnitudes(to, b, a), to.negative = sign_b;
    }
    trim(to);
}
// `to` is neither.
KILN_HD void product_of(long_number& to, long_number const& a, long_number const& b) {
    to.words = a.words + b.words, to.negative = a.negative != b.negative;
    for (int i = 0; i < to.words; ++i) to.word[i] = 0;
    for (int i = 0; i < a.words; ++i) {
        u64 carry = 0;
        for (int j = 0; j < b.words; ++j) {
            carry += u64{a.word[i]} * b.word[j] + to.word[i + j];
            to.word[i + j] = static_cast<u32>(carry), carry >>= 32;
        }
        to.word[i + b.words] = static_cast<u32>(carry);
    }
    trim(to);
}
KILN_HD void difference_of(long_number& to, double a, double b, int unit) {
    long_number x, y;
    set(x, a, unit), set(y, -b, unit);
    sum_of(to, x, y);
}
// x^2 + y^2
KILN_HD void square_of(long_number& to, long_number const& x, long_number const& y) {
    long_number xx, yy;
    product_of(xx, x, x), product_of(yy, y, y);
    sum_of(to, xx, yy);
}

KILN_HD int unit_of(point a, point b, int unit) {
    return least_unit(least_unit(least_unit(least_unit(unit, a.x), a.y), b.x), b.y);
}

KILN_HD_COLD bool points_within_exactly(point a, point b, double d) {
    int const unit = unit_of(a, b, least_unit(1024, d));
    long_number x, y, square, most, limit;
    difference_of(x, a.x, b.x, unit), difference_of(y, a.y, b.y, unit);
    square_of(square, x, y);
    set(most, d, unit), product_of(limit, most, most);
    return compare_magnitudes(square, limit) <= 0;
}
// The line through a and b, which differ: cross^2 <= d^2 length^2.
KILN_HD_COLD bool line_within_exactly(point p, point a, point b, double d) {
    int const unit = unit_of(a, b, unit_of(p, p, least_unit(1024, d)));
    long_number ux, uy, vx, vy, left, right, cross;
    difference_of(ux, p.x, a.x, unit), difference_of(uy, p.y, a.y, unit);
    difference_of(vx, b.x, a.x, unit), difference_of(vy, b.y, a.y, unit);
    product_of(left, ux, vy), product_of(right, uy, vx);
    right.negative = right.words > 0 && !right.negative;
    sum_of(cross, left, right);
    product_of(left, cross, cross);
    long_number most, limit;
    set(most, d, unit), product_of(limit, most, most);
    square_of(cross, vx, vy);
    product_of(right, limit, cross);
    return compare_magnitudes(left, right) <= 0;
}

KILN_HD bool points_within(point a, point b, double d) {
    // Four roundings here, one there: 2^-50 of both is more than all of them.
    double const square = square_between(a, b), limit = mul(d, d);
    if (magnitude(sub(square, limit)) > mul(0x1p-50, add(square, limit))) return square < limit;
    return points_within_exactly(a, b, d);
}

// The sign of (p - a) . (b - a).
KILN_HD int sign_along(point p, point a, point b) {
    double const left = mul(sub(p.x, a.x), sub(b.x, a.x)), right = mul(sub(p.y, a.y), sub(b.y, a.y));
    double const sum = add(left, right);
    if (magnitude(sum) > mul(0x1p-50, add(magnitude(left), magnitude(right)))) return sign_of(sum);
    two const ux = two_difference(p.x, a.x), uy = two_difference(p.y, a.y), vy = two_difference(b.y, a.y);
    double e[16];
    cross_expansion(ux, uy, {-vy.high, -vy.low}, two_difference(b.x, a.x), e);
    return expansion_sign<16>(e);
}

KILN_HD bool point_within_of_segment(point p, point a, point b, double d) {
    if (points_within(p, a, d) || points_within(p, b, d)) return true;
    if (a == b || sign_along(p, a, b) <= 0 || sign_along(p, b, a) <= 0) return false;
    double const ux = sub(p.x, a.x), uy = sub(p.y, a.y), vx = sub(b.x, a.x), vy = sub(b.y, a.y);
    double const left = mul(ux, vy), right = mul(uy, vx), aside = magnitude(sub(left, right));
    double const error = mul(0x1p-50, add(magnitude(left), magnitude(right)));
    double const limit = mul(d, root(add(mul(vx, vx), mul(vy, vy)))), doubt = add(error, mul(0x1p-49, limit));
    if (magnitude(sub(aside, limit)) > doubt) return aside < limit;
    return line_within_exactly(p, a, b, d);
}

// ---- Filters alone: 1 and 0 are certain, -1 is neither ----

KILN_HD int quick_points_within(point a, point b, double d) {
    double const square = square_between(a, b), limit = mul(d, d);
    if (magnitude(sub(square, limit)) > mul(0x1p-50, add(square, limit))) return square < limit ? 1 : 0;
    return -1;
}
KILN_HD int quick_sign_along(point p, point a, point b, bool& unsure) {
    double const left = mul(sub(p.x, a.x), sub(b.x, a.x)), right = mul(sub(p.y, a.y), sub(b.y, a.y));
    double const sum = add(left, right);
    unsure |= !(magnitude(sum) > mul(0x1p-50, add(magnitude(left), magnitude(right))));
    return sign_of(sum);
}
KILN_HD int quick_point_within_of_segment(point p, point a, point b, double d) {
    int const from_a = quick_points_within(p, a, d), from_b = quick_points_within(p, b, d);
    if (from_a > 0 || from_b > 0) return 1;
    if (from_a < 0 || from_b < 0) return -1;
    if (a == b) return 0;
    bool unsure = false;
    bool const beyond = quick_sign_along(p, a, b, unsure) < 0 || quick_sign_along(p, b, a, unsure) < 0;
    if (unsure) return -1;
    if (beyond) return 0;
    double const ux = sub(p.x, a.x), uy = sub(p.y, a.y), vx = sub(b.x, a.x), vy = sub(b.y, a.y);
    double const left = mul(ux, vy), right = mul(uy, vx), aside = magnitude(sub(left, right));
    double const error = mul(0x1p-50, add(magnitude(left), magnitude(right)));
    double const limit = mul(d, root(add(mul(vx, vx), mul(vy, vy)))), doubt = add(error, mul(0x1p-49, limit));
    if (magnitude(sub(aside, limit)) > doubt) return aside < limit ? 1 : 0;
    return -1;
}
KILN_HD int quick_elements_within(point a, point b, point c, point d, double distance) {
    point const ends[4] = {a, b, c, d};
    bool unsure = false;
    for (int i = 0; i < 4; ++i) {
        int const one = quick_point_within_of_segment(ends[i], i < 2 ? c : a, i < 2 ? d : b, distance);
        if (one > 0) return 1;
        unsure |= one < 0;
    }
    return unsure ? -1 : quick_meet(a, b, c, d);
}

// ---- Exactly ----

// Of elements, which may be points. d is 0 or within the domain of coordinates.
KILN_HD bool elements_within(point a, point b, point c, point d, double distance) {
    if (contact_of(a, b, c, d) != apart) return true;
    return point_within_of_segment(a, c, d, distance) || point_within_of_segment(b, c, d, distance) ||
           point_within_of_segment(c, a, b, distance) || point_within_of_segment(d, a, b, distance);
}

}  // namespace kiln_spatial
