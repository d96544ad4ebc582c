// SPDX-License-Identifier: Apache-2.0
// Circles as polygons: their corners, whoever draws them.
#pragma once

#include "support.cuh"

namespace kiln_spatial {

enum : i32 { most_quarter = 32 };
// Corners of a quarter of a circle, from (1, 0) on: the others follow by turning it.
struct quarter_circle {
    double cosine[most_quarter + 1];
    i32 steps;
    KILN_HD point corner(i32 k) const {
        i32 const quarter = k / steps % 4, step = k % steps;
        double const c = cosine[step], s = cosine[steps - step];
        // Clockwise, as GEOS has it.
        return quarter == 0 ? point{c, -s} : quarter == 1 ? point{-s, -c} : quarter == 2 ? point{-c, s} : point{s, c};
    }
};

}  // namespace kiln_spatial
