// SPDX-License-Identifier: Apache-2.0
#include <kiln/prims/cpu.hpp>

#include <gmock/gmock.h>

namespace kiln::cpu {

namespace {

using testing::ElementsAre;

TEST(cpu_prims, scan_and_reduce) {
    std::vector<int> const in{3, 1, 4};
    std::vector<int> out(3);
    exclusive_scan<int>(in, std::span{out}, plus, 10);
    EXPECT_THAT(out, ElementsAre(10, 13, 14));
    inclusive_scan<int>(in, std::span{out}, kiln::cpu::max);
    EXPECT_THAT(out, ElementsAre(3, 3, 4));
    EXPECT_EQ(reduce<int>(in, multiply, 2), 24);
    std::vector<int> sums(3);
    std::vector<unsigned> const offsets{0, 2, 2, 3};
    segmented_reduce<int, unsigned>(in, offsets, std::span{sums}, plus, 1);
    EXPECT_THAT(sums, ElementsAre(5, 1, 5));
}

TEST(cpu_prims, integers_wrap_as_on_the_device) {
    EXPECT_EQ(plus(std::int8_t{127}, std::int8_t{1}), -128);
    EXPECT_EQ(plus(std::numeric_limits<int>::max(), 1), std::numeric_limits<int>::min());
    EXPECT_EQ(multiply(std::uint16_t{65535}, std::uint16_t{65535}), 1);
}

TEST(cpu_prims, nan_loses_and_negative_zero_is_less) {
    float const nan = std::nanf("");
    EXPECT_EQ(kiln::cpu::min(nan, 1.0F), 1.0F);
    EXPECT_EQ(kiln::cpu::max(1.0F, nan), 1.0F);
    EXPECT_TRUE(std::signbit(kiln::cpu::min(0.0F, -0.0F)));
    EXPECT_FALSE(std::signbit(kiln::cpu::max(-0.0F, 0.0F)));
}

TEST(cpu_prims, select_and_unique) {
    std::vector<int> const in{5, 5, 7, 7, 5};
    std::vector<std::uint8_t> const mask{1, 0, 0, 9, 1};
    std::vector<int> out(5);
    EXPECT_EQ(kiln::cpu::select<int>(in, mask, out), 3U);
    EXPECT_THAT(out, ElementsAre(5, 7, 5, 0, 0));
    std::vector<unsigned> where(5);
    EXPECT_EQ(select_indices<unsigned>(mask, where), 3U);
    EXPECT_THAT(where, ElementsAre(0, 3, 4, 0, 0));
    std::vector<int> const values{0, 1, 2, 3, 4};
    std::vector<int> values_out(5);
    EXPECT_EQ((unique_by_key<int, int>(in, values, out, values_out)), 3U);
    EXPECT_THAT(values_out, ElementsAre(0, 2, 4, 0, 0));
}

TEST(cpu_prims, radix_order_of_floats) {
    float const nan = std::nanf("");
    std::vector<float> const in{1.0F, -0.0F, nan, 0.0F, -2.0F};
    std::vector<float> out(5);
    sort_keys<float>(in, out, radix_less<float>(sort_direction::ascending));
    EXPECT_EQ(out[0], -2.0F);
    EXPECT_TRUE(std::signbit(out[1]) && !std::signbit(out[2]));  // equal, so in their old order
    EXPECT_TRUE(std::isnan(out[4]));
    EXPECT_LT(radix_bits(std::int16_t{-1}), radix_bits(std::int16_t{0}));
}

}  // namespace

}  // namespace kiln::cpu
