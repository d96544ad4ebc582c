// SPDX-License-Identifier: Apache-2.0
#include <kiln/spatial/arrow.hpp>
#include <kiln/spatial/validate.hpp>
#include <kiln/spatial/wkb.hpp>
#include <kiln/spatial/wkt.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace kiln::spatial_tests {

namespace {

using namespace spatial;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

geometries read(std::vector<std::string> const& rows) { return from_wkt(rows).value(); }
std::vector<std::string> text(geometries const& g) { return to_wkt(g).value(); }

std::vector<std::string> const one_of_each{
    "POINT (1 2)",
    "LINESTRING (0 0, 1 1.5, 1e+300 -0.1)",
    "POLYGON ((0 0, 4 0, 4 4, 0 0), (1 1, 2 1, 2 2, 1 1))",
    "MULTIPOINT ((1 2), (3 4))",
    "MULTILINESTRING ((0 0, 1 1), (2 2, 3 3, 4 5))",
    "MULTIPOLYGON (((0 0, 4 0, 4 4, 0 0), (1 1, 2 1, 2 2, 1 1)), ((9 9, 8 9, 8 8, 9 9)))",
};
std::vector<std::string> const empties{"POINT EMPTY",      "LINESTRING EMPTY",      "POLYGON EMPTY",
                                       "MULTIPOINT EMPTY", "MULTILINESTRING EMPTY", "MULTIPOLYGON EMPTY"};

}  // namespace

TEST(wkt, gives_back_what_it_read) {
    for (auto const& row : one_of_each) EXPECT_THAT(text(read({row})), ElementsAre(row));
    for (auto const& row : empties) EXPECT_THAT(text(read({row})), ElementsAre(row));
    auto all = one_of_each;
    all.insert(all.end(), empties.begin(), empties.end());
    all.insert(all.begin() + 3, "NULL");
    auto const mixed = read(all);
    EXPECT_EQ(mixed.kind(), family::mixed);
    EXPECT_EQ(text(mixed), all);
}

TEST(wkt, takes_what_others_write) {
    EXPECT_THAT(text(read({"  point(1 2) ", "SRID=4326;POINT(+3 4)", ""})),
                ElementsAre("POINT (1 2)", "POINT (3 4)", "NULL"));
    EXPECT_THAT(text(read({"MULTIPOINT(1 2, 3 4)"})), ElementsAre("MULTIPOINT ((1 2), (3 4))"));
    EXPECT_EQ(from_wkt_lines("POINT (1 2)\r\n\nPOINT (3 4)").value().rows(), 3U);
    EXPECT_EQ(from_wkt_lines("POINT (1 2)\n").value().rows(), 1U);
}

TEST(wkt, says_where_it_is_wrong) {
    auto const why = [](std::string row) {
        return from_wkt(std::vector<std::string>{"POINT (0 0)", row}).error().message();
    };
    EXPECT_THAT(why("POINT (1 x)"), HasSubstr("row 1, column 10: a number expected"));
    EXPECT_THAT(why("POINT (1 2"), HasSubstr("',' or ')' expected, not 'the end'"));
    EXPECT_THAT(why("POINT (1 2) 3"), HasSubstr("the end expected"));
    EXPECT_THAT(why("POINT Z (1 2 3)"), HasSubstr("Z coordinates"));
    EXPECT_THAT(why("CIRCLE (1 2)"), HasSubstr("'CIRCLE' is none of the six families"));
    EXPECT_THAT(why("GEOMETRYCOLLECTION EMPTY"), HasSubstr("none of the six"));
}

TEST(geometries, null_is_not_empty) {
    for (std::size_t i = 0; i < empties.size(); ++i) {
        auto const g = read({"NULL", empties[i], one_of_each[i]});
        EXPECT_TRUE(g.is_null(0) && !g.is_empty(0)) << empties[i];
        EXPECT_TRUE(!g.is_null(1) && g.is_empty(1)) << empties[i];
        EXPECT_TRUE(!g.is_null(2) && !g.is_empty(2)) << empties[i];
        EXPECT_EQ(g.kind(), static_cast<family>(i + 1));
        EXPECT_THAT(text(g), ElementsAre("NULL", empties[i], one_of_each[i]));
    }
}

TEST(geometries, views_repeat_rows_without_copying) {
    auto const all = read(one_of_each);
    auto const view = all.view(buffer<std::int32_t>::copy_of({5, 0, 5})).value();
    EXPECT_EQ(view.vertices(), all.vertices());
    EXPECT_THAT(text(view), ElementsAre(one_of_each[5], one_of_each[0], one_of_each[5]));
    EXPECT_EQ(view.kind_of(1), family::point);
    auto const second = view.view(buffer<std::int32_t>::copy_of({2, 1})).value();
    EXPECT_THAT(text(second), ElementsAre(one_of_each[5], one_of_each[0]));
    auto const copied = second.compact().value();
    EXPECT_FALSE(copied.chosen());
    EXPECT_EQ(text(copied), text(second));
    EXPECT_EQ(copied.vertices(), 13U);
}

TEST(geometries, rows_of_a_mixed_array_stay_mixed) {
    auto const all = read(one_of_each);
    for (auto const& chosen : {std::vector<std::int32_t>{}, {0}, {2, 2}}) {
        auto const some = all.view(buffer<std::int32_t>::copy_of(chosen)).value();
        auto const copied = some.compact().value();
        EXPECT_EQ(copied.kind(), family::mixed);
        EXPECT_EQ(text(copied), text(some));
    }
    geometry_builder none;
    none.null();
    auto const missing = none.finish(family::mixed).value();
    EXPECT_EQ(missing.kind(), family::mixed);
    EXPECT_THAT(text(missing), ElementsAre("NULL"));
}

TEST(geometry_builder, refuses_calls_that_make_no_rows) {
    using kind = family;
    auto const why = [](auto calls) {
        geometry_builder b;
        b.begin(kind::point), b.vertex(1, 2), b.end();
        calls(b);
        auto const made = b.finish();
        return made ? std::string{"made"} : made.error().message();
    };
    EXPECT_THAT(why([](auto& b) { b.begin(kind::point); }), HasSubstr("row 1: finish() before end()"));
    EXPECT_THAT(why([](auto& b) { b.begin(kind::mixed), b.vertex(1, 2), b.end(); }),
                HasSubstr("row 1: a row is of one"));
    EXPECT_THAT(why([](auto& b) { b.begin(kind::polygon), b.vertex(1, 2), b.end(); }),
                HasSubstr("row 1: a vertex before begin_ring()"));
    EXPECT_THAT(why([](auto& b) {
                    b.begin(kind::multipolygon), b.begin_polygon(), b.begin_ring(), b.begin_polygon(), b.vertex(1, 2);
                }),
                HasSubstr("row 1: a vertex before begin_ring()"));
    EXPECT_THAT(why([](auto& b) { b.begin(kind::multilinestring), b.vertex(1, 2), b.end(); }),
                HasSubstr("row 1: a vertex before begin_ring() or begin_line()"));
    EXPECT_THAT(why([](auto& b) { b.begin(kind::point), b.vertex(1, 2), b.vertex(3, 4), b.end(); }),
                HasSubstr("row 1: a second vertex of a point"));
    EXPECT_THAT(why([](auto& b) { b.vertex(1, 2); }), HasSubstr("row 1: a vertex before begin()"));
    EXPECT_THAT(why([](auto& b) { b.end(); }), HasSubstr("row 1: end() before begin()"));
    EXPECT_THAT(why([](auto& b) { b.begin_ring(); }), HasSubstr("row 1: begin_ring() outside of a polygon"));
    EXPECT_THAT(why([](auto& b) { b.begin(kind::linestring), b.begin_line(), b.end(); }),
                HasSubstr("begin_line() outside"));
    EXPECT_THAT(why([](auto& b) { b.begin(kind::multipolygon), b.begin_ring(), b.end(); }),
                HasSubstr("begin_ring() outside"));
    EXPECT_THAT(why([](auto& b) { b.begin(kind::polygon), b.begin_polygon(), b.end(); }),
                HasSubstr("begin_polygon() outside"));
    EXPECT_THAT(why([](auto& b) { b.begin(kind::linestring), b.begin(kind::linestring); }),
                HasSubstr("row 1: begin() before end()"));
    EXPECT_THAT(why([](auto& b) { b.begin(kind::linestring), b.null(); }), HasSubstr("row 1: null() before end()"));
    geometry_builder again;
    again.end();
    EXPECT_FALSE(again.finish());
    again.begin(kind::point), again.end(), again.null();
    EXPECT_THAT(text(again.finish().value()), ElementsAre("POINT EMPTY", "NULL"));
}

TEST(geometries, refuse_parts_that_do_not_fit) {
    auto const numbers = [](std::size_t n) { return buffer<double>::copy_of(std::vector<double>(n, 1.0)); };
    EXPECT_THAT(geometries::points(numbers(2), numbers(3)).error().message(), HasSubstr("2 values of x and 3 of y"));
    geometry_parts line;
    line.kind = family::linestring;
    line.x = line.y = numbers(2);
    EXPECT_THAT(geometries::make(line).error().message(), HasSubstr("level 0 is missing"));
    line.offsets[0] = buffer<std::int32_t>::copy_of(std::vector<std::int32_t>(20, 0));
    line.validity = buffer<std::uint8_t>::copy_of(std::vector<std::uint8_t>{1});
    EXPECT_THAT(geometries::make(line).error().message(), HasSubstr("1 bytes of validity for 19 rows"));
}

// ---- WKB

TEST(wkb, gives_back_what_it_wrote) {
    auto all = one_of_each;
    all.insert(all.end(), empties.begin(), empties.end());
    all.emplace_back("NULL");
    auto const bytes = to_wkb(read(all)).value();
    EXPECT_EQ(text(from_wkb(bytes).value()), all);
    EXPECT_EQ(bytes.count_nulls(), 1U);
}

TEST(wkb, reads_both_byte_orders_and_skips_srids) {
    std::uint8_t const big[] = {0, 0, 0, 0, 1, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0};
    std::uint8_t const srid[] = {1, 1, 0,    0,    0x20, 0xe6, 0x10, 0, 0, 0, 0, 0,   0,
                                 0, 0, 0xf0, 0x3f, 0,    0,    0,    0, 0, 0, 0, 0x40};
    std::span<std::uint8_t const> const rows[] = {big, srid};
    EXPECT_THAT(text(from_wkb(rows).value()), ElementsAre("POINT (1 2)", "POINT (1 2)"));
}

TEST(wkb, survives_every_truncation_and_every_wrong_byte) {
    auto const all = to_wkb(read(one_of_each)).value();
    std::mt19937 random{1};
    for (std::size_t row = 0; row < all.rows(); ++row) {
        auto const first = all.offsets()->data()[row], last = all.offsets()->data()[row + 1];
        std::vector<std::uint8_t> const bytes(all.values().data() + first, all.values().data() + last);
        for (std::size_t n = 1; n < bytes.size(); ++n) {
            std::span<std::uint8_t const> const cut[] = {std::span{bytes}.first(n)};
            EXPECT_FALSE(from_wkb(cut)) << row << " " << n;
        }
        for (std::size_t n = 0; n < bytes.size(); ++n) {
            auto changed = bytes;
            changed[n] = static_cast<std::uint8_t>(random());
            std::span<std::uint8_t const> const one[] = {changed};
            auto const got = from_wkb(one);
            EXPECT_TRUE(!got || got->rows() == 1U);
        }
    }
}

// ---- Validation

namespace {

std::string flaw_of(std::string const& row) {
    auto const found = validate(read({"NULL", row})).value();
    return found.empty() ? "" : found.front().message;
}

}  // namespace

TEST(validation, names_row_and_reason) {
    EXPECT_EQ(flaw_of("POLYGON ((0 0, 1 0, 1 1, 0 1))"),
              "row 1: ring 0 is open: it begins at (0, 0) and ends at (0, 1)");
    EXPECT_THAT(flaw_of("POLYGON ((0 0, 9 0, 9 9, 0 0), (1 1, 2 2, 1 1))"), HasSubstr("ring 1 has 3 vertices"));
    EXPECT_THAT(flaw_of("LINESTRING (1 1)"), HasSubstr("line 0 has one vertex"));
    EXPECT_THAT(flaw_of("POINT (nan 1)"), HasSubstr("(nan, 1)"));
    EXPECT_THAT(flaw_of("LINESTRING (0 0, inf 1)"), HasSubstr("row 1: vertex 1 of line 0 is (inf, 1)"));
    // Counted within the row, whatever came before it.
    auto const in_row_1 = [](std::string const& before, std::string const& row) {
        return validate(read({before, row})).value().front().message;
    };
    EXPECT_EQ(in_row_1("LINESTRING (0 0, 1 1, 2 2)", "LINESTRING (0 0, inf 1)"),
              "row 1: vertex 1 of line 0 is (inf, 1)");
    EXPECT_EQ(in_row_1("POLYGON ((0 0, 1 0, 1 1, 0 0))", "POLYGON ((0 0, 9 0, 9 9, 0 0), (1 1, 2 nan, 2 2, 1 1))"),
              "row 1: vertex 1 of ring 1 is (2, nan)");
    EXPECT_EQ(in_row_1("MULTIPOINT (0 0, 1 1)", "MULTIPOINT (5 5, 1 inf)"), "row 1: point 1 is (1, inf)");
    EXPECT_EQ(in_row_1("POINT (0 0)", "POINT (1 inf)"), "row 1: the point is (1, inf)");
    EXPECT_THAT(flaw_of("MULTIPOINT (0 0, 1e308 1)"),
                HasSubstr("signs are exact for 0 and magnitudes from 2^-300 to below 2^330"));
    EXPECT_THAT(flaw_of("POINT (1e-300 1)"), HasSubstr("scale it"));
    for (auto const& row : empties) EXPECT_EQ(flaw_of(row), "");
    EXPECT_EQ(flaw_of("POLYGON ((0 0, 0 0, 1 0, 1 0, 1 1, 0 0))"), "");  // repeated points
    EXPECT_EQ(require_valid(read({"POINT (nan 1)"})).error().code(), errc::invalid_argument);
}

TEST(validation, finds_offsets_that_go_back_or_leave) {
    auto const with = [](std::vector<std::int32_t> rows, std::vector<std::int32_t> rings) {
        geometry_parts p;
        p.kind = family::polygon;
        p.x = buffer<double>::copy_of({0., 1., 1., 0.});
        p.y = buffer<double>::copy_of({0., 0., 1., 0.});
        p.offsets[0] = buffer<std::int32_t>::copy_of(rows), p.offsets[1] = buffer<std::int32_t>::copy_of(rings);
        auto const found = validate(geometries::make(std::move(p)).value()).value();
        return found.empty() ? std::string{} : found.front().message;
    };
    EXPECT_EQ(with({0, 1}, {0, 4}), "");
    EXPECT_THAT(with({0, 1}, {0, 5}), HasSubstr("offset 1 of level 1 is 5, outside 0 to 4"));
    EXPECT_THAT(with({0, 2}, {0, 4}), HasSubstr("outside 0 to 1"));
    EXPECT_THAT(with({0, 2}, {0, 4, 3}), HasSubstr("goes back from 4 to 3"));
    EXPECT_THAT(with({0, 1}, {1, 4}), HasSubstr("begins at 1"));
    EXPECT_THAT(with({0, -1}, {0, 4}), HasSubstr("outside"));
    auto const three = read({"POINT (1 2)", "POINT (1 2)"}).view(buffer<std::int32_t>::copy_of({0, 2})).value();
    EXPECT_THAT(validate(three).value().front().message, HasSubstr("row 1: the view chooses row 2 of 2"));
}

// A child whose rows are all empty has offsets, and these lie somewhere.
TEST(geometry, of_parts_in_different_memories_is_refused) {
    std::int32_t offsets[] = {0, 0};
    geometry_parts lines;
    lines.kind = family::linestring;
    lines.offsets[0] = buffer<std::int32_t>::borrow(offsets, 2, residency::device);
    mixed_parts parts;
    parts.type = buffer<std::int8_t>::copy_of({std::int8_t{2}});
    parts.child_row = buffer<std::int32_t>::copy_of({0});
    parts.children = {geometries::make(std::move(lines)).value()};
    auto const made = geometries::make(std::move(parts));
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error().message(), HasSubstr("different memories"));
}

// An empty ring is no ring; a hole in it is one in nothing, and would be an area to some and none to others.
TEST(validation, a_hole_needs_a_shell) {
    std::string const hole = "(0 0, 4 0, 0 4, 0 0)", shell = "(9 9, 13 9, 9 13, 9 9)";
    for (auto const& row : {fmt::format("POLYGON (EMPTY, {})", hole), fmt::format("MULTIPOLYGON ((EMPTY, {}))", hole),
                            fmt::format("MULTIPOLYGON (({}), (EMPTY, EMPTY, {}))", shell, hole)}) {
        auto const found = validate(read({"POLYGON EMPTY", row})).value();
        ASSERT_EQ(found.size(), 1U) << row;
        EXPECT_EQ(found[0].row, 1U);
        EXPECT_THAT(found[0].message, HasSubstr("has a hole and no shell")) << row;
    }
    for (auto const& row :
         {fmt::format("POLYGON ({})", hole), fmt::format("POLYGON ({}, EMPTY)", hole),
          std::string{"POLYGON (EMPTY, EMPTY)"}, fmt::format("MULTIPOLYGON (EMPTY, ({}), (EMPTY))", shell),
          fmt::format("MULTIPOLYGON ((EMPTY), ({}, EMPTY))", shell)})
        EXPECT_THAT(validate(read({row})).value(), ElementsAre()) << row;
}

// ---- Arrow

TEST(arrow, gives_back_what_it_took) {
    for (auto const layout : {coordinates::separated, coordinates::interleaved}) {
        for (std::size_t i = 0; i < one_of_each.size(); ++i) {
            auto const g = read({one_of_each[i], "NULL", empties[i]});
            ArrowSchema schema{};
            ArrowDeviceArray array{};
            arrow_options how;
            how.layout = layout;
            to_arrow({}, g, &schema, &array, how).value();
            EXPECT_EQ(array.device_type, ARROW_DEVICE_CPU);
            auto const back = from_arrow({}, &schema, &array).value();
            EXPECT_EQ(schema.release, nullptr);
            EXPECT_EQ(array.array.release, nullptr);
            EXPECT_EQ(text(back), text(g));
            bool const shared = back.parts().x.data() == g.parts().x.data();
            EXPECT_EQ(shared, layout == coordinates::separated) << one_of_each[i];
        }
    }
}

TEST(arrow, takes_slices_as_they_are) {
    for (auto const layout : {coordinates::separated, coordinates::interleaved}) {
        for (std::size_t i = 0; i < one_of_each.size(); ++i) {
            std::vector<std::string> rows;
            for (int n = 0; n < 4; ++n) rows.insert(rows.end(), {one_of_each[i], "NULL", empties[i]});
            auto const g = read(rows);
            auto const all = text(g);
            for (std::size_t begin = 0; begin <= rows.size(); ++begin) {
                for (std::size_t count = 0; begin + count <= rows.size(); ++count) {
                    ArrowSchema schema{};
                    ArrowDeviceArray array{};
                    arrow_options how;
                    how.layout = layout;
                    to_arrow({}, g, &schema, &array, how).value();
                    array.array.offset = static_cast<std::int64_t>(begin);
                    array.array.length = static_cast<std::int64_t>(count);
                    auto const at = all.begin() + static_cast<std::ptrdiff_t>(begin);
                    EXPECT_THAT(text(from_arrow({}, &schema, &array).value()),
                                ElementsAreArray(at, at + static_cast<std::ptrdiff_t>(count)));
                }
            }
        }
    }
}

TEST(arrow, keeps_memory_until_the_last_array_is_gone) {
    geometries back;
    {
        ArrowSchema schema{};
        ArrowDeviceArray array{};
        to_arrow({}, read({one_of_each[2]}), &schema, &array).value();
        back = from_arrow({}, &schema, &array).value();
    }
    EXPECT_THAT(text(back), ElementsAre(one_of_each[2]));  // under asan: not freed
}

TEST(arrow, refuses_what_it_cannot_hold) {
    ArrowSchema schema{};
    ArrowDeviceArray array{};
    EXPECT_THAT(to_arrow({}, read(one_of_each), &schema, &array).error().message(), HasSubstr("a mixed array"));
    to_arrow({}, read({one_of_each[1]}), &schema, &array).value();
    array.array.offset = 1;
    array.device_type = ARROW_DEVICE_CUDA;
    EXPECT_THAT(from_arrow({}, &schema, &array).error().message(), HasSubstr("offset 1"));
    EXPECT_EQ(schema.release, nullptr);  // taken over all the same
    to_arrow({}, read({one_of_each[1]}), &schema, &array).value();
    schema.metadata = nullptr;
    EXPECT_THAT(from_arrow({}, &schema, &array).error().message(), HasSubstr("several families look like that"));
}

// Three points (1 10), (2 20), (3 30) as others may hand them over; what a test changes, it changes before they are taken.
struct handed_points {
    double x[3] = {1, 2, 3}, y[3] = {10, 20, 30};
    std::uint8_t row_bits[1] = {0b111}, x_bits[1] = {0b101};
    void const* row_buffers[1] = {nullptr};
    void const* x_buffers[2] = {nullptr, x};
    void const* y_buffers[2] = {nullptr, y};
    ArrowSchema field_x{"g", "x", nullptr, 2, 0, nullptr, nullptr, gone, nullptr};
    ArrowSchema field_y{"g", "y", nullptr, 2, 0, nullptr, nullptr, gone, nullptr};
    ArrowSchema* fields[2] = {&field_x, &field_y};
    ArrowSchema schema{"+s", "g", nullptr, 2, 2, fields, nullptr, gone, nullptr};
    ArrowArray values_x{3, 0, 0, 2, 0, x_buffers, nullptr, nullptr, used, nullptr};
    ArrowArray values_y{3, 0, 0, 2, 0, y_buffers, nullptr, nullptr, used, nullptr};
    ArrowArray* values[2] = {&values_x, &values_y};
    ArrowArray array{3, 0, 0, 1, 2, row_buffers, values, nullptr, used, nullptr};

    static void gone(ArrowSchema* s) { s->release = nullptr; }
    static void used(ArrowArray* a) { a->release = nullptr; }
    std::string taken() {
        auto const got = from_arrow(&schema, &array);
        return got ? fmt::format("{}", fmt::join(text(*got), ", ")) : got.error().message();
    }
};

TEST(arrow, nulls_below_the_rows_are_refused_whether_counted_or_not) {
    for (int const count : {1, -1}) {
        handed_points p;
        p.x_buffers[0] = p.x_bits, p.values_x.null_count = count;
        EXPECT_THAT(p.taken(), HasSubstr("nulls below the rows")) << count;
        handed_points under_a_null;  // which nobody looks at
        under_a_null.x_buffers[0] = under_a_null.x_bits, under_a_null.values_x.null_count = count;
        under_a_null.row_buffers[0] = under_a_null.x_bits, under_a_null.array.null_count = count;
        EXPECT_EQ(under_a_null.taken(), "POINT (1 10), NULL, POINT (3 30)") << count;
    }
    handed_points none;  // bits that are all set
    none.x_buffers[0] = none.row_bits, none.values_x.null_count = -1;
    EXPECT_EQ(none.taken(), "POINT (1 10), POINT (2 20), POINT (3 30)");
}

TEST(arrow, coordinates_go_by_their_names) {
    handed_points turned;
    turned.field_x.name = "y", turned.field_y.name = "x";
    EXPECT_EQ(turned.taken(), "POINT (10 1), POINT (20 2), POINT (30 3)");
    handed_points others;
    others.field_x.name = "price", others.field_y.name = "weight";
    EXPECT_THAT(others.taken(), HasSubstr("whose fields are not x and y"));
    handed_points unnamed;
    unnamed.field_x.name = unnamed.field_y.name = nullptr;
    EXPECT_THAT(unnamed.taken(), HasSubstr("whose fields are not x and y"));
}

TEST(arrow, refuses_structs_that_are_not_whole) {
    auto const with = [](auto change) {
        handed_points p;
        change(p);
        return p.taken();
    };
    EXPECT_EQ(with([](handed_points&) {}), "POINT (1 10), POINT (2 20), POINT (3 30)");
    EXPECT_THAT(with([](handed_points& p) { p.x_buffers[1] = nullptr; }), HasSubstr("without memory"));
    EXPECT_THAT(with([](handed_points& p) { p.values_x.buffers = nullptr; }), HasSubstr("lacks its buffers"));
    EXPECT_THAT(with([](handed_points& p) { p.values[1] = nullptr; }), HasSubstr("lacks its buffers or children"));
    EXPECT_THAT(with([](handed_points& p) { p.array.children = nullptr; }), HasSubstr("or children"));
    EXPECT_THAT(with([](handed_points& p) { p.fields[0] = nullptr; }), HasSubstr("or children"));
    EXPECT_THAT(with([](handed_points& p) { p.schema.children = nullptr; }), HasSubstr("or children"));
    EXPECT_THAT(with([](handed_points& p) { p.field_x.format = nullptr; }), HasSubstr("or children"));
    EXPECT_THAT(with([](handed_points& p) { p.schema.format = nullptr; }), HasSubstr("without a format"));
    EXPECT_THAT(with([](handed_points& p) { p.array.offset = -(std::int64_t{1} << 40); }), HasSubstr("from row -"));
    EXPECT_THAT(with([](handed_points& p) { p.values_y.offset = -1; }), HasSubstr("from row -1"));
    EXPECT_THAT(with([](handed_points& p) { p.array.release = nullptr; }), HasSubstr("released"));

    ArrowSchema schema{};
    ArrowDeviceArray lines{};
    to_arrow({}, read({one_of_each[1]}), &schema, &lines).value();
    lines.array.buffers[1] = nullptr;
    EXPECT_THAT(from_arrow({}, &schema, &lines).error().message(), HasSubstr("without offsets"));
    // Rows have numbers of 32 bits.
    to_arrow({}, read({one_of_each[1]}), &schema, &lines).value();
    lines.array.length = std::int64_t{1} << 40;
    EXPECT_THAT(from_arrow({}, &schema, &lines).error().message(), HasSubstr("1099511627776 rows"));
    handed_points alone;
    EXPECT_THAT(from_arrow(nullptr, &alone.array).error().message(), HasSubstr("no schema"));
    EXPECT_THAT(from_arrow(&alone.schema, nullptr).error().message(), HasSubstr("no array"));
    EXPECT_THAT(from_arrow({}, &alone.schema, nullptr).error().message(), HasSubstr("no array"));
}

}  // namespace kiln::spatial_tests
