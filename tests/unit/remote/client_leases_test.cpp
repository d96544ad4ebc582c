// SPDX-License-Identifier: Apache-2.0
// Whoever waits for a lease is watched whatever else is looked at meanwhile, and only who is silent is blamed for a silence. The servers
// here say what a test wants, when it wants, on the reactor's thread: real ones answer in the order in which they were asked.
#include "support/client_alone.hpp"
#include "support/remote_tiers.hpp"
#include "support/store_entries.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace kiln::remote {

namespace {

using test::answered_after;
using test::entry_of;
using test::first_of_answers;

constexpr double slack_of_leases_ms = 600;
constexpr double patience_ms = 1'000;  // with a holder: twice what a question says of its compile

lease_look const somebodys{.state = lease_state::held};
lease_look const nobodys{};

class told_leases final : public lease_server {
public:
    using say_one = std::function<void(lease_look)>;
    explicit told_leases(reactor& loop) : loop_{loop} {}
    void take(digest const& name, std::string const&, say_one then) override {
        ++takes;
        later([this, name, then] { on_take(name, then); });
    }
    void look(std::vector<digest> const& names, looked then) override {
        later([this, names, then] { on_look(names, then); });
    }
    void renew(digest const&, std::string const&) override {}
    void end(digest const&, std::string const&, done) override {}
    void mark_open(digest const&, std::string const&, std::string_view) override {}

    std::atomic<int> takes{0};
    std::function<void(digest const&, say_one const&)> on_take = [](auto const&, auto const& say) { say(somebodys); };
    std::function<void(std::vector<digest> const&, looked const&)> on_look = [](auto const&, auto const&) {};

private:
    void later(reactor::task what) { loop_.at(base::clock::now(), std::move(what)); }
    reactor& loop_;
};

// Has what is kept there, by default nothing, and says so; but for names of which it says nothing.
class told_server final : public test::told_bytes {
public:
    using told_bytes::told_bytes;
    void get(std::vector<digest> const& names, each then) override {
        for (std::size_t i = 0; i < names.size(); ++i) {
            if (silent_about.contains(names[i])) continue;
            later([this, i, name = names[i], then] {
                auto const at = kept.find(name);
                then(i, at == kept.end() ? got{} : got{.state = presence::here, .packet = at->second});
            });
        }
    }
    std::set<digest> silent_about;
    std::map<digest, base::bytes> kept;
};

struct client_leases : ::testing::Test {
    ~client_leases() override { alone.stop(); }
    static store::question wanted_now(unsigned number) {
        auto const at = entry_of(2 * number)->about.at;
        store::question out{.family = at.family, .request = at.request, .key = at.key};
        out.compile = std::chrono::milliseconds{static_cast<int>(patience_ms) / 2};
        out.claims = store::claiming::wanted;
        out.makers = 16;
        return out;
    }
    static digest lease_of(unsigned number) { return lease_name("default", *wanted_now(number).request); }
    static digest bytes_of(unsigned number) { return object_name("default", *wanted_now(number).request, 0); }

    using coming = std::future<answered_after>;
    // All of them in one turn of the thread.
    std::vector<coming> ask(std::vector<unsigned> const& numbers) {
        std::vector<coming> out;
        std::vector<std::function<void(client&)>> all;
        for (auto const n : numbers) {
            first_of_answers first;
            out.push_back(first.coming());
            all.emplace_back([n, told = first.teller()](client& asks) { asks.ask(wanted_now(n), told); });
        }
        EXPECT_TRUE(alone.with(bytes, &leases, [all](client& asks) {
            for (auto const& one : all) one(asks);
        }));
        return out;
    }
    // Well beyond every bound: what has none fails here and does not hang.
    static answered_after wait(coming& what) {
        if (what.wait_for(std::chrono::seconds{20}) == std::future_status::ready) return what.get();
        ADD_FAILURE() << "waits for ever";
        return {};
    }

    test::client_alone alone{"redis://h trust=server timeout=1s"};
    told_server bytes{alone.loop};
    told_leases leases{alone.loop};
};

TEST_F(client_leases, who_did_not_get_it_during_a_look_that_is_not_answered_goes_on) {
    told_leases::say_one second;
    leases.on_take = [&](digest const& name, auto const& say) {
        if (name == lease_of(1)) say(somebodys);
        else second = say;
    };
    leases.on_look = [&](auto const& names, auto const&) {
        EXPECT_EQ(names.size(), 1u);
        second(somebodys);
    };
    auto both = ask({1, 2});
    for (auto& one : both) EXPECT_LE(wait(one).ms, patience_ms + slack_of_leases_ms);
}

TEST_F(client_leases, who_waits_for_a_holder_does_not_wait_for_the_bytes_of_others) {
    leases.on_look = [&](auto const& names, auto const& say) {
        bytes.silent_about.insert(bytes_of(2));
        std::vector<lease_look> out;
        for (auto const& n : names) out.push_back(n == lease_of(1) ? somebodys : nobodys);
        say(std::move(out));
    };
    auto both = ask({1, 2});
    for (auto& one : both) EXPECT_EQ(wait(one).what.late, "fleet-late");
}

TEST_F(client_leases, who_is_free_to_make_it_does_not_wait_for_the_bytes_of_others) {
    leases.on_look = [&](auto const& names, auto const& say) {
        bytes.silent_about.insert(bytes_of(2));
        say(std::vector<lease_look>(names.size(), nobodys));
    };
    auto both = ask({1, 2});
    for (auto& one : both) EXPECT_LE(wait(one).ms, patience_ms + slack_of_leases_ms);
}

TEST_F(client_leases, bytes_that_do_not_come_are_not_the_fault_of_who_keeps_leases) {
    std::vector<unsigned> const many{1, 2, 3, 4, 5, 6, 7, 8};
    leases.on_look = [&](auto const& names, auto const& say) {
        // Half of them are held, and wait while the bytes of the others do not come.
        std::vector<lease_look> out;
        for (auto const n : many) {
            if (n % 2 == 0) bytes.silent_about.insert(bytes_of(n));
        }
        for (auto const& name : names) {
            bool const is_free = std::ranges::any_of(many, [&](auto n) { return n % 2 == 0 && lease_of(n) == name; });
            out.push_back(is_free ? nobodys : somebodys);
        }
        say(std::move(out));
    };
    auto all = ask(many);
    for (auto& one : all) EXPECT_EQ(wait(one).what.late, "fleet-late");
    EXPECT_EQ(alone.log.count(event_kind::fault), 0u) << "'no leases for a while' would be a lie";
    auto const before = leases.takes.load();
    leases.on_take = [](auto const&, auto const& say) { say({.state = lease_state::open}); };
    auto next = ask({9});
    (void)wait(next[0]);
    EXPECT_EQ(leases.takes, before + 1) << "leases are asked for as ever";
}

// A holder dies, another has it at once, and dies too: each within the patience with one.
TEST_F(client_leases, of_one_holder_after_the_other_nobody_bears_more_than_twice_the_patience_with_one) {
    base::time_point until{};
    leases.on_take = [&](auto const&, auto const& say) {
        until = base::clock::now() + std::chrono::milliseconds{900};
        say(somebodys);
    };
    leases.on_look = [&](auto const& names, auto const& say) {
        say(std::vector<lease_look>(names.size(), base::clock::now() < until ? somebodys : nobodys));
    };
    auto one = ask({1});
    EXPECT_EQ(wait(one[0]).what.late, "lease-deadline");
    EXPECT_LE(leases.takes, 4) << "two and a bit, and one for a look that came too late to see the holder";
}

// Whoever was told that it is late makes it himself as soon as he can, and the holder goes on.
TEST_F(client_leases, what_a_slow_holder_makes_is_still_an_answer) {
    std::promise<void> told;
    auto late = told.get_future();
    std::promise<store::answer> there;
    auto last = there.get_future();
    leases.on_look = [&](auto const& names, auto const& say) {
        bool const is_late = late.wait_for(std::chrono::seconds{0}) == std::future_status::ready;
        if (is_late) {
            auto const made = store::encode_entry(*entry_of(2)).value();
            bytes.kept[bytes_of(1)] = encode_packet({}, made);
        }
        say(std::vector<lease_look>(names.size(), is_late ? nobodys : somebodys));
    };
    auto const tell = [&](store::answer const& a) {
        if (a.is_last) return there.set_value(a);
        EXPECT_EQ(a.late, "lease-deadline");
        told.set_value();
    };
    EXPECT_TRUE(alone.with(bytes, &leases, [tell](client& asks) { asks.ask(wanted_now(1), tell); }));
    ASSERT_EQ(last.wait_for(std::chrono::seconds{20}), std::future_status::ready);
    auto const got = last.get();
    ASSERT_TRUE(got.hit) << "ended as " << got.late;
    EXPECT_EQ(got.hit->payload, entry_of(2)->payload);
}

TEST_F(client_leases, a_holder_that_never_ends_is_not_looked_at_for_ever) {
    leases.on_look = [](auto const& names, auto const& say) { say(std::vector<lease_look>(names.size(), somebodys)); };
    std::promise<store::answer> there;
    auto last = there.get_future();
    auto const tell = [&](store::answer const& a) {
        if (a.is_last) there.set_value(a);
    };
    EXPECT_TRUE(alone.with(bytes, &leases, [tell](client& asks) { asks.ask(wanted_now(1), tell); }));
    ASSERT_EQ(last.wait_for(std::chrono::seconds{20}), std::future_status::ready) << "timeout= is a second";
    EXPECT_EQ(last.get().late, "lease-deadline") << "and not a miss, of which one would ask again";
}

TEST_F(client_leases, looks_that_are_not_answered_do_not_hold_up_one_unit_after_the_other) {
    std::vector<double> waits;
    for (unsigned n = 1; n <= 6; ++n) {
        auto one = ask({n});
        auto const got = wait(one[0]);
        EXPECT_FALSE(got.what.mine);
        waits.push_back(got.ms);
    }
    EXPECT_GE(waits[0], patience_ms - 100);
    for (std::size_t n = 3; n < waits.size(); ++n) EXPECT_LE(waits[n], 500) << "three times running was in vain";
}

}  // namespace

}  // namespace kiln::remote
