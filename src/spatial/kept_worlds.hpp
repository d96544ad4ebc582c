// SPDX-License-Identifier: Apache-2.0
// Rows in worlds that know nothing of each other: row by row, or by key. What is searched for others of its world is kept by world, so that
// worlds which lie at one place cost no more than those that are apart.
#pragma once

#include "spatial/queue.hpp"

namespace kiln::spatial {

struct kept_worlds {
    buffer<std::int32_t> of_row;  // any numbers; of rows that are in none, negative ones
    buffer<std::int32_t> number;  // the same without gaps; of rows that are in none, how many worlds there are
    std::size_t count = 0;
    std::size_t worth_it = always;  // so many of them are kept apart, fewer are told apart where they meet
    bool are_apart = false;

    // Rows by themselves may all lie at one place, and are always kept apart. Keys of a dissolve are few, large and beside each other: keeping
    // `many` of them apart costs less.
    static constexpr std::size_t always = 2, many = 256;
    // Of no numbers: none, all rows are in one. Else one fence.
    [[nodiscard]] static result<kept_worlds> make(queue& on, buffer<std::int32_t> of_row,
                                                  std::size_t worth_it = always);

    [[nodiscard]] bool empty() const noexcept { return of_row.empty(); }
    [[nodiscard]] std::int32_t const* data() const noexcept { return empty() ? nullptr : of_row.data(); }
};

}  // namespace kiln::spatial
