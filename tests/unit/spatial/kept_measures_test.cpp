// SPDX-License-Identifier: Apache-2.0
// Boxes, areas, lengths, centroids and counts: the device's text, run on the host, gives the bits of the CPU variants.
#include <kiln/runtime/execution.hpp>
#include <kiln/spatial/measures.hpp>
#include <kiln/spatial/wkt.hpp>

#include "samples.hpp"
#include "spatial/choose.hpp"
#include "spatial/row_measures.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace kiln::spatial_tests {

namespace {

using namespace spatial;

bool same(double got, std::optional<double> const& expected) { return expected ? got == *expected : std::isnan(got); }

void check(geometries const& g, std::string const& name) {
    auto const boxes = cpu::bounds(g).value();
    auto const areas = cpu::area(g).value(), lengths = cpu::length(g).value();
    auto const centroids = cpu::centroid(g).value();
    auto const total = cpu::total_bounds(g).value();
    for (auto const order : {item_order::ascending, item_order::scrambled}) {
        host_queue on{order};
        auto const of = row_measures::make(on, g).value();
        auto const box = of.bounds().value();
        auto const area = of.area().value(), length = of.length().value();
        auto const centroid = of.centroid().value();
        auto const number = of.counts().value();
        ASSERT_EQ(box.size(), g.rows());
        std::size_t vertices = 0;
        for (std::size_t i = 0; i < g.rows(); ++i) {
            auto const b = boxes[i];
            EXPECT_TRUE(same(box.min_x.data()[i], b ? std::optional{b->min_x} : std::nullopt)) << name << " " << i;
            EXPECT_TRUE(same(box.min_y.data()[i], b ? std::optional{b->min_y} : std::nullopt)) << name << " " << i;
            EXPECT_TRUE(same(box.max_x.data()[i], b ? std::optional{b->max_x} : std::nullopt)) << name << " " << i;
            EXPECT_TRUE(same(box.max_y.data()[i], b ? std::optional{b->max_y} : std::nullopt)) << name << " " << i;
            EXPECT_TRUE(same(area.data()[i], areas[i])) << name << " " << i;
            EXPECT_TRUE(same(length.data()[i], lengths[i])) << name << " " << i;
            auto const c = centroids[i];
            EXPECT_TRUE(same(centroid.x.data()[i], c ? std::optional{c->x} : std::nullopt)) << name << " " << i;
            EXPECT_TRUE(same(centroid.y.data()[i], c ? std::optional{c->y} : std::nullopt)) << name << " " << i;
            EXPECT_EQ(number.vertices.data()[i] > 0, b.has_value());
            EXPECT_EQ(number.paths.data()[i] > 0, b.has_value());
            EXPECT_GE(number.vertices.data()[i], number.paths.data()[i]);
            vertices += static_cast<std::size_t>(number.vertices.data()[i]);
        }
        if (!g.chosen() && g.kind() != family::mixed && g.kind() != family::point && name != "nulls") {
            EXPECT_EQ(vertices, g.vertices()) << name;
        }
        EXPECT_EQ(of.total_bounds_sync().value(), total) << name;
    }
}

}  // namespace

TEST(kept_measures, are_those_of_the_host) {
    std::vector<std::string> mixed;
    for (int k = 1; k <= 6; ++k) {
        auto const g = lattice(static_cast<family>(k), {.rows = 60, .size = 9, .seed = 3, .empty_per_mille = 100});
        check(g, std::string{name_of(g.kind())});
        check(lattice(static_cast<family>(k), {.rows = 60, .size = 9, .seed = 4, .null_per_mille = 100}), "nulls");
        std::vector<std::int32_t> rows;
        for (int i = 0; i < 70; ++i) rows.push_back(i * 13 % 60);
        check(g.view(buffer<std::int32_t>::copy_of(rows)).value(), "view");
        for (auto const& row : to_wkt(g).value()) mixed.push_back(row);
        mixed.emplace_back("NULL");
    }
    check(from_wkt(mixed).value(), "mixed");
    check(from_wkt(std::vector<std::string>{"NULL", "POINT EMPTY"}).value(), "nothing");
    check(geometries{}, "no rows");
}

// Many runs of vertices, whose sums round at every step.
TEST(kept_measures, of_long_rows_are_those_of_the_host) {
    std::mt19937_64 random{5};
    auto const number = [&] { return static_cast<double>(random()) * 0x1p-64; };
    geometry_builder to;
    for (int const n : {3, 63, 64, 65, 127, 1000, 10'000}) {
        to.begin(family::polygon);
        for (int ring = 0; ring < 3; ++ring) {
            to.begin_ring();
            double const r = 10.0 / (ring + 1), x = 7 + r * number(), y = r * number();
            to.vertex(x, y);
            for (int i = 1; i < n; ++i) to.vertex(7 + r * std::cos(i * 6.2 / n) * number(), r * std::sin(i * 6.2 / n));
            to.vertex(x, y);
        }
        to.end();
        to.begin(family::linestring);
        for (int i = 0; i < n; ++i) to.vertex(number() * 1e6, number());
        to.end();
        to.begin(family::multipoint);
        for (int i = 0; i < n; ++i) to.vertex(number() * 1e6, number());
        to.end();
        to.begin(family::polygon), to.begin_ring();  // no area: the centroid is that of its lines
        to.vertex(1, 0.5);
        for (int i = 0; i <= n; ++i) to.vertex(number(), 0.5);
        to.vertex(1, 0.5), to.end();
    }
    auto const all = to.finish().value();
    check(all, "long rows");
    for (auto const& child : all.mixed().children) check(child, "long rows of one family");
}

TEST(kept_measures, boxes_by_key) {
    scoped_execution_mode const mode{execution_mode::cpu};
    auto const g =
        lattice(family::linestring, {.rows = 200, .size = 50, .seed = 6, .empty_per_mille = 50, .null_per_mille = 50});
    std::vector<std::int32_t> key;
    for (int i = 0; i < 200; ++i) key.push_back(i * 7 % 12 - 1);  // -1 and 10 are no keys
    auto const boxes = cpu::bounds(g).value();
    auto const got = bounds_by_key({}, g, buffer<std::int32_t>::copy_of(key), 10).value();
    ASSERT_EQ(got.size(), 10U);
    for (std::int32_t k = 0; k < 10; ++k) {
        std::optional<bounding_box> expected;
        for (std::size_t i = 0; i < key.size(); ++i) {
            if (key[i] != k || !boxes[i]) continue;
            if (!expected) expected = boxes[i];
            expected =
                bounding_box{std::min(expected->min_x, boxes[i]->min_x), std::min(expected->min_y, boxes[i]->min_y),
                             std::max(expected->max_x, boxes[i]->max_x), std::max(expected->max_y, boxes[i]->max_y)};
        }
        ASSERT_TRUE(expected);
        EXPECT_EQ((bounding_box{got.min_x.data()[k], got.min_y.data()[k], got.max_x.data()[k], got.max_y.data()[k]}),
                  *expected);
    }
    EXPECT_TRUE(std::isnan(bounds_by_key({}, g, buffer<std::int32_t>::copy_of(std::vector<std::int32_t>(200, -1)), 1)
                               .value()
                               .min_x.data()[0]));
    EXPECT_EQ(bounds_by_key({}, g, buffer<std::int32_t>::on_host(3), 10).error().code(), errc::invalid_argument);
}

// Flaws are named on the host, as by everything there.
TEST(kept_measures, refuse_what_is_not_valid) {
    scoped_execution_mode const mode{execution_mode::cpu};
    auto const open = from_wkt(std::vector<std::string>{"POINT (1 1)", "POLYGON ((0 0, 1 0, 1 1, 0 1))"}).value();
    EXPECT_THAT(area({}, open).error().message(), testing::HasSubstr("row 1: ring 0 is open"));
    EXPECT_THAT(bounds({}, open).error().message(), testing::HasSubstr("row 1: ring 0 is open"));
}

// Which zero it is does not depend on the way it was found, nor on the order of vertices.
TEST(kept_measures, zeros_of_boxes_are_plus_zero) {
    scoped_execution_mode const mode{execution_mode::cpu};
    auto const g = from_wkt(std::vector<std::string>{"LINESTRING (-1 -2, 0 0)", "LINESTRING (0 0, 3 1)",
                                                     "POINT (-0 -0)", "MULTIPOINT ((-0 0), (0 -0), (-0 -0))"})
                       .value();
    auto const is_zero = [](double v) { return v == 0 && !std::signbit(v); };
    auto const check_zeros = [&](bounding_box const& b) {
        for (double const v : {b.min_x, b.min_y, b.max_x, b.max_y}) EXPECT_TRUE(v != 0 || is_zero(v)) << v;
    };
    for (auto const& b : cpu::bounds(g).value()) check_zeros(*b);
    auto const keys = buffer<std::int32_t>::copy_of(std::vector<std::int32_t>{0, 1, 2, 3});
    for (auto const& all : {bounds({}, g).value(), bounds_by_key({}, g, keys, 4).value()}) {
        EXPECT_TRUE(is_zero(all.max_x.data()[0]) && is_zero(all.max_y.data()[0]));
        for (std::size_t i = 0; i < 4; ++i)
            check_zeros({all.min_x.data()[i], all.min_y.data()[i], all.max_x.data()[i], all.max_y.data()[i]});
    }
    auto const below = from_wkt(std::vector<std::string>{"LINESTRING (-1 -2, 0 0)", "POINT (-0 -0)"}).value();
    check_zeros(*cpu::total_bounds(below).value());
    check_zeros(*total_bounds_sync({}, below).value());
}

// A view copies nothing until somebody asks: then its rows count as often as they are in it.
TEST(kept_choice, repeats_no_more_than_can_be_counted) {
    constexpr std::size_t n = std::size_t{1} << 20;
    geometry_parts parts;
    parts.kind = family::linestring;
    parts.x = buffer<double>::copy_of(std::vector<double>(n, 1)), parts.y = parts.x;
    parts.offsets[0] = buffer<std::int32_t>::copy_of(std::vector<std::int32_t>{0, static_cast<std::int32_t>(n)});
    auto const line = geometries::make(std::move(parts)).value();
    auto const repeated = [&](std::size_t rows) {
        return line.view(buffer<std::int32_t>::copy_of(std::vector<std::int32_t>(rows, 0))).value();
    };
    host_queue on{item_order::scrambled};
    EXPECT_EQ(kept_layer::plain(on, repeated(3)).value().vertices(), 3 * n);
    for (std::size_t const rows : {4096U, 4097U, 2048U, 3000U}) {
        auto const made = kept_layer::plain(on, repeated(rows));
        ASSERT_FALSE(made) << rows;
        EXPECT_EQ(made.error().code(), errc::unsupported);
        EXPECT_THAT(made.error().message(), testing::HasSubstr(std::to_string(rows) + " rows have more than"));
    }
}

// Rows chosen by number and by flag, also through a view.
TEST(kept_choice, is_a_view_of_the_rows) {
    auto const g =
        lattice(family::linestring, {.rows = 40, .size = 9, .seed = 7, .empty_per_mille = 100, .null_per_mille = 100});
    std::vector<std::int32_t> rows, through;
    for (int i = 0; i < 60; ++i) rows.push_back(i * 11 % 40);
    auto const view = g.view(buffer<std::int32_t>::copy_of(rows)).value();
    for (int i = 0; i < 25; ++i) through.push_back(i * 17 % 60);
    auto keep = buffer<std::uint8_t>::on_host(60);
    for (std::size_t i = 0; i < 60; ++i) keep.data()[i] = i % 3 == 0 ? 2 : 0;
    auto const text = to_wkt(view).value();
    for (auto const order : {item_order::ascending, item_order::scrambled}) {
        host_queue on{order};
        auto const gathered = to_wkt(rows_of(on, view, buffer<std::int32_t>::copy_of(through)).value()).value();
        ASSERT_EQ(gathered.size(), 25U);
        for (std::size_t i = 0; i < 25; ++i) EXPECT_EQ(gathered[i], text[static_cast<std::size_t>(through[i])]);
        auto const kept = to_wkt(rows_kept(on, view, keep).value()).value();
        ASSERT_EQ(kept.size(), 20U);
        for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(kept[i], text[3 * i]);
    }
    EXPECT_EQ(to_wkt(gather({}, view, buffer<std::int32_t>::copy_of(through)).value()).value()[3], text[51]);
    for (std::int32_t const wrong : {-1, 60, 1 << 30}) {
        auto const refused = gather({}, view, buffer<std::int32_t>::copy_of(std::vector<std::int32_t>{0, 59, wrong}));
        ASSERT_FALSE(refused) << wrong;
        EXPECT_THAT(refused.error().message(),
                    testing::HasSubstr("number 2 is row " + std::to_string(wrong) + ", of 60"));
    }
    EXPECT_EQ(filter_sync({}, view, keep).value().rows(), 20U);
    EXPECT_EQ(filter_sync({}, g, keep).error().code(), errc::invalid_argument);
}

}  // namespace kiln::spatial_tests
