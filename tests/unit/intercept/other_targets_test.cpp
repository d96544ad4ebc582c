// SPDX-License-Identifier: Apache-2.0
#include "intercept/other_targets.hpp"

#include <gtest/gtest.h>

namespace kiln::intercept {

using words = std::vector<std::string>;

TEST(other_targets, replace_the_one_that_is_named) {
    EXPECT_EQ(options_for(words{"-DA=1", "-arch=sm_90", "-I/x"}, "sm_100").value(),
              (words{"-DA=1", "-arch=sm_100", "-I/x"}));
    EXPECT_EQ(options_for(words{"--gpu-architecture=compute_90"}, "sm_80").value(),
              (words{"--gpu-architecture=compute_80"}));
    EXPECT_EQ(options_for(words{"-arch", "sm_90", "-DN=5"}, "sm_75").value(), (words{"-arch", "sm_75", "-DN=5"}));
}

TEST(other_targets, say_what_does_not_allow_it) {
    auto const why = [](words const& options, std::string_view arch = "sm_80") {
        auto const out = options_for(options, arch);
        return out ? std::string{"allowed"} : out.error().message();
    };
    EXPECT_NE(why({"-DA"}).find("name no architecture"), std::string::npos);
    EXPECT_NE(why({"-arch=sm_90", "-arch=sm_80"}).find("more than one"), std::string::npos);
    EXPECT_NE(why({"-arch=sm_90a"}).find("sm_90a"), std::string::npos);
    EXPECT_NE(why({"-arch=native"}).find("native"), std::string::npos);
    EXPECT_NE(why({"-arch=sm_90", "-D__CUDA_ARCH_LIST__=900"}).find("repeats"), std::string::npos);
    EXPECT_NE(why({"-arch=sm_90", "-DARCH=90"}).find("repeats"), std::string::npos);
    EXPECT_NE(why({"-arch"}).find("architecture"), std::string::npos);
    EXPECT_NE(why({"-arch=sm_90"}, "sm_100a").find("plain"), std::string::npos);
    EXPECT_EQ(why({"-arch=sm_90", "-DVALUE=9000"}), "allowed");
}

TEST(other_targets, know_a_macro_that_repeats_the_architecture_in_any_spelling) {
    auto const repeats = [](words options) {
        options.insert(options.begin(), "-arch=sm_80");
        auto const out = options_for(options, "sm_90");
        return !out && out.error().message().find("repeats") != std::string::npos;
    };
    for (auto const* macro :
         {"SM=80", "SM=sm_80", "SM=compute_80", "SM_80", "USE_SM80", "CC=8.0", "ARCH=800", "SM=\"sm_80\"", "ARCH=80a",
          "ARCHS={70,80}", "SM80=1", "SM=(80)", "CC_MAJOR=8", "ARCH(x)=80"}) {
        std::string const text{macro};
        EXPECT_TRUE(repeats({"-D" + text})) << macro;
        EXPECT_TRUE(repeats({"-D " + text})) << macro;
        EXPECT_TRUE(repeats({"-D", text})) << macro;
        EXPECT_TRUE(repeats({"--define-macro=" + text})) << macro;
        EXPECT_TRUE(repeats({"--define-macro", text})) << macro;
    }
    for (auto const* macro : {"N=8", "N=180", "N=8000", "N=8.05", "N", "MAJOR=9", "N=18.0", "A=-D"}) {
        EXPECT_FALSE(repeats({std::string{"-D"} + macro})) << macro;
        EXPECT_FALSE(repeats({"-D", macro})) << macro;
    }
    EXPECT_TRUE(repeats({"-DMAJ=8", "-DMIN=0"}));
    EXPECT_TRUE(repeats({"-USM_80"}));
    EXPECT_FALSE(repeats({"-I/opt/80"}));
    EXPECT_FALSE(repeats({"-D"}));
    EXPECT_FALSE(repeats({}));
}

}  // namespace kiln::intercept
