// SPDX-License-Identifier: Apache-2.0
// One thread that runs tasks in order; started by the first task. A forked child has none of it: engines are made anew there.
#pragma once

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
    // Tasks not yet started are dropped; the one that runs is waited for.
    ~background_thread() { stop(); }
    background_thread(background_thread const&) = delete;
    background_thread& operator=(background_thread const&) = delete;

    // False once stopped, or where no thread can be started: the task will not run.
    bool post(std::function<void()> task);
    bool post_at(base::time_point when, std::function<void()> task);
    void stop() noexcept;

private:
    void run();
    [[nodiscard]] bool start();
    [[nodiscard]] std::optional<std::function<void()>> take_due();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> ready_;
    std::deque<std::pair<base::time_point, std::function<void()>>> later_;
    std::thread thread_;
    bool stopping_ = false;
};

}  // namespace kiln::engine_detail
