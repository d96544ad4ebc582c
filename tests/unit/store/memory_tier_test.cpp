// SPDX-License-Identifier: Apache-2.0
#include "store/memory_tier.hpp"
#include "support/store_entries.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace kiln::test {

using namespace store;

TEST(memory_tier, stays_within_its_bound_and_drops_the_least_recently_used) {
    memory_tier tier{{.max_bytes = 21'000}};
    for (unsigned i = 0; i < 6; ++i) ASSERT_TRUE(tier.put(entry_of(i, 3000)));
    EXPECT_EQ(tier.entries(), 6u);
    EXPECT_TRUE(tier.find(address_of(1), {}).value().hit);  // only looked at
    tier.used(address_of(0));                               // used: the next to go is 1
    ASSERT_TRUE(tier.put(entry_of(6, 3000)));
    EXPECT_TRUE(tier.find(address_of(0), {}).value().hit);
    EXPECT_FALSE(tier.find(address_of(1), {}).value().hit);
    for (unsigned i = 0; i < 100; ++i) {
        ASSERT_TRUE(tier.put(entry_of(i, 3000)));
        ASSERT_LE(tier.bytes(), 21'000u);
    }
}

TEST(memory_tier, does_not_keep_what_is_larger_than_itself) {
    memory_tier tier{{.max_bytes = 10'000}};
    ASSERT_TRUE(tier.put(entry_of(1, 3000)));
    ASSERT_TRUE(tier.put(entry_of(2, 20'000)));
    EXPECT_FALSE(tier.find(address_of(2), {}).value().hit);
    EXPECT_TRUE(tier.find(address_of(1), {}).value().hit) << "and nothing was dropped for it";
}

TEST(memory_tier, a_hit_outlives_its_eviction) {
    memory_tier tier;
    ASSERT_TRUE(tier.put(entry_of(1)));
    auto const hit = tier.find(address_of(1), {}).value().hit;
    tier.clear();
    EXPECT_EQ(tier.entries(), 0u);
    EXPECT_EQ(tier.bytes(), 0u);
    EXPECT_EQ(hit->payload, entry_of(1)->payload);
}

TEST(memory_tier, lists_the_newest_first) {
    memory_tier tier;
    for (unsigned i : {4u, 5u, 6u, 7u}) ASSERT_TRUE(tier.put(entry_of(i)));
    auto const all = tier.list(address_of(4).family, {}).value();
    ASSERT_EQ(all.size(), 4u);
    EXPECT_EQ(all.front().about.name, "unit_7");
    EXPECT_EQ(all.back().about.name, "unit_4");
}

TEST(memory_tier, threads_may_do_anything_at_once) {
    memory_tier tier{{.max_bytes = 50'000}};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (unsigned i = 0; i < 500; ++i) {
                auto const n = (i * 7 + t) % 40;
                (void)tier.put(entry_of(n, 1000));
                auto const found = tier.find(address_of(n), {}).value();
                EXPECT_TRUE(!found.hit || found.hit->about.at == address_of(n));
                if (i % 50 == 0) (void)tier.list(address_of(n).family, {});
                if (i % 97 == 0) tier.clear();
            }
        });
    }
    for (auto& t : threads) t.join();
    EXPECT_LE(tier.bytes(), 50'000u);
}

}  // namespace kiln::test
