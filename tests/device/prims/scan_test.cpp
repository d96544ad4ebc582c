// SPDX-License-Identifier: Apache-2.0
#include "device/prims/vec3.hpp"

namespace kiln::device_tests {

namespace {

class scans : public prims_test {
protected:
    template <class T, class Reference>
    void check_scan(scan_handle<T> const& exclusive, scan_handle<T> const& inclusive, std::vector<T> const& data,
                    Reference by, T init) {
        auto const n = data.size();
        device_vector<T> const in{on(), data};
        device_vector<T> out{n};
        std::vector<T> expected(n);
        out.poison(on());
        exclusive(on(), in.in(), out.span(), {.init = init}).value();
        cpu::exclusive_scan<T>(data, std::span<T>{expected}, by, init);
        EXPECT_TRUE(equals(exclusive.name(), expected, out.get(on())));
        out.poison(on());
        inclusive(on(), in.in(), out.span()).value();
        cpu::inclusive_scan<T>(data, std::span<T>{expected}, by);
        EXPECT_TRUE(equals(inclusive.name(), expected, out.get(on())));
        EXPECT_TRUE(equals("input", data, in.get(on())));
    }

    template <class T>
    void check_type() {
        auto const [sum, sums, top, tops] =
            make_together([] { return exclusive_scan<T>(plus); }, [] { return inclusive_scan<T>(plus); },
                          [] { return exclusive_scan<T>(kiln::max); }, [] { return inclusive_scan<T>(kiln::max); });
        for (auto const n : sizes_around(sum.tile_items())) {
            check_scan<T>(sum, sums,
                          std::is_integral_v<T> ? make_data<T>(n, pattern::random, n + 1) : walk_data<T>(n, n + 1),
                          cpu::plus, cpu::from_number<T>(3));
            for (auto const p : all_patterns) {
                if (n > 4 * sum.tile_items() && p != pattern::random && p != pattern::special) continue;
                check_scan<T>(top, tops, make_data<T>(n, p, n + 2), cpu::max, special_value<T>(n));
            }
        }
    }
};

}  // namespace

TEST_F(scans, of_8_and_16_bit_integers) {
    check_type<std::int8_t>();
    check_type<std::uint8_t>();
    check_type<std::int16_t>();
    check_type<std::uint16_t>();
}
TEST_F(scans, of_32_and_64_bit_integers) {
    check_type<std::int32_t>();
    check_type<std::uint32_t>();
    check_type<std::int64_t>();
    check_type<std::uint64_t>();
}
TEST_F(scans, of_floats) {
    check_type<f16>();
    check_type<bf16>();
    check_type<float>();
    check_type<double>();
}

TEST_F(scans, of_structs) {
    auto const [exclusive, inclusive] =
        make_together([&] { return exclusive_scan<vec3>(add_vec3); }, [&] { return inclusive_scan<vec3>(add_vec3); });
    for (auto const n : sizes_around(exclusive.tile_items())) {
        auto const walk = walk_data<float>(n, n);
        std::vector<vec3> data(n);
        for (std::size_t i = 0; i < n; ++i) data[i] = {walk[i], walk[n - 1 - i], 0, 1, walk[i]};
        check_scan<vec3>(exclusive, inclusive, data, add_on_host, {1, 2, 3, 4, 5});
    }
}

TEST_F(scans, by_an_operator_that_does_not_commute) {
    op const last_there_is{"b != 0 ? b : a"};
    auto const by = [](std::int32_t a, std::int32_t b) { return b != 0 ? b : a; };
    auto const [exclusive, inclusive] = make_together([&] { return exclusive_scan<std::int32_t>(last_there_is); },
                                                      [&] { return inclusive_scan<std::int32_t>(last_there_is); });
    for (auto const n : sizes_around(exclusive.tile_items())) {
        auto data = make_data<std::int32_t>(n, pattern::random, n);
        numbers g{n};
        for (auto& value : data)
            if (g.next() % 100 != 0) value = 0;
        check_scan<std::int32_t>(exclusive, inclusive, data, by, 7);
    }
}

TEST_F(scans, in_place) {
    auto const sum = made(exclusive_scan<std::int32_t>(plus));
    auto const data = make_data<std::int32_t>(100'003, pattern::random, 5);
    device_vector<std::int32_t> const both{on(), data};
    sum(on(), both.in(), both.span()).value();
    std::vector<std::int32_t> expected(data.size());
    cpu::exclusive_scan<std::int32_t>(data, std::span{expected}, cpu::plus);
    EXPECT_TRUE(equals("in place", expected, both.get(on())));
}

TEST_F(scans, refuse_an_output_that_is_too_small) {
    auto const sum = made(exclusive_scan<std::int32_t>(plus));
    device_vector<std::int32_t> const in{100};
    EXPECT_EQ(sum(on(), in.in(), {in.data(), 99}).error().code(), errc::invalid_argument);
}

}  // namespace kiln::device_tests
