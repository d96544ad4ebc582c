// SPDX-License-Identifier: Apache-2.0
// W8 and P: several processes on one directory.
#include "support/actor.hpp"
#include "support/store_faults.hpp"

#include <algorithm>
#include <thread>

namespace kiln::test {

using namespace store;

using store_concurrency = store_faults;

TEST_F(store_concurrency, W8_two_processes_putting_the_same_keys_make_each_once) {
    actor a{{"race", root(), "1000"}}, b{{"race", root(), "1000"}};
    EXPECT_EQ(a.wait(), 0);
    EXPECT_EQ(b.wait(), 0);
    EXPECT_EQ(counted().entries, 1000u);
    auto const account = usage_account{disk_layout{root()}}.read();
    ASSERT_TRUE(account);
    EXPECT_EQ(account->bytes, counted().bytes) << "accounted once";
    EXPECT_EQ(account->entries, 1000u);
    EXPECT_TRUE(maintenance{root()}.verify(maintenance::bad_entries::report).value().bad.empty());
}

TEST_F(store_concurrency, P2_a_stopped_leader_delays_until_the_deadline_and_no_longer) {
    actor holder{{"hold", root(), "1"}};
    ASSERT_EQ(holder.line(), "leads");
    holder.signal(SIGSTOP);
    base::stopwatch const watch;
    auto const outcome =
        disk()->try_lead(address_of(1).request, base::clock::now() + std::chrono::milliseconds{100}).outcome();
    EXPECT_EQ(outcome, flight_outcome::timed_out);
    EXPECT_GE(watch.ms(), 95);
    EXPECT_LT(watch.ms(), 5000);
    holder.signal(SIGCONT);
}

TEST_F(store_concurrency, P3_a_killed_leader_is_succeeded_within_milliseconds) {
    actor holder{{"hold", root(), "1"}};
    ASSERT_EQ(holder.line(), "leads");
    actor follower{{"follow", root(), "1"}};
    ASSERT_EQ(follower.line(), "ready");
    holder.signal(SIGKILL);
    (void)holder.wait();
    auto const line = follower.line();
    EXPECT_TRUE(line.starts_with("leader ")) << line;
    EXPECT_LT(std::atoi(line.substr(7).c_str()), 5000);
}

TEST_F(store_concurrency, P8_statistics_of_many_writers_add_up) {
    ASSERT_TRUE(disk()->put(entry_of(1)));
    std::vector<actor> all;
    for (int i = 0; i < 64; ++i) all.emplace_back(std::vector<std::string>{"count", root(), "20"});
    std::uint64_t last = 0, lost = 0;
    for (auto& a : all) {
        lost += static_cast<std::uint64_t>(std::atoi(a.line().c_str()));
        EXPECT_EQ(a.wait(), 0);
        auto const now = maintenance{root()}.counters().value().requests;
        EXPECT_GE(now, last) << "monotonic, never a lost file";
        last = now;
    }
    EXPECT_EQ(last + lost, 64u * 20u) << "only what a writer could not add in time is missing";
    EXPECT_LT(lost, 64u * 20u / 10);
}

TEST_F(store_concurrency, P1_cold_processes_compile_each_key_about_once) {
    constexpr unsigned processes = 64, keys = 50;
    std::vector<actor> all;
    for (unsigned i = 0; i < processes; ++i)
        all.emplace_back(std::vector<std::string>{"cold", root(), std::to_string(keys)});
    for (auto& a : all) a.go();
    unsigned compiled = 0;
    for (auto& a : all) {
        compiled += static_cast<unsigned>(std::atoi(a.line().c_str()));
        EXPECT_EQ(a.wait(), 0);
    }
    EXPECT_GE(compiled, keys);
    EXPECT_LE(compiled, keys * 11 / 10) << "at most 1.1 compiles per key";
    EXPECT_EQ(counted().entries, keys);
    RecordProperty("compiles", static_cast<int>(compiled));
}

TEST_F(store_concurrency, P1_soak) {
    actor soak{{"--root", root(), "--seconds", "10", "--processes", "32", "--keys", "500"},
               {},
               KILN_TEST_BIN_DIR "/kiln-test-soak"};
    std::string report;
    for (auto line = soak.line(); !line.empty(); line = soak.line()) report += line + "\n";
    EXPECT_EQ(soak.wait(), 0) << report;
    RecordProperty("report", report);
    std::fputs(report.c_str(), stdout);
}

}  // namespace kiln::test
