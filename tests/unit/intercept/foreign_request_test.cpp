// SPDX-License-Identifier: Apache-2.0
#include "intercept/foreign_request.hpp"

#include <gtest/gtest.h>

namespace kiln::intercept {

namespace {

using words = std::vector<std::string>;

foreign_program program_named(std::optional<std::string> name) {
    return {.source = "text", .name = std::move(name), .headers = {}, .expressions = {}};
}

}  // namespace

TEST(foreign_request, hides_the_folder_of_the_name_and_include_folders) {
    auto const call = virtual_call(program_named("/tmp/tmp4711/k.cu"),
                                   words{"-I/opt/a", "-DX=-I/b", "--include-path=/opt/c", "-arch=sm_90"});
    ASSERT_TRUE(call);
    EXPECT_EQ(call->name, "/.kiln/s/k.cu");
    EXPECT_EQ(call->options, (words{"-I/.kiln/i0", "-DX=-I/b", "-I/.kiln/i1", "-arch=sm_90"}));
    EXPECT_EQ(call->roots.source_directory, "/tmp/tmp4711");
    EXPECT_EQ(call->roots.include_directories, (words{"/opt/a", "/opt/c"}));
}

TEST(foreign_request, hides_nothing_where_what_is_made_would_tell) {
    for (auto const* option : {"-G", "-lineinfo", "--generate-line-info", "-dlto", "--optix-ir", "--device-debug"})
        EXPECT_FALSE(virtual_call(program_named("/tmp/x/k.cu"), words{"-I/opt/a", option})) << option;
    // Symbols of relocatable code are called after the file, and not after its folder.
    for (auto const* option : {"-rdc=true", "--relocatable-device-code=true", "-dc", "-ewp"})
        EXPECT_EQ(virtual_call(program_named("/tmp/x/k.cu"), words{option}).value().name, "/.kiln/s/k.cu") << option;
}

TEST(foreign_request, hides_nothing_from_who_could_ask_for_hidden_names) {
    auto const hides = [](std::string source, words const& options) {
        auto p = program_named("/tmp/x/k.cu");
        p.source = std::move(source);
        return virtual_call(p, options).has_value();
    };
    for (auto const* text : {"#include \"/.kiln/i0/x.h\"", "#define K kiln", "\"/.ki\\\nln/\"", "</.P(k,iln)/i0/x.h>"})
        EXPECT_FALSE(hides(text, {"-I/opt/a"})) << text;
    EXPECT_FALSE(hides("text", {"-I/opt/a", "-DK=kiln"}));
    EXPECT_FALSE(hides("text", {"-I/opt/a", "--pre-include=/.kiln/i0/x.h"}));
    EXPECT_TRUE(hides("int kilns, ki; // a/.b", {"-I/opt/kiln", "-DX=1"}));
}

TEST(foreign_request, leaves_what_it_cannot_hide_exactly) {
    for (auto const& name : {std::optional<std::string>{}, std::optional<std::string>{"k.cu"},
                             std::optional<std::string>{"sub/k.cu"}, std::optional<std::string>{"/tmp/"}})
        EXPECT_FALSE(virtual_call(program_named(name), words{"-Irelative", "-I/ends/", "-I", "/two/words", "-I/"}));
}

TEST(foreign_request, temporary_folders_do_not_change_the_digests) {
    auto const of = [](char const* name, words const& options) {
        auto const p = program_named(name);
        return digests_of(p, *virtual_call(p, options), "nvrtc").request;
    };
    EXPECT_EQ(of("/tmp/a/k.cu", {"-I/x"}), of("/tmp/b/k.cu", {"-I/y"}));
    EXPECT_NE(of("/tmp/a/k.cu", {"-I/x"}), of("/tmp/a/j.cu", {"-I/x"}));
    EXPECT_NE(of("/tmp/a/k.cu", {"-I/x"}), of("/tmp/a/k.cu", {"-I/x", "-I/y"}));
}

TEST(foreign_request, everything_asked_is_in_the_digests) {
    auto const base_program = program_named("k.cu");
    auto const of = [](foreign_program const& p, words const& o, std::string_view tools = "nvrtc 1") {
        return digests_of(p, literal_call(p, o, "/a"), tools).request;
    };
    auto const plain = of(base_program, {"-DA=1", "-DB"});
    auto other = base_program;
    other.source = "text2";
    EXPECT_NE(of(other, {"-DA=1", "-DB"}), plain);
    EXPECT_NE(of(program_named({}), {"-DA=1", "-DB"}), plain);
    EXPECT_NE(of(base_program, {"-DB", "-DA=1"}), plain);
    EXPECT_NE(of(base_program, {"-DA=1 -DB"}), plain);
    EXPECT_NE(of(base_program, {"-DA=1", "-DB"}, "nvrtc 2"), plain);
    other = base_program;
    other.headers = {{"a.h", "b"}};
    auto const with_header = of(other, {"-DA=1", "-DB"});
    EXPECT_NE(with_header, plain);
    other.headers = {{"a.hb", ""}};
    EXPECT_NE(of(other, {"-DA=1", "-DB"}), with_header);
    other = base_program;
    other.expressions = {"f<int>"};
    EXPECT_NE(of(other, {"-DA=1", "-DB"}), plain);
    EXPECT_NE(of(program_named(""), {}), of(program_named({}), {}));
}

TEST(foreign_request, what_tells_the_working_directory_is_of_that_directory) {
    auto const of = [](char const* option, char const* directory) {
        auto const p = program_named("k.cu");
        return digests_of(p, literal_call(p, words{"-Iinclude", option}, directory), "nvrtc").request;
    };
    for (auto const* option :
         {"-G", "--device-debug", "-lineinfo", "--generate-line-info", "-dlto", "--dlink-time-opt", "--optix-ir"}) {
        EXPECT_TRUE(tells_directory(words{option})) << option;
        EXPECT_NE(of(option, "/a"), of(option, "/b")) << option;
        EXPECT_EQ(of(option, "/a"), of(option, "/a")) << option;
    }
    for (auto const* option : {"-DG", "-rdc=true", "-arch=sm_90"}) {
        EXPECT_FALSE(tells_directory(words{option})) << option;
        EXPECT_EQ(of(option, "/a"), of(option, "/b")) << option;
    }
}

TEST(foreign_request, options_with_effects_are_not_kept) {
    for (auto const* option : {"-pch", "--create-pch=x", "--use-pch=x", "-time=f.csv", "--fdevice-time-trace=t",
                               "--options-file=o", "-optf", "@o", "--ptxas-options=--options-file=o",
                               "-Xptxas=--output-file=x", "-arch=native", "--nvvm-options=-dump-ir"})
        EXPECT_EQ(unkeepable_option(words{"-arch=sm_90", option}), option);
    EXPECT_EQ(
        unkeepable_option(words{"-arch=sm_90", "-I/time/native-file", "-DDUMP=dump", "-dlink-time-opt", "-std=c++17",
                                "--builtin-initializer-list=true", "-D", "time=1", "--split-compile=0", "-lto"}),
        "");
}

TEST(foreign_request, blanks_around_an_option_are_not_part_of_it) {
    for (auto const* option : {" -G", "-lineinfo ", "\t-dlto", "-optix-ir\n"}) {
        EXPECT_TRUE(tells_directory(words{option})) << option;
        EXPECT_FALSE(virtual_call(program_named("/tmp/x/k.cu"), words{"-I/opt/a", option})) << option;
    }
    for (auto const* option : {" -pch", " --create-pch=x", " @o", "\t-time=f.csv"})
        EXPECT_EQ(unkeepable_option(words{option}), option);
    // The compiler would look in /opt/a, and we in a folder whose name ends in a blank.
    auto const call = virtual_call(program_named("/tmp/x/k.cu"), words{"-I/opt/a ", " -I/opt/b"});
    ASSERT_TRUE(call);
    EXPECT_EQ(call->options, (words{"-I/opt/a ", " -I/opt/b"}));
}

TEST(foreign_request, name_expressions_are_compiled_too) {
    auto p = program_named("/tmp/x/k.cu");
    p.expressions = {"k<sizeof(__BASE_FILE__)>"};
    EXPECT_FALSE(virtual_call(p, words{}));
    EXPECT_FALSE(depends_on_the_time(p, words{}));
    p.expressions = {"k<1>", "k<__TIME__[7]>"};
    EXPECT_TRUE(depends_on_the_time(p, words{}));
}

TEST(foreign_request, whatever_a_program_gives_the_compiler_counts_together) {
    auto p = program_named("/tmp/x/k.cu");
    p.source = "#include \"a.h\"\nCAT(_, CAT(_, CAT(X, CAT(_, _))))";
    EXPECT_FALSE(own_texts(p, words{}).may_name_the_time());
    EXPECT_TRUE(own_texts(p, words{"-DX=TIME"}).may_name_the_time());
    p.headers = {{"a.h", "#define X TIME\n"}};
    EXPECT_TRUE(own_texts(p, words{}).may_name_the_time());
    p.headers.clear();
    p.expressions = {"k<TIME>"};
    EXPECT_TRUE(own_texts(p, words{}).may_name_the_time());
}

TEST(foreign_request, finds_virtual_names_in_what_was_made) {
    EXPECT_TRUE(tells_virtual_names(std::string_view{"...\0/.kiln/i0/a.h", 17}));
    EXPECT_TRUE(tells_virtual_names(".b8 $str[9] = {47, 46, 107, 105, 108, 110, 47, 115, 0};"));
    EXPECT_FALSE(tells_virtual_names("kiln /opt/.kil"));
}

TEST(foreign_request, names_the_target_for_people) {
    EXPECT_EQ(target_in(words{"-std=c++17", "-arch=sm_90"}), "sm_90");
    EXPECT_EQ(target_in(words{"--gpu-architecture", "compute_80"}), "compute_80");
    EXPECT_EQ(target_in(words{}), "default");
}

TEST(foreign_request, a_link_is_a_chain) {
    auto const begun = link_begun("tools", words{"-lto", "-arch=sm_90"});
    EXPECT_NE(begun, link_begun("tools", words{"-arch=sm_90", "-lto"}));
    auto const a = link_added(begun, 3, base::as_bytes("x"));
    EXPECT_NE(a, link_added(begun, 2, base::as_bytes("x")));
    EXPECT_NE(a, link_added(begun, 3, base::as_bytes("")));
    auto const ab = link_added(a, 3, base::as_bytes("y"));
    auto const ba = link_added(link_added(begun, 3, base::as_bytes("y")), 3, base::as_bytes("x"));
    EXPECT_NE(ab, ba);
    EXPECT_NE(link_named(ab, words{"a", "b"}), link_named(ab, words{"ab", ""}));
}

TEST(foreign_request, a_name_is_told_whole_or_in_part) {
    EXPECT_TRUE(tells_a_name("warning in /tmp/x1/piece.o", "/tmp/x1/piece.o"));
    EXPECT_TRUE(tells_a_name("warning in piece", "/tmp/x1/piece.o"));
    EXPECT_FALSE(tells_a_name("warning", "/tmp/x1/piece.o"));
    EXPECT_FALSE(tells_a_name("warning", ""));
    EXPECT_TRUE(tells_a_name("in .hidden", ".hidden"));
}

TEST(foreign_request, only_what_the_compiler_takes_for_an_include_directory_is_hidden) {
    foreign_program const p{.source = "text", .name = "k.cu", .headers = {}, .expressions = {}};
    for (auto const* option : {"-I/a", "-I=/a", "--include-path=/a"})
        EXPECT_TRUE(virtual_call(p, words{option})) << option;
    for (auto const* option : {"-I==/a", "--include-path==/a", "-include-path=/a", "---include-path=/a", "--I=/a",
                               "--I/a", "---I/a", "--include-path/a", "--include-path =/a", "-I= /a"})
        EXPECT_FALSE(virtual_call(p, words{option})) << option;
    EXPECT_FALSE(virtual_call(p, words{"-I", "-I/a"}));
    EXPECT_FALSE(virtual_call(p, words{"--pre-include", "-I/a"}));
    EXPECT_TRUE(virtual_call(p, words{"-use_fast_math", "-I/a"}));
}

TEST(foreign_request, no_directory_is_hidden_from_who_asks) {
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
