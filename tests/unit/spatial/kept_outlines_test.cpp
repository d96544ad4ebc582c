// SPDX-License-Identifier: Apache-2.0
// Hulls, boxes, boundaries and points inside, by the device's text run on the host, against GEOS.
#include "geos.hpp"
#include "mixed_rows.hpp"
#include "spatial/outlines.hpp"

#include <kiln/runtime/execution.hpp>
#include <kiln/spatial/outlines.hpp>
#include <kiln/spatial/validate.hpp>
#include <kiln/spatial/wkt.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::spatial_tests {

namespace {

using namespace spatial;
using testing::ElementsAre;

using maker = result<geometries> (*)(queue&, geometries const&);
geometries made(maker call, geometries const& of) {
    host_queue on{item_order::scrambled};
    auto out = call(on, of).value();
    EXPECT_TRUE(require_valid(out));
    return out;
}
std::vector<std::string> texts(maker call, std::vector<std::string> const& rows) {
    return to_wkt(made(call, from_wkt(rows).value())).value();
}

}  // namespace

TEST(outlines, hulls) {
    EXPECT_THAT(
        texts(hulls_of_rows, {"MULTIPOINT ((1 1), (0 0), (2 0), (2 2), (0 2), (1 0), (0 0))", "POLYGON EMPTY", "NULL",
                              "LINESTRING (3 0, 0 0, 0 3, 1 1)"}),
        ElementsAre("POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))", "POLYGON EMPTY", "NULL", "POLYGON ((0 0, 3 0, 0 3, 0 0))"));
    // Of what has no area, as what it is.
    EXPECT_THAT(texts(hulls_of_rows, {"MULTIPOINT ((1 1), (3 3), (2 2))", "POINT (4 5)", "NULL",
                                      "POLYGON ((0 0, 2 0, 2 2, 0 0))", "POINT EMPTY", "LINESTRING (1 1, 1 1)"}),
                ElementsAre("LINESTRING (1 1, 3 3)", "POINT (4 5)", "NULL", "POLYGON ((0 0, 2 0, 2 2, 0 0))",
                            "POLYGON EMPTY", "POINT (1 1)"));
    EXPECT_TRUE(texts(hulls_of_rows, {}).empty());
}

TEST(outlines, boxes) {
    EXPECT_THAT(texts(boxes_around_rows, {"LINESTRING (3 1, 0 4)", "NULL"}),
                ElementsAre("POLYGON ((0 1, 3 1, 3 4, 0 4, 0 1))", "NULL"));
    EXPECT_THAT(texts(boxes_around_rows, {"LINESTRING (3 1, 0 1)", "LINESTRING (3 1, 3 0)", "POINT (1 2)",
                                          "LINESTRING EMPTY", "POLYGON ((0 0, 2 0, 2 2, 0 0))"}),
                ElementsAre("LINESTRING (0 1, 3 1)", "LINESTRING (3 0, 3 1)", "POINT (1 2)", "POLYGON EMPTY",
                            "POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))"));
}

TEST(outlines, boundaries) {
    EXPECT_THAT(texts(boundaries_of_rows, {"POLYGON ((0 0, 9 0, 9 9, 0 0), (4 1, 5 1, 5 2, 4 1))", "NULL",
                                           "POLYGON EMPTY", "POLYGON ((0 0, 1 0, 1 1, 0 0))"}),
                ElementsAre("MULTILINESTRING ((0 0, 9 0, 9 9, 0 0), (4 1, 5 1, 5 2, 4 1))", "NULL",
                            "MULTILINESTRING EMPTY", "MULTILINESTRING ((0 0, 1 0, 1 1, 0 0))"));
    EXPECT_THAT(texts(boundaries_of_rows,
                      {"MULTILINESTRING ((0 0, 1 1), (1 1, 2 0), (1 1, 1 5))", "NULL", "MULTILINESTRING EMPTY",
                       "MULTILINESTRING ((0 0, 1 0, 1 1, 0 0))", "MULTILINESTRING ((7 7, 8 8), (3 3, 7 7))"}),
                ElementsAre("MULTIPOINT ((0 0), (1 1), (1 5), (2 0))", "NULL", "MULTIPOINT EMPTY", "MULTIPOINT EMPTY",
                            "MULTIPOINT ((3 3), (8 8))"));
    EXPECT_THAT(texts(boundaries_of_rows, {"POINT (1 1)"}), ElementsAre("MULTIPOINT EMPTY"));
    // Of several families: single and multi are one, and points and lines have points.
    EXPECT_THAT(texts(boundaries_of_rows, {"POLYGON ((0 0, 1 0, 1 1, 0 0))", "NULL",
                                           "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))"}),
                ElementsAre("MULTILINESTRING ((0 0, 1 0, 1 1, 0 0))", "NULL",
                            "MULTILINESTRING ((0 0, 1 0, 1 1, 0 0), (5 5, 6 5, 6 6, 5 5))"));
    EXPECT_THAT(texts(boundaries_of_rows, {"NULL", "LINESTRING (0 0, 1 1)", "POLYGON ((0 0, 1 0, 1 1, 0 0))",
                                           "POINT (1 1)", "MULTILINESTRING ((7 7, 8 8), (3 3, 7 7))", "POLYGON EMPTY"}),
                ElementsAre("NULL", "MULTIPOINT ((0 0), (1 1))", "MULTILINESTRING ((0 0, 1 0, 1 1, 0 0))",
                            "MULTIPOINT EMPTY", "MULTIPOINT ((3 3), (8 8))", "MULTILINESTRING EMPTY"));
    scoped_execution_mode const mode{execution_mode::cpu};
    auto const both = from_wkt(std::vector<std::string>{"POINT (1 1)", "LINESTRING (0 0, 1 1)"}).value();
    EXPECT_EQ(boundary({}, both).value().kind(), family::multipoint);
    EXPECT_EQ(convex_hull({}, both).value().rows(), 2U);
}

TEST(outlines, points_inside) {
    EXPECT_THAT(
        texts(points_on_rows,
              {"POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))",
               "POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 8 1, 8 8, 1 8, 1 1))",  // through a hole
               "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 1, 0 0)), ((5 0, 9 0, 9 2, 5 2, 5 0)))", "LINESTRING (0 0, 3 1, 9 9)",
               "LINESTRING (0 0, 9 9)", "MULTIPOINT ((0 0), (4 4), (5 9))", "POINT EMPTY", "NULL"}),
        ElementsAre("POINT (2 2)", "POINT (0.5 4.5)", "POINT (7 1)", "POINT (3 1)", "POINT (0 0)", "POINT (4 4)",
                    "POINT EMPTY", "NULL"));
}

#ifdef KILN_TEST_GEOS

TEST(outlines, are_those_of_geos) {
    geos by;
    auto* const h = by.handle();
    auto const same = [&](GEOSGeometry* theirs, GEOSGeometry const* ours) {
        bool const out =
            (GEOSisEmpty_r(h, theirs) == 1 && GEOSisEmpty_r(h, ours) == 1) || GEOSEquals_r(h, ours, theirs) == 1;
        GEOSGeom_destroy_r(h, theirs);
        return out;
    };
    // Of level and upright lines GEOS 3.11 makes polygons without area, which are not valid: then both have the same corners.
    auto const check_box = [&](GEOSGeometry const* of, GEOSGeometry const* ours, std::string const& text) {
        auto* const theirs = GEOSEnvelope_r(h, of);
        if (by.is_valid(theirs)) {
            EXPECT_TRUE(same(theirs, ours)) << text;
            return;
        }
        for (auto* const corner :
             {&GEOSGeom_getXMin_r, &GEOSGeom_getYMin_r, &GEOSGeom_getXMax_r, &GEOSGeom_getYMax_r}) {
            double a = 0, b = 1;
            corner(h, theirs, &a), corner(h, ours, &b);
            EXPECT_EQ(a, b) << text;
        }
        EXPECT_TRUE(by.is_valid(ours)) << text;
        GEOSGeom_destroy_r(h, theirs);
    };
    for (int kind = 1; kind <= 7; ++kind) {
        lattice_options const shape{.rows = 400, .size = 7, .seed = 51, .empty_per_mille = 20};
        auto const rows = kind == 7 ? lattice_of_all_families(shape) : lattice(static_cast<family>(kind), shape);
        auto const hulls = made(hulls_of_rows, rows), boxes = made(boxes_around_rows, rows),
                   borders = made(boundaries_of_rows, rows), inside = made(points_on_rows, rows);
        auto const all = by.read(rows), our_hulls = by.read(hulls), our_boxes = by.read(boxes),
                   our_borders = by.read(borders), our_points = by.read(inside);
        for (std::size_t i = 0; i < rows.rows(); ++i) {
            auto const text = to_wkt(rows).value()[i];
            EXPECT_TRUE(same(GEOSConvexHull_r(h, all[i]), our_hulls[i])) << text;
            check_box(all[i], our_boxes[i], text);
            EXPECT_TRUE(same(GEOSBoundary_r(h, all[i]), our_borders[i])) << text;
            // Sections of equal width may be taken in another order; what counts is that it is inside.
            if (GEOSisEmpty_r(h, all[i]) == 1) continue;
            auto* const asked = dimension_of(rows.kind_of(i)) == 2 ? &GEOSContains_r : &GEOSIntersects_r;
            EXPECT_EQ(asked(h, all[i], our_points[i]), 1) << text << " " << to_wkt(inside).value()[i];
        }
    }
}

#endif

}  // namespace kiln::spatial_tests
