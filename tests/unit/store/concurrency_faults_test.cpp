// SPDX-License-Identifier: Apache-2.0
// P: threads, forks and other processes' evictors, as far as one process can show them.
#include "support/store_faults.hpp"

#include "base/locked_file.hpp"
#include "store/eviction.hpp"
#include "store/wait_lock.hpp"

#include <algorithm>
#include <atomic>
#include <sys/file.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace kiln::test {

using namespace store;

namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool thread_sanitizer = true;
#else
constexpr bool thread_sanitizer = false;
#endif

// AddressSanitizer's allocator takes no part in fork() before GCC 15: a child forked while another thread allocates may
// find it locked for ever.
#if defined(__SANITIZE_ADDRESS__) && defined(__GNUC__) && __GNUC__ < 15
constexpr bool allocator_breaks_at_fork = true;
#else
constexpr bool allocator_breaks_at_fork = false;
#endif

auto soon() { return base::clock::now() + std::chrono::seconds{10}; }

// Runs `work` in a forked child; true if it returned true and the child ended in time.
template <class Work>
bool in_child(Work work) {
    auto const child = ::fork();
    if (child == 0) {
        ::alarm(20);
        ::_exit(work() ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_F(store_faults, P4_an_entry_removed_between_lookup_and_open_is_a_miss) {
    auto const e = entry_of(1);
    auto const tier = disk();
    ASSERT_TRUE(tier->put(e));
    faulty_calls faults;
    faults.hook = [&](call which, char const* path, int) {
        if (which == call::open && std::string_view{path}.ends_with(".kiln")) ::unlink(path);
    };
    EXPECT_EQ(tier->find(e->about.at, {}).value().why, miss::absent);
}

TEST_F(store_faults, P4_an_entry_removed_after_open_is_still_read) {
    auto const e = entry_of(1);
    auto const tier = disk();
    ASSERT_TRUE(tier->put(e));
    faulty_calls faults;
    faults.hook = [&](call which, char const*, int) {
        if (which == call::read) ::unlink(path_of(*e).c_str());
    };
    EXPECT_TRUE(tier->find(e->about.at, {}).value().hit);
    EXPECT_FALSE(std::filesystem::exists(path_of(*e)));
}

TEST_F(store_faults, P4_a_good_entry_that_replaced_a_bad_one_meanwhile_is_not_removed) {
    auto const e = entry_of(1);
    auto const tier = disk();
    ASSERT_TRUE(tier->put(e));
    auto const good = bytes_of(path_of(*e));
    auto bad = good;
    bad.back() ^= std::byte{1};
    overwrite(path_of(*e), bad);
    faulty_calls faults;
    bool done = false;
    faults.hook = [&](call which, char const*, int) {
        if (which != call::read || std::exchange(done, true)) return;
        auto const fresh = scratch_.path() / "fresh";
        std::ofstream{fresh, std::ios::binary}.write(reinterpret_cast<char const*>(good.data()),
                                                     static_cast<long>(good.size()));
        std::filesystem::rename(fresh, path_of(*e));
    };
    EXPECT_EQ(tier->find(e->about.at, {}).value().why, miss::bad_digest);
    EXPECT_TRUE(std::filesystem::exists(path_of(*e)));
    EXPECT_TRUE(tier->find(e->about.at, {}).value().hit);
}

TEST_F(store_faults, P5_clearing_or_deleting_the_directory_under_a_program_is_survived) {
    auto const store = make();
    for (unsigned i = 0; i < 10; ++i) store->put(entry_of(i));
    EXPECT_TRUE(store->flush(soon()));
    EXPECT_EQ(maintenance{root()}.clear().value().removed, 10u);
    for (unsigned i = 0; i < 10; ++i) EXPECT_TRUE(store->find(address_of(i), {})) << "from memory";
    store->put(entry_of(20));
    EXPECT_TRUE(store->flush(soon()));
    EXPECT_EQ(counted().entries, 1u);
    std::filesystem::remove_all(root());
    store->put(entry_of(21));
    EXPECT_TRUE(store->flush(soon()));
    EXPECT_TRUE(disk()->find(address_of(21), {}).value().hit) << "the directory was made again";
    std::filesystem::remove_all(root());
    EXPECT_TRUE(store->try_lead(digest_of("x"), base::clock::now()).leads());
}

TEST_F(store_faults, P6_names_of_temporaries_are_random_and_long) {
    std::vector<std::string> names;
    faulty_calls faults{{no_unnamed_files()}};
    faults.hook = [&](call which, char const* path, int) {
        if (which == call::open && std::string_view{path}.find("/tmp/") != std::string_view::npos &&
            std::filesystem::path{path}.parent_path().filename() == "tmp" &&
            std::filesystem::path{path}.filename().native().size() == 32) {
            names.push_back(std::filesystem::path{path}.filename());
        }
    };
    auto const tier = disk();
    for (unsigned i = 0; i < 10; ++i) ASSERT_TRUE(tier->put(entry_of(i)));
    ASSERT_GE(names.size(), 10u);
    std::sort(names.begin(), names.end());
    EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
    // One of them may have its digits by chance.
    auto const has_pid = [pid = std::to_string(::getpid())](std::string const& n) { return n.find(pid) != n.npos; };
    EXPECT_LT(std::ranges::count_if(names, has_pid), 3) << "128 random bits, no process id to be reused";
}

TEST_F(store_faults, P7_a_forked_child_has_a_working_store_and_publishes_nothing_of_its_parents) {
    if (thread_sanitizer)
        GTEST_SKIP() << "ThreadSanitizer does not support threads in the child of a process with threads";
    auto const store = make();
    store->put(entry_of(1));
    EXPECT_TRUE(store->flush(soon()));
    // The parent's publisher is held in the middle of a put while the child is forked.
    std::atomic<bool> inside{false}, go{false};
    faulty_calls faults;
    faults.hook = [&](call which, char const* path, int) {
        bool const ours = which == call::linkat && path != nullptr && path == path_of(*entry_of(2)).native();
        if (!ours) return;
        inside = true;
        inside.notify_all();
        go.wait(false);
    };
    store->put(entry_of(2));
    inside.wait(false);
    bool const child_ok = in_child([&] {
        bool ok = store->find(address_of(1), {}).tier == "memory";
        ok = ok && !std::filesystem::exists(path_of(*entry_of(2)));
        store->put(entry_of(3));
        ok = ok && store->flush(soon());
        ok = ok && disk()->find(address_of(3), {}).value().hit != nullptr;
        ok = ok && !std::filesystem::exists(path_of(*entry_of(2)));
        return ok;
    });
    EXPECT_TRUE(child_ok);
    go = true;
    go.notify_all();
    EXPECT_TRUE(store->flush(soon()));
    EXPECT_TRUE(disk()->find(address_of(2), {}).value().hit);
    EXPECT_TRUE(disk()->find(address_of(3), {}).value().hit);
}

TEST_F(store_faults, P7_a_child_forked_while_threads_use_the_store_never_hangs) {
    if (thread_sanitizer)
        GTEST_SKIP() << "ThreadSanitizer does not support threads in the child of a process with threads";
    if (allocator_breaks_at_fork) GTEST_SKIP() << "this AddressSanitizer's allocator does not survive fork()";
    auto const store = make();
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (unsigned i = t; !stop; i = (i + 1) % 64) {
                store->put(entry_of(i, 100));
                (void)store->find(address_of(i), {});
            }
        });
    }
    for (int i = 0; i < 30; ++i) {
        EXPECT_TRUE(in_child([&] {
            store->put(entry_of(1000, 100));
            return store->find(address_of(1000), {}).tier == "memory" && store->flush(soon());
        }));
    }
    stop = true;
    for (auto& t : threads) t.join();
}

// Before, the counters of everybody waited for as long as the child lived.
TEST_F(store_faults, P7_a_child_does_not_inherit_a_lock_that_is_held_for_a_moment) {
    std::filesystem::create_directories(root());
    auto const path = root() / "lock";
    auto const open = [&] { return base::open_file(path, O_RDWR | O_CREAT).value(); };
    auto file = open();
    ASSERT_EQ(try_flock(file.get(), LOCK_EX), lock_attempt::taken);
    int pipes[2];
    ASSERT_EQ(::pipe2(pipes, O_CLOEXEC), 0);
    ::pid_t child = 0;
    {
        base::locked_file const held{std::move(file)};
        child = ::fork();
        if (child == 0) {
            ::close(pipes[1]);
            char wait = 0;
            (void)!::read(pipes[0], &wait, 1);  // lives until the parent is done
            ::_exit(0);
        }
        EXPECT_EQ(try_flock(open().get(), LOCK_EX), lock_attempt::busy);
    }
    EXPECT_EQ(try_flock(open().get(), LOCK_EX), lock_attempt::taken);
    ::close(pipes[0]);
    ::close(pipes[1]);
    EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST_F(store_faults, P7_a_child_does_not_inherit_a_flight) {
    auto const tier = disk();
    auto leading = std::make_unique<flight>(tier->try_lead(digest_of("r"), base::clock::now()));
    ASSERT_TRUE(leading->leads());
    int pipes[2];
    ASSERT_EQ(::pipe2(pipes, O_CLOEXEC), 0);
    auto const child = ::fork();
    if (child == 0) {
        ::close(pipes[1]);
        char wait = 0;
        (void)!::read(pipes[0], &wait, 1);  // lives until the parent is done
        leading.reset();                    // must not close or unlock what is not its own
        ::_exit(0);
    }
    ::close(pipes[0]);
    leading.reset();
    EXPECT_TRUE(tier->try_lead(digest_of("r"), base::clock::now()).leads()) << "free as soon as the parent let go";
    ::close(pipes[1]);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

TEST_F(store_faults, P9_many_threads_on_one_key_see_one_entry) {
    auto const store = make();
    auto const e = entry_of(1);
    std::atomic<int> leaders{0}, wrong{0};
    std::atomic<bool> start{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 64; ++t) {
        threads.emplace_back([&] {
            start.wait(false);
            auto const until = soon();
            for (;;) {
                if (auto const found = store->find(e->about.at, expected_of(*e))) {
                    if (found.hit->payload != e->payload) ++wrong;
                    return;
                }
                auto leading = store->try_lead(e->about.at.request, until);
                if (!leading.leads() || store->find(e->about.at, {})) continue;
                ++leaders;
                store->put(e, std::move(leading));
            }
        });
    }
    start = true;
    start.notify_all();
    for (auto& t : threads) t.join();
    EXPECT_EQ(leaders, 1);
    EXPECT_EQ(wrong, 0);
}

TEST_F(store_faults, P9_a_leader_that_gives_up_lets_the_next_one_lead) {
    auto const tier = disk();
    {
        auto const failed = tier->try_lead(digest_of("r"), base::clock::now());
        ASSERT_TRUE(failed.leads());
    }
    EXPECT_TRUE(tier->try_lead(digest_of("r"), base::clock::now()).leads());
}

TEST_F(store_faults, P2_P3_waiters_are_told_what_happened) {
    auto const tier = disk();
    auto leading = tier->try_lead(digest_of("r"), base::clock::now());
    ASSERT_TRUE(leading.leads());
    EXPECT_EQ(tier->try_lead(digest_of("r"), base::clock::now() + std::chrono::milliseconds{20}).outcome(),
              flight_outcome::timed_out);
    EXPECT_TRUE(tier->try_lead(digest_of("other"), base::clock::now()).leads());
    std::atomic<bool> waiting{false};
    auto outcome = flight_outcome::unsupported;
    faulty_calls faults;
    faults.hook = [&](call which, char const*, int) {
        if (which == call::flock && !waiting.exchange(true)) waiting.notify_all();
    };
    std::thread waiter{[&] { outcome = tier->try_lead(digest_of("r"), soon()).outcome(); }};
    waiting.wait(false);
    while (faults.calls() < 8) std::this_thread::yield();  // it has asked and been refused several times
    leading.release();
    waiter.join();
    EXPECT_EQ(outcome, flight_outcome::finished);
}

TEST_F(store_faults, P3_waiters_know_a_leader_that_gave_up) {
    auto const tier = disk();
    for (bool const gives_up : {true, false}) {
        auto leading = tier->try_lead(digest_of("r"), base::clock::now());
        ASSERT_TRUE(leading.leads());
        // Who asks for the lock a second time could not have it, and is a waiter whatever happens now.
        faulty_calls faults;
        std::atomic<int> asked{0};
        faults.hook = [&](call which, char const*, int) {
            if (which != call::flock) return;
            ++asked;
            asked.notify_all();
        };
        flight out;
        std::thread waiter{[&] { out = tier->try_lead(digest_of("r"), soon()); }};
        for (int n = asked; n < 2; n = asked) asked.wait(n);
        if (gives_up) leading.give_up();
        else leading.release();
        waiter.join();
        EXPECT_EQ(out.outcome(), flight_outcome::finished);
        EXPECT_EQ(out.gave_up(), gives_up);
    }
}

TEST_F(store_faults, P3_a_swept_lock_file_does_not_split_the_leaders) {
    auto const tier = disk();
    disk_layout const layout{root()};
    auto const path = layout.lock(digest_of("r"));
    auto leading = tier->try_lead(digest_of("r"), base::clock::now());
    ASSERT_TRUE(leading.leads());
    usage_account account{layout};
    auto const sweep = [&] {
        (void)evict(layout, account,
                    {.max_bytes = 1 << 20, .low_bytes = 1 << 20, .incoming = 0, .stale = std::chrono::seconds{-1}})
            .value();
    };
    sweep();
    EXPECT_TRUE(std::filesystem::exists(path)) << "in use: not swept";
    leading.release();
    sweep();
    EXPECT_FALSE(std::filesystem::exists(path));
    // Unlinked between another's open and its lock: it notices and starts again.
    faulty_calls faults;
    bool done = false;
    faults.hook = [&](call which, char const*, int) {
        if (which == call::flock && std::filesystem::exists(path) && !std::exchange(done, true))
            std::filesystem::remove(path);
    };
    auto const again = tier->try_lead(digest_of("r"), soon());
    EXPECT_TRUE(done);
    EXPECT_TRUE(again.leads());
    EXPECT_EQ(tier->try_lead(digest_of("r"), base::clock::now()).outcome(), flight_outcome::timed_out)
        << "both look at one file";
}

}  // namespace kiln::test
