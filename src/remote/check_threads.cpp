// SPDX-License-Identifier: Apache-2.0
#include "remote/check_threads.hpp"

#include "base/quiet_thread.hpp"

#include <algorithm>

namespace kiln::remote {

namespace {

std::size_t most_threads() noexcept { return std::clamp(std::thread::hardware_concurrency(), 1u, 4u); }

// Every answer that is told wakes the reactor's thread, which has to receive on the same cores.
constexpr std::size_t told_together = 8;

}  // namespace

check_threads::~check_threads() {
    {
        std::lock_guard const lock{mutex_};
        ends_ = true;
        waiting_.clear();
    }
    changed_.notify_all();
    for (auto& t : threads_) t.join();
}

void check_threads::run(reactor::task work, reactor::task then) {
    {
        std::lock_guard const lock{mutex_};
        waiting_.push_back({std::move(work), std::move(then)});
        if (waiting_.size() > idle_ && threads_.size() < most_threads()) {
            if (auto made = base::start_quiet_thread([this] { serve(); })) threads_.push_back(*std::move(made));
        }
        if (!threads_.empty()) {
            changed_.notify_one();
            return;
        }
    }
    // Alone here: nobody else takes from it.
    auto const mine = std::move(waiting_.front());
    waiting_.pop_front();
    mine.work();
    (void)loop_.post(mine.then);
}

void check_threads::tell(std::vector<reactor::task>& done) noexcept {
    try {
        for (auto& then : done) (void)loop_.post(std::move(then));
    } catch (std::exception const&) {  // the same
    }
    done.clear();
}

void check_threads::serve() noexcept {
    std::vector<reactor::task> done;
    std::unique_lock lock{mutex_};
    for (;;) {
        ++idle_;
        changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
        --idle_;
        if (ends_) return;
        auto mine = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        try {
            mine.work();
            done.push_back(std::move(mine.then));
        } catch (std::exception const&) {  // no memory: whoever waited for this has a deadline
        }
        lock.lock();
        if (!waiting_.empty() && done.size() < told_together) continue;
        lock.unlock();
        tell(done);
        lock.lock();
    }
}

}  // namespace kiln::remote
