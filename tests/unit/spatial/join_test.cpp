// SPDX-License-Identifier: Apache-2.0
#include <kiln/runtime/execution.hpp>
#include <kiln/spatial/join.hpp>
#include <kiln/spatial/locate.hpp>
#include <kiln/spatial/nearest.hpp>
#include <kiln/spatial/query.hpp>
#include <kiln/spatial/relate.hpp>
#include <kiln/spatial/segments.hpp>
#include <kiln/spatial/wkt.hpp>

#include "geos.hpp"
#include "samples.hpp"
#include "spatial/rows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace kiln::spatial_tests {

namespace {

using namespace spatial;
using testing::ElementsAre;
using testing::IsEmpty;

geometries read(std::vector<std::string> const& rows) { return from_wkt(rows).value(); }

constexpr predicate all_predicates[] = {
    predicate::intersects, predicate::disjoint, predicate::contains,   predicate::contains_properly,
    predicate::within,     predicate::covers,   predicate::covered_by, predicate::touches,
    predicate::crosses,    predicate::overlaps, predicate::equals,
};

std::vector<std::string> within(std::vector<std::string> const& a, std::vector<std::string> const& b, double distance) {
    std::vector<std::string> out;
    for (auto const& p : cpu::join_within(read(a), read(b), distance).value())
        out.push_back(std::to_string(p.left) + "," + std::to_string(p.right));
    return out;
}

}  // namespace

TEST(join, null_rows_are_in_no_pair_and_empty_ones_are_apart_from_everything) {
    auto const a = read({"NULL", "POINT EMPTY", "POINT (1 1)"}),
               b = read({"POLYGON ((0 0, 4 0, 4 4, 0 0))", "NULL", "POLYGON EMPTY"});
    EXPECT_THAT(cpu::join(a, b, predicate::intersects).value(), ElementsAre(row_pair{2, 0}));
    EXPECT_THAT(cpu::join(b, a, predicate::intersects).value(), ElementsAre(row_pair{0, 2}));
    EXPECT_THAT(cpu::join(a, b, predicate::disjoint).value(),
                ElementsAre(row_pair{1, 0}, row_pair{1, 2}, row_pair{2, 2}));
    // Unlike in GEOS, to which all that is empty is equal.
    EXPECT_THAT(cpu::join(read({"POINT EMPTY"}), read({"POINT EMPTY", "POLYGON EMPTY"}), predicate::equals).value(),
                IsEmpty());
    for (auto const what : all_predicates) {
        EXPECT_THAT(cpu::join(read({}), b, what).value(), IsEmpty());
        EXPECT_THAT(cpu::join(b, read({}), what).value(), IsEmpty());
    }
}

// NaN, infinity, magnitudes whose products would not be exact, rings that do not close: refused with row and reason by whatever is asked.
TEST(join, refuses_what_is_not_valid_with_row_and_reason) {
    auto const good = read({"POLYGON ((0 0, 4 0, 4 4, 0 0))", "POINT (1 1)"});
    auto const line_with = [](double v) {
        geometry_builder b;
        b.begin(family::linestring), b.vertex(0, 0), b.vertex(1, 1), b.end();
        b.begin(family::linestring), b.vertex(0, 0), b.vertex(1, v), b.end();
        return b.finish().value();
    };
    std::vector<std::pair<geometries, std::string>> const hostile = {
        {line_with(NAN), "row 1"},
        {line_with(INFINITY), "row 1"},
        {line_with(-INFINITY), "row 1"},
        {line_with(1e308), "row 1"},
        {line_with(1e-300), "row 1"},
        {line_with(5e-324), "row 1"},
        {read({"NULL", "POLYGON ((0 0, 1 0, 1 1, 0 1))"}), "row 1: ring 0 is open"},
    };
    for (auto const& [bad, said] : hostile) {
        auto const why = [](auto const& got) { return got ? std::string{"taken"} : got.error().message(); };
        for (auto const what : all_predicates) {
            EXPECT_THAT(why(cpu::join(bad, good, what)), testing::HasSubstr(said)) << name_of(what);
            EXPECT_THAT(why(cpu::join(good, bad, what)), testing::HasSubstr(said)) << name_of(what);
        }
        EXPECT_THAT(why(cpu::relate(bad, good)), testing::HasSubstr(said));
        EXPECT_THAT(why(cpu::relate_join(good, bad)), testing::HasSubstr(said));
        EXPECT_THAT(why(cpu::join_within(good, bad, 1)), testing::HasSubstr(said));
        EXPECT_THAT(why(cpu::nearest(bad, good)), testing::HasSubstr(said));
        EXPECT_THAT(why(cpu::distance(good, bad)), testing::HasSubstr(said));
    }
    // A ring that crosses itself counts by the even-odd rule.
    auto const bow = read({"POLYGON ((0 0, 4 4, 4 0, 0 4, 0 0))"});
    EXPECT_THAT(
        cpu::join(bow, read({"POINT (1 2)", "POINT (2 1)", "POINT (2 2)", "POINT (0.5 2)"}), predicate::contains)
            .value(),
        ElementsAre(row_pair{0, 0}, row_pair{0, 3}));
    auto const far = geometries::points(buffer<double>::copy_of(std::vector<double>{INFINITY, NAN, 1e308}),
                                        buffer<double>::copy_of(std::vector<double>{1, 1, 1}))
                         .value();
    EXPECT_THAT(cpu::join(bow, far, predicate::intersects).error().message(),
                testing::HasSubstr("row 0: the point is (inf, 1)"));
}

// The same of calls that may run anywhere, where they run on the host, also those that go another way than cpu::join.
TEST(join, calls_on_the_host_refuse_what_is_not_valid) {
    scoped_execution_mode const mode{execution_mode::cpu};
    auto const why = [](auto const& got) { return got ? std::string{"taken"} : got.error().message(); };
    auto const areas = read({"POLYGON ((0 0, 4 0, 4 4, 0 0))"});
    auto const lines = read({"LINESTRING (0 0, 1 1)"});
    auto const index = area_index::make({}, areas).value();
    for (double const v : {1e300, 1e308, static_cast<double>(NAN), static_cast<double>(INFINITY), 1e-300}) {
        auto const number = [&](double w) { return buffer<double>::copy_of(std::vector<double>{1, w}); };
        auto const points = geometries::points(number(1), number(v)).value();
        geometry_builder b;
        b.begin(family::linestring), b.vertex(0, 0), b.vertex(1, 1), b.end();
        b.begin(family::linestring), b.vertex(0, v), b.vertex(1, 1), b.end();
        auto const bad_lines = b.finish().value();
        b.begin(family::polygon), b.begin_ring(), b.vertex(0, 0), b.vertex(1, 0), b.vertex(1, 1), b.vertex(0, 0),
            b.end();
        b.begin(family::polygon), b.begin_ring(), b.vertex(0, 0), b.vertex(v, 0), b.vertex(1, 1), b.vertex(0, 0),
            b.end();
        auto const bad_areas = b.finish().value();
        auto const good = geometries::points(number(1), number(1)).value();
        for (auto const& said :
             {why(join({}, points, areas, predicate::within)), why(join({}, areas, points, predicate::contains)),
              why(join({}, good, bad_areas, predicate::within)), why(join_count({}, points, areas, predicate::within)),
              why(join_any({}, points, areas, predicate::intersects)), why(join({}, points, index, predicate::within)),
              why(join_histogram({}, points, index, predicate::within)), why(area_index::make({}, bad_areas)),
              why(query({}, lines, bad_lines)), why(query({}, bad_lines, lines)),
              why(segment_intersections({}, lines, bad_lines)), why(segment_intersections({}, bad_lines, lines)),
              why(join({}, lines, bad_lines, predicate::intersects)),
              why(cpu::area_index::make(areas).value().locate(points)), why(relate_join({}, lines, bad_lines))})
            EXPECT_THAT(said,
                        testing::AnyOf(testing::HasSubstr("row 1: vertex"), testing::HasSubstr("row 1: the point is")))
                << v;
    }
}

TEST(join, a_list_that_no_memory_holds_is_refused_with_its_length) {
    auto const rows = [](std::string const& text) {
        return read({text}).view(buffer<std::int32_t>::copy_of(std::vector<std::int32_t>(400'000, 0))).value();
    };
    EXPECT_THAT(cpu::join(rows("POINT EMPTY"), rows("LINESTRING EMPTY"), predicate::disjoint).error().message(),
                testing::HasSubstr("160000000000 pairs are disjoint"));
}

// ---- dwithin

TEST(join_within, compares_exactly) {
    EXPECT_THAT(within({"POINT (0 0)"}, {"POINT (3 4)", "POINT (4 3)", "POINT (5 1)", "NULL", "POINT EMPTY"}, 5),
                ElementsAre("0,0", "0,1"));
    EXPECT_THAT(within({"POINT (0 0)"}, {"POINT (3 4)"}, std::nextafter(5, 0)), IsEmpty());
    // |4x - 3y| / 5 is 1 at (2, 1): the foot is inside the segment.
    EXPECT_THAT(within({"POINT (2 1)"}, {"LINESTRING (0 0, 3 4)", "LINESTRING (30 40, -3 -4)"}, 1),
                ElementsAre("0,0", "0,1"));
    EXPECT_THAT(within({"POINT (2 1)"}, {"LINESTRING (0 0, 3 4)"}, std::nextafter(1, 0)), IsEmpty());
}

TEST(join_within, knows_what_no_double_can_hold) {
    auto const point = [](double x, double y) {
        return geometries::points(buffer<double>::copy_of(std::vector{x}), buffer<double>::copy_of(std::vector{y}))
            .value();
    };
    auto const pairs = [](geometries const& a, geometries const& b, double d) {
        return cpu::join_within(a, b, d).value().size();
    };
    EXPECT_EQ(pairs(point(0, 0), point(0x1p300, 0), 0x1p300), 1U);
    EXPECT_EQ(pairs(point(0, 0), point(0x1p300, 0x1p-300), 0x1p300), 0U);
    EXPECT_EQ(pairs(point(0, 0), point(0x1p329, 0x1p-299), std::nextafter(0x1p329, INFINITY)), 1U);
    EXPECT_EQ(pairs(point(0x1p-300, 0), point(-0x1p-300, 0), 0x1p-299), 1U);
    EXPECT_EQ(pairs(point(0x1p-300, 0x1p-300), point(-0x1p-300, 0), 0x1p-299), 0U);
    // The line from (0, 0) to (2^300, 2^-300), a point one above it at 2^299: nearer than 1 by an unspeakable amount.
    geometry_builder b;
    b.begin(family::linestring), b.vertex(0, 0), b.vertex(0x1p300, 0x1p-300), b.end();
    auto const line = b.finish().value();
    EXPECT_EQ(pairs(point(0x1p299, 1), line, 1), 1U);
    EXPECT_EQ(pairs(point(0x1p299, -1), line, 1), 0U);
    EXPECT_EQ(pairs(point(0x1p299, 1), line, std::nextafter(1, 0)), 0U);
    for (double const d : {-1.0, double{NAN}, double{INFINITY}, 1e-308, 1e308})
        EXPECT_FALSE(cpu::join_within(line, line, d)) << d;
}

// All points and segments of a small lattice against whole numbers: |p - q|^2, cross^2 and d^2 length^2.
TEST(join_within, of_points_and_segments_is_that_of_whole_numbers) {
    lattice_options how;
    how.rows = 300, how.size = 24;
    auto const points = lattice(family::point, how);
    geometry_builder b;
    std::mt19937 random{5};
    auto const any = [&] { return static_cast<double>(random() % 25); };
    for (int i = 0; i < 300; ++i) b.begin(family::linestring), b.vertex(any(), any()), b.vertex(any(), any()), b.end();
    auto const lines = b.finish().value();
    auto const& px = points.parts();
    auto const& lx = lines.parts();
    for (long const distance : {0L, 1L, 2L, 3L, 5L}) {
        std::vector<row_pair> expected;
        for (std::int32_t i = 0; i < 300; ++i) {
            long const x = std::lround(px.x.data()[i]), y = std::lround(px.y.data()[i]);
            for (std::int32_t j = 0; j < 300; ++j) {
                long const ax = std::lround(lx.x.data()[2 * j]), ay = std::lround(lx.y.data()[2 * j]),
                           bx = std::lround(lx.x.data()[2 * j + 1]), by = std::lround(lx.y.data()[2 * j + 1]);
                long const ux = x - ax, uy = y - ay, vx = bx - ax, vy = by - ay, wx = x - bx, wy = y - by;
                long const along = ux * vx + uy * vy, length = vx * vx + vy * vy, cross = ux * vy - uy * vx;
                bool const near = ux * ux + uy * uy <= distance * distance ||
                                  wx * wx + wy * wy <= distance * distance ||
                                  (along > 0 && along < length && cross * cross <= distance * distance * length);
                if (near) expected.push_back({i, j});
            }
        }
        EXPECT_EQ(cpu::join_within(points, lines, static_cast<double>(distance)).value(), expected) << distance;
        // Below a whole number by one unit in the last place: what was at the distance is gone, and nothing else.
        if (distance == 0) continue;
        auto const less = cpu::join_within(points, lines, std::nextafter(static_cast<double>(distance), 0)).value();
        EXPECT_LT(less.size(), expected.size());
    }
}

// ---- Against GEOS

#ifdef KILN_TEST_GEOS

namespace {

bool holds_in_geos(geos& g, predicate what, GEOSGeometry const* a, GEOSGeometry const* b) {
    auto* const h = g.handle();
    switch (what) {
        case predicate::intersects: return GEOSIntersects_r(h, a, b) == 1;
        case predicate::disjoint: return GEOSDisjoint_r(h, a, b) == 1;
        case predicate::contains: return GEOSContains_r(h, a, b) == 1;
        case predicate::contains_properly: {
            auto const* const prepared = GEOSPrepare_r(h, a);
            bool const out = GEOSPreparedContainsProperly_r(h, prepared, b) == 1;
            GEOSPreparedGeom_destroy_r(h, prepared);
            return out;
        }
        case predicate::within: return GEOSWithin_r(h, a, b) == 1;
        case predicate::covers: return GEOSCovers_r(h, a, b) == 1;
        case predicate::covered_by: return GEOSCoveredBy_r(h, a, b) == 1;
        case predicate::touches: return GEOSTouches_r(h, a, b) == 1;
        case predicate::crosses: return GEOSCrosses_r(h, a, b) == 1;
        case predicate::overlaps: return GEOSOverlaps_r(h, a, b) == 1;
        case predicate::equals: return GEOSEquals_r(h, a, b) == 1;
    }
    return false;
}

struct tally {
    std::size_t asked = 0, differing = 0;
    std::string first;
};

// Every predicate of every pair of rows that GEOS can be asked about.
void compare_joins(geometries const& a, geometries const& b, tally& to) {
    geos g;
    auto const ga = g.read(a), gb = g.read(b);
    auto const fit = [&](GEOSGeometry const* one) { return one != nullptr && g.is_valid(one) && g.is_simple(one); };
    std::vector<bool> fit_b;
    for (auto const* one : gb) fit_b.push_back(fit(one));
    for (auto const what : all_predicates) {
        auto const joined = cpu::join(a, b, what).value();
        EXPECT_TRUE(std::is_sorted(joined.begin(), joined.end(), [](row_pair p, row_pair q) {
            return p.left != q.left ? p.left < q.left : p.right < q.right;
        }));
        auto next = joined.begin();
        for (std::size_t i = 0; i < ga.size(); ++i) {
            bool const fit_a = fit(ga[i]);
            for (std::size_t j = 0; j < gb.size(); ++j) {
                bool const ours = next != joined.end() &&
                                  *next == row_pair{static_cast<std::int32_t>(i), static_cast<std::int32_t>(j)};
                if (ours) ++next;
                if (!fit_a || !fit_b[j]) continue;
                // To GEOS all that is empty is equal; here nothing joins that does not meet. docs/spatial.md says so.
                if (what == predicate::equals && a.is_empty(i) && b.is_empty(j)) continue;
                ++to.asked;
                if (ours == holds_in_geos(g, what, ga[i], gb[j])) continue;
                if (to.differing++ == 0)
                    to.first = std::string{name_of(what)} + (ours ? " here: " : " in GEOS: ") + to_wkt(a).value()[i] +
                               " | " + to_wkt(b).value()[j];
            }
        }
        EXPECT_EQ(next, joined.end());
    }
}

// The same place as a row of each family: a polygon's vertices, its rings as lines, itself, alone or with more.
class forms {
public:
    explicit forms(std::string const& wkt) {
        auto const g = read({wkt});
        visit_rows(g, *this).value();
    }
    void null() {}
    void begin(family) {}
    void begin_polygon() { polygons_.emplace_back(); }
    void begin_ring() {
        if (polygons_.empty()) polygons_.emplace_back();
        polygons_.back().emplace_back();
    }
    void begin_line() {}
    void vertex(double x, double y) { polygons_.back().back().push_back({x, y}); }
    void end() {}

    geometries row(family kind) const {
        geometry_builder to;
        to.begin(kind);
        auto const put = [&](auto const& ring, std::size_t from, std::size_t end) {
            for (auto i = from; i < end; ++i) to.vertex(ring[i].first, ring[i].second);
        };
        switch (kind) {
            case family::point: put(polygons_[0][0], 0, 1); break;
            case family::linestring: put(polygons_[0][0], 0, polygons_[0][0].size()); break;
            case family::multipoint:
                for (auto const& p : polygons_)
                    for (auto const& r : p) put(r, 0, r.size() - 1);
                break;
            case family::multilinestring:  // open lines that meet at their ends
                for (auto const& r : polygons_[0]) {
                    to.begin_line(), put(r, 0, 3);
                    to.begin_line(), put(r, 2, r.size());
                }
                break;
            case family::polygon:
                for (auto const& r : polygons_[0]) to.begin_ring(), put(r, 0, r.size());
                break;
            default:
                for (auto const& p : polygons_) {
                    to.begin_polygon();
                    for (auto const& r : p) to.begin_ring(), put(r, 0, r.size());
                }
        }
        to.end();
        return to.finish().value();
    }

private:
    std::vector<std::vector<std::vector<std::pair<double, double>>>> polygons_;
};

struct degeneracy {
    char const* name;
    std::string left, right;
};
std::vector<degeneracy> degeneracies() {
    std::string const square = "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))";
    std::string const holed = "POLYGON ((0 0, 8 0, 8 8, 0 8, 0 0), (2 2, 6 2, 6 6, 2 6, 2 2))";
    return {
        {"shared vertex", square, "POLYGON ((4 4, 8 4, 8 8, 4 8, 4 4))"},
        {"shared edge, opposite", square, "POLYGON ((4 0, 8 0, 8 4, 4 4, 4 0))"},
        {"shared edge, same way", square, "POLYGON ((4 4, 8 4, 8 0, 4 0, 4 4))"},
        {"shared edge, inside", square, "POLYGON ((0 0, 4 0, 2 2, 0 0))"},
        {"collinear overlap", square, "POLYGON ((4 1, 8 1, 8 6, 4 6, 4 1))"},
        {"collinear overlap, level", square, "POLYGON ((1 4, 6 4, 6 8, 1 8, 1 4))"},
        {"vertex in edge, outside", square, "POLYGON ((4 2, 8 0, 8 4, 4 2))"},
        {"vertex in edge, inside", square, "POLYGON ((4 2, 1 1, 1 3, 4 2))"},
        {"vertex in level edge", square, "POLYGON ((2 4, 4 8, 0 8, 2 4))"},
        {"hole touching shell", "POLYGON ((0 0, 8 0, 8 8, 0 8, 0 0), (4 0, 6 3, 2 3, 4 0))",
         "POLYGON ((4 -1, 5 1, 3 1, 4 -1))"},
        {"hole touching shell at a vertex", "POLYGON ((0 0, 8 0, 8 8, 0 8, 0 0), (0 0, 3 1, 1 3, 0 0))",
         "POLYGON ((0 0, 3 1, 1 3, 0 0))"},
        {"holes touching", "POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0), (2 2, 4 2, 4 4, 2 4, 2 2), (4 4, 6 4, 6 6, 4 6, 4 4))",
         "POLYGON ((3 3, 5 3, 5 5, 3 5, 3 3))"},
        {"shells touching", "MULTIPOLYGON (((0 0, 8 0, 8 4, 0 4, 0 0)), ((4 4, 6 8, 2 8, 4 4)))",
         "POLYGON ((3 3, 5 3, 5 5, 3 5, 3 3))"},
        {"shells touching at a vertex", "MULTIPOLYGON (((0 0, 4 0, 4 4, 0 4, 0 0)), ((4 4, 8 4, 8 8, 4 8, 4 4)))",
         "POLYGON ((4 4, 4 8, 0 8, 0 4, 4 4))"},
        {"hole filled", holed, "POLYGON ((2 2, 6 2, 6 6, 2 6, 2 2))"},
        {"hole filled in part", holed, "POLYGON ((2 2, 6 2, 6 4, 2 4, 2 2))"},
        {"in the hole", holed, "POLYGON ((3 3, 5 3, 5 5, 3 5, 3 3))"},
        {"repeated points", "POLYGON ((0 0, 0 0, 4 0, 4 0, 4 0, 4 4, 0 4, 0 4, 0 0))",
         "POLYGON ((4 0, 4 0, 8 0, 8 4, 4 4, 4 4, 4 0))"},
        {"repeated points at a contact", "POLYGON ((0 0, 4 0, 4 2, 4 2, 4 4, 0 4, 0 0))",
         "POLYGON ((4 2, 4 2, 8 0, 8 4, 4 2))"},
        {"equal", square, square},
        {"equal, otherwise written", square, "POLYGON ((4 4, 4 2, 4 0, 0 0, 0 4, 2 4, 4 4))"},
        {"one inside the other", "POLYGON ((-4 -4, 8 -4, 8 8, -4 8, -4 -4))", square},
        {"apart, boxes meet", "POLYGON ((0 0, 8 0, 0 8, 0 0))", "POLYGON ((8 8, 8 1, 7 2, 2 7, 1 8, 8 8))"},
        {"apart", square, "POLYGON ((9 9, 10 9, 10 10, 9 9))"},
        {"cross in both", square, "POLYGON ((2 -2, 6 2, 2 6, -2 2, 2 -2))"},
        {"cross at corners of cells", "POLYGON ((-64 -64, 64 -64, 64 64, -64 64, -64 -64))",
         "POLYGON ((0 -128, 128 0, 0 128, -128 0, 0 -128))"},
        {"vertices on lines of cells", "POLYGON ((0 0, 1 0, 1 0.5, 2 0.5, 2 2, 0 2, 0 0))",
         "POLYGON ((1 0, 2 0, 2 0.5, 1.5 0.5, 1 0.5, 1 0))"},
        {"one unit in the last place inside", square,
         "POLYGON ((3.9999999999999996 1, 8 1, 8 3, 3.9999999999999996 3, 3.9999999999999996 1))"},
        {"one unit in the last place outside", square,
         "POLYGON ((4.000000000000001 1, 8 1, 8 3, 4.000000000000001 3, 4.000000000000001 1))"},
        {"nearly along an edge", "POLYGON ((0 0, 3 1, 1 3, 0 0))",
         "POLYGON ((0 0, 3 1, 1.5 0.49999999999999994, 0 0))"},
        {"large and small", "POLYGON ((-1e15 -1e15, 1e15 -1e15, 1e15 1e15, -1e15 1e15, -1e15 -1e15))",
         "POLYGON ((0 0, 0.0078125 0, 0 0.0078125, 0 0))"},
    };
}

std::string family_name(int kind) { return std::string{name_of(static_cast<family>(kind))}; }

class join_families : public testing::TestWithParam<std::tuple<int, int>> {};

}  // namespace

TEST_P(join_families, agree_with_geos_at_every_degeneracy) {
    auto const [ka, kb] = GetParam();
    tally all;
    for (auto const& d : degeneracies()) {
        for (int exchanged = 0; exchanged < 2; ++exchanged) {
            tally one;
            forms const a{exchanged == 0 ? d.left : d.right}, b{exchanged == 0 ? d.right : d.left};
            compare_joins(a.row(static_cast<family>(ka)), b.row(static_cast<family>(kb)), one);
            EXPECT_EQ(one.differing, 0U) << d.name << ": " << one.first;
            all.asked += one.asked;
        }
    }
    EXPECT_GE(all.asked, degeneracies().size() * 2 * std::size(all_predicates) * 3 / 4);
}

TEST_P(join_families, agree_with_geos_on_a_lattice) {
    auto const [ka, kb] = GetParam();
    tally all;
    for (unsigned seed = 1; seed <= 3; ++seed) {
        lattice_options how;
        how.rows = 24, how.size = 2 + 2 * static_cast<int>(seed), how.empty_per_mille = 60, how.null_per_mille = 40;
        how.seed = seed * 31 + static_cast<unsigned>(ka);
        auto const a = lattice(static_cast<family>(ka), how);
        how.seed = seed * 77 + static_cast<unsigned>(kb);
        compare_joins(a, lattice(static_cast<family>(kb), how), all);
    }
    EXPECT_EQ(all.differing, 0U) << all.first;
    EXPECT_GT(all.asked, 3000U);
}
INSTANTIATE_TEST_SUITE_P(pairs, join_families, testing::Combine(testing::Range(1, 7), testing::Range(1, 7)),
                         [](auto const& one) {
                             return family_name(std::get<0>(one.param)) + "_" + family_name(std::get<1>(one.param));
                         });

TEST(join_mixed, arrays_agree_with_geos) {
    auto const rows = [](unsigned seed) {
        geometry_builder to;
        for (int kind = 1; kind <= 6; ++kind) {
            lattice_options how;
            how.rows = 6, how.size = 5, how.seed = seed + static_cast<unsigned>(kind), how.null_per_mille = 80,
            how.empty_per_mille = 80;
            visit_rows(lattice(static_cast<family>(kind), how), to).value();
        }
        return to.finish().value();
    };
    auto const a = rows(100), b = rows(200);
    ASSERT_EQ(a.kind(), family::mixed);
    tally all;
    compare_joins(a, b, all);
    // Against a view that repeats rows backwards.
    std::vector<std::int32_t> chosen;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(b.rows()); ++i) chosen.insert(chosen.begin(), {i, i});
    compare_joins(a, b.view(buffer<std::int32_t>::copy_of(chosen)).value(), all);
    compare_joins(a, a, all);
    EXPECT_EQ(all.differing, 0U) << all.first;
    EXPECT_GT(all.asked, 10'000U);
}

TEST(join_within, of_all_families_is_that_of_geos) {
    for (int ka = 1; ka <= 6; ++ka) {
        for (int kb = 1; kb <= 6; ++kb) {
            lattice_options how;
            how.rows = 40, how.size = 14, how.seed = static_cast<unsigned>(ka * 10 + kb), how.empty_per_mille = 30,
            how.null_per_mille = 30;
            auto const a = lattice(static_cast<family>(ka), how);
            how.seed += 999;
            auto const b = lattice(static_cast<family>(kb), how);
            geos g;
            auto const ga = g.read(a), gb = g.read(b);
            for (double const distance : {0.0, 1.3, 3.7}) {  // no two things of a lattice are so far apart, but for 0
                std::vector<row_pair> expected;
                for (std::size_t i = 0; i < ga.size(); ++i) {
                    for (std::size_t j = 0; j < gb.size(); ++j) {
                        if (ga[i] == nullptr || gb[j] == nullptr || a.is_empty(i) || b.is_empty(j)) continue;
                        double d = 0;
                        GEOSDistance_r(g.handle(), ga[i], gb[j], &d);
                        if (d <= distance)
                            expected.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(j)});
                    }
                }
                EXPECT_EQ(cpu::join_within(a, b, distance).value(), expected)
                    << family_name(ka) << family_name(kb) << distance;
            }
        }
    }
}

#endif

}  // namespace kiln::spatial_tests
