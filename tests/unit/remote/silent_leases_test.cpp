// SPDX-License-Identifier: Apache-2.0
// Whoever keeps leases and falls silent, or plays with them, holds up nobody longer than a holder may.
#include "support/remote_tiers.hpp"
#include "support/store_entries.hpp"
#include "support/told_redis.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace kiln::remote {

namespace {

using std::chrono::milliseconds;
using test::entry_of;
using test::first_answer;
using test::is_about_leases;
using test::nothing;
using test::tier_at;
using test::told_redis;
using words = told_redis::words;

constexpr double busy_ms = 400;

store::question wanted_now(unsigned number, store::urgency how = store::urgency::somebody_waits) {
    auto const at = entry_of(number)->about.at;
    store::question out{.family = at.family, .request = at.request, .key = at.key, .how = how};
    out.compile = milliseconds{500};  // twice that is the patience with a holder
    out.claims = store::claiming::wanted;
    return out;
}

TEST(silent_leases, R1_a_lease_that_is_not_answered_is_waited_for_as_its_holder_would_be) {
    told_redis const server{[](words const& w) { return w[0] == "SET" ? test::silence : test::to_all(w, nothing); }};
    auto const t = tier_at(server.url() + " trust=server");
    auto const first = first_answer(*t, wanted_now(100));
    EXPECT_EQ(first.what.late, "fleet-late");
    EXPECT_FALSE(first.what.mine);
    EXPECT_LE(first.ms, 1'000 + busy_ms) << "the time-out of a request is ten seconds";
    auto const second = first_answer(*t, wanted_now(102));
    EXPECT_LE(second.ms, 250 + busy_ms) << "leases are not asked for for a while";
    EXPECT_EQ(server.asked("SET"), 1);
}

TEST(silent_leases, R1_a_server_of_leases_only_that_never_answers_costs_a_moment_once) {
    told_redis const bytes{[](words const& w) { return test::to_all(w, nothing); }};
    told_redis const leases{[](words const&) { return test::silence; }};
    auto const t = tier_at(bytes.url() + " trust=server lease=" + leases.url());
    EXPECT_LE(first_answer(*t, wanted_now(100)).ms, 250 + busy_ms);
    EXPECT_LE(first_answer(*t, wanted_now(102)).ms, 100);
    EXPECT_EQ(leases.asked("SET"), 1);
}

TEST(silent_leases, R1_a_look_at_the_leases_of_others_that_is_not_answered) {
    told_redis const server{[](words const& w) -> std::string {
        if (w[0] == "SET") return nothing;
        if (w[0] == "GET" && is_about_leases(w)) return test::bulk("somebody");
        return w[0] == "MGET" && is_about_leases(w) ? test::silence : test::to_all(w, nothing);
    }};
    auto const t = tier_at(server.url() + " trust=server");
    auto const first = first_answer(*t, wanted_now(100));
    EXPECT_EQ(first.what.late, "fleet-late");
    EXPECT_LE(first.ms, 1'200 + busy_ms);
}

TEST(silent_leases, R1_a_second_look_that_is_not_answered_leaves_the_lease_to_its_end) {
    std::atomic<int> looks{0};
    told_redis const server{[&](words const& w) -> std::string {
        if (w[0] == "GET") ++looks;
        if (looks > 1) return test::silence;
        return w[0] == "SET" ? "+OK\r\n" : nothing;
    }};
    auto const t = tier_at(server.url() + " trust=server");
    auto const first = first_answer(*t, wanted_now(100));
    EXPECT_EQ(first.what.late, "fleet-late");
    EXPECT_FALSE(first.what.is_last) << "the bytes may still come";
    EXPECT_LE(first.ms, 1'200 + busy_ms);
}

// A lease that is given after all is given back at once.
TEST(silent_leases, a_lease_that_comes_too_late_is_ended) {
    std::atomic<bool> go{false};
    told_redis const server{[&](words const& w) -> std::string {
        if (w[0] == "SET") {
            while (!go) std::this_thread::yield();
            return "+OK\r\n";
        }
        return w[0] == "EVAL" ? ":1\r\n" : test::to_all(w, nothing);
    }};
    auto const t = tier_at(server.url() + " trust=server");
    EXPECT_EQ(first_answer(*t, wanted_now(100)).what.late, "fleet-late");
    go = true;
    auto const end = base::clock::now() + std::chrono::seconds{10};
    while (server.asked("EVAL") == 0 && base::clock::now() < end) std::this_thread::yield();
    EXPECT_EQ(server.asked("EVAL"), 1);
}

// Free for a moment whenever patience is nearly over, and never ours.
TEST(silent_leases, one_holder_after_the_other_is_waited_for_twice_as_long_as_one) {
    base::stopwatch const watch;
    told_redis const server{[&](words const& w) -> std::string {
        if (w[0] == "SET") return nothing;
        bool const held = w[0] == "GET" || std::fmod(watch.ms(), 1'000) < 750;
        return is_about_leases(w) && held ? test::to_all(w, test::bulk("somebody")) : test::to_all(w, nothing);
    }};
    auto const t = tier_at(server.url() + " trust=server");
    auto const got = first_answer(*t, wanted_now(100));
    EXPECT_EQ(got.what.late, "lease-deadline");
    EXPECT_LE(got.ms, 4'000) << "twice a second of others, and the looks between them";
}

// One question in the background finds out, and from then on one of all compiles again.
TEST(silent_leases, leases_are_taken_again_when_they_are_to_be_had) {
    std::atomic<bool> silent{true};
    told_redis const server{[&](words const& w) -> std::string {
        if (is_about_leases(w) && silent) return test::silence;
        if (w[0] == "SET") return "+OK\r\n";
        return w[0] == "EVAL" ? ":1\r\n" : test::to_all(w, nothing);
    }};
    told_redis const bytes{[](words const& w) { return test::to_all(w, nothing); }};
    auto const t = tier_at(bytes.url() + " trust=server timeout=300ms lease=" + server.url());
    EXPECT_FALSE(first_answer(*t, wanted_now(100)).what.mine);
    silent = false;
    auto const end = base::clock::now() + std::chrono::seconds{15};
    bool taken = false;
    for (unsigned n = 102; !taken && base::clock::now() < end; n += 2) {
        auto const got = first_answer(*t, wanted_now(n));
        taken = got.what.mine != nullptr;
        EXPECT_LE(got.ms, 250 + busy_ms) << "nobody waits for what is found out";
    }
    EXPECT_TRUE(taken);
}

}  // namespace

}  // namespace kiln::remote
