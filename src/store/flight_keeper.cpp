// SPDX-License-Identifier: Apache-2.0
#include "store/flight_keeper.hpp"

#include "base/caught.hpp"
#include "base/load_library.hpp"
#include "base/quiet_thread.hpp"

#include <atomic>
#include <condition_variable>
#include <dlfcn.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

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
    ::pid_t id = 0;  // the kernel's, of the thread

    [[nodiscard]] bool is_idle();
    void run();
    void beat(std::unique_lock<std::mutex>& lock);
};

// What was let go is forgotten.
bool flight_keeper::state::is_idle() {
    std::erase_if(kept, [](std::weak_ptr<held_lock> const& one) { return one.expired(); });
    return kept.empty();
}

// A beat that there is no memory for is missed; the next comes soon.
void flight_keeper::state::beat(std::unique_lock<std::mutex>& lock) {
    std::vector<std::shared_ptr<held_lock>> some;
    base::if_memory_allows([&] { some.reserve(kept.size()); });
    for (std::size_t i = 0; i < kept.size() && some.size() < some.capacity(); ++i) {
        if (auto held = kept[i].lock()) some.push_back(std::move(held));
    }
    lock.unlock();
    for (auto const& one : some) one->beat();
    some.clear();
    lock.lock();
}

void flight_keeper::state::run() {
    std::unique_lock lock{mutex};
    id = ::gettid();
    while (!stopping && !is_idle()) {
        auto const next = base::clock::now() + interval;
        if (!wake.wait_until(lock, next, [&] { return stopping || is_idle(); })) beat(lock);
    }
    running = false;
    ended.notify_all();
}

namespace {

// glibc counts the threads of a process, and calls exit() when the last of them ends. In what that calls there is none by this count, so that one
// more would be the last again: with its end the process would end, in the middle of who called us. False where glibc does not tell (before 2.34).
bool has_the_last_thread_ended() {
    static constinit std::atomic<bool> is_looked_for{false};
    static constinit std::atomic<unsigned const*> threads{nullptr};
    // Once: others may be waiting for this thread by now, and the loader's lock may be theirs.
    if (!is_looked_for.load()) {
        base::loader_use const use;
        threads.store(static_cast<unsigned const*>(::dlvsym(RTLD_DEFAULT, "__nptl_nthreads", "GLIBC_PRIVATE")));
        is_looked_for.store(true);
    }
    auto const* const count = threads.load();
    return count != nullptr && __atomic_load_n(count, __ATOMIC_ACQUIRE) == 0;
}

}  // namespace

void flight_keeper::keep(flight const& leading) {
    if (!leading.leads() || has_the_last_thread_ended()) return;
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
    if (s->running) return;
    if (s->thread.joinable()) s->thread.join();  // it has ended
    auto made = base::start_quiet_thread([s] { s->run(); });
    if (!made) return;
    s->thread = *std::move(made);
    s->running = true;
}

namespace {

// The kernel counts a thread for a moment after it was joined, and refuses a process of several threads some things.
void wait_until_gone(::pid_t thread) {
    for (int tries = 0; tries < 1000 && ::syscall(SYS_tgkill, ::getpid(), thread, 0) == 0; ++tries)
        std::this_thread::yield();
}

}  // namespace

void flight_keeper::rest() {
    std::shared_ptr<state> s;
    {
        std::lock_guard const lock{mutex_};
        s = state_;
    }
    if (!s || s->generation != base::fork_generation()) return;
    std::unique_lock lock{s->mutex};
    if (!s->is_idle()) return;
    s->wake.notify_all();
    if (!s->ended.wait_for(lock, 200ms, [&] { return !s->running; })) return;
    auto gone = std::exchange(s->thread, {});
    auto const id = s->id;
    lock.unlock();
    if (!gone.joinable()) return;
    gone.join();
    wait_until_gone(id);
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
