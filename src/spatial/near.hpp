// SPDX-License-Identifier: Apache-2.0
// Nearest rows, where a queue runs.
#pragma once

#include "spatial/kept_elements.hpp"

#include <kiln/spatial/nearest.hpp>

namespace kiln::spatial {

// From so many rows on, asking them in order of place is worth putting them so.
inline constexpr std::size_t worth_sorting = 1 << 18;
// Whether rows of it may be areas, inside which everything is at no distance.
[[nodiscard]] bool has_areas(geometries const& g);
// The greatest square whose root, as it is reported, is no more than a distance: its own square, rounded, may be less.
[[nodiscard]] double greatest_square_within(double distance);

// One nearest row for each, or all that are as near. Both lie where the queue runs.
[[nodiscard]] result<near_list> nearest_rows_of(queue& on, geometries const& left, geometries const& right,
                                                nearest_options const& how);

// What is asked for its nearest rows, with the tree over its elements: made once for many questions.
struct near_target {
    kept_layer layer;
    kept_elements elements;
    [[nodiscard]] static result<near_target> make(queue& on, geometries const& right);
};
[[nodiscard]] result<near_list> nearest_rows_of(queue& on, geometries const& left, geometries const& right,
                                                near_target const& target, nearest_options const& how);

}  // namespace kiln::spatial
