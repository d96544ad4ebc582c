// SPDX-License-Identifier: Apache-2.0
#include "intercept/own_names.hpp"

#include "intercept/foreign_request.hpp"

#include <gtest/gtest.h>

namespace kiln::intercept {

TEST(own_names, a_text_that_can_ask_for_its_name_is_seen_in_any_spelling) {
    for (auto const* text :
         {"int s[sizeof(__FILE__)];", "char const* f = __BASE_FILE__;", "__builtin_FILE()",
          "std::source_location here;", "PASTE(__FI, LE__)", "PASTE(__, FILE__)", "PASTE(__BASE, _FILE__)",
          "_CCCL_BUILTIN_FILE()", "__FI\\\nLE__", "__FI\\ \t\r\nLE__", "u\"\" __FILE__"})
        EXPECT_TRUE(may_name_its_file(text)) << text;
    for (auto const* text : {"", "__global__ void k(int* a) { *a = 1; }", "// this file is a profile",
                             "int PROFILE, tile;", "#include \"k.h\"", "a \\ b", "__F32 __FX"})
        EXPECT_FALSE(may_name_its_file(text)) << text;
}

TEST(own_names, headers_of_cuda_have_it_in_macros) {
    auto const in_macro = "#  define ASSERT(x) \\\n  fail(x, __FILE__)\nint a;\n";
    auto const openly = "#define A 1\ninline void f() { fail(__FILE__); }\n";
    EXPECT_FALSE(header_may_name_its_file("/x/cuda/std/__cccl/assert.h", in_macro));
    EXPECT_FALSE(header_may_name_its_file("/x/cub/util_debug.cuh", in_macro));
    EXPECT_TRUE(header_may_name_its_file("/x/cuda/std/__cccl/assert.h", openly));
    EXPECT_TRUE(header_may_name_its_file("/x/mine/assert.h", in_macro));
    EXPECT_FALSE(header_may_name_its_file("/x/mine/assert.h", "int a;"));
}

TEST(own_names, the_time_is_seen) {
    for (auto const* text : {"__DATE__", "x = __TIME__;", "__TIMESTAMP__"})
        EXPECT_TRUE(may_name_the_time(text)) << text;
    EXPECT_FALSE(may_name_the_time("int time, __TIME;"));
}

TEST(own_names, no_directory_is_hidden_from_who_asks) {
    auto const hidden = [](char const* source, char const* header, char const* header_name, std::string option) {
        foreign_program const p{
            .source = source, .name = "/tmp/x/k.cu", .headers = {{header_name, header}}, .expressions = {}};
        return virtual_call(p, std::vector<std::string>{"-I/a", std::move(option)}).has_value();
    };
    EXPECT_TRUE(hidden("text", "text", "h.h", "-DA"));
    EXPECT_FALSE(hidden("__FILE__", "text", "h.h", "-DA"));
    EXPECT_FALSE(hidden("text", "__FILE__", "h.h", "-DA"));
    EXPECT_FALSE(hidden("text", "text", "h.h", "-DA=__FILE__"));
    EXPECT_FALSE(hidden("text", "text", "/tmp/x/h.h", "-DA"));  // found only from where it is
}

}  // namespace kiln::intercept
