// SPDX-License-Identifier: Apache-2.0
// Distances, rows within one, several nearest rows, what is disjoint, lists in chunks and measures on a device, equal to the CPU
// variants'.
#include "spatial_fixture.hpp"

#include <kiln/spatial/measures.hpp>
#include <kiln/spatial/nearest.hpp>

#include <cmath>
#include <random>

namespace kiln::device_tests {

namespace {

using spatial_tests::spirals;

class spatial_distance : public on_spatial_device {
protected:
    void check_distances(geometries const& left, geometries const& right, std::string const& name) {
        auto const expected = cpu::distance(left, right).value();
        auto const got = values_of(take(distance(on(), there(left), there(right))));
        ASSERT_EQ(got.size(), expected.size()) << name;
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < got.size(); ++i)
            wrong += (expected[i] ? got[i] != *expected[i] : !std::isnan(got[i])) ? 1 : 0;
        EXPECT_EQ(wrong, 0U) << name << ", of " << got.size();
    }
    void check_within(geometries const& left, geometries const& right, double most, std::string const& name) {
        plain_pairs expected;
        for (auto const& p : cpu::join_within(left, right, most).value())
            expected.left.push_back(p.left), expected.right.push_back(p.right);
        EXPECT_EQ(values_of(take(join_within(on(), there(left), there(right), most))), expected)
            << name << " within " << most;
    }
    void check_nearest(geometries const& left, geometries const& right, nearest_options const& how,
                       std::string const& name) {
        auto const expected = cpu::nearest(left, right, how).value();
        auto const got = take(nearest(on(), there(left), there(right), how));
        auto const a = values_of(got.left), b = values_of(got.right);
        auto const d = values_of(got.distance);
        ASSERT_EQ(a.size(), expected.size()) << name;
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < a.size(); ++i)
            wrong += a[i] != expected[i].left || b[i] != expected[i].right || d[i] != expected[i].distance ? 1 : 0;
        EXPECT_EQ(wrong, 0U) << name << ", of " << a.size();
    }
};

geometries some(int kind, unsigned seed, std::size_t rows, int size = 12) {
    if (kind == 7) return of_every_family(seed, rows / 6);
    return lattice(static_cast<family>(kind),
                   {.rows = rows, .size = size, .seed = seed, .empty_per_mille = 50, .null_per_mille = 50});
}
geometries random_points(std::size_t n, double size, unsigned seed) {
    std::mt19937_64 random{seed};
    auto x = buffer<double>::on_host(n), y = buffer<double>::on_host(n);
    for (std::size_t i = 0; i < n; ++i) {
        x.data()[i] = static_cast<double>(random()) * 0x1p-64 * size;
        y.data()[i] = static_cast<double>(random()) * 0x1p-64 * size;
    }
    return geometries::points(x, y).value();
}

}  // namespace

TEST_F(spatial_distance, of_every_family_row_by_row) {
    std::size_t const rows = quick() ? 12 : 200;
    for (int k = 1; k <= 7; ++k) {
        for (int m = 1; m <= 7; ++m) {
            if (!takes(k, m)) continue;
            auto const name = std::to_string(k) + " with " + std::to_string(m);
            check_distances(some(k, 81, rows), some(m, 82, rows), name);
            check_distances(scrambled(some(k, 83, rows)), some(m, 84, rows), name + " as a view");
        }
    }
}

TEST_F(spatial_distance, of_long_rows) {
    int const n = quick() ? 300 : 20'000;
    check_distances(spirals(3, n, 0), spirals(3, n / 2, 60.25), "spirals");
    check_distances(spirals(3, n / 20, 0), spirals(3, n, 3.5), "spirals that meet");
    check_within(spirals(3, n, 0), spirals(4, n / 20, 14), 2.5, "spirals");
    if (quick()) return;
    auto const before = real_layer("county2010"), after = real_layer("county2016");
    if (before && after) check_distances(*before, *after, "counties");
}

TEST_F(spatial_distance, within_it_of_every_family) {
    std::size_t const rows = quick() ? 12 : 120;
    for (int k = 1; k <= 7; ++k) {
        for (int m = 1; m <= 7; ++m) {
            if (!takes(k, m)) continue;
            auto const name = std::to_string(k) + " with " + std::to_string(m);
            for (double const most : {0.0, 1.0, 2.5, 5.0})
                check_within(some(k, 85, rows), some(m, 86, rows), most, name);
            check_within(scrambled(some(k, 87, rows)), some(m, 88, rows), 2, name + " as a view");
        }
    }
    auto const far = geometries::points(buffer<double>::copy_of(std::vector{0x1p300, 0.0}),
                                        buffer<double>::copy_of(std::vector{0x1p-300, 0.0}))
                         .value();
    check_within(far, far, 0x1p300, "no double holds it");
    check_within(far, far, std::nextafter(0x1p300, INFINITY), "no double holds it");
    check_within(random_points(quick() ? 500 : 50'000, 100, 1), random_points(quick() ? 500 : 50'000, 100, 2), 0.5,
                 "points");
    if (quick()) return;
    if (auto const world = real_layer("ne110")) check_within(*world, *world, 3, "countries");
}

TEST_F(spatial_distance, several_nearest_rows_of_every_family) {
    std::size_t const rows = quick() ? 12 : 80;
    for (int k = 1; k <= 7; ++k) {
        for (int m = 1; m <= 7; ++m) {
            if (!takes(k, m)) continue;
            auto const left = some(k, 91, rows), right = some(m, 92, rows / 2);
            for (std::size_t const count : {2U, 5U, 100U})
                for (auto const equal : {ties::kept, ties::by_row})
                    check_nearest(left, right, {.count = count, .most = m == 3 ? 1.5 : INFINITY, .equal = equal},
                                  std::to_string(k) + " with " + std::to_string(m) + ", " + std::to_string(count));
        }
    }
    auto const points = random_points(quick() ? 500 : 300'000, 100, 3),
               others = random_points(quick() ? 200 : 20'000, 100, 4);
    check_nearest(points, others, {.count = 4, .equal = ties::by_row}, "points");
}

// Their squares differ, and the distances that are reported do not.
TEST_F(spatial_distance, ties_are_of_distances_as_they_are_reported) {
    auto const far = from_wkt(std::vector<std::string>{"POINT (2.128 0.299)", "POINT (1.916 0.973)"}).value();
    for (auto const& here : {row_of("POINT (0 0)"), row_of("LINESTRING (0 0, -1 -1)")})
        for (std::size_t const count : {1U, 2U})
            for (auto const equal : {ties::kept, ties::by_row})
                check_nearest(here, far, {.count = count, .equal = equal}, "ties");
}

TEST_F(spatial_distance, disjoint_is_what_does_not_meet) {
    std::size_t const rows = quick() ? 12 : 100;
    for (int k = 1; k <= 7; ++k) {
        if (quickest() && k != 3) continue;
        auto const left = some(k, 93, rows, 6), right = some(8 - k, 94, rows, 6);
        plain_pairs expected;
        std::vector<std::int32_t> first(left.rows(), -1);
        std::vector<std::int64_t> count(left.rows(), 0), histogram(right.rows(), 0);
        std::vector<std::uint8_t> any(left.rows(), 0);
        for (auto const& p : cpu::join(left, right, predicate::disjoint).value()) {
            auto const i = static_cast<std::size_t>(p.left);
            if (count[i]++ == 0) first[i] = p.right;
            any[i] = 1, ++histogram[static_cast<std::size_t>(p.right)];
            expected.left.push_back(p.left), expected.right.push_back(p.right);
        }
        auto const a = there(left), b = there(right);
        EXPECT_EQ(values_of(take(join(on(), a, b, predicate::disjoint))), expected) << k;
        EXPECT_EQ(values_of(take(join_first(on(), a, b, predicate::disjoint))), first) << k;
        EXPECT_EQ(values_of(take(join_count(on(), a, b, predicate::disjoint))), count) << k;
        EXPECT_EQ(values_of(take(join_any(on(), a, b, predicate::disjoint))), any) << k;
        EXPECT_EQ(values_of(take(join_histogram(on(), a, b, predicate::disjoint))), histogram) << k;
    }
}

TEST_F(spatial_distance, chunks_are_the_whole_list) {
    std::size_t const n = quick() ? 400 : 40'000;
    auto const points = there(random_points(n, 20, 5));
    // Not many that overlap: each has a record in every cell that it covers.
    auto const some_areas =
        lattice(family::polygon, {.rows = covering(60), .size = 20, .seed = 95, .null_per_mille = 20});
    auto const areas = there(some_areas), backwards = there(scrambled(some_areas));
    auto const lines =
        there(lattice(family::linestring, {.rows = n / 40, .size = 20, .seed = 96, .null_per_mille = 20}));
    auto const index_bytes = take(area_index::make(on(), areas)).bytes() + area_index::estimate(areas);
    struct question {
        geometries const* left;
        geometries const* right;
        predicate what;
    };
    for (auto const& q :
         {question{&points, &areas, predicate::within}, question{&areas, &points, predicate::contains},
          question{&areas, &lines, predicate::intersects}, question{&lines, &areas, predicate::crosses},
          question{&backwards, &lines, predicate::touches}, question{&areas, &lines, predicate::disjoint}}) {
        if (quickest() && q.what != predicate::within && q.what != predicate::crosses) continue;
        auto const expected = values_of(take(join(on(), *q.left, *q.right, q.what)));
        // Other joins than of points in areas have the areas' index among what a slice takes.
        auto const least = q.left == &points ? index_bytes + (std::size_t{6} << 20) : 8 * index_bytes;
        for (std::size_t const most : {std::size_t{0}, least}) {
            if (quickest() && most == 0) continue;
            plain_pairs got;
            std::size_t chunks = 0;
            auto const taken =
                join_in_chunks(on(), *q.left, *q.right, q.what, {.most_bytes = most}, [&](pair_list const& p) {
                    auto const v = values_of(p);
                    got.left.insert(got.left.end(), v.left.begin(), v.left.end());
                    got.right.insert(got.right.end(), v.right.begin(), v.right.end());
                    ++chunks;
                    return result<void>{};
                });
            ASSERT_TRUE(taken) << name_of(q.what) << ": " << taken.error().message();
            EXPECT_EQ(got, expected) << name_of(q.what) << " in " << most;
            EXPECT_GT(chunks, 1U);
        }
    }
    auto const expected = values_of(take(join_within(on(), points, lines, 0.75)));
    plain_pairs got;
    ASSERT_TRUE(join_within_in_chunks(on(), points, lines, 0.75, {.most_bytes = 3 << 20}, [&](pair_list const& p) {
        auto const v = values_of(p);
        EXPECT_LE(p.size() * 8, std::size_t{3} << 20);
        got.left.insert(got.left.end(), v.left.begin(), v.left.end());
        got.right.insert(got.right.end(), v.right.begin(), v.right.end());
        return result<void>{};
    }));
    EXPECT_EQ(got, expected);
}

TEST_F(spatial_distance, measures_have_the_bits_of_the_host) {
    std::vector<geometries> all{of_every_family(97, quick() ? 10 : 200), scrambled(of_every_family(98, 20))};
    for (int k = 1; k <= 6; ++k) all.push_back(some(k, 99, quick() ? 20 : 500));
    all.push_back(spirals(3, quick() ? 300 : 100'000, 1));
    for (auto const* const name : {"ne110", "county2016"})
        if (auto const real = real_layer(name); real && !quick()) all.push_back(*real);
    if (quickest()) all.resize(2);
    for (auto const& g : all) {
        auto const here = there(g);
        auto const equal = [&](std::vector<double> const& got, auto const& expected, auto of, char const* what) {
            ASSERT_EQ(got.size(), expected.size()) << what;
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < got.size(); ++i)
                wrong += (expected[i] ? got[i] != of(*expected[i]) : !std::isnan(got[i])) ? 1 : 0;
            EXPECT_EQ(wrong, 0U) << what << " of " << name_of(g.kind());
        };
        auto const same = [](double v) { return v; };
        equal(values_of(take(area(on(), here))), cpu::area(g).value(), same, "area");
        equal(values_of(take(length(on(), here))), cpu::length(g).value(), same, "length");
        auto const centroids = take(centroid(on(), here));
        auto const expected = cpu::centroid(g).value();
        equal(
            values_of(centroids.x), expected, [](location const& l) { return l.x; }, "x");
        equal(
            values_of(centroids.y), expected, [](location const& l) { return l.y; }, "y");
        auto const boxes = take(bounds(on(), here));
        auto const expected_boxes = cpu::bounds(g).value();
        equal(
            values_of(boxes.min_x), expected_boxes, [](bounding_box const& b) { return b.min_x; }, "least x");
        equal(
            values_of(boxes.max_y), expected_boxes, [](bounding_box const& b) { return b.max_y; }, "greatest y");
        EXPECT_EQ(take(total_bounds_sync(on(), here)), cpu::total_bounds(g).value());
    }
}

}  // namespace kiln::device_tests
