// SPDX-License-Identifier: Apache-2.0
#include "intercept/looks.hpp"

#include "base/file_state.hpp"
#include "intercept/foreign_request.hpp"
#include "support/pretended_mounts.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fcntl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace kiln::intercept {

class looks : public testing::Test {
protected:
    void SetUp() override {
        for (auto const* name : {"source", "first", "second"}) base::make_directories(dir(name)).value();
        write("second/q.h", "two");
        roots_.source_directory = dir("source");
        roots_.include_directories = {dir("first"), dir("second")};
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
    std::vector<look> look_as_nvrtc_does() {
        look_capture capture{roots_};
        EXPECT_EQ(read(capture.open("/.kiln/s/q.h")), "(none)");
        EXPECT_EQ(read(capture.open("/.kiln/i0/q.h")), "(none)");
        EXPECT_EQ(read(capture.open("/.kiln/i1/q.h")), "two");
        EXPECT_FALSE(capture.fault());
        return capture.looks();
    }
    std::string change(std::vector<look> const& seen) {
        header_contents contents;
        return first_change(seen, roots_, contents);
    }

    base::temporary_directory scratch_ = base::temporary_directory::make().value();
    look_roots roots_;
};

// As NVRTC 13.1 and later do: the name says where the program was, and nobody knows whether the program itself has said that.
TEST_F(looks, below_the_working_directory_are_relative_too) {
    auto const before = std::filesystem::current_path();
    for (auto const* name : {"here", "there"}) base::make_directories(dir(name)).value();
    write("here/v.h", "1");
    write("there/v.h", "2");
    write("up.h", "3");
    std::filesystem::current_path(dir("here"));
    auto const here = std::filesystem::current_path().native();
    look_capture capture{{}};
    EXPECT_EQ(read(capture.open(here + "/v.h")), "1");
    EXPECT_EQ(read(capture.open(here + "/../up.h")), "3");
    EXPECT_EQ(read(capture.open(here + "/./none.h")), "(none)");
    capture.finish(relative_names::made_whole);
    EXPECT_FALSE(capture.fault());
    auto const seen = capture.looks();
    EXPECT_EQ(seen.size(), 6U);
    EXPECT_EQ(change(seen), "");
    std::filesystem::current_path(dir("there"));
    EXPECT_EQ(change(seen), "v.h changed");
    write("there/v.h", "1");
    EXPECT_NE(change(seen), "") << "it is another file, which '#pragma once' tells apart";
    std::filesystem::current_path(dir("here"));
    write("here/none.h", "");
    EXPECT_NE(change(seen), "");
    std::filesystem::current_path(before);
}

TEST_F(looks, of_others_are_ours_if_we_may_read_them) {
    auto const seen = look_as_nvrtc_does();
    EXPECT_TRUE(may_read(seen, roots_));
    base::settled_contents settled;
    header_contents contents;
    auto const file = dir("second/q.h");
    base::file_look about;
    ASSERT_EQ(base::look_at(file.c_str(), about), 0);
    auto const told = base::sha256_of(base::as_bytes("what somebody else read"));
    contents.take({{file, about.state, told}});
    using belief = header_contents::belief;
    EXPECT_EQ(contents.of(file, settled, belief::in_what_is_known), told);
    EXPECT_EQ(contents.of(file, settled, belief::in_own_eyes), told);
    ::unlink(file.c_str());
    EXPECT_FALSE(may_read(seen, roots_));
}

TEST_F(looks, of_a_header_that_could_ask_for_hidden_names_are_not_kept) {
    write("second/q.h", "#if __has_include(\"/.kiln/i0/x.h\")");
    look_capture capture{roots_};
    EXPECT_EQ(read(capture.open("/.kiln/i1/q.h")), "(none)");
    EXPECT_TRUE(capture.fault());
    look_capture plain{{}};
    EXPECT_EQ(read(plain.open(dir("second/q.h"))).substr(0, 3), "#if");
    EXPECT_FALSE(plain.fault());
}

TEST_F(looks, hold_until_a_file_changes_appears_or_goes) {
    auto const seen = look_as_nvrtc_does();
    ASSERT_EQ(seen.size(), 3U);
    EXPECT_EQ(change(seen), "");
    write("second/q.h", "TWO");
    EXPECT_EQ(change(seen), dir("second/q.h") + " changed");
    write("second/q.h", "two");
    write("first/q.h", "two");
    EXPECT_EQ(change(seen), dir("first/q.h") + " appeared");
    ::unlink(dir("first/q.h").c_str());
    ::unlink(dir("second/q.h").c_str());
    EXPECT_EQ(change(seen), dir("second/q.h") + " is gone");
}

TEST_F(looks, hold_where_the_folders_moved) {
    auto const seen = look_as_nvrtc_does();
    std::filesystem::rename(dir("second"), dir("elsewhere"));
    EXPECT_NE(change(seen), "");
    roots_.include_directories[1] = dir("elsewhere");
    EXPECT_EQ(change(seen), "");
}

TEST_F(looks, a_folder_of_a_headers_name_is_no_header) {
    base::make_directories(dir("first/q.h")).value();
    EXPECT_EQ(change(look_as_nvrtc_does()), "");
}

// '#pragma once' reads one file once, and two files of one content twice.
TEST_F(looks, hold_while_the_same_names_are_one_file) {
    auto const copy = dir("first/q.h");
    auto const both = [&] {
        look_capture capture{roots_};
        EXPECT_EQ(read(capture.open("/.kiln/i0/q.h")), "two");
        EXPECT_EQ(read(capture.open("/.kiln/i1/q.h")), "two");
        return capture.looks();
    };
    auto const second_asked_about = [&] {
        look_capture capture{roots_};
        EXPECT_EQ(read(capture.open("/.kiln/i0/q.h")), "two");
        struct ::stat about {};
        EXPECT_EQ(capture.stat("/.kiln/i1/q.h", &about), 0);
        capture.finish(relative_names::left);
        return capture.looks();
    };
    ASSERT_EQ(::link(dir("second/q.h").c_str(), copy.c_str()), 0);
    auto const linked = both();
    EXPECT_EQ(change(linked), "");
    EXPECT_EQ(second_asked_about(), linked);
    ::unlink(copy.c_str());
    write("first/q.h", "two");
    EXPECT_EQ(change(linked), dir("second/q.h") + ": which other names are this file's changed");
    auto const copied = both();
    EXPECT_EQ(change(copied), "");
    EXPECT_NE(key_of({}, linked), key_of({}, copied));
    EXPECT_EQ(second_asked_about().size(), 1U);
    ::unlink(copy.c_str());
    ASSERT_EQ(::symlink("../second/q.h", copy.c_str()), 0);
    EXPECT_EQ(change(linked), "");
    EXPECT_NE(change(copied), "");
}

TEST_F(looks, what_cannot_be_read_is_not_absent) {
    auto const seen = look_as_nvrtc_does();
    ASSERT_EQ(::mkfifo(dir("first/q.h").c_str(), 0600), 0);
    EXPECT_EQ(change(seen), dir("first/q.h") + " appeared");
}

TEST_F(looks, a_relative_name_means_the_working_directory) {
    auto const before = std::filesystem::current_path();
    std::filesystem::current_path(dir("second"));
    look_capture capture{{}};
    EXPECT_EQ(read(capture.open("q.h")), "two");
    auto const seen = capture.looks();
    EXPECT_EQ(change(seen), "");
    std::filesystem::current_path(dir("first"));
    EXPECT_EQ(change(seen), "q.h is gone");
    std::filesystem::current_path(before);
}

TEST_F(looks, a_file_is_read_once) {
    look_capture capture{roots_};
    EXPECT_EQ(read(capture.open("/.kiln/i1/q.h")), "two");
    write("second/q.h", "three");
    EXPECT_EQ(read(capture.open("/.kiln/i1/q.h")), "two");
    EXPECT_NE(change(capture.looks()), "");
}

TEST_F(looks, what_cannot_be_handed_over_is_a_fault) {
    ASSERT_EQ(::mkfifo(dir("first/q.h").c_str(), 0600), 0);
    look_capture pipe{roots_};
    EXPECT_EQ(pipe.open("/.kiln/i0/q.h"), nullptr);
    EXPECT_TRUE(pipe.fault());
    look_capture lost{roots_};
    EXPECT_EQ(lost.open("/.kiln/i7/q.h"), nullptr);
    EXPECT_TRUE(lost.fault());
}

TEST_F(looks, stat_is_asked_about_the_real_folder) {
    look_capture const capture{roots_};
    EXPECT_EQ(capture.real_path("/.kiln/i1"), dir("second"));
    EXPECT_EQ(capture.real_path("/.kiln/i1/q.h"), dir("second/q.h"));
    EXPECT_EQ(capture.real_path("/.kiln/i9/q.h"), "/.kiln/i9/q.h");
    EXPECT_EQ(capture.real_path("/usr/include"), "/usr/include");
}

TEST_F(looks, messages_name_real_folders) {
    EXPECT_EQ(with_real_paths("/.kiln/i1/q.h(3): warning, /.kiln/s/k.cu(1)", roots_),
              dir("second/q.h") + "(3): warning, " + dir("source/k.cu") + "(1)");
}

TEST_F(looks, known_files_are_believed_while_they_stay_the_same) {
    auto const file = dir("second/q.h");
    // Long ago: what changed just now may change again without a sign of it.
    ::timespec const old[2] = {{1'000'000, 0}, {1'000'000, 0}};
    ::utimensat(AT_FDCWD, file.c_str(), old, 0);
    EXPECT_FALSE(read_settled(file));
    base::file_look about;
    ASSERT_EQ(base::look_at(file.c_str(), about), 0);
    known_file const told{file, about.state, base::sha256_of(base::as_bytes("told"))};
    write("list", base::as_text(encode(std::span{&told, 1})));
    header_contents contents;
    contents.look_at(dir("list"));
    contents.take_what_is_known();
    EXPECT_EQ(contents.of(file), told.content);
    EXPECT_TRUE(contents.to_be_read_ahead().empty());
    write("second/q.h", "TWO");
    EXPECT_EQ(contents.of(file), base::sha256_of(base::as_bytes("TWO")));
}

TEST_F(looks, what_a_compile_read_others_need_not_read) {
    // Settled files of this machine; what was written just now may change again without a sign of it.
    look_capture capture{roots_};
    for (auto const& path : {std::string{"/etc/group"}, std::string{"/etc/passwd"}, std::string{"/no/such.h"},
                             virtual_include(1) + "/q.h"}) {
        if (auto* const stream = capture.open(path)) std::fclose(stream);
    }
    ASSERT_FALSE(capture.fault());
    auto const known = capture.known();
    ASSERT_EQ(known.size(), 2U);
    EXPECT_EQ(known[1].path, "/etc/passwd");
    auto told = known[1];
    EXPECT_EQ(told, read_settled("/etc/passwd"));
    told.content = base::sha256_of(base::as_bytes("told"));
    header_contents contents;
    contents.take({told});
    EXPECT_EQ(contents.of("/etc/passwd"), told.content);
    EXPECT_EQ(contents.to_be_read_ahead(), std::vector<std::string>{"/etc/passwd"});
}

// A file that has been the same for a while is handed over itself; whether it still is shows at the end.
TEST_F(looks, a_file_that_changes_while_it_is_compiled_spoils_it) {
    auto const file = dir("second/q.h");
    auto const usual = base::content_settles_after_ns.exchange(0);
    bool const on_a_disk = read_settled(file).has_value();
    if (!on_a_disk) base::content_settles_after_ns = usual;
    if (!on_a_disk) GTEST_SKIP() << "the scratch directory is kept in memory: nothing in it is ever believed";
    look_capture same{roots_}, in_between{roots_}, at_the_end{roots_};
    for (auto* const one : {&same, &in_between, &at_the_end}) EXPECT_EQ(read(one->open("/.kiln/i1/q.h")), "two");
    EXPECT_EQ(same.known().size(), 1U);
    same.finish(relative_names::left);
    EXPECT_FALSE(same.fault());
    write("second/q.h", "TWO");
    EXPECT_EQ(in_between.open("/.kiln/i1/q.h"), nullptr);
    EXPECT_TRUE(in_between.fault());
    EXPECT_FALSE(at_the_end.fault());
    at_the_end.finish(relative_names::left);
    EXPECT_TRUE(at_the_end.fault());
    base::content_settles_after_ns = usual;
}

TEST_F(looks, in_a_folder_that_is_not_there_are_made_once) {
    base::make_directories(dir("first/there")).value();
    std::vector<look> seen;
    auto const none = [&](std::string name) {
        seen.push_back({.from = look::root::include_directory, .index = 0, .path = std::move(name), .content = {}});
    };
    for (int i = 10; i < 60; ++i) none(fmt::format("gone/a/{}.h", i));
    for (int i = 10; i < 60; ++i) none(fmt::format("gone/b/{}.h", i));
    for (int i = 10; i < 60; ++i) none(fmt::format("there/{}.h", i));
    static std::atomic<int> opened{0};
    auto calls = base::real_system_calls();
    calls.open = [](char const* path, int flags, unsigned mode) {
        ++opened;
        return base::real_system_calls().open(path, flags, mode);
    };
    auto const opens = [&] {
        opened = 0;
        base::install_system_calls(&calls);
        auto const out = change(seen);
        base::install_system_calls(nullptr);
        EXPECT_EQ(out, "");
        return opened.load();
    };
    EXPECT_EQ(opens(), 51);
    base::make_directories(dir("first/gone")).value();
    EXPECT_EQ(opens(), 52);
    base::make_directories(dir("first/gone/b")).value();
    EXPECT_EQ(opens(), 101);
    for (auto const* const appears : {"first/gone/b/37.h", "first/there/59.h"}) {
        write(appears, "x");
        EXPECT_EQ(change(seen), dir(appears) + " appeared");
        ::unlink(dir(appears).c_str());
    }
    EXPECT_EQ(change(seen), "");
    base::make_directories(dir("first/gone/a")).value();
    write("first/gone/a/10.h", "x");
    EXPECT_EQ(change(seen), dir("first/gone/a/10.h") + " appeared");
}

// Images of file systems that were made apart can have the same numbers, sizes and times in them.
TEST_F(looks, a_header_of_another_mount_is_another) {
    auto const file = dir("second/q.h");
    if (base::is_kept_in_memory(file.c_str())) GTEST_SKIP() << "the temporary directory is in memory";
    test::pretended_mounts const mounts;
    header_contents contents;
    mounts.mount(1);
    EXPECT_EQ(contents.of(file), base::sha256_of("two"));
    mounts.write_unnoticed(file, "too");
    EXPECT_EQ(contents.of(file), base::sha256_of("two")) << "nothing shows";
    mounts.mount(2);
    EXPECT_EQ(contents.of(file), base::sha256_of("too"));
}

// One look asks a file system once; another one is another.
TEST_F(looks, a_file_in_memory_is_not_believed_beside_one_on_a_disk) {
    std::string const other = fmt::format("/dev/shm/kiln-looks-{}", ::getpid());
    auto const usual = base::content_settles_after_ns.exchange(0);
    base::settled_contents settled;
    auto const is_settled = [&](std::string const& file) {
        base::file_look about;
        return base::look_at(file.c_str(), about) == 0 && settled.has(about.state, file.c_str());
    };
    bool const on_a_disk = is_settled(dir("second/q.h"));
    bool const can_be_tried =
        on_a_disk && base::is_kept_in_memory("/dev/shm") && base::replace_file(other, {}).has_value();
    if (can_be_tried) {
        EXPECT_FALSE(is_settled(other));
        EXPECT_TRUE(is_settled(dir("second/q.h")));
        base::content_settles_after_ns = 3'600'000'000'000;
        EXPECT_FALSE(is_settled(dir("second/q.h"))) << "too young, on whatever file system";
    }
    ::unlink(other.c_str());
    base::content_settles_after_ns = usual;
    if (!can_be_tried) GTEST_SKIP() << "one of the two is not to be had here";
}

TEST_F(looks, a_list_that_is_damaged_or_not_there_says_nothing) {
    known_file const one{"/a", {1, 2, 3, 4, 5}, base::sha256_of(base::as_bytes("a"))};
    auto const whole = encode(std::span{&one, 1});
    ASSERT_EQ(decode_known_files(whole).size(), 1U);
    for (std::size_t size = 0; size < whole.size(); ++size)
        EXPECT_TRUE(decode_known_files(base::byte_span{whole}.first(size)).empty()) << size;
    header_contents contents;
    contents.look_at(dir("no list"));
    contents.take_what_is_known();
    EXPECT_EQ(contents.of(dir("second/q.h")), base::sha256_of(base::as_bytes("two")));
}

TEST_F(looks, what_will_be_needed_is_said_once) {
    header_contents contents;
    contents.will_be_needed("/b");
    contents.will_be_needed("/a");
    contents.will_be_needed("/b");
    EXPECT_EQ(contents.to_be_read_ahead(), (std::vector<std::string>{"/a", "/b"}));
}

TEST_F(looks, a_header_may_have_what_the_source_lacks_to_name_the_time) {
    write("second/q.h", "#define X TIME\n");
    compile::texts_together own;
    own.add("#include <q.h>\nCAT(_, CAT(_, CAT(X, CAT(_, _))))");
    look_capture alone{roots_}, together{roots_, own};
    EXPECT_EQ(read(alone.open("/.kiln/i1/q.h")), "#define X TIME\n");
    EXPECT_EQ(read(together.open("/.kiln/i1/q.h")), "(none)");
    EXPECT_FALSE(alone.fault());
    EXPECT_TRUE(together.fault());
}

}  // namespace kiln::intercept
