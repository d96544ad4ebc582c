// SPDX-License-Identifier: Apache-2.0
//
// One thread that does everything of one remote: tasks posted from anywhere, timers, and sockets that have something to say.
// Started by the first task; nothing it runs may block. A task that throws is a task that ends.
#pragma once

#include "base/clock.hpp"
#include "base/files.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <poll.h>
#include <sys/types.h>
#include <thread>
#include <unordered_map>

namespace kiln::remote {

class reactor {
public:
    using task = std::function<void()>;
    using timer = std::uint64_t;  // 0: none

    reactor() = default;
    ~reactor() { stop(); }
    reactor(reactor const&) = delete;
    reactor& operator=(reactor const&) = delete;

    // False: it will not run. The reactor was stopped, or the machine has no thread or descriptor left.
    [[nodiscard]] bool post(task what);
    // What has not begun is dropped; `last` runs on the thread before it ends. False: at the deadline it had not ended, and is left behind:
    // it does `last` and ends when it can, and this must be left alone from then on.
    bool stop(task last = {}, std::optional<base::time_point> deadline = {}) noexcept;
    // On its own thread, which cannot wait for itself: it ends after this turn, and must be left alone from then on.
    void end_after_this() noexcept;
    [[nodiscard]] bool runs_here() noexcept;
    // For how long something has held it up at one thing, without a look at what else there is; a want of processors does not. From any thread.
    [[nodiscard]] base::clock::duration held_up_for() const noexcept;

    // The rest only on the thread.
    timer at(base::time_point when, task what);
    void cancel(timer& which) noexcept;
    // `what` is told the events poll() reported. Replaces an earlier watch of the same descriptor.
    void watch(int fd, short events, std::function<void(short)> what);
    void unwatch(int fd) noexcept;
    // Waits for descriptors instead of poll(2): a library that has some of its own. Runs after each wait: `after`.
    using waiter = std::function<int(std::vector<::pollfd>& ours, int timeout_ms)>;
    void wait_by(waiter how, task after);

private:
    [[nodiscard]] bool start();
    void run() noexcept;
    void is_busy() noexcept;
    void turn();
    void run_due();
    void report(std::vector<::pollfd> const& ready);
    [[nodiscard]] int pause_ms() const;
    static void guarded(task const& what) noexcept;

    struct watched {
        short events = 0;
        std::function<void(short)> what;
        std::uint64_t since = 0;
    };

    std::mutex mutex_;  // posted_, thread_, wake_, stopping_, last_, has_ended_
    std::condition_variable ended_;
    std::deque<task> posted_;
    std::thread thread_;
    base::file_descriptor wake_;
    bool stopping_ = false;
    task last_;
    bool has_ended_ = false;
    std::atomic<base::clock::rep> busy_since_{0};  // 0: it waits
    std::atomic<::pid_t> thread_id_{0};

    std::map<std::pair<base::time_point, timer>, task> timers_;
    std::unordered_map<timer, base::time_point> rings_at_;
    std::map<int, watched> watched_;
    std::uint64_t count_ = 0;
    waiter wait_;
    task after_;
};

}  // namespace kiln::remote
