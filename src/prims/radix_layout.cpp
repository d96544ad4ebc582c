// SPDX-License-Identifier: Apache-2.0
#include "prims/radix_layout.hpp"

namespace kiln::prims {

namespace {
constexpr std::size_t word = sizeof(std::int32_t);
}

radix_constants radix_constants_of(prim_info const& info) noexcept {
    return {info.more[0],
            info.more[1],
            info.more[2],
            info.more[3],
            static_cast<std::size_t>(info.more[3]) * static_cast<std::size_t>(info.more[4]),
            static_cast<std::size_t>(info.more[5])};
}

radix_layout::radix_layout(prim_info const& info, std::size_t value_bytes, std::size_t mapped_bytes, std::size_t items,
                           int bits)
    : n{items}, tile{info.tile()} {
    auto const c = radix_constants_of(info);
    passes = ceil_div(static_cast<std::size_t>(bits), static_cast<std::size_t>(c.radix_bits));
    digits = std::size_t{1} << c.radix_bits;
    // Of much the same size: a small one would take long to clear what a large one looks back at.
    auto const most = ((std::size_t{1} << 28) - 1) / tile * tile;
    portions = ceil_div(n, most);
    portion = tiles(ceil_div(n, portions)) * tile;

    bins = aligned_256(portions * passes * word);
    lookback[0] = bins + aligned_256(portions * passes * digits * c.offset_bytes);
    cleared = lookback[0] + words_of(items_of(0)) * word;
    // Not by the portion, which is half as large where there are two: who has scratch for n has it for less.
    auto const area = aligned_256(words_of(std::min(n, most)) * word);
    lookback[1] = lookback[0] + area;
    keys = lookback[1] + (passes * portions > 1 ? area : 0);
    bool const turns = passes > 1;
    values = keys + (turns ? aligned_256(n * value_bytes) : 0);
    total = values + (turns ? aligned_256(n * mapped_bytes) : 0);
}

radix_layout::areas radix_layout::areas_of(std::size_t pass, std::size_t which) const noexcept {
    auto const sweep = pass * portions + which;
    bool const is_last = sweep + 1 == passes * portions;
    return {lookback[sweep % 2], lookback[(sweep + 1) % 2],
            is_last ? 0 : static_cast<int>(words_of(items_of((which + 1) % portions)))};
}

}  // namespace kiln::prims
