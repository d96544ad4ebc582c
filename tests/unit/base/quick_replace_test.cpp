// SPDX-License-Identifier: Apache-2.0
#include "base/quick_replace.hpp"

#include "support/faulty_calls.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace kiln::base {

namespace {

namespace fs = std::filesystem;

std::size_t files_in(fs::path const& folder) {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator{folder}, fs::directory_iterator{}));
}

}  // namespace

TEST(quick_replace, makes_and_replaces_and_leaves_nothing_else) {
    auto const scratch = temporary_directory::make().value();
    auto const file = scratch.path() / "counters";
    for (auto const* text : {"one", "another", ""}) {
        ASSERT_TRUE(replace_quickly(file, as_bytes(text)));
        EXPECT_EQ(as_text(**read_file(file)), text);
        EXPECT_EQ(files_in(scratch.path()), 1U);
    }
    EXPECT_FALSE(replace_quickly(scratch.path() / "nowhere" / "counters", {}));
}

TEST(quick_replace, is_seen_whole_and_never_missing) {
    auto const scratch = temporary_directory::make().value();
    auto const file = scratch.path() / "counters";
    std::string const first(5000, 'a'), second(5000, 'b');
    ASSERT_TRUE(replace_quickly(file, as_bytes(first)));
    std::atomic<bool> done{false};
    std::thread writing{[&] {
        for (int i = 0; i < 300; ++i) (void)replace_quickly(file, as_bytes(i % 2 == 0 ? second : first));
        done.store(true);
    }};
    bool is_whole = true;
    while (!done.load()) {
        auto const seen = read_file(file);
        is_whole = is_whole && seen && *seen && (as_text(**seen) == first || as_text(**seen) == second);
    }
    writing.join();
    EXPECT_TRUE(is_whole);
}

TEST(quick_replace, that_fails_leaves_what_was_there) {
    auto const scratch = temporary_directory::make().value();
    auto const file = scratch.path() / "counters";
    ASSERT_TRUE(replace_quickly(file, as_bytes("before")));
    {
        test::faulty_calls const faults{{{.which = test::call::rename, .error = EIO}}};
        EXPECT_FALSE(replace_quickly(file, as_bytes("after")));
    }
    EXPECT_EQ(as_text(**read_file(file)), "before");
    EXPECT_EQ(files_in(scratch.path()), 1U);
}

}  // namespace kiln::base
