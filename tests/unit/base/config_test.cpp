// SPDX-License-Identifier: Apache-2.0
#include "base/config.hpp"

#include "base/files.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace kiln::base {

class config_test : public testing::Test {
protected:
    void SetUp() override {
        for (auto const& k : knobs()) ::unsetenv(std::string{k.variable}.c_str());
        ::setenv("KILN_CONFIG", file().c_str(), 1);
    }
    void TearDown() override { ::unsetenv("KILN_CONFIG"); }
    std::string file() const { return scratch_.path() / "kiln.conf"; }
    temporary_directory scratch_ = temporary_directory::make().value();
};

TEST_F(config_test, call_over_environment_over_file_over_default) {
    EXPECT_EQ(config::load().get("KILN_MAX_SIZE").from, origin::preset);
    replace_file(file(), as_bytes("# comment\nmax_size = 1G\njit=warn\n")).value();
    auto from_file = config::load();
    EXPECT_EQ(from_file.text("KILN_MAX_SIZE"), "1G");
    EXPECT_EQ(from_file.get("KILN_MAX_SIZE").from, origin::file);
    EXPECT_EQ(from_file.text("KILN_JIT"), "warn");
    ::setenv("KILN_MAX_SIZE", "2G", 1);
    auto from_environment = config::load();
    EXPECT_EQ(from_environment.size("KILN_MAX_SIZE"), 2ull << 30);
    EXPECT_EQ(from_environment.get("KILN_MAX_SIZE").from, origin::environment);
    from_environment.set("KILN_MAX_SIZE", "3G", origin::call);
    EXPECT_EQ(from_environment.get("KILN_MAX_SIZE").from, origin::call);
}

TEST_F(config_test, bad_values_are_named_and_replaced_by_safe_ones) {
    ::setenv("KILN_MAX_SIZE", "lots", 1);
    ::setenv("KILN_JIT", "maybe", 1);
    replace_file(file(), as_bytes("no_such_key = 1\n")).value();
    auto const c = config::load();
    ASSERT_EQ(c.problems().size(), 3u);
    EXPECT_NE(c.problems()[0].find("no_such_key"), std::string::npos);
    EXPECT_EQ(c.text("KILN_JIT"), "forbid");
    EXPECT_EQ(c.size("KILN_MAX_SIZE"), 5ull << 30);
}

TEST_F(config_test, a_number_or_switch_that_is_none_becomes_the_default) {
    replace_file(file(), as_bytes("events = /tmp/e\n")).value();
    ::setenv("KILN_WORKERS", "abc", 1);
    ::setenv("KILN_COMPILE_TIMEOUT", "0", 1);
    ::setenv("KILN_TOOLKIT_TRUST", "soon", 1);
    ::setenv("KILN_WORKER_MEMORY", "zz", 1);
    ::setenv("KILN_STRICT", "q", 1);
    auto const c = config::load();
    EXPECT_EQ(c.problems().size(), 6u);
    EXPECT_EQ(c.text("KILN_WORKERS"), "");
    EXPECT_EQ(c.text("KILN_COMPILE_TIMEOUT"), "120");
    EXPECT_EQ(c.size("KILN_WORKER_MEMORY"), 4ull << 30);
    EXPECT_FALSE(c.flag("KILN_STRICT"));
    EXPECT_EQ(c.text("KILN_EVENTS"), "") << "counts only in the environment";

    auto by_call = c;
    by_call.set("KILN_WORKERS", "-1", origin::call);
    by_call.check();
    EXPECT_EQ(by_call.problems().size(), 7u);
    EXPECT_EQ(by_call.text("KILN_WORKERS"), "");
}

TEST_F(config_test, lists_and_flags) {
    ::setenv("KILN_BUNDLES", "/a::/b", 1);
    ::setenv("KILN_READONLY", "1", 1);
    auto const c = config::load();
    EXPECT_EQ(c.list("KILN_BUNDLES"), (std::vector<std::string>{"/a", "/b"}));
    EXPECT_TRUE(c.flag("KILN_READONLY"));
    EXPECT_FALSE(c.flag("KILN_DISABLE"));
}

TEST(parse_size, knows_binary_suffixes_and_refuses_the_rest) {
    EXPECT_EQ(parse_size("512"), 512u);
    EXPECT_EQ(parse_size("4k"), 4096u);
    EXPECT_EQ(parse_size("5GiB"), 5ull << 30);
    EXPECT_EQ(parse_size("1TB"), 1ull << 40);
    for (auto const* bad : {"", "G", "-1", "1X", "1GG", "99999999999T"}) EXPECT_FALSE(parse_size(bad)) << bad;
}

TEST(config, a_setting_nobody_knows_is_a_problem_and_not_the_end) {
    auto c = config::load();
    auto const before = c.problems().size();
    c.set("KILN_NOSUCH", "1", origin::call);
    ASSERT_EQ(c.problems().size(), before + 1);
    EXPECT_NE(c.problems().back().find("KILN_NOSUCH"), std::string::npos);
}

}  // namespace kiln::base
