// SPDX-License-Identifier: Apache-2.0
// The one connection to Redis, and servers that hang up, repeat what they hear, or say too much.
#include "remote/redis_link.hpp"

#include "remote/remote_tier.hpp"
#include "support/store_entries.hpp"
#include "support/told_redis.hpp"

#include <gtest/gtest.h>

#include <future>

namespace kiln::remote {

namespace {

using test::entry_of;
using test::told_redis;
using words = told_redis::words;

struct redis_link_of_a_tier : ::testing::Test {
    [[nodiscard]] std::string token() const { return " token-file=" + (scratch.path() / "token").native(); }
    void SetUp() override { base::replace_file(scratch.path() / "token", base::as_bytes("ann:hunter2")).value(); }
    std::shared_ptr<remote_tier> linked_tier(std::string const& remote) {
        return std::make_shared<remote_tier>(parse_remotes(remote, {}).usable.at(0),
                                             std::make_shared<store::event_outlet>(&log));
    }
    static miss why(remote_tier& t, unsigned number) { return t.find(entry_of(number)->about.at, {}).value().why; }
    base::temporary_directory scratch = base::temporary_directory::make("kiln-link").value();
    event_log log;
};

TEST_F(redis_link_of_a_tier, who_greets_and_hangs_up_is_not_greeted_for_ever) {
    told_redis const server{[](words const& w) { return w[0] == "AUTH" ? "+OK\r\n" : test::hang_up; }};
    auto const t = linked_tier(server.url() + " trust=server timeout=2s" + token());
    EXPECT_EQ(why(*t, 1), miss::disabled);
    EXPECT_LE(server.connections(), 2);
    EXPECT_EQ(t->take_counts().errors.at("fleet-cut"), 1u);
}

// As a server does to whom AUTH is no command.
TEST_F(redis_link_of_a_tier, a_password_that_a_server_repeats_is_shown_to_nobody) {
    told_redis const server{[](words const& w) -> std::string {
        if (w[0] != "AUTH") return test::to_all(w, test::nothing);
        return fmt::format("-ERR unknown command 'AUTH', with args beginning with: '{}' '{}'\r\n", w[1], w[2]);
    }};
    auto const t = linked_tier(server.url() + " trust=server" + token());
    auto const got = t->ask_sync({.family = entry_of(1)->about.at.family, .request = entry_of(1)->about.at.request});
    EXPECT_EQ(got.why, miss::disabled);
    EXPECT_EQ(got.detail.find("hunter2"), got.detail.npos) << got.detail;
    EXPECT_NE(got.detail.find("AUTH"), got.detail.npos) << got.detail;
    EXPECT_EQ(t->take_counts().errors.at("fleet-denied"), 1u);
    EXPECT_EQ(t->examine().why.detail.find("hunter2"), std::string::npos);
    bool told = false;
    for (auto const& e : log.recent()) {
        told |= e.kind == event_kind::fault;
        EXPECT_EQ(to_json(e).find("hunter2"), std::string::npos) << to_json(e);
    }
    EXPECT_TRUE(told);
}

// It is the answer to one question. Others that were under way on the same connection are asked again.
TEST_F(redis_link_of_a_tier, an_answer_that_is_too_large_is_held_against_nobody_else) {
    auto const large = object_name("default", entry_of(100)->about.at.request, 0).hex();
    auto const small = entry_of(2);
    auto const packet = encode_packet({}, store::encode_entry(*small).value());
    std::atomic<bool> go{false};
    told_redis const server{[&](words const& w) -> std::string {
        while (!go) std::this_thread::yield();
        if (w[1].ends_with(large)) return "$99999999\r\n";
        return test::to_all(w, test::bulk(base::as_text(packet)));
    }};
    auto const t = linked_tier(server.url() + " trust=server max-entry=64K patience=10s");
    auto const ask = [&](unsigned number) {
        auto const there = std::make_shared<std::promise<store::answer>>();
        auto const at = entry_of(number)->about.at;
        t->ask({.family = at.family, .request = at.request, .key = at.key}, [there](store::answer a) {
            if (a.is_last) there->set_value(std::move(a));
        });
        return there->get_future();
    };
    auto too_large = ask(100);
    // Two commands, one behind the other.
    while (server.asked("GET") == 0) std::this_thread::yield();
    auto sound = ask(2);
    go = true;
    EXPECT_EQ(too_large.get().why, miss::too_large);
    EXPECT_TRUE(sound.get().hit) << "it was never too large";
    EXPECT_EQ(t->take_counts().errors.size(), 0u);
}

}  // namespace

}  // namespace kiln::remote
