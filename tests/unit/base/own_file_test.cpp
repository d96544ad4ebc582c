// SPDX-License-Identifier: Apache-2.0
#include "base/own_file.hpp"

#include "base/files.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

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

}  // namespace kiln::base
