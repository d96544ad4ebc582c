// SPDX-License-Identifier: Apache-2.0
// Cells of two layers at once are those of each by itself.
#include "spatial/kept_cells.hpp"
#include "samples.hpp"
#include "spatial/cells.hpp"
#include "spatial/kept_elements.hpp"
#include "spatial/row_pairs.hpp"

#include <kiln/spatial/wkt.hpp>

#include <fmt/format.h>

#include <gtest/gtest.h>

namespace kiln::spatial_tests {

namespace {

using namespace spatial;
using namespace kiln_spatial;

// Crowded soon, so that cells of both are divided, some of them twice.
constexpr cell_options small_cells{.cells_per_edge = 0.05, .least_cells = 4, .split_above = 3, .edges_per_cell = 1};

// Corners, what lies between them, and outside.
std::vector<point> places_in(double size) {
    std::vector<point> out;
    for (double y = -1; y <= size + 1; y += 0.5)
        for (double x = -1; x <= size + 1; x += 0.25) out.push_back({x, y});
    return out;
}
std::vector<int> rows_at(kept_cells const& cells, std::vector<point> const& places) {
    std::vector<int> out;
    for (auto const p : places) {
        locate<tie::on, certainty::exact>(cells.view(), p, [&](i32 row, place where) {
            out.push_back(row << 2 | static_cast<int>(where));
            return false;
        });
        out.push_back(-1);
    }
    return out;
}
void expect_those_of_each(geometries const& a, geometries const& b, double size) {
    for (auto const order : {item_order::ascending, item_order::scrambled}) {
        host_queue on{order};
        auto const left = kept_layer::distinct(on, a).value(), right = kept_layer::distinct(on, b).value();
        auto const both = kept_cells::make_both(on, left, right, small_cells).value();
        auto const places = places_in(size);
        EXPECT_EQ(rows_at(both.first, places), rows_at(kept_cells::make(on, left, small_cells).value(), places));
        EXPECT_EQ(rows_at(both.second, places), rows_at(kept_cells::make(on, right, small_cells).value(), places));
    }
}
bool share_memory(geometries const& a, geometries const& b) {
    host_queue on;
    auto const left = kept_layer::distinct(on, a).value(), right = kept_layer::distinct(on, b).value();
    auto const both = kept_cells::make_both(on, left, right, small_cells).value();
    return both.first.view().head == both.second.view().head;
}

}  // namespace

TEST(kept_cells, of_two_layers_are_those_of_each) {
    for (unsigned seed = 1; seed <= 6; ++seed) {
        auto const a = lattice(family::polygon, {.rows = 20, .size = 7, .seed = seed, .null_per_mille = 50});
        auto const b = lattice(family::multipolygon, {.rows = 24, .size = 7, .seed = seed + 50});
        EXPECT_TRUE(share_memory(a, b)) << seed;
        expect_those_of_each(a, b, 7);
    }
}

// Areas that lie over each other: an index grows with them, not with their pairs.
TEST(kept_cells, of_areas_over_each_other_grow_with_the_areas) {
    auto const copies = [](std::size_t n, bool is_pile_in_a_corner) {
        std::vector<std::string> rows(n, "POLYGON ((0.1 0.1, 2.1 0.1, 2.1 2.1, 0.1 2.1, 0.1 0.1))");
        if (is_pile_in_a_corner) rows.insert(rows.end(), 20, "POLYGON ((900 900, 1000 900, 1000 1000, 900 900))");
        return from_wkt(rows).value();
    };
    auto const layers = [](double a, double by) {  // moved a little, each
        std::vector<std::string> rows;
        for (int i = 0; i < 300; ++i, a += by)
            rows.push_back(fmt::format("POLYGON (({0} 0, {1} 0, {1} 2, {0} 2, {0} 0))", a, a + 2));
        return from_wkt(rows).value();
    };
    for (auto const& [areas, bytes_of_edge] : {std::pair{copies(100, false), 4000},
                                               {copies(400, false), 4000},
                                               {copies(100, true), 8000},
                                               {copies(400, true), 8000},
                                               {layers(0, 0.001), 4000},
                                               {layers(0, 0.0), 4000}}) {
        auto const edges = areas.vertices() - areas.rows();
        std::vector<point> const places{{1, 1}, {0.1, 0.1}, {2.05, 2}, {0.2, 0.15}, {2.2, 1}, {950, 920}, {0.1, 1.5}};
        auto const host = host_layer::plain(areas).value();
        host_cells const cells{host};
        EXPECT_LT(cells.bytes(), edges * static_cast<std::size_t>(bytes_of_edge)) << areas.rows();
        host_queue on;
        auto const layer = kept_layer::plain(on, areas).value();  // whose vertices cells refer to
        auto const kept = kept_cells::make(on, layer, {}).value();
        EXPECT_LT(kept.bytes(), edges * static_cast<std::size_t>(bytes_of_edge)) << areas.rows();
        for (auto const p : places) {
            std::size_t inside = 0, by_kept = 0;
            row_lookup rows{host};
            for (std::size_t r = 0; r < areas.rows(); ++r) inside += rows.is_inside(static_cast<i32>(r), p) ? 1 : 0;
            std::size_t found = 0;
            cells.locate(p, [&](i32, place where) { return found += where == place::inside ? 1 : 0, false; });
            locate<tie::on, certainty::exact>(
                kept.view(), p, [&](i32, place where) { return by_kept += where == place::inside ? 1 : 0, false; });
            EXPECT_EQ(found, by_kept) << p.x << " " << p.y;
            if (p.x != 0.1) {
                EXPECT_EQ(found, inside) << p.x << " " << p.y;
            }
        }
    }
}

// Rows of many worlds at one place, some small and some with a grid of many cells: whoever asks for one world is shown that one, and what it has is what it
// has alone.
TEST(kept_cells, of_worlds_have_no_rows_of_others) {
    constexpr int worlds = 40;
    std::vector<std::string> rows;
    std::vector<std::int32_t> world;
    for (int i = 0; i < 2 * worlds; ++i) {
        std::string ring = "POLYGON ((0 0";
        for (int k = 1; k < (i % 3 == 0 ? 120 : 4); ++k) ring += fmt::format(", {} {}", 6 + k % 7 * 0.25, k * 0.0625);
        rows.push_back(ring + fmt::format(", 0 {}, 0 0))", 4 + i * 0.03125));
        world.push_back(i % 10 == 9 ? -1 : 7 * (i % worlds));
    }
    rows.emplace_back("NULL"), world.push_back(3);
    auto const all = from_wkt(rows).value();
    auto const places = places_in(8);
    for (auto const order : {item_order::ascending, item_order::scrambled}) {
        host_queue on{order};
        auto const layer = kept_layer::distinct(on, all).value();
        auto const numbers = kept_worlds::make(on, buffer<std::int32_t>::copy_of(world), 2).value();
        EXPECT_EQ(numbers.count, 37U);
        auto const cells = kept_cells::make(on, layer, small_cells, numbers).value();
        auto const together = kept_cells::make(on, layer, small_cells).value();
        for (std::size_t i = 0; i < world.size(); ++i) {
            if (world[i] < 0) continue;
            auto const own = cells.by_world().of_row_like(static_cast<i32>(i));
            for (auto const p : places) {
                std::vector<int> found, expected;
                locate<tie::on, certainty::exact>(own, p, [&](i32 row, place where) {
                    return found.push_back(row << 2 | static_cast<int>(where)), false;
                });
                locate<tie::on, certainty::exact>(together.view(), p, [&](i32 row, place where) {
                    if (world[static_cast<std::size_t>(row)] == world[i])
                        expected.push_back(row << 2 | static_cast<int>(where));
                    return false;
                });
                ASSERT_EQ(found, expected) << "row " << i << " at " << p.x << " " << p.y;
            }
        }
    }
}

// The same of their segments: those that a search of one world looks at grow with that world, not with how many lie at its place.
TEST(kept_elements, of_a_world_are_looked_at_alone) {
    constexpr std::size_t rows = 3000;
    std::vector<std::string> texts;
    std::vector<std::int32_t> world;
    for (std::size_t i = 0; i < rows; ++i) {
        texts.push_back(fmt::format("POLYGON ((0 0, {0} 0, 5 {0}, 0 5, 0 0))", 3 + 0.0001 * static_cast<double>(i)));
        world.push_back(static_cast<std::int32_t>((i * 7919) % (rows / 2)));
    }
    host_queue on{item_order::scrambled};
    auto const layer = kept_layer::distinct(on, from_wkt(texts).value()).value();
    auto const worlds = kept_worlds::make(on, buffer<std::int32_t>::copy_of(world), 2).value();
    auto const of = kept_elements::make(on, layer, worlds).value();
    auto const t = of.tree.view();
    auto const l = layer.view();
    std::size_t looked_at = 0, own = 0, elements = 0;
    for (u32 slot = 0; slot < t.size; ++slot) {
        if (!is_element(l, static_cast<i32>(t.item[slot]))) continue;
        ++elements;
        auto const w = worlds.number.data()[row_at(l, static_cast<i32>(t.item[slot]))];
        slot_range const some{static_cast<u32>(of.world_first.data()[w]),
                              static_cast<u32>(of.world_first.data()[w + 1])};
        EXPECT_LE(some.first, slot);
        EXPECT_GT(some.last, slot);
        own += some.last - some.first;
        query_slots(t, some, t.rough({0, 0, 9, 9}), [&](u32 other) {
            EXPECT_EQ(worlds.number.data()[row_at(l, static_cast<i32>(t.item[other]))], w);
            ++looked_at;
        });
    }
    EXPECT_EQ(elements, 4 * rows);
    EXPECT_EQ(looked_at, own);
    EXPECT_EQ(own, 4 * rows * 8);  // two rows to a world
}

TEST(kept_cells, of_layers_that_are_not_alike_are_built_one_by_one) {
    auto const many = lattice(family::polygon, {.rows = 60, .size = 7, .seed = 1});
    auto const one = row_of("POLYGON ((0 0, 7 0, 7 7, 0 7, 0 0))");  // few edges
    auto const far = row_of("POLYGON ((20 0, 27 0, 27 7, 20 7, 20 0))");
    auto const none = row_of("POLYGON EMPTY");
    EXPECT_FALSE(share_memory(many, one));
    EXPECT_FALSE(share_memory(one, far));
    EXPECT_FALSE(share_memory(none, one));
    expect_those_of_each(many, one, 7);
    expect_those_of_each(one, far, 30);
    expect_those_of_each(none, one, 7);
}

}  // namespace kiln::spatial_tests
