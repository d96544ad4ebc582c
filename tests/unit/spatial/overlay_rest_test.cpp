// SPDX-License-Identifier: Apache-2.0
// Rounded crossings that make others cross: what comes to rest, and what is put onto a grid, by rows and keys that know nothing of each other.
#include "geos.hpp"
#include "overlay_samples.hpp"
#include "samples.hpp"
#include "spatial/overlay/buffers.hpp"
#include "spatial/overlay/overlay.hpp"

#include <kiln/event.hpp>
#include <kiln/spatial/validate.hpp>
#include <kiln/spatial/wkt.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ctime>
#include <limits>
#include <random>

namespace kiln::spatial_tests {

namespace {

using namespace spatial;

geometries areas(std::vector<std::string> const& rows) { return from_wkt(rows).value(); }
std::string valid(std::string const& row) {
    host_queue on{item_order::scrambled};
    return to_wkt(rows_mended(on, areas({row})).value().rows).value()[0];
}

// What the calls inside of it told of rows, keys or pairs that are on a grid.
class watched_grids {
public:
    std::int64_t calls = 0, snapped = 0;

private:
    event_log::subscription token_ = event_log::process().subscribe([this](event const& e) {
        if (e.reason.view() == "snapped") ++calls, snapped += e.value;
    });
};
geometries some_of(geometries const& of, std::vector<std::int32_t> const& rows) {
    return of.view(buffer<std::int32_t>::copy_of(rows)).value().compact().value();
}
std::string dissolved_alone(geometries const& rows) {
    host_queue on;
    return to_wkt(united_rows(on, rows).value()).value()[0];
}
std::string as_one_row(std::vector<std::string> const& polygons) {
    std::string out;
    for (auto const& row : polygons) out += (out.empty() ? "" : ", ") + row.substr(row.find('('));
    return "MULTIPOLYGON (" + out + ")";
}

}  // namespace

// Bundles of lines that nearly run along each other: rounded crossings make others cross, again and again.
TEST(overlay, rounding_that_makes_others_cross_is_followed) {
    std::mt19937_64 random{3};
    auto const real = [&] { return static_cast<double>(random()) * 0x1p-64; };
    std::size_t again = 0, snapped = 0;
    auto const token = event_log::process().subscribe([&](event const& e) {
        if (e.reason.view() == "divided-again") again += static_cast<std::size_t>(e.value);
        if (e.reason.view() != "snapped") return;
        ++snapped;
        EXPECT_TRUE(e.value == 8 || e.value == 24) << e.value;  // all rows of both layers
    });
    for (int turn = 0; turn < 4; ++turn) {
        auto const slivers = [&](std::size_t n) {
            geometry_builder to;
            for (std::size_t i = 0; i < n; ++i) {
                double const x = real() * 1e-12, y = real() * 1e-12;
                auto const far = [&] { return 1000 + 1e-11 * real(); };
                to.begin(family::polygon), to.begin_ring();
                to.vertex(x, y), to.vertex(far(), far()), to.vertex(far(), far()), to.vertex(x, y), to.end();
            }
            return to.finish(family::polygon).value();
        };
        auto const a = slivers(turn < 2 ? 4 : 12), b = slivers(turn < 2 ? 4 : 12);
        host_queue on;
        auto const made = overlaid_rows(on, a, b, overlay_kind::union_).value();
        ASSERT_TRUE(require_valid(made.rows));
#ifdef KILN_TEST_GEOS
        geos by;
        for (auto const* g : by.read(made.rows)) ASSERT_TRUE(by.is_valid(g)) << turn;
#endif
    }
    EXPECT_GT(again, 0U);
    EXPECT_GT(snapped, 0U);
}

// Rows that do not come to rest are put onto a grid, and no others.
TEST(overlay, what_comes_to_rest_is_not_rounded_with_the_rest) {
    std::mt19937_64 random{3};
    auto const real = [&] { return static_cast<double>(random()) * 0x1p-64; };
    std::size_t snapped = 0;
    auto const token = event_log::process().subscribe([&](event const& e) {
        if (e.reason.view() == "snapped") ++snapped;
    });
    std::vector<std::string> rows;
    std::vector<std::int32_t> keys;
    auto const quiet = stars({.rows = 12, .seed = 5});
    for (auto const& row : to_wkt(quiet).value()) rows.push_back(row), keys.push_back(2);
    for (int i = 0; i < 40; ++i) {
        auto const far = [&] { return 1000 + 1e-11 * real(); };
        double const x = real() * 1e-12, y = real() * 1e-12;
        auto const corner = fmt::format("{} {}", x, y);
        rows.push_back(fmt::format("POLYGON (({}, {} {}, {} {}, {}))", corner, far(), far(), far(), far(), corner));
        keys.push_back(0);
    }
    host_queue on;
    auto const mixed = dissolved_rows(on, areas(rows), buffer<std::int32_t>::copy_of(keys), 3).value();
    ASSERT_GT(snapped, 0U);
    EXPECT_TRUE(require_valid(mixed));
    EXPECT_EQ(to_wkt(mixed).value()[2], to_wkt(united_rows(on, quiet).value()).value()[0]);
}

// Whether a key comes to rest, and on which grid it is if not, is its own affair: each is what it is alone, bit for bit, and how many are on
// a grid is told.
TEST(overlay, keys_come_to_rest_by_their_own_crossings) {
    for (std::size_t const keys : {60U, 300U}) {
        auto const rows = nearly_the_same(3 * keys, 3);
        std::mt19937_64 random{5};
        std::vector<std::int32_t> key;
        std::vector<std::vector<std::int32_t>> of_key(keys);
        for (std::size_t i = 0; i < rows.rows(); ++i) {
            key.push_back(static_cast<std::int32_t>(random() % keys));
            of_key[static_cast<std::size_t>(key.back())].push_back(static_cast<std::int32_t>(i));
        }
        host_queue on{item_order::scrambled};
        watched_grids together;
        auto const all = to_wkt(dissolved_rows(on, rows, buffer<std::int32_t>::copy_of(key), keys).value()).value();
        auto const told = together.snapped;
        watched_grids alone;
        for (std::size_t k = 0; k < keys; ++k)
            if (!of_key[k].empty()) {
                EXPECT_EQ(all[k], dissolved_alone(some_of(rows, of_key[k]))) << k;
            }
        EXPECT_GT(told, 0);
        EXPECT_EQ(told, alone.snapped) << keys;
        EXPECT_EQ(told, alone.calls) << keys;
        EXPECT_LT(static_cast<std::size_t>(told), keys);
    }
}

TEST(overlay, rows_far_away_do_not_make_the_grid_of_others) {
    auto const near = to_wkt(nearly_the_same(24, 1)).value();
    for (double const far : {1e6, 1e12, 1e15}) {
        auto const there = fmt::format("POLYGON (({0} 0, {0} 100, {1} 100, {0} 0))", far, far - 1000);
        auto rows = near;
        rows.push_back(there);
        std::vector<std::int32_t> key(near.size(), 0);
        key.push_back(1);
        // One that does not come to rest either, on a grid that is much coarser.
        auto const large = to_wkt(nearly_the_same(24, 1, 0x1p40)).value();
        rows.insert(rows.end(), large.begin(), large.end()), key.resize(rows.size(), 2);
        host_queue on{item_order::scrambled};
        watched_grids events;
        auto const dissolved = dissolved_rows(on, areas(rows), buffer<std::int32_t>::copy_of(key), 3).value();
        EXPECT_EQ(events.snapped, 2);
        EXPECT_EQ(to_wkt(dissolved).value()[0], dissolved_alone(areas(near)));
        EXPECT_EQ(to_wkt(dissolved).value()[1], valid(there));
        EXPECT_EQ(to_wkt(dissolved).value()[2], dissolved_alone(areas(large)));

        std::vector<std::string> const first(near.begin(), near.begin() + 11), second(near.begin() + 11, near.end());
        auto const a = as_one_row(first), b = as_one_row(second);
        using kiln_spatial::set_operation;
        for (auto const what : {set_operation::union_, set_operation::symmetric_difference})
            EXPECT_EQ(to_wkt(overlaid_row_by_row(on, areas({there, a}), areas({there, b}), what).value()).value()[1],
                      to_wkt(overlaid_row_by_row(on, areas({a}), areas({b}), what).value()).value()[0]);
        EXPECT_EQ(to_wkt(rows_mended(on, areas({there, a})).value().rows).value()[1], valid(a));
    }
}

// Rows that lie at one place are held against nothing but what is of their number, also if they are few.
TEST(overlay, few_rows_at_one_place_are_kept_apart) {
    auto const seconds = [](geometries const& left, geometries const& right) {
        double least = std::numeric_limits<double>::max();
        for (int i = 0; i < 3; ++i) {
            host_queue on;
            auto const before = std::clock();
            (void)overlaid_row_by_row(on, left, right, kiln_spatial::set_operation::union_).value();
            least = std::min(least, static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC);
        }
        return least;
    };
    auto const a = lattice(family::polygon, {.rows = 250, .size = 4, .seed = 5}),
               b = lattice(family::polygon, {.rows = 250, .size = 4, .seed = 6});
    auto const apart = [](geometries const& of) {
        auto parts = of.parts();
        auto x = buffer<double>::copy_of(parts.x.host_span());
        for (std::size_t row = 0; row < of.rows(); ++row)
            for (auto v = parts.offsets[1].data()[parts.offsets[0].data()[row]];
                 v < parts.offsets[1].data()[parts.offsets[0].data()[row + 1]]; ++v)
                x.data()[v] += 64.0 * static_cast<double>(row);
        parts.x = x;
        return geometries::make(std::move(parts)).value();
    };
    auto const alone = seconds(apart(a), apart(b));
    EXPECT_LT(seconds(a, b), 8 * alone + 0.01);
    host_queue on;
    EXPECT_TRUE(
        kept_worlds::make(on, buffer<std::int32_t>::copy_of(std::vector<std::int32_t>{0, 1, 1})).value().are_apart);
}

}  // namespace kiln::spatial_tests
