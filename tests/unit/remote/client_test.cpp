// SPDX-License-Identifier: Apache-2.0
#include "support/client_alone.hpp"
#include "support/store_entries.hpp"

#include <gtest/gtest.h>

#include <future>
#include <latch>

namespace kiln::remote {

namespace {

using test::entry_of;

// Has the same large bytes under every name, at once.
class generous_server final : public test::told_bytes {
public:
    generous_server(reactor& loop, std::size_t size) : told_bytes{loop}, size_{size} {}
    void get(std::vector<digest> const& names, each then) override {
        for (std::size_t i = 0; i < names.size(); ++i)
            later([this, i, then] { then(i, {.state = presence::here, .packet = base::bytes(size_), .why = {}}); });
    }

private:
    std::size_t size_;
};

// Fails at first, and then has nothing, which it says when whoever asked has given up.
class late_server final : public test::told_bytes {
public:
    explicit late_server(reactor& loop) : told_bytes{loop}, loop_{loop} {}
    void get(std::vector<digest> const& names, each then) override {
        bool const is_first = asked++ == 0;
        for (std::size_t i = 0; i < names.size(); ++i) {
            loop_.at(base::clock::now() + std::chrono::milliseconds{is_first ? 0 : 200}, [is_first, i, then] {
                if (is_first) then(i, {.state = presence::failed, .packet = {}, .why = {trouble::server, "no"}});
                else then(i, {});
            });
        }
    }
    std::atomic<int> asked{0};

private:
    reactor& loop_;
};

TEST(client, R1_a_server_that_answers_whoever_tries_it_too_late_is_back) {
    test::client_alone alone{"redis://h trust=server timeout=50ms"};
    late_server bytes{alone.loop};
    auto const ask = [&](unsigned n) {
        auto const told = std::make_shared<std::promise<void>>();
        EXPECT_TRUE(alone.with(bytes, nullptr, [n, told](client& asks) {
            auto const at = entry_of(2 * n)->about.at;
            asks.ask({.family = at.family,
                      .request = at.request,
                      .key = at.key,
                      .how = store::urgency::nothing_else_will_do},
                     [told](store::answer const&) { told->set_value(); });
        }));
        told->get_future().get();
        std::this_thread::sleep_for(std::chrono::milliseconds{10});
    };
    auto const end = base::clock::now() + std::chrono::seconds{10};
    unsigned n = 0;
    // The first opens the breaker; of the others, one tries the server when it is time.
    while (bytes.asked < 2 && base::clock::now() < end) ask(n++);
    ASSERT_EQ(bytes.asked, 2);
    while (bytes.asked < 3 && base::clock::now() < end) ask(n++);
    EXPECT_GE(bytes.asked, 3) << "it is never asked again";
    alone.stop();
}

// Of so many answers of this size, so many are kept until somebody has time for them.
void expect_aside(std::size_t size, int questions, int aside) {
    test::client_alone alone{"redis://h trust=server patience=60s"};
    generous_server bytes{alone.loop, size};
    std::latch go_on{1};
    std::atomic<int> answered{0};
    std::promise<void> those_not_aside, all;
    ASSERT_TRUE(alone.with(bytes, nullptr, [&](client& asks) {
        // Every thread that checks has something else to do.
        for (int i = 0; i < 4; ++i) alone.checks.run([&] { go_on.wait(); }, [] {});
        for (unsigned n = 0; n < static_cast<unsigned>(questions); ++n) {
            auto const at = entry_of(2 * n)->about.at;
            asks.ask({.family = at.family, .request = at.request, .key = at.key}, [&](store::answer const& a) {
                EXPECT_EQ(a.why, miss::bad_magic);
                auto const count = ++answered;
                if (count == questions - aside) those_not_aside.set_value();
                if (count == questions) all.set_value();
            });
        }
    }));
    EXPECT_EQ(those_not_aside.get_future().wait_for(std::chrono::seconds{20}), std::future_status::ready)
        << "they are kept until somebody has time for them, however many";
    go_on.count_down();
    EXPECT_EQ(all.get_future().wait_for(std::chrono::seconds{20}), std::future_status::ready);
    alone.stop();
}

TEST(client, what_waits_for_its_checks_is_bounded) { expect_aside(std::size_t{8} << 20, 16, 8); }

TEST(client, no_more_answers_wait_for_their_checks_than_keep_threads_busy) { expect_aside(1000, 40, 16); }

}  // namespace

}  // namespace kiln::remote
