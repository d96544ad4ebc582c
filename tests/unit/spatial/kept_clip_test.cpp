// SPDX-License-Identifier: Apache-2.0
// What of rows lies in areas, and rows with fewer vertices, by the device's text run on the host, against GEOS.
#include "counting_queue.hpp"
#include "geos.hpp"
#include "mixed_rows.hpp"
#include "overlay_samples.hpp"
#include "spatial/overlay/clip.hpp"
#include "spatial/overlay/simplified.hpp"

#include <kiln/event.hpp>
#include <kiln/runtime/execution.hpp>
#include <kiln/spatial/measures.hpp>
#include <kiln/spatial/outlines.hpp>
#include <kiln/spatial/overlay.hpp>
#include <kiln/spatial/simplify.hpp>
#include <kiln/spatial/validate.hpp>
#include <kiln/spatial/wkt.hpp>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

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

// What does not come to rest is put onto a grid, lines as well as rings.
TEST(clip, lines_that_run_back_and_forth) {
    host_queue on{item_order::scrambled};
    auto const road = from_wkt(std::vector<std::string>{back_and_forth}).value();
    auto const around = from_wkt(std::vector<std::string>{"POLYGON ((8 50, 9 50, 9 51, 8 51, 8 50))"}).value();
    auto const aside = from_wkt(std::vector<std::string>{"POLYGON ((0 0, 1 0, 1 1, 0 1, 0 0))"}).value();
    scoped_execution_mode const mode{execution_mode::cpu};
    auto const whole = length({}, road).value().data()[0];
    auto const all = rows_in_areas(on, road, around);
    ASSERT_TRUE(all) << all.error().message();
    EXPECT_NEAR(length({}, *all).value().data()[0], whole, 1e-9 * whole);
    auto const none = rows_in_areas(on, road, aside);
    ASSERT_TRUE(none) << none.error().message();
    EXPECT_EQ(to_wkt(*none).value()[0], "MULTILINESTRING EMPTY");
}

// One part or several: files have both in one layer.
TEST(clip, rows_of_one_dimension_may_be_of_two_families) {
    scoped_execution_mode const mode{execution_mode::cpu};
    auto const areas = from_wkt(two_squares).value();
    std::vector<std::vector<std::string>> const layers{
        {"POINT (1 1)", "MULTIPOINT ((1 1), (6 2), (4 4))", "NULL", "POINT (9 9)", "POINT EMPTY"},
        {"LINESTRING (-1 2, 9 2)", "NULL", "MULTILINESTRING ((-2 0, 6 0), (1 1, 2 2))", "LINESTRING EMPTY"},
        {"POLYGON ((3 1, 6 1, 6 5, 3 5, 3 1))", "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((9 9, 10 9, 10 10, 9 9)))",
         "NULL"}};
    for (auto const& rows : layers) {
        auto const both = from_wkt(rows).value();
        ASSERT_EQ(both.kind(), family::mixed);
        std::vector<std::string> several;
        for (auto const& row : rows) {
            auto const part = row.starts_with("MULTI") || row == "NULL" || row.ends_with("EMPTY")
                                  ? row
                                  : "MULTI" + row.substr(0, row.find('(')) + "(" + row.substr(row.find('(')) + ")";
            several.push_back(row.ends_with("EMPTY") ? "MULTI" + row : part);
        }
        auto const alike = from_wkt(several).value();
        auto const text = [](result<geometries> const& got) { return to_wkt(got.value()).value(); };
        EXPECT_EQ(text(clip({}, both, areas)), text(clip({}, alike, areas)));
        EXPECT_EQ(text(boundary({}, both)), text(boundary({}, alike)));
        if (dimension_of(alike.kind()) > 0) {
            EXPECT_EQ(text(simplify({}, both, 0.5)), text(simplify({}, alike, 0.5)));
        }
    }
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
    EXPECT_THAT(to_wkt(clip({}, mixed, areas).value()).value(),
                ElementsAre("MULTIPOINT ((1 1))", "MULTILINESTRING ((0 0, 1 1))"));
    EXPECT_EQ(clip({}, areas, mixed).error().code(), errc::unsupported);
    EXPECT_EQ(clip({}, areas, areas).value().rows(), 2U);
}

// As layers come: single and multi together, which is one family of results, and points, lines and areas, which is a mixed array.
TEST(clip, rows_of_several_families) {
    std::vector<std::string> const rows{"POLYGON ((3 1, 6 1, 6 5, 3 5, 3 1))",
                                        "NULL",
                                        "MULTIPOLYGON (((1 1, 2 1, 2 2, 1 1)), ((9 9, 10 9, 10 10, 9 9)))",
                                        "LINESTRING (-1 2, 9 2)",
                                        "MULTILINESTRING ((-1 1, 1 1), (9 9, 10 10))",
                                        "POLYGON EMPTY",
                                        "POINT (6 2)",
                                        "MULTIPOINT ((1 1), (9 9))",
                                        "POINT (1 1)"};
    std::vector<std::string> const parts{"MULTIPOLYGON (((3 1, 4 1, 5 1, 5 3, 6 3, 6 4, 4 4, 3 4, 3 1)))",
                                         "NULL",
                                         "MULTIPOLYGON (((1 1, 2 1, 2 2, 1 1)))",
                                         "MULTILINESTRING ((0 2, 5 2), (7 2, 8 2))",
                                         "MULTILINESTRING ((0 1, 1 1))",
                                         "MULTIPOLYGON EMPTY",
                                         "MULTIPOINT EMPTY",
                                         "MULTIPOINT ((1 1))",
                                         "MULTIPOINT ((1 1))"};
    EXPECT_EQ(clipped(rows, two_squares), parts);
    host_queue on{item_order::scrambled};
    auto const areas = from_wkt(two_squares).value();
    auto const kind_of_some = [&](std::vector<std::string> const& some) {
        return rows_in_areas(on, from_wkt(some).value(), areas).value().kind();
    };
    EXPECT_EQ(kind_of_some({rows[0], rows[1], rows[2]}), family::multipolygon);
    EXPECT_EQ(kind_of_some({rows[4], rows[1], rows[3]}), family::multilinestring);
    EXPECT_EQ(kind_of_some({rows[7], rows[1], rows[8]}), family::multipoint);

    // Views choose, repeat and leave out.
    auto const view = from_wkt(rows).value().view(buffer<std::int32_t>::copy_of(std::vector<std::int32_t>{8, 1, 2, 8}));
    auto const some = rows_in_areas(on, view.value(), areas).value();
    EXPECT_TRUE(require_valid(some));
    EXPECT_THAT(to_wkt(some).value(), ElementsAre(parts[8], "NULL", parts[2], parts[8]));
    auto const nulls = from_wkt(rows).value().view(buffer<std::int32_t>::copy_of(std::vector<std::int32_t>{1, 1}));
    EXPECT_THAT(to_wkt(rows_in_areas(on, nulls.value(), areas).value()).value(), ElementsAre("NULL", "NULL"));
}

// The last line runs along the union of the areas, which do not come to rest with it and the others; by itself it does, and so nothing is put onto a grid: vertices of the
// input stay where they are, and crossings are rounded.
TEST(clip, a_line_along_a_union_moves_no_vertices) {
    std::vector<std::string> const rows{
        "MULTILINESTRING ((500000 500000.2, 500000.5 500000.1), (500000.3 500000.1, 500000.4 500000.1))",
        "LINESTRING (500000.4 500000.4, 500000 500000.1)",
        "LINESTRING (500000.3 500000.1, 500000.6 500000.6, 500000.1 500000.1, 500000.1 500000.1, 500000.2 "
        "500000.4, 500000.2 500000.5)",
        "LINESTRING (500000.5 500000, 500000.35 500000.15, 500000.3 500000.1, 500000.2166666667 "
        "500000.1833333333, 500000.2 500000.1, 500000.1 500000, 500000.14210526313 500000.25263157894, 500000"
        " 500000.3, 500000.07999999996 500000.36, 500000.04999999993 500000.45000000007, 500000 500000.5, "
        "500000.04 500000.48, 500000 500000.6, 500000.1 500000.5, 500000.1806451613 500000.48387096776, "
        "500000.2 500000.6, 500000.3 500000.6, 500000.28235294117 500000.5117647058, 500000.4 500000.6, "
        "500000.3619047619 500000.4476190476, 500000.6 500000.4, 500000.4666666667 500000.26666666666, "
        "500000.6 500000.2, 500000.5 500000)"};
    std::vector<std::string> const areas{
        "POLYGON ((500000.4 500000.6, 500000.3 500000.2, 500000 500000.3, 500000.4 500000.6))",
        "POLYGON ((500000.2 500000.6, 500000.1 500000, 500000.2 500000.1, 500000.3 500000.6, 500000.2 "
        "500000.6))",
        "POLYGON ((500000.6 500000.4, 500000.1 500000.5, 500000 500000.6, 500000.1 500000.3, 500000.3 "
        "500000.1, 500000.6 500000.4))",
        "POLYGON ((500000.6 500000.2, 500000 500000.5, 500000.5 500000, 500000.6 500000.2))"};
    std::size_t snapped = 0;
    auto const token = event_log::process().subscribe([&](event const& e) {
        if (e.reason.view() == "snapped") ++snapped;
    });
    auto const all = clipped(rows, areas);
    EXPECT_EQ(snapped, 0U);
    EXPECT_EQ(all[0], clipped({rows[0]}, areas)[0]);
    EXPECT_EQ(all[1], clipped({rows[1]}, areas)[0]);
    for (auto const* const own : {"(500000.3 500000.1, ", ", 500000.2 500000.4, 500000.2 500000.5)"})
        EXPECT_NE(all[2].find(own), std::string::npos) << all[2];
}

// A line back and forth along a sliver is put onto a grid, which is told. What another line has with another area is what it has without it, bit for bit.
TEST(clip, a_line_that_does_not_come_to_rest_moves_no_others) {
    std::mt19937_64 random{3};
    auto const real = [&] { return static_cast<double>(random()) * 0x1p-64; };
    auto const near = [&](double at) { return at + 1e-11 * real(); };
    std::vector<std::string> areas{"POLYGON ((0.1 500.3, 99.7 500.7, 90.3 600.9, 0.1 500.3))"},
        rows{"LINESTRING (3.3 499.9, 77.7 577.1)"};
    for (int i = 0; i < 4; ++i) {
        auto const x = near(0), y = near(0);
        areas.push_back(fmt::format("POLYGON (({0} {1}, {2} {3}, {4} {5}, {0} {1}))", x, y, near(1000), near(1000),
                                    near(1000), near(1000)));
    }
    std::string line;
    for (int i = 0; i < 40; ++i)
        line += fmt::format("{}{} {}", i == 0 ? "" : ", ", near(i % 2 * 1000), near(i % 2 * 1000));
    rows.push_back("LINESTRING (" + line + ")");
    std::size_t snapped = 0;
    auto const token = event_log::process().subscribe([&](event const& e) {
        if (e.reason.view() == "snapped") ++snapped;
    });
    auto const all = clipped(rows, areas);
    EXPECT_EQ(snapped, 1U);
    auto const alone = clipped({rows[0]}, areas);
    EXPECT_EQ(snapped, 1U);
    EXPECT_EQ(all[0], alone[0]);
    EXPECT_NE(all[1], "MULTILINESTRING EMPTY");
}

// A path with as many levels as vertices, beside many that are done after few.
TEST(simplify, a_deep_path_is_not_waited_for) {
    auto const work = [](bool with_deep, int others) {
        geometry_builder to;
        constexpr int size = 400;
        if (with_deep) {
            to.begin(family::linestring);
            for (int k = 0; k < size; ++k) to.vertex(k, k % 2 == 0 ? size - k : k - size);
            to.end();
        }
        for (int i = 0; i < others; ++i) {
            to.begin(family::linestring);
            for (int k = 0; k < size; ++k) to.vertex(k, i + (k % 7) * 0.125);
            to.end();
        }
        counting_queue on;
        auto const out = simplified_rows(on, to.finish(family::linestring).value(), 2).value();
        EXPECT_EQ(out.vertices(), (with_deep ? size : 0) + 2U * static_cast<std::size_t>(others));
        return on.items();
    };
    EXPECT_LE(work(true, 200), 2 * (work(true, 0) + work(false, 200)));
}

TEST(simplify, by_distance) {
    EXPECT_THAT(
        simplified({"LINESTRING (0 0, 1 0.1, 2 0, 3 5, 4 0)", "NULL", "LINESTRING EMPTY", "LINESTRING (0 0, 1 1)"},
                   0.5),
        ElementsAre("MULTILINESTRING ((0 0, 2 0, 3 5, 4 0))", "NULL", "MULTILINESTRING EMPTY",
                    "MULTILINESTRING ((0 0, 1 1))"));
    EXPECT_THAT(simplified({"POLYGON ((0 0, 5 0.1, 10 0, 10 10, 0 10, 0 0), (4 4, 4.2 4, 4.2 4.2, 4 4))"}, 0.5),
                ElementsAre("MULTIPOLYGON (((0 0, 10 0, 10 10, 0 10, 0 0)))"));
    EXPECT_THAT(
        simplified({"LINESTRING (1 2, 3 4, 3 2, 1 2)", "MULTILINESTRING ((0 0, 1 1), (1 2, 3 4, 3 2, 1 2))"}, 100),
        ElementsAre("MULTILINESTRING EMPTY", "MULTILINESTRING ((0 0, 1 1))"));
    EXPECT_THAT(simplified({"POINT (1 1)"}, 5), ElementsAre("POINT (1 1)"));
    EXPECT_THAT(simplified({"MULTIPOLYGON (((0 0, 5 0.1, 10 0, 10 10, 0 10, 0 0)))", "NULL",
                            "POLYGON ((0 0, 1 0, 1 1, 0 1, 0 0))"},
                           0.5),
                ElementsAre("MULTIPOLYGON (((0 0, 10 0, 10 10, 0 10, 0 0)))", "NULL",
                            "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 1, 0 0)))"));
    EXPECT_THAT(simplified({"MULTIPOINT ((1 1), (2 2))", "LINESTRING (0 0, 1 0.1, 2 0)", "NULL",
                            "POLYGON ((0 0, 5 0.1, 10 0, 10 10, 0 10, 0 0))", "POINT (3 3)",
                            "MULTILINESTRING ((0 0, 1 0.1, 2 0), (4 4, 5 5))", "POINT (1 1)"},
                           0.5),
                ElementsAre("MULTIPOINT ((1 1), (2 2))", "MULTILINESTRING ((0 0, 2 0))", "NULL",
                            "MULTIPOLYGON (((0 0, 10 0, 10 10, 0 10, 0 0)))", "POINT (3 3)",
                            "MULTILINESTRING ((0 0, 2 0), (4 4, 5 5))", "POINT (1 1)"));
    EXPECT_THAT(simplified({"MULTIPOINT ((1 1), (2 2))", "NULL", "POINT (1 1)"}, 5),
                ElementsAre("MULTIPOINT ((1 1), (2 2))", "NULL", "POINT (1 1)"));
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
        for (auto const kind : {family::linestring, family::multilinestring, family::polygon, family::mixed}) {
            lattice_options const shape{.rows = 80, .size = 14, .seed = seed + 40};
            auto const rows = kind == family::mixed ? lattice_of_all_families(shape) : lattice(kind, shape);
            host_queue on{item_order::scrambled};
            auto const ours = by.read(rows_in_areas(on, rows, areas).value()), theirs = by.read(rows);
            for (std::size_t i = 0; i < ours.size(); ++i) {
                auto* const expected = GEOSIntersection_r(h, theirs[i], mask);
                double a = 0, b = 0, far = 0;
                bool const is_area = dimension_of(rows.kind_of(i)) == 2;
                auto const size = is_area ? GEOSArea_r : GEOSLength_r;
                size(h, ours[i], &a), size(h, expected, &b);
                if (goes_once(h, theirs[i])) {
                    EXPECT_NEAR(a, b, 1e-12 * (1 + b)) << to_wkt(rows).value()[i];
                } else {
                    EXPECT_GE(a, b * (1 - 1e-12)) << to_wkt(rows).value()[i];
                }
                // Crossings are rounded, so that lines lie beside each other: one is within a hair of the other.
                auto* const near = GEOSBuffer_r(h, expected, 1e-9, 1);
                auto* const rest = GEOSDifference_r(h, ours[i], near);
                size(h, rest, &far);
                GEOSGeom_destroy_r(h, rest), GEOSGeom_destroy_r(h, near);
                EXPECT_LE(far, 1e-9) << to_wkt(rows).value()[i];
                if (dimension_of(rows.kind_of(i)) == 0) {
                    EXPECT_TRUE(GEOSisEmpty_r(h, expected) == 1 ? GEOSisEmpty_r(h, ours[i]) == 1
                                                                : GEOSEquals_r(h, ours[i], expected) == 1)
                        << to_wkt(rows).value()[i];
                }
                GEOSGeom_destroy_r(h, expected);
            }
        }
    }
}

TEST(simplify, lines_are_those_of_geos) {
    geos by;
    auto* const h = by.handle();
    for (auto const kind :
         {family::linestring, family::multilinestring, family::polygon, family::multipolygon, family::mixed}) {
        lattice_options const shape{.rows = 300, .size = 9, .seed = 91};
        auto const rows = kind == family::mixed ? lattice_of_all_families(shape) : lattice(kind, shape);
        for (double const tolerance : {0.6, 1.5, 3.0}) {
            host_queue on{item_order::scrambled};
            auto const ours = by.read(simplified_rows(on, rows, tolerance).value()), theirs = by.read(rows);
            for (std::size_t i = 0; i < ours.size(); ++i) {
                EXPECT_TRUE(by.is_valid(ours[i]));
                if (dimension_of(rows.kind_of(i)) == 2) continue;
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
