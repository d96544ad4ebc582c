// SPDX-License-Identifier: Apache-2.0
// Servers that mean harm, and know the protocol: they cost a bounded number of questions and a bounded time, and nothing of theirs is used.
#include "remote/curl.hpp"
#include "remote/upkeep.hpp"
#include "support/peak_memory.hpp"
#include "support/remote_tiers.hpp"
#include "support/store_entries.hpp"
#include "support/told_redis.hpp"

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <sys/socket.h>
#include <unistd.h>

namespace kiln::remote {

namespace {

using test::bulk;
using test::entry_of;
using test::expected_of;
using test::nothing;
using test::tier_at;
using test::to_all;
using test::told_http;
using test::told_redis;
using words = std::vector<std::string>;

constexpr char const* quick = " trust=server timeout=500ms connect-timeout=500ms";

base::bytes packet_of(store::entry const& e) { return encode_packet({}, store::encode_entry(e).value()); }

store::question about(store::entry const& e) {
    return {.family = e.about.at.family, .request = e.about.at.request, .key = e.about.at.key};
}

struct http_attack : ::testing::Test {
    void SetUp() override {
        if (!load_curl()) GTEST_SKIP() << "libcurl is not here";
    }
};

TEST_F(http_attack, the_token_for_the_bytes_is_not_told_to_who_keeps_leases) {
    auto const scratch = base::temporary_directory::make("kiln-token").value();
    auto const file = [&](char const* name, std::string_view text) {
        auto const path = (scratch.path() / name).native();
        base::replace_file(path, base::as_bytes(text)).value();
        return path;
    };
    auto const token = file("token", "hunter2");
    std::atomic<int> known{0};
    told_http const bytes{[&](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) {
            known += r.find("Authorization: Bearer hunter2\r\n") != r.npos ? 1 : 0;
            c.answer(404);
        }
    }};
    std::mutex mutex;
    std::string heard;
    told_redis const leases{[&](words const& w) -> std::string {
        std::lock_guard const lock{mutex};
        for (auto const& word : w) heard += word + " ";
        return w[0] == "MGET" ? to_all(w, nothing) : "+OK\r\n";
    }};
    auto const ask = [&](std::string const& more) {
        auto const t = tier_at(bytes.url() + " trust=server token-file=" + token + " lease=" + leases.url() + more);
        auto q = about(*entry_of(1));
        q.claims = store::claiming::wanted;
        return t->ask_sync(q).mine != nullptr;
    };
    EXPECT_TRUE(ask({})) << "a lease without a password";
    EXPECT_EQ(leases.asked("AUTH"), 0);
    EXPECT_TRUE(ask(" lease-token-file=" + file("other", "ann:secret")));
    EXPECT_GE(known, 2);
    std::lock_guard const lock{mutex};
    EXPECT_EQ(heard.find("hunter2"), heard.npos);
    EXPECT_NE(heard.find("AUTH ann secret "), heard.npos);
}

// A server that is only read, and a writer who does not know: nginx without DAV.
TEST_F(http_attack, who_takes_no_put_is_read_on) {
    auto const e = entry_of(1);
    auto const name = object_name("default", e->about.at.request, 0).hex();
    told_http const server{[&](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) {
            bool const here = r.starts_with("GET") && r.find(name.substr(2)) != r.npos;
            if (here) c.answer(200, base::as_text(packet_of(*e)));
            else c.answer(r.starts_with("PUT") ? 405 : 404);
        }
    }};
    auto const t = tier_at(server.url() + quick);
    for (unsigned n = 10; n < 20; n += 2) EXPECT_EQ(t->put(entry_of(n)).value().why, "denied");
    EXPECT_TRUE(t->ask_sync(about(*e)).hit);
}

// 408: it gave up while we sent, which says nothing of whether we may.
TEST_F(http_attack, who_was_too_slow_once_may_write_the_next) {
    std::atomic<bool> was_slow{false};
    told_http const server{[&](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request())
            c.answer(!r.starts_with("PUT") ? 404 : was_slow.exchange(true) ? 201 : 408);
    }};
    auto const t = tier_at(server.url() + quick);
    EXPECT_EQ(t->ask_sync(about(*entry_of(8))).why, miss::absent);
    EXPECT_EQ(t->put(entry_of(10)).value().why, "server");
    EXPECT_TRUE(t->put(entry_of(12)).value().kept);
}

// Who only sends, as 'kiln remote push' does, and never asks.
TEST_F(http_attack, who_took_something_is_not_given_up_for_one_failure) {
    std::atomic<int> puts{0};
    // The first is put under two names, one after the other.
    told_http const server{[&](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request())
            c.answer(!r.starts_with("PUT") ? 404 : ++puts == 3 ? 500 : 201);
    }};
    auto const t = tier_at(server.url() + quick);
    EXPECT_TRUE(t->put(entry_of(8)).value().kept);
    for (auto const end = base::clock::now() + std::chrono::seconds{10}; puts < 2 && base::clock::now() < end;)
        std::this_thread::yield();
    EXPECT_EQ(t->put(entry_of(10)).value().why, "server");
    EXPECT_TRUE(t->put(entry_of(12)).value().kept);
}

// Three running are: not three among others.
TEST_F(http_attack, who_fails_now_and_then_is_sent_the_rest) {
    std::atomic<int> puts{0};
    told_http const server{[&](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request())
            c.answer(!r.starts_with("PUT") ? 404 : ++puts % 3 == 0 && puts < 10 ? 500 : 201);
    }};
    auto const t = tier_at(server.url() + quick);
    int kept = 0;
    for (unsigned n = 8; n < 40; n += 2)
        if (t->put(entry_of(n)).value().kept) ++kept;
    EXPECT_GE(kept, 13) << "of 16";
}

// A program may have closed its standard streams, and go on writing to them. The server is the parent's.
TEST_F(http_attack, a_server_hears_nothing_of_what_is_written_to_streams_that_are_closed) {
    told_http const server{[](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) c.answer(r.starts_with("PUT") ? 201 : 404);
    }};
    auto const work = [&] {
        for (int const stream : {0, 1, 2}) ::close(stream);
        auto const t = tier_at(server.url() + quick);
        for (unsigned n = 8; n < 16; n += 2) {
            if (!t->put(entry_of(n)).value().kept) ::_exit(1);
            for (int const stream : {0, 1, 2})
                if (::write(stream, "said to nobody", 14) >= 0) ::_exit(2);
        }
        ::_exit(0);
    };
    EXPECT_EXIT(work(), testing::ExitedWithCode(0), "");
}

// A bucket that has nothing, and says to a PUT what a test tells it to.
class told_bucket {
public:
    // -> status, body
    using script = std::function<std::pair<int, std::string>(told_bucket const&, std::string const& request)>;
    explicit told_bucket(script what)
        : server_{[this, what](told_http::connection& c) {
              for (auto r = c.request(); !r.empty(); r = c.request()) {
                  auto const [status, body] = r.starts_with("PUT") ? what(*this, r) : std::pair{404, std::string{}};
                  c.answer(status, body);
              }
          }} {
        name("OLD");
    }
    void name(std::string_view who) const {
        auto const text = fmt::format("aws_access_key_id = {}\naws_secret_access_key = b\n", who);
        base::replace_file(credentials_, base::as_bytes(text)).value();
    }
    [[nodiscard]] std::shared_ptr<remote_tier> tier() const {
        return tier_at(fmt::format("s3://bucket/k{} endpoint={} credentials-file={}", quick, server_.url(),
                                   credentials_.native()));
    }

private:
    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-s3").value();
    std::filesystem::path credentials_ = scratch_.path() / "credentials";
    told_http server_;
};

TEST_F(http_attack, a_bucket_whose_others_were_faster_three_times_is_written_on) {
    std::atomic<int> conflicts{3};
    told_bucket const bucket{[&](told_bucket const&, std::string const&) {
        return std::pair{conflicts-- > 0 ? 409 : 200,
                         std::string{"<Error><Code>ConditionalRequestConflict</Code></Error>"}};
    }};
    auto const t = bucket.tier();
    EXPECT_EQ(t->ask_sync(about(*entry_of(8))).why, miss::absent);
    EXPECT_EQ(t->put(entry_of(10)).value().why, "server");
    EXPECT_TRUE(t->put(entry_of(12)).value().kept);
}

TEST_F(http_attack, a_bucket_that_gave_up_waiting_is_written_on) {
    std::atomic<bool> was_slow{false};
    told_bucket const bucket{[&](told_bucket const&, std::string const&) {
        return was_slow.exchange(true) ? std::pair{200, std::string{}}
                                       : std::pair{400, std::string{"<Error><Code>RequestTimeout</Code></Error>"}};
    }};
    auto const t = bucket.tier();
    EXPECT_EQ(t->ask_sync(about(*entry_of(8))).why, miss::absent);
    EXPECT_EQ(t->put(entry_of(10)).value().why, "server");
    EXPECT_TRUE(t->put(entry_of(12)).value().kept);
}

// The next entry is sent at once, by who we are by then.
TEST_F(http_attack, R11_credentials_that_are_written_anew_as_a_bucket_refuses_the_old_ones_count) {
    told_bucket const bucket{[](told_bucket const& here, std::string const& request) {
        bool const is_old = request.find("Credential=OLD/") != request.npos;
        if (is_old) here.name("NEW");
        return std::pair{is_old ? 403 : 200, std::string{}};
    }};
    auto const t = bucket.tier();
    EXPECT_EQ(t->put(entry_of(10)).value().why, "denied");
    EXPECT_TRUE(t->put(entry_of(12)).value().kept);
    EXPECT_TRUE(t->put(entry_of(14)).value().kept);
}

TEST(attack, a_server_that_has_everything_and_gives_nothing_is_not_reasoned_with) {
    told_redis const server{[](words const&) { return nothing; }};
    auto const done = tier_at(server.url() + quick)->put(entry_of(1)).value();
    EXPECT_FALSE(done.kept);
    EXPECT_EQ(done.why, "protocol");
    EXPECT_LE(server.asked("SET"), 20);
}

TEST(attack, one_sound_packet_in_every_slot_keeps_no_writer_busy_for_ever) {
    // Of the same request, made from other headers: sound, and replayed under every name.
    auto const replayed = bulk(base::as_text(packet_of(*entry_of(0))));
    told_redis const server{[&](words const& w) { return w[0] == "SET" ? nothing : to_all(w, replayed); }};
    auto const t = tier_at(server.url() + quick);
    EXPECT_FALSE(t->put(entry_of(1)).value().kept);
    EXPECT_LE(server.asked("SET"), 20);
    auto const got = t->ask_sync(about(*entry_of(1)));
    EXPECT_FALSE(got.hit) << "it is not the key that was asked for";
    EXPECT_LE(server.asked("GET"), 20 + 8) << "every slot once";
}

TEST(attack, a_lease_that_is_free_and_never_ours_is_given_up) {
    for (bool const held : {false, true}) {
        // Looked at it is free; tried for, it is another's, or nobody's.
        told_redis const server{[held](words const& w) {
            if (w[0] == "GET" && held && w[1].starts_with("kiln:1:l:")) return bulk("somebody");
            return to_all(w, nothing);
        }};
        auto const t = tier_at(server.url() + " trust=server");
        auto q = about(*entry_of(1));
        q.claims = store::claiming::wanted;
        auto const there = std::make_shared<std::promise<store::answer>>();
        t->ask(q, [there](store::answer a) {
            if (a.is_last) there->set_value(std::move(a));
        });
        auto got = there->get_future();
        ASSERT_EQ(got.wait_for(std::chrono::seconds{15}), std::future_status::ready) << "waits for ever";
        auto const a = got.get();
        EXPECT_FALSE(a.mine);
        EXPECT_EQ(a.late, "lease-deadline");
    }
}

TEST(attack, holders_that_never_end_do_not_hold_up_one_unit_after_the_other) {
    told_redis const server{[](words const& w) {
        bool const lease = w.size() > 1 && w[1].starts_with("kiln:1:l:");
        if (w[0] == "SET") return std::string{nothing};
        return to_all(w, lease ? bulk("somebody") : nothing);
    }};
    auto const t = tier_at(server.url() + " trust=server");
    std::vector<double> waits;
    for (unsigned n = 0; n < 8; ++n) {
        auto q = about(*entry_of(2 * n));
        q.claims = store::claiming::wanted;
        q.compile = std::chrono::milliseconds{100};
        auto const got = test::first_answer(*t, q);
        EXPECT_EQ(got.what.late, "lease-deadline");
        waits.push_back(got.ms);
    }
    EXPECT_GE(waits[0], 900) << "the shortest patience with a holder";
    for (std::size_t n = 3; n < waits.size(); ++n) EXPECT_LE(waits[n], 500) << "who waited in vain three times running";
}

// As large as is taken, and signed by a key that is known, as far as one can tell before it is checked.
std::string large_forgery(store::key_id const& by, std::size_t size) {
    packet_signature const forged{.by = by, .epoch = 1, .value = {}};
    auto out = encode_packet(std::vector{forged}, base::bytes(size));
    return std::string{base::as_text(out)};
}

struct forged_by_many : http_attack {
    static constexpr std::size_t size = std::size_t{8} << 20;
    forged_by_many() {
        base::replace_file(public_file(), base::as_bytes(key.public_half().pem())).value();
        packet = large_forgery(key.public_half().id(), size);
    }
    [[nodiscard]] std::string public_file() const { return (scratch.path() / "k.pub").native(); }
    [[nodiscard]] std::string rules() const { return " max-entry=8M patience=60s timeout=60s keys=" + public_file(); }
    // All at once; when the last was answered.
    void ask(remote_tier& t, unsigned count, store::claiming claims) {
        std::promise<void> end;
        std::atomic<unsigned> left{count};
        for (unsigned n = 0; n < count; ++n) {
            auto q = about(*entry_of(100 + 2 * n));
            q.claims = claims;
            q.makers = count;
            t.ask(q, [&](store::answer const& a) {
                EXPECT_FALSE(a.hit);
                if (a.is_last && --left == 0) end.set_value();
            });
        }
        end.get_future().wait();
    }
    base::temporary_directory scratch = base::temporary_directory::make("kiln-forged").value();
    store::private_key key = store::private_key::generate().value();
    std::string packet;
};

// Eight that are received, each beside the smaller buffer it grows out of, 64 MiB that wait for checks, and those that are checked.
constexpr double most_mib = 8 * (16 + 8) + 64 + 2 * 8;

TEST_F(forged_by_many, R17_a_batch_of_large_forgeries_does_not_fill_the_memory) {
    told_http const server{[&](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) c.answer(200, packet);
    }};
    auto const t = tier_at(server.url() + rules() + " read-only");
    test::peak_memory const peak;
    ask(*t, 128, store::claiming::no);
    std::printf("128 forgeries of 8 MiB: %.0f MiB more\n", peak.grown());
    EXPECT_LE(peak.grown(), most_mib) << "128 of them are a gigabyte";
}

TEST_F(forged_by_many, R17_what_is_looked_at_while_others_have_the_lease_is_not_kept_together) {
    std::mutex mutex;
    std::map<std::string, int> seen;
    told_http const server{[&](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) {
            auto const name = r.substr(0, r.find("\r\n"));
            std::unique_lock lock{mutex};
            bool const first = seen[name]++ == 0;
            lock.unlock();
            if (first) c.answer(404);
            else c.answer(200, packet);
        }
    }};
    // Nobody's when looked at, and never ours.
    told_redis const leases{[](words const& w) { return to_all(w, nothing); }};
    auto const t = tier_at(server.url() + rules() + " read-only lease=" + leases.url());
    test::peak_memory const peak;
    ask(*t, 128, store::claiming::wanted);
    std::printf("128 forgeries of 8 MiB, by leases: %.0f MiB more\n", peak.grown());
    EXPECT_LE(peak.grown(), most_mib);
}

TEST_F(http_attack, answers_that_are_swapped_are_taken_by_nobody_and_held_against_nobody) {
    auto const a = entry_of(10), b = entry_of(20);
    std::atomic<bool> swapped{true};
    told_http const server{[&](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) {
            auto const hex = object_name("default", a->about.at.request, 0).hex();
            bool const is_a = r.find(hex.substr(2)) != r.npos;
            c.answer(200, base::as_text(packet_of(is_a != swapped ? *a : *b)));
        }
    }};
    auto const t = tier_at(server.url() + quick);
    for (auto const& e : {a, b}) EXPECT_EQ(t->find(e->about.at, expected_of(*e)).value().why, miss::wrong_key);
    swapped = false;
    for (auto const& e : {a, b}) EXPECT_TRUE(t->find(e->about.at, expected_of(*e)).value().hit);
}

TEST_F(http_attack, a_proxy_that_answers_everything_with_a_page_is_not_believed) {
    std::atomic<int> puts{0};
    told_http const portal{[&](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) {
            puts += r.starts_with("PUT") ? 1 : 0;
            c.answer(200, r.starts_with("HEAD") ? "" : "<html>Please sign in</html>", "Content-Type: text/html\r\n");
        }
    }};
    auto const t = tier_at(portal.url() + quick);
    auto const e = entry_of(1);
    EXPECT_EQ(t->find(e->about.at, expected_of(*e)).value().why, miss::bad_magic);
    (void)t->put(e);
    EXPECT_LE(puts, 2) << "once by request, once by family";
    EXPECT_FALSE(t->find(e->about.at, expected_of(*e)).value().hit);
}

TEST_F(http_attack, a_packet_of_another_version_is_told_apart) {
    auto const e = entry_of(1);
    for (auto const& [version, why] : {std::pair{2, miss::newer_format}, std::pair{0, miss::bad_header}}) {
        auto packet = packet_of(*e);
        packet[8] = static_cast<std::byte>(version);
        told_http const server{[&](told_http::connection& c) {
            for (auto r = c.request(); !r.empty(); r = c.request()) c.answer(200, base::as_text(packet));
        }};
        EXPECT_EQ(tier_at(server.url() + quick)->find(e->about.at, {}).value().why, why);
    }
}

TEST(attack, what_a_server_does_not_say_the_age_of_is_there_all_the_same) {
    std::string const key = "kiln:1:" + base::sha256_of("k").hex();
    std::string said = "-ERR An LFU maxmemory policy is selected, idle time not tracked.\r\n";
    told_redis const server{[&](words const& w) -> std::string {
        return w[0] == "SCAN" ? "*2\r\n" + bulk("0") + "*1\r\n" + bulk(key) : said;
    }};
    auto all = upkeep::open(parse_remotes(server.url() + quick, {}).usable.at(0)).value();
    auto const found = all.list().value();
    ASSERT_EQ(found.size(), 1u) << "'0 checked, 0 bad' would be a lie";
    EXPECT_EQ(found[0].age, std::nullopt);
    said = nothing;
    EXPECT_TRUE(all.list().value().empty()) << "gone meanwhile";
}

TEST(attack, names_that_are_none_are_left_alone_and_shown_to_nobody) {
    std::string const odd = "kiln:1:\x1b[31m" + std::string(59, 'x');
    std::string const good = "kiln:1:" + base::sha256_of("k").hex();
    ASSERT_EQ(odd.size(), good.size());
    told_redis const server{[&](words const& w) -> std::string {
        if (w[0] == "SCAN") return "*2\r\n" + bulk("0") + "*2\r\n" + bulk(odd) + bulk(good);
        return ":5\r\n";
    }};
    auto all = upkeep::open(parse_remotes(server.url() + quick, {}).usable.at(0)).value();
    auto const found = all.list().value();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].key, good);
}

}  // namespace

}  // namespace kiln::remote
