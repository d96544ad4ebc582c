// SPDX-License-Identifier: Apache-2.0
#include <kiln/instance.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace instance_test_types {
struct pair_of_floats {};
template <class T>
struct box {};
enum class mode { one = 1, two };
}  // namespace instance_test_types

namespace kiln {

TEST(instance, names_what_a_template_is_made_of) {
    using namespace instance_test_types;
    EXPECT_EQ(instance("scale", type<float>), "scale<float>");
    EXPECT_EQ(instance("scale", type<float>, 4), "scale<float, 4>");
    EXPECT_THAT(instance("a::fold", type<double const*>, true, -1),
                testing::AnyOf("a::fold<const double*, true, -1>", "a::fold<const double *, true, -1>"));
    EXPECT_EQ(instance("k", type<pair_of_floats>), "k<instance_test_types::pair_of_floats>");
    EXPECT_EQ(instance("k", type<box<int>>), "k<instance_test_types::box<int>>");
    EXPECT_EQ(instance("k", mode::two), "k<(instance_test_types::mode)2>");
}

}  // namespace kiln
