// SPDX-License-Identifier: Apache-2.0
// Circles and clipped rows by the device's text, run on the host.
#include "geos.hpp"
#include "samples.hpp"
#include "spatial/row_shapes.cuh"
#include "spatial/shapes.hpp"

#include <kiln/runtime/execution.hpp>
#include <kiln/spatial/relate.hpp>
#include <kiln/spatial/validate.hpp>
#include <kiln/spatial/wkt.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace kiln::spatial_tests {

namespace {

using namespace spatial;
using testing::ElementsAre;

geometries read(std::vector<std::string> const& rows) { return from_wkt(rows).value(); }
std::vector<std::string> clipped(std::vector<std::string> const& rows, bounding_box const& to) {
    host_queue on{item_order::scrambled};
    auto const out = clipped_rows(on, read(rows), to).value();
    EXPECT_TRUE(require_valid(out));
    return to_wkt(out).value();
}

}  // namespace

TEST(kept_shapes, circles_are_closed_and_as_large_as_they_should_be) {
    auto const points = read({"POINT (1 2)", "NULL", "POINT EMPTY", "POINT (-3 0.5)"});
    for (auto const order : {item_order::ascending, item_order::scrambled}) {
        host_queue on{order};
        auto const made = circles_around(on, points, 2, {.quarter = 2}).value();
        ASSERT_TRUE(require_valid(made));
        EXPECT_TRUE(made.is_null(1));
        EXPECT_TRUE(made.is_empty(2));
        auto const sizes = cpu::area(made).value();
        EXPECT_NEAR(*sizes[0], 8 * std::sqrt(2.0), 1e-12);  // an octagon
        EXPECT_NEAR(*sizes[3], 8 * std::sqrt(2.0), 1e-12);
        auto const boxes = cpu::bounds(made).value();
        EXPECT_EQ(*boxes[0], (bounding_box{-1, 0, 3, 4}));
        EXPECT_EQ(made.vertices(), 18U);
    }
    scoped_execution_mode const mode{execution_mode::cpu};
    EXPECT_EQ(point_buffer({}, points, 2).value().vertices(), 66U);
    for (double const d : {0.0, -1.0, double{NAN}, double{INFINITY}})
        EXPECT_EQ(point_buffer({}, points, d).error().code(), errc::invalid_argument) << d;
    EXPECT_EQ(point_buffer({}, points, 1, {.quarter = 33}).error().code(), errc::invalid_argument);
    EXPECT_EQ(point_buffer({}, read({"LINESTRING (0 0, 1 1)"}), 1).error().code(), errc::invalid_argument);
}

TEST(kept_shapes, points_in_a_closed_rectangle_stay) {
    bounding_box const r{0, 0, 4, 2};
    EXPECT_THAT(clipped({"POINT (1 1)", "POINT (0 0)", "NULL", "POINT (4 2)", "POINT (4.000001 1)", "POINT EMPTY"}, r),
                ElementsAre("POINT (1 1)", "POINT (0 0)", "NULL", "POINT (4 2)", "POINT EMPTY", "POINT EMPTY"));
    EXPECT_THAT(clipped({"MULTIPOINT ((9 9), (1 1), (4 0))", "MULTIPOINT ((9 9))", "NULL", "MULTIPOINT ((2 2))"}, r),
                ElementsAre("MULTIPOINT ((1 1), (4 0))", "MULTIPOINT EMPTY", "NULL", "MULTIPOINT ((2 2))"));
}

TEST(kept_shapes, lines_are_cut_where_they_cross_a_side) {
    bounding_box const r{0, 0, 4, 4};
    auto const one = [&](std::string const& row) { return clipped({row}, r)[0]; };
    EXPECT_EQ(one("LINESTRING (1 1, 3 2, 2 3)"), "MULTILINESTRING ((1 1, 3 2, 2 3))");
    EXPECT_EQ(one("LINESTRING (-2 2, 6 2)"), "MULTILINESTRING ((0 2, 4 2))");
    EXPECT_EQ(one("LINESTRING (2 -1, 2 9)"), "MULTILINESTRING ((2 0, 2 4))");
    EXPECT_EQ(one("LINESTRING (-1 1, 1 -1)"), "MULTILINESTRING EMPTY");         // through the corner, outside
    EXPECT_EQ(one("LINESTRING (-1 -1, 5 5)"), "MULTILINESTRING ((0 0, 4 4))");  // through both corners
    EXPECT_EQ(one("LINESTRING (-1 2, 2 5)"), "MULTILINESTRING ((0 3, 1 4))");
    EXPECT_EQ(one("LINESTRING (-1 4, 5 4)"), "MULTILINESTRING ((0 4, 4 4))");  // along a side
    EXPECT_EQ(one("LINESTRING (-1 2, 0 2)"), "MULTILINESTRING EMPTY");         // touches one
    EXPECT_EQ(one("LINESTRING (0 2, -1 2, 0 3, 1 3)"), "MULTILINESTRING ((0 3, 1 3))");
    EXPECT_EQ(one("LINESTRING (1 1, 6 1, 6 3, 1 3)"), "MULTILINESTRING ((1 1, 4 1), (4 3, 1 3))");
    EXPECT_EQ(one("LINESTRING (1 1, 1 1, 2 2)"), "MULTILINESTRING ((1 1, 2 2))");
    EXPECT_EQ(one("MULTILINESTRING ((1 1, 2 2), (9 9, 8 8), (3 3, 5 3))"), "MULTILINESTRING ((1 1, 2 2), (3 3, 4 3))");
    EXPECT_EQ(one("LINESTRING (1 1, 4 2, 1 3)"), "MULTILINESTRING ((1 1, 4 2, 1 3))");  // a vertex on the side
    EXPECT_EQ(one("LINESTRING (0 -1, 3 0.5)"), "MULTILINESTRING ((2 0, 3 0.5))");
    EXPECT_THAT(clipped({"NULL", "LINESTRING EMPTY"}, r), ElementsAre("NULL", "MULTILINESTRING EMPTY"));
    scoped_execution_mode const mode{execution_mode::cpu};
    EXPECT_EQ(clip_by_rect({}, read({"POLYGON ((0 0, 1 0, 1 1, 0 0))"}), r).error().code(), errc::unsupported);
    EXPECT_EQ(clip_by_rect({}, read({"POINT (1 1)"}), {1, 0, 0, 1}).error().code(), errc::invalid_argument);
    EXPECT_EQ(clip_by_rect({}, read({"POINT (1 1)"}), {NAN, 0, 1, 1}).error().code(), errc::invalid_argument);
}

// Inside, no longer than they were, and the same whichever way a segment runs.
TEST(kept_shapes, clipped_segments_do_not_depend_on_their_direction) {
    std::mt19937_64 random{6};
    auto const whole = [&] { return static_cast<double>(random() % 13) - 4; };
    auto const real = [&] { return static_cast<double>(random()) * 0x1p-60 - 6; };
    kiln_spatial::box const r{0, 0, 4, 4};
    int kept = 0;
    for (int i = 0; i < 200'000; ++i) {
        auto const any = [&] {
            return i % 2 == 0 ? kiln_spatial::point{whole(), whole()} : kiln_spatial::point{real(), real()};
        };
        auto const a = any(), b = any();
        kiln_spatial::clipped_segment there{}, back{};
        bool const got = clip_segment(a, b, r, there), turned = clip_segment(b, a, r, back);
        ASSERT_EQ(got, turned);
        if (!got) continue;
        ++kept;
        EXPECT_TRUE(there.a == back.b && there.b == back.a);
        EXPECT_TRUE(is_in(r, there.a) && is_in(r, there.b));
        EXPECT_EQ(there.starts, is_in(r, a));
        EXPECT_EQ(there.ends, is_in(r, b));
        EXPECT_TRUE(!there.starts || there.a == a);
        EXPECT_TRUE(!there.ends || there.b == b);
    }
    EXPECT_GT(kept, 20'000);
}

#ifdef KILN_TEST_GEOS

TEST(kept_shapes, clipped_lines_have_the_length_that_geos_says) {
    for (auto const kind : {family::linestring, family::multilinestring}) {
        auto const lines =
            lattice(kind, {.rows = 400, .size = 12, .seed = 21, .empty_per_mille = 30, .null_per_mille = 30});
        host_queue on;
        auto const out = clipped_rows(on, lines, {2.5, 3, 8, 9.25}).value();
        auto const lengths = cpu::length(out).value();
        geos g;
        auto const all = g.read(lines), rectangle = g.read(read({"POLYGON ((2.5 3, 8 3, 8 9.25, 2.5 9.25, 2.5 3))"}));
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (all[i] == nullptr || !g.is_simple(all[i])) continue;
            auto* const common = GEOSIntersection_r(g.handle(), all[i], rectangle[0]);
            double length = 0;
            GEOSLength_r(g.handle(), common, &length);
            GEOSGeom_destroy_r(g.handle(), common);
            EXPECT_NEAR(*lengths[i], length, 1e-9) << to_wkt(lines).value()[i];
        }
    }
}

TEST(kept_shapes, circles_are_those_of_geos) {
    auto const points = read({"POINT (1 2)", "POINT (-3 0.5)"});
    host_queue on;
    auto const ours = circles_around(on, points, 2.5, {.quarter = 8}).value();
    geos g;
    auto const all = g.read(points);
    for (std::size_t i = 0; i < all.size(); ++i) {
        auto* const circle = GEOSBuffer_r(g.handle(), all[i], 2.5, 8);
        auto const* const ring = GEOSGeom_getCoordSeq_r(g.handle(), GEOSGetExteriorRing_r(g.handle(), circle));
        unsigned size = 0;
        GEOSCoordSeq_getSize_r(g.handle(), ring, &size);
        ASSERT_EQ(size, 33U);
        for (unsigned k = 0; k < size; ++k) {
            double x = 0, y = 0;
            GEOSCoordSeq_getXY_r(g.handle(), ring, k, &x, &y);
            EXPECT_NEAR(ours.parts().x.data()[i * 33 + k], x, 1e-14);
            EXPECT_NEAR(ours.parts().y.data()[i * 33 + k], y, 1e-14);
        }
        GEOSGeom_destroy_r(g.handle(), circle);
    }
}

#endif

}  // namespace kiln::spatial_tests
