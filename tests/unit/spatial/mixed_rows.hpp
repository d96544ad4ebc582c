// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "samples.hpp"

#include <kiln/spatial/wkt.hpp>

namespace kiln::spatial_tests {

// Rows of all families in turn, as one array.
inline spatial::geometries lattice_of_all_families(lattice_options const& how) {
    std::vector<std::vector<std::string>> texts;
    for (int kind = 1; kind <= 6; ++kind)
        texts.push_back(spatial::to_wkt(lattice(static_cast<spatial::family>(kind), how)).value());
    std::vector<std::string> out;
    for (std::size_t i = 0; i < how.rows; ++i) out.push_back(texts[i % texts.size()][i]);
    return spatial::from_wkt(out).value();
}

}  // namespace kiln::spatial_tests
