// SPDX-License-Identifier: Apache-2.0
#include "engine/recipe.hpp"

#include <gtest/gtest.h>

namespace kiln::engine_detail {

TEST(recipe, a_unit_comes_back_with_the_headers_it_carries) {
    unit const plain{.name = "u", .source = "text", .kernels = {"k"}, .include_dirs = {"/inc"}};
    auto const kept = recipe_of(plain);
    EXPECT_EQ(kept.body.front(), std::byte{1}) << "as older versions read it";
    EXPECT_TRUE(unit_of(kept).value().carried.empty());

    auto carrying = plain;
    carrying.carried = {{"s/a.h", "one"}, {"i0/b.h", "two"}};
    auto const all = recipe_of(carrying);
    auto const back = unit_of(all).value();
    ASSERT_EQ(back.carried.size(), 2u);
    EXPECT_EQ(back.carried[1].place, "i0/b.h");
    EXPECT_EQ(back.carried[1].text, "two");
    EXPECT_EQ(recipe_of(back).id(), all.id());
    EXPECT_NE(kept.id(), all.id());

    for (std::size_t n = 0; n < all.body.size(); ++n) {
        auto cut = all;
        cut.body.resize(n);
        EXPECT_FALSE(unit_of(cut)) << n;
    }
    auto newer = all;
    newer.body.front() = std::byte{9};
    EXPECT_EQ(unit_of(newer).error().code(), errc::unsupported);
}

}  // namespace kiln::engine_detail
