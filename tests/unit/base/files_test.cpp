// SPDX-License-Identifier: Apache-2.0
#include "base/files.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::base {

namespace fs = std::filesystem;

class files : public testing::Test {
protected:
    temporary_directory scratch_ = temporary_directory::make("kiln-files").value();
    fs::path at(char const* name) const { return scratch_.path() / name; }
    std::size_t file_count() const {
        return static_cast<std::size_t>(std::distance(fs::directory_iterator{scratch_.path()}, {}));
    }
    void TearDown() override { install_system_calls(nullptr); }
};

TEST_F(files, replace_and_read) {
    replace_file(at("a"), as_bytes("one")).value();
    replace_file(at("a"), as_bytes("two"), 0600, durability::synced).value();
    EXPECT_EQ(as_text(*read_file(at("a")).value()), "two");
    EXPECT_EQ(file_count(), 1u);
}

TEST_F(files, absence_is_not_failure) {
    EXPECT_FALSE(read_file(at("none")).value());
    EXPECT_FALSE(read_file(at("none/deeper")).value());
}

TEST_F(files, a_fifo_or_directory_is_refused_without_blocking) {
    ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0600), 0);
    EXPECT_EQ(read_file(at("fifo")).error().code(), errc::invalid_argument);
    EXPECT_EQ(read_file(scratch_.path()).error().code(), errc::invalid_argument);
}

TEST_F(files, a_file_over_the_bound_is_refused) {
    replace_file(at("big"), as_bytes("12345678")).value();
    EXPECT_EQ(read_file(at("big"), 7).error().code(), errc::corrupt);
    EXPECT_TRUE(read_file(at("big"), 8).value());
}

TEST_F(files, short_writes_and_interruptions_are_completed) {
    auto calls = real_system_calls();
    calls.write = [](int fd, void const* data, std::size_t size) -> long {
        static int turn = 0;
        if (turn++ % 2 == 0) return errno = EINTR, -1;
        return ::write(fd, data, size > 3 ? 3 : size);
    };
    install_system_calls(&calls);
    replace_file(at("a"), as_bytes("a longer text")).value();
    install_system_calls(nullptr);
    EXPECT_EQ(as_text(*read_file(at("a")).value()), "a longer text");
}

TEST_F(files, a_full_disk_leaves_the_old_file_and_no_temporary) {
    replace_file(at("a"), as_bytes("old")).value();
    auto calls = real_system_calls();
    calls.write = [](int, void const*, std::size_t) -> long { return errno = ENOSPC, -1; };
    install_system_calls(&calls);
    auto const full = replace_file(at("a"), as_bytes("new"));
    install_system_calls(nullptr);
    EXPECT_EQ(full.error().status(), ENOSPC);
    EXPECT_EQ(as_text(*read_file(at("a")).value()), "old");
    EXPECT_EQ(file_count(), 1u);
}

// Entries, counters and locks are written by threads of a program that may know nothing of files.
TEST_F(files, a_bound_on_the_size_of_files_is_an_error_and_no_signal) {
    pid_t const child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        std::signal(SIGXFSZ, SIG_DFL);
        ::rlimit const none{0, 0};
        bool right = ::setrlimit(RLIMIT_FSIZE, &none) == 0;
        auto const done = replace_file(at("f"), as_bytes("too long"));
        right = right && !done && done.error().status() == EFBIG;
        int const fd = ::open(at("g").c_str(), O_WRONLY | O_CREAT, 0600);
        right = right && sys().pwrite(fd, "x", 1, 0) < 0 && errno == EFBIG;
        ::sigset_t waiting;
        right = right && ::sigpending(&waiting) == 0 && ::sigismember(&waiting, SIGXFSZ) == 0;
        ::_exit(right ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST_F(files, a_failed_rename_leaves_no_temporary) {
    auto calls = real_system_calls();
    calls.rename = [](char const*, char const*) { return errno = EACCES, -1; };
    install_system_calls(&calls);
    auto const refused = replace_file(at("a"), as_bytes("new"));
    install_system_calls(nullptr);
    EXPECT_EQ(refused.error().status(), EACCES);
    EXPECT_EQ(file_count(), 0u);
}

TEST_F(files, directories_are_made_with_their_parents) {
    make_directories(at("x/y/z")).value();
    make_directories(at("x/y/z")).value();
    EXPECT_TRUE(fs::is_directory(at("x/y/z")));
    replace_file(at("f"), as_bytes("")).value();
    EXPECT_EQ(make_directories(at("f")).error().status(), ENOTDIR);
}

TEST_F(files, descriptors_do_not_leak_into_children) {
    auto const fd = open_file(at("a"), O_CREAT | O_WRONLY).value();
    EXPECT_TRUE(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC);
}

TEST_F(files, only_regular_files_are_replaced) {
    ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0600), 0);
    ASSERT_EQ(::mkdir(at("folder").c_str(), 0700), 0);
    EXPECT_EQ(replace_file(at("fifo"), as_bytes("x")).error().code(), errc::invalid_argument);
    EXPECT_EQ(replace_file(at("folder"), as_bytes("x")).error().code(), errc::invalid_argument);
    EXPECT_TRUE(fs::is_fifo(at("fifo")));
    fs::create_symlink(at("fifo"), at("link"));
    EXPECT_EQ(replace_file(at("link"), as_bytes("x")).error().code(), errc::invalid_argument);
    EXPECT_TRUE(fs::is_symlink(at("link")) && fs::is_fifo(at("fifo"))) << "neither the link nor what it leads to";
    EXPECT_EQ(file_count(), 3u) << "and no temporary";
}

TEST_F(files, a_link_to_a_file_is_followed_and_one_to_nothing_refused) {
    replace_file(at("a"), as_bytes("one")).value();
    fs::create_symlink(at("a"), at("link"));
    replace_file(at("link"), as_bytes("two")).value();
    EXPECT_TRUE(fs::is_symlink(at("link")));
    EXPECT_EQ(as_text(*read_file(at("a")).value()), "two");
    fs::create_symlink(at("none"), at("dangling"));
    EXPECT_EQ(replace_file(at("dangling"), as_bytes("x")).error().code(), errc::invalid_argument);
    EXPECT_EQ(check_output(at("dangling"), streams::allowed).error().code(), errc::invalid_argument);
    EXPECT_TRUE(fs::is_symlink(at("dangling")) && !fs::exists(at("none")));
}

TEST_F(files, a_stream_is_written_into_or_refused) {
    ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0600), 0);
    file_descriptor const reader{::open(at("fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
    ASSERT_TRUE(reader);
    EXPECT_TRUE(check_output(at("fifo"), streams::allowed));
    EXPECT_EQ(check_output(at("fifo"), streams::refused).error().code(), errc::invalid_argument);
    write_output(at("fifo"), as_bytes("hello")).value();
    char text[16] = {};
    ASSERT_EQ(::read(reader.get(), text, sizeof text), 5);
    EXPECT_STREQ(text, "hello");
    EXPECT_TRUE(fs::is_fifo(at("fifo")));
    EXPECT_TRUE(check_output("/dev/null", streams::allowed));
    EXPECT_EQ(check_output("/dev/null", streams::refused).error().code(), errc::invalid_argument);
    write_output("/dev/null", as_bytes("gone")).value();
    EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(files, a_descriptor_by_its_name_is_written_into_and_the_file_behind_it_stays) {
    file_descriptor const own{::open(at("f").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)};
    ASSERT_TRUE(own);
    auto const number = std::to_string(own.get());
    fs::create_symlink("/dev/fd/" + number, at("link"));
    ASSERT_EQ(::write(own.get(), "before ", 7), 7);
    for (auto const& name : {"/dev/fd/" + number, "/proc/self/fd/" + number, at("link").string()}) {
        EXPECT_TRUE(check_output(name, streams::allowed)) << name;
        EXPECT_EQ(check_output(name, streams::refused).error().code(), errc::invalid_argument) << name;
        EXPECT_EQ(replace_file(name, as_bytes("x")).error().code(), errc::invalid_argument) << name;
        write_output(name, as_bytes("ours ")).value();
    }
    ASSERT_EQ(::write(own.get(), "after", 5), 5);
    EXPECT_EQ(as_text(*read_file(at("f")).value()), "before ours ours ours after");
    file_descriptor const read_only{::open(at("f").c_str(), O_RDONLY | O_CLOEXEC)};
    EXPECT_FALSE(check_output("/dev/fd/" + std::to_string(read_only.get()), streams::allowed));
    EXPECT_FALSE(check_output("/dev/fd/4000", streams::allowed)) << "there is none of that number";
}

TEST_F(files, what_is_in_the_way_of_an_output_is_said_in_words) {
    auto const said = [](result<void> const& r) { return r ? std::string{} : r.error().message(); };
    EXPECT_NE(said(check_output("", streams::allowed)).find("empty"), std::string::npos);
    EXPECT_NE(said(check_output(at("none/x"), streams::allowed)).find("make it first"), std::string::npos);
    EXPECT_NE(said(check_output(scratch_.path(), streams::allowed)).find("is a directory"), std::string::npos);
    EXPECT_NE(said(check_output(at(std::string(5000, 'x').c_str()), streams::allowed)).find("too long"),
              std::string::npos);
    EXPECT_TRUE(check_output(at("fresh"), streams::refused));
}

}  // namespace kiln::base
