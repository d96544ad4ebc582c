// SPDX-License-Identifier: Apache-2.0
// Matrices of rows, where a queue runs.
#pragma once

#include "spatial/kept_layer.hpp"

#include <kiln/spatial/join.hpp>

namespace kiln::spatial {

struct relations {
    pair_list pairs;                                      // that are not disjoint; row by row: empty
    buffer<std::uint32_t> bits;                           // of matrices; row by row: 0 where one of them is null
    buffer<std::int8_t> left_dimension, right_dimension;  // by row
};
enum class relating : std::uint8_t { all, row_by_row };
[[nodiscard]] result<relations> relate_rows(queue& on, geometries const& left, geometries const& right, relating which);

// Of the pairs those that stand in a relation other than disjoint.
[[nodiscard]] result<pair_list> holding(queue& on, relations const& all, predicate what);

}  // namespace kiln::spatial
