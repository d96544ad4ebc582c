// SPDX-License-Identifier: Apache-2.0
#include "warmup/profile_file.hpp"

#include "base/files.hpp"
#include "support/golden.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::warmup {
namespace {

using testing::HasSubstr;

engine_detail::recipe some_unit(std::string const& name) {
    return engine_detail::recipe_of({.name = name,
                                     .source = "__global__ void k() {}",
                                     .kernels = {"k"},
                                     .options = {"-DA=1"},
                                     .headers = {{"h.h", "#define B 2"}},
                                     .include_dirs = {"/inc"},
                                     .directory = "/src",
                                     .exports = {"c"},
                                     .licence = "MIT"});
}

profile some_profile() {
    profile p;
    p.processes.push_back({.version = "0.1.0", .program = "/bin/app", .pid = 42, .unix_seconds = 1'700'000'000});
    std::uint64_t ns = 0;
    for (auto const* name : {"first", "second"}) {
        auto const r = some_unit(name);
        p.recipes.emplace(r.id(), r);
        p.uses.push_back({.recipe = r.id(),
                          .arch = "sm_90",
                          .kind = "cubin",
                          .key = std::string(64, 'a'),
                          .from = "compiled",
                          .ns = ns += 1000,
                          .compile_ms = 12.5,
                          .waited_ms = 13});
    }
    return p;
}

TEST(profile_format, golden) {
    auto const now = encode(some_profile());
    auto const golden = test::golden_file("profile-v1.bin", now);
    EXPECT_EQ(golden, now);
    EXPECT_EQ(decode_profile(golden, "golden").value().uses.size(), 2u);
}

TEST(profile_format, what_is_written_is_read) {
    auto const p = decode_profile(encode(some_profile()), "test").value();
    ASSERT_EQ(p.uses.size(), 2u);
    EXPECT_EQ(p.torn_bytes, 0u);
    EXPECT_EQ(p.processes[0].pid, 42u);
    EXPECT_EQ(p.recipes.at(p.uses[1].recipe).name, "second");
    auto const u = engine_detail::unit_of(p.recipes.at(p.uses[0].recipe)).value();
    EXPECT_EQ(u.headers[0].text, "#define B 2");
    EXPECT_EQ(u.licence, "MIT");
    EXPECT_EQ(engine_detail::recipe_of(u), some_unit("first"));
    EXPECT_EQ(p.costs_ms().at(p.uses[0].recipe), 12.5);
}

TEST(profile_format, every_prefix_can_be_read) {
    auto const whole = encode(some_profile());
    std::size_t most = 0;
    for (std::size_t n = 0; n < whole.size(); ++n) {
        auto const read = decode_profile(base::byte_span{whole}.first(n), "test");
        if (n < 12) {
            EXPECT_EQ(read.error().code(), errc::corrupt);
            continue;
        }
        ASSERT_TRUE(read) << n;
        EXPECT_GE(read->uses.size(), most) << "more bytes, not less";
        most = read->uses.size();
        EXPECT_LE(read->uses.size(), 1u) << "the last record is not whole";
    }
}

TEST(profile_format, every_flipped_byte_is_noticed) {
    auto const whole = encode(some_profile());
    for (std::size_t n = 12; n < whole.size(); ++n) {
        auto copy = whole;
        copy[n] ^= std::byte{0x40};
        auto const read = decode_profile(copy, "test");
        ASSERT_TRUE(read) << n;
        EXPECT_GT(read->torn_bytes, 0u) << n;
    }
}

TEST(profile_format, other_files_and_other_versions_are_told) {
    EXPECT_THAT(decode_profile(base::as_bytes("something else entirely"), "f").error().message(),
                HasSubstr("kiln record"));
    auto newer = encode(some_profile());
    newer[8] = std::byte{9};
    EXPECT_EQ(decode_profile(newer, "f").error().code(), errc::unsupported);
}

TEST(profile_format, recordings_of_256_processes_merge) {
    profile all;
    for (std::uint64_t i = 0; i < 256; ++i) {
        auto p = some_profile();
        p.uses[0].ns = 5000 - i;
        auto const own = some_unit("own" + std::to_string(i % 8));
        p.recipes.emplace(own.id(), own);
        profile_use last;
        last.recipe = own.id();
        last.arch = "sm_90";
        last.kind = "cubin";
        last.ns = 9000 + i;
        p.uses.push_back(last);
        all.merge(decode_profile(encode(p), "one").value());
    }
    EXPECT_EQ(all.processes.size(), 256u);
    EXPECT_EQ(all.recipes.size(), 10u);
    ASSERT_EQ(all.uses.size(), 10u);
    EXPECT_EQ(all.recipes.at(all.uses[0].recipe).name, "second") << "used at 2000 ns";
    EXPECT_EQ(all.uses[1].ns, 5000u - 255u) << "the earliest of all";
    EXPECT_TRUE(std::ranges::is_sorted(all.uses, {}, &profile_use::ns));
}

}  // namespace
}  // namespace kiln::warmup
