// SPDX-License-Identifier: Apache-2.0
// Lists of pairs a few left rows at a time, so that no list outgrows the memory it may take.
#pragma once

#include "spatial/queue.hpp"

#include <kiln/spatial/join.hpp>

#include <functional>

namespace kiln::spatial {

class row_slices {
public:
    // Of geometries that lie where the queue runs, which is kept by reference.
    [[nodiscard]] static result<row_slices> make(queue& on, geometries const& of);

    // Rows `first` to before `last`, as a view.
    [[nodiscard]] result<geometries> slice(std::size_t first, std::size_t last) const;
    // Left rows of a slice become those of the whole.
    [[nodiscard]] result<void> shift(pair_list const& pairs, std::size_t first) const;

private:
    explicit row_slices(queue& on) noexcept : on_{&on} {}
    queue* on_;
    geometries memory_;  // without a view
    buffer<std::int32_t> numbers_;
};

using list_rows = std::function<result<pair_list>(std::size_t first, std::size_t last)>;
using take_pairs = std::function<result<void>(pair_list const&)>;
// Goes through `rows` left rows in order. `list` fails with errc::out_of_memory where a slice is too large, which is then halved, down
// to one row; after a success the next one is larger.
[[nodiscard]] result<void> for_slices(std::size_t rows, list_rows const& list, take_pairs const& take);

// What one list may take where all of them together may take `most` bytes: an algorithm has no more than this many at once.
inline constexpr std::size_t lists_at_once = 6;

}  // namespace kiln::spatial
