// SPDX-License-Identifier: Apache-2.0
// What of rows lies in areas, and rows with fewer vertices, by the device's text run on the host, against GEOS.
#include "geos.hpp"
#include "samples.hpp"
#include "spatial/overlay/clip.hpp"
#include "spatial/overlay/simplified.hpp"

#include <kiln/runtime/execution.hpp>
#include <kiln/spatial/measures.hpp>
#include <kiln/spatial/validate.hpp>
#include <kiln/spatial/wkt.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace kiln::spatial_tests {

namespace {

using namespace spatial;
using testing::ElementsAre;

std::vector<std::string> clipped(std::vector<std::string> const& rows, std::vector<std::string> const& areas) {
    host_queue on{item_order::scrambled};
    auto const out = rows_in_areas(on, from_wkt(rows).value(), from_wkt(areas).value()).value();
    EXPECT_TRUE(require_valid(out));
    return to_wkt(out).value();
}
std::vector<std::string> simplified(std::vector<std::string> const& rows, double tolerance) {
    host_queue on{item_order::scrambled};
    return to_wkt(simplified_rows(on, from_wkt(rows).value(), tolerance).value()).value();
}

std::vector<std::string> const two_squares{"POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))",
                                           "POLYGON ((4 0, 8 0, 8 4, 4 4, 4 0), (5 1, 7 1, 7 3, 5 3, 5 1))"};

}  // namespace

TEST(clip, lines) {
    // Through both and the hole; along an outer edge; along the edge they share; outside; touching in a point; null and empty.
    EXPECT_THAT(
        clipped({"LINESTRING (-1 2, 9 2)", "LINESTRING (-2 0, 6 0)", "LINESTRING (4 -1, 4 5)", "LINESTRING (0 9, 9 9)",
                 "LINESTRING (-1 1, 1 -1)", "NULL", "LINESTRING EMPTY", "LINESTRING (1 1, 3 1, 3 5, 1 5, 1 1)"},
                two_squares),
        ElementsAre("MULTILINESTRING ((0 2, 5 2), (7 2, 8 2))", "MULTILINESTRING ((0 0, 6 0))",
                    "MULTILINESTRING ((4 0, 4 4))", "MULTILINESTRING EMPTY", "MULTILINESTRING EMPTY", "NULL",
                    "MULTILINESTRING EMPTY", "MULTILINESTRING ((1 1, 3 1, 3 4), (1 4, 1 1))"));
    EXPECT_THAT(clipped({"LINESTRING (0 0, 1 1)"}, {}), ElementsAre("MULTILINESTRING EMPTY"));
}

TEST(clip, points_and_areas) {
    EXPECT_THAT(
        clipped({"POINT (1 1)", "POINT (6 2)", "POINT (5 2)", "POINT (9 9)", "POINT EMPTY", "NULL"}, two_squares),
        ElementsAre("POINT (1 1)", "POINT EMPTY", "POINT (5 2)", "POINT EMPTY", "POINT EMPTY", "NULL"));
    EXPECT_THAT(clipped({"MULTIPOINT ((1 1), (6 2), (4 4))", "MULTIPOINT ((9 9))", "NULL"}, two_squares),
                ElementsAre("MULTIPOINT ((1 1), (4 4))", "MULTIPOINT EMPTY", "NULL"));
    EXPECT_THAT(
        clipped({"POLYGON ((3 1, 6 1, 6 5, 3 5, 3 1))", "NULL", "POLYGON ((9 9, 10 9, 10 10, 9 9))"}, two_squares),
        ElementsAre("MULTIPOLYGON (((3 1, 4 1, 5 1, 5 3, 6 3, 6 4, 4 4, 3 4, 3 1)))", "NULL", "MULTIPOLYGON EMPTY"));
    scoped_execution_mode const mode{execution_mode::cpu};
    auto const mixed = from_wkt(std::vector<std::string>{"POINT (1 1)", "LINESTRING (0 0, 1 1)"}).value();
    auto const areas = from_wkt(two_squares).value();
    EXPECT_EQ(clip({}, mixed, areas).error().code(), errc::unsupported);
    EXPECT_EQ(clip({}, areas, mixed).error().code(), errc::unsupported);
    EXPECT_EQ(clip({}, areas, areas).value().rows(), 2U);
}

TEST(simplify, by_distance) {
    EXPECT_THAT(
        simplified({"LINESTRING (0 0, 1 0.1, 2 0, 3 5, 4 0)", "NULL", "LINESTRING EMPTY", "LINESTRING (0 0, 1 1)"},
                   0.5),
        ElementsAre("MULTILINESTRING ((0 0, 2 0, 3 5, 4 0))", "NULL", "MULTILINESTRING EMPTY",
                    "MULTILINESTRING ((0 0, 1 1))"));
    EXPECT_THAT(simplified({"POLYGON ((0 0, 5 0.1, 10 0, 10 10, 0 10, 0 0), (4 4, 4.2 4, 4.2 4.2, 4 4))"}, 0.5),
                ElementsAre("MULTIPOLYGON (((0 0, 10 0, 10 10, 0 10, 0 0)))"));
    EXPECT_THAT(simplified({"POINT (1 1)"}, 5), ElementsAre("POINT (1 1)"));
    scoped_execution_mode const mode{execution_mode::cpu};
    auto const line = from_wkt(std::vector<std::string>{"LINESTRING (0 0, 1 1)"}).value();
    EXPECT_EQ(simplify({}, line, -1).error().code(), errc::invalid_argument);
    EXPECT_EQ(simplify({}, line, std::nan("")).error().code(), errc::invalid_argument);
    EXPECT_EQ(simplify({}, line, 0).value().vertices(), 2U);
}

#ifdef KILN_TEST_GEOS

namespace {

bool goes_once(GEOSContextHandle_t h, GEOSGeometry const* line) {
    double own = 0, once = 0;
    auto* const all = GEOSUnaryUnion_r(h, line);
    GEOSLength_r(h, line, &own), GEOSLength_r(h, all, &once);
    GEOSGeom_destroy_r(h, all);
    return std::abs(own - once) < 1e-9;
}

}  // namespace

// As long as GEOS's intersection, and nowhere else. (With one area: the union of several has rounded vertices, beside which lines along its edges lie.) Of lines that go the same way twice GEOS has one.
TEST(clip, lines_are_those_of_geos) {
    for (unsigned seed = 1; seed <= 12; ++seed) {
        auto const areas = lattice(family::multipolygon, {.rows = 1, .size = 12, .seed = seed});
        geos by;
        auto* const h = by.handle();
        auto* const mask = by.read(areas).front();
        for (auto const kind : {family::linestring, family::multilinestring, family::polygon}) {
            auto const rows = lattice(kind, {.rows = 80, .size = 14, .seed = seed + 40});
            host_queue on{item_order::scrambled};
            auto const ours = by.read(rows_in_areas(on, rows, areas).value()), theirs = by.read(rows);
            for (std::size_t i = 0; i < ours.size(); ++i) {
                auto* const expected = GEOSIntersection_r(h, theirs[i], mask);
                double a = 0, b = 0, far = 0;
                bool const is_area = kind == family::polygon;
                auto const size = is_area ? GEOSArea_r : GEOSLength_r;
                size(h, ours[i], &a), size(h, expected, &b);
                if (goes_once(h, theirs[i])) EXPECT_NEAR(a, b, 1e-12 * (1 + b)) << to_wkt(rows).value()[i];
                else EXPECT_GE(a, b * (1 - 1e-12)) << to_wkt(rows).value()[i];
                // Crossings are rounded, so that lines lie beside each other: one is within a hair of the other.
                auto* const near = GEOSBuffer_r(h, expected, 1e-9, 1);
                auto* const rest = GEOSDifference_r(h, ours[i], near);
                size(h, rest, &far);
                GEOSGeom_destroy_r(h, rest), GEOSGeom_destroy_r(h, near);
                EXPECT_LE(far, 1e-9) << to_wkt(rows).value()[i];
                GEOSGeom_destroy_r(h, expected);
            }
        }
    }
}

TEST(simplify, lines_are_those_of_geos) {
    geos by;
    auto* const h = by.handle();
    for (auto const kind : {family::linestring, family::multilinestring, family::polygon, family::multipolygon}) {
        auto const rows = lattice(kind, {.rows = 300, .size = 9, .seed = 91});
        for (double const tolerance : {0.6, 1.5, 3.0}) {
            host_queue on{item_order::scrambled};
            auto const ours = by.read(simplified_rows(on, rows, tolerance).value()), theirs = by.read(rows);
            for (std::size_t i = 0; i < ours.size(); ++i) {
                EXPECT_TRUE(by.is_valid(ours[i]));
                if (dimension_of(kind) == 2) continue;
                auto* const expected = GEOSSimplify_r(h, theirs[i], tolerance);
                double a = 0, b = 0;
                GEOSLength_r(h, ours[i], &a), GEOSLength_r(h, expected, &b);
                EXPECT_NEAR(a, b, 1e-12 * (1 + b)) << to_wkt(rows).value()[i] << " " << tolerance;
                GEOSGeom_destroy_r(h, expected);
            }
        }
    }
}

#endif

}  // namespace kiln::spatial_tests
