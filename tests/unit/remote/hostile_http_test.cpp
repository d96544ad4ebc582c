// SPDX-License-Identifier: Apache-2.0
// C10 and R17 over HTTP: whatever a server sends, nothing of it is used or reaches the disk, memory stays bounded, and nobody waits longer
// than his budget.
#include "remote/curl.hpp"
#include "remote/remote_tier.hpp"
#include "store/maintenance.hpp"
#include "store/store.hpp"
#include "support/peak_memory.hpp"
#include "support/store_entries.hpp"
#include "support/told_http.hpp"

#include <gtest/gtest.h>

#include <future>

namespace kiln::remote {

namespace {

using test::peak_memory;
using test::told_http;

// The same to every request, until the client has enough of it.
told_http::script always(std::string head, std::string again = {}) {
    return [head = std::move(head), again = std::move(again)](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) {
            if (!c.say(head)) return;
            while (!again.empty()) {
                if (!c.say(again)) return;
            }
        }
    };
}

struct hostile_http : ::testing::Test {
    void SetUp() override {
        if (!load_curl()) GTEST_SKIP() << "libcurl is not here";
    }
    // What a machine with such a server makes of it, all the way to its disk.
    miss asked(std::string const& url, std::string const& more = {}) {
        store::store_options o;
        o.disk = store::disk_options{.root = scratch.path() / "cache"};
        event_log log;
        miss why{};
        {
            store::store all{o, log};
            auto const list = parse_remotes(url + " trust=server max-entry=64K timeout=2s " + more, {});
            auto const tier =
                std::make_shared<remote_tier>(list.usable.at(0), std::make_shared<store::event_outlet>(&log));
            all.add_tier(tier);
            auto const got = all.find(entry->about.at, test::expected_of(*entry));
            EXPECT_FALSE(got.hit);
            why = got.misses.empty() ? miss::absent : got.misses.back().why;
            (void)all.flush(base::clock::now() + std::chrono::seconds{5});
        }
        for (auto const& e : log.recent()) {
            for (char const c : e.detail.view()) EXPECT_GE(static_cast<unsigned char>(c), 0x20);
        }
        EXPECT_TRUE(store::maintenance{scratch.path() / "cache"}.list().value().empty()) << "reached the disk";
        return why;
    }
    store::entry_ptr entry = test::entry_of(1, 20'000);
    base::temporary_directory scratch = base::temporary_directory::make("kiln-hostile").value();
};

constexpr double allowed_mib = 24;

struct offence {
    char const* name;
    std::string head;
    std::string again{};
};

TEST_F(hostile_http, C10_R17_whatever_it_says_is_a_miss_and_costs_little) {
    std::string const mega(1 << 20, 'x');
    std::vector<offence> const all{
        {"a body without end", "HTTP/1.1 200 OK\r\n\r\n", mega},
        {"a body of eight exabytes", "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n", mega},
        {"chunks without end", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "100000\r\n" + mega + "\r\n"},
        {"chunks of no size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"},
        {"headers of ten megabytes", "HTTP/1.1 200 OK\r\n", "X-Filler: " + std::string(4000, 'h') + "\r\n"},
        {"one header without end", "HTTP/1.1 200 OK\r\nX-Filler: ", mega},
        {"permissions without end", "", "HTTP/1.1 100 Continue\r\n\r\n"},
        {"nothing", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
        {"a page", "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n<html></html"},
        {"no head at all", "KILNPKT\n and more\r\n\r\n"},
        {"a status that is none", "HTTP/1.1 abc\r\n\r\n"},
        {"a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello"},
        {"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nhello"},
        {"packed, as nobody asked for",
         "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x08"},
        {"HTTP/3, in the clear", "HTTP/3 200\r\nContent-Length: 1\r\n\r\nx"},
        {"an error with control characters", "HTTP/1.1 500 \x1b[31mred\x07\r\nContent-Length: 0\r\n\r\n"},
    };
    for (auto const& what : all) {
        told_http const server{always(what.head, what.again)};
        peak_memory const memory;
        base::stopwatch const watch;
        auto const why = asked(server.url());
        auto const grown = memory.grown();
        EXPECT_NE(why, miss::absent) << what.name << ": told apart from an honest no";
        EXPECT_LE(grown, allowed_mib) << what.name;
        fmt::print("{:<36} {:<14} {:6.0f} ms {:6.1f} MiB more\n", what.name, store::name_of(why), watch.ms(), grown);
    }
}

TEST_F(hostile_http, C10_R17_a_body_that_ends_too_early_is_not_used) {
    auto const stored = store::encode_entry(*entry).value();
    auto const packet = encode_packet({}, stored);
    std::string const text{base::as_text(packet)};
    told_http const server{[&](told_http::connection& c) {
        (void)c.request();
        c.say(fmt::format("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", text.size(),
                          text.substr(0, text.size() - 1)));
    }};
    EXPECT_EQ(asked(server.url()), miss::disabled);
}

TEST_F(hostile_http, R17_what_unpacks_to_more_than_is_taken_is_not_unpacked) {
    store::entry bomb = *entry;
    bomb.payload.assign(std::size_t{64} << 20, std::byte{0});
    auto const packet = encode_packet({}, store::encode_entry(bomb).value());
    ASSERT_LT(packet.size(), 64u << 10);
    told_http const server{[&](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) c.answer(200, base::as_text(packet));
    }};
    bomb.payload = {};
    peak_memory const memory;
    EXPECT_EQ(asked(server.url()), miss::too_large);
    EXPECT_LE(memory.grown(), allowed_mib);
}

TEST_F(hostile_http, a_page_under_every_name_is_no_store_to_a_diagnosis) {
    told_http const portal{always("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")};
    remote_tier t{parse_remotes(portal.url() + " trust=server", {}).usable.at(0),
                  std::make_shared<store::event_outlet>(nullptr)};
    EXPECT_EQ(t.examine().why.what, trouble::protocol);
}

TEST_F(hostile_http, R17_a_redirect_is_not_followed) {
    told_http const elsewhere{always("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")};
    for (int const status : {301, 302, 303, 307, 308}) {
        told_http const server{[&](told_http::connection& c) {
            for (auto r = c.request(); !r.empty(); r = c.request())
                c.answer(status, "", "Location: " + elsewhere.url() + "/x\r\n");
        }};
        EXPECT_EQ(asked(server.url()), miss::disabled) << status;
    }
    EXPECT_EQ(elsewhere.connections(), 0);
}

TEST_F(hostile_http, R17_nothing_is_remembered_for_the_server_but_its_answer) {
    std::vector<std::string> seen;
    told_http const server{[&](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) {
            seen.push_back(r);
            c.answer(404, "", "Set-Cookie: id=1\r\nAlt-Svc: h2=\":1\"\r\n");
        }
    }};
    auto const list = parse_remotes(server.url() + " trust=server", {});
    remote_tier tier{list.usable.at(0), std::make_shared<store::event_outlet>(nullptr)};
    for (unsigned n = 0; n < 3; ++n) (void)tier.find(test::entry_of(2 * n)->about.at, {});
    ASSERT_GE(seen.size(), 3u);
    for (auto const& r : seen) EXPECT_EQ(r.find("Cookie"), r.npos) << r;
}

TEST_F(hostile_http, R17_bytes_one_by_one_keep_nobody_waiting) {
    std::atomic<bool> end{false};
    told_http const server{[&](told_http::connection& c) {
        (void)c.request();
        c.say("HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n");
        while (!end && c.say("x")) ::usleep(20'000);
    }};
    auto const list = parse_remotes(server.url() + " trust=server patience=40ms timeout=30s", {});
    base::stopwatch watch;
    {
        remote_tier tier{list.usable.at(0), std::make_shared<store::event_outlet>(nullptr)};
        auto const late = std::make_shared<std::promise<double>>();
        auto const told = std::make_shared<std::atomic<bool>>(false);
        tier.ask({.family = entry->about.at.family, .request = entry->about.at.request, .key = entry->about.at.key},
                 [=](store::answer const&) {
                     if (!told->exchange(true)) late->set_value(watch.ms());
                 });
        EXPECT_LE(late->get_future().get(), 40 + 1'000) << "his patience, and a slow machine";
        watch = {};
    }
    EXPECT_LE(watch.ms(), 2'000) << "and what is under way does not hold up the end";
    end = true;
}

}  // namespace

}  // namespace kiln::remote
