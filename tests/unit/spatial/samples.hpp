// SPDX-License-Identifier: Apache-2.0
// Geometries to try things on: random ones on a small lattice, where every degeneracy is common, and layers from files.
#pragma once

#include <kiln/spatial/geometry.hpp>

#include <optional>
#include <random>
#include <string>

namespace kiln::spatial_tests {

// Valid geometries of one family with whole coordinates from 0 to `size`; a few are empty or null if asked.
struct lattice_options {
    std::size_t rows = 100;
    int size = 6;
    unsigned seed = 1;
    int empty_per_mille = 0, null_per_mille = 0;
};
spatial::geometries lattice(spatial::family kind, lattice_options const& how);

// One of the layers of KILN_SPATIAL_DATA; nothing where it is not there.
std::optional<spatial::geometries> real_layer(std::string const& name);

}  // namespace kiln::spatial_tests
