// SPDX-License-Identifier: Apache-2.0
#include "spatial/exact.cuh"
#include "superaccumulator.hpp"
#include "triples.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace kiln::spatial_tests {

namespace {

using namespace kiln_spatial;

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
