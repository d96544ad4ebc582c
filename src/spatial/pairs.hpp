// SPDX-License-Identifier: Apache-2.0
// What is made of lists of pairs, where a queue runs.
#pragma once

#include "spatial/queue.hpp"

#include <kiln/spatial/join.hpp>

namespace kiln::spatial {

// Pairs in any order, put in order.
[[nodiscard]] result<pair_list> sorted_pairs(queue& on, pair_list const& pairs, std::size_t left_rows,
                                             std::size_t right_rows);

// Of pairs those with a count, which is 0 or 1: `counts` has one more and is summed here. One fence.
[[nodiscard]] result<pair_list> counted_pairs(queue& on, pair_list const& pairs, buffer<std::int64_t> const& counts);
// Whether a count is not 0.
[[nodiscard]] result<buffer<std::uint8_t>> any_of(queue& on, buffer<std::int64_t> const& counts);

// Of pairs that are in order: by left row the lowest right one or -1, whether there is any, how many; by right row how many.
[[nodiscard]] result<buffer<std::int32_t>> firsts_of(queue& on, pair_list const& pairs, std::size_t left_rows);
[[nodiscard]] result<buffer<std::uint8_t>> any_of(queue& on, pair_list const& pairs, std::size_t left_rows);
[[nodiscard]] result<buffer<std::int64_t>> counts_of(queue& on, pair_list const& pairs, std::size_t left_rows);
[[nodiscard]] result<buffer<std::int64_t>> histogram_of(queue& on, pair_list const& pairs, std::size_t right_rows);

}  // namespace kiln::spatial
