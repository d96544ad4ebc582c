// SPDX-License-Identifier: Apache-2.0
// What to put over each other, and in which ways.
#pragma once

#include <kiln/spatial/overlay.hpp>

#include <array>
#include <cmath>
#include <numbers>
#include <random>
#include <string>
#include <vector>

namespace kiln::spatial_tests {

// One unit in the last place: the crossing, rounded, is the hole's vertex.
inline std::string const hole_just_outside{
    "POLYGON ((0.5 0.5, 0.9 0.5, 0.8999999999999998 0.8999999999999998, 0.5000000000000002 0.8999999999999999, 0.5 "
    "0.5), (0.6000000000000002 0.8, 0.8000000000000002 0.6000000000000001, 0.6000000000000001 0.8999999999999999, "
    "0.6000000000000002 0.8))"};
// Along a road in degrees, back and forth: its crossings with itself, rounded, move others without end.
inline std::string const back_and_forth{
    "LINESTRING (8.536031186422791 50.38687050846691, 8.61925089248251 50.422536096778224, "
    "8.656635495895987 50.43855806966971, 8.759715198643935 50.482735085133115, "
    "8.61792900231795 50.42196957242198, 8.745627497665792 50.47669749899963, 8.12030365979853 50.20870156848509, "
    "8.425935858064673 50.33968679631344, 8.76034970189882 50.483007015099496, "
    "8.554282187195847 50.39469236594108, 8.730630344225435 50.47027014752519, 8.179244175257201 50.23396178939595)"};

inline constexpr std::array all_kinds_of_overlay{
    spatial::overlay_kind::intersection,         spatial::overlay_kind::union_,   spatial::overlay_kind::difference,
    spatial::overlay_kind::symmetric_difference, spatial::overlay_kind::identity, spatial::overlay_kind::update};

// Polygons whose corners are those of one, or up to two units in the last place beside them: rounded crossings move others, again and again, and
// some of a few such rows together come to rest only on a grid.
inline spatial::geometries nearly_the_same(std::size_t rows, unsigned seed, double scale = 1) {
    constexpr int corners = 9;
    std::mt19937_64 random{seed}, of_shape{7};
    auto const beside = [&](double v) {
        for (auto left = random() % 3; left > 0; --left) v = std::nextafter(v, random() % 2 == 0 ? 9.0 : -9.0);
        return v;
    };
    std::vector<std::array<double, 2>> shape;
    for (int k = 0; k < corners; ++k) {
        double const angle = 2 * std::numbers::pi * (k + 0.3) / corners,
                     far = 0.3 + static_cast<double>(of_shape()) * 0x1p-64;
        shape.push_back({far * std::cos(angle), far * std::sin(angle)});
    }
    spatial::geometry_builder to;
    for (std::size_t i = 0; i < rows; ++i) {
        to.begin(spatial::family::polygon), to.begin_ring();
        std::array<double, 2> first{};
        for (std::size_t k = 0; k < shape.size(); ++k) {
            std::array<double, 2> const at{beside(shape[k][0]), beside(shape[k][1])};
            if (k == 0) first = at;
            to.vertex(scale * at[0], scale * at[1]);
        }
        to.vertex(scale * first[0], scale * first[1]), to.end();
    }
    return to.finish(spatial::family::polygon).value();
}

// Rings around random places with corners at random distances: they overlap, and cross all over.
struct star_options {
    std::size_t rows = 20;
    unsigned seed = 1;
    double size = 0.3;   // how far away a corner is at most
    double nearest = 2;  // at least that, divided by this
    double width = 1;    // of where they are; 1 is the height
    bool holes = true;   // in every other one
};
inline spatial::geometries stars(star_options const& how) {
    std::mt19937_64 random{how.seed};
    auto const real = [&](double from, double to) {
        return from + (to - from) * static_cast<double>(random()) * 0x1p-64;
    };
    spatial::geometry_builder to;
    for (std::size_t i = 0; i < how.rows; ++i) {
        double const x = real(0, how.width), y = real(0, 1);
        int const corners = 5 + static_cast<int>(random() % 20);
        auto const add_ring = [&](double least, double most) {
            to.begin_ring();
            double first_x = 0, first_y = 0;
            for (int k = 0; k < corners; ++k) {
                double const angle = 2 * std::numbers::pi * k / corners, far = real(least, most);
                double const px = x + far * std::cos(angle), py = y + far * std::sin(angle);
                if (k == 0) first_x = px, first_y = py;
                to.vertex(px, py);
            }
            to.vertex(first_x, first_y);
        };
        to.begin(spatial::family::polygon);
        add_ring(how.size / how.nearest, how.size);
        if (how.holes && random() % 2 != 0) add_ring(how.size / 8, how.size / 4);
        to.end();
    }
    return to.finish(spatial::family::polygon).value();
}

}  // namespace kiln::spatial_tests
