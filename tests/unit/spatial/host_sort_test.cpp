// SPDX-License-Identifier: Apache-2.0
#include "spatial/host_sort.hpp"

#include <gtest/gtest.h>

#include <random>

namespace kiln::spatial_tests {

namespace {

// Few and many, keys of all sizes and with the same digits, some of their bits.
template <class Key>
void check_sorts() {
    std::mt19937_64 random{3};
    for (std::size_t const n : {0, 1, 2, 255, 256, 1000, 20000})
        for (int const shift : {0, 7, 20, static_cast<int>(8 * sizeof(Key)) - 3})
            for (int const bits : {1, 8, 13, static_cast<int>(8 * sizeof(Key))}) {
                if (std::is_signed_v<Key> && bits < static_cast<int>(8 * sizeof(Key))) continue;
                std::vector<spatial::keyed_value<Key>> ours(n);
                for (std::size_t i = 0; i < n; ++i)
                    ours[i] = {static_cast<Key>(static_cast<Key>(random()) >> shift), static_cast<std::int32_t>(i)};
                auto theirs = ours;
                spatial::sort_by_key(ours, bits);
                auto const order_of = [&](Key key) {
                    return bits < static_cast<int>(8 * sizeof(Key))
                               ? static_cast<Key>(static_cast<std::uint64_t>(key) % (std::uint64_t{1} << bits))
                               : key;
                };
                std::stable_sort(theirs.begin(), theirs.end(),
                                 [&](auto const& a, auto const& b) { return order_of(a.key) < order_of(b.key); });
                for (std::size_t i = 0; i < n; ++i) {
                    ASSERT_EQ(ours[i].key, theirs[i].key) << n << " " << shift << " " << bits;
                    ASSERT_EQ(ours[i].value, theirs[i].value) << n << " " << shift << " " << bits;
                }
            }
}

}  // namespace

TEST(host_sort, is_stable_and_by_some_bits_or_all) {
    check_sorts<std::uint64_t>();
    check_sorts<std::int32_t>();
}

}  // namespace kiln::spatial_tests
