// SPDX-License-Identifier: Apache-2.0
// kernels/tropical/backward.cu on the emulated device, against the CPU, bit for bit.
#pragma once
#pragma GCC system_header

#include "support/emulated_device.hpp"
#include "support/tropical_reference.hpp"
#include "tropical/problem.hpp"

#include <gtest/gtest.h>

#define KILN_JOIN_(a, b) a##b
#define KILN_JOIN(a, b) KILN_JOIN_(a, b)
#define backward KILN_JOIN(backward_, KILN_EMULATED)
#define raw KILN_JOIN(raw_, KILN_EMULATED)
namespace KILN_EMULATED {
using namespace kiln::emulated::builtins;
#include "../../../kernels/tropical/backward.cu"
alignas(16) unsigned char raw[128 << 10];
}  // namespace KILN_EMULATED
#undef backward

namespace kiln::tropical_tests::KILN_EMULATED {

namespace text = ::KILN_EMULATED;
using element = text::element;

// `part`: steps of k held at once; `spread`: how many values winners take.
inline void check(tropical::shape const& size, tropical::transposed as, std::int32_t part, std::int64_t spread,
                  std::uint64_t seed) {
    using namespace tropical;
    constexpr auto rule = static_cast<gradient_rule>(KILN_TROPICAL_RULE);
    constexpr auto type = scalar_of<element>();
    numbers g{seed};
    auto const count = [](std::int64_t x) { return static_cast<std::size_t>(x); };
    auto const in = make_data<element>(count(size.m * size.n * size.batch), data_kind::mixed, seed);
    auto const a = make_data<element>(count(size.m * size.k * size.batch), data_kind::mixed, seed + 1);
    auto const b = make_data<element>(count(size.k * size.n * size.batch), data_kind::mixed, seed + 2);
    std::vector<std::int32_t> k(in.size());
    for (auto& x : k)
        x = static_cast<std::int32_t>(g.below(20) == 0 ? -1 : size.k - 1 - g.below(std::min(spread, size.k)));
    std::vector<element> da(a.size(), element{9}), db(b.size(), element{9}), want_a = da, want_b = db;
    backward_call call{.shape = size, .g = in.data(), .arg = k.data(), .a = a.data(), .b = b.data()};
    call.a_as = as;
    call.into = seed % 3 == 0 ? accumulation::into_c : accumulation::replace;
    call.da = want_a.data(), call.db = want_b.data();
    tropical::cpu::run(rule, type, call).value();
    call.da = da.data(), call.db = db.data();
    auto p = gradient_of(call, rule).value();
    p.part = std::min(part, p.k);
    text::gradient same{};
    static_assert(sizeof(same) == sizeof(p));
    std::memcpy(&same, &p, sizeof(p));
    std::memset(text::raw, 0xa5, sizeof(text::raw));
    emulated::builtins::gridDim.x = 1;
    emulated::block::run(256, [&] { text::KILN_JOIN(backward_, KILN_EMULATED)(same); });
    for (std::size_t i = 0; i < da.size(); ++i)
        ASSERT_TRUE(same_bits(da[i], want_a[i])) << "dA " << i << " seed " << seed;
    for (std::size_t i = 0; i < db.size(); ++i)
        ASSERT_TRUE(same_bits(db[i], want_b[i])) << "dB " << i << " seed " << seed;
}

TEST(KILN_JOIN(tropical_text_, KILN_EMULATED), gives_the_cpu_s_gradients) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "fibers and sanitizers do not go together";
#endif
    std::uint64_t seed = 1;
    constexpr std::int64_t spreads[] = {1, 5, 1000};
    for (auto size : {tropical::shape{.m = 7, .n = 5, .k = 3},
                      {.m = 19, .n = 140, .k = 40, .batch = 2},
                      {.m = 70, .n = 9, .k = 37}}) {
        for (auto const layout : {tropical::order::row_major, tropical::order::column_major}) {
            size.layout = layout;
            for (auto const as : {tropical::transposed::no, tropical::transposed::yes}) {
                check(size, as, seed % 2 == 0 ? 16 : 1000, spreads[seed / 2 % 3], seed);
                ++seed;
                if (testing::Test::HasFailure()) return;
            }
        }
    }
}

}  // namespace kiln::tropical_tests::KILN_EMULATED
