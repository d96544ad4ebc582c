// SPDX-License-Identifier: Apache-2.0
// Joins of upright rectangles by their boxes alone, where a queue runs.
#pragma once

#include "spatial/kept_tree.hpp"

#include <kiln/spatial/join.hpp>

namespace kiln::spatial {

// Polygons all of which have one ring of five vertices, as far as their sizes tell: worth a look.
[[nodiscard]] bool may_be_rectangles(geometries const& g) noexcept;

class rectangle_rows {
public:
    // Nothing unless all rows that are there are upright rectangles. Both lie where the queue runs, which is kept by reference. One
    // fence.
    [[nodiscard]] static result<std::optional<rectangle_rows>> make(queue& on, geometries const& left,
                                                                    geometries const& right);
    // In a relation other than disjoint. One fence more than query_boxes() has, none for `intersects`.
    [[nodiscard]] result<pair_list> pairs(predicate what) const;

private:
    explicit rectangle_rows(queue& on) noexcept : on_{&on} {}
    queue* on_;
    buffer<kiln_spatial::box> left_, right_;
};

}  // namespace kiln::spatial
