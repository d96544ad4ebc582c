// SPDX-License-Identifier: Apache-2.0
// T: clocks that are wrong, coarse or jump. Times of files are set by hand; the clock itself decides nothing else.
#include "support/store_faults.hpp"

#include "store/eviction.hpp"

#include <ctime>

namespace kiln::test {

using namespace store;

namespace {

constexpr std::int64_t year = 365 * 24 * 3600;

void set_time(std::filesystem::path const& path, std::int64_t seconds) {
    struct ::timespec const times[2] = {{.tv_sec = seconds, .tv_nsec = 0}, {.tv_sec = seconds, .tv_nsec = 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

std::int64_t time_of(std::filesystem::path const& path) {
    struct ::stat about {};
    return ::lstat(path.c_str(), &about) == 0 ? std::int64_t{about.st_mtim.tv_sec} : -1;
}

std::int64_t now() { return std::int64_t{::time(nullptr)}; }

}  // namespace

TEST_F(store_faults, T1_times_in_the_future_count_as_now_and_are_brought_back) {
    auto o = options();
    o.max_bytes = 100'000;
    auto const tier = disk(o);
    for (unsigned i = 0; i < 30; ++i) ASSERT_TRUE(tier->put(entry_of(i)));
    for (unsigned i = 0; i < 30; ++i) set_time(path_of(*entry_of(i)), now() + 10 * year);

    EXPECT_TRUE(tier->find(entry_of(7)->about.at, {}).value().hit);
    tier->used(entry_of(7)->about.at);
    EXPECT_LE(time_of(path_of(*entry_of(7))), now() + 1);
    // Neither wiped nor stuck: new entries go in, and about a tenth goes out at a time.
    for (unsigned i = 100; i < 200; ++i) {
        ASSERT_TRUE(tier->put(entry_of(i)));
        ASSERT_LE(counted().bytes, o.max_bytes);
        ASSERT_GE(counted().bytes, i < 130 ? 10'000u : o.max_bytes / 2);
    }
    for (auto const& c : maintenance{root()}.list().value()) EXPECT_GE(c.unused_for.count(), 0);
}

TEST_F(store_faults, T2_a_clock_at_1970_and_coarse_times_only_blur_the_order) {
    auto o = options();
    o.max_bytes = 60'000;
    auto const tier = disk(o);
    for (unsigned i = 0; i < 20; ++i) ASSERT_TRUE(tier->put(entry_of(i)));
    for (unsigned i = 0; i < 20; ++i) set_time(path_of(*entry_of(i)), 0);  // all the same
    for (unsigned i = 0; i < 20; ++i) EXPECT_TRUE(tier->find(entry_of(i)->about.at, {}).value().hit);
    for (unsigned i = 20; i < 100; ++i) {
        ASSERT_TRUE(tier->put(entry_of(i)));
        EXPECT_TRUE(tier->find(entry_of(i)->about.at, {}).value().hit) << "the newest is not the first to go";
        ASSERT_LE(counted().bytes, o.max_bytes);
    }
}

TEST_F(store_faults, T2_recency_is_kept_by_us_and_not_by_access_times) {
    auto const tier = disk();
    ASSERT_TRUE(tier->put(entry_of(1)));
    auto const path = path_of(*entry_of(1));
    set_time(path, now() - 100'000);
    EXPECT_TRUE(tier->find(entry_of(1)->about.at, {}).value().hit);
    EXPECT_LT(time_of(path), now() - 90'000) << "looking at it does not make it young";
    tier->used(entry_of(1)->about.at);
    EXPECT_GE(time_of(path), now() - 5);
    set_time(path, now() - 60);
    tier->used(entry_of(1)->about.at);
    EXPECT_LT(time_of(path), now() - 30) << "not at every hit";
}

TEST_F(store_faults, T2_the_least_recently_used_go_first) {
    auto o = options();
    o.max_bytes = 50'000;
    auto const tier = disk(o);
    for (unsigned i = 0; i < 20; ++i) ASSERT_TRUE(tier->put(entry_of(i)));
    for (unsigned i = 0; i < 20; ++i) set_time(path_of(*entry_of(i)), now() - 1000 - i);
    auto const report = [&] {
        usage_account account{disk_layout{root()}};
        return evict(disk_layout{root()}, account, {.max_bytes = 20'000, .low_bytes = 18'000, .incoming = 0}).value();
    }();
    EXPECT_GT(report.evicted, 5u);
    bool gone = false;
    for (unsigned i = 0; i < 20; ++i) {
        bool const here = std::filesystem::exists(path_of(*entry_of(i)));
        if (gone) {
            EXPECT_FALSE(here) << i;
        }
        gone = gone || !here;
    }
}

TEST_F(store_faults, T3_age_of_a_temporary_is_measured_by_the_clock_of_its_file_system) {
    auto const tier = disk();
    ASSERT_TRUE(tier->put(entry_of(1)));
    disk_layout const layout{root()};
    auto const fresh = layout.temporaries() / "fresh", old = layout.temporaries() / "old";
    std::ofstream{fresh} << "x";
    std::ofstream{old} << "x";
    set_time(old, now() - 7200);
    // A server an hour behind: what it wrote just now looks an hour old to us, and its own "now" is as old.
    set_time(fresh, now() - 3700);
    usage_account account{layout};
    {
        faulty_calls faults{{{.which = call::utimensat, .how = answer::pretend, .path_part = "evict.lock"}}};
        faults.hook = [&](call which, char const* path, int) {
            if (which == call::utimensat && std::string_view{path}.ends_with("evict.lock"))
                set_time(path, now() - 3700);
        };
        (void)evict(layout, account, {.max_bytes = 1 << 20, .low_bytes = 1 << 20, .incoming = 0}).value();
    }
    EXPECT_TRUE(std::filesystem::exists(fresh));
    set_time(old, now() - 9000);
    (void)evict(layout, account, {.max_bytes = 1 << 20, .low_bytes = 1 << 20, .incoming = 0}).value();
    EXPECT_FALSE(std::filesystem::exists(old));
}

TEST_F(store_faults, T4_waits_and_rests_are_measured_on_the_monotonic_clock) {
    // Deadlines are time_points of the steady clock by type; a deadline in the past does not wait at all.
    static_assert(base::clock::is_steady);
    auto const tier = disk();
    auto const leading = tier->try_lead(digest_of("r"), base::clock::now());
    ASSERT_TRUE(leading.leads());
    base::stopwatch const watch;
    EXPECT_EQ(tier->try_lead(digest_of("r"), base::clock::now() - std::chrono::hours{1}).outcome(),
              flight_outcome::timed_out);
    EXPECT_LT(watch.ms(), 1000);
}

}  // namespace kiln::test
