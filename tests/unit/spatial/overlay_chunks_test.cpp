// SPDX-License-Identifier: Apache-2.0
// Layers that are overlaid, dissolved and mended a few rows at a time: the bits of what is done at once, whatever the chunks.
#include "overlay_samples.hpp"
#include "samples.hpp"
#include "spatial/overlay/bounded_queues.hpp"
#include "spatial/overlay/in_chunks.hpp"

#include <kiln/event.hpp>
#include <kiln/runtime/execution.hpp>
#include <kiln/spatial/wkt.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <numeric>

namespace kiln::spatial_tests {

namespace {

using namespace spatial;

struct chunked_places {
    host_queue home{item_order::scrambled}, results{item_order::scrambled};
    bounded_host_queue work;
    chunked_call call;
    explicit chunked_places(std::size_t most)
        : work{chunk_places::bytes_to_take(most)}, call{{home, work, {}, most}, results} {}
};

// How many chunks the calls inside of it took, and whether one was put onto a grid.
class watched_chunks {
public:
    std::size_t chunks = 0, snapped = 0, again = 0;

private:
    event_log::subscription token_ = event_log::process().subscribe([this](event const& e) {
        if (e.reason.view() == "in-chunks") chunks += static_cast<std::size_t>(e.value);
        if (e.reason.view() == "snapped") ++snapped;
        if (e.reason.view() == "divided-again") again += static_cast<std::size_t>(e.value);
    });
};

std::vector<std::uint64_t> words_in(buffer<double> const& values) {
    std::vector<std::uint64_t> out;
    for (double const v : values.host_span()) out.push_back(std::bit_cast<std::uint64_t>(v));
    return out;
}
void expect_same(geometries const& made, geometries const& whole, std::string const& name) {
    auto const &a = made.parts(), &b = whole.parts();
    ASSERT_EQ(a.kind, b.kind) << name;
    for (std::size_t level = 0; level < 3; ++level)
        ASSERT_EQ(values_of(a.offsets[level]), values_of(b.offsets[level])) << name << ", level " << level;
    EXPECT_TRUE(words_in(a.x) == words_in(b.x) && words_in(a.y) == words_in(b.y)) << name;
    ASSERT_EQ(a.validity.has_value(), b.validity.has_value()) << name;
    if (a.validity) {
        EXPECT_EQ(values_of(*a.validity), values_of(*b.validity)) << name;
    }
}

std::size_t items_in(geometries const& g) {
    host_queue on;
    auto const l = kept_layer::plain(on, g).value();
    return l.vertices() + l.rows();
}
std::size_t bytes_for(std::size_t items) { return items * chunk_places::bytes_of_item; }

struct chunk_trial {
    std::string name;
    std::size_t parts = 6;  // of what the layers are thought to take
    double grid = 0;
    std::size_t least_chunks = 8, least_mended = 8;
    std::size_t most = 0;  // instead, bytes
    std::vector<overlay_kind> kinds{all_kinds_of_overlay.begin(), all_kinds_of_overlay.end()};
    [[nodiscard]] std::size_t limit(std::size_t items) const { return most != 0 ? most : bytes_for(items) / parts; }
};
// What is held at once where there are no chunks.
template <class Run>
std::size_t peak_of(Run const& run) {
    bounded_host_queue on{~std::size_t{0} / 2};
    run(on);
    return on.peak();
}
void check_overlay(geometries const& a, geometries const& b, chunk_trial const& how) {
    for (auto const what : how.kinds) {
        auto const name = how.name + " " + std::string{name_of(what)};
        host_queue on;
        auto const most = how.limit(items_in(a) + items_in(b));
        watched_chunks whole_events;
        auto const whole = overlaid_rows(on, a, b, what, {.grid = how.grid}).value();
        auto const again = whole_events.again, snapped = whole_events.snapped;
        chunked_places places{most};
        watched_chunks events;
        auto const made = overlaid_in_chunks(places.call, a, b, what, {.grid = how.grid});
        ASSERT_TRUE(made) << name << ": " << made.error().message();
        EXPECT_EQ(values_of(made->left), values_of(whole.left)) << name;
        EXPECT_EQ(values_of(made->right), values_of(whole.right)) << name;
        expect_same(made->rows, whole.rows, name);
        EXPECT_GE(events.chunks, how.least_chunks) << name;
        EXPECT_EQ(events.again, again) << name;
        EXPECT_EQ(events.snapped, snapped) << name;
        EXPECT_LE(places.work.peak(), most) << name;
    }
}
void check_rows(geometries const& of, std::vector<std::int32_t> const& keys, std::size_t count,
                chunk_trial const& how) {
    host_queue on;
    auto const key = buffer<std::int32_t>::copy_of(keys);
    auto const most = how.limit(items_in(of));
    watched_chunks events;
    {
        chunked_places places{most};
        auto const made = dissolved_in_chunks(places.call, of, key, count);
        ASSERT_TRUE(made) << how.name << ": " << made.error().message();
        EXPECT_GE(std::exchange(events.chunks, 0), how.least_chunks) << how.name;
        expect_same(*made, dissolved_rows(on, of, key, count).value(), how.name + " dissolved");
        EXPECT_LE(places.work.peak(), most) << how.name;
    }
    chunked_places places{most};
    auto const made = mended_in_chunks(places.call, of);
    ASSERT_TRUE(made) << how.name << ": " << made.error().message();
    EXPECT_GE(events.chunks, how.least_mended) << how.name;
    auto const whole = rows_mended(on, of).value();
    expect_same(made->rows, whole.rows, how.name + " mended");
    EXPECT_EQ(values_of(made->was_valid), values_of(whole.was_valid)) << how.name;
    EXPECT_LE(places.work.peak(), most) << how.name;
}

// Rows on a lattice, each moved to a place of its own, so that it meets a few others.
geometries spread(geometries const& of, std::size_t columns, double step) {
    auto parts = of.parts();
    auto x = buffer<double>::copy_of(parts.x.host_span()), y = buffer<double>::copy_of(parts.y.host_span());
    auto const levels = levels_of(parts.kind);
    for (std::size_t row = 0; row < of.rows(); ++row) {
        auto from = static_cast<std::int32_t>(row), to = from + 1;
        for (std::size_t level = 0; level < levels; ++level)
            from = parts.offsets[level].data()[from], to = parts.offsets[level].data()[to];
        for (auto v = from; v < to; ++v)
            x.data()[v] += static_cast<double>(row % columns) * step,
                y.data()[v] += static_cast<double>(row / columns) * step;
    }
    parts.x = x, parts.y = y;
    return geometries::make(std::move(parts)).value();
}
geometries star_field(std::size_t rows, unsigned seed, double size) {
    return stars({.rows = rows, .seed = seed, .size = size, .nearest = 3, .width = 8, .holes = false});
}
// Zones with borders in common: nodes of a grid moved a little, and a vertex in the middle of each border moved as well.
geometries zone_grid(int columns, int rows, unsigned seed, double moved) {
    auto const at = [&](int x, int y) {  // in half steps
        std::mt19937_64 random{seed + static_cast<unsigned>(x) * 7919U + static_cast<unsigned>(y) * 104729U};
        auto const off = [&] { return 0.4 * (static_cast<double>(random()) * 0x1p-64 - 0.5); };
        double const dx = off(), dy = off();
        return kiln_spatial::point{x + dx + moved, y + dy + moved};
    };
    geometry_builder to;
    for (int row = 0; row < rows; ++row)
        for (int column = 0; column < columns; ++column) {
            to.begin(family::polygon), to.begin_ring();
            constexpr int steps[9][2] = {{0, 0}, {1, 0}, {2, 0}, {2, 1}, {2, 2}, {1, 2}, {0, 2}, {0, 1}, {0, 0}};
            for (auto const& s : steps) {
                auto const [x, y] = at(2 * column + s[0], 2 * row + s[1]);
                to.vertex(x, y);
            }
            to.end();
        }
    return to.finish(family::polygon).value();
}
// Bundles of slivers that nearly run along each other, one beside the other: rounded crossings go on making others cross.
geometries bundles(std::size_t count, std::size_t slivers, unsigned seed) {
    std::mt19937_64 random{seed};
    auto const real = [&] { return static_cast<double>(random()) * 0x1p-64; };
    geometry_builder to;
    for (std::size_t i = 0; i < count; ++i)
        for (std::size_t k = 0; k < slivers; ++k) {
            double const at = static_cast<double>(i) * 900, x = at + real() * 1e-12, y = real() * 1e-12;
            auto const far = [&](double from) { return from + 1000 + 1e-11 * real(); };
            double const ax = far(at), ay = far(0), bx = far(at), by = far(0);
            to.begin(family::polygon), to.begin_ring();
            to.vertex(x, y), to.vertex(ax, ay), to.vertex(bx, by), to.vertex(x, y), to.end();
        }
    return to.finish(family::polygon).value();
}
geometries some_rows_of(geometries const& of, std::size_t first, std::size_t n) {
    std::vector<std::int32_t> rows(n);
    std::iota(rows.begin(), rows.end(), static_cast<std::int32_t>(first));
    return of.view(buffer<std::int32_t>::copy_of(rows)).value().compact().value();
}
std::vector<std::int32_t> keys_by(std::size_t rows, std::size_t each) {
    std::vector<std::int32_t> out(rows);
    for (std::size_t i = 0; i < rows; ++i) out[i] = static_cast<std::int32_t>(i / each);
    if (rows > 3) out[3] = -1;
    return out;
}

}  // namespace

TEST(overlay_in_chunks, of_zones_with_borders_in_common) {
    auto const a = zone_grid(12, 12, 1, 0), b = zone_grid(13, 11, 2, 0.3);
    check_overlay(a, b, {.name = "zones"});
    check_overlay(a, b, {.name = "zones, many chunks", .parts = 10, .least_chunks = 20});
    check_overlay(a, a, {.name = "zones with themselves"});
}

TEST(overlay_in_chunks, where_every_degeneracy_is_common) {
    lattice_options how{.rows = 90, .size = 6, .seed = 5, .empty_per_mille = 50, .null_per_mille = 50};
    auto const a = spread(lattice(family::polygon, how), 30, 3);
    how.seed = 6;
    auto const b = spread(lattice(family::multipolygon, how), 30, 3);
    check_overlay(a, b, {.name = "lattice", .parts = 4});
    check_overlay(b, a, {.name = "lattice, sides exchanged", .parts = 4});
}

TEST(overlay_in_chunks, where_rows_of_a_layer_overlap) {
    check_overlay(star_field(90, 3, 0.2), star_field(80, 4, 0.2), {.name = "stars", .parts = 4});
}

TEST(overlay_in_chunks, on_a_grid) {
    for (double const grid : {0.25, 0.01, 1e-7}) {
        auto const name = "grid of " + std::to_string(grid);
        check_overlay(star_field(60, 7, 0.2), star_field(50, 8, 0.2), {.name = name, .parts = 3, .grid = grid});
        check_overlay(zone_grid(9, 9, 3, 0), zone_grid(9, 9, 4, 0.1),
                      {.name = name + " of zones", .parts = 4, .grid = grid});
    }
}

// What does not come to rest is put onto one grid, for all of the layer.
TEST(overlay_in_chunks, that_do_not_come_to_rest) {
    auto const a = bundles(8, 12, 3), b = bundles(8, 12, 4);
    watched_chunks events;
    auto const most = peak_of([&](queue& on) { (void)overlaid_rows(on, a, b, overlay_kind::union_).value(); }) / 3;
    check_overlay(
        a, b,
        {.name = "bundles", .least_chunks = 4, .most = most, .kinds = {overlay_kind::union_, overlay_kind::update}});
    EXPECT_GT(events.snapped, 0U);
    auto const many = bundles(6, 30, 3);
    auto const keys = keys_by(many.rows(), 30);
    auto const of_keys =
        peak_of([&](queue& on) { (void)dissolved_rows(on, many, buffer<std::int32_t>::copy_of(keys), 6).value(); });
    check_rows(many, keys, 6, {.name = "bundles", .least_chunks = 4, .least_mended = 2, .most = of_keys / 3});
}

// Keys are on grids of their own there too: a large one changes nothing of the others.
TEST(overlay_in_chunks, that_do_not_come_to_rest_beside_a_large_one) {
    auto const near = nearly_the_same(180, 1);
    auto rows = to_wkt(near).value();
    auto const large = to_wkt(nearly_the_same(30, 1, 0x1p40)).value();
    rows.insert(rows.end(), large.begin(), large.end());
    auto keys = keys_by(near.rows(), 30);
    host_queue on;
    auto const alone = to_wkt(dissolved_rows(on, near, buffer<std::int32_t>::copy_of(keys), 6).value()).value();
    keys.resize(rows.size(), 6);
    auto const all = from_wkt(rows).value();
    auto const of_keys =
        peak_of([&](queue& q) { (void)dissolved_rows(q, all, buffer<std::int32_t>::copy_of(keys), 7).value(); });
    check_rows(all, keys, 7, {.name = "a large one", .least_chunks = 4, .least_mended = 2, .most = of_keys / 3});
    watched_chunks events;
    auto const made = to_wkt(dissolved_rows(on, all, buffer<std::int32_t>::copy_of(keys), 7).value()).value();
    EXPECT_GT(events.snapped, 0U);
    for (std::size_t key = 0; key < 6; ++key) EXPECT_EQ(made[key], alone[key]) << key;
}

TEST(overlay_in_chunks, of_real_layers) {
    if (auto const world = real_layer("ne110"))
        check_rows(*world, keys_by(world->rows(), 9), 20, {.name = "ne110", .parts = 4});
    auto const a = real_layer("county2010"), b = real_layer("county2016");
    if (!a || !b) GTEST_SKIP() << "no counties: see KILN_SPATIAL_DATA";
    check_overlay(some_rows_of(*a, 1000, 60), some_rows_of(*b, 1000, 60), {.name = "counties", .parts = 3});
}

// By hand: all counties, and layers of many seeds.
TEST(overlay_in_chunks, DISABLED_of_counties_and_many_seeds) {
    for (unsigned seed = 1; seed <= 40; ++seed) {
        auto const name = "seed " + std::to_string(seed);
        constexpr std::array grids{0.0, 0.5, 0.03, 1e-9, 0x1p-43};
        double const grid = grids[seed % grids.size()];
        check_overlay(star_field(50, seed, 0.25), star_field(60, seed + 100, 0.15),
                      {.name = name + ", stars", .parts = 2, .grid = grid, .least_chunks = 2});
        check_overlay(zone_grid(8, 7, seed, 0), zone_grid(7, 8, seed + 100, 0.01 * seed),
                      {.name = name + ", zones", .parts = 3, .grid = grid, .least_chunks = 4});
        lattice_options how{.rows = 60, .size = 5, .seed = seed, .empty_per_mille = 50, .null_per_mille = 50};
        auto const a = spread(lattice(family::multipolygon, how), 30, 4);
        how.seed += 100;
        auto const b = spread(lattice(family::polygon, how), 30, 4);
        check_overlay(a, b, {.name = name + ", lattice", .parts = 2, .grid = grid, .least_chunks = 2});
        check_rows(a, keys_by(a.rows(), 4), 15,
                   {.name = name + ", keys", .parts = 4, .least_chunks = 3, .least_mended = 3});
    }
    auto const before = real_layer("county2010"), after = real_layer("county2016");
    if (!before || !after) GTEST_SKIP() << "no counties: see KILN_SPATIAL_DATA";
    check_overlay(*before, *after, {.name = "all counties"});
    check_rows(*after, keys_by(after->rows(), 60), 60, {.name = "all counties", .parts = 4});
}

TEST(overlay_in_chunks, of_rows_by_key_and_alone) {
    auto const of = zone_grid(14, 14, 5, 0);
    check_rows(of, keys_by(of.rows(), 7), 30, {.name = "zones"});  // the last two keys have no rows
    auto const odd = spread(rings_of_any_kind(120, 9), 12, 4);
    check_rows(odd, keys_by(odd.rows(), 5), 24, {.name = "rings of any kind"});
}

// Crossings that are rounded onto a vertex, and rows that are no areas.
TEST(overlay_in_chunks, which_rows_are_valid) {
    std::vector<std::string> const kinds{hole_just_outside,
                                         back_and_forth,
                                         "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))",
                                         "LINESTRING (1 1, 1 1)",
                                         "NULL",
                                         "POINT (1 1)",
                                         "POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))"};
    std::vector<std::string> rows;
    std::vector<std::uint8_t> expected;
    for (int turn = 0; turn < 30; ++turn)
        for (std::size_t i = 0; i < kinds.size(); ++i)
            rows.push_back(kinds[i]), expected.push_back(i == 0 || i == 3 || i == 6 ? 0 : 1);
    auto const of = from_wkt(rows).value();
    chunked_places places{bytes_for(items_in(of)) / 6};
    watched_chunks events;
    auto const made = mended_in_chunks(places.call, of);
    ASSERT_TRUE(made) << made.error().message();
    EXPECT_GE(events.chunks, 8U);
    EXPECT_EQ(values_of(made->was_valid), expected);
    host_queue on;
    EXPECT_EQ(values_of(rows_mended(on, of).value().was_valid), expected);
}

// A row that meets everything comes with every chunk; what it has in common with them is drawn a few of them at a time.
TEST(overlay_in_chunks, with_a_row_that_meets_everything) {
    auto const small = zone_grid(14, 14, 6, 0);
    auto const large = from_wkt(std::vector<std::string>{"POLYGON ((3 3, 24 4, 25 25, 2 24, 3 3))"}).value();
    check_overlay(small, large,
                  {.name = "many, one",
                   .kinds = {overlay_kind::intersection, overlay_kind::difference, overlay_kind::identity,
                             overlay_kind::update}});
    host_queue on;
    auto const most = bytes_for(items_in(small)) / 5;
    chunked_places places{most};
    watched_chunks events;
    auto const made = overlaid_in_chunks(places.call, large, small, overlay_kind::intersection).value();
    auto const whole = overlaid_rows(on, large, small, overlay_kind::intersection).value();
    EXPECT_EQ(values_of(made.right), values_of(whole.right));
    expect_same(made.rows, whole.rows, "one, many");
    EXPECT_GE(events.chunks, 8U);
    // What no other row has is one result, for which all of them are needed.
    auto const alone = overlaid_in_chunks(places.call, large, small, overlay_kind::difference);
    ASSERT_FALSE(alone);
    EXPECT_EQ(alone.error().code(), errc::out_of_memory);
    EXPECT_THAT(alone.error().message(), testing::HasSubstr("left row 0"));
}

TEST(overlay_in_chunks, is_an_option_of_the_calls) {
    scoped_execution_mode const mode{execution_mode::cpu};
    auto const a = zone_grid(12, 12, 1, 0), b = zone_grid(13, 11, 2, 0.3);
    auto const most = bytes_for(items_in(a) + items_in(b)) / 6;
    watched_chunks events;
    auto const whole = overlay({}, a, b, overlay_kind::union_).value();
    (void)overlay({}, a, b, overlay_kind::union_, {.most_bytes = 100 * most}).value();
    EXPECT_EQ(events.chunks, 0U);  // it fits
    auto const made = overlay({}, a, b, overlay_kind::union_, {.most_bytes = most}).value();
    EXPECT_GT(std::exchange(events.chunks, 0), 8U);
    expect_same(made.rows, whole.rows, "overlay");
    auto const key = buffer<std::int32_t>::copy_of(keys_by(a.rows(), 6));
    expect_same(dissolve({}, a, key, 24, {.most_bytes = most}).value(), dissolve({}, a, key, 24).value(), "dissolve");
    expect_same(make_valid({}, a, {.most_bytes = most}).value(), make_valid({}, a).value(), "make_valid");
    EXPECT_GT(events.chunks, 4U);
    EXPECT_EQ(overlay({}, from_wkt(std::vector<std::string>{}).value(), b, overlay_kind::union_, {.most_bytes = most})
                  .value()
                  .size(),
              b.rows());
    auto const too_little = overlay({}, a, b, overlay_kind::union_, {.most_bytes = 1000});
    ASSERT_FALSE(too_little);
    EXPECT_EQ(too_little.error().code(), errc::out_of_memory);
}

// Polygons of a row come by where they are, whatever else is in the layers.
TEST(overlay, the_order_of_polygons_is_that_of_the_plane) {
    host_queue on;
    auto const left = from_wkt(std::vector<std::string>{"POLYGON ((0 0, 30 0, 30 3, 0 3, 0 0))"}).value();
    std::vector<std::string> combs;
    for (int const at : {20, 4, 12, 8, 16}) {
        auto const x = std::to_string(at), to = std::to_string(at + 2);
        combs.push_back("((" + x + " -1, " + to + " -1, " + to + " 4, " + x + " 4, " + x + " -1))");
    }
    auto const right_row =
        "MULTIPOLYGON (" + combs[0] + ", " + combs[1] + ", " + combs[2] + ", " + combs[3] + ", " + combs[4] + ")";
    auto const alone = from_wkt(std::vector{right_row}).value();
    auto const with_others =
        from_wkt(std::vector<std::string>{right_row, "POLYGON ((-900 -700, -899 -700, -899 -650, -900 -700))",
                                          "POLYGON ((13 -500, 13.5 900, 14 900, 13 -500))"})
            .value();
    for (auto const what : {overlay_kind::intersection, overlay_kind::difference}) {
        auto const few = to_wkt(overlaid_rows(on, left, alone, what).value().rows).value()[0];
        std::vector<double> starts;
        for (auto at = few.find("(("); at != std::string::npos; at = few.find("((", at + 2))
            starts.push_back(std::stod(few.substr(few.find_first_not_of('(', at))));
        EXPECT_EQ(starts.size(), what == overlay_kind::intersection ? 5U : 6U);
        EXPECT_TRUE(std::ranges::is_sorted(starts)) << few;
    }
    auto const common = to_wkt(overlaid_rows(on, left, with_others, overlay_kind::intersection).value().rows).value();
    EXPECT_EQ(common.size(), 2U);
    EXPECT_THAT(common[0], testing::HasSubstr("((4 0, "));
}

}  // namespace kiln::spatial_tests
