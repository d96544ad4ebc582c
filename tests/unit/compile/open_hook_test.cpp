// SPDX-License-Identifier: Apache-2.0
#include "compile/open_hook.hpp"

#include <cfenv>
#include <gtest/gtest.h>

namespace kiln::compile {

namespace {

class no_answers final : public header_answers {
public:
    std::FILE* open(std::string const&) override { return nullptr; }
    int stat(std::string const&, struct ::stat*) override { return -1; }
};

}  // namespace

TEST(open_hook, what_is_kept_is_compiled_as_everybody_rounds) {
    std::fesetround(FE_UPWARD);
    {
        no_answers none;
        scoped_capture const active{none};
        EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    }
    int const after = std::fegetround();
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(after, FE_UPWARD);
}

}  // namespace kiln::compile
