// SPDX-License-Identifier: Apache-2.0
#include "compile/elf.hpp"

#include <gtest/gtest.h>

namespace kiln::compile {

TEST(elf, what_is_not_an_image_is_refused) {
    EXPECT_FALSE(read_cubin({}, 90, {}));
    EXPECT_FALSE(read_cubin(base::as_bytes("\x7f"
                                           "ELF but not really"),
                            90, {}));
}

TEST(elf, entries_of_ptx) {
    auto const names = ptx_entries(".visible .entry b(\n.param .u64 p)\n{ ret; }\n.entry a\n(");
    EXPECT_EQ(names, (std::vector<std::string>{"a", "b"}));
    EXPECT_TRUE(ptx_entries(".entry ").empty());
    EXPECT_TRUE(ptx_entries("").empty());
}

}  // namespace kiln::compile
