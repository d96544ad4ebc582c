// SPDX-License-Identifier: Apache-2.0
// Faults of servers, by the names of docs/faults.md: each is a miss within its budget, counted, and nothing of it is used.
#include "base/exit_gate.hpp"
#include "remote/curl.hpp"
#include "store/maintenance.hpp"
#include "store/store.hpp"
#include "support/faulty_calls.hpp"
#include "support/remote_tiers.hpp"
#include "support/store_entries.hpp"
#include "support/told_redis.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <dlfcn.h>
#include <fcntl.h>
#include <future>
#include <link.h>
#include <mutex>
#include <pthread.h>
#include <sys/stat.h>

namespace kiln::remote {

namespace {

using std::chrono::milliseconds;
using test::entry_of;
using test::expected_of;
using test::first_answer;

std::shared_ptr<remote_tier> fault_tier(std::string const& url, std::string const& more, event_log* log = nullptr) {
    return test::tier_at(url + " " + more, log);
}

store::question question_of(store::entry const& e, store::urgency how = store::urgency::somebody_waits) {
    return {.family = e.about.at.family,
            .request = e.about.at.request,
            .key = e.about.at.key,
            .expected = expected_of(e),
            .how = how};
}

constexpr double slack_ms = 150;  // what a loaded machine may add

// Asks until the answer is of this kind: who was sent away is let in with another token, and looks for one now and then.
template <class Good>
bool becomes(remote_tier& t, store::entry const& e, Good good) {
    auto const end = base::clock::now() + std::chrono::seconds{15};
    while (base::clock::now() < end) {
        if (good(first_answer(t, question_of(e)).what)) return true;
    }
    return false;
}

struct remote_faults : ::testing::Test {
    void SetUp() override {
        if (auto const what = test::redis_process::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
        server = std::make_unique<test::redis_process>();
        proxy = std::make_unique<test::fault_proxy>(server->port());
    }
    void put(store::entry_ptr const& e, std::string const& more = "trust=server") {
        ASSERT_TRUE(fault_tier(server->url(), more)->put(e).value().kept);
    }
    miss why(remote_tier& t, store::entry const& e) { return t.find(e.about.at, expected_of(e)).value().why; }

    std::unique_ptr<test::redis_process> server;
    std::unique_ptr<test::fault_proxy> proxy;
    store::entry_ptr entry = entry_of(1, 20'000);
};

TEST(remote_without_server, R1_a_closed_port_costs_a_moment_once) {
    auto const t = fault_tier(fmt::format("redis://127.0.0.1:{}", test::free_port()), "trust=server");
    auto const e = entry_of(1);
    auto const first = first_answer(*t, question_of(*e));
    EXPECT_FALSE(first.what.hit);
    EXPECT_LE(first.ms, 50 + slack_ms);
    // Told by then: from now on nobody leaves his thread for it.
    double worst = 0;
    for (int i = 0; i < 100; ++i) worst = std::max(worst, first_answer(*t, question_of(*e)).ms);
    EXPECT_LE(worst, 10);
    auto const counts = t->take_counts();
    EXPECT_EQ(counts.errors.at("fleet-connect"), 1u);
    EXPECT_EQ(counts.fleet.at("breaker_opened"), 1u);
}

TEST(remote_without_server, R1_a_black_hole_costs_fifty_milliseconds_once) {
    test::black_hole const nowhere;
    auto const t = fault_tier(fmt::format("redis://127.0.0.1:{}", nowhere.port()), "trust=server");
    auto const e = entry_of(1);
    auto const first = first_answer(*t, question_of(*e));
    EXPECT_EQ(first.what.late, "fleet-late");
    EXPECT_FALSE(first.what.is_last) << "connecting goes on behind it";
    EXPECT_GE(first.ms, 45);
    EXPECT_LE(first.ms, 50 + slack_ms);
    auto const second = first_answer(*t, question_of(*e));
    EXPECT_LE(second.ms, 10) << "the budget was for the process, not for each question";
}

TEST(remote_without_server, R1_a_server_that_never_answers_costs_a_quarter_of_a_second_once) {
    test::fault_proxy const silent{0};
    auto const t = fault_tier(silent.redis(), "trust=server");
    auto const e = entry_of(1);
    auto const first = first_answer(*t, question_of(*e));
    EXPECT_EQ(first.what.late, "fleet-late");
    EXPECT_LE(first.ms, 250 + slack_ms);
    EXPECT_LE(first_answer(*t, question_of(*e)).ms, 10);
}

template <class Is>
bool comes_true(Is is) {
    auto const end = base::clock::now() + std::chrono::seconds{10};
    while (base::clock::now() < end) {
        if (is())
            return true;  // be it for a moment: a thread that goes on may stop once more before it is back at its work
        std::this_thread::sleep_for(milliseconds{5});
    }
    return false;
}

// As a certificate on a disk that hangs does: until go().
class held_up_tier {
public:
    held_up_tier() {
        what->ask(question_of(*entry_of(1)), [s = state_](store::answer const&) {
            std::call_once(s->once, [&] { s->held.set_value(); });
            s->until.wait();
        });
        state_->held.get_future().get();
    }
    ~held_up_tier() { go(); }
    void go() {
        std::call_once(gone_, [&] { state_->free.set_value(); });
    }

    test::fault_proxy const silent{0};
    std::shared_ptr<remote_tier> what =
        fault_tier(silent.redis(), "trust=server patience=1ms connect-timeout=100ms timeout=1s");

private:
    struct state {
        std::once_flag once;
        std::promise<void> held, free;
        std::shared_future<void> until = free.get_future().share();
    };
    std::shared_ptr<state> const state_ = std::make_shared<state>();
    std::once_flag gone_;
};

TEST(remote_without_server, R1_who_examines_a_remote_whose_thread_is_held_up_is_not) {
    held_up_tier t;
    auto seen = std::async(std::launch::async, [&] { return t.what->examine(); });
    bool const came_back = seen.wait_for(std::chrono::seconds{10}) == std::future_status::ready;
    t.go();
    EXPECT_TRUE(came_back);
    EXPECT_TRUE(seen.get().why);
}

TEST(remote_without_server, R1_who_asks_a_remote_whose_thread_is_held_up_is_told_so_at_once) {
    using store::urgency;
    held_up_tier t;
    ASSERT_TRUE(comes_true([&] { return t.what->is_held_up(urgency::somebody_waits); }));
    EXPECT_FALSE(t.what->why_in_vain().empty());
    auto const got = first_answer(*t.what, question_of(*entry_of(3)));
    EXPECT_TRUE(got.what.is_last);
    EXPECT_EQ(got.what.why, miss::disabled);
    EXPECT_LE(got.ms, 10);
    // Who has nothing else waits as long as for a server.
    EXPECT_TRUE(comes_true([&] { return t.what->is_held_up(urgency::nothing_else_will_do); }));
    t.go();
    EXPECT_TRUE(comes_true([&] { return !t.what->is_held_up(urgency::somebody_waits); }));
}

// A process that has next to no processor looks like this, too.
TEST(remote_without_server, R1_a_remote_whose_thread_runs_is_not_held_up) {
    test::fault_proxy const silent{0};
    auto const t = fault_tier(silent.redis(), "trust=server patience=1ms connect-timeout=100ms timeout=1s");
    std::atomic<bool> seen{false};
    std::promise<void> began;
    std::once_flag once;
    t->ask(question_of(*entry_of(1)), [&](store::answer const&) {
        std::call_once(once, [&] {
            began.set_value();
            while (!seen) continue;
        });
    });
    began.get_future().get();
    auto const until = base::clock::now() + milliseconds{1500};
    bool is_held_up = false;
    while (base::clock::now() < until && !is_held_up) is_held_up = t->is_held_up(store::urgency::somebody_waits);
    seen = true;
    EXPECT_FALSE(is_held_up);
}

// The kernel tells the state of a thread behind its name, which it has of who started it: of the program, say.
TEST(remote_without_server, R1_a_remote_whose_thread_is_held_up_is_known_whatever_its_program_is_called) {
    std::thread{[] {
        ASSERT_EQ(::pthread_setname_np(::pthread_self(), "a) R (b"), 0);
        held_up_tier t;
        base::stopwatch const watch;
        EXPECT_TRUE(comes_true([&] { return t.what->is_held_up(store::urgency::somebody_waits); }));
        EXPECT_LE(watch.ms(), 5000);
    }}.join();
}

std::size_t open_descriptors() {
    std::filesystem::directory_iterator const all{"/proc/self/fd"};
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST(remote_without_server, R1_a_thread_that_was_left_behind_leaves_no_descriptor_when_it_ends) {
    auto const before = open_descriptors();
    {
        held_up_tier t;
        t.what.reset();
        t.go();
    }
    EXPECT_TRUE(comes_true([&] { return open_descriptors() == before; }))
        << open_descriptors() << ", before " << before;
}

TEST(remote_without_server, R1_the_end_of_a_remote_whose_thread_is_held_up_is_bounded) {
    held_up_tier t;
    auto ended = std::async(std::launch::async, [last = std::move(t.what)]() mutable { last.reset(); });
    EXPECT_EQ(ended.wait_for(std::chrono::seconds{10}), std::future_status::ready);
}

TEST(remote_without_server, R1_a_certificate_that_is_never_read_holds_up_neither_who_asks_nor_the_end) {
    if (!load_curl()) GTEST_SKIP() << "libcurl is not here";
    auto const scratch = base::temporary_directory::make("kiln-remote").value();
    auto const ca = scratch.path() / "ca.pem";
    ASSERT_EQ(::mkfifo(ca.c_str(), 0600), 0);
    test::fault_proxy const silent{0};
    auto t = fault_tier(fmt::format("https://127.0.0.1:{}/k", silent.port()),
                        fmt::format("trust=server ca={}", ca.native()));
    t->ask(question_of(*entry_of(1)), [](store::answer const&) {});
    ASSERT_TRUE(comes_true([&] { return t->is_held_up(store::urgency::somebody_waits); }));
    EXPECT_LE(first_answer(*t, question_of(*entry_of(3))).ms, 10);
    auto ended = std::async(std::launch::async, [last = std::move(t)]() mutable { last.reset(); });
    EXPECT_EQ(ended.wait_for(std::chrono::seconds{10}), std::future_status::ready);
    base::file_descriptor const written{::open(ca.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC)};  // it goes on, and ends
}

TEST(remote_without_server, R11_credentials_on_a_disk_that_hangs_hold_up_neither_who_asks_nor_who_forks) {
    if (!load_curl()) GTEST_SKIP() << "libcurl is not here";
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer ends a child with threads of its parent";
#endif
    auto const scratch = base::temporary_directory::make("kiln-remote").value();
    auto const file = (scratch.path() / "credentials").native();
    base::replace_file(file, base::as_bytes("[default]\naws_access_key_id = a\naws_secret_access_key = b\n")).value();
    std::promise<void> comes_back;
    auto const until = comes_back.get_future().share();
    std::atomic<bool> hangs{false};
    test::faulty_calls calls;
    calls.hook = [&](test::call which, char const* path, int) {
        if (which != test::call::open || path != file) return;
        hangs = true;
        until.wait();
    };
    auto t = fault_tier("s3://bucket/k", fmt::format("trust=server endpoint=http://127.0.0.1:{} credentials-file={}",
                                                     test::free_port(), file));
    auto asked =
        std::async(std::launch::async, [&] { t->ask(question_of(*entry_of(1)), [](store::answer const&) {}); });
    EXPECT_TRUE(comes_true([&] { return hangs.load(); }));
    EXPECT_EQ(asked.wait_for(std::chrono::seconds{5}), std::future_status::ready) << "who asks does not wait for it";
    auto forked = std::async(std::launch::async, [] {
        auto const child = ::fork();
        if (child == 0) ::_exit(0);
        (void)::waitpid(child, nullptr, 0);
    });
    EXPECT_EQ(forked.wait_for(std::chrono::seconds{10}), std::future_status::ready);
    auto is_told = std::async(
        std::launch::async, [&] { return comes_true([&] { return t->is_held_up(store::urgency::somebody_waits); }); });
    EXPECT_EQ(is_told.wait_for(std::chrono::seconds{15}), std::future_status::ready);
    comes_back.set_value();
    asked.get();
    EXPECT_TRUE(is_told.get());
    t.reset();
}

TEST_F(remote_faults, R1_patience_is_kept_and_the_answer_still_comes) {
    put(entry);
    std::atomic<bool> hold{true};
    proxy->set([&](std::string&) {
        while (hold) std::this_thread::yield();
        return true;
    });
    auto const t = fault_tier(proxy->redis(), "trust=server patience=30ms");
    auto const there = std::make_shared<std::promise<store::entry_ptr>>();
    auto const late = std::make_shared<std::promise<void>>();
    t->ask(question_of(*entry), [=](store::answer a) {
        if (!a.is_last) late->set_value();
        else there->set_value(a.hit);
    });
    late->get_future().get();
    hold = false;
    EXPECT_TRUE(there->get_future().get()) << "whoever still wants it gets it";
}

TEST_F(remote_faults, R1_three_cuts_open_the_breaker) {
    put(entry);
    auto const t = fault_tier(proxy->redis(), "trust=server");
    ASSERT_TRUE(t->find(entry->about.at, {}).value().hit);
    proxy->set([](std::string&) { return false; });
    for (int i = 0; i < 3; ++i) EXPECT_EQ(why(*t, *entry), miss::disabled);
    auto const counts = t->take_counts();
    EXPECT_EQ(counts.errors.at("fleet-cut"), 3u);
    EXPECT_EQ(counts.fleet.at("breaker_opened"), 1u);
}

TEST_F(remote_faults, R1_a_breaker_closes_when_the_server_is_back) {
    put(entry);
    auto const t = fault_tier(proxy->redis(), "trust=server");
    ASSERT_TRUE(t->find(entry->about.at, {}).value().hit);
    proxy->set([](std::string&) { return false; });
    for (int i = 0; i < 3; ++i) (void)why(*t, *entry);
    ASSERT_EQ(first_answer(*t, question_of(*entry)).what.why, miss::disabled);
    proxy->set({});
    auto const end = base::clock::now() + std::chrono::seconds{10};
    bool back = false;
    while (!back && base::clock::now() < end) back = first_answer(*t, question_of(*entry)).what.hit != nullptr;
    EXPECT_TRUE(back) << "one question in the background tries again";
}

TEST_F(remote_faults, R1_an_outage_with_many_questions_under_way_is_one_outage) {
    put(entry);
    auto const t = fault_tier(proxy->redis(), "trust=server");
    ASSERT_TRUE(t->find(entry->about.at, {}).value().hit);
    proxy->set([](std::string&) { return false; });
    std::promise<void> all;
    std::atomic<int> left{200};
    for (unsigned n = 0; n < 200; ++n) {
        t->ask(question_of(*entry_of(2 * n + 100)), [&](store::answer const& a) {
            if (a.is_last && --left == 0) all.set_value();
        });
    }
    all.get_future().get();
    proxy->set({});
    // A second or so; were each a failure of its own, a minute.
    EXPECT_TRUE(becomes(*t, *entry, [](store::answer const& a) { return a.hit != nullptr; }));
}

TEST_F(remote_faults, R7_who_may_not_write_reads_on) {
    put(entry);
    (void)server->say("ACL SETUSER default -set -eval");
    auto const t = fault_tier(server->url(), "trust=server");
    auto const done = t->put(entry_of(2)).value();
    EXPECT_FALSE(done.kept);
    EXPECT_EQ(done.why, "denied");
    EXPECT_TRUE(t->find(entry->about.at, {}).value().hit);
    EXPECT_EQ(t->take_counts().fleet.at("dropped"), 1u);
}

TEST_F(remote_faults, what_somebody_waited_for_has_its_name) {
    event_log log;
    auto const t = fault_tier(server->url(), "trust=server", &log);
    auto q = question_of(*entry);
    q.unit = "saxpy";
    (void)t->ask_sync(q);
    ASSERT_EQ(log.count(event_kind::waited), 1u);
    auto const told = log.recent();
    auto const wait = std::ranges::find(told, event_kind::waited, &event::kind);
    ASSERT_NE(wait, told.end());
    EXPECT_EQ(wait->unit.view(), "saxpy");
    EXPECT_EQ(wait->request, entry->about.at.request.prefix());
}

TEST_F(remote_faults, R8_what_is_too_large_to_be_sent_is_told) {
    event_log log;
    auto const t = fault_tier(server->url(), "trust=server max-entry=100K", &log);
    EXPECT_EQ(t->put(entry_of(1, 300'000)).value().why, "too-large");
    auto const counted = t->take_counts();
    EXPECT_EQ(counted.fleet.at("dropped"), 1u);
    EXPECT_EQ(counted.errors.at("fleet-too-large"), 1u);
    EXPECT_EQ(log.count(event_kind::fault), 1u);
}

TEST_F(remote_faults, R8_an_entry_larger_than_allowed_is_cut_off) {
    put(entry_of(1, 300'000));
    put(entry_of(2, 500));
    auto const t = fault_tier(server->url(), "trust=server max-entry=64K");
    EXPECT_EQ(why(*t, *entry_of(1, 300'000)), miss::too_large);
    EXPECT_TRUE(t->find(entry_of(2)->about.at, {}).value().hit) << "and the others are not harmed";
}

TEST_F(remote_faults, R10_a_full_server_is_read_on) {
    put(entry);
    (void)server->say("CONFIG SET maxmemory 1");
    auto const t = fault_tier(server->url(), "trust=server");
    EXPECT_EQ(t->put(entry_of(2)).value().why, "full");
    EXPECT_TRUE(t->find(entry->about.at, {}).value().hit);
}

TEST_F(remote_faults, R17_no_flipped_byte_is_ever_used) {
    put(entry);
    for (std::size_t n : {0u, 3u, 30u, 60u, 200u, 1'000u, 5'000u, 12'000u}) {
        proxy->set([n, at = std::size_t{0}](std::string& bytes) mutable {
            if (at <= n && n < at + bytes.size()) bytes[n - at] = static_cast<char>(bytes[n - at] ^ 0x20);
            at += bytes.size();
            return true;
        });
        auto const t = fault_tier(proxy->redis(), "trust=server timeout=300ms");
        auto const got = t->find(entry->about.at, expected_of(*entry)).value();
        if (got.hit) {
            EXPECT_EQ(got.hit->payload, entry->payload) << n;
        }
    }
}

TEST_F(remote_faults, R17_an_entry_in_another_place_is_not_taken) {
    put(entry);
    auto const other = entry_of(9);
    auto const from = object_name("default", entry->about.at.request, 0).hex();
    auto const to = object_name("default", other->about.at.request, 0).hex();
    ASSERT_EQ(server->say("COPY kiln:1:" + from + " kiln:1:" + to), ":1\r\n");
    auto const t = fault_tier(server->url(), "trust=server");
    EXPECT_EQ(why(*t, *other), miss::wrong_key);
    // R19: a writer replaces it.
    ASSERT_TRUE(t->put(other).value().kept);
    EXPECT_TRUE(fault_tier(server->url(), "trust=server")->find(other->about.at, {}).value().hit);
}

TEST_F(remote_faults, R17_whatever_a_hostile_server_says_is_a_miss) {
    std::string const bombs[] = {
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>hello</html>",
        "*1000000000\r\n",
        "$99999999999\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
        std::string(100'000, 'a'),
        "$5\r\nhello\r\n",
        "*2\r\n$1\r\na\r\n$1\r\nb\r\n",
        "-ERR \x1b[31m" + std::string(2'000, 'x') + "\r\n",
    };
    for (auto const& text : bombs) {
        test::fault_proxy hostile{0};
        hostile.say(text);
        auto const t = fault_tier(hostile.redis(), "trust=server timeout=500ms");
        auto const got = t->find(entry->about.at, {}).value();
        EXPECT_FALSE(got.hit);
        EXPECT_NE(got.why, miss::absent) << "told apart from an honest no: " << text.substr(0, 20);
    }
}

TEST_F(remote_faults, R17_what_a_server_says_reaches_events_cut_and_clean) {
    test::fault_proxy hostile{0};
    hostile.say("-ERR \x1b[31mred\x07" + std::string(2'000, 'x') + "\r\n");
    event_log log;
    auto const t = fault_tier(hostile.redis(), "trust=server timeout=500ms", &log);
    (void)t->find(entry->about.at, {});
    for (auto const& e : log.recent()) {
        for (char const c : e.detail.view()) EXPECT_GE(static_cast<unsigned char>(c), 0x20);
    }
    EXPECT_EQ(log.count(event_kind::fault), 1u);
}

TEST_F(remote_faults, R4_what_is_not_believed_is_a_miss_also_for_who_only_reads) {
    put(entry);
    auto const scratch = base::temporary_directory::make("kiln-keys").value();
    auto const key = (scratch.path() / "k.pub").native();
    base::replace_file(key, base::as_bytes(store::private_key::generate().value().public_half().pem())).value();
    auto const t = fault_tier(server->url(), "read-only keys=" + key);
    auto q = question_of(*entry);
    q.claims = store::claiming::wanted;
    auto const got = t->ask_sync(q);
    EXPECT_FALSE(got.hit);
    EXPECT_EQ(got.why, miss::not_signed);
    EXPECT_LT(t->examine().traffic.requests, 20u) << "and it does not ask again and again";
}

// Sound, and nobody who is believed says so.
TEST_F(remote_faults, R3_what_nobody_signed_is_rejected_told_and_reaches_no_disk) {
    put(entry);
    auto const scratch = base::temporary_directory::make("kiln-unsigned").value();
    auto const key = (scratch.path() / "k.pub").native();
    base::replace_file(key, base::as_bytes(store::private_key::generate().value().public_half().pem())).value();
    store::store_options o;
    o.disk = store::disk_options{.root = scratch.path() / "cache"};
    event_log log;
    store::store all{o, log};
    all.add_tier(fault_tier(server->url(), "keys=" + key + " read-only", &log));
    auto const got = all.find(entry->about.at, expected_of(*entry));
    EXPECT_FALSE(got.hit);
    EXPECT_EQ(got.why, miss::not_signed);
    ASSERT_TRUE(all.flush(base::clock::now() + std::chrono::seconds{10}));
    EXPECT_TRUE(store::maintenance{scratch.path() / "cache"}.list().value().empty());
    EXPECT_EQ(log.count(event_kind::rejected), 1u);
    EXPECT_EQ(all.counts().rejected.at("unsigned"), 1u);
}

TEST_F(remote_faults, R18_two_releases_of_one_request_with_other_headers_both_hit_and_neither_replaces_the_other) {
    auto const older = entry_of(2), newer = entry_of(3);
    ASSERT_EQ(older->about.at.request, newer->about.at.request);
    for (std::uint64_t const uploads : {1u, 0u}) {
        for (auto const& e : {older, newer}) {
            auto const t = fault_tier(server->url(), "trust=server");
            ASSERT_TRUE(t->put(e).value().kept);
            EXPECT_EQ(t->take_counts().fleet["uploads"], uploads) << e->about.name;
        }
        for (auto const& e : {older, newer}) {
            auto const got = fault_tier(server->url(), "trust=server")->find(e->about.at, expected_of(*e)).value();
            ASSERT_TRUE(got.hit) << e->about.name;
            EXPECT_EQ(got.hit->payload, e->payload);
        }
    }
}

// Before, the breaker opened for everything, and the hash stayed.
TEST_F(remote_faults, R19_a_key_of_another_type_is_a_packet_that_is_not_sound) {
    auto const request = entry->about.at.request;
    auto const key = "kiln:1:" + object_name("default", request, 0).hex();
    auto const lease = "kiln:1:l:" + lease_name("default", request).hex();
    auto const by_family =
        "kiln:1:" + family_name("default", entry->about.at.family, entry->about.target, entry->about.kind).hex();
    auto const is_string = [&](std::string const& k) { return server->say("TYPE " + k) == "+string\r\n"; };
    for (auto const& k : {key, lease, by_family}) ASSERT_EQ(server->say("HSET " + k + " a b"), ":1\r\n");
    // Of the same family, which is replaced when nobody waits for it any more.
    auto const sound = entry_of(2);
    ASSERT_EQ(sound->about.at.family, entry->about.at.family);
    auto const writer = fault_tier(server->url(), "trust=server");
    ASSERT_TRUE(writer->put(sound).value().kept);
    auto const end = base::clock::now() + std::chrono::seconds{10};
    while (!is_string(by_family) && base::clock::now() < end) {
    }
    EXPECT_TRUE(is_string(by_family)) << "also for those who ask by family";

    auto const t = fault_tier(server->url(), "trust=server");
    for (int i = 0; i < 5; ++i) {
        auto q = question_of(*entry);
        q.claims = store::claiming::wanted;
        auto const got = t->ask_sync(q);
        EXPECT_FALSE(got.hit);
        EXPECT_EQ(got.why, i == 0 ? miss::bad_magic : miss::absent) << "told once";
    }
    EXPECT_TRUE(t->find(sound->about.at, {}).value().hit) << "nothing else suffers";
    ASSERT_TRUE(t->put(entry).value().kept);
    auto const counted = t->take_counts();
    EXPECT_EQ(counted.fleet.count("breaker_opened"), 0u);
    EXPECT_TRUE(counted.errors.empty()) << counted.errors.begin()->first;
    EXPECT_TRUE(is_string(key));
    EXPECT_TRUE(fault_tier(server->url(), "trust=server")->find(entry->about.at, {}).value().hit);
    // And where whoever writes has not looked before.
    (void)server->say("DEL " + key);
    ASSERT_EQ(server->say("HSET " + key + " a b"), ":1\r\n");
    put(entry);
    EXPECT_TRUE(is_string(key));
}

TEST_F(remote_faults, R2_R19_what_was_evicted_or_poisoned_is_put_again) {
    put(entry);
    auto const name = object_name("default", entry->about.at.request, 0).hex();
    (void)server->say("SET kiln:1:" + name + " poison");
    auto const t = fault_tier(server->url(), "trust=server");
    EXPECT_EQ(why(*t, *entry), miss::bad_magic);
    EXPECT_EQ(why(*t, *entry), miss::absent) << "not asked for again by this process, and told once";
    ASSERT_TRUE(t->put(entry).value().kept);
    EXPECT_TRUE(t->find(entry->about.at, {}).value().hit);
}

TEST_F(remote_faults, R15_a_child_has_connections_of_its_own) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer ends a child that starts threads after a fork with threads";
#endif
    put(entry);
    auto const t = fault_tier(server->url(), "trust=server");
    ASSERT_TRUE(t->find(entry->about.at, {}).value().hit);
    auto const child = ::fork();
    if (child == 0) ::_exit(t->find(entry->about.at, {}).value().hit ? 0 : 1);
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(t->find(entry->about.at, {}).value().hit) << "and its parent keeps its own";
}

TEST(remote_fork, R15_a_child_has_no_part_in_a_connection_over_http) {
    if (!load_curl()) GTEST_SKIP() << "libcurl is not here";
    test::told_http const server{[](test::told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) c.answer(404);
    }};
    auto const t = fault_tier(server.url(), "trust=server");
    ASSERT_EQ(t->find(entry_of(1)->about.at, {}).value().why, miss::absent);
    auto const child = ::fork();
    if (child == 0) {
        for (int fd = 3; fd < 1024; ++fd) {
            ::sockaddr_in to{};
            ::socklen_t size = sizeof to;
            bool const connected = ::getpeername(fd, reinterpret_cast<::sockaddr*>(&to), &size) == 0;
            if (connected && to.sin_family == AF_INET && ntohs(to.sin_port) == server.port()) ::_exit(1);
        }
        ::_exit(0);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0) << "it has its parent's connection to the server";
}

// As in a plugin's constructor: it has a lock of the loader's, for which whoever loads libcurl waits, and fork() waits for him.
[[noreturn]] void fork_with_the_loaders_lock_while_libcurl_is_loaded() {
    ::alarm(30);
    std::thread loads{[] {
        std::this_thread::sleep_for(milliseconds{100});
        base::library_use const inside;
        (void)load_curl();
    }};
    ::dl_iterate_phdr(
        [](::dl_phdr_info*, std::size_t, void*) {
            std::this_thread::sleep_for(milliseconds{300});
            auto const child = ::fork();
            if (child == 0) ::_exit(0);
            (void)::waitpid(child, nullptr, 0);
            return 1;
        },
        nullptr);
    loads.join();
    ::_exit(0);
}

TEST(remote_fork, R15_who_forks_with_a_lock_of_the_loaders_and_who_loads_libcurl_do_not_wait_for_each_other) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer ends a child that starts threads after a fork with threads";
#endif
    if (::dlopen("libcurl.so.4", RTLD_NOW | RTLD_NOLOAD) != nullptr) GTEST_SKIP() << "it is loaded already";
    auto const fresh = ::fork();
    ASSERT_GE(fresh, 0);
    if (fresh == 0) fork_with_the_loaders_lock_while_libcurl_is_loaded();
    int status = -1;
    EXPECT_EQ(::waitpid(fresh, &status, 0), fresh);
    EXPECT_EQ(status, 0);
}

TEST_F(remote_faults, a_kept_connection_that_died_is_tried_once_more) {
    put(entry);
    auto const t = fault_tier(server->url(), "trust=server");
    ASSERT_TRUE(t->find(entry->about.at, {}).value().hit);
    (void)server->say("CLIENT KILL TYPE normal SKIPME yes");
    EXPECT_TRUE(t->find(entry->about.at, {}).value().hit);
    EXPECT_TRUE(t->take_counts().errors.empty());
}

TEST(remote_questions, R1_the_same_is_asked_once_and_who_waits_is_told_in_time) {
    if (!load_curl()) GTEST_SKIP() << "libcurl is not here";
    std::atomic<int> asked{0};
    std::atomic<bool> go{false};
    test::told_http const server{[&](test::told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) {
            ++asked;
            while (!go) ::usleep(1'000);
            c.answer(404);
        }
    }};
    auto const t = fault_tier(server.url(), "trust=server");
    auto const e = entry_of(1), other = entry_of(9);
    struct told {
        std::promise<double> late, last;
    };
    std::array<told, 3> all;
    base::stopwatch const watch;
    auto const ask = [&](store::question const& q, told& to) {
        t->ask(q, [&to, &watch](store::answer const& a) { (a.is_last ? to.last : to.late).set_value(watch.ms()); });
    };
    ask(question_of(*e, store::urgency::nobody_waits), all[0]);
    ask(question_of(*other, store::urgency::nobody_waits), all[1]);
    auto again = question_of(*e, store::urgency::somebody_waits);
    again.repeats = true;
    ask(again, all[2]);
    // He who waits is late; then nobody waits for this server any more, also not those who had more time.
    for (auto& one : all) EXPECT_LE(one.late.get_future().get(), 250 + 2 * slack_ms);
    go = true;
    for (auto& one : all) (void)one.last.get_future().get();
    EXPECT_EQ(asked, 2) << "two names, two requests";
    auto const counted = t->take_counts().fleet;
    for (auto const* const what : {"asked", "late", "misses"}) EXPECT_EQ(counted.at(what), 2u) << what;
}

TEST(remote_uploads, R15_an_upload_under_way_does_not_hold_up_the_end) {
    if (!load_curl()) GTEST_SKIP() << "libcurl is not here";
    std::promise<void> begun;
    std::atomic<bool> end{false}, told{false};
    test::told_http const server{[&](test::told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) {
            if (!r.starts_with("PUT")) {
                c.answer(404);
                continue;
            }
            if (!told.exchange(true)) begun.set_value();
            while (!end) ::usleep(1'000);
        }
    }};
    base::stopwatch watch;
    {
        event_log log;
        store::store_options o;
        store::store all{o, log};
        all.add_tier(fault_tier(server.url(), "trust=server timeout=30s"));
        all.put(entry_of(1));
        begun.get_future().get();
        watch = {};
    }
    EXPECT_LE(watch.ms(), 200 + 2 * slack_ms);
    end = true;
}

// The thread that waits for the server is the last to have the tier then.
TEST(remote_without_server, R15_who_ends_while_a_server_takes_something_hears_no_more_of_it) {
    std::promise<void> go;
    test::told_redis const server{[until = go.get_future().share()](test::told_redis::words const& asked) {
        if (asked[0] != "SET") return test::to_all(asked, test::nothing);
        until.wait();
        return std::string{"+OK\r\n"};
    }};
    auto settings = base::config::presets();
    settings.set("KILN_REMOTE", server.url() + " trust=server lease=none", base::origin::call);
    event_log log;
    {
        store::store all{{}, log};
        for (auto& t : make_tiers(settings, all.outlet())) all.add_tier(std::move(t));
        all.put(entry_of(1));
        EXPECT_TRUE(server.wait_until_asked("SET"));
    }
    go.set_value();
    EXPECT_TRUE(comes_true([&] { return server.asked("SET") == 2; })) << "by its family, when it was told";
    EXPECT_EQ(log.count(event_kind::published), 0u);
}

TEST(remote_tokens, R11_an_expired_token_is_one_event_and_heals_with_its_file) {
    if (!load_curl()) GTEST_SKIP() << "libcurl is not here";
    auto const scratch = base::temporary_directory::make("kiln-token").value();
    auto const file = (scratch.path() / "token").native();
    base::replace_file(file, base::as_bytes("old\n")).value();
    std::atomic<int> refused{0};
    test::told_http const server{[&](test::told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) {
            bool const known = r.find("Authorization: Bearer new\r\n") != r.npos;
            if (!known) ++refused;
            c.answer(known ? 404 : 401);
        }
    }};
    event_log log;
    auto const t = fault_tier(server.url(), "trust=server token-file=" + file, &log);
    auto const e = entry_of(1);
    EXPECT_EQ(t->find(e->about.at, {}).value().why, miss::disabled);
    // Well over the pause after which a server that does not answer would be tried again.
    base::stopwatch const watch;
    while (watch.ms() < 2'500) EXPECT_FALSE(first_answer(*t, question_of(*e)).what.hit);
    EXPECT_EQ(refused, 1) << "not asked again with what was refused";
    EXPECT_EQ(log.count(event_kind::fault), 1u);
    base::replace_file(file, base::as_bytes("new\n")).value();
    EXPECT_TRUE(becomes(*t, *e, [](store::answer const& a) { return a.why == miss::absent; }));
    EXPECT_EQ(refused, 1);
}

TEST_F(remote_faults, R11_a_rotated_password_heals_with_its_file) {
    auto const scratch = base::temporary_directory::make("kiln-token").value();
    auto const file = (scratch.path() / "token").native();
    base::replace_file(file, base::as_bytes("kiln:old")).value();
    put(entry);
    (void)server->say("ACL SETUSER kiln on >old ~* +@all");
    event_log log;
    auto const t = fault_tier(server->url(), "trust=server token-file=" + file, &log);
    ASSERT_TRUE(t->find(entry->about.at, {}).value().hit);
    (void)server->say("ACL SETUSER kiln <old >new");
    (void)server->say("CLIENT KILL TYPE normal SKIPME yes");
    EXPECT_EQ(why(*t, *entry), miss::disabled);
    EXPECT_EQ(log.count(event_kind::fault), 1u);
    base::replace_file(file, base::as_bytes("kiln:new")).value();
    EXPECT_TRUE(becomes(*t, *entry, [](store::answer const& a) { return a.hit != nullptr; }));
    EXPECT_EQ(log.count(event_kind::fault), 1u) << "one event, and it is over";
}

TEST_F(remote_faults, R11_who_may_write_by_now_writes) {
    auto const scratch = base::temporary_directory::make("kiln-token").value();
    auto const file = (scratch.path() / "token").native();
    base::replace_file(file, base::as_bytes("reader:x")).value();
    (void)server->say("ACL SETUSER reader on >x ~* +get +mget +ping");
    (void)server->say("ACL SETUSER writer on >x ~* +@all");
    auto const t = fault_tier(server->url(), "trust=server token-file=" + file);
    ASSERT_EQ(t->put(entry).value().why, "denied");
    base::replace_file(file, base::as_bytes("writer:x")).value();
    auto const end = base::clock::now() + std::chrono::seconds{15};
    bool kept = false;
    while (!kept && base::clock::now() < end) kept = t->put(entry).value().kept;
    EXPECT_TRUE(kept);
}

}  // namespace

}  // namespace kiln::remote
