// SPDX-License-Identifier: Apache-2.0
// W: what can go wrong while an entry is written. The killing is in tests/process/store_kill_test.cpp.
#include "support/store_faults.hpp"

#include <thread>

namespace kiln::test {

using namespace store;

namespace {

// The same faults, met on either way of publishing.
struct step {
    std::string_view name;
    rule what;
    bool named = false;
};

std::vector<step> steps_that_fail_with(int error) {
    return {
        {"create", {.which = call::open, .error = error, .flags = O_TMPFILE}},
        {"write", {.which = call::write, .error = error}},
        {"close", {.which = call::close, .error = error, .after = 4}},
        {"link", {.which = call::linkat, .error = error}},
        {"create named", {.which = call::open, .error = error, .path_part = "/tmp/", .flags = O_CREAT | O_EXCL}, true},
        {"write named", {.which = call::write, .error = error}, true},
        {"rename", {.which = call::rename_new, .error = error}, true},
    };
}

}  // namespace

TEST_F(store_faults, W3_a_file_cut_or_zeroed_by_power_loss_is_never_used) {
    auto const e = entry_of(1);
    auto const tier = disk();
    ASSERT_TRUE(tier->put(e));
    auto const good = bytes_of(path_of(*e));
    base::bytes zeros(good.size()), half(good.begin(), good.begin() + static_cast<long>(good.size() / 2)),
        tail_lost = good;
    std::fill(tail_lost.begin() + static_cast<long>(tail_lost.size() / 2), tail_lost.end(), std::byte{0});
    for (auto const& bad : {base::bytes{}, zeros, half, tail_lost}) {
        overwrite(path_of(*e), bad);
        auto const found = tier->find(e->about.at, {}).value();
        EXPECT_FALSE(found.hit);
        EXPECT_TRUE(is_rejection(found.why));
        EXPECT_FALSE(std::filesystem::exists(path_of(*e)));
        ASSERT_TRUE(tier->put(e));
        EXPECT_TRUE(tier->find(e->about.at, {}).value().hit) << "healed";
    }
}

TEST_F(store_faults, W5_enospc_anywhere_drops_the_entry_rests_and_is_said_once) {
    for (auto const& s : steps_that_fail_with(ENOSPC)) {
        SCOPED_TRACE(s.name);
        auto const e = entry_of(1), other = entry_of(2);
        std::filesystem::remove_all(root());
        auto const before = log_.count(event_kind::fault);
        {
            auto warm = disk();
            ASSERT_TRUE(warm->put(entry_of(9)));  // directories and account are there
        }
        auto const tier = disk();
        std::vector<rule> rules{s.what};
        if (s.named) rules.insert(rules.begin(), no_unnamed_files());
        {
            faulty_calls const faults{rules};
            auto const done = tier->put(e);
            EXPECT_FALSE(done);
            EXPECT_EQ(done.error().status(), ENOSPC);
            EXPECT_TRUE(tier->resting());
            EXPECT_TRUE(tier->put(other)) << "dropped without an error while resting";
            EXPECT_GT(faults.answered(), 0);
        }
        EXPECT_FALSE(std::filesystem::exists(path_of(*e)));
        EXPECT_FALSE(std::filesystem::exists(path_of(*other)));
        EXPECT_EQ(temporaries(), 0);
        EXPECT_EQ(log_.count(event_kind::fault), before + 1);
        auto const counts = tier->take_counts();
        EXPECT_EQ(counts.errors.at("enospc"), 1u);
        EXPECT_EQ(counts.errors.at("resting"), 1u);
        EXPECT_EQ(counts.dropped, 2u);
        auto const account = usage_account{disk_layout{root()}}.read();
        ASSERT_TRUE(account);
        EXPECT_EQ(account->bytes, counted().bytes) << "the reservation was given back";
        expect_heals(e);
    }
}

TEST_F(store_faults, W5_enospc_on_the_first_directory_is_a_fault_and_not_the_end) {
    auto o = options();
    o.write_rest = std::chrono::milliseconds{0};
    auto const tier = disk(o);
    {
        faulty_calls const faults{{{.which = call::mkdir, .error = ENOSPC}}};
        EXPECT_FALSE(tier->put(entry_of(1)));
        EXPECT_FALSE(tier->find(entry_of(1)->about.at, {}).value().hit);
    }
    ASSERT_TRUE(tier->put(entry_of(1)));
    EXPECT_TRUE(tier->find(entry_of(1)->about.at, {}).value().hit);
}

TEST_F(store_faults, W5_a_store_on_a_full_disk_serves_from_memory) {
    auto const store = make();
    faulty_calls const faults{{{.which = call::write, .error = ENOSPC}}};
    for (unsigned i = 0; i < 20; ++i) store->put(entry_of(i));
    EXPECT_TRUE(store->flush(base::clock::now() + std::chrono::seconds{5}));
    for (unsigned i = 0; i < 20; ++i) EXPECT_EQ(store->find(address_of(i), {}).tier, "memory");
    EXPECT_EQ(log_.count(event_kind::fault), 1u) << "one line, not one per kernel";
    EXPECT_EQ(store->counts().dropped, 20u);
}

TEST_F(store_faults, W6_other_errors_of_the_disk_do_the_same) {
    for (int const error : {EDQUOT, EIO}) {
        for (auto const& s : steps_that_fail_with(error)) {
            SCOPED_TRACE(s.name);
            std::filesystem::remove_all(root());
            ASSERT_TRUE(disk()->put(entry_of(9)));
            auto const tier = disk();
            std::vector<rule> rules{s.what};
            if (s.named) rules.insert(rules.begin(), no_unnamed_files());
            {
                faulty_calls const faults{rules};
                EXPECT_FALSE(tier->put(entry_of(1)));
            }
            EXPECT_TRUE(tier->resting());
            EXPECT_EQ(temporaries(), 0);
            EXPECT_FALSE(std::filesystem::exists(path_of(*entry_of(1))));
            expect_heals(entry_of(1));
        }
    }
}

TEST_F(store_faults, W6_too_many_open_files_does_not_poison) {
    ASSERT_TRUE(disk()->put(entry_of(9)));
    for (int const error : {EMFILE, ENFILE}) {
        auto const tier = disk();
        {
            faulty_calls const faults{{{.which = call::open, .error = error}}};
            EXPECT_FALSE(tier->find(entry_of(9)->about.at, {}).value_or(lookup{}).hit);
            EXPECT_FALSE(tier->put(entry_of(1)));
        }
        EXPECT_FALSE(tier->resting());
        EXPECT_TRUE(tier->find(entry_of(9)->about.at, {}).value().hit) << "works at once when descriptors are back";
        ASSERT_TRUE(tier->put(entry_of(1)));
        EXPECT_TRUE(tier->find(entry_of(1)->about.at, {}).value().hit);
        std::filesystem::remove(path_of(*entry_of(1)));
    }
}

TEST_F(store_faults, W6_a_store_short_of_descriptors_does_not_rest_its_disk) {
    ASSERT_TRUE(disk()->put(entry_of(1)));
    auto const store = make();
    EXPECT_FALSE(store->find(address_of(2), {}));
    {
        faulty_calls const faults{{{.which = call::open, .error = EMFILE}}};
        for (int i = 0; i < 10; ++i) EXPECT_FALSE(store->find(address_of(1), {}));
    }
    EXPECT_EQ(store->find(address_of(1), {}).tier, "disk");
}

TEST_F(store_faults, W6_short_and_interrupted_transfers_are_carried_on) {
    auto const e = entry_of(1, 100'000);
    for (bool const named : {false, true}) {
        std::filesystem::remove_all(root());
        std::vector<rule> rules{
            {.which = call::write, .how = answer::short_count, .times = 5},
            {.which = call::write, .error = EINTR, .times = 3},
            {.which = call::read, .how = answer::short_count, .times = 5},
            {.which = call::read, .error = EINTR, .times = 3},
            {.which = call::open, .error = EINTR, .times = 2},
            {.which = call::flock, .error = EINTR, .times = 2},
        };
        if (named) rules.push_back(no_unnamed_files());
        faulty_calls const faults{rules};
        auto const tier = disk();
        ASSERT_TRUE(tier->put(e));
        auto const found = tier->find(e->about.at, {}).value();
        ASSERT_TRUE(found.hit);
        EXPECT_EQ(found.hit->payload, e->payload);
    }
}

TEST_F(store_faults, W6_erofs_makes_the_directory_read_only_and_says_so_once) {
    ASSERT_TRUE(disk()->put(entry_of(9)));
    auto const tier = disk();
    faulty_calls const faults{{{.which = call::open, .error = EROFS, .flags = O_TMPFILE},
                               {.which = call::open, .error = EROFS, .flags = O_CREAT}}};
    EXPECT_FALSE(tier->put(entry_of(1)));
    for (unsigned i = 2; i < 8; ++i) EXPECT_TRUE(tier->put(entry_of(i)));
    EXPECT_EQ(warnings(), 1u);
    EXPECT_EQ(tier->report().state, directory_state::read_only);
    EXPECT_TRUE(tier->find(entry_of(9)->about.at, {}).value().hit);
}

TEST_F(store_faults, W9_an_entry_larger_than_the_cache_stays_in_memory) {
    store_options o;
    o.disk = options();
    o.disk->max_bytes = 10'000;
    auto const store = make(o);
    store->put(entry_of(1, 100'000));
    store->put(entry_of(2, 100));
    EXPECT_TRUE(store->flush(base::clock::now() + std::chrono::seconds{5}));
    EXPECT_EQ(store->find(address_of(1), {}).tier, "memory");
    EXPECT_EQ(store->counts().errors.at("too-large"), 1u);
    EXPECT_FALSE(std::filesystem::exists(path_of(*entry_of(1))));
    EXPECT_TRUE(std::filesystem::exists(path_of(*entry_of(2))));
}

TEST_F(store_faults, W10_a_rename_that_fails_after_the_write_loses_only_the_copy_on_disk) {
    for (int const error : {EXDEV, EACCES, EBUSY, EISDIR, ENOTEMPTY}) {
        SCOPED_TRACE(error);
        std::filesystem::remove_all(root());
        ASSERT_TRUE(disk()->put(entry_of(9)));
        auto const store = make();
        {
            faulty_calls const faults{{no_unnamed_files(), {.which = call::rename_new, .error = error}}};
            store->put(entry_of(1));
            EXPECT_TRUE(store->flush(base::clock::now() + std::chrono::seconds{5}));
        }
        EXPECT_EQ(store->find(address_of(1), {}).tier, "memory");
        EXPECT_EQ(temporaries(), 0);
        EXPECT_EQ(store->counts().dropped, 1u);
        expect_heals(entry_of(1));
    }
}

TEST_F(store_faults, W10_a_failing_clean_up_does_not_undo_finished_work) {
    faulty_calls const faults{{no_unnamed_files(), {.which = call::unlink, .error = EBUSY}}};
    auto const tier = disk();
    ASSERT_TRUE(tier->put(entry_of(1)));
    EXPECT_TRUE(tier->put(entry_of(1))) << "exists already; its temporary cannot be removed";
    EXPECT_TRUE(tier->find(entry_of(1)->about.at, {}).value().hit);
}

TEST_F(store_faults, W11_every_descriptor_is_closed_on_exec) {
    std::vector<int> without;
    auto const look = [&] {
        for (auto const& e : std::filesystem::directory_iterator{"/proc/self/fd"}) {
            int const fd = std::stoi(e.path().filename());
            std::error_code why;
            auto const target = std::filesystem::read_symlink(e.path(), why).native();
            if (why || target.find(root().native()) == std::string::npos) continue;
            if ((::fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) without.push_back(fd);
        }
    };
    for (bool const named : {false, true}) {
        std::vector<rule> rules;
        if (named) rules.push_back(no_unnamed_files());
        faulty_calls faults{rules};
        faults.hook = [&](call, char const*, int) { look(); };
        auto const tier = disk();
        ASSERT_TRUE(tier->put(entry_of(named ? 1 : 2)));
        ASSERT_TRUE(tier->find(entry_of(named ? 1 : 2)->about.at, {}).value().hit);
        auto const leading = tier->try_lead(digest_of("r"), base::clock::now());
        look();
        EXPECT_TRUE(leading.leads());
        EXPECT_GT(faults.calls(), 10);
    }
    EXPECT_TRUE(without.empty());
}

}  // namespace kiln::test
