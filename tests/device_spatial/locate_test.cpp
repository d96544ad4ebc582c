// SPDX-License-Identifier: Apache-2.0
// Points in areas on a device: index and all forms of the answer, equal to the CPU variant's.
#include "spatial_fixture.hpp"

#include <kiln/spatial/locate.hpp>

#include <cmath>
#include <random>

namespace kiln::device_tests {

namespace {

class spatial_locate : public on_spatial_device {
protected:
    void check(geometries const& points, geometries const& areas) {
        auto const located = cpu::area_index::make(areas).value().locate(points).value();
        auto const there_points = there(points), there_areas = there(areas);
        auto const index = take(area_index::make(on(), there_areas));
        for (auto const what : {predicate::intersects, predicate::within, predicate::touches}) {
            if (quickest() && what != predicate::within) continue;  // the kernels are those of intersects
            plain_pairs expected;
            std::vector<std::int32_t> first(points.rows(), -1);
            std::vector<std::int64_t> count(points.rows(), 0), histogram(areas.rows(), 0);
            std::vector<std::uint8_t> any(points.rows(), 0);
            for (auto const& p : located) {
                bool const is_on = p.how == standing::on_boundary;
                if ((what == predicate::within && is_on) || (what == predicate::touches && !is_on)) continue;
                auto const l = static_cast<std::size_t>(p.point);
                if (count[l]++ == 0) first[l] = p.area;
                any[l] = 1;
                ++histogram[static_cast<std::size_t>(p.area)];
                expected.left.push_back(p.point), expected.right.push_back(p.area);
            }
            EXPECT_EQ(values_of(take(join(on(), there_points, index, what))), expected) << name_of(what);
            EXPECT_EQ(values_of(take(join_first(on(), there_points, index, what))), first) << name_of(what);
            EXPECT_EQ(values_of(take(join_count(on(), there_points, index, what))), count) << name_of(what);
            EXPECT_EQ(values_of(take(join_any(on(), there_points, index, what))), any) << name_of(what);
            EXPECT_EQ(values_of(take(join_histogram(on(), there_points, index, what))), histogram) << name_of(what);
        }
    }
};

geometries some_points(std::size_t n, double from, double to, unsigned seed) {
    std::mt19937_64 random{seed};
    auto x = buffer<double>::on_host(n), y = buffer<double>::on_host(n);
    auto const steps = static_cast<std::uint64_t>((to - from) * 4);
    auto const next = [&] {
        return from + static_cast<double>(random() % (steps + 1)) / 4 +
               (random() % 8 == 0 ? static_cast<double>(random()) * 0x1p-64 : 0);
    };
    for (std::size_t i = 0; i < n; ++i) x.data()[i] = next(), y.data()[i] = next();
    x.data()[n / 2] = y.data()[n / 2] = NAN;  // an empty one
    return geometries::points(x, y).value();
}

// The least coordinate right of one that arrays take.
double next_to(double v) { return v != 0 ? std::nextafter(v, 1e9) : 0x1p-300; }

// Vertices, middles of edges, and somewhere near.
geometries points_near(geometries const& areas, std::size_t n, unsigned seed) {
    auto const& p = areas.parts();
    std::mt19937_64 random{seed};
    auto x = buffer<double>::on_host(n), y = buffer<double>::on_host(n);
    for (std::size_t i = 0; i < n; ++i) {
        auto const v = random() % (p.x.size() - 1), w = v + 1;
        auto const near = [&] { return (static_cast<double>(random()) * 0x1p-64 - 0.5) * 0.6; };
        double const* const px = p.x.data();
        double const* const py = p.y.data();
        switch (i % 4) {
            case 0: x.data()[i] = px[v], y.data()[i] = py[v]; break;
            case 1: x.data()[i] = (px[v] + px[w]) / 2, y.data()[i] = (py[v] + py[w]) / 2; break;
            case 2: x.data()[i] = next_to(px[v]), y.data()[i] = py[v]; break;
            default: x.data()[i] = px[v] + near(), y.data()[i] = py[v] + near(); break;
        }
    }
    return geometries::points(x, y).value();
}

}  // namespace

TEST_F(spatial_locate, on_a_lattice_every_degeneracy) {
    auto const points = some_points(quick() ? 500 : 20'000, -1, 8, 7);
    for (unsigned seed = 1; seed <= (quick() ? 1U : 4U); ++seed) {
        check(points, of_every_family(seed));
        if (quickest()) return;
        check(points, lattice(family::polygon,
                              {.rows = 200, .size = 7, .seed = seed, .empty_per_mille = 50, .null_per_mille = 50}));
        check(points, lattice(family::multipolygon, {.rows = 200, .size = 7, .seed = seed, .null_per_mille = 20}));
        check(points, scrambled(of_every_family(seed)));
    }
}

TEST_F(spatial_locate, nulls_and_views_of_points) {
    auto const areas = lattice(family::polygon, {.rows = covering(60), .size = 6, .seed = 8});
    auto const points =
        lattice(family::point, {.rows = 400, .size = 6, .seed = 9, .empty_per_mille = 100, .null_per_mille = 100});
    if (!quickest()) check(points, areas);
    check(scrambled(points), areas);
}

TEST_F(spatial_locate, crowded_cells_are_divided) {
    std::string star = "POLYGON ((";
    int const n = quick() ? 500 : 4000;
    for (int i = 0; i < n; ++i) {
        double const angle = i * 2 * 3.14159265358979 / n, r = i % 2 == 0 ? 3 : 0.0625;
        star += std::to_string(4 + r * std::cos(angle)) + " " + std::to_string(4 + r * std::sin(angle)) + ", ";
    }
    auto const areas =
        from_wkt(std::vector<std::string>{star + "7.000000 4.000000))", "POLYGON ((0 0, 8 0, 8 8, 0 8, 0 0))"}).value();
    check(some_points(quick() ? 500 : 20'000, -1, 9, 3), areas);
    check(points_near(areas, quick() ? 500 : 20'000, 4), areas);
}

// The same area many times, alone and in a corner of a larger layer.
TEST_F(spatial_locate, areas_over_each_other) {
    std::vector<std::string> rows(quick() ? covering(20) : 300,
                                  "POLYGON ((0.1 0.1, 2.1 0.1, 2.1 2.1, 0.1 2.1, 0.1 0.1))");
    check(some_points(500, 0, 3, 11), from_wkt(rows).value());
    rows.push_back("POLYGON ((90 90, 100 90, 100 100, 90 90))");
    check(some_points(500, 0, 3, 12), from_wkt(rows).value());
}

TEST_F(spatial_locate, real_areas) {
    for (auto const* const name : {"ne110", "county2010", "county2016"}) {
        auto const areas = real_layer(name);
        if (!areas) continue;
        check(points_near(*areas, quick() ? 2000 : 200'000, 5), *areas);
        if (quick()) break;
    }
    if (!real_layer("ne110")) GTEST_SKIP() << "KILN_SPATIAL_DATA has no ne110";
}

TEST_F(spatial_locate, areas_may_be_left) {
    auto const areas = lattice(family::polygon, {.rows = covering(80), .size = 6, .seed = 11, .null_per_mille = 50});
    auto const points = lattice(family::point, {.rows = 300, .size = 6, .seed = 12, .null_per_mille = 50});
    for (auto const what : {predicate::intersects, predicate::contains, predicate::contains_properly, predicate::covers,
                            predicate::touches, predicate::within}) {
        if (quickest() && what != predicate::covers) continue;
        plain_pairs expected;
        std::vector<std::int64_t> count(areas.rows(), 0), histogram(points.rows(), 0);
        for (auto const& p : cpu::relate_join(areas, points).value()) {
            if (!holds(what, p.how)) continue;
            expected.left.push_back(p.left), expected.right.push_back(p.right);
            ++count[static_cast<std::size_t>(p.left)], ++histogram[static_cast<std::size_t>(p.right)];
        }
        EXPECT_EQ(values_of(take(join(on(), there(areas), there(points), what))), expected) << name_of(what);
        EXPECT_EQ(values_of(take(join_count(on(), there(areas), there(points), what))), count) << name_of(what);
        EXPECT_EQ(values_of(take(join_histogram(on(), there(areas), there(points), what))), histogram) << name_of(what);
    }
}

TEST_F(spatial_locate, host_data_is_brought_where_the_mode_says) {
    auto const areas = lattice(family::polygon, {.rows = 30, .size = 6, .seed = 1});
    auto const points = some_points(1000, 0, 6, 2);
    scoped_execution_mode const gpu{execution_mode::gpu};
    auto const got = values_of(take(join(on(), points, areas, predicate::intersects)));
    scoped_execution_mode const cpu{execution_mode::cpu};
    auto const expected = take(join(on(), points, areas, predicate::intersects));
    EXPECT_EQ(expected.left.where(), residency::host);
    EXPECT_TRUE(std::ranges::equal(got.left, expected.left.host_span()));
    EXPECT_TRUE(std::ranges::equal(got.right, expected.right.host_span()));
    auto const moved = join(on(), there(points), areas, predicate::intersects);
    EXPECT_EQ(moved.error().code(), errc::invalid_argument);
}

// Every filter fails: all points lie on long edges.
TEST_F(spatial_locate, all_of_them_undecided) {
    std::size_t const n = quick() ? 1000 : 1 << 20;
    auto x = buffer<double>::on_host(n), y = buffer<double>::on_host(n);
    for (std::size_t i = 0; i < n; ++i) x.data()[i] = y.data()[i] = static_cast<double>(i % 997) * 0x1p-10 + 0x1p-30;
    auto const areas =
        from_wkt(std::vector<std::string>{"POLYGON ((-3 -3, 5 5, -3 5, -3 -3))", "POLYGON ((-3 -3, 5 -3, 5 5, -3 -3))"})
            .value();
    check(geometries::points(x, y).value(), areas);
}

}  // namespace kiln::device_tests
