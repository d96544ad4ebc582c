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
    // Tasks not yet started are dropped, at once; the one that runs is waited for.
    void stop() noexcept;

private:
    void run();
    [[nodiscard]] bool can_run();
    [[nodiscard]] std::optional<std::function<void()>> take_due();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> ready_;
    std::deque<std::pair<base::time_point, std::function<void()>>> later_;
    std::thread thread_;
    bool stopping_ = false;
};

}  // namespace kiln::engine_detail
