// SPDX-License-Identifier: Apache-2.0
#include "device/prims/sort_fixture.hpp"

namespace kiln::device_tests {

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

}  // namespace kiln::device_tests
