// SPDX-License-Identifier: Apache-2.0
// Distances, several nearest rows, what is disjoint and lists in chunks: the algorithms of the device, run on the host by the same text.
#include <kiln/event.hpp>
#include <kiln/runtime/execution.hpp>
#include <kiln/runtime/rewrite.hpp>
#include <kiln/spatial/join.hpp>
#include <kiln/spatial/nearest.hpp>
#include <kiln/spatial/wkt.hpp>

#include "samples.hpp"
#include "spatial/apart.hpp"
#include "spatial/distance.cuh"
#include "spatial/near.hpp"
#include "spatial/nearest_many.hpp"
#include "spatial/point_distance.cuh"
#include "spatial/row_distances.hpp"
#include "spatial/row_slices.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace kiln::spatial_tests {

namespace {

using namespace spatial;

// Kind 7 has rows of every family.
geometries some(int kind, unsigned seed, std::size_t rows, int size = 12) {
    if (kind < 7)
        return lattice(static_cast<family>(kind),
                       {.rows = rows, .size = size, .seed = seed, .empty_per_mille = 50, .null_per_mille = 50});
    std::vector<std::string> text;
    for (int k = 1; k <= 6; ++k)
        for (auto const& row : to_wkt(some(k, seed + static_cast<unsigned>(k), rows / 6 + 1, size)).value())
            text.push_back(row);
    return from_wkt(text).value();
}
geometries backwards(geometries const& g) {
    std::vector<std::int32_t> rows;
    for (std::size_t i = g.rows(); i-- > 0;)
        for (std::size_t k = 0; k < (i % 3 == 0 ? 2U : 1U); ++k) rows.push_back(static_cast<std::int32_t>(i));
    return g.view(buffer<std::int32_t>::copy_of(rows)).value();
}

// All coordinates times a power of two.
geometries scaled(geometries const& g, double by) {
    auto const times = [&](buffer<double> const& b) {
        auto out = buffer<double>::copy_of(values_of(b));
        for (std::size_t i = 0; i < out.size(); ++i) out.data()[i] *= by;
        return out;
    };
    if (g.kind() == family::mixed) {
        auto parts = g.mixed();
        for (auto& child : parts.children) child = scaled(child, by);
        return geometries::make(std::move(parts)).value();
    }
    auto parts = g.parts();
    parts.x = times(parts.x), parts.y = times(parts.y);
    return geometries::make(std::move(parts)).value();
}

void check_distances(geometries const& left, geometries const& right, std::string const& name) {
    auto const expected = cpu::distance(left, right).value();
    for (auto const order : {item_order::ascending, item_order::scrambled}) {
        host_queue on{order};
        auto const got = distances_of_rows(on, left, right).value();
        ASSERT_EQ(got.size(), expected.size()) << name;
        for (std::size_t i = 0; i < expected.size(); ++i) {
            if (expected[i]) EXPECT_EQ(got.data()[i], *expected[i]) << name << " row " << i;
            else EXPECT_TRUE(std::isnan(got.data()[i])) << name << " row " << i;
        }
    }
}

void check_within(geometries const& left, geometries const& right, double distance, std::string const& name) {
    auto const expected = values_of(cpu::join_within(left, right, distance).value());
    for (auto const order : {item_order::ascending, item_order::scrambled}) {
        host_queue on{order};
        auto near = rows_within::make(on, right, distance).value();
        EXPECT_EQ(values_of(near.of(left).value()), expected) << name << " within " << distance;
        // What is inside of areas by an index.
        auto indexed = rows_within::make(on, right, distance, 0).value();
        EXPECT_EQ(values_of(indexed.of(left).value()), expected) << name << " within " << distance << ", indexed";
    }
}

}  // namespace

// What is left out without being measured is farther by the measure, and nothing on a segment ever is.
TEST(kept_distance, what_is_beyond_the_best_is_told_from_what_is_as_near) {
    using namespace kiln_spatial;
    double const infinity = std::numeric_limits<double>::infinity();
    std::mt19937_64 random{7};
    std::uniform_real_distribution<double> anywhere{-1, 1};
    auto const small = [&] { return static_cast<double>(random() % 9) - 4; };
    std::size_t left_out = 0, far = 0;
    for (int i = 0; i < 300'000; ++i) {
        double const scale = std::ldexp(1.0, static_cast<int>(random() % 1020) - 510);
        auto const at = [&]() -> point {
            if (i % 3 == 0) return {scale * small(), scale * small()};
            return {scale * anywhere(random), scale * anywhere(random)};
        };
        segment s{at(), at()};
        if (i % 4 == 0) s.b = {s.a.x + s.b.x * 0x1p-30, s.a.y + s.b.y * 0x1p-30};
        double const part = 0.5 + anywhere(random);
        point p = at();
        if (i % 2 == 0) p = {s.a.x + part * (s.b.x - s.a.x), s.a.y + part * (s.b.y - s.a.y)};
        if (i % 8 == 0) p = {p.x + scale * anywhere(random) * 0x1p-40, p.y + scale * anywhere(random) * 0x1p-40};
        if (i % 5 == 1) {  // on it, and every difference of coordinates is rounded
            double const e = 0x1p-60 * static_cast<double>(random() % 1000 + 1),
                         t = static_cast<double>(random() % 1000 + 1) / 1024;
            s = {{-e, -3 * e}, {1, 3}}, p = {t, 3 * t};
        }

        double const d = square_between_elements(p, p, s.a, s.b);
        for (double const best : {infinity, 2 * d, std::nextafter(d, infinity), d, std::nextafter(d, 0.0),
                                  d * (1 - 0x1p-49), d / 2, 0x1p-1070, 0.0}) {
            bool const beyond = is_beyond(p, s, best);
            left_out += beyond, far += d > best;
            if (beyond) {
                ASSERT_GT(d, best);
            }
        }
    }
    EXPECT_GT(left_out * 3, far * 2) << "or it is of no use";
}

TEST(kept_distance, grows_with_the_coordinates_over_all_of_their_range) {
    for (int k = 1; k <= 7; ++k) {
        for (int m = 1; m <= 7; ++m) {
            auto const left = some(k, 33, 20), right = some(m, 34, 20);
            auto const expected = cpu::distance(left, right).value();
            auto const nearest = cpu::nearest(left, right, {.count = 3}).value();
            for (int const power : {-300, -260, 250, 325}) {
                double const by = std::ldexp(1.0, power);
                auto const a = scaled(left, by), b = scaled(right, by);
                auto const name = fmt::format("{} with {} times 2^{}", k, m, power);
                auto const got = cpu::distance(a, b).value();
                for (std::size_t i = 0; i < got.size(); ++i) {
                    ASSERT_EQ(got[i].has_value(), expected[i].has_value()) << name;
                    if (got[i]) {
                        EXPECT_EQ(*got[i], *expected[i] * by) << name << " row " << i;
                    }
                }
                check_distances(a, b, name);
                auto const near = cpu::nearest(a, b, {.count = 3}).value();
                ASSERT_EQ(near.size(), nearest.size()) << name;
                for (std::size_t i = 0; i < near.size(); ++i)
                    EXPECT_EQ(near[i].right, nearest[i].right) << name << " pair " << i;
            }
        }
    }
}

TEST(kept_distance, of_every_family_is_that_of_the_host) {
    for (int k = 1; k <= 7; ++k) {
        for (int m = 1; m <= 7; ++m) {
            auto const left = some(k, 31, 40), right = some(m, 32, 40);
            auto const name = std::to_string(k) + " with " + std::to_string(m);
            check_distances(left, right, name);
            check_distances(backwards(left), right, name + " as a view");
        }
    }
}

TEST(kept_distance, of_long_rows_is_that_of_the_host) {
    check_distances(spirals(3, 10'000, 0), spirals(3, 9000, 40.25), "spirals");
    check_distances(spirals(3, 500, 0), spirals(3, 9000, 3.5), "spirals that meet");
    check_distances(from_wkt(std::vector<std::string>{"POINT (0 0.25)", "POINT (90 3)", "POINT (1.5 1.5)"}).value(),
                    spirals(3, 9000, 0), "points and spirals");
}

// Rows that lie over each other as often as there are rows, as gather() makes them: no pair but those of one number is looked at.
TEST(kept_distance, of_rows_that_are_repeated_takes_room_for_the_rows) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers reserve address space";
#else
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    auto const ask = [] {
        constexpr std::size_t rows = 30'000;  // 900 million pairs
        auto const repeated = [](std::string const& row) {
            return row_of(row).view(buffer<std::int32_t>::copy_of(std::vector<std::int32_t>(rows, 0))).value();
        };
        rlimit const most{rlim_t{1} << 31, rlim_t{1} << 31};
        ::setrlimit(RLIMIT_AS, &most);
        auto const got = cpu::distance(repeated("POINT (1 1)"), repeated("POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))"));
        ::_exit(got && got->size() == rows && *got->back() == 0 ? 0 : 1);
    };
    EXPECT_EXIT(ask(), testing::ExitedWithCode(0), "");
#endif
}

// A path inside an area is at no distance from it, whichever row is the smaller one.
TEST(kept_distance, inside_is_no_distance) {
    auto const area = "POLYGON ((0 0, 100 0, 100 100, 0 100, 0 0), (40 40, 60 40, 60 60, 40 60, 40 40))";
    auto const left = from_wkt(std::vector<std::string>{area, area, area, "POINT (10 10)", "POINT (50 50)"}).value();
    auto const right =
        from_wkt(
            std::vector<std::string>{
                "MULTIPOINT ((200 0), (201 0), (202 0), (203 0), (204 0), (205 0), (206 0), (207 0), (208 0), (10 10))",
                "MULTIPOINT ((45 50), (200 0), (201 0), (202 0), (203 0), (204 0), (205 0), (206 0), (207 0), (208 0))",
                "POLYGON ((20 20, 21 20, 21 21, 20 20))", area, area})
            .value();
    host_queue on;
    EXPECT_THAT(values_of(distances_of_rows(on, left, right).value()), testing::ElementsAre(0, 5, 0, 0, 10));
    check_distances(left, right, "areas");
    check_distances(right, left, "areas, turned round");
    check_within(left, right, 3, "areas");
    check_within(right, left, 3, "areas, turned round");
}

// What is left out by boxes is never nearer than what is found: the order in which things are looked at does not matter.
TEST(kept_distance, is_never_less_than_that_of_boxes) {
    std::mt19937_64 random{3};
    auto const number = [&] { return static_cast<double>(random() % 4096) / 4096; };
    std::size_t cancelled = 0;
    for (int turn = 0; turn < 200'000; ++turn) {
        // Just above the upper end of a segment that is long and rises a little, and a little before it.
        kiln_spatial::point const a{-1000 * number() - 1, -1 - number()}, b{number(), 0};
        double const above = std::ldexp(1 + number(), -34), rise = -a.y / (b.x - a.x);
        kiln_spatial::point const p{b.x - above * rise * (1 + number()), above};
        double const square = kiln_spatial::square_from_segment(p, a, b);
        ASSERT_GE(square, above * above) << turn;
        cancelled += square == above * above ? 1 : 0;
    }
    EXPECT_GT(cancelled, 20U);  // or this tests nothing
}

TEST(kept_within, of_every_family_is_that_of_the_host) {
    for (int k = 1; k <= 7; ++k) {
        for (int m = 1; m <= 7; ++m) {
            auto const left = some(k, 33, 30), right = some(m, 34, 30);
            auto const name = std::to_string(k) + " with " + std::to_string(m);
            for (double const distance : {0.0, 1.0, 2.5, 5.0}) check_within(left, right, distance, name);
            check_within(backwards(left), right, 2, name + " as a view");
        }
    }
}

TEST(kept_within, is_exact) {
    // 3, 4, 5 and its like: at the distance, and one unit in the last place below it.
    auto const left = from_wkt(std::vector<std::string>{"POINT (0 0)", "POINT (2 1)"}).value();
    auto const right =
        from_wkt(std::vector<std::string>{"POINT (3 4)", "LINESTRING (0 0, 3 4)", "POINT (5 12)"}).value();
    for (double const distance : {1.0, 5.0, 13.0})
        for (double const d : {std::nextafter(distance, 0), distance, std::nextafter(distance, 99)})
            check_within(left, right, d, "lattice");
    check_within(spirals(3, 9000, 0), spirals(4, 500, 14), 2.5, "spirals");
    auto const far = geometries::points(buffer<double>::copy_of(std::vector{0x1p300, 0.0}),
                                        buffer<double>::copy_of(std::vector{0x1p-300, 0.0}))
                         .value();
    check_within(far, far, 0x1p300, "no double holds it");
    check_within(far, far, std::nextafter(0x1p300, INFINITY), "no double holds it");
    host_queue on;
    for (double const d : {-1.0, double{NAN}, double{INFINITY}, 1e-308, 1e308})
        EXPECT_EQ(rows_within::make(on, right, d).error().code(), errc::invalid_argument) << d;
}

// The rewrite: told by an event, off where rewrites are, and both sides agree on every pair of families.
TEST(kept_within, at_no_distance_is_what_intersects) {
    scoped_execution_mode const mode{execution_mode::cpu};
    for (int k = 1; k <= 7; ++k) {
        for (int m = 1; m <= 7; ++m) {
            auto const left = some(k, 43, 24, 6), right = some(m, 44, 24, 6);
            auto const before = event_log::process().count(event_kind::rewritten);
            set_rewrites(true);
            auto const rewritten = values_of(join_within({}, left, right, 0).value());
            EXPECT_EQ(event_log::process().count(event_kind::rewritten), before + 1);
            set_rewrites(false);
            EXPECT_EQ(values_of(join_within({}, left, right, 0).value()), rewritten) << k << " with " << m;
            EXPECT_EQ(event_log::process().count(event_kind::rewritten), before + 1);
            set_rewrites(std::nullopt);
        }
    }
}

TEST(kept_nearest, several_rows_are_those_of_the_host) {
    for (int k = 1; k <= 7; ++k) {
        for (int m = 1; m <= 7; ++m) {
            auto const left = some(k, 35, 24), right = some(m, 36, 24);
            for (std::size_t const count : {1U, 2U, 5U, 100U}) {
                for (auto const equal : {ties::kept, ties::by_row}) {
                    for (double const most : {double{INFINITY}, 2.0}) {
                        nearest_options const how{.count = count, .most = most, .equal = equal};
                        auto const expected = cpu::nearest(left, right, how).value();
                        host_queue on{item_order::scrambled};
                        auto const got = nearest_many_of(on, left, right, how).value();
                        ASSERT_EQ(got.size(), expected.size()) << k << " with " << m << ", " << count;
                        for (std::size_t i = 0; i < expected.size(); ++i) {
                            EXPECT_EQ(got.left.data()[i], expected[i].left);
                            EXPECT_EQ(got.right.data()[i], expected[i].right) << k << " with " << m << ", " << count;
                            EXPECT_EQ(got.distance.data()[i], expected[i].distance);
                        }
                    }
                }
            }
        }
    }
}

// Points of three decimals on both sides of a circle: some squares differ whose roots do not.
TEST(kept_nearest, is_ordered_by_distances_as_they_are_reported) {
    std::mt19937_64 random{7};
    std::vector<std::string> places;
    for (int i = 0; i < 400; ++i) {
        double const turn = static_cast<double>(random()) * 0x1p-64 * 1.5;
        places.push_back(fmt::format("POINT ({:.3f} {:.3f})", 2.149 * std::cos(turn), 2.149 * std::sin(turn)));
    }
    places.insert(places.end(), {"POINT (2.128 0.299)", "POINT (1.916 0.973)"});
    auto const here = from_wkt(std::vector<std::string>{"POINT (0 0)", "LINESTRING (0 0, -1 -1)"}).value();
    auto const there = from_wkt(places).value(), points = row_of("POINT (0 0)");
    std::size_t ties_found = 0;
    for (std::size_t count = 1; count <= places.size(); count += 13) {
        for (auto const equal : {ties::kept, ties::by_row}) {
            nearest_options const how{.count = count, .equal = equal};
            auto const expected = cpu::nearest(here, there, how).value();
            for (std::size_t i = 1; i < expected.size(); ++i) {
                auto const &a = expected[i - 1], &b = expected[i];
                if (a.left != b.left) continue;
                EXPECT_LE(a.distance, b.distance);
                if (a.distance < b.distance) continue;
                EXPECT_LT(a.right, b.right);
                ++ties_found;
            }
            host_queue on{item_order::scrambled};
            auto const got = nearest_many_of(on, here, there, how).value();
            ASSERT_EQ(got.size(), expected.size()) << count;
            for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(got.right.data()[i], expected[i].right) << i;
        }
    }
    EXPECT_GT(ties_found, 0U);
    auto const two = there.view(buffer<std::int32_t>::copy_of({400, 401})).value();
    for (auto const& from : {here, points}) {
        for (auto const equal : {ties::kept, ties::by_row}) {
            auto const expected = cpu::nearest(from, two, {.equal = equal}).value();
            EXPECT_EQ(expected.size(), from.rows() * (equal == ties::kept ? 2 : 1));
            host_queue on{item_order::scrambled};
            auto const got = nearest_rows_of(on, from, two, {.equal = equal}).value();
            ASSERT_EQ(got.size(), expected.size());
            for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(got.right.data()[i], expected[i].right) << i;
        }
    }
}

// A root that is rounded down has a square below the one it comes from.
TEST(kept_nearest, a_row_as_far_as_the_limit_found) {
    std::vector<std::string> places;
    for (int x = 0; x < 12; ++x)
        for (int y = 0; y < 12; ++y) places.push_back(fmt::format("POINT ({} {})", x, y));
    auto const here = row_of("POINT (0 0)"), there = from_wkt(places).value();
    for (auto const& [left, right, distance] : cpu::nearest(here, there, {.count = places.size()}).value()) {
        for (double const most : {distance, std::nextafter(distance, -1.0)}) {
            if (most < 0) continue;
            nearest_options const one{.most = most}, many{.count = places.size(), .most = most};
            auto const place = there.view(buffer<std::int32_t>::copy_of({right})).value();
            std::size_t const found = most == distance ? 1 : 0;
            host_queue on{item_order::ascending};
            EXPECT_EQ(cpu::nearest(here, place, one).value().size(), found) << distance;
            EXPECT_EQ(nearest_rows_of(on, here, place, one).value().size(), found) << distance;
            EXPECT_EQ(nearest_many_of(on, here, place, many).value().size(), found) << distance;
        }
    }
}

TEST(kept_apart, all_forms_are_what_does_not_meet) {
    for (int k = 1; k <= 7; ++k) {
        auto const left = some(k, 37, 30, 6), right = some(8 - k, 38, 30, 6);
        auto const expected = cpu::join(left, right, predicate::disjoint).value();
        std::vector<std::int32_t> first(left.rows(), -1);
        std::vector<std::int64_t> count(left.rows(), 0), histogram(right.rows(), 0);
        std::vector<std::uint8_t> any(left.rows(), 0);
        for (auto const& p : expected) {
            auto const i = static_cast<std::size_t>(p.left);
            if (count[i]++ == 0) first[i] = p.right;
            any[i] = 1, ++histogram[static_cast<std::size_t>(p.right)];
        }
        for (auto const order : {item_order::ascending, item_order::scrambled}) {
            host_queue on{order};
            auto apart = rows_apart::make(on, left, right).value();
            EXPECT_EQ(values_of(apart.pairs().value()), values_of(expected)) << k;
            EXPECT_EQ(values_of(apart.first().value()), first) << k;
            EXPECT_EQ(values_of(apart.count().value()), count) << k;
            EXPECT_EQ(values_of(apart.any().value()), any) << k;
            EXPECT_EQ(values_of(apart.histogram().value()), histogram) << k;
        }
    }
}

// ---- In chunks ----

TEST(row_slices, are_halved_where_memory_is_short_and_grow_again) {
    std::vector<std::size_t> sizes;
    std::size_t next = 0;
    auto const list = [&](std::size_t first, std::size_t last) -> result<pair_list> {
        // Rows 400 to 500 have ten times as much.
        auto const crowded = first < 500 && last > 400;
        if (last - first > (crowded ? 8U : 80U)) return error{errc::out_of_memory, "too much"};
        EXPECT_EQ(first, next);
        next = last;
        sizes.push_back(last - first);
        return pair_list{};
    };
    ASSERT_TRUE(for_slices(1000, list, [](pair_list const&) { return result<void>{}; }));
    EXPECT_EQ(next, 1000U);
    EXPECT_LT(sizes.size(), 60U);
    EXPECT_GT(*std::max_element(sizes.begin(), sizes.end()), 40U);
    // One row that is too large is an error, and so is one of whoever takes them.
    auto const never = [](std::size_t, std::size_t) -> result<pair_list> { return error{errc::out_of_memory, "row"}; };
    EXPECT_EQ(for_slices(8, never, [](pair_list const&) { return result<void>{}; }).error().message(), "row");
    auto const full = [](pair_list const&) -> result<void> { return error{errc::io, "disk"}; };
    next = 0;
    EXPECT_EQ(for_slices(8, list, full).error().code(), errc::io);
}

TEST(join_in_chunks, gives_the_same_pairs) {
    scoped_execution_mode const mode{execution_mode::cpu};
    for (auto const& [k, m] : {std::pair{1, 3}, {3, 1}, {2, 3}, {7, 7}, {4, 5}}) {
        auto const left = some(k, 39, 90, 6), right = backwards(some(m, 40, 40, 6));
        for (auto const what : {predicate::intersects, predicate::covers, predicate::touches, predicate::disjoint}) {
            auto const expected = values_of(join({}, left, right, what).value());
            for (std::size_t const most : {std::size_t{0}, std::size_t{64} << 20}) {
                plain_pairs got;
                std::size_t chunks = 0;
                auto const take = [&](pair_list const& some_pairs) -> result<void> {
                    auto const v = values_of(some_pairs);
                    got.left.insert(got.left.end(), v.left.begin(), v.left.end());
                    got.right.insert(got.right.end(), v.right.begin(), v.right.end());
                    ++chunks;
                    return {};
                };
                ASSERT_TRUE(join_in_chunks({}, left, right, what, {.most_bytes = most}, take)) << name_of(what);
                EXPECT_EQ(got, expected) << k << " " << name_of(what) << " " << m << " in " << most;
                EXPECT_GT(chunks, 1U);
            }
        }
        auto const expected = values_of(join_within({}, left, right, 1.5).value());
        plain_pairs got;
        ASSERT_TRUE(join_within_in_chunks({}, left, right, 1.5, {.most_bytes = 4000}, [&](pair_list const& p) {
            auto const v = values_of(p);
            EXPECT_LE(p.size() * 8, 4000U);
            got.left.insert(got.left.end(), v.left.begin(), v.left.end());
            got.right.insert(got.right.end(), v.right.begin(), v.right.end());
            return result<void>{};
        }));
        EXPECT_EQ(got, expected);
    }
}

// Rows are numbered from the first of all, not from the first of the chunk.
TEST(join_in_chunks, names_the_row_that_is_refused) {
    scoped_execution_mode const mode{execution_mode::cpu};
    std::vector<std::string> rows(99, "POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))");
    rows.push_back("POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))");
    auto const good = from_wkt(std::vector{rows[0]}).value(), last = from_wkt(rows).value();
    auto const nothing = [](pair_list const&) { return result<void>{}; };
    auto const whole = join({}, last, good, predicate::overlaps);
    ASSERT_FALSE(whole);
    auto const left = join_in_chunks({}, anew(last), good, predicate::overlaps, {}, nothing);
    ASSERT_FALSE(left);
    EXPECT_EQ(left.error().message(), whole.error().message());
    EXPECT_NE(left.error().message().find("on the left, row 99"), std::string::npos) << left.error().message();
    auto const right = join_in_chunks({}, good, anew(last), predicate::overlaps, {}, nothing);
    ASSERT_FALSE(right);
    EXPECT_NE(right.error().message().find("on the right, row 99"), std::string::npos) << right.error().message();
}

}  // namespace kiln::spatial_tests
