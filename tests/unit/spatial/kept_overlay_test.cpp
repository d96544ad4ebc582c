// SPDX-License-Identifier: Apache-2.0
// Areas put over each other, by the device's text run on the host, against GEOS and against what must be so.
#include "counting_queue.hpp"
#include "geos.hpp"
#include "overlay_samples.hpp"
#include "samples.hpp"
#include "spatial/overlay/overlay.hpp"
#include "spatial/overlay/table.hpp"

#include <kiln/event.hpp>
#include <kiln/runtime/execution.hpp>
#include <kiln/spatial/measures.hpp>
#include <kiln/spatial/validate.hpp>
#include <kiln/spatial/wkt.hpp>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>

namespace kiln::spatial_tests {

namespace {

using namespace spatial;
using testing::ElementsAre;

geometries areas(std::vector<std::string> const& rows) { return from_wkt(rows).value(); }

overlay_rows overlaid(geometries const& left, geometries const& right, overlay_kind what,
                      item_order order = item_order::scrambled) {
    host_queue on{order};
    auto out = overlaid_rows(on, left, right, what).value();
    EXPECT_TRUE(require_valid(out.rows));
    return out;
}
std::vector<std::string> texts(overlay_rows const& of) {
    auto out = to_wkt(of.rows).value();
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = std::to_string(of.left.data()[i]) + " " + std::to_string(of.right.data()[i]) + " " + out[i];
    return out;
}
std::string valid(std::string const& row) {
    host_queue on{item_order::scrambled};
    return to_wkt(rows_mended(on, areas({row})).value().rows).value()[0];
}
double total_area(geometries const& of) {
    double out = 0;
    for (auto const& a : cpu::area(of).value()) out += a.value_or(0);
    return out;
}

}  // namespace

TEST(overlay, two_squares) {
    auto const a = areas({"POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"}), b = areas({"POLYGON ((2 2, 6 2, 6 6, 2 6, 2 2))"});
    auto const of = [&](overlay_kind what) { return texts(overlaid(a, b, what)); };
    EXPECT_THAT(of(overlay_kind::intersection), ElementsAre("0 0 MULTIPOLYGON (((2 2, 4 2, 4 4, 2 4, 2 2)))"));
    EXPECT_THAT(of(overlay_kind::difference), ElementsAre("0 -1 MULTIPOLYGON (((0 0, 4 0, 4 2, 2 2, 2 4, 0 4, 0 0)))"));
    EXPECT_EQ(of(overlay_kind::union_).size(), 3U);
    EXPECT_EQ(of(overlay_kind::symmetric_difference).size(), 2U);
    EXPECT_EQ(of(overlay_kind::identity).size(), 2U);
    EXPECT_EQ(of(overlay_kind::update).size(), 2U);
}

TEST(overlay, what_only_touches_has_nothing_in_common) {
    auto const a = areas({"POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))", "NULL", "POLYGON EMPTY"});
    auto const b = areas({"POLYGON ((2 0, 4 0, 4 2, 2 2, 2 0))", "POLYGON ((2 2, 3 3, 2 3, 2 2))", "NULL"});
    EXPECT_EQ(overlaid(a, b, overlay_kind::intersection).size(), 0U);
    EXPECT_THAT(texts(overlaid(a, b, overlay_kind::difference)),
                ElementsAre("0 -1 MULTIPOLYGON (((0 0, 2 0, 2 2, 0 2, 0 0)))"));
    EXPECT_EQ(overlaid(areas({}), b, overlay_kind::union_).size(), 2U);
    EXPECT_EQ(overlaid(areas({}), areas({}), overlay_kind::union_).size(), 0U);
}

TEST(overlay, a_hole_that_touches_its_shell_stays_a_hole) {
    // The right row cuts a diamond out that touches the left row's side in one point, and another in its middle.
    auto const a = areas({"POLYGON ((0 0, 8 0, 8 8, 0 8, 0 0))"});
    auto const b = areas({"POLYGON ((0 4, 2 2, 4 4, 2 6, 0 4))", "POLYGON ((4 4, 6 2, 8 4, 6 6, 4 4))"});
    auto const cut = overlaid(a, b, overlay_kind::difference);
    ASSERT_EQ(cut.size(), 1U);
    EXPECT_DOUBLE_EQ(total_area(cut.rows), 64 - 16);
    // The two touch each other and both sides: what is left falls into two.
    EXPECT_EQ(cut.rows.parts().offsets[1].size() - 1, 2U);
    auto const one = overlaid(a, areas({"POLYGON ((0 4, 2 2, 4 4, 2 6, 0 4))"}), overlay_kind::difference);
    EXPECT_EQ(one.rows.parts().offsets[1].size() - 1, 1U);
    EXPECT_EQ(one.rows.parts().offsets[2].size() - 1, 2U);
}

TEST(overlay, islands_in_holes_get_the_hole_around_them) {
    // A ring in a ring in a ring: each a shell with a hole.
    auto const a = areas({"POLYGON ((0 0, 20 0, 20 20, 0 20, 0 0))"});
    auto const b = areas({"POLYGON ((2 2, 18 2, 18 18, 2 18, 2 2), (4 4, 16 4, 16 16, 4 16, 4 4))",
                          "POLYGON ((6 6, 14 6, 14 14, 6 14, 6 6), (8 8, 12 8, 12 12, 8 12, 8 8))"});
    auto const left = overlaid(a, b, overlay_kind::difference);
    ASSERT_EQ(left.size(), 1U);
    EXPECT_THAT(texts(left),
                ElementsAre("0 -1 MULTIPOLYGON (((0 0, 20 0, 20 20, 0 20, 0 0), (2 2, 2 18, 18 18, 18 2, 2 2)), "
                            "((4 4, 16 4, 16 16, 4 16, 4 4), (6 6, 6 14, 14 14, 14 6, 6 6)), "
                            "((8 8, 12 8, 12 12, 8 12, 8 8)))"));
}

// Few holes are held against all edges, many are located by an index; which of the shells around a hole is the innermost one does not depend on that.
TEST(overlay, holes_of_many_islands_get_the_shells_around_them) {
    for (int const side : {2, 12}) {
        std::string row = "MULTIPOLYGON (";
        // Squares in each other: an island, its lake, an island in that and its lake, which touches the island's corner. Others touch from outside.
        for (int k = 0; k < side * side; ++k) {
            double const x = k % side * 10, y = k / side * 10;
            auto const square = [&](double from, double to) {
                return fmt::format("({} {}, {} {}, {} {}, {} {}, {} {})", x + from, y + from, x + to, y + from, x + to,
                                   y + to, x + from, y + to, x + from, y + from);
            };
            auto const diamond =
                fmt::format("({} {}, {} {}, {} {}, {} {})", x + 4, y + 4, x + 6, y + 4.5, x + 4.5, y + 6, x + 4, y + 4);
            row += fmt::format("{}({}, {}), ({}, {})", k == 0 ? "" : ", ", square(0, 10), square(1, 9), square(4, 8),
                               diamond);
        }
        auto const of = areas({row + ")"});
        host_queue on{item_order::scrambled};
        auto const united = united_rows(on, of).value();
        ASSERT_TRUE(require_valid(united));
        EXPECT_DOUBLE_EQ(total_area(united), total_area(of)) << side;
        auto const text = to_wkt(united).value()[0];
        // One part with all the lakes, and in each of these an island with one.
        for (int k = 0; k < side * side; ++k) {
            auto const x = k % side * 10, y = k / side * 10;
            EXPECT_THAT(text, testing::HasSubstr(fmt::format("(({} {}, {} {}, {} {}, {} {}, {} {}), ({} {}, ", x + 4,
                                                             y + 4, x + 8, y + 4, x + 8, y + 8, x + 4, y + 8, x + 4,
                                                             y + 4, x + 4, y + 4)));
        }
        EXPECT_EQ(united.vertices(), static_cast<std::size_t>(4 * side + 1 + 14 * side * side)) << text;
    }
}
TEST(overlay, rows_that_are_not_valid_are_put_right) {
    EXPECT_EQ(valid("POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))"),
              "MULTIPOLYGON (((0 0, 1 1, 0 2, 0 0)), ((1 1, 2 0, 2 2, 1 1)))");
    EXPECT_EQ(valid("POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (0 0, 4 0, 4 4, 0 4, 0 0))"), "MULTIPOLYGON EMPTY");
    EXPECT_EQ(valid("POLYGON ((0 0, 4 0, 4 0, 6 0, 4 0, 4 4, 0 4, 0 0))"),
              "MULTIPOLYGON (((0 0, 4 0, 4 4, 0 4, 0 0)))");  // a spike
    EXPECT_EQ(valid("POLYGON ((0 0, 1 1, 0 0))"), "MULTIPOLYGON EMPTY");
    EXPECT_EQ(valid("NULL"), "NULL");
    EXPECT_EQ(valid("POLYGON EMPTY"), "MULTIPOLYGON EMPTY");
    // A shell that touches itself is a shell with a hole.
    EXPECT_EQ(valid("POLYGON ((0 0, 4 0, 4 4, 2 4, 3 2, 1 2, 2 4, 0 4, 0 0))"),
              "MULTIPOLYGON (((0 0, 4 0, 4 4, 2 4, 0 4, 0 0), (1 2, 2 4, 3 2, 1 2)))");
}

// What GEOS calls valid is what drawing it anew leaves as it was.
TEST(overlay, rows_that_were_valid_are_told) {
    std::vector<std::string> const good{
        "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))",
        "POLYGON ((0 0, 0 4, 0 4, 4 4, 4 0, 0 0))",                        // the other way round, a vertex twice
        "POLYGON ((0 0, 8 0, 8 8, 0 8, 0 0), (0 4, 2 2, 4 4, 2 6, 0 4))",  // a hole touches the shell
        "POLYGON ((0 0, 8 0, 8 8, 0 8, 0 0), (1 1, 2 1, 2 2, 1 1), (2 2, 3 2, 3 3, 2 2))",
        "MULTIPOLYGON (((0 0, 4 0, 4 4, 0 4, 0 0)), ((4 2, 6 0, 6 4, 4 2)))",  // two touch in a point inside a side
        "MULTIPOLYGON (((10 0, 14 0, 14 4, 10 0)), ((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 8 1, 8 8, 1 8, 1 1)), ((2 2, 7 2, "
        "7 7, 2 2)))",
        "POLYGON EMPTY",
        "NULL",
        "LINESTRING (0 0, 1 1, 0 0)",
        "POINT (1 1)",
        "MULTIPOINT ((1 1), (1 1))"};
    std::vector<std::string> const bad{
        "POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))",                             // crosses itself
        "POLYGON ((0 0, 4 0, 4 4, 2 4, 3 2, 1 2, 2 4, 0 4, 0 0))",         // a shell that touches itself
        "POLYGON ((0 0, 8 0, 8 8, 0 8, 0 0), (0 4, 4 0, 8 4, 4 8, 0 4))",  // a hole cuts it into four
        "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (5 5, 6 5, 6 6, 5 5))",       // a hole outside
        "POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 8 1, 8 8, 1 8, 1 1), (2 2, 3 2, 3 3, 2 2))",  // a hole in a hole
        "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (0 0, 4 0, 4 4, 0 4, 0 0))",
        "POLYGON ((0 0, 4 0, 6 0, 4 0, 4 4, 0 4, 0 0))",                            // a spike
        "MULTIPOLYGON (((0 0, 4 0, 4 4, 0 4, 0 0)), ((4 0, 8 0, 8 4, 4 4, 4 0)))",  // a side in common
        "MULTIPOLYGON (((0 0, 4 0, 4 4, 0 4, 0 0)), ((2 2, 6 2, 6 6, 2 6, 2 2)))",
        "MULTIPOLYGON (((0 0, 4 0, 4 4, 0 4, 0 0)), ((1 1, 2 1, 2 2, 1 1)))",  // one in the other
        "POLYGON ((1 1, 1 1, 1 1, 1 1))",
        hole_just_outside,
        "LINESTRING (1 1, 1 1)",
        "MULTILINESTRING ((0 0, 1 1), (2 2, 2 2))"};
    for (auto const* const rows : {&good, &bad}) {
        auto const all = areas(*rows);
        host_queue on{item_order::scrambled};
        auto const told = rows_mended(on, all).value().was_valid;
        for (std::size_t i = 0; i < rows->size(); ++i) EXPECT_EQ(told.data()[i], rows == &good ? 1 : 0) << (*rows)[i];
#ifdef KILN_TEST_GEOS
        geos by;
        auto const theirs = by.read(all);
        for (std::size_t i = 0; i < rows->size(); ++i)
            EXPECT_EQ(theirs[i] == nullptr || by.is_valid(theirs[i]), rows == &good) << (*rows)[i];
#endif
    }
    scoped_execution_mode const mode{execution_mode::cpu};
    EXPECT_EQ(is_valid({}, areas({"LINESTRING (0 0, 1 1)"})).value().data()[0], 1);
    EXPECT_EQ(to_wkt(mend({}, areas({"LINESTRING (0 0, 1 1)"})).value().rows).value()[0], "LINESTRING (0 0, 1 1)");
    EXPECT_EQ(mend({}, areas({bad[0]})).value().was_valid.data()[0], 0);
}

TEST(overlay, a_hole_without_a_shell_says_nothing_of_the_rows_before) {
    std::vector<std::string> const rows{
        "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))", "POLYGON ((9 9, 9 9, 9 9, 9 9), (5 5, 6 5, 6 6, 5 5))", "NULL",
        "MULTIPOLYGON (((9 9, 9 9, 9 9, 9 9), (5 5, 6 5, 6 6, 5 5)), ((0 0, 1 0, 1 1, 0 0)))",
        "POLYGON ((0 0, 8 0, 8 8, 0 8, 0 0), (1 1, 2 1, 2 2, 1 1))"};
    host_queue on{item_order::scrambled};
    EXPECT_THAT(values_of(rows_mended(on, areas(rows)).value().was_valid), ElementsAre(1, 0, 1, 0, 1));
    auto const others = areas({rows[4], "POINT (1 1)", "LINESTRING (0 0, 1 1)", rows[1], rows[0]});
    EXPECT_THAT(values_of(rows_mended(on, others).value().was_valid), ElementsAre(1, 1, 1, 0, 1));
}

TEST(overlay, lines_are_not_divided_to_tell_whether_they_are_valid) {
    std::vector<std::string> const rows{"POINT (1 2)", back_and_forth, "POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))",
                                        "LINESTRING (-100000 0, 1e-13 200000, 0 100000, -100000 1e-13, -2 200000)",
                                        "LINESTRING (3 3, 3 3)"};
    scoped_execution_mode const mode{execution_mode::cpu};
    auto const told = [](geometries const& of) {
        auto const valid = is_valid({}, of);
        EXPECT_TRUE(valid) << valid.error().message();
        return valid ? values_of(*valid) : std::vector<std::uint8_t>{};
    };
    EXPECT_THAT(told(areas(rows)), ElementsAre(1, 1, 0, 1, 0));
    EXPECT_THAT(told(areas({rows[1], rows[4], rows[3]})), ElementsAre(1, 0, 1));
    auto const mended = mend({}, areas(rows));
    ASSERT_TRUE(mended) << mended.error().message();
    EXPECT_THAT(values_of(mended->was_valid), ElementsAre(1, 1, 0, 1, 0));
    EXPECT_EQ(to_wkt(mended->rows).value()[1], rows[1]);
}

// Crossings would be smaller than the least coordinate that has exact signs.
TEST(overlay, of_the_smallest_coordinates) {
    auto const tiny = [](geometries const& of) {
        auto parts = of.parts();
        auto const scaled = [](buffer<double> const& from) {
            auto out = buffer<double>::copy_of(from.host_span());
            for (std::size_t i = 0; i < out.size(); ++i) out.data()[i] = (out.data()[i] - 3) * 0x1p-300;
            return out;
        };
        parts.x = scaled(parts.x), parts.y = scaled(parts.y);
        return geometries::make(std::move(parts)).value();
    };
    for (unsigned seed = 1; seed <= 4; ++seed) {
        auto const a = lattice(family::polygon, {.rows = 12, .size = 6, .seed = seed});
        auto const b = lattice(family::polygon, {.rows = 12, .size = 6, .seed = seed + 20});
        host_queue on{item_order::scrambled};
        auto const made = overlaid_rows(on, tiny(a), tiny(b), overlay_kind::union_);
        ASSERT_TRUE(made) << seed << ": " << made.error().message();
        EXPECT_TRUE(require_valid(made->rows));
        auto const mended = rows_mended(on, tiny(a)).value();
        EXPECT_EQ(values_of(mended.was_valid), values_of(rows_mended(on, a).value().was_valid)) << seed;
        EXPECT_THAT(values_of(rows_mended(on, mended.rows).value().was_valid), testing::Each(1)) << seed;
    }
}

TEST(overlay, what_is_no_area_stays_as_it_is_when_areas_are_mended) {
    std::vector<std::string> const rows{"LINESTRING (0 0, 1 1)",
                                        "POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))",
                                        "NULL",
                                        "POINT (1 1)",
                                        "POINT EMPTY",
                                        "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)))",
                                        "MULTILINESTRING ((1 1, 1 1))",
                                        "LINESTRING (5 5, 6 6)",
                                        "POLYGON ((0 0, 4 0, 4 4, 2 4, 3 2, 1 2, 2 4, 0 4, 0 0))"};
    auto const all = areas(rows);
    scoped_execution_mode const mode{execution_mode::cpu};
    auto const mended = mend({}, all).value();
    auto const texts = to_wkt(mended.rows).value();
    EXPECT_TRUE(require_valid(mended.rows));
    for (std::size_t const i : {0, 2, 3, 4, 5, 6, 7}) EXPECT_EQ(texts[i], rows[i]);
    EXPECT_EQ(texts[1], valid(rows[1]));
    EXPECT_EQ(texts[8], valid(rows[8]));
    EXPECT_EQ(to_wkt(make_valid({}, all).value()).value(), texts);
    EXPECT_THAT(std::vector<int>(mended.was_valid.data(), mended.was_valid.data() + rows.size()),
                ElementsAre(1, 0, 1, 1, 1, 1, 0, 1, 0));
    // A view of nothing but lines, and nulls alone.
    auto const some = all.view(buffer<std::int32_t>::copy_of(std::vector<std::int32_t>{7, 0, 2})).value();
    EXPECT_THAT(to_wkt(make_valid({}, some).value()).value(), ElementsAre(rows[7], rows[0], "NULL"));
    EXPECT_THAT(to_wkt(make_valid({}, areas({"NULL", "NULL"})).value()).value(), ElementsAre("NULL", "NULL"));
}

TEST(overlay, rows_that_are_no_areas_are_named) {
    scoped_execution_mode const mode{execution_mode::cpu};
    auto const a = areas({"POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"});
    auto const b = areas({"POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))", "NULL", "LINESTRING (0 0, 1 1)"});
    EXPECT_EQ(overlay({}, a, b, overlay_kind::union_).error().message(),
              "overlay: polygons and multipolygons are needed; row 2 is a linestring");
    EXPECT_EQ(union_all({}, areas({"POINT (1 1)"})).error().message(),
              "union_all: polygons and multipolygons are needed; row 0 is a point");
}

TEST(overlay, rows_of_a_key_become_one) {
    host_queue on{item_order::scrambled};
    auto const tiles = areas({"POLYGON ((0 0, 1 0, 1 1, 0 1, 0 0))", "POLYGON ((1 0, 2 0, 2 1, 1 1, 1 0))",
                              "POLYGON ((2 0, 3 0, 3 1, 2 1, 2 0))", "POLYGON ((0 1, 3 1, 3 2, 0 2, 0 1))"});
    auto const keys = buffer<std::int32_t>::copy_of(std::vector<std::int32_t>{0, 0, 2, -1});
    EXPECT_THAT(to_wkt(dissolved_rows(on, tiles, keys, 3).value()).value(),
                ElementsAre("MULTIPOLYGON (((0 0, 1 0, 2 0, 2 1, 1 1, 0 1, 0 0)))", "MULTIPOLYGON EMPTY",
                            "MULTIPOLYGON (((2 0, 3 0, 3 1, 2 1, 2 0)))"));
    EXPECT_DOUBLE_EQ(total_area(united_rows(on, tiles).value()), 6);
    EXPECT_EQ(to_wkt(united_rows(on, areas({})).value()).value(), std::vector<std::string>{"MULTIPOLYGON EMPTY"});
}

TEST(overlay, is_a_call_that_is_decided_once) {
    scoped_execution_mode const mode{execution_mode::cpu};
    auto const a = areas({"POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"}), b = areas({"POLYGON ((2 2, 6 2, 6 6, 2 6, 2 2))"});
    auto const table = area_table({}, a, b).value();
    ASSERT_EQ(table.size(), 1U);
    EXPECT_EQ(table.area.data()[0], 4);
    EXPECT_EQ(overlay({}, a, areas({"POINT (1 1)"}), overlay_kind::union_).error().code(), errc::unsupported);
    auto const keys = buffer<std::int32_t>::copy_of(std::vector<std::int32_t>{0, 1});
    EXPECT_EQ(dissolve({}, a, keys, 2).error().code(), errc::invalid_argument);
    EXPECT_EQ(union_all({}, a).value().rows(), 1U);
    EXPECT_EQ(make_valid({}, a).value().rows(), 1U);
    for (auto const kind : all_kinds_of_overlay) EXPECT_EQ(overlay_kind_of(name_of(kind)), kind);
    EXPECT_FALSE(overlay_kind_of("xor"));
}

TEST(overlay, row_by_row) {
    auto const a = areas({"POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))", "NULL", "POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))",
                          "POLYGON ((0 0, 1 0, 1 1, 0 0))"});
    auto const b = areas({"POLYGON ((1 1, 2 1, 2 2, 1 2, 1 1))", "POLYGON ((0 0, 1 0, 1 1, 0 0))",
                          "POLYGON ((1 1, 3 1, 3 3, 1 3, 1 1))", "POLYGON EMPTY"});
    scoped_execution_mode const mode{execution_mode::cpu};
    auto const of = [&](overlay_kind what) { return to_wkt(overlay_row_by_row({}, a, b, what).value()).value(); };
    EXPECT_THAT(of(overlay_kind::intersection),
                ElementsAre("MULTIPOLYGON (((1 1, 2 1, 2 2, 1 2, 1 1)))", "NULL",
                            "MULTIPOLYGON (((1 1, 2 1, 2 2, 1 2, 1 1)))", "MULTIPOLYGON EMPTY"));
    EXPECT_THAT(of(overlay_kind::union_), ElementsAre("MULTIPOLYGON (((0 0, 4 0, 4 4, 0 4, 0 0)))", "NULL",
                                                      "MULTIPOLYGON (((0 0, 2 0, 2 1, 3 1, 3 3, 1 3, 1 2, 0 2, 0 0)))",
                                                      "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)))"));
    EXPECT_THAT(
        of(overlay_kind::difference),
        ElementsAre("MULTIPOLYGON (((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 1 2, 2 2, 2 1, 1 1)))", "NULL",
                    "MULTIPOLYGON (((0 0, 2 0, 2 1, 1 1, 1 2, 0 2, 0 0)))", "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)))"));
    EXPECT_EQ(of(overlay_kind::symmetric_difference)[3], "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)))");
    EXPECT_EQ(overlay_row_by_row({}, a, b, overlay_kind::update).error().code(), errc::invalid_argument);
    EXPECT_EQ(overlay_row_by_row({}, a, areas({}), overlay_kind::union_).error().code(), errc::invalid_argument);

    auto const common = intersection_area({}, a, b).value(), ratio = iou({}, a, b).value();
    EXPECT_EQ(common.data()[0], 1);
    EXPECT_TRUE(std::isnan(common.data()[1]) && std::isnan(ratio.data()[1]));
    EXPECT_EQ(common.data()[2], 1);
    EXPECT_EQ(common.data()[3], 0);
    EXPECT_EQ(ratio.data()[0], 1.0 / 16);
    EXPECT_EQ(ratio.data()[2], 1.0 / 7);
}

// Edge by edge and by overlay: the same areas.
// Rows at one place know nothing of each other: each is what it is alone, bit for bit, also where some of them have to be rounded.
TEST(overlay, row_by_row_at_one_place_is_that_of_each_row) {
    auto const left = rings_of_any_kind(300, 5), right = rings_of_any_kind(300, 6);
    host_queue on{item_order::scrambled};
    auto const all = to_wkt(overlaid_row_by_row(on, left, right, kiln_spatial::set_operation::union_).value()).value();
    auto const mended = to_wkt(rows_mended(on, left).value().rows).value();
    auto const a = to_wkt(left).value(), b = to_wkt(right).value();
    for (std::size_t i = 0; i < all.size(); i += 7) {
        auto const one =
            overlaid_row_by_row(on, areas({a[i]}), areas({b[i]}), kiln_spatial::set_operation::union_).value();
        EXPECT_EQ(all[i], to_wkt(one).value()[0]) << a[i] << " " << b[i];
        EXPECT_EQ(mended[i], valid(a[i]));
    }
}

TEST(overlay, areas_in_common_of_rows) {
    host_queue on{item_order::scrambled};
    for (bool const general : {false, true}) {
        auto const a = general ? stars({.rows = 60, .seed = 7})
                               : lattice(family::multipolygon, {.rows = 60, .size = 9, .seed = 7});
        auto const b =
            general ? stars({.rows = 60, .seed = 8}) : lattice(family::polygon, {.rows = 60, .size = 9, .seed = 8});
        auto const quick = areas_in_common_row_by_row(on, a, b).value(),
                   drawn = areas_in_common_row_by_row(on, a, b, 0).value();
        for (std::size_t i = 0; i < a.rows(); ++i) EXPECT_NEAR(quick.data()[i], drawn.data()[i], 1e-13) << i;
    }
}

TEST(overlay, on_a_grid) {
    for (unsigned seed = 1; seed <= 3; ++seed) {
        auto const a = stars({.rows = 20, .seed = seed}), b = stars({.rows = 20, .seed = seed + 50});
        for (double const grid : {0.25, 0.01, 1e-7}) {
            host_queue on{item_order::scrambled};
            auto const made = overlaid_rows(on, a, b, overlay_kind::union_, {.grid = grid}).value();
            auto const& p = made.rows.parts();
            for (auto const* const values : {&p.x, &p.y})
                for (double const v : values->host_span()) ASSERT_EQ(v, std::round(v / grid) / (1 / grid)) << grid;
#ifdef KILN_TEST_GEOS
            geos by;
            for (auto const* g : by.read(made.rows)) ASSERT_TRUE(by.is_valid(g)) << seed << " " << grid;
#endif
        }
    }
    scoped_execution_mode const mode{execution_mode::cpu};
    // One by these, rounded, is not one by them.
    auto const c = areas({"POLYGON ((0 0, 1000000 3, 1300000 700001, 7 900000, 0 0))"}),
               d = areas({"POLYGON ((200000 -100000, 400011 1200000, 900000 1000013, 200000 -100000))"});
    for (double const grid : {49.0, 600.0, 100000.0}) {
        auto const made = overlay({}, c, d, overlay_kind::union_, {.grid = grid}).value();
        ASSERT_GT(made.size(), 1U);
        auto const& p = made.rows.parts();
        for (auto const* const values : {&p.x, &p.y})
            for (double const v : values->host_span()) ASSERT_EQ(v, std::round(v / grid) * grid) << grid;
    }
    EXPECT_EQ(overlay({}, areas({}), areas({}), overlay_kind::union_, {.grid = -1}).error().code(),
              errc::invalid_argument);
    // Finer than coordinates are: nothing would come through its squares, and crossings would stay.
    auto const a = areas({"POLYGON ((0.1 0.1, 7.3 0.7, 5.1 6.9, 0.1 0.1))"}),
               b = areas({"POLYGON ((0.3 0.9, 7.9 2.7, 5.7 6.1, 0.3 0.9))"});
    auto const fine = overlay({}, a, b, overlay_kind::intersection, {.grid = 1e-16});
    ASSERT_FALSE(fine);
    EXPECT_EQ(fine.error().code(), errc::invalid_argument);
    EXPECT_EQ(overlay({}, a, b, overlay_kind::intersection, {.grid = 0x1p-44}).value().size(), 1U);
}

// Edges of squares are no doubles where the step is none; crossings that lie on them must be in one.
TEST(overlay, on_a_grid_whose_squares_have_rounded_edges) {
    for (unsigned seed = 1; seed <= 30; ++seed) {
        host_queue on;
        auto const a = stars({.rows = 40, .seed = seed}), b = stars({.rows = 40, .seed = seed + 100});
        for (double const grid : {0.03, 0.007}) {
            auto const parts = overlaid_rows(on, a, b, overlay_kind::union_, {.grid = grid}).value();
            ASSERT_TRUE(require_valid(parts.rows)) << seed << " " << grid;
            auto const valid = rows_mended(on, parts.rows).value().was_valid;
            for (std::size_t i = 0; i < parts.size(); ++i) ASSERT_EQ(valid.data()[i], 1) << seed << " " << grid;
        }
    }
}

// Whatever the rows: areas add up, a layer with itself is itself, sides can be exchanged, and no order of threads matters.
TEST(overlay, areas_add_up) {
    for (unsigned seed = 1; seed <= 4; ++seed) {
        auto const a = seed % 2 == 0 ? stars({.rows = 20, .seed = seed})
                                     : lattice(family::polygon, {.rows = 20, .size = 9, .seed = seed});
        auto const b = seed % 2 == 0 ? stars({.rows = 15, .seed = seed + 50})
                                     : lattice(family::multipolygon, {.rows = 15, .size = 9, .seed = seed + 50});
        host_queue on;
        double const one = total_area(united_rows(on, a).value()), other = total_area(united_rows(on, b).value());
        auto const all = [&](overlay_kind what, geometries const& l, geometries const& r) {
            return total_area(united_rows(on, overlaid(l, r, what).rows).value());
        };
        double const common = all(overlay_kind::intersection, a, b), both = all(overlay_kind::union_, a, b);
        EXPECT_NEAR(both + common, one + other, 1e-12 * both) << seed;
        EXPECT_NEAR(all(overlay_kind::difference, a, b), one - common, 1e-12 * both) << seed;
        EXPECT_NEAR(all(overlay_kind::symmetric_difference, a, b), both - common, 1e-12 * both) << seed;
        EXPECT_NEAR(all(overlay_kind::identity, a, b), one, 1e-12 * both) << seed;
        EXPECT_NEAR(all(overlay_kind::update, a, b), both, 1e-12 * both) << seed;
        EXPECT_NEAR(all(overlay_kind::intersection, b, a), common, 1e-12 * both) << seed;
        auto const alone = overlaid(a, a, overlay_kind::difference);
        EXPECT_EQ(alone.size(), 0U) << seed;
        auto const table = areas_in_common(on, a, b).value();
        auto const parts = overlaid(a, b, overlay_kind::intersection);
        auto const sizes = cpu::area(parts.rows).value();
        ASSERT_EQ(table.size(), parts.size()) << seed;
        EXPECT_EQ(values_of(table.left), values_of(parts.left)) << seed;
        for (std::size_t i = 0; i < sizes.size(); ++i) EXPECT_NEAR(table.area.data()[i], *sizes[i], 1e-13) << seed;
        for (auto const what : all_kinds_of_overlay) {
            auto const there = overlaid(a, b, what, item_order::ascending), here = overlaid(a, b, what);
            EXPECT_EQ(texts(there), texts(here)) << seed;
        }
    }
}

// All rows lie over each other, and each crosses all others: that many crossings there are, but nobody lists who lies over each piece.
TEST(overlay, areas_over_each_other_are_not_listed_for_every_piece) {
    auto const work = [](int rows) {
        geometry_builder to;
        for (int i = 0; i < rows; ++i) {
            to.begin(family::polygon), to.begin_ring();
            double const x = i, y = i * 0.7;
            for (auto const& corner : {std::array{0, 0}, {900, 11}, {880, 700}, {7, 690}, {0, 0}})
                to.vertex(x + corner[0], y + corner[1]);
            to.end();
        }
        counting_queue on;
        auto const all = to.finish(family::polygon).value();
        auto const out = united_rows(on, all).value();
        // The first, and of each other one what the one before leaves free.
        EXPECT_GT(total_area(out), 900 * 690 + (rows - 1) * 1100.0);
        EXPECT_LT(total_area(out), 900 * 700 + rows * 1400.0);
        return on.bytes();
    };
    EXPECT_LT(work(160), 5 * work(80));
}

#ifdef KILN_TEST_GEOS

namespace {

struct judged {
    std::size_t rows = 0, invalid = 0, different = 0;
    double worst = 0;
};
// Every row of an overlay: valid for GEOS, and the same points as GEOS's result but for slivers of rounding.
judged judge(geos& by, geometries const& left, geometries const& right, overlay_rows const& made, double tolerance) {
    auto const a = by.read(left), b = by.read(right), c = by.read(made.rows);
    judged out;
    for (std::size_t i = 0; i < made.size(); ++i) {
        ++out.rows;
        if (!by.is_valid(c[i])) ++out.invalid;
        auto const l = made.left.data()[i], r = made.right.data()[i];
        if (l < 0 || r < 0) continue;
        std::unique_ptr<GEOSGeometry, std::function<void(GEOSGeometry*)>> const own{
            GEOSIntersection_r(by.handle(), a[static_cast<std::size_t>(l)], b[static_cast<std::size_t>(r)]),
            [&](GEOSGeometry* g) { GEOSGeom_destroy_r(by.handle(), g); }};
        std::unique_ptr<GEOSGeometry, std::function<void(GEOSGeometry*)>> const gap{
            own ? GEOSSymDifference_r(by.handle(), own.get(), c[i]) : nullptr,
            [&](GEOSGeometry* g) { GEOSGeom_destroy_r(by.handle(), g); }};
        double size = 0;
        if (!gap || GEOSArea_r(by.handle(), gap.get(), &size) != 1) size = 1;
        out.worst = std::max(out.worst, size);
        if (size > tolerance) ++out.different;
    }
    return out;
}
std::size_t invalid_rows(geos& by, geometries const& of) {
    std::size_t out = 0;
    for (auto const* g : by.read(of))
        if (g != nullptr && !by.is_valid(g)) ++out;
    return out;
}

}  // namespace

namespace {

// Row by row, of all four operations.
void check_rows_against_geos(geos& by, geometries const& a, geometries const& b, std::vector<GEOSGeometry*> const& left,
                             std::vector<GEOSGeometry*> const& right) {
    using set = kiln_spatial::set_operation;
    using geos_operation = GEOSGeometry* (*)(GEOSContextHandle_t, GEOSGeometry const*, GEOSGeometry const*);
    for (auto const& [ours, theirs] : {std::pair<set, geos_operation>{set::intersection, &GEOSIntersection_r},
                                       {set::union_, &GEOSUnion_r},
                                       {set::difference, &GEOSDifference_r},
                                       {set::symmetric_difference, &GEOSSymDifference_r}}) {
        host_queue on;
        auto const made = by.read(overlaid_row_by_row(on, a, b, ours).value());
        for (std::size_t i = 0; i < made.size(); ++i) {
            EXPECT_TRUE(by.is_valid(made[i]));
            auto* const own = theirs(by.handle(), left[i], right[i]);
            if (own == nullptr) continue;
            auto* const gap = GEOSSymDifference_r(by.handle(), own, made[i]);
            double size = 1;
            if (gap != nullptr) GEOSArea_r(by.handle(), gap, &size);
            EXPECT_LT(size, 1e-11) << i;
            if (gap != nullptr) GEOSGeom_destroy_r(by.handle(), gap);
            GEOSGeom_destroy_r(by.handle(), own);
        }
    }
}

void check_against_geos(unsigned seeds, std::size_t rows) {
    for (unsigned seed = 1; seed <= seeds; ++seed) {
        bool const general = seed % 2 == 0;
        auto const a = general ? stars({.rows = rows, .seed = seed})
                               : lattice(family::polygon, {.rows = rows, .size = 8, .seed = seed});
        auto const b = general ? stars({.rows = rows, .seed = seed + 50})
                               : lattice(family::multipolygon, {.rows = rows, .size = 8, .seed = seed + 50});
        geos by;
        auto const made = overlaid(a, b, overlay_kind::intersection);
        auto const found = judge(by, a, b, made, 1e-11);
        EXPECT_GT(found.rows, rows);
        EXPECT_EQ(found.invalid, 0U) << seed;
        EXPECT_EQ(found.different, 0U) << seed << ": " << found.worst;
        // Nothing is left out: as many pairs as GEOS finds area in common.
        auto const left = by.read(a), right = by.read(b);
        std::size_t pairs = 0;
        for (auto const* l : left)
            for (auto const* r : right) {
                auto* const own = GEOSIntersection_r(by.handle(), l, r);
                double size = 0;
                if (own != nullptr && GEOSArea_r(by.handle(), own, &size) == 1 && size > 1e-14) ++pairs;
                if (own != nullptr) GEOSGeom_destroy_r(by.handle(), own);
            }
        auto const sizes = cpu::area(made.rows).value();
        EXPECT_EQ(static_cast<std::size_t>(std::ranges::count_if(sizes, [](auto const& s) { return *s > 1e-14; })),
                  pairs)
            << seed;
        for (auto const what : all_kinds_of_overlay) EXPECT_EQ(invalid_rows(by, overlaid(a, b, what).rows), 0U) << seed;
        check_rows_against_geos(by, a, b, left, right);
    }
}

}  // namespace

TEST(overlay, rows_are_what_geos_says) { check_against_geos(4, 16); }
// By hand: more than 10,000 pairs of each generator.
TEST(overlay, DISABLED_many_rows_are_what_geos_says) { check_against_geos(12, 50); }

namespace {

// Every ring the other way round.
geometries turned_round(geometries const& of) {
    auto parts = of.parts();
    auto const& rings = parts.offsets[levels_of(of.kind()) - 1];
    for (auto* const values : {&parts.x, &parts.y}) {
        *values = buffer<double>::copy_of(std::vector<double>(values->host_span().begin(), values->host_span().end()));
        for (std::size_t r = 0; r + 1 < rings.size(); ++r)
            std::reverse(values->data() + rings.data()[r], values->data() + rings.data()[r + 1]);
    }
    return geometries::make(std::move(parts)).value();
}

struct pair_findings {
    std::size_t pairs = 0, invalid = 0, apart = 0, unequal = 0;
    double worst_gap = 0, worst_sum = 0;

    void add(pair_findings const& more) {
        pairs += more.pairs;
        invalid += more.invalid;
        apart += more.apart;
        unequal += more.unequal;
        worst_gap = std::max(worst_gap, more.worst_gap);
        worst_sum = std::max(worst_sum, more.worst_sum);
    }
};
// Row by row: valid, what GEOS has, and the identities that must hold, whatever the order and the way round.
pair_findings check_pairs(geometries const& a, geometries const& b) {
    using set = kiln_spatial::set_operation;
    using geos_operation = GEOSGeometry* (*)(GEOSContextHandle_t, GEOSGeometry const*, GEOSGeometry const*);
    std::pair<set, geos_operation> const operations[] = {{set::intersection, &GEOSIntersection_r},
                                                         {set::union_, &GEOSUnion_r},
                                                         {set::difference, &GEOSDifference_r},
                                                         {set::symmetric_difference, &GEOSSymDifference_r}};
    host_queue on;
    geos by;
    auto* const h = by.handle();
    auto const areas = [](geometries const& g) { return cpu::area(g).value(); };
    auto const made = [&](geometries const& l, geometries const& r, set what) {
        return overlaid_row_by_row(on, l, r, what).value();
    };
    auto const own = areas(a), other = areas(b);
    auto const left = by.read(a), right = by.read(b);
    pair_findings out;
    out.pairs = a.rows();
    std::vector<std::optional<double>> sizes[4];
    for (std::size_t k = 0; k < std::size(operations); ++k) {
        auto const rows = made(a, b, operations[k].first);
        sizes[k] = areas(rows);
        auto const ours = by.read(rows);
        for (std::size_t i = 0; i < ours.size(); ++i) {
            if (!by.is_valid(ours[i])) ++out.invalid;
            auto* const theirs = operations[k].second(h, left[i], right[i]);
            auto* const rest = theirs != nullptr ? GEOSSymDifference_r(h, theirs, ours[i]) : nullptr;
            double gap = 1;
            if (rest != nullptr) GEOSArea_r(h, rest, &gap);
            gap /= std::min(*own[i], *other[i]);
            out.worst_gap = std::max(out.worst_gap, gap);
            if (gap > 1e-11) ++out.apart;
            if (theirs != nullptr) GEOSGeom_destroy_r(h, theirs);
            if (rest != nullptr) GEOSGeom_destroy_r(h, rest);
        }
    }
    auto const commuted = areas(made(b, a, set::intersection)),
               round = areas(made(turned_round(a), b, set::intersection)),
               itself = areas(made(a, a, set::intersection)), nothing = areas(made(a, a, set::symmetric_difference));
    for (std::size_t i = 0; i < a.rows(); ++i) {
        double const both = *own[i] + *other[i], common = *sizes[0][i], all = *sizes[1][i];
        double const off = std::max({std::abs(all + common - both), std::abs(*sizes[2][i] + common - *own[i]),
                                     std::abs(*sizes[3][i] + common - all), std::abs(*commuted[i] - common),
                                     std::abs(*round[i] - common), std::abs(*itself[i] - *own[i]), *nothing[i]}) /
                           both;
        out.worst_sum = std::max(out.worst_sum, off);
        if (off > 1e-12) ++out.unequal;
    }
    return out;
}

}  // namespace

// By hand with KILN_SPATIAL_PAIRS=10000. In batches: all rows of one lie in one place, so its work grows with the square of it.
TEST(overlay, pairs_of_every_generator) {
    constexpr std::size_t batch = 60;
    char const* const asked = std::getenv("KILN_SPATIAL_PAIRS");
    std::size_t const wanted = asked != nullptr ? static_cast<std::size_t>(std::atoll(asked)) : batch;
    using seed = unsigned;
    struct generator {
        char const* name;
        std::function<geometries(seed)> a, b;
    };
    auto const on_lattice = [](family f, int size) {
        return [=](seed s) { return lattice(f, {.rows = batch, .size = size, .seed = s}); };
    };
    auto const star = [](double size) {
        return [=](seed s) { return stars({.rows = batch, .seed = s, .size = size}); };
    };
    generator const all[] = {
        {"stars with holes", star(2), star(2)},
        {"polygons of a lattice", on_lattice(family::polygon, 8), on_lattice(family::polygon, 8)},
        {"multipolygons of a lattice", on_lattice(family::multipolygon, 8), on_lattice(family::multipolygon, 8)},
        {"stars and multipolygons", star(3), on_lattice(family::multipolygon, 3)},
    };
    seed next = 71;
    for (auto const& g : all) {
        pair_findings sum;
        while (sum.pairs < wanted) {
            auto const first = next++, second = next++;
            auto const found = check_pairs(g.a(first), g.b(second));
            EXPECT_TRUE(found.invalid + found.apart + found.unequal == 0) << g.name << ", seeds from " << first;
            sum.add(found);
        }
        std::printf("%s: %zu pairs, %zu invalid, %zu apart from GEOS (worst %.2g), %zu unequal sums (worst %.2g)\n",
                    g.name, sum.pairs, sum.invalid, sum.apart, sum.worst_gap, sum.unequal, sum.worst_sum);
        std::fflush(stdout);
    }
}

TEST(overlay, real_layers_give_valid_rows) {
    auto const a = real_layer("ne110");
    if (!a) GTEST_SKIP() << "no ne110: see KILN_SPATIAL_DATA";
    geos by;
    host_queue on;
    auto const itself = overlaid_rows(on, *a, *a, overlay_kind::intersection).value();
    EXPECT_EQ(judge(by, *a, *a, itself, 1e-9).different, 0U);
    EXPECT_EQ(invalid_rows(by, itself.rows), 0U);
    EXPECT_EQ(invalid_rows(by, united_rows(on, *a).value()), 0U);
}

// By hand: all six kinds, with the worst difference to GEOS's own intersections.
TEST(overlay, DISABLED_counties_give_valid_rows) {
    auto const a = real_layer("county2010"), b = real_layer("county2016");
    if (!a || !b) GTEST_SKIP() << "no counties: see KILN_SPATIAL_DATA";
    geos by;
    host_queue on;
    for (auto const what : all_kinds_of_overlay) {
        auto const made = overlaid_rows(on, *a, *b, what).value();
        auto const invalid = invalid_rows(by, made.rows);
        std::printf("%s: %zu rows, %zu vertices, %zu invalid\n", std::string{name_of(what)}.c_str(), made.size(),
                    made.rows.vertices(), invalid);
        std::fflush(stdout);
        EXPECT_EQ(invalid, 0U);
        if (what != overlay_kind::intersection) continue;
        auto const found = judge(by, *a, *b, made, 1e-9);
        std::printf("    different from GEOS %zu, by at most %g\n", found.different, found.worst);
    }
}

#endif

}  // namespace kiln::spatial_tests
