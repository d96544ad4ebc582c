// SPDX-License-Identifier: Apache-2.0
//
// The spatial pack's CPU variants, in seconds of processor time and one thread, beside Shapely's: bench/spatial_cpu/shapely_joins.py runs
// the same joins on the same data. Layers are what tests/unit/spatial/unpack_layer.py makes.
//
//     bench_spatial_cpu FOLDER_OF_LAYERS [name]
#include "spatial/generators.hpp"

#include <kiln/spatial/locate.hpp>
#include <kiln/spatial/nearest.hpp>
#include <kiln/spatial/relate.hpp>

#include <cmath>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace kiln;
using namespace kiln::spatial;

geometries layer_of(std::string const& file) {
    if (auto found = spatial_bench::read_layer(file)) return *std::move(found);
    throw error{errc::not_found, file + ": not there; unpack_layer.py makes it"};
}

// The same numbers as in the script.
class numbers {
public:
    explicit numbers(std::uint64_t seed) : state_{seed} {}
    double in(double from, double to) {
        state_ = state_ * 6364136223846793005U + 1442695040888963407U;
        return from + (to - from) * static_cast<double>(state_ >> 11) * 0x1p-53;
    }

private:
    std::uint64_t state_;
};
struct extent {
    double x0, y0, x1, y1;
};
constexpr extent world{-180, -90, 180, 84}, states{-125, 25, -67, 49}, unit{0, 0, 1, 1};

geometries random_points(std::size_t n, extent e, std::uint64_t seed) {
    numbers random{seed};
    auto x = buffer<double>::on_host(n), y = buffer<double>::on_host(n);
    for (std::size_t i = 0; i < n; ++i) x.data()[i] = random.in(e.x0, e.x1), y.data()[i] = random.in(e.y0, e.y1);
    return geometries::points(std::move(x), std::move(y)).value();
}
geometries random_lines(std::size_t n, extent e, double length, std::uint64_t seed) {
    numbers random{seed};
    geometry_builder to;
    for (std::size_t i = 0; i < n; ++i) {
        double const x = random.in(e.x0, e.x1), y = random.in(e.y0, e.y1);
        double const dx = random.in(-length, length), dy = random.in(-length, length);
        to.begin(family::linestring), to.vertex(x, y), to.vertex(x + dx, y + dy), to.end();
    }
    return to.finish().value();
}
geometries random_squares(std::size_t n, double side, std::uint64_t seed) {
    numbers random{seed};
    geometry_builder to;
    for (std::size_t i = 0; i < n; ++i) {
        double const x = random.in(0, 1), y = random.in(0, 1);
        to.begin(family::polygon), to.begin_ring();
        to.vertex(x, y), to.vertex(x + side, y), to.vertex(x + side, y + side), to.vertex(x, y + side), to.vertex(x, y),
            to.end();
    }
    return to.finish().value();
}

struct runner {
    std::string only;
    void operator()(char const* name, std::function<std::size_t()> const& work) const {
        if (!only.empty() && only != name) return;
        auto const begin = std::clock();
        auto const pairs = work();
        std::printf("%-28s %9.3f s %10zu pairs\n", name, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC,
                    pairs);
        std::fflush(stdout);
    }
};

}  // namespace

int main(int count, char** arguments) try {
    if (count < 2) return std::fprintf(stderr, "usage: bench_spatial_cpu FOLDER_OF_LAYERS [name]\n"), 2;
    std::string const folder = arguments[1];
    auto const earth = layer_of(folder + "/ne110.layer"), old = layer_of(folder + "/county2010.layer"),
               now = layer_of(folder + "/county2016.layer");
    runner const run{count > 2 ? arguments[2] : ""};
    auto const join = [](geometries const& a, geometries const& b, predicate p) {
        return cpu::join(a, b, p).value().size();
    };
    auto const on_earth = random_points(1 << 20, world, 1), on_states = random_points(1 << 20, states, 2);
    run("points_earth", [&] { return join(earth, on_earth, predicate::contains); });
    run("points_counties", [&] { return join(now, on_states, predicate::contains); });
    run("earth_earth", [&] { return join(earth, earth, predicate::intersects); });
    run("counties_intersects", [&] { return join(old, now, predicate::intersects); });
    run("counties_overlaps", [&] { return join(old, now, predicate::overlaps); });
    run("counties_relate", [&] { return cpu::relate_join(old, now).value().size(); });
    auto const short_lines = random_lines(100'000, states, 0.2, 3);
    run("lines_counties", [&] { return join(short_lines, now, predicate::intersects); });
    auto const squares = random_squares(100'000, 0.005, 4);
    run("squares_squares", [&] { return join(squares, squares, predicate::intersects); });
    auto const places = random_points(100'000, unit, 5), roads = random_lines(100'000, unit, 0.004, 6);
    run("nearest_lines", [&] { return cpu::nearest(places, roads).value().size(); });
    run("nearest_points", [&] { return cpu::nearest(places, random_points(100'000, unit, 7)).value().size(); });
    run("dwithin_lines", [&] { return cpu::join_within(places, roads, 0.003).value().size(); });
    return 0;
} catch (error const& e) {
    return std::fprintf(stderr, "%s\n", e.what()), 1;
}
