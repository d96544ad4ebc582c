// SPDX-License-Identifier: Apache-2.0
// What every keeper of leases must do, written once: Redis, and claims on S3.
#include "remote/http_answers.hpp"
#include "remote/remote_tier.hpp"
#include "remote/s3_claims.hpp"
#include "support/servers.hpp"

#include <gtest/gtest.h>

#include <future>

namespace kiln::test {

namespace {

using remote::lease_look;
using remote::lease_state;

// A keeper on a thread of its own, asked from another.
class asked_leases {
public:
    explicit asked_leases(std::string const& remote)
        : made_of_{remote::make_servers(loop_, remote::parse_remotes(remote, {}).usable.at(0))} {}
    ~asked_leases() {
        loop_.stop([this] { made_of_.bytes->close(); });
    }

    lease_state take(std::string const& name, std::string const& token) {
        return ask<lease_look>([&](auto then) { keeper().take(base::sha256_of(name), token, then); }).state;
    }
    lease_state look(std::string const& name) {
        auto const all = ask<std::vector<lease_look>>([&](auto then) {
            keeper().look({base::sha256_of("another"), base::sha256_of(name)}, then);
        });
        EXPECT_EQ(all.at(0).state, lease_state::absent);
        EXPECT_FALSE(all.at(1).why) << all[1].why.detail;
        return all.at(1).state;
    }
    void end(std::string const& name, std::string const& token) {
        auto const why = ask<remote::failure>([&](auto then) { keeper().end(base::sha256_of(name), token, then); });
        EXPECT_FALSE(why) << why.detail;
    }
    // These two say nothing: what was asked before is answered when the next answer comes.
    void mark_open(std::string const& name, std::string const& token) {
        (void)loop_.post([this, name, token] { keeper().mark_open(base::sha256_of(name), token, "full"); });
    }
    void renew(std::string const& name, std::string const& token) {
        (void)loop_.post([this, name, token] { keeper().renew(base::sha256_of(name), token); });
    }
    // Until it is so; what nobody answers can be seen in no other way.
    bool becomes(std::string const& name, lease_state state) {
        auto const end = base::clock::now() + std::chrono::seconds{10};
        while (base::clock::now() < end) {
            if (look(name) == state) return true;
        }
        return false;
    }

private:
    remote::lease_server& keeper() { return *made_of_.leases; }
    template <class T, class Ask>
    T ask(Ask what) {
        std::promise<T> there;
        (void)loop_.post([&] { what([&](T v) { there.set_value(std::move(v)); }); });
        return there.get_future().get();
    }
    remote::reactor loop_;
    remote::servers made_of_;
};

struct redis_leases {
    redis_process server;
    static std::string missing() { return redis_process::missing(); }
    [[nodiscard]] std::string remote() const { return server.url() + " trust=server"; }
};
struct s3_leases {
    moto_process server;
    static std::string missing() { return remote::load_curl() ? moto_process::missing() : "libcurl"; }
    [[nodiscard]] std::string remote() const { return server.url() + " trust=server " + server.attributes(); }
};

template <class Fixture>
class lease_contract : public ::testing::Test {
protected:
    void SetUp() override {
        if (auto const what = Fixture::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
        fixture_ = std::make_unique<Fixture>();
        here_ = std::make_unique<asked_leases>(fixture_->remote());
        there_ = std::make_unique<asked_leases>(fixture_->remote());
    }
    std::unique_ptr<Fixture> fixture_;
    std::unique_ptr<asked_leases> here_, there_;  // two machines
};
using every_keeper = ::testing::Types<redis_leases, s3_leases>;
TYPED_TEST_SUITE(lease_contract, every_keeper);

TYPED_TEST(lease_contract, one_of_two_gets_it) {
    EXPECT_EQ(this->here_->look("a"), lease_state::absent);
    EXPECT_EQ(this->here_->take("a", "mine"), lease_state::ours);
    EXPECT_EQ(this->there_->take("a", "theirs"), lease_state::held);
    EXPECT_EQ(this->there_->look("a"), lease_state::held);
    EXPECT_EQ(this->there_->take("b", "theirs"), lease_state::ours) << "another name is another lease";
}

TYPED_TEST(lease_contract, whoever_has_it_ends_it_and_nobody_else) {
    ASSERT_EQ(this->here_->take("a", "mine"), lease_state::ours);
    this->there_->end("a", "theirs");
    EXPECT_EQ(this->there_->look("a"), lease_state::held);
    this->here_->end("a", "mine");
    EXPECT_EQ(this->there_->look("a"), lease_state::absent);
    EXPECT_EQ(this->there_->take("a", "theirs"), lease_state::ours);
}

TYPED_TEST(lease_contract, R9_who_cannot_publish_leaves_a_mark) {
    ASSERT_EQ(this->here_->take("a", "mine"), lease_state::ours);
    this->there_->mark_open("a", "theirs");
    EXPECT_EQ(this->there_->look("a"), lease_state::held) << "it is not his";
    this->here_->mark_open("a", "mine");
    EXPECT_TRUE(this->there_->becomes("a", lease_state::open));
    EXPECT_EQ(this->there_->take("a", "theirs"), lease_state::open);
}

TYPED_TEST(lease_contract, who_renews_what_is_anothers_changes_nothing) {
    ASSERT_EQ(this->here_->take("a", "mine"), lease_state::ours);
    this->there_->renew("a", "theirs");
    this->there_->end("a", "theirs");
    EXPECT_EQ(this->here_->look("a"), lease_state::held);
    this->here_->end("a", "mine");
    EXPECT_EQ(this->here_->look("a"), lease_state::absent);
}

// A server that is told what to say, and what it was asked.
struct told_server {
    std::vector<remote::http_request> asked;
    std::vector<remote::http_response> answers;
    remote::s3_claims claims{"http://h/claims", [this](remote::http_request what, auto then) {
                                 asked.push_back(std::move(what));
                                 auto next = std::move(answers.front());
                                 answers.erase(answers.begin());
                                 then(std::move(next));
                             }};
    static remote::http_response status(long number) { return {.status = number, .headers = {{"etag", "\"v1\""}}}; }
    // A claim that the server says was written so many seconds ago.
    static remote::http_response claim(std::string const& text, int age) {
        auto out = status(200);
        out.body.assign(base::as_bytes(text).begin(), base::as_bytes(text).end());
        out.headers.emplace_back("last-modified", "Mon, 16 Nov 2026 15:24:00 GMT");
        out.headers.emplace_back("date", fmt::format("Mon, 16 Nov 2026 15:24:{:02} GMT", age));
        return out;
    }
    lease_state take() {
        lease_state out{};
        claims.take(base::sha256_of("a"), "mine", [&](lease_look l) { out = l.why ? lease_state::absent : l.state; });
        return out;
    }
};

TEST(s3_claims, R12_how_old_a_claim_is_the_server_says) {
    told_server s;
    s.answers = {told_server::status(412), told_server::claim("theirs", 9)};
    EXPECT_EQ(s.take(), lease_state::held);
    s.answers = {told_server::status(412), told_server::claim("theirs", 10), told_server::status(200)};
    EXPECT_EQ(s.take(), lease_state::ours) << "whoever had it is gone";
    EXPECT_EQ(s.asked.back().headers.at(0), "If-Match: \"v1\"") << "taken only as it was seen";
    s.answers = {told_server::status(412), told_server::claim("theirs", 10), told_server::status(412)};
    EXPECT_EQ(s.take(), lease_state::held) << "another was faster";
    s.answers = {told_server::status(412), told_server::claim("open full", 29)};
    EXPECT_EQ(s.take(), lease_state::open);
}

TEST(s3_claims, a_server_without_conditions_keeps_nobody_from_compiling) {
    told_server s;
    s.answers = {told_server::status(501)};
    EXPECT_EQ(s.take(), lease_state::open);
}

TEST(http_answers, dates) {
    EXPECT_EQ(remote::http_date("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
    EXPECT_EQ(remote::http_date("Sun, 06 Nov 1994 08:49:37 GMT"), 784'111'777);
    EXPECT_FALSE(remote::http_date("Sunday, 06-Nov-94 08:49:37 GMT"));
    EXPECT_FALSE(remote::http_date("Sun, 31 Feb 1994 08:49:37 GMT"));
    EXPECT_FALSE(remote::http_date("Sun, 06 Nov 1994 0x:49:37 GMT"));
    EXPECT_FALSE(remote::http_date(""));
}

}  // namespace

}  // namespace kiln::test
