// SPDX-License-Identifier: Apache-2.0
#include "store/publisher.hpp"

#include "base/caught.hpp"
#include "base/quiet_thread.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <thread>

namespace kiln::store {

// Everything the thread uses. Plain mutex: after fork() the child never looks at its parent's state again.
struct publisher::state {
    struct item {
        entry_ptr what;  // null: only run idle
        errand why = errand::keep;
        flight leading;
        claim_ptr under;
    };

    publisher_limits limits;
    tasks work;
    std::uint64_t generation = base::fork_generation();
    std::thread thread;

    std::mutex mutex;
    std::condition_variable wake, calm;
    std::deque<item> queue;
    std::uint64_t queued_bytes = 0;
    bool busy = false;
    bool writing = false;  // and not what tasks::idle does
    bool stopping = false;
    bool abandoned = false;

    void run();
};

void publisher::state::run() {
    std::unique_lock lock{mutex};
    for (;;) {
        wake.wait(lock, [&] { return stopping || !queue.empty(); });
        if (abandoned || queue.empty()) return;
        auto next = std::move(queue.front());
        queue.pop_front();
        if (next.what) queued_bytes -= next.what->payload.size();
        busy = true;
        writing = next.what && next.why == errand::keep;
        lock.unlock();
        // Nobody else could catch on this thread. What cannot be written for want of memory is lost, and found missing later.
        base::if_memory_allows([&] {
            if (next.what) work.publish(next.what, next.why);
        });
        next = {};
        lock.lock();
        writing = false;
        if (queue.empty() && !abandoned) {
            lock.unlock();
            base::if_memory_allows(work.idle);
            lock.lock();
        }
        busy = false;
        if (queue.empty()) calm.notify_all();
    }
}

std::shared_ptr<publisher::state> publisher::current() {
    std::lock_guard const lock{mutex_};
    if (state_ && state_->generation == base::fork_generation()) return state_;
    // The parent's thread is not here and its locks are in any state: left alone for ever, not destroyed.
    if (state_) new std::shared_ptr<state>{std::move(state_)};
    auto fresh = std::make_shared<state>();
    fresh->limits = limits_;
    fresh->work = tasks_;
    if (auto thread = base::start_quiet_thread([fresh] { fresh->run(); })) fresh->thread = *std::move(thread);
    else fresh = nullptr;
    state_ = fresh;
    return fresh;
}

bool publisher::push(entry_ptr what, errand why, flight leading, claim_ptr under) {
    auto const s = current();
    if (!s) return false;
    {
        std::lock_guard const lock{s->mutex};
        if (s->stopping) return false;
        auto const bytes = what ? what->payload.size() : 0;
        if (what && (s->queue.size() >= limits_.entries || s->queued_bytes + bytes > limits_.bytes)) return false;
        s->queued_bytes += bytes;
        s->queue.push_back(
            {.what = std::move(what), .why = why, .leading = std::move(leading), .under = std::move(under)});
    }
    s->wake.notify_one();
    return true;
}

bool publisher::enqueue(entry_ptr what, errand why, flight leading, claim_ptr under) {
    return push(std::move(what), why, std::move(leading), std::move(under));
}
bool publisher::poke() { return push(nullptr, errand::keep, {}, {}); }

bool publisher::wait_idle(base::time_point deadline) {
    std::shared_ptr<state> s;
    {
        std::lock_guard const lock{mutex_};
        s = state_;
    }
    if (!s || s->generation != base::fork_generation()) return true;
    std::unique_lock lock{s->mutex};
    return s->calm.wait_until(lock, deadline, [&] { return s->queue.empty() && !s->busy; });
}

std::size_t publisher::waiting() {
    std::shared_ptr<state> s;
    {
        std::lock_guard const lock{mutex_};
        s = state_;
    }
    if (!s || s->generation != base::fork_generation()) return 0;
    std::lock_guard const lock{s->mutex};
    auto const queued = std::ranges::count_if(s->queue, [](auto const& i) { return i.what && i.why == errand::keep; });
    return static_cast<std::size_t>(queued) + (s->writing ? 1 : 0);
}

bool publisher::stop(base::time_point deadline) {
    std::shared_ptr<state> s;
    {
        std::lock_guard const lock{mutex_};
        s = std::exchange(state_, nullptr);
    }
    if (!s) return true;
    if (s->generation != base::fork_generation()) {
        new std::shared_ptr<state>{std::move(s)};
        return true;
    }
    std::unique_lock lock{s->mutex};
    s->stopping = true;
    s->wake.notify_one();
    bool const drained = s->calm.wait_until(lock, deadline, [&] { return s->queue.empty() && !s->busy; });
    if (drained) {
        lock.unlock();
        if (s->thread.joinable()) s->thread.join();  // there may have been no memory to start it
        return true;
    }
    s->abandoned = true;
    s->queue.clear();
    s->thread.detach();
    return false;
}

}  // namespace kiln::store
