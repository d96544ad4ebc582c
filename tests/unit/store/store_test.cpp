// SPDX-License-Identifier: Apache-2.0
#include "support/store_faults.hpp"

#include <atomic>
#include <thread>

namespace kiln::test {

using namespace store;

using store_test = store_faults;

namespace {

auto soon() { return base::clock::now() + std::chrono::seconds{10}; }

bundle_writer bundle_of(std::vector<entry_ptr> const& some) {
    bundle_writer out;
    for (auto const& e : some) out.add(*e).value();
    return out;
}

int threads_of_process() {
    int count = 0;
    for ([[maybe_unused]] auto const& t : std::filesystem::directory_iterator{"/proc/self/task"}) ++count;
    return count;
}

}  // namespace

TEST_F(store_test, costs_nothing_before_it_is_used) {
    faulty_calls const faults;
    auto const threads = threads_of_process();
    store_options o;
    o.disk = options();
    o.read_only_roots = {scratch_.path() / "a"};
    o.bundles = {scratch_.path() / "b.kiln"};
    auto const store = make(o);
    EXPECT_EQ(faults.calls(), 0);
    EXPECT_EQ(threads_of_process(), threads);
    EXPECT_FALSE(store->find(address_of(1), {}));
    EXPECT_EQ(threads_of_process(), threads) << "looking needs no thread either";
    EXPECT_FALSE(std::filesystem::exists(root()));
}

TEST_F(store_test, finds_in_order_and_promotes_to_memory) {
    auto const file = scratch_.path() / "x.kiln";
    bundle_of({entry_of(1), entry_of(2)}).write(file).value();
    ASSERT_TRUE(disk()->put(entry_of(1)));
    ASSERT_TRUE(disk({.root = scratch_.path() / "ro"})->put(entry_of(3)));
    store_options o;
    o.disk = options();
    o.read_only_roots = {scratch_.path() / "ro"};
    o.bundles = {file};
    auto const store = make(o);
    EXPECT_EQ(store->find(address_of(1), {}).tier, "disk");
    EXPECT_EQ(store->find(address_of(2), {}).tier, "bundle");
    EXPECT_EQ(store->find(address_of(3), {}).tier, "disk");
    for (unsigned i : {1u, 2u, 3u}) EXPECT_EQ(store->find(address_of(i), {}).tier, "memory");
    EXPECT_TRUE(store->flush(soon()));
    EXPECT_FALSE(std::filesystem::exists(path_of(*entry_of(2)))) << "a hit in a bundle is not copied to the disk";
    auto const counts = store->counts();
    EXPECT_EQ(counts.hits.at("memory"), 3u);
    EXPECT_EQ(counts.hits.at("disk"), 2u);
    EXPECT_EQ(counts.hits.at("bundle"), 1u);
    EXPECT_EQ(log_.count(event_kind::found), 6u);
}

TEST_F(store_test, a_miss_tells_what_each_tier_said) {
    store_options o;
    o.disk = options();
    auto const e = entry_of(1);
    ASSERT_TRUE(disk()->put(e));
    auto bad = bytes_of(path_of(*e));
    bad.back() ^= std::byte{1};
    overwrite(path_of(*e), bad);
    auto const store = make(o);
    auto const found = store->find(e->about.at, {});
    EXPECT_EQ(found.why, miss::bad_digest) << "the most telling";
    ASSERT_EQ(found.misses.size(), 2u);
    EXPECT_EQ(found.misses[0].tier, "memory");
    EXPECT_EQ(found.misses[0].why, miss::absent);
    EXPECT_EQ(found.misses[1].why, miss::bad_digest);
    EXPECT_EQ(last_reason(event_kind::missed), "bad-digest");
    EXPECT_EQ(last_reason(event_kind::rejected), "bad-digest");
}

TEST_F(store_test, puts_are_there_at_once_and_on_disk_after_flush) {
    auto const store = make();
    for (unsigned i = 0; i < 50; ++i) {
        store->put(entry_of(i));
        EXPECT_EQ(store->find(address_of(i), {}).tier, "memory");
    }
    EXPECT_TRUE(store->flush(soon()));
    auto const fresh = make();
    for (unsigned i = 0; i < 50; ++i) EXPECT_EQ(fresh->find(address_of(i), {}).tier, "disk");
    EXPECT_EQ(log_.count(event_kind::published), 50u);
}

TEST_F(store_test, lists_every_address_once) {
    auto const file = scratch_.path() / "x.kiln";
    bundle_of({entry_of(0), entry_of(1), entry_of(2), entry_of(3)}).write(file).value();
    store_options o;
    o.disk = options();
    o.bundles = {file};
    auto const store = make(o);
    ASSERT_TRUE(disk()->put(entry_of(1)));
    store->put(entry_of(0));
    auto const all = store->list(address_of(0).family);
    ASSERT_EQ(all.size(), 4u);
    EXPECT_EQ(all[0].tier, "memory");
    EXPECT_EQ(std::count_if(all.begin(), all.end(), [](auto const& l) { return l.tier == "bundle"; }), 2);
}

TEST_F(store_test, what_is_rejected_leaves_every_tier) {
    auto const file = scratch_.path() / "x.kiln";
    bundle_of({entry_of(1)}).write(file).value();
    store_options o;
    o.disk = options();
    o.bundles = {file};
    auto const store = make(o);
    store->put(entry_of(1));
    EXPECT_TRUE(store->flush(soon()));
    store->reject(address_of(1));
    auto const found = store->find(address_of(1), {});
    EXPECT_FALSE(found);
    EXPECT_EQ(found.why, miss::refused);
    EXPECT_FALSE(std::filesystem::exists(path_of(*entry_of(1))));
    store->put(entry_of(1));
    EXPECT_TRUE(store->flush(soon()));
    EXPECT_FALSE(std::filesystem::exists(path_of(*entry_of(1)))) << "the same bytes are not published again";
}

TEST_F(store_test, what_is_rejected_while_queued_is_not_published) {
    auto const store = make();
    std::atomic<bool> inside{false}, go{false};
    faulty_calls faults;
    faults.hook = [&](call which, char const*, int) {
        if (which != call::linkat || inside.exchange(true)) return;
        inside.notify_all();
        go.wait(false);
    };
    store->put(entry_of(1));
    inside.wait(false);
    store->put(entry_of(2));
    store->reject(address_of(2));
    go = true;
    go.notify_all();
    EXPECT_TRUE(store->flush(soon()));
    EXPECT_FALSE(std::filesystem::exists(path_of(*entry_of(2))));
}

TEST_F(store_test, a_full_queue_drops_and_counts) {
    store_options o;
    o.disk = options();
    o.queue_entries = 2;
    auto const store = make(o);
    std::atomic<bool> inside{false}, go{false};
    faulty_calls faults;
    faults.hook = [&](call which, char const*, int) {
        if (which != call::linkat || inside.exchange(true)) return;
        inside.notify_all();
        go.wait(false);
    };
    store->put(entry_of(1));
    inside.wait(false);
    for (unsigned i = 2; i < 8; ++i) store->put(entry_of(i));
    EXPECT_EQ(store->counts().errors.at("queue-full"), 4u);
    go = true;
    go.notify_all();
    EXPECT_TRUE(store->flush(soon()));
    EXPECT_EQ(store->counts().published, 3u);
}

TEST_F(store_test, a_flight_is_held_until_the_entry_is_on_disk) {
    auto const store = make();
    auto const other = disk();
    std::atomic<bool> inside{false}, go{false};
    auto leading = store->try_lead(address_of(1).request, base::clock::now());
    ASSERT_TRUE(leading.leads());
    faulty_calls faults;
    faults.hook = [&](call which, char const*, int) {
        if (which != call::linkat || inside.exchange(true)) return;
        inside.notify_all();
        go.wait(false);
    };
    store->put(entry_of(1), std::move(leading));
    inside.wait(false);
    EXPECT_EQ(other->try_lead(address_of(1).request, base::clock::now()).outcome(), flight_outcome::timed_out);
    go = true;
    go.notify_all();
    auto const outcome = other->try_lead(address_of(1).request, soon()).outcome();
    EXPECT_TRUE(outcome == flight_outcome::finished || outcome == flight_outcome::leader);
    EXPECT_TRUE(other->find(address_of(1), {}).value().hit);
}

TEST_F(store_test, counters_are_added_to_the_directory) {
    {
        auto const store = make();
        store->put(entry_of(1));
        store->count({.requests = 6, .compiled = 1, .failed = 5});
        EXPECT_TRUE(store->find(address_of(1), {}));
    }
    {
        auto const store = make();
        EXPECT_TRUE(store->find(address_of(1), {}));
        EXPECT_TRUE(store->flush(soon()));
        EXPECT_TRUE(store->find(address_of(1), {}));
    }
    auto const sum = maintenance{root()}.counters().value();
    EXPECT_EQ(sum.requests, 9u);
    EXPECT_EQ(sum.compiled, 1u);
    EXPECT_EQ(sum.failed, 5u);
    EXPECT_EQ(sum.requests, sum.hits.at("memory") + sum.hits.at("disk") + sum.compiled + sum.failed);
    EXPECT_EQ(sum.published, 1u);
    EXPECT_EQ(sum.hits.at("memory"), 2u);
    EXPECT_EQ(sum.hits.at("disk"), 1u);
}

TEST_F(store_test, W12_destruction_waits_a_little_and_then_abandons) {
    std::atomic<bool> inside{false}, go{false};
    auto store = make();
    {
        faulty_calls faults;
        faults.hook = [&](call which, char const*, int) {
            if (which != call::linkat || inside.exchange(true)) return;
            inside.notify_all();
            go.wait(false);  // a file system that hangs
        };
        for (unsigned i = 0; i < 10; ++i) store->put(entry_of(i));
        inside.wait(false);
        base::stopwatch const watch;
        store.reset();
        EXPECT_GE(watch.ms(), 190);
        EXPECT_LT(watch.ms(), 2000);
        go = true;
        go.notify_all();
        // The abandoned thread ends after the entry it was at. Its calls go through `faults` until then.
        auto const until = soon();
        while (threads_of_process() > 1 && base::clock::now() < until) std::this_thread::yield();
    }
    EXPECT_LE(counted().entries, 1u);
}

TEST_F(store_test, W12_destruction_publishes_what_it_can) {
    {
        auto const store = make();
        for (unsigned i = 0; i < 10; ++i) store->put(entry_of(i));
    }
    EXPECT_EQ(counted().entries, 10u);
}

TEST_F(store_test, a_tier_may_be_added_later) {
    auto const data = bundle_of({entry_of(1)}).encode().value();
    auto const store = make();
    EXPECT_FALSE(store->find(address_of(1), {}));
    store->add_tier(bundle_tier::from_memory(data).value());
    EXPECT_EQ(store->find(address_of(1), {}).tier, "bundle");
    auto const second = make();
    second->add_tier(bundle_tier::from_memory(data).value());
    EXPECT_EQ(second->find(address_of(1), {}).tier, "bundle");
}

TEST_F(store_test, bundles_are_found_in_folders_and_bad_ones_are_left_out_with_a_reason) {
    auto const folder = scratch_.path() / "bundles";
    std::filesystem::create_directory(folder);
    bundle_of({entry_of(1)}).write(folder / "a.kiln").value();
    bundle_of({entry_of(2)}).write(folder / "b.kiln").value();
    std::ofstream{folder / "c.kiln"} << "not a bundle";
    std::ofstream{folder / "readme"} << "x";
    store_options o;
    o.bundles = {folder, scratch_.path() / "missing.kiln"};
    auto const store = make(o);
    EXPECT_EQ(store->bundles().size(), 2u);
    EXPECT_TRUE(store->find(address_of(1), {}));
    EXPECT_TRUE(store->find(address_of(2), {}));
    EXPECT_EQ(log_.count(event_kind::rejected), 2u);
    EXPECT_EQ(store->counts().rejected.at("bad-bundle"), 1u);
    EXPECT_EQ(store->counts().rejected.at("not-found"), 1u);
}

TEST_F(store_test, a_required_key_is_required) {
    auto const key = private_key::generate().value(), other = private_key::generate().value();
    auto const pem = scratch_.path() / "key.pem";
    std::ofstream{pem} << key.public_half().pem();
    bundle_of({entry_of(1)}).write(scratch_.path() / "good.kiln", &key).value();
    bundle_of({entry_of(2)}).write(scratch_.path() / "other.kiln", &other).value();
    bundle_of({entry_of(3)}).write(scratch_.path() / "unsigned.kiln").value();
    store_options o;
    o.bundles = {scratch_.path() / "good.kiln", scratch_.path() / "other.kiln", scratch_.path() / "unsigned.kiln"};
    o.trusted_key = pem;
    auto const store = make(o);
    EXPECT_TRUE(store->find(address_of(1), {}));
    EXPECT_FALSE(store->find(address_of(2), {}));
    EXPECT_FALSE(store->find(address_of(3), {}));
    EXPECT_EQ(store->counts().rejected.at("bad-signature"), 2u);
    o.trusted_key = scratch_.path() / "no such key";
    EXPECT_TRUE(make(o)->bundles().empty()) << "without the key nothing is trusted";
}

}  // namespace kiln::test
