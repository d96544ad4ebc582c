// SPDX-License-Identifier: Apache-2.0
// What an outage costs those who wait: one failure is told to all it concerns, and to nobody else.
#include "remote/curl.hpp"
#include "support/remote_tiers.hpp"
#include "support/store_entries.hpp"
#include "support/told_http.hpp"

#include <gtest/gtest.h>

#include <future>

namespace kiln::remote {

namespace {

using test::entry_of;
using test::tier_at;
using test::told_http;

constexpr double slow_machine_ms = 400;

store::question about(unsigned number, store::urgency how = store::urgency::somebody_waits) {
    auto const e = entry_of(number);
    return {.family = e->about.at.family, .request = e->about.at.request, .key = e->about.at.key, .how = how};
}

store::question with_lease(unsigned number, std::chrono::milliseconds compile) {
    auto q = about(number, store::urgency::nobody_waits);
    q.compile = compile;
    q.claims = store::claiming::wanted;
    q.makers = 16;
    return q;
}

// Several questions, and when the last answer to the last of them came.
class asked_many {
public:
    asked_many(remote_tier& of, std::vector<store::question> const& all) : left_{all.size()} {
        for (auto const& q : all) {
            of.ask(q, [this](store::answer const& a) {
                if (a.is_last && --left_ == 0) end_.set_value(watch_.ms());
            });
        }
    }
    double ms() { return end_.get_future().get(); }

private:
    base::stopwatch watch_;
    std::atomic<std::size_t> left_;
    std::promise<double> end_;
};

// Every second is another request.
std::vector<store::question> questions(unsigned count, store::urgency how) {
    std::vector<store::question> out;
    for (unsigned n = 0; n < count; ++n) out.push_back(about(100 + 2 * n, how));
    return out;
}

struct outage : ::testing::Test {
    void SetUp() override {
        if (!load_curl()) GTEST_SKIP() << "libcurl is not here";
    }
};

struct outage_with_leases : outage {
    void SetUp() override {
        outage::SetUp();
        if (auto const what = test::redis_process::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
        leases = std::make_unique<test::redis_process>();
    }
    // Somebody has it, and shows no sign of ending.
    void hold(unsigned number) {
        auto const name = lease_name("default", entry_of(number)->about.at.request).hex();
        ASSERT_EQ(leases->say("SET kiln:1:l:" + name + " somebody"), "+OK\r\n");
    }
    std::unique_ptr<test::redis_process> leases;
};

TEST_F(outage, R1_who_cannot_connect_speaks_for_all_that_wait_for_a_connection) {
    test::black_hole const nowhere;
    auto const t = tier_at(fmt::format("http://127.0.0.1:{} trust=server connect-timeout=300ms", nowhere.port()));
    asked_many all{*t, questions(40, store::urgency::nothing_else_will_do)};
    EXPECT_LE(all.ms(), 300 + slow_machine_ms) << "eight at a time they would take five times as long";
}

TEST_F(outage, R1_who_has_no_compiler_finds_out_that_the_server_is_back) {
    std::atomic<bool> broken{true};
    told_http const server{[&](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) c.answer(broken ? 500 : 404);
    }};
    auto const t = tier_at(server.url() + " trust=server timeout=300ms");
    auto const asked = [&] { return t->ask_sync(about(1, store::urgency::nothing_else_will_do)).why; };
    ASSERT_EQ(asked(), miss::disabled);
    broken = false;
    auto const end = base::clock::now() + std::chrono::seconds{15};
    auto why = miss::disabled;
    while (why == miss::disabled && base::clock::now() < end) why = asked();
    EXPECT_EQ(why, miss::absent) << "nobody else asks in such a process";
}

TEST_F(outage, R1_what_is_known_without_asking_is_no_try) {
    std::atomic<bool> busy{false};
    told_http const server{[&](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) {
            if (busy) c.answer(503, {}, "Retry-After: 1\r\n");
            else c.answer(404);
        }
    }};
    auto const t = tier_at(server.url() + " trust=server");
    auto const asked = [&](unsigned n) { return t->ask_sync(about(n, store::urgency::nothing_else_will_do)).why; };
    ASSERT_EQ(asked(1), miss::absent);
    busy = true;
    ASSERT_EQ(asked(101), miss::disabled);
    busy = false;
    // The server may be tried again, by somebody whose answer is remembered from before.
    std::this_thread::sleep_for(std::chrono::milliseconds{1'100});
    (void)asked(1);
    auto const end = base::clock::now() + std::chrono::seconds{5};
    auto why = miss::disabled;
    while (why == miss::disabled && base::clock::now() < end) why = asked(101);
    EXPECT_EQ(why, miss::absent) << "nobody has asked a server that is well, and nobody will";
}

TEST_F(outage, a_proxy_of_the_environment_is_not_for_this_machine) {
    told_http const server{[](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) c.answer(404);
    }};
    told_http const proxy{[](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) c.answer(502);
    }};
    ASSERT_EQ(::setenv("http_proxy", proxy.url().c_str(), 1), 0);
    auto const why = tier_at(server.url() + " trust=server")->ask_sync(about(1)).why;
    ASSERT_EQ(::unsetenv("http_proxy"), 0);
    EXPECT_EQ(why, miss::absent);
    EXPECT_EQ(proxy.connections(), 0) << "it would have heard the token";
}

TEST_F(outage, R1_a_server_that_fell_silent_is_not_waited_for_by_each_in_turn) {
    std::atomic<bool> silent{false};
    told_http const server{[&](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) {
            if (!silent) c.answer(404);
        }
    }};
    auto const t = tier_at(server.url() + " trust=server timeout=300ms");
    ASSERT_FALSE(t->ask_sync(about(1)).hit);
    silent = true;
    asked_many all{*t, questions(40, store::urgency::nothing_else_will_do)};
    EXPECT_LE(all.ms(), 300 + slow_machine_ms);
}

// Asked one after the other, by somebody who waits: what all of them cost together.
double one_by_one(remote_tier& of, unsigned count, unsigned from = 200) {
    base::stopwatch const watch;
    for (unsigned n = 0; n < count; ++n) (void)test::first_answer(of, about(from + 2 * n));
    return watch.ms();
}

TEST_F(outage, R1_a_server_that_falls_silent_costs_its_bound_once_and_not_once_for_each) {
    std::atomic<bool> silent{false};
    told_http const server{[&](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) {
            while (silent) std::this_thread::sleep_for(std::chrono::milliseconds{1});
            c.answer(404);
        }
    }};
    auto const t = tier_at(server.url() + " trust=server patience=200ms");
    ASSERT_EQ(t->ask_sync(about(1)).why, miss::absent);
    silent = true;
    EXPECT_LE(one_by_one(*t, 20), 200 + slow_machine_ms) << "each of its own would be four seconds";
    EXPECT_FALSE(t->why_in_vain().empty()) << "nor for what is being written to it";
    silent = false;
    auto const end = base::clock::now() + std::chrono::seconds{10};
    while (!t->why_in_vain().empty() && base::clock::now() < end) std::this_thread::yield();
    EXPECT_EQ(test::first_answer(*t, about(300)).what.why, miss::absent);
    EXPECT_TRUE(test::first_answer(*t, about(302)).what.late.empty()) << "what it says is waited for again";
}

TEST_F(outage, R1_a_server_that_answers_too_late_time_after_time_is_not_waited_for) {
    std::atomic<bool> slow{false};
    told_http const server{[&](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) {
            if (slow) std::this_thread::sleep_for(std::chrono::milliseconds{250});
            c.answer(404);
        }
    }};
    auto const t = tier_at(server.url() + " trust=server patience=200ms");
    ASSERT_EQ(t->ask_sync(about(1)).why, miss::absent);
    slow = true;
    unsigned waited_for = 0;
    for (unsigned n = 0; n < 12; ++n) {
        if (one_by_one(*t, 1, 200 + 2 * n) >= 190) ++waited_for;
        std::this_thread::sleep_for(std::chrono::milliseconds{100});  // what it is compiled in
    }
    EXPECT_LE(waited_for, 4u) << "three, and one that a busy machine holds up; else every second one is waited for";
    slow = false;
    auto const end = base::clock::now() + std::chrono::seconds{10};
    unsigned n = 300;
    while (!test::first_answer(*t, about(n)).what.late.empty() && base::clock::now() < end) {
        n += 2;
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
    EXPECT_TRUE(test::first_answer(*t, about(n + 2)).what.late.empty()) << "one answer in time, and it is waited for";
}

TEST_F(outage, who_has_nothing_else_is_told_what_became_of_it_and_never_that_it_is_late) {
    told_http const server{[](told_http::connection& c) {
        while (!c.request().empty()) {
        }
    }};
    auto const t = tier_at(server.url() + " trust=server timeout=300ms");
    auto const got = test::first_answer(*t, about(1, store::urgency::nothing_else_will_do)).what;
    EXPECT_TRUE(got.is_last);
    EXPECT_TRUE(got.late.empty());
    EXPECT_EQ(got.why, miss::disabled);
    EXPECT_FALSE(got.detail.empty());
}

TEST_F(outage_with_leases, R6_a_lease_server_that_is_down_costs_no_hits) {
    auto const e = entry_of(1);
    ASSERT_TRUE(tier_at(leases->url() + " trust=server")->put(e).value().kept);
    event_log log;
    auto const t =
        tier_at(fmt::format("{} trust=server lease=redis://127.0.0.1:{}", leases->url(), test::free_port()), &log);
    std::vector<store::question> all;
    for (unsigned n = 0; n < 10; ++n) all.push_back(with_lease(100 + 2 * n, std::chrono::seconds{1}));
    asked_many together{*t, all};
    (void)together.ms();
    auto const later = t->ask_sync(with_lease(200, std::chrono::seconds{1}));
    EXPECT_FALSE(later.mine);
    EXPECT_EQ(later.why, miss::absent) << "whoever keeps the bytes was asked";
    EXPECT_TRUE(t->ask_sync(about(1)).hit);
    EXPECT_EQ(log.count(event_kind::fault), 1u) << "one outage, told once";
}

TEST_F(outage_with_leases, R6_a_lease_server_that_does_not_let_us_in_is_told_once) {
    test::redis_process const locked{{"--requirepass", "secret"}};
    ASSERT_TRUE(tier_at(leases->url() + " trust=server")->put(entry_of(1)).value().kept);
    event_log log;
    auto const t = tier_at(leases->url() + " trust=server lease=" + locked.url(), &log);
    for (unsigned n = 0; n < 3; ++n) {
        auto const got = t->ask_sync(with_lease(100 + 2 * n, std::chrono::seconds{1}));
        EXPECT_FALSE(got.mine);
        EXPECT_EQ(got.why, miss::absent);
    }
    EXPECT_TRUE(t->ask_sync(about(1)).hit);
    EXPECT_EQ(log.count(event_kind::fault), 1u);
}

TEST_F(outage_with_leases, what_somebody_is_making_is_not_asked_for_again_and_again) {
    std::atomic<int> asked{0};
    told_http const server{[&](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) {
            ++asked;
            c.answer(404);
        }
    }};
    auto const t = tier_at(server.url() + " trust=server lease=" + leases->url());
    std::vector<store::question> all;
    for (unsigned n = 0; n < 10; ++n) {
        hold(100 + 2 * n);
        all.push_back(with_lease(100 + 2 * n, std::chrono::milliseconds{500}));
    }
    asked_many waiting{*t, all};
    EXPECT_GE(waiting.ms(), 900) << "a second of patience";
    EXPECT_LE(asked, 20) << "once at first, and once before patience is over";
}

TEST_F(outage_with_leases, R14_nobody_waits_for_a_holder_who_could_publish_nowhere) {
    auto server = std::make_unique<told_http>([&](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) c.answer(404);
    });
    auto const t = tier_at(server->url() + " trust=server lease=" + leases->url());
    hold(50);
    asked_many waiting{*t, {with_lease(50, std::chrono::seconds{10})}};
    ASSERT_FALSE(t->ask_sync(about(1)).hit);
    server.reset();
    asked_many others{*t, questions(3, store::urgency::somebody_waits)};
    (void)others.ms();
    EXPECT_LE(waiting.ms(), 3'000) << "the patience with a holder is ten seconds";
}

}  // namespace

}  // namespace kiln::remote
