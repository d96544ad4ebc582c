// SPDX-License-Identifier: Apache-2.0
#include "engine/background_thread.hpp"

#include <algorithm>
#include <new>

namespace kiln::engine_detail {

bool background_thread::post(std::function<void()> task) {
    std::lock_guard const lock{mutex_};
    if (stopping_) return false;
    ready_.push_back(std::move(task));
    if (!thread_.joinable()) thread_ = std::thread{[this] { run(); }};
    changed_.notify_one();
    return true;
}

bool background_thread::post_at(base::time_point when, std::function<void()> task) {
    std::lock_guard const lock{mutex_};
    if (stopping_) return false;
    later_.emplace_back(when, std::move(task));
    if (!thread_.joinable()) thread_ = std::thread{[this] { run(); }};
    changed_.notify_one();
    return true;
}

void background_thread::stop() noexcept {
    {
        std::lock_guard const lock{mutex_};
        stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

std::optional<std::function<void()>> background_thread::take_due() {
    std::unique_lock lock{mutex_};
    for (;;) {
        if (stopping_) return std::nullopt;
        if (!ready_.empty()) {
            auto task = std::move(ready_.front());
            ready_.pop_front();
            return task;
        }
        auto const next = std::ranges::min_element(later_, {}, &decltype(later_)::value_type::first);
        if (next == later_.end()) {
            changed_.wait(lock);
        } else if (next->first <= base::clock::now()) {
            auto task = std::move(next->second);
            later_.erase(next);
            return task;
        } else {
            // Copied: the deque may change while the lock is away.
            auto const when = next->first;
            changed_.wait_until(lock, when);
        }
    }
}

void background_thread::run() {
    while (auto task = take_due()) {
        // Nobody else could catch on this thread, and want of memory must not end the program.
        try {
            (*task)();
        } catch (std::bad_alloc const&) {
        }
    }
}

}  // namespace kiln::engine_detail
