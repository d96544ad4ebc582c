// SPDX-License-Identifier: Apache-2.0
// One specialisation of kernels/tropical/product.cu on the emulated device. The file that includes this defines the text's
// macros and KILN_EMULATED, a name for its namespace.
#pragma once
#pragma GCC system_header

#include "support/emulated_device.hpp"
#include "support/tropical_reference.hpp"
#include "tropical/tuning.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#define KILN_JOIN_(a, b) a##b
#define KILN_JOIN(a, b) KILN_JOIN_(a, b)
#define KILN_TEXT_(...) #__VA_ARGS__
#define KILN_TEXT(...) KILN_TEXT_(__VA_ARGS__)
// extern "C": each specialisation needs names of its own.
#define product_large KILN_JOIN(product_large_, KILN_EMULATED)
#define product_small KILN_JOIN(product_small_, KILN_EMULATED)
#define raw KILN_JOIN(raw_, KILN_EMULATED)

#define KILN_CANONICAL(x) kiln::emulated::canonical(x)
#define KILN_WAITED(x) EXPECT_TRUE(x)

namespace KILN_EMULATED {
using namespace kiln::emulated::builtins;
#include "../../../kernels/tropical/product.cu"
alignas(16) unsigned char raw[256 << 10];
}  // namespace KILN_EMULATED

namespace kiln::tropical_tests::KILN_EMULATED {

namespace text = ::KILN_EMULATED;
using tropical::kernel_choice;
using tropical::with_winners;
using element = text::element;
inline constexpr auto arg = KILN_TROPICAL_ARG != 0 ? with_winners::yes : with_winners::no;
inline constexpr auto ring = static_cast<semiring>(KILN_TROPICAL_SEMIRING);

inline std::string without_spaces(std::string s) {
    std::erase(s, ' ');
    return s;
}

// `sharing`: so many blocks, one after the other, that share tiles; 0: one block goes through all.
inline void run(kernel_choice which, random_case<element>& c, unsigned sharing = 0) {
    tropical::product_call call = tropical::detail::call_of<element>(
        c.size, c.a, c.b, c.c, arg == with_winners::yes ? c.arg : tropical::winners{}, tropical::accumulation::replace);
    auto const p = tropical::problem_of(call, arg).value();
    text::problem same{};
    static_assert(sizeof(same) == sizeof(p));
    std::memcpy(&same, &p, sizeof(p));
    auto const& by = tropical::tuning_of(ring, scalar_of<element>(), arg);
    auto const& tile = which == kernel_choice::large ? *by.large : by.small;
    ASSERT_LE(tropical::shared_bytes(tile, scalar_of<element>(), arg), sizeof(text::raw));
    // Uninitialised memory must not look like anything.
    std::memset(text::raw, 0xa5, sizeof(text::raw));
    std::vector<std::uint32_t> signals(sharing);
    if (sharing > 0) same.signals = signals.data();
    emulated::builtins::gridDim.x = std::max(sharing, 1U);
    for (unsigned b = 0; b < std::max(sharing, 1U); ++b) {
        emulated::builtins::blockIdx.x = b;
        emulated::block::run(static_cast<unsigned>(tile.threads()), [&] {
#ifdef KILN_TROPICAL_LARGE
            if (which == kernel_choice::large) return text::product_large(same);
#endif
            text::product_small(same);
        });
    }
    emulated::builtins::blockIdx.x = 0;
    EXPECT_THAT(signals, testing::Each(0U));
}

inline void check_all(kernel_choice which) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "fibers and sanitizers do not go together";
#endif
    std::uint64_t seed = 1;
    for (auto const& [m, n, k] : {std::tuple{1, 1, 1},
                                  {5, 7, 3},
                                  {20, 19, 0},
                                  {64, 64, 64},
                                  {67, 130, 131},
                                  {257, 129, 70},
                                  {3, 140, 300},
                                  {90, 5, 257}}) {
        for (auto const kind : all_kinds) {
            random_case<element> c{ring, m, n, k, kind, seed++};
            run(which, c);
            ASSERT_EQ(c.difference(c.expected(ring), arg == with_winners::yes), "")
                << "data " << static_cast<int>(kind) << ", seed " << seed - 1;
        }
    }
}

// Blocks of fewer, as many and more than there are tiles; with rounds of whole tiles before and without.
inline void check_sharing(kernel_choice which) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "fibers and sanitizers do not go together";
#endif
    std::uint64_t seed = 1;
    for (auto const& [m, n, k] : {std::tuple{64, 64, 64}, {257, 129, 200}, {130, 300, 97}, {90, 5, 257}, {20, 19, 1}}) {
        for (unsigned const blocks : {1U, 2U, 3U, 7U, 12U}) {
            for (auto const kind : {all_kinds[0], all_kinds[seed % std::size(all_kinds)]}) {
                random_case<element> c{ring, m, n, k, kind, seed++};
                run(which, c, blocks);
                ASSERT_EQ(c.difference(c.expected(ring), false), "")
                    << m << " x " << n << " x " << k << ", " << blocks << " blocks, data " << static_cast<int>(kind);
            }
        }
    }
}

TEST(KILN_JOIN(tropical_text_, KILN_EMULATED), is_compiled_with_the_host_s_numbers) {
    auto const& by = tropical::tuning_of(ring, scalar_of<element>(), arg);
    EXPECT_EQ(without_spaces(KILN_TEXT(KILN_TROPICAL_SMALL)), by.small.text());
#ifdef KILN_TROPICAL_LARGE
    ASSERT_TRUE(by.large.has_value());
    EXPECT_EQ(without_spaces(KILN_TEXT(KILN_TROPICAL_LARGE)), by.large->text());
#else
    EXPECT_FALSE(by.large.has_value());
#endif
}
TEST(KILN_JOIN(tropical_text_, KILN_EMULATED), is_right_in_small_tiles) { check_all(kernel_choice::small); }
#ifdef KILN_TROPICAL_LARGE
TEST(KILN_JOIN(tropical_text_, KILN_EMULATED), is_right_in_large_tiles) { check_all(kernel_choice::large); }
#endif
#if KILN_TROPICAL_ARG == 0
TEST(KILN_JOIN(tropical_text_, KILN_EMULATED), is_right_in_small_tiles_that_are_shared) {
    check_sharing(kernel_choice::small);
}
#ifdef KILN_TROPICAL_LARGE
TEST(KILN_JOIN(tropical_text_, KILN_EMULATED), is_right_in_large_tiles_that_are_shared) {
    check_sharing(kernel_choice::large);
}
#endif
#endif

}  // namespace kiln::tropical_tests::KILN_EMULATED
