// SPDX-License-Identifier: Apache-2.0
// The store as a whole of tiers: who is asked when, what counts, what is copied where, what was kept.
#include "store/ask_sync.hpp"
#include "support/fake_fleet.hpp"
#include "support/store_faults.hpp"

#include <future>
#include <new>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kiln::test {

using namespace store;

using tiers_test = store_faults;

namespace {

auto soon() { return base::clock::now() + std::chrono::seconds{10}; }

bundle_writer bundle_of(std::vector<entry_ptr> const& some) {
    bundle_writer out;
    for (auto const& e : some) out.add(*e).value();
    return out;
}

// As an ordinary user, in a child: root may read and write everything.
template <class Body>
int as_nobody(Body body) {
    auto const child = ::fork();
    if (child == 0) {
        if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(99);
        ::_exit(body());
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_F(tiers_test, what_a_bundle_served_keeps_its_rules_in_memory) {
    auto const data = bundle_of({entry_of(1)}).encode().value();
    auto const store = make();
    store->add_tier(bundle_tier::from_memory(data).value());
    auto const first = store->find(address_of(1), {});
    auto const second = store->find(address_of(1), {});
    EXPECT_EQ(first.where, location::shipped);
    EXPECT_EQ(second.where, location::process);
    for (auto const* f : {&first, &second}) {
        EXPECT_TRUE(f->hit->from.headers_sealed);
        EXPECT_TRUE(f->hit->from.any_compiler);
        EXPECT_EQ(f->hit->from.where, location::shipped);
    }
    EXPECT_TRUE(store->list(address_of(1).family).at(0).what.from.headers_sealed);
}

TEST_F(tiers_test, what_a_nearer_tier_has_by_narrower_rules_does_not_hide_the_wider) {
    auto const data = bundle_of({entry_of(1)}).encode().value();
    auto const store = make();
    store->add_tier(bundle_tier::from_memory(data).value());
    store->put(entry_of(1));  // made here: headers are checked
    std::vector<location> from;
    store->candidates(address_of(1).family, address_of(1).request, [&](listed const& l) {
        from.push_back(l.what.from.where);
        return visit::go_on;
    });
    EXPECT_EQ(from.front(), location::process);
    EXPECT_EQ(from.back(), location::shipped);
}

TEST_F(tiers_test, looking_counts_nothing_and_keeps_nothing_young) {
    ASSERT_TRUE(disk()->put(entry_of(1)));
    auto const path = path_of(*entry_of(1));
    auto const days_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours{72};
    std::filesystem::last_write_time(path, days_ago);
    auto const store = make();
    store->candidates(address_of(1).family, address_of(1).request, [&](listed const& l) {
        EXPECT_TRUE(store->peek(l, {}));
        return visit::go_on;
    });
    EXPECT_TRUE(store->peek(address_of(1), {}));
    EXPECT_TRUE(store->counts().hits.empty());
    EXPECT_EQ(store->counts().requests, 0u);
    EXPECT_EQ(log_.count(event_kind::found), 0u);
    EXPECT_EQ(std::filesystem::last_write_time(path), days_ago);
    EXPECT_EQ(store->peek(address_of(1), {}).where, location::machine) << "nor is it copied";

    store->used(store->peek(address_of(1), {}));
    EXPECT_EQ(store->counts().hits.at("disk"), 1u);
    EXPECT_EQ(store->counts().requests, 1u);
    EXPECT_EQ(log_.count(event_kind::found), 1u);
    EXPECT_GT(std::filesystem::last_write_time(path), days_ago + std::chrono::hours{1});
    EXPECT_EQ(store->peek(address_of(1), {}).where, location::process);
}

TEST_F(tiers_test, a_tier_is_asked_only_after_all_candidates_before_it) {
    auto const fleet = std::make_shared<fake_fleet>();
    ASSERT_TRUE(fleet->put(entry_of(1)));
    auto const store = make();
    store->add_tier(fleet);
    store->put(entry_of(0));
    store->candidates(address_of(0).family, {}, [&](listed const&) { return visit::stop; });
    EXPECT_EQ(fleet->lists, 0);
    int seen = 0;
    store->candidates(address_of(0).family, {}, [&](listed const&) { return ++seen, visit::go_on; });
    EXPECT_EQ(fleet->lists, 1);
    EXPECT_EQ(seen, 2);
}

// A disk of a busy machine: each entry takes longer than anybody gives the whole.
TEST_F(tiers_test, what_is_written_one_by_one_is_waited_for_beyond_the_deadline) {
    auto const slow = std::make_shared<fake_fleet>();
    slow->on_put = [] { std::this_thread::sleep_for(std::chrono::milliseconds{20}); };
    auto const store = make();
    store->add_tier(slow);
    EXPECT_FALSE(store->find(address_of(99), {}));  // it is open from now on
    for (unsigned i = 0; i < 10; ++i) store->put(entry_of(i));
    EXPECT_FALSE(store->flush(base::clock::now())) << "there was something to wait for";
    EXPECT_TRUE(
        store->flush(base::clock::now(), {.each = std::chrono::seconds{10}, .most = std::chrono::seconds{60}}).settled);
}

TEST_F(tiers_test, one_that_hangs_is_waited_for_once) {
    auto const hangs = std::make_shared<fake_fleet>();
    std::promise<void> over;
    hangs->on_put = [until = over.get_future().share()] { until.wait(); };
    auto const store = make();
    store->add_tier(hangs);
    EXPECT_FALSE(store->find(address_of(99), {}));
    for (unsigned i = 0; i < 10; ++i) store->put(entry_of(i));
    base::stopwatch const watch;
    using namespace std::chrono_literals;
    EXPECT_FALSE(store->flush(base::clock::now() + 50ms, {.each = 50ms, .most = 60s}));
    EXPECT_LT(watch.ms(), 20'000);
    over.set_value();
}

// After the entries come the counters, and the disk may hang with those as well.
TEST_F(tiers_test, counters_on_a_disk_that_hangs_are_waited_for_once) {
    auto const store = make();
    store->put(entry_of(1));
    ASSERT_TRUE(store->flush(soon()));
    EXPECT_TRUE(store->find(address_of(1), {}));  // something to count
    std::promise<void> over;
    faulty_calls hangs;
    hangs.hook = [until = over.get_future().share()](call which, char const* path, int) {
        bool const is_counters =
            which == call::open && path != nullptr && std::string_view{path}.find("stat") != std::string_view::npos;
        if (is_counters) until.wait_for(std::chrono::seconds{30});
    };
    base::stopwatch const watch;
    using namespace std::chrono_literals;
    EXPECT_TRUE(store->finish(base::clock::now() + 50ms, {.each = 50ms, .most = 60s})) << "every entry is there";
    EXPECT_LT(watch.ms(), 20'000);
    over.set_value();
    EXPECT_TRUE(store->flush(soon())) << "nobody uses the promise any more";
}

TEST_F(tiers_test, what_a_server_did_not_take_before_the_end_is_counted_and_told) {
    auto const fleet = std::make_shared<fake_fleet>(fake_fleet::answers::later);
    std::promise<void> over;
    fleet->on_put = [until = over.get_future().share()] { until.wait(); };
    auto const store = make();
    store->add_tier(fleet);
    for (unsigned i = 0; i < 3; ++i) store->put(entry_of(i));
    EXPECT_FALSE(store->flush(base::clock::now()));
    EXPECT_FALSE(store->counts().fleet.contains("dropped")) << "it may be sent yet";
    auto const report =
        store->finish(base::clock::now(), {.each = std::chrono::seconds{10}, .most = std::chrono::seconds{60}});
    EXPECT_EQ(report.unsent.at(0).count, 3u);
    EXPECT_EQ(store->counts().fleet.at("dropped"), 3u);
    EXPECT_EQ(log_.count(event_kind::fault), 1u);
    EXPECT_EQ(read_statistics(disk_layout{root()}.statistics()).value().fleet.at("dropped"), 3u)
        << "also where others read it";
    over.set_value();
}

TEST_F(tiers_test, who_waits_for_a_tier_that_never_answers_waits_until_his_deadline) {
    auto const fleet = std::make_shared<fake_fleet>(fake_fleet::answers::later);
    auto const store = make();
    store->add_tier(fleet);
    question const what{.family = address_of(1).family, .request = address_of(1).request};
    auto const none = ask_sync(*store, what, base::clock::now() + std::chrono::milliseconds{20});
    EXPECT_FALSE(none.what.hit);
    EXPECT_EQ(none.said, "no answer in time");
    // Late is not the last word, and who asks after his time is over is not kept either.
    auto const asked = fleet->next();
    asked.then({.hit = {}, .late = "fleet-late", .is_last = false});
    asked.then({.hit = entry_of(1)});
    EXPECT_FALSE(ask_sync(*store, what, base::clock::now()).what.hit);
}

TEST_F(tiers_test, every_written_tier_gets_what_is_put_and_a_slow_one_holds_up_no_other) {
    std::atomic<bool> inside{false}, go{false};
    auto const fleet = std::make_shared<fake_fleet>();
    fleet->on_put = [&] {
        inside = true;
        inside.notify_all();
        go.wait(false);
    };
    auto const store = make();
    store->add_tier(fleet);
    EXPECT_FALSE(store->find(address_of(9), {}));  // opens what is added
    auto leading = store->try_lead(address_of(1).request, base::clock::now());
    ASSERT_TRUE(leading.leads());
    store->put(entry_of(1), std::move(leading));
    inside.wait(false);
    // The server hangs; the disk has it, and whoever waits for the flight is let through.
    auto const other = disk();
    auto const outcome = other->try_lead(address_of(1).request, soon()).outcome();
    EXPECT_TRUE(outcome == flight_outcome::finished || outcome == flight_outcome::leader);
    EXPECT_TRUE(other->find(address_of(1), {}).value().hit);
    go = true;
    go.notify_all();
    auto const report = store->flush(soon());
    EXPECT_TRUE(report.settled);
    EXPECT_EQ(report.kept, 2u) << "once on disk, once far away";
    EXPECT_EQ(report.lost, 0u);
    EXPECT_TRUE(fleet->find(address_of(1), {}).value().hit);
}

TEST_F(tiers_test, a_hit_far_away_fills_the_disk_and_counts_once) {
    auto const fleet = std::make_shared<fake_fleet>();
    ASSERT_TRUE(fleet->put(entry_of(1)));
    {
        auto const store = make();
        store->add_tier(fleet);
        EXPECT_EQ(store->find(address_of(1), {}).where, location::fleet);
        EXPECT_EQ(fleet->uses, 1);
        EXPECT_TRUE(store->flush(soon()));
        EXPECT_EQ(store->counts().requests, 1u);
    }
    EXPECT_EQ(make()->find(address_of(1), {}).where, location::machine) << "the next process has it on disk";
}

TEST_F(tiers_test, want_of_memory_in_a_tier_is_a_fault_of_the_tier) {
    auto const fleet = std::make_shared<fake_fleet>();
    fleet->on_find = [] { throw std::bad_alloc{}; };
    auto const store = make();
    store->add_tier(fleet);
    auto const found = store->find(address_of(1), {});
    EXPECT_FALSE(found);
    EXPECT_EQ(store->counts().errors.at("out-of-memory"), 1u);
    EXPECT_EQ(log_.count(event_kind::fault), 1u);
    fleet->on_put = [] { throw std::bad_alloc{}; };
    store->put(entry_of(1));
    auto const report = store->flush(soon());
    EXPECT_EQ(report.kept, 1u);
    EXPECT_EQ(report.reasons.at("out-of-memory"), 1u);
}

TEST_F(tiers_test, a_flush_does_not_wait_for_a_directory_in_which_nothing_was_kept) {
    std::filesystem::create_directories(root());
    std::filesystem::permissions(root(), std::filesystem::perms::owner_all);
    auto fresh = make();
    fresh->count({.requests = 1, .failed = 1});
    base::stopwatch const watch;
    EXPECT_TRUE(fresh->flush(base::clock::now() + std::chrono::seconds{5}).settled);
    EXPECT_LT(watch.ms(), 2000);
}

TEST_F(tiers_test, a_flush_says_what_was_kept_and_why_the_rest_was_not) {
    auto good = make();
    good->put(entry_of(1));
    good->put(entry_of(1));
    auto report = good->flush(soon());
    EXPECT_EQ(report.kept, 2u) << "there already is kept, too";
    EXPECT_EQ(report.lost, 0u);
    EXPECT_EQ(report.why, "");

    std::filesystem::permissions(root(), std::filesystem::perms::group_write, std::filesystem::perm_options::add);
    auto open = make();
    open->put(entry_of(2));
    report = open->flush(soon());
    EXPECT_EQ(report.kept, 0u);
    EXPECT_EQ(report.reasons.at("unwritable"), 1u);
    EXPECT_NE(report.why.find("chmod go-w"), std::string::npos) << report.why;

    store_options without;
    without.no_disk_reason = "no home";
    auto nowhere = make(without);
    nowhere->put(entry_of(2));
    report = nowhere->flush(soon());
    EXPECT_EQ(report.reasons.at("no-cache"), 1u);
    EXPECT_EQ(report.why, "no home");

    store_options o;
    o.disk = {.root = scratch_.path() / "full"};
    auto full = make(o);
    faulty_calls const faults{{{.which = call::write, .error = ENOSPC}}};
    full->put(entry_of(3));
    report = full->flush(soon());
    EXPECT_EQ(report.kept, 0u);
    EXPECT_EQ(report.reasons.at("enospc"), 1u);
}

TEST_F(tiers_test, faults_tell_the_reason_before_the_path) {
    store_options o;
    o.disk = {.root = scratch_.path() / std::string(120, 'd')};
    auto const store = make(o);
    {
        faulty_calls const faults{{{.which = call::write, .error = ENOSPC}}};
        store->put(entry_of(1));
        (void)store->flush(soon());
    }
    bool told = false;
    for (auto const& e : log_.recent())
        told = told || (e.kind == event_kind::fault && e.detail.view().find("No space left") != std::string_view::npos);
    EXPECT_TRUE(told);
}

TEST_F(tiers_test, one_entry_that_cannot_be_read_harms_one_entry_and_heals) {
    ::chmod(scratch_.path().c_str(), 0777);
    auto const status = as_nobody([&] {
        auto const store = make();
        store->put(entry_of(1));
        if (store->flush(soon()).kept != 1) return 1;
        if (::chmod(path_of(*entry_of(1)).c_str(), 0) != 0) return 2;
        auto const fresh = make();
        fresh->put(entry_of(1));
        fresh->put(entry_of(5));
        fresh->put(entry_of(9));
        if (fresh->flush(soon()).kept != 3) return 3;
        auto const third = make();
        for (unsigned i : {1u, 5u, 9u})
            if (third->find(address_of(i), {}).where != location::machine) return 4;
        // Found by a lookup it goes, and by verify it is one of many.
        if (::chmod(path_of(*entry_of(5)).c_str(), 0) != 0) return 5;
        auto const report = maintenance{root()}.verify(maintenance::bad_entries::report);
        if (!report || report->checked != 3 || report->bad.size() != 1) return 6;
        if (report->bad[0].why != miss::unreadable) return 7;
        if (disk()->find(address_of(5), {}).value().why != miss::unreadable) return 8;
        if (std::filesystem::exists(path_of(*entry_of(5)))) return 9;
        return 0;
    });
    EXPECT_EQ(status, 0);
}

TEST_F(tiers_test, a_cache_that_is_shared_serves_others) {
    ::chmod(scratch_.path().c_str(), 0755);
    auto const old = ::umask(022);
    ASSERT_TRUE(disk({.root = root(), .readers = audience::umask})->put(entry_of(1)));
    ASSERT_TRUE(disk({.root = scratch_.path() / "private"})->put(entry_of(1)));
    ::umask(old);
    auto const status = as_nobody([&] {
        if (!disk({.root = root(), .mode = access::read_only})->find(address_of(1), {}).value().hit) return 1;
        if (!try_directory(root(), access::read_only).reason.empty()) return 2;
        auto const closed = try_directory(scratch_.path() / "private", access::read_only);
        if (closed.reason.find("KILN_CACHE_MODE=shared") == std::string::npos) return 3;
        // Closed to us is a miss with a reason, and no fault at each lookup.
        store_options o;
        o.read_only_roots = {scratch_.path() / "private"};
        auto const store = make(o);
        for (int i = 0; i < 5; ++i) (void)store->find(address_of(1), {});
        if (!store->counts().errors.empty()) return 4;
        return 0;
    });
    // Only root can become another.
    if (::geteuid() == 0) {
        EXPECT_EQ(status, 0);
    }
    EXPECT_EQ(std::filesystem::status(path_of(*entry_of(1))).permissions(), std::filesystem::perms{0644});
    EXPECT_EQ(std::filesystem::status(root() / "v1").permissions(), std::filesystem::perms{0755});
}

TEST_F(tiers_test, folders_inside_that_others_may_write_are_not_used) {
    using std::filesystem::perms;
    for (auto const mode : {access::read_write, access::read_only}) {
        std::filesystem::remove_all(root());
        ASSERT_TRUE(disk()->put(entry_of(1)));
        auto other = 5u;  // of another folder
        while (address_of(other).family.bytes[0] == address_of(1).family.bytes[0]) other += 4;
        ASSERT_TRUE(disk()->put(entry_of(other)));
        auto const folder = disk_layout{root()}.shard(address_of(1).family);
        std::filesystem::permissions(folder, perms::all);
        auto const tier = disk({.root = root(), .mode = mode});
        EXPECT_FALSE(tier->find(address_of(1), {}).value().hit);
        EXPECT_TRUE(tier->list(address_of(1).family, {}).value().empty());
        EXPECT_TRUE(tier->find(address_of(other), {}).value().hit) << "the others serve";
        if (mode == access::read_write) {
            auto const kept = tier->put(entry_of(1)).value();
            EXPECT_FALSE(kept.kept);
            EXPECT_NE(kept.detail.find("chmod go-w"), std::string::npos) << kept.detail;
        }
        std::filesystem::permissions(root() / "v1", perms::all);
        EXPECT_EQ(disk({.root = root(), .mode = mode})->report().state, directory_state::off);
    }
}

TEST_F(tiers_test, entries_that_others_may_write_are_not_used) {
    auto const entry = entry_of(1);
    struct attempt {
        access mode;
        unsigned permissions;
        bool serves;
    };
    for (auto const& [mode, permissions, serves] :
         {attempt{access::read_only, 0644, true}, attempt{access::read_only, 0664, true},
          attempt{access::read_only, 0646, false}, attempt{access::read_only, 0666, false},
          attempt{access::read_write, 0644, true}, attempt{access::read_write, 0664, false},
          attempt{access::read_write, 0646, false}}) {
        std::filesystem::remove_all(root());
        ASSERT_TRUE(disk()->put(entry));
        ASSERT_EQ(::chmod(path_of(*entry).c_str(), permissions), 0);
        auto const tier = disk({.root = root(), .mode = mode});
        auto const answer = tier->find(address_of(1), {}).value();
        EXPECT_EQ(answer.hit != nullptr, serves) << std::oct << permissions;
        if (serves) continue;
        EXPECT_EQ(answer.why, miss::open_to_others);
        EXPECT_EQ(std::filesystem::exists(path_of(*entry)), mode == access::read_only) << "our own goes";
        if (mode == access::read_only) continue;
        ASSERT_TRUE(tier->put(entry).value().kept);
        EXPECT_TRUE(disk()->find(address_of(1), {}).value().hit) << "and is made anew";
        ASSERT_EQ(::chmod(path_of(*entry).c_str(), permissions), 0);
        EXPECT_EQ(maintenance{root()}.verify(maintenance::bad_entries::report)->bad.at(0).why, miss::open_to_others);
        ASSERT_TRUE(disk()->put(entry).value().kept) << "also by who did not look first";
        EXPECT_TRUE(disk()->find(address_of(1), {}).value().hit);
    }
}

TEST_F(tiers_test, a_directory_can_be_tried_out) {
    EXPECT_EQ(try_directory(root(), access::read_write).reason, "") << "it can be made";
    EXPECT_FALSE(std::filesystem::exists(root())) << "and is not";
    EXPECT_NE(try_directory("/proc/kiln", access::read_write).reason, "");
    EXPECT_NE(try_directory(root(), access::read_only).reason, "") << "nothing to read";
    std::ofstream{scratch_.path() / "file"} << "x";
    EXPECT_NE(try_directory(scratch_.path() / "file" / "cache", access::read_write).reason, "");
    ASSERT_TRUE(disk()->put(entry_of(1)));
    EXPECT_EQ(try_directory(root(), access::read_write).reason, "");
    EXPECT_EQ(try_directory(root(), access::read_only).reason, "");
    faulty_calls const faults{{{.which = call::write, .error = ENOSPC}}};
    EXPECT_NE(try_directory(root(), access::read_write).reason.find("No space"), std::string::npos);
}

TEST_F(tiers_test, a_leader_at_work_keeps_its_lead_and_one_that_is_not_loses_it) {
    using namespace std::chrono_literals;
    auto o = options();
    o.beat = 5ms;
    auto const leader = disk(o), waiter = disk(o);
    auto const request = digest_of("r");
    auto leading = leader->try_lead(request, base::clock::now());
    ASSERT_TRUE(leading.leads());
    // The waiter's time runs fast: whatever its patience, a leader that counts is waited for.
    leader_watch watch{10s};
    auto time = base::clock::now();
    std::optional<sign_of_life> last;
    auto const until = soon();
    for (int changes = 0; changes < 5;) {
        ASSERT_LT(base::clock::now(), until) << "it does not count";
        auto const asked = waiter->try_lead(request, base::clock::now());
        ASSERT_EQ(asked.outcome(), flight_outcome::timed_out);
        ASSERT_TRUE(asked.of_leader());
        bool const changed = last && *last != *asked.of_leader();
        if (changed) time += 9s, ++changes;
        last = asked.of_leader();
        ASSERT_TRUE(watch.at_work(asked, time)) << changes;
    }
    // One that has stopped counting is given up on after the patience, and not before.
    flight const silent{flight_outcome::timed_out, last};
    EXPECT_TRUE(watch.at_work(silent, time + 9s));
    EXPECT_FALSE(watch.at_work(silent, time + 11s));
    // Another that took over gets no more time.
    leader_watch second{10s};
    EXPECT_TRUE(second.at_work(silent, time));
    EXPECT_TRUE(second.at_work(flight{flight_outcome::timed_out, sign_of_life{.leader = 1, .beat = 1}}, time + 9s));
    EXPECT_FALSE(second.at_work(flight{flight_outcome::timed_out, sign_of_life{.leader = 1, .beat = 2}}, time + 11s));
    // One that never said anything, of an older version: the patience counts from the first look.
    leader_watch third{10s};
    EXPECT_TRUE(third.at_work(flight{flight_outcome::timed_out}, time));
    EXPECT_FALSE(third.at_work(flight{flight_outcome::timed_out}, time + 10s));
    leading.release();
    EXPECT_TRUE(waiter->try_lead(request, soon()).leads());
}

TEST_F(tiers_test, bundles_are_found_through_a_link_to_their_folder) {
    auto const folder = scratch_.path() / "bundles", link = scratch_.path() / "link";
    std::filesystem::create_directory(folder);
    std::filesystem::create_directory_symlink(folder, link);
    bundle_of({entry_of(1)}).write(folder / "a.kiln").value();
    store_options o;
    o.bundles = {link};
    EXPECT_TRUE(make(o)->find(address_of(1), {}));
    EXPECT_EQ(log_.count(event_kind::rejected), 0u);
}

}  // namespace kiln::test
