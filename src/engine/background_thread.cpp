// SPDX-License-Identifier: Apache-2.0
#include "engine/background_thread.hpp"

#include "base/quiet_thread.hpp"

#include <algorithm>
#include <exception>

namespace kiln::engine_detail {

// With the lock, which the new thread asks for first.
bool background_thread::can_run() {
    if (stopping_) return false;
    if (thread_.joinable()) return true;
    auto made = base::start_quiet_thread([this] { run(); });
    if (!made) return false;
    thread_ = *std::move(made);
    return true;
}

bool background_thread::post(std::function<void()> task) {
    std::lock_guard const lock{mutex_};
    if (!can_run()) return false;
    ready_.push_back(std::move(task));
    changed_.notify_one();
    return true;
}

bool background_thread::post_at(base::time_point when, std::function<void()> task) {
    std::lock_guard const lock{mutex_};
    if (!can_run()) return false;
    later_.emplace_back(when, std::move(task));
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
    // What they owe somebody they say when they go: without the lock, and one by one, as there may be no memory for a second list.
    for (std::function<void()> dropped;; dropped = nullptr) {
        std::lock_guard const lock{mutex_};
        if (!ready_.empty()) {
            dropped = std::move(ready_.front());
            ready_.pop_front();
        } else if (!later_.empty()) {
            dropped = std::move(later_.front().second);
            later_.pop_front();
        } else {
            return;
        }
    }
}

error background_thread::why_not(std::string_view about) {
    std::lock_guard const lock{mutex_};
    if (stopping_) return fail(errc::cancelled, "'{}': the engine is shutting down", about);
    return fail(errc::io, "'{}': no thread could be started: see 'ulimit -u', or the container's limit of processes",
                about);
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
        // Whoever posted it has been told by the task itself, or never will be; nobody else could catch here.
        try {
            (*task)();
        } catch (std::exception const&) {
        }
    }
}

}  // namespace kiln::engine_detail
