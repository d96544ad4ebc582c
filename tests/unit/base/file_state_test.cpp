// SPDX-License-Identifier: Apache-2.0
#include "base/file_state.hpp"

#include "base/files.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <fcntl.h>

namespace kiln::base {
namespace {

std::atomic<int> last_flags{0};

// NFS tells for up to a minute what it was told before, and whoever opens the file asks its server: a header that was edited on another
// machine would be compiled, and the kernel from before found.
TEST(file_state_test, a_look_is_at_what_the_server_has_now) {
    auto calls = real_system_calls();
    calls.statx = [](int directory, char const* path, int flags, unsigned mask, struct ::statx* about) {
        last_flags = flags;
        return real_system_calls().statx(directory, path, flags, mask, about);
    };
    install_system_calls(&calls);
    file_look by_name, by_number;
    EXPECT_EQ(look_at("/", by_name), 0);
    EXPECT_TRUE((last_flags & AT_STATX_FORCE_SYNC) != 0);
    auto const root = open_file("/", O_RDONLY | O_DIRECTORY).value();
    EXPECT_EQ(look_at(root.get(), by_number), 0);
    EXPECT_TRUE((last_flags & AT_STATX_FORCE_SYNC) != 0);
    install_system_calls(nullptr);
    EXPECT_EQ(by_name.state, by_number.state);
}

TEST(file_state_test, a_kernel_that_does_not_know_the_question_is_asked_another) {
    auto calls = real_system_calls();
    calls.statx = [](int, char const*, int, unsigned, struct ::statx*) {
        errno = EINVAL;
        return -1;
    };
    install_system_calls(&calls);
    file_look about;
    EXPECT_EQ(look_at("/", about), 0);
    install_system_calls(nullptr);
    EXPECT_TRUE(S_ISDIR(about.mode));
    EXPECT_EQ(about.state[5], 0u);
}

}  // namespace
}  // namespace kiln::base
