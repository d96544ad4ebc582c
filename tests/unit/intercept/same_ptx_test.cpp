// SPDX-License-Identifier: Apache-2.0
#include "intercept/same_ptx.hpp"

#include <gtest/gtest.h>
#include <string>

namespace kiln::intercept {

namespace {

// A function whose registers are those named, in this order.
std::string function(std::string const& name, std::string const& a, std::string const& b, std::string const& c) {
    return ".visible .entry " + name + "()\n{\n\t.reg .b32 %r<4>;\n\t.reg .f32 %f<4>;\n\tmov.u32 " + a +
           ", %clock64;\n\tadd.s32 " + b + ", " + a + ", 1;\n\tadd.s32 " + c + ", " + b + ", " + a + ";\n\tret;\n}\n";
}

}  // namespace

TEST(same_ptx, registers_may_be_renamed_one_to_one) {
    auto const one = function("f", "%r1", "%r2", "%r3");
    EXPECT_TRUE(is_same_ptx(one, one));
    EXPECT_TRUE(is_same_ptx(one, function("f", "%r3", "%r1", "%r2")));
    EXPECT_TRUE(is_same_ptx(one, function("f", "%r10", "%r11", "%r12"))) << "of other lengths, too";
    EXPECT_FALSE(is_same_ptx(one, function("f", "%r1", "%r2", "%r2"))) << "two became one";
    EXPECT_FALSE(is_same_ptx(function("f", "%r1", "%r2", "%r2"), one)) << "one became two";
    EXPECT_FALSE(is_same_ptx(one, function("f", "%f1", "%r2", "%r3"))) << "of another class";
    EXPECT_FALSE(is_same_ptx(one, function("g", "%r1", "%r2", "%r3")));
    EXPECT_FALSE(is_same_ptx(one, one + "\n"));
    EXPECT_FALSE(is_same_ptx(one, {}));
}

TEST(same_ptx, each_function_has_registers_of_its_own) {
    EXPECT_TRUE(is_same_ptx(function("f", "%r1", "%r2", "%r3") + function("g", "%r1", "%r2", "%r3"),
                            function("f", "%r2", "%r1", "%r3") + function("g", "%r3", "%r2", "%r1")));
}

TEST(same_ptx, registers_of_the_machine_keep_their_names) {
    auto const one = function("f", "%r1", "%r2", "%r3");
    auto other = one;
    other.replace(other.find("clock64"), 7, "clock32");
    EXPECT_FALSE(is_same_ptx(one, other));
    auto const without = one.substr(one.find("mov"));
    EXPECT_FALSE(is_same_ptx(without, "mov.u32 %r2" + without.substr(11))) << "nothing is declared";
}

}  // namespace kiln::intercept
