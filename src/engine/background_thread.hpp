// SPDX-License-Identifier: Apache-2.0
// One thread that runs tasks in order, started by the first task. It takes none of the host program's signals, and a task
// that throws is a task that ends: nothing thrown here ends the host. A forked child has no such thread and must not use its
// parent's: base::per_process gives it one of its own.
#pragma once

#include "base/check.hpp"
#include "base/clock.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace kiln::engine_detail {

class background_thread {
public:
    background_thread() = default;
    ~background_thread() { stop(); }
    background_thread(background_thread const&) = delete;
    background_thread& operator=(background_thread const&) = delete;

    // False: the task will not run. The thread was stopped, or the machine has none left.
    [[nodiscard]] bool post(std::function<void()> task);
    [[nodiscard]] bool post_at(base::time_point when, std::function<void()> task);
    // Why a task will not run, for whoever waits for it.
    [[nodiscard]] error why_not(std::string_view about);
    // Tasks not yet started are dropped, at once; the one that runs is waited for, unless it is what stops this. With a deadline one that
    // hangs is left behind then: what it uses must live as long as the program.
    void stop(std::optional<base::time_point> deadline = {}) noexcept;

private:
    // The thread's as well, which may be left behind.
    struct state {
        std::mutex mutex;
        std::condition_variable changed, ended;
        std::deque<std::function<void()>> ready;
        std::deque<std::pair<base::time_point, std::function<void()>>> later;
        bool stopping = false;
        bool has_ended = false;

        void run();
        [[nodiscard]] std::optional<std::function<void()>> take_due();
    };
    [[nodiscard]] bool can_run();

    std::shared_ptr<state> const state_ = std::make_shared<state>();
    std::thread thread_;  // by state_->mutex
};

}  // namespace kiln::engine_detail
