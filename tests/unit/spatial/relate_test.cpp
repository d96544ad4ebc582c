// SPDX-License-Identifier: Apache-2.0
#include <kiln/runtime/execution.hpp>
#include <kiln/spatial/overlay.hpp>
#include <kiln/spatial/relate.hpp>
#include <kiln/spatial/validate.hpp>
#include <kiln/spatial/wkt.hpp>

#include "geos.hpp"
#include "samples.hpp"
#include "spatial/relations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>

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

// Beside other lines of its row as well, on the host and by the text of the device.
TEST(relate, a_part_without_length_is_a_point) {
    std::vector<std::array<std::string, 3>> const cases = {
        {"LINESTRING (0 0, 4 0)", "MULTILINESTRING ((0 0, 2 0), (9 9, 9 9))", "101F000F2"},
        {"LINESTRING (0 0, 4 0)", "MULTILINESTRING ((0 0, 2 0), (9 9, 8 8))", "101F00102"},
        {"LINESTRING (0 0, 4 0)", "MULTILINESTRING ((9 9, 9 9))", "FF1FF00F2"},
        {"POLYGON ((0 1, 2 2, 1 0, 0 1))", "MULTILINESTRING ((0 1, 2 2), (1 1, 1 1), (2 1, 2 1))", "0F21010F2"},
        {"POLYGON ((0 1, 2 2, 1 0, 0 1))", "MULTILINESTRING ((0 1, 2 2), (1 1, 1 1), (2 1, 3 1))", "0F2101102"},
        {"POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))", "MULTILINESTRING ((1 1, 2 2), (9 9, 9 9))", "102FF10F2"},
        {"POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))", "MULTILINESTRING ((1 1, 2 2), (9 9, 9 9), (8 8, 7 7))", "102FF1102"},
        {"POINT (9 9)", "MULTILINESTRING ((0 0, 2 0), (9 9, 9 9))", "0FFFFF102"},
    };
    std::vector<std::string> left, right;
    for (auto const& [a, b, matrix] : cases) {
        EXPECT_EQ(relate_text(a, b), matrix) << a << " | " << b;
        EXPECT_EQ(relate_text(b, a), transposed(matrix)) << b << " | " << a;
        left.insert(left.end(), {a, b}), right.insert(right.end(), {b, a});
    }
    auto const a = from_wkt(left).value(), b = from_wkt(right).value();
    auto const expected = cpu::relate(a, b).value();
    for (auto const order : {item_order::ascending, item_order::scrambled}) {
        host_queue on{order};
        auto const got = relate_rows(on, a, b, relating::row_by_row).value();
        ASSERT_EQ(got.bits.size(), expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i) {
            matrix const made{got.bits.data()[i], expected[i]->left_dimension(), expected[i]->right_dimension()};
            EXPECT_EQ(made.text(), expected[i]->text()) << left[i] << " | " << right[i];
        }
    }
}

// Of every family, on a lattice.
TEST(relate, a_line_without_length_is_a_point) {
    EXPECT_EQ(relate_text("LINESTRING (1 1, 1 1)", "POINT (1 1)"), "0FFFFFFF2");
    EXPECT_EQ(relate_text("LINESTRING (1 1, 1 1)", "LINESTRING (1 1, 1 1, 1 1)"), "0FFFFFFF2");
    EXPECT_EQ(relate_text("LINESTRING (1 1, 1 1)", "LINESTRING (0 0, 2 2)"), "0FFFFF102");
    for (int kind = 1; kind <= 6; ++kind) {
        auto const others = lattice(static_cast<family>(kind), {.rows = 50, .size = 4, .seed = 17});
        std::vector<std::string> lines, many, points;
        for (std::size_t i = 0; i < others.rows(); ++i) {
            auto const at = std::to_string(i % 5) + " " + std::to_string(i / 5 % 5);
            lines.push_back("LINESTRING (" + at + ", " + at + ")"), points.push_back("POINT (" + at + ")");
            many.push_back("MULTILINESTRING ((" + at + ", " + at + "), (" + at + ", " + at + "))");
        }
        auto const a = from_wkt(lines).value(), b = from_wkt(points).value(), c = from_wkt(many).value();
        auto const of_lines = cpu::relate(a, others).value(), of_many = cpu::relate(c, others).value(),
                   of_points = cpu::relate(b, others).value(), turned = cpu::relate(others, a).value();
        for (std::size_t i = 0; i < of_points.size(); ++i) {
            EXPECT_EQ(of_lines[i]->text(), of_points[i]->text()) << points[i] << " | " << to_wkt(others).value()[i];
            EXPECT_EQ(of_many[i]->text(), of_points[i]->text());
            EXPECT_EQ(turned[i]->text(), transposed(of_points[i]->text()));
            EXPECT_EQ(holds(predicate::crosses, *of_lines[i]), holds(predicate::crosses, *of_points[i]));
        }
        // What runs on a device.
        host_queue on;
        for (auto const& l : {a, c}) {
            auto const got = relate_rows(on, l, others, relating::row_by_row).value();
            for (std::size_t i = 0; i < of_points.size(); ++i)
                EXPECT_EQ((matrix{got.bits.data()[i], 0, 0}.text()), of_points[i]->text()) << points[i];
        }
    }
}

// ---- Rings that are no borders

TEST(relate, refuses_rings_that_are_no_borders) {
    std::string const square = "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))", line = "LINESTRING (0 1, 4 1)";
    for (auto const& [area, why] : areas_without_borders()) {
        auto const areas = from_wkt(std::vector{square, area}).value();
        for (auto const& other : {area, square, line}) {
            auto const others = from_wkt(std::vector{other, other}).value();
            auto const got = cpu::relate(areas, others), turned = cpu::relate(others, areas);
            ASSERT_FALSE(got || turned) << area << " | " << other;
            EXPECT_THAT(got.error().message(), testing::HasSubstr("on the left, row 1: "));
            EXPECT_THAT(got.error().message(), testing::HasSubstr(why)) << area;
            EXPECT_EQ(got.error().code(), errc::invalid_argument);
            EXPECT_THAT(turned.error().message(),
                        testing::HasSubstr(other == area ? "on the left, row 0: " : "on the right, row 1: "));
            EXPECT_FALSE(cpu::relate_join(areas, others));
            EXPECT_FALSE(cpu::join(areas, others, predicate::touches));
            EXPECT_TRUE(cpu::join(areas, others, predicate::intersects)) << "exact, whatever rings do";
        }
        EXPECT_TRUE(cpu::relate(areas, from_wkt(std::vector<std::string>{"POINT (1 1)", "POINT (1 1)"}).value()));
    }
    EXPECT_EQ(relate_text("POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))", "POINT (2 1)"), "FF20F1FF2");
}

// As many as the others of their kind allow: rings that touch themselves and each other in points, in either direction.
TEST(relate, takes_rings_that_touch) {
    for (auto const& area : areas_that_touch_themselves()) {
        EXPECT_EQ(relate_text(area, area), "2FFF1FFF2") << area;
        EXPECT_THAT(validate_rings(from_wkt(std::vector{area}).value()).value(), testing::IsEmpty());
    }
}

#ifdef KILN_TEST_GEOS
// Random rings on a small lattice, valid or not. What is valid is taken; what is taken has the matrix of the same points drawn as GEOS likes them.
TEST(relate, agrees_with_geos_on_all_rings_it_takes) {
    scoped_execution_mode const mode{execution_mode::cpu};
    auto const all = rings_of_any_kind(20'000, 7);
    std::vector<std::uint8_t> is_flawed(all.rows(), 0);
    for (auto const& f : validate_rings(all, all.rows()).value()) is_flawed[f.row] = 1;
    geos g;
    auto const as_read = g.read(all);
    std::vector<std::int32_t> taken;
    std::size_t valid = 0;
    for (std::size_t i = 0; i < all.rows(); ++i) {
        if (is_flawed[i] == 0) taken.push_back(static_cast<std::int32_t>(i));
        if (!g.is_valid(as_read[i])) continue;
        ++valid;
        EXPECT_EQ(is_flawed[i], 0)
            << to_wkt(all.view(buffer<std::int32_t>::copy_of({static_cast<std::int32_t>(i)})).value()).value()[0];
    }
    EXPECT_GT(valid, 1000U);
    EXPECT_GT(taken.size(), valid);
    EXPECT_LT(taken.size(), all.rows() / 2);
    // A few at a time: an overlay's index of areas that lie over each other is large.
    for (std::size_t first = 0; first + 20 <= taken.size(); first += 20) {
        std::vector<std::int32_t> some(taken.begin() + static_cast<std::ptrdiff_t>(first),
                                       taken.begin() + static_cast<std::ptrdiff_t>(first) + 20);
        auto const areas = all.view(buffer<std::int32_t>::copy_of(some)).value();
        std::rotate(some.begin(), some.begin() + 1, some.end());
        auto const others = all.view(buffer<std::int32_t>::copy_of(some)).value();
        auto const a = g.read(make_valid({}, areas).value()), b = g.read(make_valid({}, others).value());
        auto const got = cpu::relate(areas, others).value();
        for (std::size_t i = 0; i < got.size(); ++i) {
            ASSERT_TRUE(g.is_valid(a[i]));
            ASSERT_EQ(got[i]->text(), g.relate(a[i], b[i]))
                << to_wkt(areas).value()[i] << " | " << to_wkt(others).value()[i];
        }
    }
}
#endif

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
