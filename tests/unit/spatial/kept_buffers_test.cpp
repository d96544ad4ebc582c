// SPDX-License-Identifier: Apache-2.0
// What lies within a distance of rows, by the device's text run on the host, against GEOS and against what must be so.
#include "counting_queue.hpp"
#include "geos.hpp"
#include "samples.hpp"
#include "spatial/buffer_pieces.cuh"
#include "spatial/overlay/buffers.hpp"

#include <kiln/runtime/execution.hpp>
#include <kiln/spatial/measures.hpp>
#include <kiln/spatial/validate.hpp>
#include <kiln/spatial/wkt.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <fmt/format.h>
#include <numbers>
#include <random>

namespace kiln::spatial_tests {

namespace {

using namespace spatial;

geometries rows_of(std::vector<std::string> const& rows) { return from_wkt(rows).value(); }

geometries around(geometries const& of, double distance, buffer_options const& how = {}) {
    host_queue on{item_order::scrambled};
    auto out = buffered_rows(on, of, distance, how).value();
    EXPECT_TRUE(require_valid(out));
    return out;
}
std::string text_around(std::string const& row, double distance, buffer_options const& how = {}) {
    return to_wkt(around(rows_of({row}), distance, how)).value()[0];
}
double area_around(std::string const& row, double distance, buffer_options const& how = {}) {
    return cpu::area(around(rows_of({row}), distance, how)).value()[0].value();
}

constexpr buffer_options square_and_mitre{.caps = cap_style::square, .joins = join_style::mitre};
constexpr buffer_options flat_and_mitre{.caps = cap_style::flat, .joins = join_style::mitre};

}  // namespace

TEST(buffers, angles_and_directions_are_those_of_the_library) {
    for (int k = 0; k <= 1000; ++k) {
        double const angle = std::numbers::pi * k / 1000;
        EXPECT_NEAR(kiln_spatial::angle_of(std::cos(angle), std::sin(angle)), angle, 1e-14);
        auto const d = kiln_spatial::direction_at(2 * angle);
        EXPECT_NEAR(d.x, std::cos(2 * angle), 2e-15);
        EXPECT_NEAR(d.y, std::sin(2 * angle), 2e-15);
    }
}

// Of lines, and of areas that are small beside the distance, nothing is left: nothing need be cut for that.
TEST(buffers, what_vanishes_costs_little) {
    constexpr int count = 600;
    std::string corners;
    for (int k = 0; k <= count; ++k) {
        double const angle = 2 * std::numbers::pi * (k % count) / count;
        corners += fmt::format("{}{} {}", k == 0 ? "" : ", ", std::cos(angle), std::sin(angle));
    }
    auto const work = [](std::string const& row, double distance) {
        counting_queue on;
        auto const out =
            buffered_rows(on, rows_of({row, "POLYGON ((0 0, 9000 0, 9000 9000, 0 9000, 0 0))"}), distance, {});
        EXPECT_EQ(to_wkt(out.value()).value()[0], "MULTIPOLYGON EMPTY");
        EXPECT_GT(cpu::area(out.value()).value()[1].value(), 0);
        return on.items();
    };
    EXPECT_LT(work(fmt::format("POLYGON (({}))", corners), -1000), 500U * count);
    EXPECT_LT(work(fmt::format("LINESTRING ({})", corners), -1), 500U * count);
    EXPECT_LT(work(fmt::format("MULTIPOINT ({})", corners), -1), 500U * count);
    // As large as it may be, with the coarsest joins; and other joins are not judged.
    for (auto const joins : {join_style::round, join_style::bevel, join_style::mitre})
        for (double const distance : {-1.0, -1.3, -1.4, -2.0, -2.7, -9.0}) {
            buffer_options const how{.quarter = 1, .joins = joins};
            EXPECT_EQ(text_around("POLYGON ((0 0, 9 0, 9 1, 5 2, 0 1, 0 0))", distance, how), "MULTIPOLYGON EMPTY");
        }
    EXPECT_NE(text_around("POLYGON ((0 0, 9 0, 9 1, 5 2, 0 1, 0 0))", -0.5, {.quarter = 1}), "MULTIPOLYGON EMPTY");
}

TEST(buffers, caps_and_joins) {
    EXPECT_EQ(text_around("LINESTRING (0 0, 4 0)", 1, flat_and_mitre), "MULTIPOLYGON (((0 -1, 4 -1, 4 1, 0 1, 0 -1)))");
    EXPECT_EQ(text_around("LINESTRING (0 0, 4 0)", 1, square_and_mitre),
              "MULTIPOLYGON (((-1 -1, 5 -1, 5 1, -1 1, -1 -1)))");
    EXPECT_DOUBLE_EQ(area_around("LINESTRING (0 0, 4 0, 4 4)", 1, flat_and_mitre), 16);
    EXPECT_DOUBLE_EQ(area_around("LINESTRING (4 4, 4 0, 0 0)", 1, flat_and_mitre), 16);
    EXPECT_DOUBLE_EQ(
        area_around("LINESTRING (0 0, 4 0, 4 4)", 1, {.caps = cap_style::flat, .joins = join_style::bevel}), 15.5);
    // A tip at the root of 2 is beyond a limit of 1.2: it is cut off there.
    double const cut = (std::numbers::sqrt2 - 1.2) * (std::numbers::sqrt2 - 1.2);
    EXPECT_NEAR(area_around("LINESTRING (0 0, 4 0, 4 4)", 1,
                            {.caps = cap_style::flat, .joins = join_style::mitre, .mitre_limit = 1.2}),
                16 - cut, 1e-14);
    // Straight on, straight back, and a line that ends where it begins.
    EXPECT_DOUBLE_EQ(area_around("LINESTRING (0 0, 2 0, 4 0)", 1, flat_and_mitre), 8);
    EXPECT_DOUBLE_EQ(area_around("LINESTRING (0 0, 4 0, 2 0)", 1, flat_and_mitre), 8);
    EXPECT_DOUBLE_EQ(area_around("LINESTRING (0 0, 4 0, 4 4, 0 4, 0 0)", 1, flat_and_mitre), 32);
}

TEST(buffers, areas_grow_and_shrink) {
    std::string const square = "POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0), (4 4, 6 4, 6 6, 4 6, 4 4))";
    buffer_options const how{.joins = join_style::mitre};
    EXPECT_DOUBLE_EQ(area_around(square, 0.5, how), 11 * 11 - 1);
    EXPECT_DOUBLE_EQ(area_around(square, 1, how), 144);  // the hole is gone
    EXPECT_DOUBLE_EQ(area_around(square, -0.5, how), 81 - 9);
    // Four corners are left, each a square without a quarter of a circle.
    EXPECT_NEAR(area_around(square, -2, {}), 16 - 64 * std::sin(std::numbers::pi / 16), 1e-12);
    EXPECT_EQ(text_around(square, -6, {}), "MULTIPOLYGON EMPTY");
    EXPECT_DOUBLE_EQ(area_around(square, 0, {}), 96);
    EXPECT_EQ(text_around("POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))", 0, {}),
              "MULTIPOLYGON (((0 0, 1 1, 0 2, 0 0)), ((1 1, 2 0, 2 2, 1 1)))");
}

// The mitre of a corner that points inwards would come out on the other side.
TEST(buffers, mitres_point_outwards_only) {
    std::string const notched = "POLYGON ((0 0, 10 0, 10 6, 5.5 6, 5.1 0.5, 5 6, 0 6, 0 0))";
    buffer_options const how{.joins = join_style::mitre, .mitre_limit = 20};
    auto const grown = around(rows_of({notched}), 0.2, how);
    auto const box = cpu::bounds(grown).value()[0].value();
    EXPECT_NEAR(box.min_y, -0.2, 1e-12);
}

TEST(buffers, a_mitre_is_none_where_a_line_turns_straight_back_but_for_rounding) {
    // Times ten it turns straight back, and in decimals by some 1e-17.
    EXPECT_NEAR(100 * area_around("LINESTRING (0.1 0.2, 0.7 0.4, 0.4 0.3)", 0.3, flat_and_mitre),
                area_around("LINESTRING (1 2, 7 4, 4 3)", 3, flat_and_mitre), 1e-12);
    EXPECT_NEAR(
        area_around("LINESTRING (500000.1 4000000.2, 500000.7 4000000.4, 500000.4 4000000.3)", 0.3, flat_and_mitre),
        0.6 * std::sqrt(0.4), 1e-8);
    // A sharp turn is not straight back.
    EXPECT_GT(area_around("LINESTRING (0 0, 4 0, 0 0.000001)", 1, flat_and_mitre), 15);
}

// Strips that follow each other share an edge to the last bit: else the border has slits from a vertex of the row outwards, 1e-16 wide, which
// hold the next buffer off.
TEST(buffers, have_no_slits) {
    std::mt19937_64 random{7};
    auto const uniform = [&](double from, double to) { return std::uniform_real_distribution{from, to}(random); };
    for (int round = 0; round < 200; ++round) {
        int const corners = 3 + static_cast<int>(random() % 16);
        std::string star, line;
        for (int k = 0; k <= corners; ++k) {
            double const angle = 2 * std::numbers::pi * k / corners, size = uniform(0.2, 1);
            if (k < corners) star += fmt::format("{} {}, ", size * std::cos(angle), size * std::sin(angle));
            line += fmt::format("{}{} {}", k == 0 ? "" : ", ", k * 0.1, k * 0.3 * (1 + uniform(-1e-16, 1e-16)));
        }
        for (auto const& row :
             {"POLYGON ((" + star + star.substr(0, star.find(',')) + "))", "LINESTRING (" + line + ")"})
            for (auto const joins : {join_style::round, join_style::mitre})  // bevels leave holes of their own
                ASSERT_EQ(text_around(row, 1, {.joins = joins}).find("), ("), std::string::npos) << row;
    }
    auto const once = around(rows_of({"POLYGON ((0.21780631406583525 0.39427250119157886, 0.37255133842076 "
                                      "0.7837035284937778, -0.3695218112220542 0.36061829899853426, "
                                      "-0.38494200872041134 -0.1829592079679541, -0.6006838272407563 "
                                      "-0.20800508813702012, -0.5310095995798715 -0.4786821518335948, "
                                      "-0.4923970168735282 -0.25791792606072583, -0.031338696285082866 "
                                      "-0.23603111019077225, 0.44568359179011163 -0.13320579763991408, "
                                      "0.21780631406583525 0.39427250119157886))"}),
                             1);
    EXPECT_NEAR(cpu::area(around(once, -0.5)).value()[0].value(), 3.3067, 1e-4);
}

TEST(buffers, do_not_depend_on_other_rows) {
    std::mt19937_64 random{11};
    auto const uniform = [&](double from, double to) { return std::uniform_real_distribution{from, to}(random); };
    std::vector<std::string> rows{"POLYGON ((1e12 0, 1e12 1000, 1.001e12 0, 1e12 0))", "POINT (0.5 0.5)"};
    for (int row = 0; row < 60; ++row) {
        double const size = row % 3 == 0 ? 10 : 0.3;  // beside a distance of 1: long segments, and short ones
        std::string line;
        int const corners = 2 + static_cast<int>(random() % 40);
        for (int k = 0; k < corners; ++k)
            line += fmt::format("{}{} {}", k == 0 ? "" : ", ", uniform(-size, size), uniform(-size, size));
        rows.push_back("LINESTRING (" + line + ")");
    }
    auto const together = to_wkt(around(rows_of(rows), 1)).value();
    for (std::size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(together[i], text_around(rows[i], 1)) << rows[i];
}

TEST(buffers, of_nothing_are_nothing) {
    EXPECT_EQ(text_around("NULL", 1), "NULL");
    EXPECT_EQ(text_around("POLYGON EMPTY", 1), "MULTIPOLYGON EMPTY");
    EXPECT_EQ(text_around("POINT EMPTY", 1), "MULTIPOLYGON EMPTY");
    EXPECT_EQ(text_around("POINT (1 1)", 0), "MULTIPOLYGON EMPTY");
    EXPECT_EQ(text_around("LINESTRING (0 0, 1 1)", -1), "MULTIPOLYGON EMPTY");
    EXPECT_EQ(around(rows_of({}), 1).rows(), 0U);
    scoped_execution_mode const mode{execution_mode::cpu};
    auto const one = rows_of({"POINT (1 1)"});
    EXPECT_EQ(buffer_of({}, one, std::nan("")).error().code(), errc::invalid_argument);
    EXPECT_EQ(buffer_of({}, one, 1, {.quarter = 0}).error().code(), errc::invalid_argument);
    EXPECT_EQ(buffer_of({}, one, 1, {.mitre_limit = 0.5}).error().code(), errc::invalid_argument);
    EXPECT_EQ(buffer_of({}, one, 1, {.quarter = 2}).value().vertices(), 9U);
}

// Two far away from each other are two; a step beside large coordinates that rounding swallows does no harm.
TEST(buffers, next_to_large_coordinates) {
    EXPECT_GE(area_around("LINESTRING (1e15 1e15, 1000000000000010 1e15)", 0.25), 0);
    EXPECT_NEAR(area_around("MULTIPOINT ((0 0), (1e6 0))", 1, {.quarter = 32}), 2 * std::numbers::pi, 0.02);
}

// Many short segments beside a long distance: neighbours are put together first.
TEST(buffers, of_short_segments) {
    std::string spiral = "LINESTRING (";
    int const n = 600;
    for (int k = 0; k < n; ++k)
        spiral += (k == 0 ? "" : ", ") + std::to_string(k * 0.01 * std::cos(k * 0.05)) + " " +
                  std::to_string(k * 0.01 * std::sin(k * 0.05));
    auto const one = area_around(spiral + ")", 5);
    EXPECT_GT(one, std::numbers::pi * 25);
    EXPECT_LT(one, std::numbers::pi * 121);
    EXPECT_EQ(around(rows_of({spiral + ")", "POINT (1 1)", spiral + ")"}), 5).rows(), 3U);
}

#ifdef KILN_TEST_GEOS

namespace {

struct difference_of_areas {
    double apart = 0, size = 0;
    bool is_valid = true;
};
difference_of_areas compare(geos& by, GEOSGeometry const* ours, GEOSGeometry const* theirs) {
    auto* const h = by.handle();
    difference_of_areas out;
    out.is_valid = by.is_valid(ours);
    auto* const rest = GEOSSymDifference_r(h, ours, theirs);
    GEOSArea_r(h, rest, &out.apart);
    GEOSArea_r(h, theirs, &out.size);
    GEOSGeom_destroy_r(h, rest);
    return out;
}

}  // namespace

// GEOS leaves details out that are small beside the distance, a hundredth of it: that is how far both may be apart.
TEST(buffers, are_those_of_geos) {
    geos by;
    struct style {
        buffer_options how;
        int cap, join;
    };
    std::array const styles{
        style{{}, GEOSBUF_CAP_ROUND, GEOSBUF_JOIN_ROUND},
        style{
            {.quarter = 3, .caps = cap_style::flat, .joins = join_style::bevel}, GEOSBUF_CAP_FLAT, GEOSBUF_JOIN_BEVEL},
        style{{.caps = cap_style::square, .joins = join_style::mitre, .mitre_limit = 3},
              GEOSBUF_CAP_SQUARE,
              GEOSBUF_JOIN_MITRE}};
    for (int kind = 1; kind <= 6; ++kind) {
        auto const rows = lattice(static_cast<family>(kind), {.rows = 60, .size = 9, .seed = 31});
        auto const theirs_of = by.read(rows);
        for (auto const& s : styles)
            for (double const distance : {0.3, 1.7, -0.3}) {
                if (kind % 3 != 0 && distance < 0) continue;
                auto const ours = around(rows, distance, s.how);
                auto const ours_of = by.read(ours);
                for (std::size_t i = 0; i < rows.rows(); ++i) {
                    auto* const theirs = GEOSBufferWithStyle_r(by.handle(), theirs_of[i], distance, s.how.quarter,
                                                               s.cap, s.join, s.how.mitre_limit);
                    auto const found = compare(by, ours_of[i], theirs);
                    double length = 0;
                    GEOSLength_r(by.handle(), theirs, &length);
                    EXPECT_TRUE(found.is_valid) << to_wkt(rows).value()[i] << " " << distance;
                    EXPECT_LE(found.apart, 0.02 * std::abs(distance) * length + 1e-12)
                        << to_wkt(rows).value()[i] << " by " << distance << ", style " << s.join << "\n"
                        << to_wkt(ours).value()[i];
                    GEOSGeom_destroy_r(by.handle(), theirs);
                }
            }
    }
}

#endif

}  // namespace kiln::spatial_tests
