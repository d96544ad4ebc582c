// SPDX-License-Identifier: Apache-2.0
#include <kiln/target.hpp>

#include <gtest/gtest.h>

namespace kiln {

TEST(arch, parses_every_spelling) {
    EXPECT_EQ(arch::parse("sm_90").value().name(), "sm_90");
    EXPECT_EQ(arch::parse("90a").value().name(), "sm_90a");
    EXPECT_EQ(arch::parse("9.0").value().number(), 90);
    EXPECT_EQ(arch::parse("sm_100f").value().variant(), 'f');
    EXPECT_TRUE(arch::parse("compute_80").value().is_virtual());
    for (auto const* bad : {"", "sm_", "sm_91", "sm_80a", "sm_90f", "x90", "sm_90aa", "90 "}) {
        auto const r = arch::parse(bad);
        ASSERT_FALSE(r) << bad;
        EXPECT_NE(r.error().message().find("sm_75"), std::string::npos) << "the remedy is named";
    }
}

TEST(target, kind_and_architecture_must_fit) {
    EXPECT_EQ(target::parse("sm_90", artifact_kind::ptx).value().arch.name(), "compute_90");
    EXPECT_EQ(target::parse("compute_90", artifact_kind::cubin).error().code(), errc::invalid_argument);
    EXPECT_TRUE(target::parse("sm_90", artifact_kind::ltoir));
}

struct run_case {
    char const* made;
    artifact_kind kind;
    int major, minor;
    bool runs;
};
class can_run_on : public testing::TestWithParam<run_case> {};

TEST_P(can_run_on, follows_the_rules_of_binary_compatibility) {
    auto const& c = GetParam();
    EXPECT_EQ(can_run(target::parse(c.made, c.kind).value(), arch::of_device(c.major, c.minor)), c.runs) << c.made;
}

INSTANTIATE_TEST_SUITE_P(rules, can_run_on,
                         testing::Values(run_case{"sm_80", artifact_kind::cubin, 8, 6, true},
                                         run_case{"sm_86", artifact_kind::cubin, 8, 0, false},
                                         run_case{"sm_80", artifact_kind::cubin, 9, 0, false},
                                         run_case{"sm_90a", artifact_kind::cubin, 9, 0, true},
                                         run_case{"sm_100a", artifact_kind::cubin, 10, 3, false},
                                         run_case{"sm_100f", artifact_kind::cubin, 10, 3, true},
                                         run_case{"compute_80", artifact_kind::ptx, 12, 0, true},
                                         run_case{"compute_90", artifact_kind::ptx, 8, 0, false},
                                         run_case{"compute_90a", artifact_kind::ptx, 10, 0, false}));

}  // namespace kiln
