// SPDX-License-Identifier: Apache-2.0
#include "engine/background_thread.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <future>
#include <new>
#include <stdexcept>

namespace kiln::engine_detail {
namespace {

TEST(background_thread, leaves_all_signals_to_the_host) {
    background_thread thread;
    std::promise<bool> blocked;
    ASSERT_TRUE(thread.post([&] {
        sigset_t now;
        ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
        blocked.set_value(::sigismember(&now, SIGTERM) == 1 && ::sigismember(&now, SIGALRM) == 1);
    }));
    EXPECT_TRUE(blocked.get_future().get());
}

TEST(background_thread, goes_on_after_a_task_that_throws) {
    background_thread thread;
    ASSERT_TRUE(thread.post([] { throw std::bad_alloc{}; }));
    ASSERT_TRUE(thread.post([] { throw std::runtime_error{"surprise"}; }));
    std::promise<void> reached;
    ASSERT_TRUE(thread.post([&] { reached.set_value(); }));
    reached.get_future().get();
}

TEST(background_thread, what_it_never_runs_is_dropped_when_it_stops) {
    background_thread thread;
    std::promise<void> inside, go;
    ASSERT_TRUE(thread.post([&, until = go.get_future().share()] {
        inside.set_value();
        until.wait();
    }));
    inside.get_future().wait();
    std::promise<void> dropped;
    ASSERT_TRUE(thread.post([owed = std::shared_ptr<void>{nullptr, [&](void*) { dropped.set_value(); }}] {}));
    auto stopping = std::async(std::launch::async, [&] { thread.stop(); });
    while (thread.post([] {})) std::this_thread::yield();
    EXPECT_EQ(thread.why_not("u").code(), errc::cancelled);
    go.set_value();
    stopping.get();
    EXPECT_EQ(dropped.get_future().wait_for(std::chrono::seconds{0}), std::future_status::ready);
}

TEST(background_thread, a_task_may_be_what_stops_it) {
    background_thread thread;
    std::promise<void> stopped;
    ASSERT_TRUE(thread.post([&] {
        thread.stop();
        stopped.set_value();
    }));
    stopped.get_future().get();
    EXPECT_FALSE(thread.post([] {}));
}

TEST(background_thread, what_hangs_is_left_behind_where_there_is_a_deadline) {
    std::promise<void> inside, go, over;
    {
        background_thread thread;
        ASSERT_TRUE(thread.post([&, until = go.get_future().share()] {
            inside.set_value();
            until.wait();
            over.set_value();
        }));
        inside.get_future().get();
        thread.stop(base::clock::now() + std::chrono::milliseconds{20});
    }
    go.set_value();
    over.get_future().get();
}

TEST(background_thread, what_is_due_later_waits_for_its_time_and_stopping_drops_it) {
    background_thread thread;
    std::promise<void> reached;
    auto const when = base::clock::now() + std::chrono::milliseconds{5};
    ASSERT_TRUE(thread.post_at(base::clock::now() + std::chrono::hours{1}, [] { FAIL() << "not yet"; }));
    ASSERT_TRUE(thread.post_at(when, [&] { reached.set_value(); }));
    reached.get_future().get();
    EXPECT_GE(base::clock::now(), when);
    thread.stop();
    EXPECT_FALSE(thread.post([] {}));
}

}  // namespace
}  // namespace kiln::engine_detail
