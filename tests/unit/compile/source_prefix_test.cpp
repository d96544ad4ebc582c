// SPDX-License-Identifier: Apache-2.0
#include "compile/source_prefix.hpp"

#include <gmock/gmock.h>

namespace kiln::compile {
namespace {

using ::testing::ElementsAre;

TEST(source_prefix, ends_where_the_first_word_of_cpp_begins) {
    EXPECT_EQ(leading_directives("#include <a>\nint x;\n"), "#include <a>\n");
    EXPECT_EQ(leading_directives("// who\n\n/* what */ # include <a> // why\n#define N 3\n\n\nint x;\n#include <b>\n"),
              "// who\n\n/* what */ # include <a> // why\n#define N 3\n");
    EXPECT_EQ(leading_directives("#include <a>"), "#include <a>");
    EXPECT_EQ(leading_directives("#include \\\n <a>\r\nint"), "#include \\\n <a>\r\n");
    EXPECT_EQ(leading_directives("#include <a> /* over\n lines */\n#define X \\\n  int\nint"),
              "#include <a> /* over\n lines */\n#define X \\\n  int\n");
}

TEST(source_prefix, is_empty_where_nothing_is_included_before_the_first_word) {
    for (auto const* const text : {"", "int x;\n#include <a>\n", "#define N 3\nint x;\n", "/* #include <a> */ int x;",
                                   "// \\\n#include <a>\nint x;", "namespace n {\n#include <a>\n}\n", "/*", "//"})
        EXPECT_EQ(leading_directives(text), "") << text;
}

TEST(source_prefix, a_group_counts_as_a_whole) {
    EXPECT_EQ(
        leading_directives("#include <a>\n#ifdef D\ntypedef double r;\n#else\n#if 0\n#endif\n#endif\n#define B\nint"),
        "#include <a>\n#ifdef D\ntypedef double r;\n#else\n#if 0\n#endif\n#endif\n#define B\n");
    EXPECT_EQ(leading_directives("#include <a>\n#if 1\nint x;\n"), "#include <a>\n") << "it is never closed";
    EXPECT_EQ(leading_directives("#ifndef G\n#define G\n#include <a>\nint x;\n#endif\n"),
              "#ifndef G\n#define G\n#include <a>\nint x;\n#endif\n");
}

TEST(source_prefix, names_what_is_included) {
    EXPECT_THAT(included_names("#include <cub/a.cuh>\n# include \"b.h\" // \"c\"\n#include MACRO\n#define X <d>\n"),
                ElementsAre("cub/a.cuh", "b.h"));
}

job job_of(unit u, std::vector<std::string> toolkit = {"/cuda/include"}) {
    return {{"/lib/libnvrtc.so.13", "", std::move(toolkit)}, compile_job{std::move(u), target::parse("sm_90").value()}};
}

unit including(std::string name, std::string body) {
    return {.name = std::move(name), .source = "#include <a>\n" + std::move(body)};
}

TEST(source_prefix, two_jobs_share_one_if_the_front_end_is_told_the_same) {
    auto const first = prefix_of(job_of(including("a", "int a;")));
    ASSERT_TRUE(first);
    EXPECT_EQ(first, prefix_of(job_of(including("b", "int b;")))) << "another name, other words behind it";
    EXPECT_EQ(first, prefix_of(job_of(including("a", "int a;"), {"/usr/include"}))) << "headers count by what they say";

    auto with = [](auto change) {
        auto u = including("a", "int a;");
        change(u);
        return prefix_of(job_of(std::move(u)));
    };
    EXPECT_NE(first, with([](unit& u) { u.source = "#include <b>\nint a;"; }));
    EXPECT_NE(first, with([](unit& u) { u.options = {"-DA"}; }));
    EXPECT_NE(first, with([](unit& u) { u.include_dirs = {"/x"}; }));
    EXPECT_NE(first, with([](unit& u) { u.headers = {{"a", "1"}}; }));
    EXPECT_NE(with([](unit& u) { u.headers = {{"a", "2"}}; }), with([](unit& u) { u.headers = {{"a", "1"}}; }));
    auto other = job_of(including("a", "int a;"));
    std::get<compile_job>(other.task).target = target::parse("sm_80").value();
    EXPECT_NE(first, prefix_of(other));
    other = job_of(including("a", "int a;"));
    other.tools.nvrtc = "/lib/libnvrtc.so.12";
    EXPECT_NE(first, prefix_of(other));
}

// The second would have been given what the first found for "own.h", and not looked beside its source.
TEST(source_prefix, a_source_that_lies_somewhere_is_not_one_that_lies_nowhere) {
    unit nowhere{.name = "a", .source = "#include \"own.h\"\nint a;", .include_dirs = {"/usr/include"}};
    auto somewhere = nowhere;
    somewhere.directory = "/usr/src";
    EXPECT_NE(prefix_of(job_of(nowhere)), prefix_of(job_of(somewhere)));
    auto elsewhere = somewhere;
    elsewhere.directory = "/opt";
    EXPECT_EQ(prefix_of(job_of(somewhere)), prefix_of(job_of(elsewhere))) << "looked for again there";
}

TEST(source_prefix, debug_builds_know_names_and_places) {
    auto debug = [](std::string name, std::string directory) {
        auto u = including(std::move(name), "int a;");
        u.options = {"-lineinfo"};
        u.directory = std::move(directory);
        return prefix_of(job_of(std::move(u)));
    };
    EXPECT_EQ(debug("a", "/x"), debug("a", "/x"));
    EXPECT_NE(debug("a", "/x"), debug("b", "/x"));
    EXPECT_NE(debug("a", "/x"), debug("a", "/y"));
}

TEST(source_prefix, what_a_header_knows_of_its_source_is_not_shared) {
    auto u = including("a", "int a;");
    EXPECT_TRUE(prefix_of(job_of(u)));
    u.options = {"-DWHO=__BASE_FILE__"};
    EXPECT_FALSE(prefix_of(job_of(u)));
    u.options.clear();
    u.headers.push_back({"b.h", "#define WHO __BASE_FILE__"});
    EXPECT_FALSE(prefix_of(job_of(u)));
    EXPECT_FALSE(prefix_of(job_of({.name = "a", .source = "#define WHO __BASE_FILE__\n#include <a.h>\nint a;"})));
}

TEST(source_prefix, what_goes_around_the_cache_or_begins_elsewhere_has_none) {
    auto u = including("a", "int a;");
    u.uncached_options = {"--time=x"};
    EXPECT_FALSE(prefix_of(job_of(u)));
    u = including("a", "int a;");
    u.options = {"--pre-include=b.h"};
    EXPECT_FALSE(prefix_of(job_of(u)));
    EXPECT_FALSE(prefix_of(job_of({.name = "a", .source = "int a;"})));
    EXPECT_FALSE(prefix_of({{},
                            link_job{.name = "l",
                                     .target = target::parse("sm_90").value(),
                                     .inputs = {},
                                     .kernels = {},
                                     .exports = {},
                                     .options = {}}}));
}

}  // namespace
}  // namespace kiln::compile
