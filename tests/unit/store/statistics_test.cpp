// SPDX-License-Identifier: Apache-2.0
#include "store/statistics.hpp"
#include "support/faulty_calls.hpp"

#include <gtest/gtest.h>

#include <ctime>
#include <fstream>
#include <sys/file.h>
#include <utility>

namespace kiln::test {

using namespace store;

namespace {

statistics some() {
    statistics s;
    s.requests = 10;
    s.blocked_ms = 7;
    s.hits = {{"memory", 3}, {"disk", 4}};
    s.rejected = {{"bad-digest", 1}};
    s.errors = {{"enospc", 2}};
    s.other = {{"from.the.future", 9}};
    return s;
}

}  // namespace

TEST(statistics, come_back_as_they_went) { EXPECT_EQ(decode_statistics(encode_statistics(some())).value(), some()); }

TEST(statistics, add_up_name_by_name) {
    auto s = some();
    s.add(some());
    EXPECT_EQ(s.requests, 20u);
    EXPECT_EQ(s.hits.at("disk"), 8u);
    EXPECT_EQ(s.other.at("from.the.future"), 18u);
    EXPECT_FALSE(s.empty());
    EXPECT_TRUE(statistics{}.empty());
}

TEST(statistics, tell_since_when_they_count) {
    auto const scratch = base::temporary_directory::make().value();
    auto const file = scratch.path() / "stats", lock = scratch.path() / "stats.lock";
    auto const now = static_cast<std::uint64_t>(std::time(nullptr));
    EXPECT_TRUE(add_statistics(file, lock, some()).value());
    auto const first = read_statistics(file).value().since;
    EXPECT_GE(first, now);
    EXPECT_LE(first, now + 600);
    EXPECT_TRUE(add_statistics(file, lock, some()).value());
    EXPECT_EQ(read_statistics(file).value().since, first);
    // A sum from before there was such a time: unknown, and not "now".
    std::ofstream{file, std::ios::binary} << base::as_text(encode_statistics(some()));
    EXPECT_TRUE(add_statistics(file, lock, some()).value());
    EXPECT_EQ(read_statistics(file).value().since, 0u);
}

TEST(statistics, sums_of_two_begin_with_the_earlier) {
    auto early = some(), late = some();
    early.since = 100;
    late.since = 200;
    auto one = early, other = late, without = some();
    one.add(late);
    other.add(early);
    without.add(late);
    EXPECT_EQ(one.since, 100u);
    EXPECT_EQ(other.since, 100u);
    EXPECT_EQ(without.since, 200u);
    EXPECT_EQ(one.found(), 14u);
}

TEST(statistics, damaged_bytes_are_refused) {
    auto const good = encode_statistics(some());
    for (std::size_t i = 0; i < good.size(); ++i) {
        auto bad = good;
        bad[i] ^= std::byte{1};
        EXPECT_FALSE(decode_statistics(bad)) << i;
        EXPECT_FALSE(decode_statistics(base::byte_span{good}.first(i))) << i;
    }
}

TEST(statistics, a_file_sums_and_a_damaged_one_starts_again) {
    auto const scratch = base::temporary_directory::make().value();
    auto const file = scratch.path() / "stats", lock = scratch.path() / "stats.lock";
    EXPECT_TRUE(read_statistics(file).value().empty());
    EXPECT_TRUE(add_statistics(file, lock, some()).value());
    EXPECT_TRUE(add_statistics(file, lock, some()).value());
    EXPECT_EQ(read_statistics(file).value().requests, 20u);
    std::ofstream{file} << "nonsense";
    EXPECT_TRUE(read_statistics(file).value().empty());
    EXPECT_TRUE(add_statistics(file, lock, some()).value());
    auto again = read_statistics(file).value();
    EXPECT_GT(std::exchange(again.since, 0), 0u) << "it says since when";
    EXPECT_EQ(again, some());
}

TEST(statistics, a_busy_lock_is_not_waited_for) {
    auto const scratch = base::temporary_directory::make().value();
    auto const file = scratch.path() / "stats", lock = scratch.path() / "stats.lock";
    auto const held = base::open_file(lock, O_RDWR | O_CREAT).value();
    ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
    EXPECT_FALSE(add_statistics(file, lock, some()).value());
    EXPECT_FALSE(std::filesystem::exists(file));
}

}  // namespace kiln::test
