// SPDX-License-Identifier: Apache-2.0
#include "base/process_stat.hpp"
#include "base/files.hpp"

#include <gtest/gtest.h>

#include <pthread.h>
#include <thread>

namespace kiln::base {

TEST(process_stat, the_state_follows_the_name_whatever_that_is) {
    EXPECT_EQ(state_and_more("17 (kiln-worker) S 1 17"), "S 1 17");
    EXPECT_EQ(state_and_more("17 (a) R (b) D 1 17"), "D 1 17");
    EXPECT_EQ(state_and_more("17 (x) R ) D 1 17"), "D 1 17");
    EXPECT_EQ(state_and_more("17 () Z 1 17"), "Z 1 17");
    EXPECT_EQ(state_and_more("17 (cut o"), "");
    EXPECT_EQ(state_and_more(""), "");
}

TEST(process_stat, the_kernel_writes_a_name_as_it_is) {
    std::thread{[] {
        ASSERT_EQ(::pthread_setname_np(::pthread_self(), "a) S (b"), 0);
        auto const said = read_file("/proc/thread-self/stat").value().value();
        EXPECT_TRUE(state_and_more(as_text(said)).starts_with("R ")) << as_text(said);
    }}.join();
}

}  // namespace kiln::base
