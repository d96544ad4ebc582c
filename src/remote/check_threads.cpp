// SPDX-License-Identifier: Apache-2.0
#include "remote/check_threads.hpp"

#include "base/quiet_thread.hpp"

#include <algorithm>

namespace kiln::remote {

namespace {

std::size_t most_threads() noexcept { return std::clamp(std::thread::hardware_concurrency(), 1u, 4u); }

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

void check_threads::serve() noexcept {
    std::unique_lock lock{mutex_};
    for (;;) {
        ++idle_;
        changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
        --idle_;
        if (ends_) return;
        auto const mine = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        try {
            mine.work();
            (void)loop_.post(mine.then);
        } catch (std::exception const&) {  // no memory: whoever waited for this has a deadline
        }
        lock.lock();
    }
}

}  // namespace kiln::remote
