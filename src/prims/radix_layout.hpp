// SPDX-License-Identifier: Apache-2.0
//
// How a radix sort that does not fit one block is cut up, and where everything lies in its scratch. Sweeps go over portions of
// fewer than 2^28 items, because the look-back counts with 30 bits: all portions for one digit, then all for the next.
#pragma once

#include "prims/prim_info.hpp"

namespace kiln::prims {

// What the device text names for itself.
struct radix_constants {
    int radix_bits;
    int histogram_threads;
    int sum_threads;
    int small_threads;
    std::size_t small_items;
    std::size_t offset_bytes;
};
[[nodiscard]] radix_constants radix_constants_of(prim_info const& info) noexcept;

struct radix_layout {
    // Of `n` items by `bits` bits, at least one of each.
    radix_layout(prim_info const& info, std::size_t value_bytes, std::size_t mapped_bytes, std::size_t n, int bits);

    std::size_t n;
    std::size_t tile;
    std::size_t passes;
    std::size_t digits;
    std::size_t portions;
    std::size_t portion;  // items of all but the last, which may have fewer

    // Bytes from the beginning: counters, bins, two areas to look back at, which sweeps use in turn, then room for keys and
    // values. Up to `cleared` zeros are needed before the first kernel.
    std::size_t bins;
    std::size_t lookback[2];
    std::size_t keys;
    std::size_t values;
    std::size_t total;
    std::size_t cleared;

    [[nodiscard]] std::size_t tiles(std::size_t items) const noexcept { return ceil_div(items, tile); }
    [[nodiscard]] std::size_t items_of(std::size_t which) const noexcept {
        return std::min(n - which * portion, portion);
    }

    // What a sweep looks back at, and what it clears for the one after it.
    struct areas {
        std::size_t own;
        std::size_t next;
        int next_words;
    };
    [[nodiscard]] areas areas_of(std::size_t pass, std::size_t which) const noexcept;

private:
    [[nodiscard]] std::size_t words_of(std::size_t items) const noexcept { return tiles(items) * digits; }
};

}  // namespace kiln::prims
