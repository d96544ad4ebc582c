// SPDX-License-Identifier: Apache-2.0
#include "device/prims/prims_fixture.hpp"

namespace kiln::device_tests {

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
