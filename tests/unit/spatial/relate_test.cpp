// SPDX-License-Identifier: Apache-2.0
#include <kiln/spatial/relate.hpp>
#include <kiln/spatial/wkt.hpp>

#include "geos.hpp"
#include "samples.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>

namespace kiln::spatial_tests {

namespace {

using namespace spatial;

std::string relate_text(std::string const& a, std::string const& b) {
    auto const got = cpu::relate(from_wkt(std::vector{a}).value(), from_wkt(std::vector{b}).value()).value();
    return got[0] ? got[0]->text() : "null";
}

std::string transposed(std::string const& m) { return {m[0], m[3], m[6], m[1], m[4], m[7], m[2], m[5], m[8]}; }

}  // namespace

TEST(relate, knows_the_textbook_cases) {
    std::string const square = "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))";
    std::vector<std::array<std::string, 3>> const cases = {
        {"POINT (1 1)", "POINT (1 1)", "0FFFFFFF2"},
        {"POINT (1 1)", "POINT (2 1)", "FF0FFF0F2"},
        {"POINT (1 1)", square, "0FFFFF212"},
        {"POINT (0 1)", square, "F0FFFF212"},
        {"POINT (9 1)", square, "FF0FFF212"},
        {"LINESTRING (0 0, 2 2)", "LINESTRING (0 2, 2 0)", "0F1FF0102"},
        {"LINESTRING (0 0, 2 2)", "LINESTRING (1 1, 3 3)", "1010F0102"},
        {"LINESTRING (0 0, 1 0, 2 0)", "LINESTRING (2 0, 0 0)", "1FFF0FFF2"},
        {"LINESTRING (0 0, 2 0, 2 2, 0 0)", "POINT (0 0)", "0F1FFFFF2"},  // closed: no boundary
        {"LINESTRING (-1 1, 5 1)", square, "101FF0212"},
        {"LINESTRING (0 0, 4 0)", square, "F1FF0F212"},
        {"LINESTRING (1 1, 2 2)", square, "1FF0FF212"},
        {square, square, "2FFF1FFF2"},
        {square, "POLYGON ((4 0, 8 0, 8 4, 4 4, 4 0))", "FF2F11212"},
        {square, "POLYGON ((4 4, 8 4, 8 8, 4 8, 4 4))", "FF2F01212"},
        {square, "POLYGON ((2 2, 6 2, 6 6, 2 6, 2 2))", "212101212"},
        {square, "POLYGON ((1 1, 2 1, 2 2, 1 2, 1 1))", "212FF1FF2"},
        {square, "POLYGON EMPTY", "FF2FF1FF2"},
        {"POINT EMPTY", square, "FFFFFF212"},
        {"LINESTRING EMPTY", "POINT EMPTY", "FFFFFFFF2"},
        // Mod 2: an end that two lines share is no boundary.
        {"MULTILINESTRING ((0 0, 1 0), (1 0, 2 0))", "POINT (1 0)", "0F1FF0FF2"},
        {"MULTILINESTRING ((0 0, 1 0), (1 0, 2 0), (1 0, 1 1))", "POINT (1 0)", "FF10F0FF2"},
        // An end on a segment of its own line, where the polygon crosses: a point is in the interior or in the boundary, not in both.
        {"POLYGON ((2 1, 0 1, 2 0, 2 1))", "MULTILINESTRING ((2 0, 0 2, 2 3, 1 1))", "1F2F011F2"},
        // A line that runs twice over itself has no piece in common with the boundary.
        {"POLYGON ((0 0, 2 0, 2 1, 2 3, 0 3, 0 2, 0 0))", "LINESTRING (3 3, 1 1, 1 0, 1 2, 3 2)", "1F20F1102"},
    };
    for (auto const& [a, b, matrix] : cases) {
        EXPECT_EQ(relate_text(a, b), matrix) << a << " | " << b;
        EXPECT_EQ(relate_text(b, a), transposed(matrix)) << b << " | " << a;
    }
    EXPECT_EQ(relate_text("NULL", "POINT (1 1)"), "null");
}

// A hole touches its shell from inside, in the middle of an edge; the other polygon crosses there. Looked at edge by edge, it
// would seem to enter the interior on the side where the hole is.
TEST(relate, sees_all_of_a_polygon_that_meets_at_a_point) {
    std::string const with_hole = "POLYGON ((0 0, 8 0, 8 8, 0 8, 0 0), (4 0, 6 3, 2 3, 4 0))";
    // A thin triangle from the outside through the touching point into the hole: never inside.
    EXPECT_EQ(relate_text(with_hole, "POLYGON ((4 -1, 4.25 2, 3.75 2, 4 -1))").substr(0, 2),
              "21");  // wide enough to be inside
    EXPECT_EQ(relate_text(with_hole, "LINESTRING (4 -1, 4 2)"), "FF20F1102");
    EXPECT_EQ(relate_text("LINESTRING (4 -1, 4 2)", with_hole), "F01FF0212");
    // Two polygons of one row that touch, one with a vertex in the other's edge; the line passes from one into the other.
    std::string const touching = "MULTIPOLYGON (((0 0, 8 0, 8 4, 0 4, 0 0)), ((4 4, 6 8, 2 8, 4 4)))";
    EXPECT_EQ(relate_text("LINESTRING (4 1, 4 7)", touching), "10F0FF212");
    EXPECT_EQ(relate_text(touching, "LINESTRING (4 1, 4 7)"), transposed("10F0FF212"));
}

TEST(relate, patterns_and_predicates) {
    auto const m = *cpu::relate(from_wkt(std::vector<std::string>{"POLYGON ((0 0, 4 0, 4 4, 0 0))"}).value(),
                                from_wkt(std::vector<std::string>{"POINT (2 1)"}).value())
                        .value()[0];
    EXPECT_EQ(m.text(), "0F2FF1FF2");
    EXPECT_TRUE(m.matches("T*****FF*").value());
    EXPECT_FALSE(m.matches("FF*FF****").value());
    EXPECT_FALSE(m.matches("T*****FF"));
    EXPECT_FALSE(m.matches("T*****FFX"));
    EXPECT_TRUE(holds(predicate::contains, m) && holds(predicate::covers, m) && holds(predicate::intersects, m) &&
                holds(predicate::contains_properly, m));
    EXPECT_FALSE(holds(predicate::within, m) || holds(predicate::touches, m) || holds(predicate::equals, m));
}

// ---- Against GEOS

#ifdef KILN_TEST_GEOS

namespace {

struct comparison {
    std::size_t pairs = 0, differing = 0, skipped = 0;
    std::map<std::string, std::size_t> matrices;
    std::string first;
};

// All pairs of rows, or those the join names, with the others disjoint.
comparison compare_all(geometries const& a, geometries const& b) {
    geos g;
    auto const ga = g.read(a), gb = g.read(b);
    auto const ta = to_wkt(a).value(), tb = to_wkt(b).value();
    auto const joined = cpu::relate_join(a, b).value();
    // Of lines that meet themselves GEOS 3.11 has its own opinion: a crossing counts as interior also where it is an end,
    // and pieces run twice lose their dimension. docs/spatial.md has examples.
    auto const fit = [&](GEOSGeometry const* one) { return one != nullptr && g.is_valid(one) && g.is_simple(one); };
    std::vector<bool> valid_a, valid_b;
    for (auto const* one : ga) valid_a.push_back(fit(one));
    for (auto const* one : gb) valid_b.push_back(fit(one));
    comparison out;
    auto at = joined.begin();
    for (std::size_t i = 0; i < ga.size(); ++i) {
        for (std::size_t j = 0; j < gb.size(); ++j) {
            bool const listed =
                at != joined.end() && at->left == static_cast<int>(i) && at->right == static_cast<int>(j);
            std::string const ours = listed ? at->how.text() : "";
            if (listed) ++at;
            if (ga[i] == nullptr || gb[j] == nullptr) {
                EXPECT_FALSE(listed) << "null rows relate to nothing";
                continue;
            }
            if (!valid_a[i] || !valid_b[j]) {
                ++out.skipped;
                continue;
            }
            ++out.pairs;
            auto const theirs = g.relate(ga[i], gb[j]);
            ++out.matrices[theirs];
            bool const disjoint = theirs.substr(0, 2) == "FF" && theirs.substr(3, 2) == "FF";
            if (listed ? ours == theirs : disjoint) continue;
            if (out.differing++ == 0) out.first = ta[i] + " | " + tb[j] + ": " + ours + ", GEOS " + theirs;
        }
    }
    EXPECT_EQ(at, joined.end()) << "the join names pairs in order";
    return out;
}

// Per pair of families: 10,000 or so unless KILN_SPATIAL_PAIRS asks for more.
std::size_t pairs_wanted() {
    auto const* const text = std::getenv("KILN_SPATIAL_PAIRS");
    return text != nullptr ? std::strtoul(text, nullptr, 10) : 0;
}

class relate_families : public testing::TestWithParam<std::tuple<int, int>> {};

}  // namespace

TEST_P(relate_families, on_a_lattice_is_that_of_geos) {
    auto const ka = static_cast<family>(std::get<0>(GetParam())), kb = static_cast<family>(std::get<1>(GetParam()));
    auto const wanted = pairs_wanted();
    comparison all;
    for (unsigned seed = 1; seed <= 3 || (all.pairs < wanted && seed < wanted); ++seed) {
        lattice_options how;
        how.rows = 60, how.size = seed == 1   ? 3
                                  : seed <= 3 ? 5 + static_cast<int>(seed)
                                              : 3 + static_cast<int>(seed % 8);
        how.empty_per_mille = 30, how.null_per_mille = 20;
        how.seed = seed * 100 + static_cast<unsigned>(std::get<0>(GetParam()));
        auto const a = lattice(ka, how);
        how.seed = seed * 1000 + static_cast<unsigned>(std::get<1>(GetParam()));
        auto const got = compare_all(a, lattice(kb, how));
        all.pairs += got.pairs, all.differing += got.differing, all.skipped += got.skipped;
        if (all.first.empty()) all.first = got.first;
        all.matrices.insert(got.matrices.begin(), got.matrices.end());
    }
    if (wanted > 0)
        std::printf("%zu pairs, %zu matrices, %zu differ, %zu left out\n", all.pairs, all.matrices.size(),
                    all.differing, all.skipped);
    EXPECT_EQ(all.differing, 0U) << all.first;
    EXPECT_GT(all.pairs, 1000U) << all.skipped << " skipped";
    RecordProperty("matrices", static_cast<int>(all.matrices.size()));
}
INSTANTIATE_TEST_SUITE_P(pairs, relate_families, testing::Combine(testing::Range(1, 7), testing::Range(1, 7)),
                         [](auto const& one) {
                             return std::string{name_of(static_cast<family>(std::get<0>(one.param)))} + "_" +
                                    std::string{name_of(static_cast<family>(std::get<1>(one.param)))};
                         });

TEST(relate_real, natural_earth_with_itself_is_that_of_geos) {
    auto const layer = real_layer("ne110");
    if (!layer) GTEST_SKIP() << "Natural Earth is not in KILN_SPATIAL_DATA";
    auto const got = compare_all(*layer, *layer);
    EXPECT_EQ(got.differing, 0U) << got.first.substr(0, 200) << got.first.substr(got.first.size() - 40);
    EXPECT_GT(got.matrices.size(), 3U);
}

// Two surveys of the same borders: nearly coincident edges, shared pieces, touching vertices, repeated points.
TEST(relate_real, counties_of_two_years_are_those_of_geos) {
    auto const a = real_layer("county2010"), b = real_layer("county2016");
    if (!a || !b) GTEST_SKIP() << "the counties are not in KILN_SPATIAL_DATA";
    auto const joined = cpu::relate_join(*a, *b).value();
    EXPECT_EQ(joined.size(), 21'761U);
    geos g;
    std::vector<std::int32_t> left, right;
    std::size_t const step = pairs_wanted() > 0 ? 1 : 12;
    for (std::size_t i = 0; i < joined.size(); i += step)
        left.push_back(joined[i].left), right.push_back(joined[i].right);
    auto const ga = g.read(a->view(buffer<std::int32_t>::copy_of(left)).value());
    auto const gb = g.read(b->view(buffer<std::int32_t>::copy_of(right)).value());
    std::size_t differing = 0;
    for (std::size_t i = 0; i < left.size(); ++i)
        differing += joined[step * i].how.text() != g.relate(ga[i], gb[i]) ? 1 : 0;
    EXPECT_EQ(differing, 0U) << "of " << left.size();
}

// Bricks: every corner lies in the middle of an edge of the row above or below; every third one has its corners repeated.
TEST(relate_real, a_tiling_with_itself_is_that_of_geos) {
    geometry_builder to;
    for (int row = 0; row < 9; ++row) {
        for (int column = 0; column < 9; ++column) {
            double const x = 2 * column + row % 2, y = row;
            to.begin(family::polygon), to.begin_ring();
            for (auto const& [dx, dy] : {std::pair{0, 0}, {2, 0}, {2, 1}, {0, 1}, {0, 0}})
                for (int times = (row + column) % 3 == 0 ? 2 : 1; times > 0; --times) to.vertex(x + dx, y + dy);
            to.end();
        }
    }
    auto const tiling = to.finish().value();
    auto const got = compare_all(tiling, tiling);
    EXPECT_EQ(got.differing, 0U) << got.first;
    EXPECT_EQ(got.pairs, 81U * 81U);
    EXPECT_EQ(got.matrices.size(), 3U);  // equal, along an edge, apart
}

#else
TEST(relate_families, on_a_lattice_is_that_of_geos) { GTEST_SKIP() << "built without GEOS"; }
#endif

}  // namespace kiln::spatial_tests
