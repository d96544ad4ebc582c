// SPDX-License-Identifier: Apache-2.0
#include "compile/own_names.hpp"

#include <gtest/gtest.h>

namespace kiln::compile {

TEST(own_names, a_text_that_can_ask_for_its_name_is_seen_in_any_spelling) {
    for (auto const* text :
         {"int s[sizeof(__FILE__)];", "char const* f = __BASE_FILE__;", "__builtin_FILE()",
          "std::source_location here;", "std::source_\\\nlocation here;", "PASTE(__FI, LE__)", "PASTE(__, FILE__)",
          "PASTE(__BASE, _FILE__)", "PASTE(__, FILE, __)", "PASTE(_, _FI, LE_, _)", "PASTE(__, BASE, _FI, LE__)",
          "PASTE(__, FI, LE, __)", "_CCCL_BUILTIN_FILE()", "__FI\\\nLE__", "__FI\\ \t\r\nLE__", "__FI?\?/\nLE__",
          "u\"\" __FILE__"})
        EXPECT_TRUE(may_name_its_file(text)) << text;
    for (auto const* text : {"", "__global__ void k(int* a) { *a = 1; }", "// this file is a profile",
                             "int PROFILE, tile, BASE;", "#include \"k.h\"", "a \\ b", "a \\\n b", "__F32 __FX", "A\\"})
        EXPECT_FALSE(may_name_its_file(text)) << text;
}

TEST(own_names, headers_of_cuda_have_it_in_macros) {
    auto const in_macro = "#  define _CCCL_ASSERT(x) \\\n  fail(x, __FILE__)\nint a;\n";
    auto const openly = "#define A 1\ninline void f() { fail(__FILE__); }\n";
    EXPECT_FALSE(header_may_name_its_file("/x/cuda/std/__cccl/assert.h", in_macro));
    EXPECT_FALSE(header_may_name_its_file("/x/cub/util_debug.cuh", in_macro));
    EXPECT_TRUE(header_may_name_its_file("/x/cuda/std/__cccl/assert.h", openly));
    EXPECT_TRUE(header_may_name_its_file("/x/mine/assert.h", in_macro));
    // By the names of their macros: what a folder or a header is called is anybody's choice.
    for (auto const* path : {"/x/cuda_utils.h", "/x/cub/mine.cuh", "/x/nv/where.h"}) {
        EXPECT_TRUE(header_may_name_its_file(path, "#define WHERE __FILE__\n")) << path;
        EXPECT_TRUE(header_may_name_its_file(path, "#define\tWHERE \\\n __FILE__\n")) << path;
        EXPECT_FALSE(header_may_name_its_file(path, "#define CubDebug(e) Debug(e, __FILE__)\n")) << path;
    }
    EXPECT_FALSE(header_may_name_its_file("/x/mine/assert.h", "int a;"));
}

// CCCL 3.1 and later reads its source_location in every larger header, for an error that is thrown on the host.
TEST(own_names, a_librarys_source_location_tells_who_says_its_name) {
    constexpr auto definition =
        "class source_location { static constexpr source_location current(const char* f = _CCCL_BUILTIN_FILE()); };";
    constexpr auto use = "void __throw_cuda_error(source_location l = ::cuda::std::source_location::current());";
    EXPECT_FALSE(header_may_name_its_file("/x/cuda/std/source_location", definition));
    EXPECT_FALSE(header_may_name_its_file("/x/cuda/std/__exception/cuda_error.h", use));
    EXPECT_FALSE(
        header_may_name_its_file("/x/cuda/std/version", "// source_location\n#define __lib_source_location 1"));
    for (auto const* path : {"/x/cub/mine.cuh", "/x/cuda_utils.h", "/x/cuda/std/other", "/x/mine.h"}) {
        EXPECT_TRUE(header_may_name_its_file(path, definition)) << path;
        EXPECT_TRUE(header_may_name_its_file(path, use)) << path;
    }
    for (auto const* text :
         {"source_location l;", "P(source_, location)", "P(source, _location)", "P(sour, ce_location)"})
        EXPECT_TRUE(may_name_its_file(text)) << text;
    for (auto const* text : {"int source_index, location, the_location, e_l;", "_", "__"})
        EXPECT_FALSE(may_name_its_file(text)) << text;
}

TEST(own_names, a_text_that_may_name_its_source_is_known) {
    for (auto const* const text : {"a = __BASE_FILE__;", "__BASE_FILE__", "CAT(__BASE,_FILE__)", "__BASE_\\\nFILE__",
                                   "__BASE_\\ \nFILE__", "__BAS\\\r\nE_FILE__", "__BASE?\?/\n_FILE__", "x##BASE_FILE",
                                   "CAT(__B, ASE, _FI, LE_, _)", "CAT(_, _, B, A, S, E, _, F, I, L, E)"}) {
        EXPECT_TRUE(may_name_its_source(text)) << text;
        EXPECT_TRUE(may_name_its_file(text)) << text;
    }
    for (auto const* const text : {"__FILE__", "a_FILE b", "MY__BASE_FILE__", "__BASE_FILE__s", "", "_ __ FI LE"})
        EXPECT_FALSE(may_name_its_source(text)) << text;
}

TEST(own_names, headers_of_cuda_paste_names_of_their_own) {
    auto const pastes = "#define ANNOTATE(a) __##a##__\n";
    EXPECT_FALSE(header_may_name_the_time("/x/crt/host_defines.h", pastes));
    EXPECT_TRUE(header_may_name_the_time("/x/mine/defines.h", pastes));
    for (auto const* path : {"/x/crt/host_defines.h", "/x/mine/defines.h"}) {
        EXPECT_TRUE(header_may_name_the_time(path, "int a[sizeof(__TIME__)];"));
        EXPECT_TRUE(header_may_name_the_time(path, "PASTE(__, TIME, __)"));
        EXPECT_FALSE(header_may_name_the_time(path, "int a;"));
    }
}

TEST(own_names, the_time_is_seen) {
    for (auto const* text : {"__DATE__",
                             "x = __TIME__;",
                             "__TIMESTAMP__",
                             "__TI\\\nME__",
                             "PASTE(__TIME, __)",
                             "PASTE(__, DATE__)",
                             "PASTE(__TIMES, TAMP__)",
                             "A__TIME__",
                             "PASTE(__, TIME, __)",
                             "PASTE(_, _TIME_, _)",
                             "PASTE(_, _, DA, T, E, _, _)",
                             "PASTE(__T, IM, E__)",
                             "PASTE(__TI\\\n, M, E__)",
                             "PASTE(__, TI\\\nME, __)",
                             "PASTE(__,TIME,STAMP,__)",
                             "#define WRAP(x) __##x##__",
                             "#define WRAP(x) _ ## x ## _",
                             "#define WRAP(x) _?\?=?\?=x",
                             "#define ENDS __",
                             "CAT(ENDS, TIME_)"})
        EXPECT_TRUE(may_name_the_time(text)) << text;
    for (auto const* text : {"", "int time, TIME, DATE;", "__device__ __TX E__ __DAMN__ FRAME__", "asm(\"__$t, 1\")",
                             "// ______ TIME ______", "[](auto _) { return _; } /* T I M A */", "x(_, 1) #define A",
                             "template <class T, class E, int D, int A> struct __M;"})
        EXPECT_FALSE(may_name_the_time(text)) << text;
}

TEST(own_names, what_one_text_has_the_beginning_of_another_may_have_the_end_of) {
    using pieces = texts_together::pieces;
    texts_together time;
    time.add("CAT(_, CAT(_, CAT(X, CAT(_, _))))");
    EXPECT_FALSE(time.may_name_the_time());
    time.add("-DX=TI");
    EXPECT_FALSE(time.may_name_the_time());
    time.add("#define Y M\\\nE\n", pieces::of_two_letters);
    EXPECT_TRUE(time.may_name_the_time());
    EXPECT_FALSE(time.may_name_a_file());

    texts_together file;
    file.add("CAT(_, CAT(_, CAT(X, CAT(Y, CAT(_, _)))))");
    file.add("-DX=FI");
    file.add("-DY=LE");
    EXPECT_TRUE(file.may_name_a_file());
    EXPECT_FALSE(file.may_name_their_source());

    // A library wraps names of its own in underscores, and has every letter as a parameter.
    texts_together library;
    library.add("#define ANNOTATE(a) __##a##__\n template <class T, int I, int M, class E> struct _; int TIME;",
                pieces::underscores);
    EXPECT_FALSE(library.may_name_the_time());
    library.add("template <class T, int I, int M, class E> struct mine;", pieces::of_two_letters);
    library.add("template <class T, int I, int M, class E> __global__ void k();");
    EXPECT_FALSE(library.may_name_the_time());
    library.add("ANNOTATE(TIME)");
    EXPECT_TRUE(library.may_name_the_time());
}

}  // namespace kiln::compile
