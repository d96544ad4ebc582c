// SPDX-License-Identifier: Apache-2.0
#include "compile/keys.hpp"

#include <gtest/gtest.h>

namespace kiln::compile {

namespace {

kiln::unit plain() { return {.name = "k", .source = "extern \"C\" __global__ void k() {}", .kernels = {"k"}}; }
target sm90() { return target::parse("sm_90").value(); }
digest request_of(kiln::unit const& u, target t = sm90(), std::string_view toolchain = "nvrtc 1") {
    return identify(u, t, toolchain).value().request;
}
digest with_options(std::vector<std::string> options) {
    auto u = plain();
    u.options = std::move(options);
    return request_of(u);
}

}  // namespace

// V5, from the table itself: an option that was given a role in the key must change the key.
TEST(faults, V5_every_keyed_option_changes_the_key) {
    auto const base = request_of(plain());
    for (auto const& row : option_table()) {
        std::string text{row.name};
        if (row.value == option_value::required) text += "=" + std::string{row.note};
        auto u = plain();
        u.options = {text};
        auto const id = identify(u, sm90(), "nvrtc 1");
        switch (row.role) {
            case option_role::keyed:
            case option_role::repeated:
            case option_role::macro: EXPECT_NE(id.value().request, base) << text; break;
            case option_role::unkeyed:
            case option_role::include: EXPECT_EQ(id.value().request, base) << text; break;
            case option_role::refused:
                ASSERT_FALSE(id) << text;
                EXPECT_NE(id.error().message().find(text.substr(0, text.find('='))), std::string::npos)
                    << "names the option";
                break;
        }
    }
}

TEST(faults, V5_every_other_input_changes_the_key) {
    auto const base = request_of(plain());
    auto u = plain();
    u.source += " ";
    EXPECT_NE(request_of(u), base);
    u = plain();
    u.name = "k2";
    EXPECT_NE(request_of(u), base);
    u = plain();
    u.kernels.push_back("j");
    EXPECT_NE(request_of(u), base);
    u = plain();
    u.exports = {"info"};
    EXPECT_NE(request_of(u), base);
    u = plain();
    u.headers = {{"a.h", "1"}};
    auto const with_header = request_of(u);
    EXPECT_NE(with_header, base);
    u.headers = {{"a.h", "2"}};
    EXPECT_NE(request_of(u), with_header);
    EXPECT_NE(request_of(plain(), target::parse("sm_90a").value()), base);
    EXPECT_NE(request_of(plain(), target::parse("sm_90", artifact_kind::ltoir).value()), base);
    EXPECT_NE(request_of(plain(), sm90(), "nvrtc 2"), base) << "V1: another build of the compiler";
}

TEST(faults, V6_inputs_that_must_not_matter_do_not) {
    auto const base = request_of(plain());
    auto u = plain();
    u.include_dirs = {"/somewhere"};
    u.directory = "/elsewhere";
    u.licence = "MIT";
    EXPECT_EQ(request_of(u), base);
    EXPECT_NE(with_options({"-w"}), base) << "it changes the bytes, and others want the warnings";
    EXPECT_NE(with_options({"-split-compile=4"}), base) << "the parts come out in another order";
    EXPECT_EQ(with_options({"--fmad=false", "--std=c++17"}), with_options({"-std=c++17", "-fmad=false"}));
    EXPECT_EQ(with_options({"-DA=1", "-DB=2"}), with_options({"-D", "B=2", "--define-macro=A=1"}));
    EXPECT_EQ(with_options({"-DA"}), with_options({"-DA=1"}));
    u = plain();
    u.headers = {{"a.h", ""}, {"b.h", ""}};
    auto v = plain();
    v.headers = {{"b.h", ""}, {"a.h", ""}};
    EXPECT_EQ(request_of(u), request_of(v));
}

TEST(keys, order_counts_where_it_does) {
    EXPECT_NE(with_options({"-DA=1", "-UA"}), with_options({"-UA", "-DA=1"}));
    EXPECT_NE(with_options({"-DA=1 2"}), with_options({"-DA=1", "-D2"}));
    EXPECT_EQ(with_options({"--fmad=true", "--fmad=false"}), with_options({"--fmad=false"})) << "the last one wins";
}

TEST(faults, V11_debug_is_distinct_and_holds_paths) {
    auto u = plain();
    u.options = {"-lineinfo"};
    auto const here = request_of(u);
    EXPECT_NE(here, request_of(plain()));
    u.directory = "/other";
    EXPECT_NE(request_of(u), here);
}

TEST(keys, an_unknown_option_is_refused_by_name) {
    auto u = plain();
    u.options = {"--no-such-option=1"};
    auto const r = identify(u, sm90(), "nvrtc 1");
    ASSERT_FALSE(r);
    EXPECT_NE(r.error().message().find("--no-such-option=1"), std::string::npos);
}

TEST(keys, sealing_takes_what_was_read_and_not_what_was_looked_for) {
    auto const request = request_of(plain());
    dependency read{dependency::root::include_directory, 0, "a.h", std::string(64, 'a')};
    dependency probed{dependency::root::include_directory, 0, "b.h", ""};
    auto const sealed = seal(request, std::vector{read});
    EXPECT_NE(sealed, seal(request, {}));
    EXPECT_EQ(sealed, seal(request, std::vector{probed, read}));
    read.content[0] = 'b';
    EXPECT_NE(sealed, seal(request, std::vector{read}));
}

struct text_case {
    char const* text;
    bool contained;
};
class self_contained : public testing::TestWithParam<text_case> {};

TEST_P(self_contained, is_decided_conservatively) {
    auto u = plain();
    u.source = GetParam().text;
    u.headers = {{"mem.h", "// no more"}};
    EXPECT_EQ(is_self_contained(u, {}), GetParam().contained) << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(texts, self_contained,
                         testing::Values(text_case{"int x;", true}, text_case{"#include <mem.h>\n", true},
                                         text_case{"# include \"mem.h\"", true}, text_case{"#include <other.h>", false},
                                         text_case{"#inc\\\nlude <other.h>", false}, text_case{"#include MACRO", false},
                                         text_case{"%:include <other.h>", false},
                                         text_case{"?"
                                                   "?=include <mem.h>",
                                                   false},
                                         text_case{"#inc?"
                                                   "?/\nlude <other.h>",
                                                   false},
                                         text_case{"__has_include(<other.h>)", false},
                                         text_case{"#if PASTE(__has_inc, lude)(<other.h>)", false},
                                         text_case{"import thing;", false},
                                         text_case{"#include <mem.h>\n#include <x.h>", false}));

TEST(self_contained, a_header_in_memory_may_ask_for_a_file) {
    auto u = plain();
    u.source = "#include <mem.h>";
    u.headers = {{"mem.h", "#include <disk.h>"}};
    EXPECT_FALSE(is_self_contained(u, {}));
    u.options = {"--pre-include=x.h"};
    u.source = "";
    u.headers = {};
    EXPECT_FALSE(is_self_contained(u, normalize(u.options).value()));
    u.source = "#if LOOK\n#endif\n";
    u.options = {"-DLOOK=1"};
    EXPECT_TRUE(is_self_contained(u, normalize(u.options).value()));
    u.options = {"-DLOOK=__has_include(<other.h>)"};
    EXPECT_FALSE(is_self_contained(u, normalize(u.options).value()));
}

TEST(options, what_reads_or_writes_files_through_ptxas_or_nvjitlink_is_refused) {
    auto const with = [](std::vector<std::string> const& o) { return normalize(o).has_value(); };
    EXPECT_TRUE(with({"-Xptxas", "-O2"}));
    EXPECT_TRUE(with({"--ptxas-options=-O2,-v --maxrregcount=32"}));
    EXPECT_FALSE(with({"--ptxas-options=--compiler-stats-file=/tmp/f"}));
    EXPECT_FALSE(with({"--ptxas-options=-v,--options-file=/tmp/f"}));
    EXPECT_FALSE(with({"--ptxas-options=-o /tmp/f"}));
    EXPECT_FALSE(with({"-Xptxas", "--apply-controls=/tmp/f"}));
    EXPECT_FALSE(with({"-Werror"})) << "NVRTC has no such option";
    EXPECT_FALSE(with({"--fmad"})) << "nor this one without a value";

    auto const link = [](std::vector<std::string> const& o) { return check_link_options(o).has_value(); };
    EXPECT_TRUE(link({"-O3", "-split-compile=0", "-Xptxas=-v", "-maxrregcount=32"}));
    EXPECT_FALSE(link({"-Xptxas=--options-file=/tmp/f"}));
    EXPECT_FALSE(link({"-Xnvvm=-dump"}));
    EXPECT_FALSE(link({"-arch=sm_80"}));
    EXPECT_FALSE(link({"-time"}));
}

// NVRTC would take the next option for the name, and the key would say something else.
TEST(options, a_macro_without_a_name_is_refused) {
    for (auto const& o : std::vector<std::vector<std::string>>{
             {"-D="}, {"-D", ""}, {"-D", "=1"}, {"-U="}, {"--define-macro=", "--fmad=false"}}) {
        auto const r = normalize(o);
        ASSERT_FALSE(r) << o[0];
        EXPECT_EQ(r.error().code(), errc::invalid_argument);
    }
    EXPECT_TRUE(normalize(std::vector<std::string>{"-D", "A", "-DF(x)=x", "-UA"}));
}

// NVRTC sees no blanks around a word, none behind a glued letter, and leaves those behind '=' to its front end.
TEST(options, blanks_do_not_hide_which_macro_is_meant) {
    EXPECT_NE(with_options({"-DV=2", "-U V"}), with_options({"-U V", "-DV=2"}));
    EXPECT_NE(with_options({"-D", "  V=1", "-DV=2"}), with_options({"-DV=2", "-D", "  V=1"}));
    EXPECT_NE(with_options({"-DV=2", "--define-macro=\tV=1"}), with_options({"--define-macro=\tV=1", "-DV=2"}));
    for (auto const* same : {"-D V=2", "-D  V=2", "-D\tV=2", "-D= V=2", " -DV=2", "-DV=2 \n", "--define-macro= V=2"})
        EXPECT_EQ(with_options({same}), with_options({"-DV=2"})) << same;
    EXPECT_EQ(with_options({"-D ", "V=2"}), with_options({"-DV=2"})) << "two words";
    EXPECT_NE(with_options({"-DV= 2"}), with_options({"-DV=2"})) << "what a value says is left alone";
    EXPECT_FALSE(normalize(std::vector<std::string>{"-D =V"}));
    EXPECT_EQ(with_options({" --fmad=false "}), with_options({"--fmad=false"}));
}

// NVRTC takes the first for V, and is not told to take the others for anything.
TEST(options, the_order_of_what_is_not_understood_is_kept) {
    for (auto const* odd : {"-D/**/V=1", "-D\\u0056=1", "-DV/**/=1"}) {
        EXPECT_NE(with_options({"-DV=2", odd}), with_options({odd, "-DV=2"})) << odd;
        EXPECT_NE(with_options({"-DA=1", "-DB=1", odd}), with_options({"-DB=1", "-DA=1", odd})) << odd;
    }
    EXPECT_EQ(with_options({"-DA=1", "-DB=1"}), with_options({"-DB=1", "-DA=1"}));
}

TEST(options, a_directory_is_what_nvrtc_takes_for_one) {
    auto const directory = [](std::vector<std::string> const& o) { return normalize(o).value().include_dirs.at(0); };
    for (auto const* one :
         {"-I/a b", "-I /a b", "-I  /a b", " -I/a b", "-I/a b \t\n", "-I=/a b", "--include-path=/a b "})
        EXPECT_EQ(directory({one}), "/a b") << '[' << one << ']';
    EXPECT_EQ(directory({"-I ", " /a "}), "/a");
    EXPECT_EQ(directory({"-I= /a"}), " /a") << "a relative one";
    EXPECT_EQ(directory({"-I\t/a"}), "\t/a");
    for (auto const* none : {"-I=", "--include-path= "})
        EXPECT_EQ(normalize(std::vector<std::string>{none}).error().code(), errc::invalid_argument) << none;
}

TEST(options, blanks_do_not_hide_what_is_refused) {
    EXPECT_FALSE(check_uncached_options(std::vector<std::string>{" -arch=sm_80"}));
    EXPECT_FALSE(check_uncached_options(std::vector<std::string>{"-dlto "}));
    EXPECT_TRUE(check_uncached_options(std::vector<std::string>{" --time=x"}));
}

TEST(identify, a_nul_in_a_text_is_refused) {
    unit u{.name = "n", .source = std::string("a\nb\0c", 5)};
    auto const r = identify(u, target::parse("sm_90").value(), "nvrtc x");
    ASSERT_FALSE(r);
    EXPECT_NE(r.error().message().find("NUL character in line 2"), std::string::npos);
    u.source = "a";
    EXPECT_TRUE(identify(u, target::parse("sm_90").value(), "nvrtc x"));
    u.options = {std::string("-DA\0=1", 6)};
    EXPECT_FALSE(identify(u, target::parse("sm_90").value(), "nvrtc x"));
}

TEST(keys, headers_that_travel_are_no_part_of_the_name_and_a_name_can_do_without_the_text) {
    unit const u{.name = "u", .source = "#include <q.h>\nint x;", .include_dirs = {"/i"}, .directory = "/s"};
    auto carrying = u;
    carrying.include_dirs.clear(), carrying.directory.clear();
    carrying.carried = {{"i0/q.h", "two"}};
    auto const t = target::parse("sm_90").value();
    auto const family = identify(u, t, "nvrtc 1").value().family;
    EXPECT_EQ(identify(carrying, t, "nvrtc 1").value().family, family) << "bundles and caches know no difference";

    unit const without_text{.name = "u", .source = "", .images_of = family.hex()};
    EXPECT_EQ(identify(without_text, t, "nvrtc 1").value().request, identify(u, t, "nvrtc 1").value().request);
    // A copy that asks for more than was shipped is no longer it.
    for (auto const& change : {+[](unit& u) { u.source = "other"; }, +[](unit& u) { u.options = {"-DOPT=7"}; },
                               +[](unit& u) { u.kernels = {"t<int>"}; }, +[](unit& u) { u.exports = {"c"}; },
                               +[](unit& u) {
                                   u.headers = {{"q.h", ""}};
                               },
                               +[](unit& u) { u.include_dirs = {"/i"}; }}) {
        auto edited = without_text;
        change(edited);
        EXPECT_FALSE(identify(edited, t, "nvrtc 1"));
    }
    unit const nonsense{.name = "u", .source = "", .images_of = "nonsense"};
    EXPECT_EQ(identify(nonsense, t, "nvrtc 1").error().code(), errc::invalid_argument);
    carrying.carried = {{"i0/q.h", std::string("a\0b", 3)}};
    EXPECT_EQ(identify(carrying, t, "nvrtc 1").error().code(), errc::invalid_argument);
}

TEST(keys, one_more_directory_is_another_unit_wherever_it_lies) {
    auto const t = target::parse("sm_90").value();
    auto const family = [&](unit const& u) { return identify(u, t, "nvrtc 1").value().family; };
    unit u{.name = "u", .source = "#if __has_include(<q.h>)\n#include <q.h>\n#endif\n"};
    auto const alone = family(u);
    u.include_dirs = {"/a"};
    auto const with_one = family(u);
    EXPECT_NE(with_one, alone) << "nobody has looked there";
    u.include_dirs = {"/somewhere/else"};
    EXPECT_EQ(family(u), with_one) << "where it lies is told by what is found there";
    u.include_dirs.clear(), u.options = {"-I/a"};
    EXPECT_EQ(family(u), with_one);
    u.options.clear(), u.directory = "/a";
    EXPECT_NE(family(u), alone) << "beside the source, too";
    unit text{.name = "u", .source = "int x;"};
    auto const reads_nothing = family(text);
    text.include_dirs = {"/a"}, text.directory = "/b";
    EXPECT_EQ(family(text), reads_nothing);
}

TEST(keys, the_number_of_directories_is_among_what_is_told) {
    auto const told = [](unit const& u) {
        for (auto const& field : describe_inputs(u, normalize(u.options).value())) {
            if (field.name == "directories") return field.value;
        }
        return std::string{"nothing"};
    };
    unit u{.name = "u", .source = "#include <q.h>\n"};
    EXPECT_EQ(told(u), "0");
    u.include_dirs = {"/a"}, u.options = {"-I/b"}, u.directory = "/c";
    EXPECT_EQ(told(u), "s2");
    u.source = "int x;";
    EXPECT_EQ(told(u), "nothing") << "it looks in none";
}

TEST(keys, images_go_by_all_of_their_keys) {
    std::vector<digest> const keys{base::sha256_of(std::string_view{"a"}), base::sha256_of(std::string_view{"b"})};
    std::vector<digest> const turned{keys[1], keys[0]};
    EXPECT_EQ(family_of_images(keys), family_of_images(turned));
    EXPECT_NE(family_of_images(keys), family_of_images(std::span{keys}.first(1)));
}

TEST(keys, two_headers_of_one_name_are_told) {
    unit u{.name = "k", .source = "#include \"a.h\"\n"};
    u.headers = {{"a.h", "1"}, {"b.h", "1"}};
    auto const t = target::parse("sm_90").value();
    EXPECT_TRUE(identify(u, t, "nvrtc 1"));
    u.headers.push_back({"a.h", "2"});
    auto const refused = identify(u, t, "nvrtc 1");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message(), "unit 'k': it has two headers named 'a.h'; keep one");
}

}  // namespace kiln::compile
