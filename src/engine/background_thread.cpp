// SPDX-License-Identifier: Apache-2.0
#include "engine/background_thread.hpp"

#include "base/quiet_thread.hpp"

#include <algorithm>
#include <exception>

namespace kiln::engine_detail {

// With the lock, which the new thread asks for first.
bool background_thread::can_run() {
    if (state_->stopping) return false;
    if (thread_.joinable()) return true;
    auto made = base::start_quiet_thread([mine = state_] { mine->run(); });
    if (!made) return false;
    thread_ = *std::move(made);
    return true;
}

bool background_thread::post(std::function<void()> task) {
    std::lock_guard const lock{state_->mutex};
    if (!can_run()) return false;
    state_->ready.push_back(std::move(task));
    state_->changed.notify_one();
    return true;
}

bool background_thread::post_at(base::time_point when, std::function<void()> task) {
    std::lock_guard const lock{state_->mutex};
    if (!can_run()) return false;
    state_->later.emplace_back(when, std::move(task));
    state_->changed.notify_one();
    return true;
}

void background_thread::stop(std::optional<base::time_point> deadline) noexcept {
    auto& s = *state_;
    std::thread ending;
    bool ends = true;
    {
        std::unique_lock lock{s.mutex};
        s.stopping = true;
        s.changed.notify_all();
        ending = std::move(thread_);
        // A callback may end the program, and with it this.
        if (ending.get_id() == std::this_thread::get_id()) ends = false;
        else if (deadline && ending.joinable()) ends = s.ended.wait_until(lock, *deadline, [&] { return s.has_ended; });
    }
    if (ending.joinable() && ends) ending.join();
    if (ending.joinable()) ending.detach();
    // What they owe somebody they say when they go: without the lock, and one by one, as there may be no memory for a second list.
    for (std::function<void()> dropped;; dropped = nullptr) {
        std::lock_guard const lock{s.mutex};
        if (!s.ready.empty()) {
            dropped = std::move(s.ready.front());
            s.ready.pop_front();
        } else if (!s.later.empty()) {
            dropped = std::move(s.later.front().second);
            s.later.pop_front();
        } else {
            return;
        }
    }
}

error background_thread::why_not(std::string_view about) {
    std::lock_guard const lock{state_->mutex};
    if (state_->stopping) return fail(errc::cancelled, "'{}': the engine is shutting down", about);
    return fail(errc::io, "'{}': no thread could be started: see 'ulimit -u', or the container's limit of processes",
                about);
}

std::optional<std::function<void()>> background_thread::state::take_due() {
    std::unique_lock lock{mutex};
    for (;;) {
        if (stopping) return std::nullopt;
        if (!ready.empty()) {
            auto task = std::move(ready.front());
            ready.pop_front();
            return task;
        }
        auto const next = std::ranges::min_element(later, {}, &decltype(later)::value_type::first);
        if (next == later.end()) {
            changed.wait(lock);
        } else if (next->first <= base::clock::now()) {
            auto task = std::move(next->second);
            later.erase(next);
            return task;
        } else {
            // Copied: the deque may change while the lock is away.
            auto const when = next->first;
            changed.wait_until(lock, when);
        }
    }
}

void background_thread::state::run() {
    while (auto task = take_due()) {
        // Whoever posted it has been told by the task itself, or never will be; nobody else could catch here.
        try {
            (*task)();
        } catch (std::exception const&) {
        }
    }
    std::lock_guard const lock{mutex};
    has_ended = true;
    ended.notify_all();
}

}  // namespace kiln::engine_detail
