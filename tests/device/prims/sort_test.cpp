// SPDX-License-Identifier: Apache-2.0
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

namespace {

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

}  // namespace

TEST_F(sorts, radix_of_32_bit_integers) {
    check_radix<std::int32_t, std::int32_t>();
    check_radix<std::uint32_t, std::uint64_t>();
}
TEST_F(sorts, radix_of_64_bit_integers) {
    check_radix<std::uint64_t, std::int32_t>();
    check_radix<std::int64_t, double>();
}
TEST_F(sorts, radix_of_8_and_16_bit_integers) {
    check_radix<std::int8_t, std::int32_t>();
    check_radix<std::uint16_t, std::uint8_t>();
}
TEST_F(sorts, radix_of_floats) {
    check_radix<float, std::int32_t>();
    check_radix<double, std::int32_t>();
    check_radix<f16, std::int32_t>();
    check_radix<bf16, std::int32_t>();
}
TEST_F(sorts, radix_with_large_values) { check_radix<std::uint32_t, ranked>(); }

TEST_F(sorts, radix_by_some_of_the_bits) {
    auto const sort = made(radix_sort<std::uint32_t, std::int32_t>());
    for (std::size_t const n : {5UL, 3000UL, 100'001UL}) {
        auto const keys = make_data<std::uint32_t>(n, pattern::random, n);
        for (auto const& [first, last] :
             {std::pair{0, 32}, {0, 8}, {4, 12}, {7, 8}, {13, 30}, {31, 32}, {0, 0}, {32, 32}}) {
            check_pairs<std::uint32_t, std::int32_t>(
                sort, keys, cpu::radix_less<std::uint32_t>(cpu::sort_direction::ascending, first, last),
                "bits " + std::to_string(first) + " to " + std::to_string(last) + " of " + std::to_string(n), first,
                last);
        }
    }
    device_vector<std::uint32_t> const one{1};
    for (auto const& [first, last] : {std::pair{-1, 5}, {5, 4}, {0, 33}}) {
        auto const bad = sort(
            on(), {.keys_in = one.in(), .keys_out = one.data(), .first_bit = first, .last_bit = last == 4 ? 4 : last});
        EXPECT_EQ(bad.error().code(), errc::invalid_argument) << first << " " << last;
    }
}

TEST_F(sorts, merge_by_less_and_greater) {
    auto const [up, down, alone, floats] =
        make_together([] { return merge_sort<std::uint64_t, std::int32_t>(); },
                      [] { return merge_sort<std::int32_t, std::int32_t>(greater); },
                      [] { return merge_sort<std::int16_t>(); }, [] { return merge_sort<float, double>(); });
    for (auto const n : sort_sizes(up.tile_items())) {
        for (auto const p : patterns_for(n)) {
            check_pairs<std::uint64_t, std::int32_t>(up, make_data<std::uint64_t>(n, p, n + 1), cpu::less,
                                                     at(up.name(), n, p));
            check_pairs<std::int32_t, std::int32_t>(down, make_data<std::int32_t>(n, p, n + 2), cpu::greater,
                                                    at(down.name(), n, p));
            check_keys<std::int16_t>(alone, make_data<std::int16_t>(n, p, n + 3), cpu::less, at(alone.name(), n, p));
            // NaN has no place in an order; what the sort does with it is not promised.
            if (p != pattern::special)
                check_pairs<float, double>(floats, make_data<float>(n, p, n + 4), cpu::less, at(floats.name(), n, p));
        }
    }
}

TEST_F(sorts, merge_is_stable_by_an_order_that_ties) {
    auto const sort = made(merge_sort<std::int32_t, std::int32_t>(op{"(a & s) < (b & s)"}.with(15)));
    for (auto const n : sort_sizes(sort.tile_items())) {
        check_pairs<std::int32_t, std::int32_t>(
            sort, make_data<std::int32_t>(n, pattern::random, n), [](int a, int b) { return (a & 15) < (b & 15); },
            "by four bits, n = " + std::to_string(n));
    }
}

TEST_F(sorts, merge_of_structs) {
    auto const sort = made(merge_sort<ranked>(op{"a.score != b.score ? a.score < b.score : a.id < b.id"}));
    for (auto const n : sort_sizes(sort.tile_items())) {
        std::vector<ranked> keys(n);
        numbers g{n + 1};
        for (auto& k : keys)
            k = {static_cast<float>(g.next() % 50), static_cast<std::int32_t>(g.next() % 1000), {1, 2, 3, 4, 5, 6}};
        check_keys<ranked>(
            sort, keys,
            [](ranked const& a, ranked const& b) { return a.score != b.score ? a.score < b.score : a.id < b.id; },
            "structs, n = " + std::to_string(n));
    }
}

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
TEST_F(sorts, merge_waits_for_what_is_ahead_of_it_in_the_stream) {
    check_order([] { return merge_sort<std::int32_t>(less); }, [] { return merge_sort<std::int32_t>(greater); });
}
TEST_F(sorts, radix_waits_for_what_is_ahead_of_it_in_the_stream) {
    check_order([] { return radix_sort<std::int32_t>(sort_order::ascending); },
                [] { return radix_sort<std::int32_t>(sort_order::descending); });
}

TEST_F(sorts, with_64_bit_offsets) {
    prim_options const wide{.items = item_range::wide};
    auto const [radix, merge] =
        make_together([&] { return radix_sort<std::int32_t, std::int32_t>(sort_order::ascending, wide); },
                      [&] { return merge_sort<std::int32_t, std::int32_t>(less, wide); });
    for (auto const n : sort_sizes(radix.tile_items())) {
        auto const keys = make_data<std::int32_t>(n, pattern::random, n);
        check_pairs<std::int32_t, std::int32_t>(radix, keys, cpu::less, "wide radix, n = " + std::to_string(n));
        check_pairs<std::int32_t, std::int32_t>(merge, keys, cpu::less, "wide merge, n = " + std::to_string(n));
    }
}

namespace {

class uniques : public prims_test {
protected:
    template <class K, class V>
    void check_unique(unique_by_key_handle<K, V> const& unique, std::vector<K> const& keys, auto const& by,
                      std::string const& what) {
        auto const n = keys.size();
        std::vector<V> values(n);
        for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<V>(i);
        device_vector<K> const keys_in{on(), keys};
        device_vector<V> const values_in{on(), values};
        device_vector<K> keys_out{n};
        device_vector<V> values_out{n};
        device_vector<std::uint64_t> count{1};
        count.poison(on());
        unique(on(),
               {.keys_in = keys_in.in(),
                .keys_out = keys_out.data(),
                .values_in = values_in.data(),
                .values_out = values_out.data()},
               count.data())
            .value();
        std::vector<K> keys_expected(n);
        std::vector<V> values_expected(n);
        auto const kept = cpu::unique_by_key<K, V>(keys, values, keys_expected, values_expected, by);
        ASSERT_EQ(count.get(on()).front(), kept) << what;
        keys_expected.resize(kept);
        values_expected.resize(kept);
        EXPECT_TRUE(equals(what + ", keys", keys_expected, keys_out.get(on(), kept)));
        EXPECT_TRUE(equals(what + ", values", values_expected, values_out.get(on(), kept)));
    }

    template <class K, class V>
    void check_type(prim_options const& how = {}) {
        auto const unique = made(unique_by_key<K, V>(equal, how));
        for (auto const n : sizes_around(unique.tile_items())) {
            for (std::uint64_t const run : {1, 4, 5000}) {
                std::vector<K> keys(n);
                for (std::size_t i = 0; i < n; ++i) keys[i] = static_cast<K>((i / run) % 101);
                check_unique<K, V>(unique, keys, cpu::equal,
                                   unique.name() + " of " + std::to_string(n) + " in runs of " + std::to_string(run));
            }
            if constexpr (std::is_floating_point_v<K>) {
                check_unique<K, V>(unique, make_data<K>(n, pattern::special, n), cpu::equal,
                                   at(unique.name(), n, pattern::special));
            }
        }
    }
};

}  // namespace

TEST_F(uniques, of_numbers) {
    check_type<std::int32_t, std::int32_t>();
    check_type<std::uint64_t, std::int32_t>();
    check_type<std::uint8_t, double>();
    check_type<float, std::uint16_t>();
    check_type<std::int32_t, std::int32_t>({.items = item_range::wide});
}
TEST_F(uniques, by_another_equality) {
    auto const unique = made(unique_by_key<std::int32_t, std::int32_t>(op{"a / s == b / s"}.with(10)));
    std::vector<std::int32_t> keys(123'456);
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<std::int32_t>(i / 3);
    check_unique<std::int32_t, std::int32_t>(
        unique, keys, [](int a, int b) { return a / 10 == b / 10; }, "by tens");
}

}  // namespace kiln::device_tests
