// SPDX-License-Identifier: Apache-2.0
// Sorts compared with the processor's: shared by the tests of radix and of merge sorts.
#pragma once

#include "device/prims/prims_fixture.hpp"

namespace kiln {
struct ranked {
    float score;
    std::int32_t id;
    std::int32_t pad[6];
};
template <>
struct device_type<ranked> {
    static constexpr std::string_view name = "ranked",
                                      definition = "struct ranked { float score; int id; int pad[6]; };";
};
}  // namespace kiln

namespace kiln::device_tests {

class sorts : public prims_test {
protected:
    template <class Up, class Down>
    void check_order(Up make_up, Down make_down);

    template <class V>
    static std::vector<V> numbered(std::size_t n) {
        std::vector<V> out(n);
        for (std::size_t i = 0; i < n; ++i) {
            out[i] = {};
            auto const number = static_cast<std::uint32_t>(i);
            std::memcpy(&out[i], &number, std::min(sizeof(V), sizeof(number)));
        }
        return out;
    }

    template <class K, class V, class Handle, class Less>
    void check_pairs(Handle const& sort, std::vector<K> const& keys, Less by, std::string const& what,
                     int first_bit = 0, int last_bit = -1) {
        auto const n = keys.size();
        auto const values = numbered<V>(n);
        device_vector<K> const keys_in{on(), keys};
        device_vector<V> const values_in{on(), values};
        device_vector<K> keys_out{n};
        device_vector<V> values_out{n};
        keys_out.poison(on());
        sort(on(), {.keys_in = keys_in.in(),
                    .keys_out = keys_out.data(),
                    .values_in = values_in.data(),
                    .values_out = values_out.data(),
                    .first_bit = first_bit,
                    .last_bit = last_bit})
            .value();
        std::vector<K> keys_expected(n);
        std::vector<V> values_expected(n);
        cpu::sort_pairs<K, V>(keys, values, keys_expected, values_expected, by);
        EXPECT_TRUE(equals(what + ", keys", keys_expected, keys_out.get(on())));
        EXPECT_TRUE(equals(what + ", values", values_expected, values_out.get(on())));
        EXPECT_TRUE(equals(what + ", input keys", keys, keys_in.get(on())));
        EXPECT_TRUE(equals(what + ", input values", values, values_in.get(on())));
    }

    template <class K, class Handle, class Less>
    void check_keys(Handle const& sort, std::vector<K> const& keys, Less by, std::string const& what) {
        device_vector<K> const keys_in{on(), keys};
        device_vector<K> keys_out{keys.size()};
        sort(on(), {.keys_in = keys_in.in(), .keys_out = keys_out.data()}).value();
        std::vector<K> expected(keys.size());
        cpu::sort_keys<K>(keys, expected, by);
        EXPECT_TRUE(equals(what, expected, keys_out.get(on())));
    }

    // The reference takes a second per million items: fewer patterns on large ones.
    static std::vector<pattern> patterns_for(std::size_t n) {
        if (n < 100'000 && !quickest()) return {std::begin(all_patterns), std::end(all_patterns)};
        return {pattern::random};
    }
    static std::vector<std::size_t> sort_sizes(std::size_t tile) {
        if (quickest()) return {33, tile + 1};
        std::vector<std::size_t> out{0, 1, 2, 33, tile - 1, tile, tile + 1, 3 * tile + 7};
        if (!quick()) out.push_back(61 * tile + 5);
        return out;
    }

    template <class K, class V>
    void check_radix() {
        auto const [up, down, alone] =
            make_together([] { return radix_sort<K, V>(); }, [] { return radix_sort<K, V>(sort_order::descending); },
                          [] { return radix_sort<K>(); });
        for (auto const n : sort_sizes(up.tile_items())) {
            for (auto const p : patterns_for(n)) {
                auto const keys = make_data<K>(n, p, n + 1);
                check_pairs<K, V>(up, keys, cpu::radix_less<K>(cpu::sort_direction::ascending), at(up.name(), n, p));
                check_pairs<K, V>(down, keys, cpu::radix_less<K>(cpu::sort_direction::descending),
                                  at(down.name(), n, p));
                check_keys<K>(alone, keys, cpu::radix_less<K>(cpu::sort_direction::ascending), at(alone.name(), n, p));
            }
        }
    }
};

// The passes of a sort begin before the ones ahead of them have ended. Here each call reads what the call before it in the
// stream writes, through the same scratch, with nothing in between that waits.
template <class Up, class Down>
void sorts::check_order(Up make_up, Down make_down) {
    if (quickest()) GTEST_SKIP() << "is about the order of kernels, and long";
    auto const [up, down, sums] = make_together(make_up, make_down, [] { return inclusive_scan<std::int32_t>(plus); });
    for (std::size_t const n : {up.tile_items() + 1, 2 * up.tile_items(), 9 * up.tile_items() + 3,
                                quick() ? 20 * up.tile_items() : std::size_t{1} << 20}) {
        auto const data = make_data<std::int32_t>(n, pattern::random, n);
        std::vector<std::int32_t> expected(n);
        cpu::inclusive_scan<std::int32_t>(data, std::span{expected}, cpu::plus);
        std::sort(expected.begin(), expected.end());
        device_vector<std::int32_t> const in{on(), data};
        device_vector<std::int32_t> a{n};
        device_vector<std::int32_t> b{n};
        for (int round = 0; round < 10; ++round) {
            a.poison(on());
            b.poison(on());
            sums(on(), in.in(), a.span()).value();
            for (int i = 0; i < 5; ++i) {
                down(on(), {.keys_in = a.in(), .keys_out = b.data()}).value();
                up(on(), {.keys_in = b.in(), .keys_out = a.data()}).value();
            }
            ASSERT_TRUE(equals("sorted up and down, n = " + std::to_string(n), expected, a.get(on())));
        }
    }
}

}  // namespace kiln::device_tests
