// SPDX-License-Identifier: Apache-2.0
#include "base/files.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
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

}  // namespace kiln::base
