// SPDX-License-Identifier: Apache-2.0
#include "support/store_faults.hpp"

#include "store/eviction.hpp"

#include <thread>
#include <unistd.h>

namespace kiln::test {

using namespace store;

using disk_tier_test = store_faults;

TEST_F(disk_tier_test, touches_nothing_before_the_first_use_and_makes_nothing_before_the_first_put) {
    faulty_calls const faults;
    auto const tier = disk();
    EXPECT_EQ(faults.calls(), 0);
    EXPECT_FALSE(tier->find(address_of(1), {}).value().hit);
    EXPECT_TRUE(tier->list(address_of(1).family, {}).value().empty());
    EXPECT_EQ(tier->report().state, directory_state::missing);
    EXPECT_FALSE(std::filesystem::exists(root()));
    ASSERT_TRUE(tier->put(entry_of(1)));
    EXPECT_EQ(std::filesystem::status(root()).permissions(), std::filesystem::perms::owner_all);
    EXPECT_EQ(std::filesystem::status(root() / "v1").permissions(), std::filesystem::perms::owner_all);
    EXPECT_EQ(tier->report().state, directory_state::writable);
    EXPECT_EQ(std::filesystem::status(path_of(*entry_of(1))).permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(disk_tier_test, an_entry_lies_where_the_format_document_says) {
    ASSERT_TRUE(disk()->put(entry_of(1)));
    auto const at = address_of(1);
    auto const expected =
        root() / "v1" / at.family.hex().substr(0, 2) /
        (at.family.hex().substr(0, 16) + "-" + at.request.hex().substr(0, 16) + "-" + at.key.hex() + ".kiln");
    EXPECT_TRUE(std::filesystem::is_regular_file(expected));
}

TEST_F(disk_tier_test, a_directory_that_others_may_write_is_not_used) {
    for (auto const extra : {std::filesystem::perms::group_write, std::filesystem::perms::others_write}) {
        std::filesystem::remove_all(root());
        ASSERT_TRUE(disk()->put(entry_of(1)));
        std::filesystem::permissions(root(), extra, std::filesystem::perm_options::add);
        auto const before = warnings();
        auto const tier = disk();
        for (int i = 0; i < 5; ++i) {
            EXPECT_FALSE(tier->find(entry_of(1)->about.at, {}).value().hit);
            EXPECT_TRUE(tier->put(entry_of(2)));
        }
        EXPECT_EQ(tier->report().state, directory_state::off);
        EXPECT_NE(tier->report().reason.find("chmod"), std::string::npos) << "names the remedy";
        EXPECT_EQ(warnings(), before + 1);
        EXPECT_FALSE(maintenance{root()}.clear()) << "nor is it cleaned";
    }
}

TEST_F(disk_tier_test, a_directory_of_another_user_is_not_used) {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
    ASSERT_TRUE(disk()->put(entry_of(1)));
    ASSERT_EQ(::chown(root().c_str(), 12345, 12345), 0);
    EXPECT_FALSE(disk()->find(entry_of(1)->about.at, {}).value().hit);
    EXPECT_EQ(disk()->report().state, directory_state::off);
    // As a read-only layer that someone chose to share, it is.
    auto const shared = disk({.root = root(), .mode = access::read_only});
    EXPECT_TRUE(shared->find(entry_of(1)->about.at, {}).value().hit);
    // Below a folder that everybody may write to nobody chose it.
    auto const another = disk({.root = root(), .mode = access::read_only, .owner = root_owner::us});
    EXPECT_FALSE(another->find(entry_of(1)->about.at, {}).value().hit);

    ASSERT_EQ(::chown(root().c_str(), 0, 0), 0);
    auto const link = scratch_.path() / "link";
    std::filesystem::create_directory_symlink(root(), link);
    EXPECT_TRUE(disk({.root = link})->find(entry_of(1)->about.at, {}).value().hit) << "a link of our own";
    ASSERT_EQ(::lchown(link.c_str(), 12345, 12345), 0);
    EXPECT_FALSE(disk({.root = link})->find(entry_of(1)->about.at, {}).value().hit) << "a link of another's";
}

TEST_F(disk_tier_test, a_root_that_is_a_file_is_not_used) {
    std::ofstream{root()} << "x";
    auto const tier = disk();
    EXPECT_FALSE(tier->find(address_of(1), {}).value().hit);
    EXPECT_TRUE(tier->put(entry_of(1)));
    EXPECT_EQ(tier->report().state, directory_state::off);
    EXPECT_EQ(warnings(), 1u);
}

TEST_F(disk_tier_test, read_only_mode_changes_nothing) {
    ASSERT_TRUE(disk()->put(entry_of(1)));
    auto const tier = disk({.root = root(), .mode = access::read_only});
    faulty_calls faults;
    bool changed = false;
    faults.hook = [&](call which, char const*, int) {
        changed = changed || which == call::unlink || which == call::utimensat || which == call::mkdir ||
                  which == call::write || which == call::pwrite || which == call::rename || which == call::linkat ||
                  which == call::rename_new;
    };
    EXPECT_TRUE(tier->find(entry_of(1)->about.at, {}).value().hit);
    EXPECT_EQ(tier->put(entry_of(2)).error().code(), errc::forbidden);
    EXPECT_EQ(tier->try_lead(digest_of("r"), base::clock::now()).outcome(), flight_outcome::unsupported);
    EXPECT_NE(tier->add_to_directory({.requests = 1}), adding::done);
    EXPECT_FALSE(changed);
    EXPECT_FALSE(tier->traits().writable);
}

TEST_F(disk_tier_test, a_leader_that_has_let_go_leaves_no_thread) {
    auto const threads = [] {
        return std::distance(std::filesystem::directory_iterator{"/proc/self/task"},
                             std::filesystem::directory_iterator{});
    };
    auto const tier = disk(options());
    // From a process's first thread on a sanitizer has one of its own.
    tier->try_lead(digest_of("before"), base::clock::now()).release();
    tier->rest();
    auto const before = threads();
    for (int i = 0; i < 50; ++i) {
        auto first = tier->try_lead(digest_of("first"), base::clock::now());
        auto second = tier->try_lead(digest_of("second"), base::clock::now());
        ASSERT_TRUE(first.leads() && second.leads());
        first.release();
        tier->rest();
        EXPECT_EQ(threads(), before + 1);  // for the other
        second.release();
        tier->rest();
        EXPECT_EQ(threads(), before);
    }
}

TEST_F(disk_tier_test, stays_within_its_bound) {
    auto o = options();
    o.max_bytes = 100'000;
    auto const tier = disk(o);
    for (unsigned i = 0; i < 300; ++i) {
        ASSERT_TRUE(tier->put(entry_of(i)));
        ASSERT_TRUE(i % 10 != 0 || counted().bytes <= o.max_bytes);
    }
    EXPECT_GT(counted().bytes, o.max_bytes * 8 / 10);
    auto const counts = tier->take_counts();
    EXPECT_EQ(counts.published, 300u);
    EXPECT_EQ(counts.published - counts.evicted, counted().entries);
    EXPECT_GT(log_.count(event_kind::evicted), 0u);
    EXPECT_LT(log_.count(event_kind::evicted), counts.evicted) << "one event for many";
}

TEST_F(disk_tier_test, the_account_is_rebuilt_when_missing_or_damaged) {
    auto const tier = disk();
    for (unsigned i = 0; i < 5; ++i) ASSERT_TRUE(tier->put(entry_of(i)));
    disk_layout const layout{root()};
    usage_account account{layout};
    EXPECT_EQ(account.read()->bytes, counted().bytes);
    EXPECT_EQ(account.read()->entries, 5u);
    for (auto const* damage : {"", "short", "0123456789abcdef0123456789abcdef"}) {
        std::ofstream{layout.usage(), std::ios::trunc} << damage;
        EXPECT_FALSE(account.read());
        std::filesystem::remove(path_of(*entry_of(9)));
        ASSERT_TRUE(tier->put(entry_of(9)));
        ASSERT_TRUE(account.read());
        EXPECT_EQ(account.read()->bytes, counted().bytes);
    }
    std::filesystem::remove(layout.usage());
    ASSERT_TRUE(tier->put(entry_of(10)));
    EXPECT_EQ(account.read()->bytes, counted().bytes);
}

TEST_F(disk_tier_test, stale_temporaries_are_swept_and_fresh_ones_are_not) {
    auto const tier = disk();
    ASSERT_TRUE(tier->put(entry_of(1)));
    disk_layout const layout{root()};
    auto const old_file = layout.temporaries() / "old", new_file = layout.temporaries() / "new",
               old_stats = layout.v1() / "stats.tmp-1";
    for (auto const& path : {old_file, new_file, old_stats}) std::ofstream{path} << "x";
    auto const hours_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours{3};
    for (auto const& path : {old_file, old_stats, layout.evict_lock()})
        std::filesystem::last_write_time(path, hours_ago);
    ASSERT_TRUE(disk()->put(entry_of(2))) << "the first put of a process looks whether a sweep is due";
    EXPECT_FALSE(std::filesystem::exists(old_file));
    EXPECT_FALSE(std::filesystem::exists(old_stats));
    EXPECT_TRUE(std::filesystem::exists(new_file));
    EXPECT_TRUE(std::filesystem::exists(layout.usage()));
}

TEST_F(disk_tier_test, lists_most_recently_used_first_and_skips_the_invalid) {
    auto const tier = disk();
    for (unsigned i = 0; i < 4; ++i) ASSERT_TRUE(tier->put(entry_of(i)));
    auto const now = std::filesystem::file_time_type::clock::now();
    for (unsigned i = 0; i < 4; ++i)
        std::filesystem::last_write_time(path_of(*entry_of(i)), now - std::chrono::minutes{i});
    auto const all = tier->list(address_of(0).family, {}).value();
    ASSERT_EQ(all.size(), 4u);
    for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(all[i].about.name, "unit_" + std::to_string(i));
    auto bad = bytes_of(path_of(*entry_of(2)));
    bad[40] ^= std::byte{1};
    overwrite(path_of(*entry_of(2)), bad);
    EXPECT_EQ(tier->list(address_of(0).family, {}).value().size(), 3u);
}

TEST_F(disk_tier_test, long_labels_are_listed) {
    auto e = std::make_shared<entry>(*entry_of(1));
    e->about.toolchain = std::string(4000, 't');
    e->about.licence = std::string(4000, 'l');
    auto const tier = disk();
    ASSERT_TRUE(tier->put(e));
    auto const all = tier->list(e->about.at.family, {}).value();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].about.licence, e->about.licence);
    e->about.licence = std::string(5000, 'l');
    EXPECT_EQ(tier->put(e).error().code(), errc::invalid_argument);
}

TEST_F(disk_tier_test, maintenance_lists_prunes_and_verifies) {
    auto const tier = disk();
    for (unsigned i = 0; i < 10; ++i) ASSERT_TRUE(tier->put(entry_of(i)));
    auto const now = std::filesystem::file_time_type::clock::now();
    for (unsigned i = 0; i < 10; ++i)
        std::filesystem::last_write_time(path_of(*entry_of(i)), now - std::chrono::hours{i});
    maintenance care{root()};
    auto const all = care.list().value();
    ASSERT_EQ(all.size(), 10u);
    EXPECT_EQ(all.front().what.about.name, "unit_0");
    EXPECT_GE(all.back().unused_for, std::chrono::hours{8});

    prune_options old{.older_than = std::chrono::minutes{270}, .to_bytes = {}, .mode = prune_options::run::dry};
    EXPECT_EQ(care.prune(old).value().removed, 5u);
    EXPECT_EQ(counted().entries, 10u) << "dry";
    old.mode = prune_options::run::real;
    EXPECT_EQ(care.prune(old).value().removed, 5u);
    EXPECT_EQ(counted().entries, 5u);
    auto const half = counted().bytes / 2;
    EXPECT_LE(care.prune({.older_than = {}, .to_bytes = half}).value().left.bytes, half);
    EXPECT_EQ(usage_account{disk_layout{root()}}.read()->bytes, counted().bytes);

    EXPECT_TRUE(care.verify(maintenance::bad_entries::report).value().bad.empty());
    auto const path = path_of(*entry_of(0));
    auto bad = bytes_of(path);
    bad.back() ^= std::byte{1};
    overwrite(path, bad);
    auto const report = care.verify(maintenance::bad_entries::report).value();
    ASSERT_EQ(report.bad.size(), 1u);
    EXPECT_EQ(report.bad[0].why, miss::bad_digest);
    EXPECT_TRUE(std::filesystem::exists(path));
    EXPECT_EQ(care.verify(maintenance::bad_entries::remove).value().bad.size(), 1u);
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(disk_tier_test, maintenance_of_a_directory_that_is_not_there_finds_nothing) {
    maintenance care{root()};
    EXPECT_EQ(care.count().value().entries, 0u);
    EXPECT_TRUE(care.list().value().empty());
    EXPECT_EQ(care.clear().value().removed, 0u);
    EXPECT_EQ(care.counters().value(), statistics{});
    EXPECT_FALSE(std::filesystem::exists(root()));
}

TEST_F(disk_tier_test, threads_may_put_find_and_evict_at_once) {
    auto o = options();
    o.max_bytes = 60'000;
    auto const tier = disk(o);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (unsigned i = 0; i < 60; ++i) {
                auto const e = entry_of((i * 5 + t) % 50);
                EXPECT_TRUE(tier->put(e));
                auto const found = tier->find(e->about.at, expected_of(*e)).value();
                EXPECT_TRUE(found.hit ? found.hit->payload == e->payload : found.why == miss::absent);
            }
        });
    }
    for (auto& t : threads) t.join();
    EXPECT_LE(counted().bytes, o.max_bytes * 9 / 8 + 8000);
}

}  // namespace kiln::test
