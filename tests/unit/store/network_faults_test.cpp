// SPDX-License-Identifier: Apache-2.0
// N: file systems served by other machines, containers and users without a home. Simulated at the system calls.
#include "support/store_faults.hpp"

#include <cstdlib>
#include <sys/file.h>
#include <sys/statfs.h>
#include <thread>

namespace kiln::test {

using namespace store;

namespace {

auto soon() { return base::clock::now() + std::chrono::seconds{5}; }

// Sets variables and puts them back.
class environment {
public:
    void set(char const* name, char const* value) {
        auto const* const old = std::getenv(name);
        old_.emplace_back(name, old != nullptr ? std::optional<std::string>{old} : std::nullopt);
        if (value != nullptr) ::setenv(name, value, 1);
        else ::unsetenv(name);
    }
    ~environment() {
        for (auto it = old_.rbegin(); it != old_.rend(); ++it) {
            if (it->second) ::setenv(it->first.c_str(), it->second->c_str(), 1);
            else ::unsetenv(it->first.c_str());
        }
    }

private:
    std::vector<std::pair<std::string, std::optional<std::string>>> old_;
};

}  // namespace

TEST_F(store_faults, N1_a_client_that_does_not_see_the_others_entry_uses_its_own) {
    auto const e = entry_of(1);
    ASSERT_TRUE(disk()->put(e));
    auto const b = make();
    // B's cached negative lookup: no such file, although there is.
    faulty_calls const faults{{{.which = call::open, .error = ENOENT, .path_part = ".kiln"}}};
    EXPECT_FALSE(b->find(e->about.at, {}));
    b->put(e);
    EXPECT_TRUE(b->flush(soon()));
    EXPECT_EQ(b->find(e->about.at, {}).tier, "memory");
    EXPECT_EQ(log_.count(event_kind::fault), 0u);
}

TEST_F(store_faults, N2_stale_and_busy_names_are_misses) {
    auto const e = entry_of(1);
    ASSERT_TRUE(disk()->put(e));
    for (int const error : {ESTALE, ENOENT, EBUSY}) {
        auto const tier = disk();
        EXPECT_FALSE(tier->find(address_of(7), {}).value().hit);
        faulty_calls const faults{{{.which = call::open, .error = error, .path_part = ".kiln"}}};
        auto const found = tier->find(e->about.at, {}).value();
        EXPECT_FALSE(found.hit);
        EXPECT_EQ(found.why, miss::absent);
        EXPECT_TRUE(tier->list(e->about.at.family, {}).value().empty());
    }
    {
        faulty_calls const faults{{{.which = call::open, .error = ESTALE, .times = 1, .path_part = ".kiln"}}};
        EXPECT_TRUE(disk()->find(e->about.at, {}).value().hit) << "asked a second time";
    }
    {
        faulty_calls const faults{{{.which = call::read, .error = ESTALE}}};
        EXPECT_FALSE(disk()->find(e->about.at, {}).value().hit);
    }
    {
        faulty_calls const faults{{{.which = call::getdents, .error = ESTALE}}};
        EXPECT_TRUE(disk()->list(e->about.at.family, {}).value().empty());
    }
    {
        auto bad = bytes_of(path_of(*e));
        bad.back() ^= std::byte{1};
        overwrite(path_of(*e), bad);
        faulty_calls const faults{{{.which = call::unlink, .error = EBUSY}}};
        auto const tier = disk();
        EXPECT_EQ(tier->find(e->about.at, {}).value().why, miss::bad_digest);
        EXPECT_EQ(tier->find(e->about.at, {}).value().why, miss::absent) << "cannot be removed: skipped";
    }
    expect_heals(e);
}

TEST_F(store_faults, N3_a_tier_that_answers_too_late_is_passed_over_for_a_while) {
    auto const e = entry_of(1);
    ASSERT_TRUE(disk()->put(e));
    store_options o;
    o.disk = options();
    o.memory.max_bytes = 0;
    o.slow = std::chrono::milliseconds{5};
    auto const store = make(o);
    {
        faulty_calls faults;
        faults.hook = [](call which, char const*, int) {
            if (which == call::read) std::this_thread::sleep_for(std::chrono::milliseconds{20});  // the pausing server
        };
        EXPECT_TRUE(store->find(e->about.at, {}));
    }
    auto const next = store->find(e->about.at, {});
    EXPECT_FALSE(next);
    EXPECT_EQ(next.misses.at(1).why, miss::disabled);
    EXPECT_EQ(store->counts().errors.at("slow"), 1u);
    EXPECT_EQ(last_reason(event_kind::fault), "disk");
}

TEST_F(store_faults, N3_a_tier_that_keeps_failing_rests_and_comes_back) {
    auto const e = entry_of(1);
    ASSERT_TRUE(disk()->put(e));
    store_options o;
    o.disk = options();
    o.memory.max_bytes = 0;
    o.tier_rest = std::chrono::milliseconds{30};
    auto const store = make(o);
    EXPECT_TRUE(store->find(e->about.at, {}));
    {
        faulty_calls const faults{{{.which = call::open, .error = EIO, .path_part = ".kiln"}}};
        for (int i = 0; i < 10; ++i) EXPECT_FALSE(store->find(e->about.at, {}));
        EXPECT_EQ(faults.answered(), 3) << "then it is not asked";
    }
    EXPECT_EQ(store->counts().errors.at("eio"), 3u);
    auto const until = soon();
    while (!store->find(e->about.at, {}) && base::clock::now() < until) std::this_thread::yield();
    EXPECT_TRUE(store->find(e->about.at, {}));
}

TEST_F(store_faults, N4_flock_that_fails_or_does_not_exclude_is_noticed_and_lived_without) {
    for (auto const& broken :
         {rule{.which = call::flock, .error = ENOLCK}, rule{.which = call::flock, .how = answer::pretend}}) {
        std::filesystem::remove_all(root());
        faulty_calls const faults{{broken}};
        auto const store = make();
        EXPECT_EQ(store->try_lead(digest_of("r"), base::clock::now()).outcome(), flight_outcome::unsupported);
        EXPECT_EQ(last_reason(event_kind::fell_back), "in-process-flight");
        EXPECT_NE(store->directory()->locks, lock_support::excludes);
        for (unsigned i = 0; i < 20; ++i) store->put(entry_of(i));
        EXPECT_TRUE(store->flush(soon()));
        auto const tier = disk();
        for (unsigned i = 0; i < 20; ++i) EXPECT_TRUE(tier->find(address_of(i), {}).value().hit);
    }
}

TEST_F(store_faults, N4_the_bound_holds_without_locks) {
    faulty_calls const faults{{{.which = call::flock, .error = ENOLCK}}};
    auto o = options();
    o.max_bytes = 60'000;
    auto const tier = disk(o);
    for (unsigned i = 0; i < 200; ++i) ASSERT_TRUE(tier->put(entry_of(i)));
    EXPECT_LE(counted().bytes, o.max_bytes);
}

TEST_F(store_faults, N5_a_rename_whose_reply_was_lost_is_recognised) {
    faulty_calls const faults{
        {no_unnamed_files(), {.which = call::rename_new, .error = ENOENT, .how = answer::do_and_fail, .times = 1}}};
    auto const tier = disk();
    ASSERT_TRUE(tier->put(entry_of(0)));
    EXPECT_TRUE(tier->find(entry_of(0)->about.at, {}).value().hit);
    EXPECT_EQ(tier->take_counts().published, 1u);
    EXPECT_EQ(usage_account{disk_layout{root()}}.read()->bytes, counted().bytes);
}

TEST_F(store_faults, N6_file_systems_without_modern_calls_work) {
    auto const e = entry_of(1);
    // No unnamed files, no rename that refuses to replace.
    faulty_calls const faults{{no_unnamed_files(), {.which = call::rename_new, .error = EINVAL}}};
    auto const tier = disk();
    ASSERT_TRUE(tier->put(e));
    ASSERT_TRUE(tier->put(e));
    EXPECT_TRUE(tier->find(e->about.at, {}).value().hit);
    EXPECT_EQ(temporaries(), 0);
    EXPECT_EQ(counted().entries, 1u);
}

TEST_F(store_faults, N6_unnamed_files_that_cannot_be_linked_fall_back_to_names) {
    for (int const error : {ENOENT, EPERM, EOPNOTSUPP, EXDEV}) {
        std::filesystem::remove_all(root());
        faulty_calls const faults{{{.which = call::linkat, .error = error}}};
        auto const tier = disk();
        ASSERT_TRUE(tier->put(entry_of(1)));
        EXPECT_TRUE(tier->find(entry_of(1)->about.at, {}).value().hit);
        EXPECT_EQ(temporaries(), 0);
    }
}

namespace {

int pretend_nfs(int fd, struct ::statfs* out) {
    auto const done = base::real_system_calls().fstatfs(fd, out);
    out->f_type = 0x6969;
    return done;
}

}  // namespace

TEST_F(store_faults, N6_the_file_system_is_reported_and_a_remote_one_warned_about_once) {
    ASSERT_TRUE(disk()->put(entry_of(1)));
    EXPECT_EQ(warnings(), 0u);
    auto const local = disk()->report();
    EXPECT_FALSE(local.filesystem.empty());
    EXPECT_FALSE(local.remote);

    auto calls = base::real_system_calls();
    calls.fstatfs = pretend_nfs;
    base::install_system_calls(&calls);
    auto const tier = disk();
    ASSERT_TRUE(tier->put(entry_of(2)));
    ASSERT_TRUE(tier->put(entry_of(3)));
    auto const report = tier->report();
    base::install_system_calls(nullptr);
    EXPECT_EQ(report.filesystem, "nfs");
    EXPECT_TRUE(report.remote);
    EXPECT_EQ(warnings(), 1u);
    EXPECT_EQ(last_reason(event_kind::warned), "remote-filesystem");
}

TEST_F(store_faults, N7_a_cache_in_a_read_only_image_serves_and_complains_once) {
    for (unsigned i = 0; i < 5; ++i) ASSERT_TRUE(disk()->put(entry_of(i)));
    auto const store = make();
    faulty_calls const faults{{
        {.which = call::open, .error = EROFS, .flags = O_TMPFILE},
        {.which = call::open, .error = EROFS, .flags = O_CREAT},
        {.which = call::unlink, .error = EROFS},
        {.which = call::utimensat, .error = EROFS},
        {.which = call::mkdir, .error = EROFS},
    }};
    for (unsigned i = 0; i < 5; ++i) EXPECT_EQ(store->find(address_of(i), {}).tier, "disk");
    for (unsigned i = 10; i < 30; ++i) store->put(entry_of(i));
    EXPECT_TRUE(store->flush(soon()));
    EXPECT_EQ(store->try_lead(digest_of("r"), base::clock::now()).outcome(), flight_outcome::unsupported);
    EXPECT_EQ(warnings() + log_.count(event_kind::fault), 1u);
    EXPECT_EQ(last_reason(event_kind::warned), "directory-read-only");
    EXPECT_EQ(store->directory()->state, directory_state::read_only);
}

TEST_F(store_faults, N7_a_root_that_cannot_be_made_means_memory_only_said_once) {
    store_options o;
    o.disk = disk_options{.root = "/proc/no/such/place"};
    auto const store = make(o);
    for (unsigned i = 0; i < 5; ++i) store->put(entry_of(i));
    EXPECT_TRUE(store->flush(soon()));
    for (unsigned i = 0; i < 5; ++i) EXPECT_EQ(store->find(address_of(i), {}).tier, "memory");
    EXPECT_EQ(warnings(), 1u);
}

TEST_F(store_faults, N8_no_home_means_memory_only_said_once) {
    environment env;
    for (auto const* name : {"HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "KILN_CACHE_DIR", "KILN_CONFIG"})
        env.set(name, nullptr);
    auto const store = make_store(base::config::load(), log_);
    EXPECT_FALSE(store->directory());
    for (unsigned i = 0; i < 5; ++i) {
        EXPECT_FALSE(store->find(address_of(i), {}));
        store->put(entry_of(i));
        EXPECT_EQ(store->find(address_of(i), {}).tier, "memory");
    }
    EXPECT_EQ(warnings(), 1u);
    EXPECT_EQ(last_reason(event_kind::warned), "memory-only");
}

TEST_F(store_faults, N8_the_directory_is_chosen_in_order) {
    environment env;
    env.set("KILN_CONFIG", "/nonexistent");
    env.set("KILN_CACHE_DIR", nullptr);
    env.set("HOME", "/home/someone");
    env.set("XDG_CACHE_HOME", nullptr);
    EXPECT_EQ(options_from(base::config::load()).disk->root, "/home/someone/.cache/kiln");
    env.set("XDG_CACHE_HOME", "/var/xdg");
    EXPECT_EQ(options_from(base::config::load()).disk->root, "/var/xdg/kiln");
    env.set("XDG_CACHE_HOME", "relative");
    EXPECT_EQ(options_from(base::config::load()).disk->root, "/home/someone/.cache/kiln") << "relative is invalid";
    env.set("KILN_CACHE_DIR", "/data/kiln");
    env.set("KILN_MAX_SIZE", "7M");
    env.set("KILN_READONLY", "1");
    env.set("KILN_CACHE_PATH_RO", "/a:/b");
    env.set("KILN_BUNDLES", "/x.kiln:/y");
    env.set("KILN_RECACHE", "1");
    auto const all = options_from(base::config::load());
    EXPECT_EQ(all.disk->root, "/data/kiln");
    EXPECT_EQ(all.disk->max_bytes, std::uint64_t{7} << 20);
    EXPECT_EQ(all.disk->mode, access::read_only);
    EXPECT_EQ(all.read_only_roots.size(), 2u);
    EXPECT_EQ(all.bundles.size(), 2u);
    EXPECT_EQ(all.mode, reuse::recache);
    env.set("KILN_DISABLE", "1");
    EXPECT_FALSE(options_from(base::config::load()).disk);
}

}  // namespace kiln::test
