// SPDX-License-Identifier: Apache-2.0
#include <kiln/prims/wants.hpp>

#include "prims/pack.hpp"

#include <gtest/gtest.h>

namespace kiln::prims {

namespace {

TEST(wants, name_what_ships_and_carry_what_does_not) {
    auto const i32 = type_of(scalar::i32);
    auto const shipped = wanted_scan(scan_form::exclusive, i32, plus);
    EXPECT_EQ(shipped.as_recipe()->name, "exclusive_scan_i32");
    EXPECT_TRUE(shipped.as_recipe()->body.empty());

    op const cap{"a + b > s ? s : a + b"};
    auto const own = wanted_scan(scan_form::inclusive, i32, cap.with(100));
    auto const again = request_of(*own.as_recipe()).value();
    ASSERT_TRUE(again.by);
    EXPECT_EQ(again.by->text(), cap.text());
    EXPECT_EQ(again.by->state_type().size, sizeof(int));
    EXPECT_EQ(again.name, scan_request(scan_form::inclusive, i32, cap.with(100)).name);
}

TEST(wants, differ_where_requests_do) {
    auto const i32 = type_of(scalar::i32), f32 = type_of(scalar::f32);
    op const positive{"a > 0"};
    EXPECT_NE(*wanted_select(select_form::items, i32, &positive).as_recipe(),
              *wanted_select(select_form::items, i32, nullptr).as_recipe());
    EXPECT_NE(*wanted_transform(i32, f32, op{"a * 2"}).as_recipe(),
              *wanted_transform(i32, i32, op{"a * 2"}).as_recipe());
    EXPECT_NE(*wanted_radix_sort(i32, {}, sort_order::ascending).as_recipe(),
              *wanted_radix_sort(i32, {}, sort_order::descending).as_recipe());
}

}  // namespace

}  // namespace kiln::prims
