// SPDX-License-Identifier: Apache-2.0
// The truth about signs, sharing nothing with the pack: a fixed-point number over the whole range of a product of two doubles,
// in 32-bit digits.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace kiln::spatial_tests {

class superaccumulator {
public:
    // += sign * a * b, exactly.
    void add_product(double a, double b, int sign) {
        if (a == 0 || b == 0) return;
        int ea = 0, eb = 0;
        auto const ma = static_cast<std::int64_t>(std::ldexp(std::frexp(std::fabs(a), &ea), 53));
        auto const mb = static_cast<std::int64_t>(std::ldexp(std::frexp(std::fabs(b), &eb), 53));
        if (std::signbit(a) != std::signbit(b)) sign = -sign;
        __extension__ using wide = unsigned __int128;
        wide const product = static_cast<wide>(ma) * static_cast<wide>(mb);
        int const exponent = ea + eb - 106 + bias;
        auto at = static_cast<std::size_t>(exponent / 32);
        int const shift = exponent % 32;
        std::uint64_t carry = 0;
        for (int i = 0; i < 4; ++i) {
            auto const part = static_cast<std::uint64_t>(product >> (32 * i)) & 0xffffffffU;
            auto const shifted = (part << shift) | carry;
            carry = shifted >> 32;
            digits_[at++] += sign * static_cast<std::int64_t>(shifted & 0xffffffffU);
        }
        digits_[at] += sign * static_cast<std::int64_t>(carry);
    }
    [[nodiscard]] int sign() const {
        std::int64_t carry = 0;
        bool any = false;
        for (auto const digit : digits_) {
            auto const value = digit + carry;
            carry = value >> 32;
            any |= (value & 0xffffffff) != 0;
        }
        return carry < 0 ? -1 : carry > 0 || any ? 1 : 0;
    }

private:
    static constexpr int bias = 2272;  // below the square of the smallest double; a multiple of 32
    std::array<std::int64_t, 144> digits_ = {};
};

// P: anything with x and y.
template <class P>
int true_side(P const& a, P const& b, P const& c) {
    superaccumulator s;
    s.add_product(a.x, b.y, 1), s.add_product(a.y, b.x, -1);
    s.add_product(b.x, c.y, 1), s.add_product(b.y, c.x, -1);
    s.add_product(c.x, a.y, 1), s.add_product(c.y, a.x, -1);
    return s.sign();
}

template <class P>
bool truly_on(P const& a, P const& b, P const& p) {
    return true_side(a, b, p) == 0 && p.x >= std::min(a.x, b.x) && p.x <= std::max(a.x, b.x) &&
           p.y >= std::min(a.y, b.y) && p.y <= std::max(a.y, b.y);
}

// By the ends that lie on the other segment: none, or one point, or two.
template <class P>
int true_contact(P const& a, P const& b, P const& c, P const& d) {
    P on[4];
    int n = 0;
    if (truly_on(c, d, a)) on[n++] = a;
    if (truly_on(c, d, b)) on[n++] = b;
    if (truly_on(a, b, c)) on[n++] = c;
    if (truly_on(a, b, d)) on[n++] = d;
    for (int i = 1; i < n; ++i)
        if (on[i].x != on[0].x || on[i].y != on[0].y) return 3;
    if (n > 0) return 2;
    return true_side(a, b, c) * true_side(a, b, d) < 0 && true_side(c, d, a) * true_side(c, d, b) < 0 ? 1 : 0;
}

}  // namespace kiln::spatial_tests
