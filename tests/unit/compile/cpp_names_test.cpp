// SPDX-License-Identifier: Apache-2.0
#include "compile/cpp_names.hpp"

#include <gtest/gtest.h>

namespace kiln::compile {
namespace {

TEST(cpp_names, are_those_of_the_source) {
    EXPECT_EQ(cpp_name("saxpy"), "saxpy");
    EXPECT_EQ(cpp_name("_Z1kPi"), "k");
    EXPECT_EQ(cpp_name("_ZN1a1kEPi"), "a::k");
    EXPECT_EQ(cpp_name("_Z5scaleIfEvPT_fi"), "scale<float>");
    EXPECT_EQ(cpp_name("_ZN2ns5scaleIfLi4EEEvPT_"), "ns::scale<float, 4>");
    EXPECT_EQ(cpp_name("_ZN12_GLOBAL__N_11kEPi"), "(anonymous namespace)::k");
    EXPECT_EQ(cpp_name("_Z1kPFvvE"), "k");  // a parameter that has parentheses of its own
    EXPECT_EQ(cpp_name("_ZN2ns4tapsE"), "ns::taps");
    EXPECT_EQ(cpp_name("_Z4tapsIfE"), "taps<float>");
}

TEST(cpp_names, that_cannot_be_read_stay) {
    EXPECT_EQ(cpp_name("_Z"), "_Z");
    EXPECT_EQ(cpp_name("_Znonsense!"), "_Znonsense!");
    EXPECT_EQ(cpp_name(""), "");
}

TEST(cpp_names, are_recognised_in_every_spelling) {
    for (auto const* asked : {"ns::taps", "&ns::taps", "_ZN2ns4tapsE"}) EXPECT_TRUE(is_name_of(asked, "_ZN2ns4tapsE"));
    EXPECT_FALSE(is_name_of("taps", "_ZN2ns4tapsE"));
    EXPECT_FALSE(is_name_of("", "_ZN2ns4tapsE"));
}

}  // namespace
}  // namespace kiln::compile
