// SPDX-License-Identifier: Apache-2.0
// Geometries to try things on: random ones on a small lattice, where every degeneracy is common, and layers from files.
#pragma once

#include <kiln/spatial/join.hpp>

#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

namespace kiln::spatial_tests {

// Valid geometries of one family with whole coordinates from 0 to `size`; a few are empty or null if asked.
struct lattice_options {
    std::size_t rows = 100;
    int size = 6;
    unsigned seed = 1;
    int empty_per_mille = 0, null_per_mille = 0;
};
spatial::geometries lattice(spatial::family kind, lattice_options const& how);

// Rows that matrices refuse, with part of the reason; and rows that are close to it, and have their matrices.
struct refused_area {
    std::string area, why;
};
std::vector<refused_area> const& areas_without_borders();
std::vector<std::string> const& areas_that_touch_themselves();
// The same memory, as an array about which nothing was found out.
spatial::geometries anew(spatial::geometries const& g);
// A text as the one row it is.
spatial::geometries row_of(std::string const& text);
// Rings of any kind on a small lattice, most of them no borders: each row one or two polygons of one or two rings.
spatial::geometries rings_of_any_kind(std::size_t rows, unsigned seed);

// Lines long enough to have several blocks and groups, one beside the other from x = at on.
spatial::geometries spirals(std::size_t rows, int points, double at);

// Pairs to compare, from wherever they come.
struct plain_pairs {
    std::vector<std::int32_t> left, right;
    bool operator==(plain_pairs const&) const = default;
};
inline std::ostream& operator<<(std::ostream& to, plain_pairs const& p) {
    to << p.left.size() << " pairs:";
    for (std::size_t i = 0; i < p.left.size() && i < 12; ++i) to << " " << p.left[i] << "," << p.right[i];
    return to;
}
template <class T>
std::vector<T> values_of(buffer<T> const& b) {
    return {b.host_span().begin(), b.host_span().end()};
}
inline plain_pairs values_of(spatial::pair_list const& p) { return {values_of(p.left), values_of(p.right)}; }
inline plain_pairs values_of(std::vector<spatial::row_pair> const& pairs) {
    plain_pairs out;
    for (auto const& p : pairs) out.left.push_back(p.left), out.right.push_back(p.right);
    return out;
}

// One of the layers of KILN_SPATIAL_DATA; nothing where it is not there.
std::optional<spatial::geometries> real_layer(std::string const& name);

}  // namespace kiln::spatial_tests
