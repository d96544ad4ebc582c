// SPDX-License-Identifier: Apache-2.0
#include "compile/includes.hpp"

#include "base/digest.hpp"
#include "compile/carried_headers.hpp"
#include "compile/header_stream.hpp"
#include "compile/standard_headers.hpp"
#include "support/faulty_calls.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

namespace kiln::compile {

class includes : public testing::Test {
protected:
    void SetUp() override {
        for (auto const* name : {"source", "first", "second", "nothing", "kit"})
            base::make_directories(dir(name)).value();
        write("second/q.h", "two");
        write("kit/cuda.h", "kit");
        roots_.source_directory = dir("source");
        roots_.include_directories = {dir("first"), dir("second")};
        roots_.toolkit = {dir("nothing"), dir("kit")};
    }
    std::string dir(std::string const& name) const { return scratch_.path() / name; }
    void write(std::string const& name, std::string_view text) {
        base::replace_file(dir(name), base::as_bytes(text)).value();
    }
    static std::string read(std::FILE* f) {
        if (f == nullptr) return "(none)";
        char text[100] = {};
        auto const size = std::fread(text, 1, sizeof text, f);
        std::fclose(f);
        return {text, size};
    }
    std::vector<dependency> look_as_nvrtc_does() {
        include_capture capture{roots_};
        EXPECT_EQ(read(capture.open("/.kiln/s/q.h")), "(none)");
        EXPECT_EQ(read(capture.open("/.kiln/i0/q.h")), "(none)");
        EXPECT_EQ(read(capture.open("/.kiln/i1/q.h")), "two");
        EXPECT_EQ(read(capture.open("/.kiln/t/cuda.h")), "kit");
        return capture.dependencies();
    }
    std::string change(std::vector<dependency> const& deps, absent_headers how = absent_headers::are_misses) {
        return first_change(deps, roots_, how);
    }

    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-includes").value();
    include_roots roots_;
};

// A program may have closed its standard streams, and go on writing to them: what it writes is no header's text.
TEST(header_streams, are_no_standard_streams) {
    auto const look = [] {
        for (int const stream : {0, 1, 2}) ::close(stream);
        auto* const text = stream_over(base::as_bytes("text")).value();
        for (int const stream : {0, 1, 2})
            if (::write(stream, "said to nobody", 14) >= 0) ::_exit(1);
        char read[5] = {};
        ::_exit(std::fread(read, 1, 4, text) == 4 && std::string_view{read} == "text" ? 0 : 2);
    };
    EXPECT_EXIT(look(), testing::ExitedWithCode(0), "");
}

TEST_F(includes, every_look_is_recorded_without_any_path_of_this_machine) {
    auto const deps = look_as_nvrtc_does();
    ASSERT_EQ(deps.size(), 4u);
    for (auto const& d : deps) EXPECT_EQ(d.path.find(scratch_.path().native()), std::string::npos);
    EXPECT_EQ(change(deps), "");
}

TEST_F(includes, carried_headers_are_found_where_they_lay_and_nowhere_else) {
    unit const there{
        .name = "u", .source = "", .include_dirs = {dir("first"), dir("second")}, .directory = dir("source")};
    write("source/s.h", "beside");
    include_capture on_disk{roots_of(there)};
    for (auto const* path : {"/.kiln/s/s.h", "/.kiln/i0/q.h", "/.kiln/i1/q.h"}) (void)read(on_disk.open(path));

    unit const carried{.name = "u", .source = "", .carried = {{"s/s.h", "beside"}, {"i1/q.h", "two"}}};
    auto const roots = roots_of(carried);
    EXPECT_EQ(roots.include_directories.size(), 2u);
    include_capture capture{roots};
    write("source/s.h", "planted");
    write("first/q.h", "planted");
    EXPECT_EQ(read(capture.open("/.kiln/s/s.h")), "beside");
    EXPECT_EQ(read(capture.open("/.kiln/i0/q.h")), "(none)");
    EXPECT_EQ(read(capture.open("/.kiln/i1/q.h")), "two");
    // What was made of the one is what was made of the other.
    EXPECT_EQ(first_change(on_disk.dependencies(), roots, absent_headers::are_misses), "");
    unit const newer{.name = "u", .source = "", .carried = {{"s/s.h", "edited"}, {"i1/q.h", "two"}}};
    EXPECT_NE(first_change(on_disk.dependencies(), roots_of(newer), absent_headers::are_sealed), "");
    EXPECT_NE(change(on_disk.dependencies()), "") << "those on disk were edited";
}

TEST_F(includes, what_the_build_did_not_look_at_is_an_error_and_neither_absent_nor_read) {
    write("source/planted.h", "planted");
    write("kit/cuda_fp99.h", "kit");
    auto const look_at = [&](std::string const& path, std::vector<carried_header> more = {}) {
        unit carried{
            .name = "u", .source = "", .carried = {{"s/s.h", "beside"}, {"!i0/maybe.h", ""}, {"!i0/cuda/", ""}}};
        carried.carried.insert(carried.carried.end(), {{"!", ""}, {"!s/.", ""}});
        carried.carried.insert(carried.carried.end(), more.begin(), more.end());
        auto roots = roots_of(carried);
        roots.toolkit = {dir("kit")};
        include_capture capture{roots};
        auto const text = read(capture.open(path));
        return capture.fault() ? capture.fault()->message() : text;
    };
    EXPECT_EQ(look_at("/.kiln/s/s.h"), "beside");
    EXPECT_EQ(look_at("/.kiln/i0/maybe.h"), "(none)") << "the build looked for it";
    EXPECT_EQ(look_at("/.kiln/i0/cuda/std/tuple"), "(none)") << "there was no such folder";
    EXPECT_EQ(look_at("/.kiln/t/cuda_fp99.h"), "kit");
    for (auto const& path :
         {std::string{"/.kiln/i0/other.h"}, std::string{"/.kiln/s/cuda_fp99.h"}, dir("source/planted.h"),
          std::string{"/.kiln/i0/cuda_fp99.h"}, std::string{"/.kiln/i0/cassert"}, std::string{"/.kiln/i0/cudax/a.h"},
          std::string{"/.kiln/carried/i0/other.h"}}) {
        EXPECT_NE(look_at(path).find("build for this architecture, too"), std::string::npos) << path;
    }
    EXPECT_EQ(look_at(dir("source/planted.h"), {{"!" + dir("source/planted.h"), ""}}), "(none)")
        << "nobody looks there";
    EXPECT_EQ(look_at(dir("source/planted.h"), {{dir("source/planted.h"), "ours"}}), "ours");
}

TEST_F(includes, what_is_not_among_the_names_of_a_folder_was_not_there_whatever_toolkit_asks) {
    for (auto const* folder : {"own/cuda", "own/lib", "kit"}) base::make_directories(dir(folder)).value();
    write("own/newer.h", "own, read by none of the architectures that were built");
    write("own/cuda/mine.h", "");
    write("own/lib/x.h", "");
    write("own/notes.txt", "");
    write("own/.hidden.h", "");
    write("kit/newer.h", "a header that only the customer's toolkit has");
    auto const look_at = [&](std::string const& path) {
        unit carried{.name = "u", .source = "", .carried = {{"!", ""}, {"i0/lib/read.h", "text"}}};
        carried.carried.push_back({"=i0/", names_in(dir("own")).value()});
        carried.carried.push_back({"=i0/cuda/", names_in(dir("own/cuda")).value()});
        auto roots = roots_of(carried);
        roots.toolkit = {dir("kit")};
        include_capture capture{roots};
        auto const text = read(capture.open("/.kiln/i0/" + path));
        return capture.fault() ? "refused" : text;
    };
    for (auto const* absent : {"cassert", "cassert.stdh", "ciso646", "cooperative_groups.h", "cuda/std/tuple",
                               "cuda/std/__cccl/os.h", "none/lib/x.h", "cuda/none"})
        EXPECT_EQ(look_at(absent), "(none)") << absent;
    for (auto const* unknown : {"newer.h", "cuda/mine.h", "lib/x.h", "lib/none.h", "cuda", "other.txt", ".other.h",
                                ".git/config", "../own/newer.h", "lib/../none.h", "./none.h"})
        EXPECT_EQ(look_at(unknown), "refused") << unknown;
    EXPECT_EQ(look_at("lib/read.h"), "text");

    auto const before = names_in(dir("own"));
    write("own/more.txt", "");
    write("own/.more.h", "");
    EXPECT_EQ(names_in(dir("own")), before) << "what no header is called as does not count";
    write("own/more.h", "");
    EXPECT_NE(names_in(dir("own")), before);
    EXPECT_EQ(names_in(dir("nowhere")), "") << "what is not there has nothing in it";
}

// What somebody else made without a header is not for a unit whose folder has one of that name.
TEST_F(includes, looking_asks_what_capturing_asks_of_names_that_nobody_read) {
    base::make_directories(dir("with")).value();
    base::make_directories(dir("without")).value();
    write("with/tune90.h", "");
    std::vector<dependency> const made{{dependency::root::include_directory, 0, "tune90.h", ""}};
    auto const change_in = [&](char const* folder) {
        unit const carried{.name = "u", .source = "", .carried = {{"!", ""}, {"=i0/", names_in(dir(folder)).value()}}};
        return first_change(made, roots_of(carried), absent_headers::are_sealed);
    };
    EXPECT_EQ(change_in("without"), "");
    EXPECT_NE(change_in("with").find("build for this architecture, too"), std::string::npos) << change_in("with");
}

// What was shipped with all of its headers is used whatever toolkit the customer has; what is compiled there goes by it.
TEST_F(includes, what_was_shipped_does_not_ask_the_toolkit) {
    unit carried{.name = "u", .source = "", .carried = {{"!", ""}}};
    auto roots = roots_of(carried);
    roots.toolkit = {dir("kit")};
    std::vector<dependency> const made{{dependency::root::toolkit, 0, "cuda.h", base::sha256_of("another").hex()}};
    EXPECT_EQ(first_change(made, roots, absent_headers::are_sealed), "");
    EXPECT_NE(first_change(made, roots, absent_headers::are_misses), "");
    roots.all_known = false;
    EXPECT_NE(first_change(made, roots, absent_headers::are_sealed), "") << "a developer's";
}

TEST_F(includes, what_travels_tells_of_the_toolkit_no_path_also_with_line_information) {
    base::make_directories(dir("kit/cccl")).value();
    write("kit/cccl/tuple", "cccl");
    unit const carried{.name = "u", .source = "", .carried = {{"!", ""}, {"i0/a.h", "a"}, {"!/abs/no.h", ""}}};
    auto roots = roots_of(carried);
    roots.real_paths = true;
    roots.toolkit = {dir("kit/cccl"), dir("kit")};
    include_capture capture{roots};
    EXPECT_EQ(read(capture.open(roots.include_directories[0] + "/a.h")), "a");
    for (auto const* name : {"tuple", "cuda.h", "neither.h"}) {
        if (read(capture.open(dir("kit/cccl/") + name)) == "(none)") (void)read(capture.open(dir("kit/") + name));
    }
    EXPECT_EQ(read(capture.open("/abs/no.h")), "(none)");
    ASSERT_FALSE(capture.fault());
    std::vector<std::string> told;
    for (auto const& d : capture.dependencies())
        told.push_back(fmt::format("{}:{}:{}", d.path, d.from == dependency::root::toolkit, !d.content.empty()));
    EXPECT_EQ(fmt::format("{}", fmt::join(told, " ")),
              "a.h:false:true cuda.h:true:true neither.h:true:false tuple:true:true /abs/no.h:false:false");

    roots.toolkit = {};
    EXPECT_EQ(first_change(capture.dependencies(), roots, absent_headers::are_sealed), "") << "shipped as it was built";
    EXPECT_EQ(first_change(capture.dependencies(), roots, absent_headers::are_misses), "cuda.h is gone");
    std::vector<dependency> const others{{dependency::root::absolute, 0, "/abs/other.h", ""}};
    EXPECT_NE(first_change(others, roots, absent_headers::are_sealed), "") << "nobody looked for it";
    roots.toolkit = {dir("nothing"), dir("kit/cccl"), dir("kit")};
    EXPECT_EQ(first_change(capture.dependencies(), roots, absent_headers::are_misses), "");
    write("kit/cuda.h", "newer");
    EXPECT_NE(first_change(capture.dependencies(), roots, absent_headers::are_misses), "");
}

TEST_F(includes, texts_that_travel_are_as_many_files_as_they_were) {
    std::string const text = "#pragma once", content = base::sha256_of(text).hex();
    std::vector<dependency> const link{{dependency::root::include_directory, 0, "a.h", content},
                                       {dependency::root::include_directory, 0, "b.h", content}};
    auto copy = link;
    copy[1].content += "#2";
    unit one{.name = "u", .source = "", .carried = {{"!", ""}, {"i0/a.h", text}, {"i0/b.h", text}}};
    auto two = one;
    two.carried.push_back({"#2 i0/b.h", ""});
    EXPECT_EQ(first_change(link, roots_of(one), absent_headers::are_misses), "");
    EXPECT_EQ(first_change(copy, roots_of(two), absent_headers::are_misses), "");
    EXPECT_NE(first_change(copy, roots_of(one), absent_headers::are_misses), "");
    EXPECT_NE(first_change(link, roots_of(two), absent_headers::are_misses), "");
}

TEST_F(includes, two_artifacts_contradict_each_other_by_their_own_headers_alone) {
    using root = dependency::root;
    std::vector<dependency> const one{{root::include_directory, 0, "a.h", "1"},
                                      {root::include_directory, 1, "a.h", ""},
                                      {root::toolkit, 0, "cuda.h", "12"}};
    auto other = one;
    EXPECT_EQ(first_contradiction(one, other), "");
    other[2].content = "13";
    other.push_back({root::source_directory, 0, "more.h", "3"});
    EXPECT_EQ(first_contradiction(one, other), "") << "another toolkit, and a header only one of them needed";
    other[1].content = "2";
    EXPECT_EQ(first_contradiction(one, other), "a.h") << "not there for one";
    EXPECT_EQ(first_contradiction(other, one), "a.h");
}

TEST_F(includes, standard_headers_are_answered_by_cuda_std_and_by_short_texts) {
    base::make_directories(dir("kit/cuda/std")).value();
    write("kit/cuda/std/tuple", "");
    include_capture capture{roots_};
    EXPECT_NE(read(capture.open("/.kiln/t/tuple")).find("#include <cuda/std/tuple>"), std::string::npos);
    EXPECT_NE(read(capture.open("/.kiln/t/assert.h")).find("NDEBUG"), std::string::npos);
    write("kit/cuda/std/linalg", "");
    EXPECT_NE(read(capture.open("/.kiln/t/linalg")), "(none)");
    EXPECT_EQ(read(capture.open("/.kiln/t/array")), "(none)") << "this toolkit has no <cuda/std/array>";
    EXPECT_EQ(read(capture.open("/.kiln/t/version")), "(none)") << "cuda/std asks for it to learn of the host";
    EXPECT_EQ(read(capture.open("/.kiln/i0/tuple")), "(none)") << "only where no directory has one";
    struct ::stat about {};
    EXPECT_EQ(capture.stat("/.kiln/t/tuple", &about), 0);
    EXPECT_TRUE(S_ISREG(about.st_mode));

    // Keyed and compared like any header.
    auto const deps = capture.dependencies();
    EXPECT_EQ(change(deps), "");
    write("kit/tuple", "the toolkit's own");
    EXPECT_NE(change(deps), "");
}

TEST_F(includes, without_a_toolkit_short_texts_still_answer) {
    roots_.toolkit.clear();
    include_capture capture{roots_};
    EXPECT_NE(read(capture.open("/.kiln/t/cassert")), "(none)");
    EXPECT_EQ(read(capture.open("/.kiln/t/tuple")), "(none)");
    auto const options = virtual_include_options(roots_);
    EXPECT_EQ(options.back(), "-I/.kiln/t");
}

TEST_F(includes, a_header_that_cannot_be_opened_is_an_error_that_says_what_would_help) {
    auto const advice = [&](std::string_view name) {
        return missing_header_advice(fmt::format("k.cu(1): catastrophic error: cannot open source file \"{}\"\n", name),
                                     roots_.toolkit);
    };
    EXPECT_NE(advice("tuple").find("CUDA toolkit's headers"), std::string::npos) << advice("tuple");
    base::make_directories(dir("kit/cuda/std")).value();
    write("kit/cuda/std/cstdint", "");
    EXPECT_NE(advice("vector").find("host's C++ library"), std::string::npos) << advice("vector");
    write("kit/cuda/std/version", "");
    EXPECT_NE(advice("version").find("include that"), std::string::npos) << advice("version");
    EXPECT_NE(advice("mine.cuh").find("include_dirs"), std::string::npos) << advice("mine.cuh");
    EXPECT_EQ(missing_header_advice("k.cu(1): error: expected a \";\"\n", roots_.toolkit), "");
}

TEST_F(includes, a_header_is_read_once_however_often_it_is_opened) {
    include_capture capture{roots_};
    EXPECT_EQ(read(capture.open("/.kiln/i1/q.h")), "two");
    write("second/q.h", "edited");
    EXPECT_EQ(read(capture.open("/.kiln/i1/q.h")), "two");
    EXPECT_EQ(read(capture.open(dir("second/q.h"))), "two") << "by another name too";
    ASSERT_EQ(capture.dependencies().size(), 2u);
    EXPECT_NE(change(capture.dependencies()), "");
    write("second/q.h", "two");
    EXPECT_EQ(change(capture.dependencies()), "");
}

TEST_F(includes, what_was_absent_stays_absent_for_the_compile) {
    include_capture capture{roots_};
    EXPECT_EQ(read(capture.open("/.kiln/i0/q.h")), "(none)");
    write("first/q.h", "one");
    EXPECT_EQ(read(capture.open("/.kiln/i0/q.h")), "(none)");
    EXPECT_FALSE(capture.fault());
}

TEST_F(includes, whatever_is_asked_of_a_header_is_answered_of_one_moment) {
    include_capture capture{roots_};
    struct ::stat before {
    }, after{};
    EXPECT_EQ(read(capture.open("/.kiln/i1/q.h")), "two");
    ASSERT_EQ(capture.stat("/.kiln/i1/q.h", &before), 0);
    std::filesystem::remove(dir("second/q.h"));
    ASSERT_EQ(capture.stat("/.kiln/i1/q.h", &after), 0) << "what is being compiled is still there";
    EXPECT_EQ(before.st_ino, after.st_ino);
    EXPECT_EQ(capture.stat("/.kiln/i0/q.h", &after), -1);
    EXPECT_EQ(errno, ENOENT);
    write("first/q.h", "one");
    EXPECT_EQ(capture.stat("/.kiln/i0/q.h", &after), -1) << "and what was not is still not";
    EXPECT_EQ(read(capture.open("/.kiln/i0/q.h")), "(none)");
    EXPECT_FALSE(capture.fault());
}

// As NVRTC does with `#pragma once` in it: what has an inode it knows is not opened again.
TEST_F(includes, another_name_of_a_header_is_a_header_that_may_change) {
    write("first/a.h", "same");
    std::filesystem::create_symlink(dir("first/a.h"), dir("first/b.h"));
    auto const look = [&] {
        include_capture capture{roots_};
        struct ::stat a {
        }, b{};
        EXPECT_EQ(read(capture.open("/.kiln/i0/a.h")), "same");
        EXPECT_EQ(capture.stat("/.kiln/i0/a.h", &a), 0);
        EXPECT_EQ(capture.stat("/.kiln/i0/b.h", &b), 0);
        if (a.st_ino != b.st_ino) {
            EXPECT_EQ(read(capture.open("/.kiln/i0/b.h")), "same");
        }
        return capture.dependencies();
    };
    auto const by_link = look();
    ASSERT_EQ(by_link.size(), 2u);
    EXPECT_EQ(by_link[0].content, by_link[1].content);
    EXPECT_EQ(change(by_link), "");

    std::filesystem::remove(dir("first/b.h"));
    EXPECT_EQ(change(by_link), "b.h is gone");
    write("first/b.h", "same");
    EXPECT_NE(change(by_link).find("b.h is a copy where it was a link"), std::string::npos) << change(by_link);
    auto const by_copy = look();
    EXPECT_EQ(by_copy[1].content, by_copy[0].content + "#2");
    EXPECT_EQ(change(by_copy), "");
    write("first/b.h", "other");
    EXPECT_NE(change(by_link).find("b.h changed"), std::string::npos);
    EXPECT_NE(change(by_copy).find("b.h changed"), std::string::npos);

    std::filesystem::remove(dir("first/b.h"));
    std::filesystem::create_hard_link(dir("first/a.h"), dir("first/b.h"));
    EXPECT_EQ(change(by_link), "") << "by whatever kind of link";
    EXPECT_NE(change(by_copy), "");
    std::filesystem::remove(dir("first/a.h"));
    EXPECT_EQ(change(by_copy, absent_headers::are_sealed), "") << "where one is sealed in, nobody can tell";
}

TEST_F(includes, what_can_only_be_asked_about_is_a_fault_when_it_is_opened) {
    for (auto const which : {test::call::open, test::call::fstat, test::call::read}) {
        include_capture capture{roots_};
        test::faulty_calls const faults{{{.which = which, .error = EIO}}};
        struct ::stat about {};
        EXPECT_EQ(capture.stat("/.kiln/i1/q.h", &about), 0);
        EXPECT_FALSE(capture.fault());
        EXPECT_EQ(capture.open("/.kiln/i1/q.h"), nullptr);
        ASSERT_TRUE(capture.fault());
        EXPECT_EQ(capture.fault()->status(), EIO);
    }
}

TEST_F(includes, a_toolkits_header_comes_from_one_directory_for_the_compile) {
    include_capture capture{roots_};
    EXPECT_EQ(read(capture.open("/.kiln/t/cuda.h")), "kit");
    write("nothing/cuda.h", "another");
    EXPECT_EQ(read(capture.open("/.kiln/t/cuda.h")), "kit");
    EXPECT_NE(change(capture.dependencies()), "");
}

TEST_F(includes, a_header_that_cannot_be_read_or_handed_over_is_a_fault_and_not_an_absence) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP()
        << "the sanitizer looks at objects through a pipe, and takes want of descriptors for a fault of theirs";
#endif
    ::rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    include_capture unread{roots_};
    include_capture read_before{roots_};
    EXPECT_EQ(read(read_before.open("/.kiln/i1/q.h")), "two");
    ::rlimit const none{0, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    auto* const first = unread.open("/.kiln/i1/q.h");
    auto* const again = read_before.open("/.kiln/i1/q.h");
    ::setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_EQ(first, nullptr);
    EXPECT_EQ(again, nullptr);
    ASSERT_TRUE(unread.fault() && read_before.fault());
    EXPECT_EQ(unread.fault()->status(), EMFILE);
    EXPECT_EQ(read_before.fault()->status(), EMFILE);
    EXPECT_TRUE(unread.dependencies().empty()) << "it is not recorded as absent";
}

TEST_F(includes, a_header_that_cannot_be_read_for_a_moment_is_neither_gone_nor_absent) {
    using test::call;
    auto const absent_first = look_as_nvrtc_does();
    write("first/q.h", "one");
    write("second/q.h", "edited");
    std::vector<dependency> const edited{{dependency::root::include_directory, 1, "q.h", absent_first[1].content}};
    ASSERT_FALSE(edited[0].content.empty());
    for (auto const which : {call::open, call::read, call::fstat}) {
        for (int const why : {EIO, EMFILE, ENFILE, ENOMEM, ESTALE}) {
            for (auto const how : {absent_headers::are_misses, absent_headers::are_sealed}) {
                test::faulty_calls const faults{{{.which = which, .error = why}}};
                EXPECT_NE(change(edited, how), "") << static_cast<int>(which) << " " << why;
                EXPECT_NE(change(absent_first, how), "") << static_cast<int>(which) << " " << why;
            }
        }
    }
}

TEST_F(includes, who_may_not_read_a_header_is_served_what_is_sealed_and_nothing_else) {
    auto const deps = look_as_nvrtc_does();
    test::faulty_calls const faults{{{.which = test::call::open, .error = EACCES}}};
    EXPECT_EQ(change(deps, absent_headers::are_sealed), "");
    EXPECT_NE(change(deps, absent_headers::are_misses), "");
}

TEST_F(includes, a_folder_with_a_headers_name_is_no_header_then_and_later) {
    base::make_directories(dir("first/q.h")).value();
    auto const deps = look_as_nvrtc_does();
    EXPECT_EQ(change(deps), "");
}

TEST_F(includes, a_relative_name_is_recorded_against_the_working_directory) {
    include_capture capture{roots_};
    auto const before = std::filesystem::current_path();
    std::filesystem::current_path(dir("second"));
    EXPECT_EQ(read(capture.open("q.h")), "two");
    auto const deps = capture.dependencies();
    std::filesystem::current_path(before);
    ASSERT_EQ(deps.size(), 1u);
    EXPECT_EQ(change(deps), "");
    write("second/q.h", "edited");
    EXPECT_NE(change(deps), "");
}

TEST_F(includes, a_relative_name_where_the_working_directory_is_not_known_is_a_fault) {
    include_capture capture{roots_};
    auto const before = std::filesystem::current_path();
    std::filesystem::create_directories(dir("gone"));
    std::filesystem::current_path(dir("gone"));
    std::filesystem::remove(dir("gone"));
    auto* const opened = capture.open("q.h");
    std::filesystem::current_path(before);
    EXPECT_EQ(opened, nullptr);
    EXPECT_TRUE(capture.fault());
}

TEST_F(includes, touching_is_a_hit_and_editing_is_a_miss) {
    auto const deps = look_as_nvrtc_does();
    write("second/q.h", "two");
    EXPECT_EQ(change(deps), "");
    write("second/q.h", "two!");
    EXPECT_NE(change(deps).find("q.h changed"), std::string::npos);
}

TEST_F(includes, a_directory_of_a_headers_name_is_no_header) {
    base::make_directories(dir("first/q.h")).value();
    auto const deps = look_as_nvrtc_does();
    EXPECT_EQ(change(deps), "") << "the compiler passed it over, and so does the lookup";
    std::filesystem::remove(dir("second/q.h"));
    base::make_directories(dir("second/q.h")).value();
    EXPECT_NE(change(deps).find("q.h is gone"), std::string::npos);
}

TEST_F(includes, V7_a_header_that_appears_earlier_on_the_path_is_a_miss) {
    auto const deps = look_as_nvrtc_does();
    write("first/q.h", "two");
    EXPECT_NE(change(deps).find("appeared"), std::string::npos);
}

TEST_F(includes, a_header_that_is_gone_is_a_miss_unless_sealed) {
    auto const deps = look_as_nvrtc_does();
    std::filesystem::remove(dir("second/q.h"));
    EXPECT_NE(change(deps).find("gone"), std::string::npos);
    EXPECT_EQ(change(deps, absent_headers::are_sealed), "");
    write("second/q.h", "other");
    EXPECT_NE(change(deps, absent_headers::are_sealed), "")
        << "a bundle never wins over a header that is there and differs";
}

// Where the sources are, a compile would go on looking.
TEST_F(includes, what_is_sealed_does_not_win_over_a_header_that_would_be_found_in_its_place) {
    roots_.include_directories.push_back(dir("third"));
    auto const deps = look_as_nvrtc_does();
    std::filesystem::remove(dir("second/q.h"));
    base::make_directories(dir("third")).value();
    EXPECT_EQ(change(deps, absent_headers::are_sealed), "");
    write("third/q.h", "three");
    EXPECT_NE(change(deps, absent_headers::are_sealed).find("third/q.h would be found in its place"),
              std::string::npos);
    write("third/q.h", "two");
    EXPECT_EQ(change(deps, absent_headers::are_sealed), "") << "moved, and nothing else";
    std::filesystem::remove_all(dir("second"));
    write("third/q.h", "three");
    EXPECT_NE(change(deps, absent_headers::are_sealed), "") << "with its directory";
}

TEST_F(includes, the_toolkits_header_counts_in_place_of_an_own_one_where_the_sources_are) {
    write("source/cuda.h", "own");
    include_capture capture{roots_};
    EXPECT_EQ(read(capture.open("/.kiln/s/cuda.h")), "own");
    std::filesystem::remove(dir("source/cuda.h"));
    EXPECT_NE(change(capture.dependencies(), absent_headers::are_sealed).find("kit/cuda.h would be"),
              std::string::npos);
    std::filesystem::remove_all(dir("source"));
    EXPECT_EQ(change(capture.dependencies(), absent_headers::are_sealed), "") << "as on a customer's machine";
}

TEST_F(includes, a_header_beside_another_is_looked_for_by_its_name_in_all_directories) {
    base::make_directories(dir("second/sub")).value();
    write("second/sub/n.h", "near");
    include_capture capture{roots_};
    EXPECT_EQ(read(capture.open("/.kiln/i1/sub/n.h")), "near");
    std::filesystem::remove(dir("second/sub/n.h"));
    EXPECT_EQ(change(capture.dependencies(), absent_headers::are_sealed), "");
    write("first/n.h", "far");
    EXPECT_NE(change(capture.dependencies(), absent_headers::are_sealed), "");
}

TEST_F(includes, so_it_is_with_the_real_paths_of_debug_builds) {
    roots_.real_paths = true;
    write("first/a.h", "one");
    include_capture capture{roots_};
    EXPECT_EQ(read(capture.open(dir("first/a.h"))), "one");
    std::filesystem::remove(dir("first/a.h"));
    EXPECT_EQ(change(capture.dependencies(), absent_headers::are_sealed), "");
    write("second/a.h", "other");
    EXPECT_NE(change(capture.dependencies(), absent_headers::are_sealed), "");
}

TEST_F(includes, V6_a_project_that_moved_still_hits) {
    auto const deps = look_as_nvrtc_does();
    std::filesystem::rename(dir("second"), dir("moved"));
    roots_.include_directories[1] = dir("moved");
    EXPECT_EQ(change(deps), "");
}

TEST_F(includes, V8_the_bytes_that_are_hashed_are_the_bytes_that_are_read) {
    include_capture capture{roots_};
    auto* const stream = capture.open("/.kiln/i1/q.h");
    ASSERT_NE(stream, nullptr);
    write("second/q.h", "changed while the compiler reads");
    EXPECT_EQ(read(stream), "two");
    EXPECT_NE(change(capture.dependencies()), "") << "and the entry is not found with the new text";
}

TEST_F(includes, messages_name_real_files) {
    EXPECT_EQ(with_real_paths("/.kiln/s/k.cu(3): error, see /.kiln/i1/q.h(1)", roots_),
              dir("source") + "/k.cu(3): error, see " + dir("second") + "/q.h(1)");
}

TEST_F(includes, an_empty_header_is_a_header) {
    write("first/empty.h", "");
    include_capture capture{roots_};
    EXPECT_EQ(read(capture.open("/.kiln/i0/empty.h")), "");
    EXPECT_FALSE(capture.dependencies().front().content.empty());
}

TEST_F(includes, unseen_reads_are_never_satisfied) {
    std::vector<dependency> const deps{unseen_reads()};
    EXPECT_NE(change(deps), "");
    EXPECT_NE(change(deps, absent_headers::are_sealed), "");
}

}  // namespace kiln::compile
