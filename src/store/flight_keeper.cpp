// SPDX-License-Identifier: Apache-2.0
#include "store/flight_keeper.hpp"

#include <condition_variable>
#include <csignal>
#include <system_error>
#include <thread>

namespace kiln::store {

using namespace std::chrono_literals;

// Everything the thread uses. Plain mutex: after fork() the child never looks at its parent's state again.
struct flight_keeper::state {
    std::chrono::milliseconds interval;
    std::uint64_t generation = base::fork_generation();
    std::thread thread;

    std::mutex mutex;
    std::condition_variable wake, ended;
    std::vector<std::weak_ptr<held_lock>> kept;
    bool running = false;
    bool stopping = false;

    void run();
    [[nodiscard]] std::vector<std::shared_ptr<held_lock>> held();
};

// With the lock held. What was let go is forgotten.
std::vector<std::shared_ptr<held_lock>> flight_keeper::state::held() {
    std::vector<std::shared_ptr<held_lock>> out;
    std::erase_if(kept, [&](std::weak_ptr<held_lock> const& one) {
        auto lock = one.lock();
        if (!lock) return true;
        out.push_back(std::move(lock));
        return false;
    });
    return out;
}

void flight_keeper::state::run() {
    std::unique_lock lock{mutex};
    for (;;) {
        auto const next = base::clock::now() + interval;
        wake.wait_until(lock, next, [&] { return stopping; });
        auto some = stopping ? std::vector<std::shared_ptr<held_lock>>{} : held();
        if (some.empty()) break;
        lock.unlock();
        for (auto const& one : some) one->beat();
        some.clear();
        lock.lock();
    }
    running = false;
    ended.notify_all();
}

void flight_keeper::keep(flight const& leading) {
    if (!leading.leads()) return;
    std::shared_ptr<state> s;
    {
        std::lock_guard const lock{mutex_};
        // The parent's thread is not here and its locks are in any state: left alone for ever, not destroyed.
        if (state_ && state_->generation != base::fork_generation()) new std::shared_ptr<state>{std::move(state_)};
        if (!state_) {
            state_ = std::make_shared<state>();
            state_->interval = interval_;
        }
        s = state_;
    }
    std::lock_guard const lock{s->mutex};
    s->kept.push_back(leading.lock());
    if (std::exchange(s->running, true)) return;
    // Signals are the program's business and not this thread's.
    ::sigset_t all, old;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &old);
    try {
        if (s->thread.joinable()) s->thread.join();  // it has ended: `running` was false
        s->thread = std::thread{[s] { s->run(); }};
    } catch (std::system_error const&) {
        s->running = false;
    }
    ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

flight_keeper::~flight_keeper() {
    auto const s = std::exchange(state_, nullptr);
    if (!s) return;
    if (s->generation != base::fork_generation()) {
        new std::shared_ptr<state>{s};
        return;
    }
    std::unique_lock lock{s->mutex};
    s->stopping = true;
    s->wake.notify_all();
    bool const ended = s->ended.wait_for(lock, 200ms, [&] { return !s->running; });
    lock.unlock();
    if (!s->thread.joinable()) return;
    if (ended) s->thread.join();
    else s->thread.detach();
}

}  // namespace kiln::store
