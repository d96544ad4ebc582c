// SPDX-License-Identifier: Apache-2.0
#include "base/own_file.hpp"

#include "base/files.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace kiln::base {

namespace {

namespace fs = std::filesystem;

void somewhere() {}

}  // namespace

TEST(own_file, is_the_program_or_the_library) {
    auto const program = fs::canonical("/proc/self/exe");
    EXPECT_EQ(file_with(reinterpret_cast<void const*>(&somewhere)), program);
    auto* const of_libc = ::dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
    ASSERT_NE(of_libc, nullptr);
    EXPECT_TRUE(file_with(of_libc).filename().native().starts_with("libc.so")) << file_with(of_libc);
}

// A program is called by what its user typed, which may be the name of something else in the folder the user is in.
TEST(own_file, is_not_what_the_program_was_called) {
    auto const scratch = temporary_directory::make().value();
    auto const program = fs::canonical("/proc/self/exe");
    auto const before = fs::current_path();
    ASSERT_TRUE(replace_file(scratch.path() / program.filename(), {}).has_value());
    fs::current_path(scratch.path());
    auto const found = file_with(reinterpret_cast<void const*>(&somewhere));
    fs::current_path(before);
    EXPECT_EQ(found, program);
}

// LD_LIBRARY_PATH=. and the like: the name means something else as soon as the program goes elsewhere.
TEST(own_file, is_where_a_library_was_found_also_when_the_program_has_gone_elsewhere) {
    auto const scratch = temporary_directory::make().value();
    auto const before = fs::current_path();
    auto const some = file_with(::dlsym(RTLD_DEFAULT, "gnu_get_libc_version")).parent_path() / "libm.so.6";
    for (auto const* const folder : {"here", "there"}) {
        make_directories(scratch.path() / folder).value();
        fs::copy_file(fs::canonical(some), scratch.path() / folder / "library.so");
    }
    fs::current_path(scratch.path() / "here");
    auto* const library = ::dlopen("./library.so", RTLD_NOW | RTLD_LOCAL);
    fs::current_path(scratch.path() / "there");
    auto const found = library == nullptr ? fs::path{} : file_with(::dlsym(library, "fdim"));
    fs::remove(scratch.path() / "here" / "library.so");
    auto const gone = library == nullptr ? fs::path{} : file_with(::dlsym(library, "fdim"));
    fs::current_path(before);
    ASSERT_NE(library, nullptr) << ::dlerror();
    ::dlclose(library);
    EXPECT_EQ(found, fs::canonical(scratch.path()) / "here" / "library.so");
    EXPECT_EQ(gone, fs::path{}) << "nothing is in its place";
}

// Whoever finds something beside or above a program may have found what another user put there.
TEST(own_file, belongs_to_us_where_nobody_else_could_have_put_it) {
    auto const scratch = temporary_directory::make().value();
    auto const own = scratch.path() / "build" / "program", found = scratch.path() / "bin" / "found";
    for (auto const& file : {own, found}) {
        make_directories(file.parent_path()).value();
        ASSERT_TRUE(replace_file(file, {}).has_value());
        fs::permissions(file, fs::perms{0755});
        fs::permissions(file.parent_path(), fs::perms{0755});
    }
    EXPECT_TRUE(belongs_to(own, found));
    EXPECT_TRUE(belongs_to(own, "/bin/sh")) << "root's";
    EXPECT_FALSE(belongs_to(own, scratch.path() / "bin" / "nothing"));
    fs::permissions(found, fs::perms{0777});
    EXPECT_FALSE(belongs_to(own, found));
    fs::permissions(found, fs::perms{0775});
    EXPECT_TRUE(belongs_to(own, found)) << "a group is ours, or it was chosen";
    fs::permissions(found.parent_path(), fs::perms{0777});
    EXPECT_FALSE(belongs_to(own, found)) << "whoever may write there may replace it";
    fs::permissions(found.parent_path(), fs::perms{01777});
    EXPECT_TRUE(belongs_to(own, found)) << "not in a folder like /tmp";
    if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
    constexpr ::uid_t other = 4242;
    ASSERT_EQ(::chown(found.c_str(), other, other), 0);
    EXPECT_FALSE(belongs_to(own, found));
    ASSERT_EQ(::chown(own.c_str(), other, other), 0);
    EXPECT_TRUE(belongs_to(own, found)) << "whoever made the program may as well bring its parts";
    ASSERT_EQ(::chown(found.c_str(), 0, 0), 0);
    ASSERT_EQ(::chown(own.c_str(), 0, 0), 0);
    fs::permissions(found.parent_path(), fs::perms{0755});
    ASSERT_EQ(::chown(found.parent_path().c_str(), other, other), 0);
    EXPECT_FALSE(belongs_to(own, found)) << "another's folder, with a link in it to whatever is root's";
    ASSERT_EQ(::chown(own.parent_path().c_str(), other, other), 0);
    EXPECT_TRUE(belongs_to(own, found)) << "who could replace the program itself";
}

}  // namespace kiln::base
