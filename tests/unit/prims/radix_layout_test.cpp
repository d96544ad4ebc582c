// SPDX-License-Identifier: Apache-2.0
#include "prims/radix_layout.hpp"

#include <gmock/gmock.h>
#include <map>

namespace kiln::prims {

namespace {

// As for i32 with i32 on sm_90: tiles of 384 * 23 items, digits of 8 bits, offsets of 4 bytes.
prim_info const info{384, 23, {8, 256, 256, 256, 19, 4}};
constexpr std::size_t tile = std::size_t{384} * 23;
constexpr std::size_t most = ((std::size_t{1} << 28) - 1) / tile * tile;

radix_layout layout(std::size_t n, int bits = 32) { return {info, 4, 4, n, bits}; }

std::vector<std::size_t> const sizes{1,
                                     tile,
                                     tile + 1,
                                     1'000'000,
                                     most - 1,
                                     most,
                                     most + 1,
                                     std::size_t{1} << 28,
                                     (std::size_t{1} << 28) + 5,
                                     2 * most,
                                     2 * most + 1,
                                     3 * most + 7,
                                     std::size_t{1} << 31};

}  // namespace

TEST(radix_layout, portions_are_of_one_size_and_hold_everything) {
    for (auto const n : sizes) {
        auto const l = layout(n);
        EXPECT_LE(l.portion, most) << n;
        EXPECT_EQ(l.portion % tile, 0U) << n;
        std::size_t sum = 0;
        for (std::size_t p = 0; p < l.portions; ++p) {
            EXPECT_GT(l.items_of(p), 0U) << n;
            EXPECT_LE(l.portion - l.items_of(p), l.portions * tile) << n;
            sum += l.items_of(p);
        }
        EXPECT_EQ(sum, n);
    }
}

TEST(radix_layout, whoever_has_scratch_for_many_items_has_it_for_fewer_and_by_fewer_bits) {
    std::size_t before = 0;
    for (auto const n : sizes) {
        EXPECT_GE(layout(n).total, before) << n;
        before = layout(n).total;
        for (int bits = 1; bits <= 32; ++bits) EXPECT_LE(layout(n, bits).total, layout(n).total) << n << " by " << bits;
    }
}

TEST(radix_layout, every_sweep_looks_back_at_what_was_cleared_for_it) {
    for (auto const n : sizes) {
        for (int const bits : {1, 8, 9, 32}) {
            auto const l = layout(n, bits);
            auto const where = testing::Message() << n << " items by " << bits << " bits";
            EXPECT_EQ(l.lookback[0] % 256, 0U) << where;
            // Bytes that are zero, by the area they begin.
            std::map<std::size_t, std::size_t> zeros{{l.lookback[0], l.cleared - l.lookback[0]}};
            for (std::size_t pass = 0; pass < l.passes; ++pass) {
                for (std::size_t p = 0; p < l.portions; ++p) {
                    auto const areas = l.areas_of(pass, p);
                    auto const needed = l.tiles(l.items_of(p)) * l.digits * sizeof(std::int32_t);
                    EXPECT_EQ(zeros[areas.own], needed) << where << ", sweep " << pass << " of portion " << p;
                    zeros[areas.own] = 0;
                    auto const clears = static_cast<std::size_t>(areas.next_words) * sizeof(std::int32_t);
                    zeros[areas.next] = clears;
                    auto const end = areas.next == l.lookback[0] ? l.lookback[1] : l.keys;
                    EXPECT_TRUE(clears == 0 || areas.next + clears <= end) << where;
                }
            }
            EXPECT_LE(l.cleared, l.lookback[1]) << where;
            for (auto const& [area, bytes] : zeros) EXPECT_EQ(bytes, 0U) << where << ": cleared for nobody";
        }
    }
}

}  // namespace kiln::prims
