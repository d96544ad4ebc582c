// SPDX-License-Identifier: Apache-2.0
// When a server is asked at all. Three failures running open it, and look-ups cost nothing from then on; after a second, then
// two, up to a minute, one question in the background tries again. And when it is waited for: one that falls silent costs its bound
// once, not once for each question; it is still asked, and waited for again when it has said something. Any thread may ask is_open(),
// is_silent() and is_out_of_reach(); the rest on the reactor's thread.
#pragma once

#include "base/clock.hpp"
#include "remote/byte_server.hpp"

#include <atomic>

namespace kiln::remote {

class breaker {
public:
    [[nodiscard]] bool is_open() const noexcept { return open_.load(std::memory_order_acquire); }
    // Nobody is given time for it now: it is open, or the first connection takes longer than anybody waits.
    [[nodiscard]] bool is_out_of_reach() const noexcept {
        return is_open() || slow_start_.load(std::memory_order_acquire);
    }
    // It answered before, and says nothing now, or says it too late time after time.
    [[nodiscard]] bool is_silent() const noexcept { return silent_.load(std::memory_order_acquire); }
    // The time of whoever asked at `asked` is over.
    void late(base::time_point asked) noexcept;
    // It said something, to whatever.
    void heard() noexcept;
    // It took what was sent.
    void took() noexcept;
    // True once per pause: whoever gets it tries the server, in the background.
    [[nodiscard]] bool may_try() noexcept {
        return is_open() && base::now_ns() >= retry_at_.load(std::memory_order_acquire) &&
               !trying_.exchange(true, std::memory_order_acq_rel);
    }
    // True: it was closed until now.
    bool failed(failure const& why);
    // True: it was open until now.
    enum class pace { in_time, too_late };
    bool answered(pace how = pace::in_time) noexcept;
    [[nodiscard]] std::uint64_t opened() const noexcept { return opened_; }
    // It does not let us in.
    [[nodiscard]] bool is_denied() const noexcept { return denied_.load(std::memory_order_acquire); }
    // There was no reason to try: asked again after the shortest pause.
    void try_later() noexcept;

private:
    void open(std::chrono::milliseconds pause) noexcept;

    std::atomic<bool> open_{false}, trying_{false}, denied_{false}, slow_start_{false}, silent_{false};
    bool ever_answered_ = false;
    std::atomic<std::int64_t> retry_at_{0};
    unsigned failures_ = 0;
    base::time_point heard_at_{}, late_at_{};
    unsigned lates_ = 0;  // running, each of somebody who asked after the last
    std::chrono::milliseconds pause_{0};
    std::uint64_t opened_ = 0;
};

}  // namespace kiln::remote
