// SPDX-License-Identifier: Apache-2.0
// Triples of points and pairs of segments on which arithmetic that is not exact goes wrong, by kind.
#pragma once

#include "spatial/exact.cuh"

#include <cmath>
#include <functional>
#include <random>
#include <vector>

namespace kiln::spatial_tests {

using kiln_spatial::next_down;
using kiln_spatial::next_up;
using kiln_spatial::point;

struct triple {
    point a, b, c;
};

class draw {
public:
    explicit draw(unsigned seed) : engine_{seed} {}
    double real(double from, double to) { return std::uniform_real_distribution<double>{from, to}(engine_); }
    int whole(int from, int to) { return std::uniform_int_distribution<int>{from, to}(engine_); }
    double nudged(double v, int most) {
        for (int n = whole(-most, most); n != 0; n -= n > 0 ? 1 : -1) v = n > 0 ? next_up(v) : next_down(v);
        return v;
    }
    point in(double x0, double y0, double x1, double y1) { return {real(x0, x1), real(y0, y1)}; }
    point between(point a, point b, int nudge) {
        double const t = real(-0.5, 1.5);
        return {nudged(a.x + (b.x - a.x) * t, nudge), nudged(a.y + (b.y - a.y) * t, nudge)};
    }

private:
    std::mt19937_64 engine_;
};

struct kind_of_triple {
    char const* name;
    int count;
    std::function<triple(draw&, int)> make;
};

inline double decimal(double v) { return std::round(v * 1e7) / 1e7; }

inline std::vector<kind_of_triple> const& kinds() {
    static std::vector<kind_of_triple> const all = {
        {"generic", 200'000,
         [](draw& d, int) {
             return triple{d.in(-180, -90, 180, 90), d.in(-180, -90, 180, 90), d.in(-180, -90, 180, 90)};
         }},
        {"nearly_collinear_degrees", 200'000,
         [](draw& d, int) {
             auto const a = d.in(-180, -90, 180, 90), b = d.in(-180, -90, 180, 90);
             return triple{a, b, d.between(a, b, 1)};
         }},
        {"nearly_collinear_metres", 200'000,
         [](draw& d, int) {
             auto const a = d.in(4e5, 5.2e6, 6e5, 5.4e6);
             point const b{a.x + d.real(-50, 50), a.y + d.real(-50, 50)};
             return triple{a, b, d.between(a, b, 1)};
         }},
        {"decimals", 200'000,
         [](draw& d, int) {
             point const a{decimal(d.real(-180, 180)), decimal(d.real(-90, 90))};
             double const dx = 1e-7 * d.whole(-1000, 1000), dy = 1e-7 * d.whole(-1000, 1000);
             int const m = d.whole(1, 9), n = d.whole(-9, 9);
             return triple{
                 a, {decimal(a.x + m * dx), decimal(a.y + m * dy)}, {decimal(a.x + n * dx), decimal(a.y + n * dy)}};
         }},
        {"the_classic_grid", 65'536,
         [](draw&, int i) {
             double const u = 0x1p-53;
             return triple{{12, 12}, {24, 24}, {0.5 + u * (i % 256), 0.5 + u * (i / 256)}};
         }},
        {"integers", 200'000,
         [](draw& d, int) {
             point const a{double(d.whole(-1000, 1000)), double(d.whole(-1000, 1000))};
             int const dx = d.whole(-99, 99), dy = d.whole(-99, 99), n = d.whole(-9, 9);
             return triple{a, {a.x + dx, a.y + dy}, {a.x + n * dx, a.y + n * dy}};
         }},
        {"mixed_magnitudes", 200'000,
         [](draw& d, int) {
             // On a line through 0 exactly, or off it by the last bit of the smallest: nothing short of all terms tells.
             static constexpr double slopes[] = {1, 3, 5, 0.75};
             double const slope = slopes[d.whole(0, 3)];
             auto const on_line = [&](double x) {
                 double const few_bits = static_cast<float>(x);
                 return point{few_bits, few_bits * slope};
             };
             auto const a = on_line(d.real(1e5, 1e6)), b = on_line(d.real(-1e6, -1e5)),
                        c = on_line(d.real(-1e-13, 1e-13));
             return triple{a, b, {c.x, d.nudged(c.y, 1)}};
         }},
        {"the_whole_domain", 200'000,
         [](draw& d, int) {
             auto const any = [&] { return std::ldexp(d.real(-1, 1), d.whole(-290, 328)); };
             point const a{any(), any()}, b{any(), any()};
             if (d.whole(0, 1) == 0) return triple{a, b, {any(), any()}};
             return triple{a, {2 * a.x, d.nudged(2 * a.y, 1)}, {-a.x, d.nudged(-a.y, 1)}};
         }},
    };
    return all;
}

struct pair_of_segments {
    point a, b, c, d;
};

inline pair_of_segments make_pair(draw& r, int kind) {
    auto const lattice = [&](int n, double step) { return point{step * r.whole(0, n), step * r.whole(0, n)}; };
    if (kind == 0) return {lattice(4, 1), lattice(4, 1), lattice(4, 1), lattice(4, 1)};
    if (kind == 1) return {lattice(9, 0.1), lattice(9, 0.1), lattice(9, 0.1), lattice(9, 0.1)};
    auto const a = r.in(0, 0, 1, 1), b = r.in(0, 0, 1, 1);
    if (kind == 2) return {a, b, r.in(0, 0, 1, 1), r.in(0, 0, 1, 1)};
    if (kind == 3) return {a, b, r.between(a, b, 1), r.in(0, 0, 1, 1)};
    return {a, b, r.between(a, b, 1), r.between(a, b, 1)};
}

}  // namespace kiln::spatial_tests
