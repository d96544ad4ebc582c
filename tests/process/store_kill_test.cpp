// SPDX-License-Identifier: Apache-2.0
// W1, W2, W4: processes that die at every system call they make.
#include "support/actor.hpp"
#include "support/store_faults.hpp"

namespace kiln::test {

using namespace store;

using store_kill = store_faults;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int step = 13;  // processes start slowly
#else
constexpr int step = 3;
#endif

bool was_killed(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; }
bool ended_well(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 0; }

}  // namespace

TEST_F(store_kill, W1_a_put_killed_at_every_call_leaves_a_whole_entry_or_none) {
    for (std::string const named : {"NAMED=0", "NAMED=1"}) {
        auto const e = entry_of(1);
        int n = 1, hits = 0, left_behind = 0;
        for (;; ++n) {
            ASSERT_LT(n, 500);
            std::filesystem::remove_all(root());
            ASSERT_TRUE(n % 2 != 0 || disk()->put(entry_of(2)));  // into a directory that exists, and one that does not
            actor child{{"put", root(), "1"}, {"KILL_AT=" + std::to_string(n), named}};
            auto const status = child.wait();
            auto const tier = disk();
            auto const found = tier->find(e->about.at, expected_of(*e)).value();
            EXPECT_TRUE(found.hit ? found.hit->payload == e->payload : found.why == miss::absent)
                << "call " << n << ": nothing partial is visible";
            hits += found.hit ? 1 : 0;
            EXPECT_TRUE(maintenance{root()}.verify(maintenance::bad_entries::report).value().bad.empty());
            if (std::filesystem::exists(root() / "v1" / "locks")) {
                EXPECT_TRUE(tier->try_lead(e->about.at.request, base::clock::now()).leads()) << "no lock is left held";
            }
            left_behind += std::filesystem::exists(root()) ? temporaries() : 0;
            expect_heals(e);
            // Cleaned by age; the account is right after the next count.
            auto const hours_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours{3};
            for (auto const& f : std::filesystem::directory_iterator{root() / "v1" / "tmp"})
                std::filesystem::last_write_time(f, hours_ago);
            std::filesystem::last_write_time(root() / "v1" / "evict.lock", hours_ago);
            ASSERT_TRUE(disk()->put(entry_of(3)));
            EXPECT_EQ(temporaries(), 0);
            EXPECT_EQ(usage_account{disk_layout{root()}}.read()->bytes, counted().bytes);
            if (!was_killed(status)) {
                EXPECT_TRUE(ended_well(status));
                if (n % 2 == 0) break;  // a put into an existing directory makes fewer calls
            }
        }
        EXPECT_GT(n, 10);
        EXPECT_GT(hits, 0) << "some died after the entry had appeared";
        EXPECT_EQ(left_behind > 0, named == "NAMED=1") << "unnamed files leave nothing behind";
    }
}

TEST_F(store_kill, W2_an_eviction_killed_at_every_call_leaves_the_cache_consistent) {
    int killed = 0;
    for (int n = 1;; n += step) {
        ASSERT_LT(n, 5000);
        std::filesystem::remove_all(root());
        {
            auto const tier = disk();
            for (unsigned i = 0; i < 14; ++i) ASSERT_TRUE(tier->put(entry_of(i)));
        }
        actor child{{"evict", root(), "100"}, {"KILL_AT=" + std::to_string(n)}};
        auto const status = child.wait();
        EXPECT_TRUE(maintenance{root()}.verify(maintenance::bad_entries::report).value().bad.empty());
        auto o = options();
        o.max_bytes = 20'000;
        auto const tier = disk(o);
        for (unsigned i = 200; i < 205; ++i) ASSERT_TRUE(tier->put(entry_of(i)));
        EXPECT_LE(counted().bytes, o.max_bytes) << "killed at " << n;
        if (!was_killed(status)) break;
        ++killed;
    }
    EXPECT_GT(killed, 60 / step);
}

TEST_F(store_kill, W2_a_statistics_update_killed_at_every_call_loses_no_sum) {
    ASSERT_TRUE(disk()->put(entry_of(1)));
    std::uint64_t least = 0;
    for (int n = 1;; ++n) {
        ASSERT_LT(n, 500);
        actor child{{"count", root(), "1"}, {"KILL_AT=" + std::to_string(n)}};
        auto const status = child.wait();
        auto const sum = maintenance{root()}.counters().value();
        EXPECT_GE(sum.requests, least) << "monotonic";
        least = sum.requests;
        ASSERT_EQ(disk()->add_to_directory({.requests = 1}), adding::done) << "the lock is free again";
        least += 1;
        if (!was_killed(status)) break;
    }
    EXPECT_EQ(maintenance{root()}.counters().value().requests, least);
}

TEST_F(store_kill, W2_a_bundle_written_over_another_is_the_old_or_the_new_one) {
    auto const file = scratch_.path() / "x.kiln";
    int old_ones = 0, new_ones = 0;
    for (int n = 1;; ++n) {
        ASSERT_LT(n, 100);
        bundle_writer writer;
        writer.add(*entry_of(50)).value();
        writer.write(file).value();
        actor child{{"bundle", file, "20"}, {"KILL_AT=" + std::to_string(n)}};
        auto const status = child.wait();
        auto const bundle = bundle_tier::open(file).value();
        ASSERT_TRUE(bundle->info().entries == 1 || bundle->info().entries == 20);
        EXPECT_TRUE(bundle->verify().value().empty());
        (bundle->info().entries == 1 ? old_ones : new_ones) += 1;
        if (!was_killed(status)) break;
    }
    EXPECT_GT(old_ones, 2);
    EXPECT_GT(new_ones, 0);
}

TEST_F(store_kill, W4_a_put_ended_by_sigterm_leaves_no_temporary_and_the_usual_status) {
    for (int n = 1; n < 200; ++n) {
        std::filesystem::remove_all(root());
        actor child{{"put", root(), "1"}, {"TERM_AT=" + std::to_string(n)}};
        auto const status = child.wait();
        EXPECT_EQ(temporaries(), 0);
        if (ended_well(status)) {
            EXPECT_GT(n, 10);
            return;
        }
        EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << "no handler of ours";
    }
    FAIL() << "never ended";
}

TEST_F(store_kill, W11_a_child_forked_in_the_middle_of_a_put_publishes_nothing) {
    faulty_calls faults;
    int forks = 0, bad = 0;
    faults.hook = [&](call which, char const*, int) {
        if (which != call::write && which != call::linkat) return;
        auto const child = ::fork();
        if (child == 0) ::_exit(0);
        int status = 0;
        ::waitpid(child, &status, 0);
        bad += ended_well(status) ? 0 : 1;
        ++forks;
    };
    auto const tier = disk();
    ASSERT_TRUE(tier->put(entry_of(1)));
    EXPECT_EQ(counted().entries, 1u);
    EXPECT_GE(forks, 2);
    EXPECT_EQ(bad, 0);
}

TEST_F(store_kill, W12_a_program_that_ends_with_a_full_queue_ends_soon) {
    base::stopwatch const watch;
    actor child{{"leave", root(), "2000"}};
    EXPECT_TRUE(ended_well(child.wait()));
    EXPECT_LT(watch.ms(), 20'000);
    EXPECT_TRUE(maintenance{root()}.verify(maintenance::bad_entries::report).value().bad.empty());
}

}  // namespace kiln::test
