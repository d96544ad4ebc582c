// SPDX-License-Identifier: Apache-2.0
#include "spatial/exact.cuh"
#include "superaccumulator.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <random>
#include <sstream>

namespace kiln::spatial_tests {

namespace {

using namespace kiln_spatial;

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

double decimal(double v) { return std::round(v * 1e7) / 1e7; }

std::vector<kind_of_triple> const& kinds() {
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

class orientation : public testing::TestWithParam<std::size_t> {};

}  // namespace

TEST_P(orientation, has_the_sign_of_exact_arithmetic) {
    auto const& kind = kinds()[GetParam()];
    draw d{static_cast<unsigned>(GetParam()) + 1};
    int wrong = 0, wrong_filter = 0, undecided = 0, unsymmetric = 0, naive = 0;
    for (int i = 0; i < kind.count; ++i) {
        auto const [a, b, c] = kind.make(d, i);
        int const truth = true_side(a, b, c), got = orient(a, b, c);
        auto const guess = orient_filter(a, b, c);
        wrong += got != truth ? 1 : 0;
        wrong_filter += guess.certain && guess.side != truth ? 1 : 0;
        undecided += guess.certain ? 0 : 1;
        unsymmetric += orient(b, c, a) != got || orient(b, a, c) != -got ? 1 : 0;
        naive += sign_of((a.x - c.x) * (b.y - c.y) - (a.y - c.y) * (b.x - c.x)) != truth ? 1 : 0;
    }
    EXPECT_EQ(wrong, 0) << kind.name;
    EXPECT_EQ(wrong_filter, 0) << kind.name;
    EXPECT_EQ(unsymmetric, 0) << kind.name;
    RecordProperty("undecided", undecided);
    RecordProperty("naive_wrong", naive);
    if (std::string_view{kind.name} == "the_classic_grid") {
        EXPECT_GT(naive, 1000);  // the test can see a wrong sign
    }
}
INSTANTIATE_TEST_SUITE_P(kinds, orientation, testing::Range(std::size_t{0}, kinds().size()),
                         [](auto const& one) { return kinds()[one.param].name; });

TEST(domain, ends_where_products_would_lose_bits) {
    EXPECT_TRUE(in_domain(0) && in_domain(-0.0) && in_domain(180) && in_domain(-0x1p-300) && in_domain(0x1.fp329));
    EXPECT_FALSE(in_domain(0x1p-301) || in_domain(0x1p330) || in_domain(1e-300) || in_domain(1e308));
    EXPECT_FALSE(in_domain(std::nan("")) || in_domain(INFINITY) || in_domain(0x1p-1074));
}

namespace {

struct pair_of_segments {
    point a, b, c, d;
};

pair_of_segments make_pair(draw& r, int kind) {
    auto const lattice = [&](int n, double step) { return point{step * r.whole(0, n), step * r.whole(0, n)}; };
    if (kind == 0) return {lattice(4, 1), lattice(4, 1), lattice(4, 1), lattice(4, 1)};
    if (kind == 1) return {lattice(9, 0.1), lattice(9, 0.1), lattice(9, 0.1), lattice(9, 0.1)};
    auto const a = r.in(0, 0, 1, 1), b = r.in(0, 0, 1, 1);
    if (kind == 2) return {a, b, r.in(0, 0, 1, 1), r.in(0, 0, 1, 1)};
    if (kind == 3) return {a, b, r.between(a, b, 1), r.in(0, 0, 1, 1)};
    return {a, b, r.between(a, b, 1), r.between(a, b, 1)};
}

}  // namespace

TEST(segments, have_the_contact_of_exact_arithmetic) {
    for (int kind = 0; kind < 5; ++kind) {
        draw r{static_cast<unsigned>(77 + kind)};
        int wrong = 0, seen[4] = {};
        for (int i = 0; i < 100'000; ++i) {
            auto const [a, b, c, d] = make_pair(r, kind);
            int const truth = true_contact(a, b, c, d);
            ++seen[truth];
            wrong += contact_of(a, b, c, d) != truth || contact_of(d, c, a, b) != truth ? 1 : 0;
        }
        EXPECT_EQ(wrong, 0) << "kind " << kind;
        EXPECT_GT(seen[0] + seen[1] + seen[2], 0);
        if (kind == 0) {
            EXPECT_GT(seen[3], 1000);
        }
    }
}

TEST(segments, without_length_touch_what_they_lie_on) {
    point const o{0, 0}, m{1, 1}, e{2, 2}, off{1, next_up(1)};
    EXPECT_EQ(contact_of(m, m, o, e), touching);
    EXPECT_EQ(contact_of(o, e, m, m), touching);
    EXPECT_EQ(contact_of(off, off, o, e), apart);
    EXPECT_EQ(contact_of(m, m, m, m), touching);
    EXPECT_TRUE(on_segment(o, e, m));
    EXPECT_FALSE(on_segment(o, e, off));
    EXPECT_FALSE(on_segment(o, m, e));
}

TEST(crossings, do_not_depend_on_order_or_direction) {
    draw r{5};
    int differing = 0, crossed = 0;
    for (int i = 0; i < 200'000; ++i) {
        auto const [a, b, c, d] = make_pair(r, i % 5);
        if (contact_of(a, b, c, d) != crossing) continue;
        ++crossed;
        auto const p = crossing_point(a, b, c, d);
        for (auto const& q : {crossing_point(b, a, c, d), crossing_point(a, b, d, c), crossing_point(b, a, d, c),
                              crossing_point(c, d, a, b), crossing_point(d, c, a, b), crossing_point(c, d, b, a),
                              crossing_point(d, c, b, a)})
            differing += q == p ? 0 : 1;
    }
    EXPECT_EQ(differing, 0);
    EXPECT_GT(crossed, 10'000);
}

// Made by tests/unit/spatial/make_crossings.py from Python's fractions: eight coordinates and the rounded point per line, in
// hexadecimal.
TEST(crossings, are_those_of_rational_arithmetic) {
    std::ifstream file{KILN_TEST_SOURCE_DIR "/tests/unit/spatial/crossings.txt"};
    ASSERT_TRUE(file);
    int lines = 0, wrong = 0;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line[0] == '#') continue;
        double v[10];
        std::istringstream words{line};
        std::string word;
        for (double& x : v) {
            words >> word;
            x = std::strtod(word.c_str(), nullptr);
        }
        auto const p = crossing_point({v[0], v[1]}, {v[2], v[3]}, {v[4], v[5]}, {v[6], v[7]});
        wrong += p.x == v[8] && p.y == v[9] ? 0 : 1;
        ++lines;
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_GE(lines, 1500);
}

}  // namespace kiln::spatial_tests
