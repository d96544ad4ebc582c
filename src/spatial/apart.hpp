// SPDX-License-Identifier: Apache-2.0
// Rows that are disjoint, where a queue runs: all pairs but those that meet.
#pragma once

#include "spatial/kept_layer.hpp"

#include <kiln/spatial/join.hpp>

namespace kiln::spatial {

class rows_apart {
public:
    // Both lie where the queue runs, which is kept by reference.
    [[nodiscard]] static result<rows_apart> make(queue& on, geometries const& left, geometries const& right);

    [[nodiscard]] result<pair_list> pairs() { return pairs(0, left_rows_); }
    // Of left rows `first` to before `last`. One fence.
    [[nodiscard]] result<pair_list> pairs(std::size_t first, std::size_t last);
    // These list nothing.
    [[nodiscard]] result<buffer<std::int32_t>> first();
    [[nodiscard]] result<buffer<std::int64_t>> count();
    [[nodiscard]] result<buffer<std::uint8_t>> any();
    [[nodiscard]] result<buffer<std::int64_t>> histogram();

private:
    explicit rows_apart(queue& on) noexcept : on_{&on} {}
    [[nodiscard]] result<void> place_all();

    queue* on_;
    std::size_t left_rows_ = 0, right_rows_ = 0;
    buffer<std::uint8_t> left_state_, right_state_;
    pair_list met_;
    buffer<std::int64_t> met_at_, right_rank_, left_rank_, place_;
};

}  // namespace kiln::spatial
