// SPDX-License-Identifier: Apache-2.0
// Matrices of rows, where a queue runs.
#pragma once

#include "spatial/area_index.hpp"

#include <kiln/spatial/join.hpp>

namespace kiln::spatial {

struct relations {
    pair_list pairs;                                      // that are not disjoint; row by row: empty
    buffer<std::uint32_t> bits;                           // of matrices; row by row: 0 where one of them is null
    buffer<std::int8_t> left_dimension, right_dimension;  // by row
};
enum class relating : std::uint8_t { all, row_by_row };
[[nodiscard]] result<relations> relate_rows(queue& on, geometries const& left, geometries const& right, relating which);

// The right side of many questions, all of which want all pairs: noded, with the tree over its elements and the index of its areas.
struct relate_target {
    geometries of;
    kept_layer layer;
    std::shared_ptr<area_index::state const> areas;  // where there may be some

    [[nodiscard]] static result<relate_target> make(queue& on, geometries const& right);
};
[[nodiscard]] result<relations> relate_rows(queue& on, geometries const& left, relate_target const& right);

// Of the pairs those that stand in a relation other than disjoint.
class rows_holding {
public:
    // The queue is kept by reference.
    rows_holding(queue& on, relations all, predicate what, std::size_t left_rows, std::size_t right_rows)
        : on_{&on}, all_{std::move(all)}, what_{what}, left_rows_{left_rows}, right_rows_{right_rows} {}

    // One fence.
    [[nodiscard]] result<pair_list> pairs();
    [[nodiscard]] result<buffer<std::int32_t>> first();
    // These list nothing, and wait for nothing.
    [[nodiscard]] result<buffer<std::int64_t>> count() { return count(all_.pairs.left, left_rows_); }
    [[nodiscard]] result<buffer<std::uint8_t>> any();
    [[nodiscard]] result<buffer<std::int64_t>> histogram() { return count(all_.pairs.right, right_rows_); }

private:
    [[nodiscard]] result<buffer<std::int64_t>> count(buffer<std::int32_t> const& row, std::size_t rows);

    queue* on_;
    relations all_;
    predicate what_;
    std::size_t left_rows_, right_rows_;
};

}  // namespace kiln::spatial
