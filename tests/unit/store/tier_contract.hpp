// SPDX-License-Identifier: Apache-2.0
//
// What every tier must do, written once. A fixture gives: `fill(entries)` returns a tier that has them. A tier that
// cannot be written to is filled by other means.
#pragma once

#include "store/store.hpp"
#include "support/store_entries.hpp"

#include <gtest/gtest.h>

namespace kiln::test {

template <class Fixture>
class tier_contract : public ::testing::Test {
protected:
    void SetUp() override {
        if constexpr (requires { fixture_.missing(); }) {
            if (auto const what = fixture_.missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
        }
    }
    std::shared_ptr<store::tier> fill(std::vector<store::entry_ptr> const& some) { return fixture_.fill(some); }
    // By the whole family where the tier can tell, else by the request.
    static std::vector<store::summary> listed(store::tier& t, store::address const& at) {
        auto const request = t.traits().lists_families ? std::nullopt : std::optional{at.request};
        return t.list(at.family, request).value();
    }
    Fixture fixture_;
};
TYPED_TEST_SUITE_P(tier_contract);

TYPED_TEST_P(tier_contract, what_was_kept_is_found_whole) {
    auto const e = entry_of(1, 50'000);
    auto const tier = this->fill({e});
    auto const found = tier->find(e->about.at, expected_of(*e)).value();
    ASSERT_TRUE(found.hit);
    EXPECT_EQ(found.hit->payload, e->payload);
    EXPECT_EQ(found.hit->about.at, e->about.at);
    EXPECT_EQ(found.hit->about.name, e->about.name);
    EXPECT_EQ(found.hit->about.toolchain, e->about.toolchain);
    EXPECT_EQ(found.hit->about.producer, e->about.producer);
    EXPECT_EQ(found.hit->about.licence, e->about.licence);
}

TYPED_TEST_P(tier_contract, an_empty_payload_is_a_payload) {
    auto const e = entry_of(1, 0);
    auto const tier = this->fill({e});
    auto const found = tier->find(e->about.at, {}).value();
    ASSERT_TRUE(found.hit);
    EXPECT_TRUE(found.hit->payload.empty());
}

TYPED_TEST_P(tier_contract, what_was_not_kept_is_absent) {
    auto const tier = this->fill({entry_of(1)});
    auto const found = tier->find(address_of(2), {}).value();
    EXPECT_FALSE(found.hit);
    EXPECT_EQ(found.why, store::miss::absent);
}

TYPED_TEST_P(tier_contract, an_empty_tier_has_nothing) {
    auto const tier = this->fill({});
    EXPECT_EQ(tier->find(address_of(2), {}).value().why, store::miss::absent);
    EXPECT_TRUE(this->listed(*tier, address_of(2)).empty());
}

TYPED_TEST_P(tier_contract, every_part_of_the_address_counts) {
    auto const e = entry_of(1);
    auto const tier = this->fill({e});
    for (auto const part : {&store::address::family, &store::address::request, &store::address::key}) {
        auto other = e->about.at;
        (other.*part).bytes[31] ^= 1;
        EXPECT_FALSE(tier->find(other, {}).value().hit);
    }
    EXPECT_TRUE(tier->find(e->about.at, {}).value().hit);
}

TYPED_TEST_P(tier_contract, expectations_are_checked) {
    auto const e = entry_of(1);
    using store::miss;
    EXPECT_EQ(this->fill({e})->find(e->about.at, {.target = "sm_100", .kind = {}, .toolchain = {}}).value().why,
              miss::wrong_target);
    EXPECT_EQ(this->fill({e})->find(e->about.at, {.target = {}, .kind = "ptx", .toolchain = {}}).value().why,
              miss::wrong_kind);
    EXPECT_EQ(this->fill({e})->find(e->about.at, {.target = {}, .kind = {}, .toolchain = "nvrtc 1"}).value().why,
              miss::wrong_toolchain);
}

TYPED_TEST_P(tier_contract, lists_a_family_and_a_request) {
    std::vector<store::entry_ptr> all;
    for (unsigned i = 0; i < 40; ++i) all.push_back(entry_of(i, 100));
    auto const tier = this->fill(all);
    auto const family = this->listed(*tier, address_of(8));
    EXPECT_EQ(family.size(), tier->traits().lists_families ? 4u : 2u);
    for (auto const& s : family) {
        EXPECT_EQ(s.about.at.family, address_of(8).family);
        EXPECT_EQ(s.about.target, "sm_90");
        EXPECT_GT(s.bytes, 0u);
    }
    auto const request = tier->list(address_of(8).family, address_of(8).request).value();
    EXPECT_EQ(request.size(), 2u);
    EXPECT_TRUE(tier->list(address_of(8).family, address_of(0).request).value().empty());
}

TYPED_TEST_P(tier_contract, rejected_bytes_are_not_offered_again) {
    auto const e = entry_of(1), other = entry_of(2);
    auto const tier = this->fill({e, other});
    tier->reject(e->about.at);
    EXPECT_FALSE(tier->find(e->about.at, {}).value().hit);
    if (tier->traits().writable) {
        ASSERT_TRUE(tier->put(e));
        EXPECT_FALSE(tier->find(e->about.at, {}).value().hit) << "the same bytes again";
        auto fresh = std::make_shared<store::entry>(*e);
        fresh->payload.push_back(std::byte{1});
        ASSERT_TRUE(tier->put(fresh));
        EXPECT_TRUE(tier->find(e->about.at, {}).value().hit) << "other bytes are another matter";
    }
    EXPECT_TRUE(tier->find(other->about.at, {}).value().hit);
    tier->reject(address_of(77));  // not there: no matter
}

TYPED_TEST_P(tier_contract, putting_twice_is_putting_once) {
    auto const e = entry_of(1);
    auto const tier = this->fill({e});
    if (!tier->traits().writable) {
        EXPECT_EQ(tier->put(e).error().code(), errc::forbidden);
        return;
    }
    ASSERT_TRUE(tier->put(e));
    ASSERT_TRUE(tier->put(e));
    EXPECT_TRUE(tier->find(e->about.at, {}).value().hit);
    EXPECT_EQ(this->listed(*tier, e->about.at).size(), 1u);
}

TYPED_TEST_P(tier_contract, many_are_all_found) {
    std::vector<store::entry_ptr> all;
    unsigned many = 1000;
    if constexpr (requires { this->fixture_.many(); }) many = this->fixture_.many();
    for (unsigned i = 0; i < many; ++i) all.push_back(entry_of(i, 64));
    auto const tier = this->fill(all);
    for (auto const& e : all) {
        auto const found = tier->find(e->about.at, expected_of(*e)).value();
        ASSERT_TRUE(found.hit) << e->about.name;
        ASSERT_EQ(found.hit->payload, e->payload);
    }
}

TYPED_TEST_P(tier_contract, entries_say_by_which_rules_they_serve) {
    auto const e = entry_of(1);
    auto const tier = this->fill({e});
    auto const traits = tier->traits();
    // A tier of the process keeps what an entry said before; any other says what it is itself.
    auto const expected = traits.where == store::location::process ? e->from : store::origin_of(traits);
    EXPECT_EQ(tier->find(e->about.at, {}).value().hit->from, expected);
    EXPECT_EQ(this->listed(*tier, e->about.at).at(0).from, expected);
}

TYPED_TEST_P(tier_contract, traits_make_sense) {
    auto const traits = this->fill({})->traits();
    EXPECT_EQ(traits.persistent, traits.where != store::location::process);
    EXPECT_FALSE(traits.writable && traits.headers_sealed) << "what is made here was made with its headers there";
    EXPECT_TRUE(traits.on_hit != store::fill::machine || traits.where == store::location::fleet);
}

TYPED_TEST_P(tier_contract, a_hit_is_copied_as_far_as_the_traits_say) {
    auto const scratch = base::temporary_directory::make("kiln-fill").value();
    auto const e = entry_of(1);
    auto const last = this->fill({e});
    if (last->traits().where == store::location::process) return;  // nothing is nearer
    event_log log;
    store::store_options o;
    o.disk = store::disk_options{.root = scratch.path() / "near"};
    store::store store{o, log};
    store.add_tier(last);
    EXPECT_EQ(store.find(e->about.at, {}).tier, last->name());
    auto const again = store.find(e->about.at, {});
    EXPECT_EQ(again.where, store::location::process) << "in memory from now on";
    EXPECT_EQ(again.hit->from, store::origin_of(last->traits())) << "by the rules of where it came from";
    auto const report = store.flush(base::clock::now() + std::chrono::seconds{10});
    EXPECT_TRUE(report.settled);
    EXPECT_EQ(report.kept + report.lost, 0u) << "nobody put anything";
    store::disk_tier near{*o.disk, std::make_shared<store::event_outlet>(nullptr)};
    EXPECT_EQ(near.find(e->about.at, {}).value().hit != nullptr, last->traits().on_hit == store::fill::machine);
}

REGISTER_TYPED_TEST_SUITE_P(tier_contract, what_was_kept_is_found_whole, an_empty_payload_is_a_payload,
                            what_was_not_kept_is_absent, an_empty_tier_has_nothing, every_part_of_the_address_counts,
                            expectations_are_checked, lists_a_family_and_a_request,
                            rejected_bytes_are_not_offered_again, putting_twice_is_putting_once, many_are_all_found,
                            entries_say_by_which_rules_they_serve, traits_make_sense,
                            a_hit_is_copied_as_far_as_the_traits_say);

}  // namespace kiln::test
