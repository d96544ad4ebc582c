// SPDX-License-Identifier: Apache-2.0
// What a device finds of rows that are no borders, by its text run on the host: the rows and the words of the host's own check.
#include "spatial/kept_rings.hpp"
#include "samples.hpp"
#include "spatial/row_facts.hpp"

#include <kiln/runtime/execution.hpp>
#include <kiln/spatial/join.hpp>
#include <kiln/spatial/locate.hpp>
#include <kiln/spatial/measures.hpp>
#include <kiln/spatial/nearest.hpp>
#include <kiln/spatial/validate.hpp>
#include <kiln/spatial/wkt.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace kiln::spatial_tests {

namespace {

using namespace spatial;

std::optional<std::size_t> first_of(std::vector<flawed_row> const& found) {
    return found.empty() ? std::nullopt : std::optional{found[0].row};
}
// In either order of items, with rings held against edges and by an index.
void expect_flaws_of_host(geometries const& rows, std::string const& name) {
    auto const not_valid = first_of(validate(rows, 1).value());
    auto const no_border = not_valid ? std::nullopt : first_of(validate_rings(rows, 1).value());
    for (auto const order : {item_order::ascending, item_order::scrambled}) {
        for (std::size_t const steps : {std::size_t{0}, most_ring_steps}) {
            host_queue on{order};
            auto const got = flaws_of(on, rows, steps).value();
            EXPECT_EQ(got.not_valid, not_valid) << name;
            EXPECT_EQ(got.no_border, no_border) << name;
        }
    }
}

geometries one_row(geometries const& of, std::size_t row) {
    return of.view(buffer<std::int32_t>::copy_of({static_cast<std::int32_t>(row)})).value();
}

// What require_borders() says, and what the host's relation does.
void expect_words_of_host(geometries const& left, geometries const& right, std::string const& name) {
    scoped_execution_mode const mode{execution_mode::cpu};
    auto const expected = relate({}, left, right);
    host_queue on;
    auto const got = require_borders(on, {}, {anew(left), anew(right)});
    ASSERT_EQ(got.has_value(), expected.has_value()) << name;
    if (expected) return;
    EXPECT_EQ(got.error().message(), expected.error().message()) << name;
    EXPECT_EQ(got.error().code(), expected.error().code()) << name;
}

// A star with a corner at every k-th step of the circle, around (x, y).
std::string star(double x, double y, double radius, int corners, int step) {
    std::string out = "((";
    for (int i = 0; i <= corners; ++i) {
        double const turn = 2 * M_PI * (i * step % corners) / corners;
        out += fmt::format("{}{} {}", i == 0 ? "" : ", ", x + radius * std::cos(turn), y + radius * std::sin(turn));
    }
    return out + "))";
}

}  // namespace

TEST(kept_rings, of_every_kind_are_judged_as_on_the_host) {
    for (auto const& [area, why] : areas_without_borders()) {
        expect_flaws_of_host(row_of(area), area);
        expect_flaws_of_host(from_wkt(std::vector<std::string>{"POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))", area}).value(),
                             area);
    }
    for (auto const& area : areas_that_touch_themselves()) expect_flaws_of_host(row_of(area), area);
    auto const any = rings_of_any_kind(1500, 11);
    std::size_t taken = 0;
    for (std::size_t row = 0; row < any.rows(); ++row) {
        auto const alone = one_row(any, row);
        expect_flaws_of_host(alone, to_wkt(alone).value()[0]);
        taken += validate_rings(alone).value().empty() ? 1 : 0;
    }
    EXPECT_GT(taken, 100U);
}

TEST(kept_rings, that_are_holes_without_a_shell_are_not_valid) {
    for (std::string const area :
         {"POLYGON (EMPTY, (0 0, 4 0, 0 4, 0 0))", "POLYGON ((0 0, 4 0, 0 4, 0 0), EMPTY)", "POLYGON (EMPTY, EMPTY)",
          "MULTIPOLYGON (((9 9, 13 9, 9 13, 9 9)), (EMPTY, (0 0, 4 0, 0 4, 0 0)))",
          "MULTIPOLYGON (((9 9, 13 9, 9 13, 9 9), EMPTY), ((0 0, 4 0, 0 4, 0 0)))"}) {
        expect_flaws_of_host(row_of(area), area);
        expect_words_of_host(row_of(area), row_of("POLYGON ((0 0, 4 0, 4 4, 0 0))"), area);
        auto const rows = from_wkt(std::vector<std::string>{"MULTIPOLYGON (((0 0, 4 0, 0 4, 0 0)))", area, ""}).value();
        expect_flaws_of_host(rows, area);
    }
    host_queue on;
    EXPECT_TRUE(flaws_of(on, row_of("POLYGON (EMPTY, (0 0, 4 0, 0 4, 0 0))")).value().not_valid);
}

// Rings among others: rows do not see each other, families that are no areas neither.
TEST(kept_rings, of_whole_layers_are_judged_as_on_the_host) {
    auto const any = rings_of_any_kind(120, 12);
    std::vector<std::int32_t> good;
    std::vector<char> is_flawed(any.rows(), 0);
    for (auto const& f : validate_rings(any, any.rows()).value()) is_flawed[f.row] = 1;
    for (std::size_t i = 0; i < any.rows(); ++i)
        if (is_flawed[i] == 0) good.push_back(static_cast<std::int32_t>(i));
    auto const view = [&](std::vector<std::int32_t> const& rows) {
        return any.view(buffer<std::int32_t>::copy_of(rows)).value();
    };
    ASSERT_GT(good.size(), 15U);
    expect_flaws_of_host(any, "any");
    expect_flaws_of_host(view(good), "good ones");
    auto with_one = good;
    with_one.insert(with_one.begin() + 15, static_cast<std::int32_t>(validate_rings(any, 1).value()[0].row));
    expect_flaws_of_host(view(with_one), "one among good ones");

    std::vector<std::string> mixed{
        "LINESTRING (0 0, 2 2, 2 0, 0 2)",          "POINT EMPTY",          "POLYGON EMPTY", "",
        "MULTILINESTRING ((0 0, 4 0), (1 0, 3 0))", "MULTIPOINT (1 1, 1 1)"};
    for (auto const& area : areas_that_touch_themselves()) mixed.push_back(area);
    expect_flaws_of_host(from_wkt(mixed).value(), "mixed");
    mixed.push_back(areas_without_borders()[0].area);
    expect_flaws_of_host(from_wkt(mixed).value(), "mixed, the last no border");
    if (auto const world = real_layer("ne110")) expect_flaws_of_host(*world, "countries");
}

// Long segments have much to look at: they are put off, and looked at by many.
TEST(kept_rings, of_long_segments_are_judged_as_on_the_host) {
    std::vector<std::string> rows;
    for (int i = 0; i < 3000; ++i) rows.push_back("POLYGON " + star(i % 60, i / 60, 0.4, 5, 1));
    expect_flaws_of_host(from_wkt(rows).value(), "small ones");
    std::vector<std::string> const large_ones = {
        "POLYGON ((-9 -9, 70 60, 70 -9, -9 60, -9 -9))",
        "POLYGON " + star(30, 25, 90, 7, 3),
        "POLYGON ((-9 -9, 70 -8, 70 60, 30.5 -8.5, -9 60, -9 -9))",
        "MULTIPOLYGON (((-9 -9, 70 -9, 70 60, -9 -9)), ((0 -1, 1 -2, 2 -1, 0 -1)))",
        "MULTIPOLYGON (((-9 -9, 71 -9, 71 71, -9 -9)), ((0 0, 50 50, -9 50, 0 0)))",
    };
    for (auto const& large : large_ones) {
        auto with = rows;
        with.insert(with.begin() + 1234, large);
        expect_flaws_of_host(from_wkt(with).value(), large);
    }
}

TEST(kept_rings, are_refused_in_the_words_of_the_host) {
    auto const square =
        from_wkt(std::vector<std::string>{"POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))", "POLYGON ((0 0, 5 0, 5 4, 0 0))"})
            .value();
    auto const points = from_wkt(std::vector<std::string>{"POINT (1 1)", "POINT (2 1)"}).value();
    auto const dots = from_wkt(std::vector<std::string>{"LINESTRING (1 1, 1 1)", "LINESTRING (2 1, 2 1)"}).value();
    auto const nulls = from_wkt(std::vector<std::string>{"", ""}).value();
    auto const line = from_wkt(std::vector<std::string>{"LINESTRING (1 1, 1 1)", "LINESTRING (2 1, 2 3)"}).value();
    for (auto const& [area, why] : areas_without_borders()) {
        auto const areas = from_wkt(std::vector<std::string>{"POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))", area}).value();
        for (auto const& other : {square, points, dots, nulls, line, areas}) {
            expect_words_of_host(areas, other, area);
            expect_words_of_host(other, areas, area);
        }
    }
    // Hostile ones, as they may come from anywhere.
    auto const ring = [](std::vector<double> x, std::vector<double> y) {
        geometry_parts parts;
        parts.kind = family::polygon;
        auto const n = static_cast<std::int32_t>(x.size());
        x.insert(x.begin(), {0, 1, 1, 0}), y.insert(y.begin(), {0, 0, 1, 0});
        parts.x = buffer<double>::copy_of(x), parts.y = buffer<double>::copy_of(y);
        parts.offsets[0] = buffer<std::int32_t>::copy_of({0, 1, 2});
        parts.offsets[1] = buffer<std::int32_t>::copy_of({0, 4, 4 + n});
        return geometries::make(parts).value();
    };
    std::vector<geometries> const hostile = {ring({0, 4, 4, 0}, {0, 0, 4, 1}),
                                             ring({0, 4, NAN, 0}, {0, 0, 4, 0}),
                                             ring({0, 4, INFINITY, 0}, {0, 0, 4, 0}),
                                             ring({0, 1e308, 4, 0}, {0, 0, 4, 0}),
                                             ring({0, 4, 4, 0}, {0, 0, 1e-300, 0}),
                                             ring({0, 4, 0}, {0, 0, 0}),
                                             ring({0}, {0})};
    for (std::size_t i = 0; i < hostile.size(); ++i) {
        expect_flaws_of_host(hostile[i], fmt::format("hostile {}", i));
        expect_words_of_host(hostile[i], square, fmt::format("hostile {}", i));
        expect_words_of_host(square, hostile[i], fmt::format("hostile {}", i));
        expect_words_of_host(points, hostile[i], fmt::format("hostile {}", i));
    }
}

// In chunks rows are numbered from the first of all.
TEST(kept_rings, of_a_chunk_have_the_numbers_of_the_whole) {
    auto const rows =
        from_wkt(std::vector<std::string>{"POLYGON ((0 0, 1 0, 1 1, 0 0))", areas_without_borders()[0].area}).value();
    host_queue on;
    auto const got = require_borders(on, {}, {rows, rows, 1000});
    ASSERT_FALSE(got);
    EXPECT_THAT(got.error().message(),
                testing::HasSubstr("on the left, row 1001: rings cross: (0 0, 2 2) and (2 0, 0 2)"));
}

// Offsets that go back, leave the memory or do not begin at 0, and rows that are not there.
TEST(kept_rings, of_memory_that_is_not_there_are_refused_before_it_is_read) {
    auto const line = [](std::vector<std::int32_t> const& offsets) {
        geometry_parts parts;
        parts.kind = family::linestring;
        parts.x = parts.y = buffer<double>::copy_of({0, 1, 2, 3});
        parts.offsets[0] = buffer<std::int32_t>::copy_of(offsets);
        return geometries::make(std::move(parts)).value();
    };
    for (auto const& offsets : std::vector<std::vector<std::int32_t>>{
             {0, 2, 4}, {0, 4}, {0, 2, 1, 4}, {0, 2, 5}, {0, 2, 2'000'000'000}, {0, -2, 4}, {2, 4}, {-1, 2}, {0, 4, 0}})
        expect_flaws_of_host(line(offsets), fmt::format("a line's {}", fmt::join(offsets, " ")));

    // Of null rows too: their offsets are read like all others.
    for (auto const& offsets :
         std::vector<std::vector<std::int32_t>>{{0, 2, 2, 4}, {0, 2, 2'000'000'000, 4}, {0, -2, 2, 4}}) {
        auto parts = line(offsets).parts();
        parts.validity = buffer<std::uint8_t>::copy_of({std::uint8_t{0b101}});
        expect_flaws_of_host(geometries::make(std::move(parts)).value(),
                             fmt::format("a null's {}", fmt::join(offsets, " ")));
    }

    auto const area = [](std::vector<std::int32_t> const& polygons, std::vector<std::int32_t> const& rings,
                         std::vector<std::int32_t> const& vertices) {
        geometry_parts parts;
        parts.kind = family::multipolygon;
        parts.x = buffer<double>::copy_of({0, 4, 4, 0, 9, 10, 10, 9});
        parts.y = buffer<double>::copy_of({0, 0, 4, 0, 9, 9, 10, 9});
        parts.offsets = {buffer<std::int32_t>::copy_of(polygons), buffer<std::int32_t>::copy_of(rings),
                         buffer<std::int32_t>::copy_of(vertices)};
        return geometries::make(std::move(parts)).value();
    };
    using numbers = std::vector<std::int32_t>;
    for (auto const& [polygons, rings, vertices] :
         std::vector<std::array<numbers, 3>>{{numbers{0, 1, 2}, numbers{0, 1, 2}, numbers{0, 4, 8}},
                                             {numbers{0, 1, 3}, numbers{0, 1, 2}, numbers{0, 4, 8}},
                                             {numbers{0, 2, 1}, numbers{0, 1, 2}, numbers{0, 4, 8}},
                                             {numbers{0, 1, 2}, numbers{0, 1, 1 << 30}, numbers{0, 4, 8}},
                                             {numbers{0, 1, 2}, numbers{0, 2, 1}, numbers{0, 4, 8}},
                                             {numbers{0, 1, 2}, numbers{1, 1, 2}, numbers{0, 4, 8}},
                                             {numbers{0, 1, 2}, numbers{0, 1, 2}, numbers{0, 9, 8}},
                                             {numbers{0, 1, 2}, numbers{0, 1, 2}, numbers{0, 4, -8}},
                                             {numbers{1, 1, 2}, numbers{0, 1, 2}, numbers{0, 4, 8}}})
        expect_flaws_of_host(
            area(polygons, rings, vertices),
            fmt::format("{} / {} / {}", fmt::join(polygons, " "), fmt::join(rings, " "), fmt::join(vertices, " ")));

    auto const mixed = [&](std::vector<std::int8_t> const& types, numbers const& rows) {
        mixed_parts parts;
        parts.type = buffer<std::int8_t>::copy_of(types), parts.child_row = buffer<std::int32_t>::copy_of(rows);
        parts.children = {line({0, 2, 4}), row_of("POINT (1 1)")};
        return geometries::make(std::move(parts)).value();
    };
    for (auto const& [types, rows] : std::vector<std::pair<std::vector<std::int8_t>, numbers>>{{{2, 1, 2}, {0, 0, 1}},
                                                                                               {{2, 1, 2}, {0, 0, 2}},
                                                                                               {{2, 1}, {0, -1}},
                                                                                               {{2, 3}, {0, 0}},
                                                                                               {{2, 0}, {0, 0}},
                                                                                               {{2, 100}, {0, 0}}})
        expect_flaws_of_host(mixed(types, rows),
                             fmt::format("mixed {} / {}", fmt::join(types, " "), fmt::join(rows, " ")));

    auto const two = line({0, 2, 4});
    for (auto const& chosen : {numbers{1, 0, 1}, numbers{0, 2}, numbers{0, -1}, numbers{1, 2'000'000'000}})
        expect_flaws_of_host(two.view(buffer<std::int32_t>::copy_of(chosen)).value(),
                             fmt::format("a view of {}", fmt::join(chosen, " ")));

    // Nor does the host read it, whoever is asked.
    for (auto const& bad : {line({0, 2, 2'000'000'000}), line({0, 2, 1, 4}), mixed({2, 1}, {0, 1'000'000'000})}) {
        auto const why = require_valid(bad).error().message();
        auto const expect_refused = [&](auto const& got) {
            ASSERT_FALSE(got);
            EXPECT_EQ(got.error().message(), why);
        };
        expect_refused(cpu::join(anew(bad), two, predicate::intersects));
        expect_refused(cpu::join(two, anew(bad), predicate::touches));
        expect_refused(cpu::relate(anew(bad), two));
        expect_refused(cpu::distance(two, anew(bad)));
        expect_refused(cpu::nearest(anew(bad), two));
        expect_refused(cpu::length(anew(bad)));
        expect_refused(cpu::area_index::make(anew(bad)));
    }

    expect_words_of_host(line({0, 2, 1, 4}), two, "offsets, left");
    expect_words_of_host(two, area({0, 1, 2}, {0, 2, 1}, {0, 4, 8}), "offsets, right");
}

// What the host looked at it does not look at again, nor a device at its copy; a view's numbers are its own.
TEST(kept_rings, that_the_host_looked_at_are_remembered_with_the_array) {
    scoped_execution_mode const mode{execution_mode::cpu};
    auto const rows = row_of("POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))");
    auto const line = row_of("LINESTRING (0 0, 3 1)");
    ASSERT_TRUE(join({}, rows, line, predicate::intersects));
    EXPECT_TRUE(row_facts::of(rows)->are_valid);
    EXPECT_FALSE(row_facts::of(rows)->are_borders) << "nobody asked";
    ASSERT_TRUE(relate({}, rows, line));
    EXPECT_TRUE(row_facts::of(rows)->are_borders);
    EXPECT_TRUE(row_facts::of(rows.to_host_sync({}).value())->are_borders) << "a copy elsewhere";

    auto const view = rows.view(buffer<std::int32_t>::copy_of({0, 7})).value();
    EXPECT_FALSE(row_facts::of(view)->are_valid);
    auto const refused = relate({}, view, line);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message(), testing::HasSubstr("row 1: the view chooses row 7 of 1"));
}

// Rows that passed are not looked at again: here they would not pass.
TEST(kept_rings, that_passed_are_remembered_with_the_array) {
    auto const made = [] { return row_of("POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"); };
    auto const rows = made();
    host_queue on;
    auto const before = one_row(rows, 0);
    EXPECT_FALSE(row_facts::of(rows)->are_borders);
    ASSERT_TRUE(require_borders(on, {}, {rows, rows}));
    EXPECT_TRUE(row_facts::of(rows)->are_borders);
    EXPECT_TRUE(row_facts::of(geometries{rows})->are_borders) << "a copy";
    EXPECT_TRUE(row_facts::of(one_row(rows, 0))->are_borders) << "a view since";
    EXPECT_FALSE(row_facts::of(before)->are_borders) << "a view from before knows nothing of the whole";
    rows.parts().x.data()[1] = -1;
    ASSERT_FALSE(validate_rings(rows).value().empty());
    EXPECT_TRUE(require_borders(on, {}, {rows, rows}));
    EXPECT_FALSE(require_borders(on, {}, {before, rows}));

    // Only good news is.
    auto const bad = row_of(areas_without_borders()[0].area), point = row_of("POINT (1 1)");
    EXPECT_TRUE(require_borders(on, {}, {bad, point})) << "of points nothing is asked";
    EXPECT_FALSE(row_facts::of(bad)->are_borders);
    EXPECT_FALSE(require_borders(on, {}, {bad, made()}));
}

}  // namespace kiln::spatial_tests
