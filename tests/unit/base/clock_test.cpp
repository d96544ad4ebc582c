// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"

#include <gtest/gtest.h>

namespace kiln::base {
namespace {

using std::chrono::milliseconds;

TEST(clock, for_ever_is_later_than_any_wait_and_never_is_over) {
    EXPECT_GT(from_now(milliseconds::max()), clock::now() + std::chrono::hours{24 * 300});
    EXPECT_LT(from_now(milliseconds::min()), clock::now());
    auto const before = clock::now();
    EXPECT_GE(from_now(milliseconds{20}), before + milliseconds{20});
    auto const at_once = from_now(milliseconds{0});
    EXPECT_LE(at_once, clock::now());
}

}  // namespace
}  // namespace kiln::base
