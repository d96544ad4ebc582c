// SPDX-License-Identifier: Apache-2.0
// What to put over each other, and in which ways.
#pragma once

#include <kiln/spatial/overlay.hpp>

#include <array>
#include <cmath>
#include <numbers>
#include <random>

namespace kiln::spatial_tests {

inline constexpr std::array all_kinds_of_overlay{
    spatial::overlay_kind::intersection,         spatial::overlay_kind::union_,   spatial::overlay_kind::difference,
    spatial::overlay_kind::symmetric_difference, spatial::overlay_kind::identity, spatial::overlay_kind::update};

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
