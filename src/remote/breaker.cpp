// SPDX-License-Identifier: Apache-2.0
#include "remote/breaker.hpp"

#include <algorithm>
#include <random>

namespace kiln::remote {

namespace {

constexpr unsigned failures_to_open = 3;
constexpr unsigned lates_to_believe = 3;
constexpr std::chrono::milliseconds shortest{1'000};
constexpr std::chrono::milliseconds longest{60'000};

// Up to a quarter more or less, so that many machines do not come back together.
std::chrono::milliseconds jittered(std::chrono::milliseconds pause) {
    thread_local std::minstd_rand random{std::random_device{}()};
    std::uniform_int_distribution<std::int64_t> part{-pause.count() / 4, pause.count() / 4};
    return pause + std::chrono::milliseconds{part(random)};
}

}  // namespace

void breaker::open(std::chrono::milliseconds pause) noexcept {
    auto const until = base::clock::now() + pause;
    retry_at_.store(std::chrono::duration_cast<std::chrono::nanoseconds>(until.time_since_epoch()).count(),
                    std::memory_order_release);
    open_.store(true, std::memory_order_release);
    trying_.store(false, std::memory_order_release);
}

bool breaker::failed(failure const& why) {
    bool const was_open = is_open();
    // What was asked before it opened says nothing new: an outage with many questions under way is one outage.
    if (was_open && !trying_.load(std::memory_order_acquire)) return false;
    ++failures_;
    slow_start_.store(false, std::memory_order_release);
    // A server that never was there, or was silent before, is not tried three times before it is believed.
    bool const at_once = why.what == trouble::denied || why.what == trouble::busy || why.what == trouble::library ||
                         !ever_answered_ || is_silent();
    if (!was_open && !at_once && failures_ < failures_to_open) return false;
    if (why.what == trouble::denied) denied_.store(true, std::memory_order_release);
    pause_ = std::clamp(pause_ * 2, shortest, longest);
    auto const asked_for = std::min(why.retry_after, longest);
    open(asked_for.count() > 0 ? asked_for : jittered(pause_));
    if (!was_open) ++opened_;
    return !was_open;
}

void breaker::late(base::time_point asked) noexcept {
    if (!ever_answered_) return slow_start_.store(true, std::memory_order_release);
    if (asked >= late_at_) {
        late_at_ = base::clock::now();
        ++lates_;
    }
    if (heard_at_ < asked || lates_ >= lates_to_believe) silent_.store(true, std::memory_order_release);
}

void breaker::heard() noexcept {
    heard_at_ = base::clock::now();
    ever_answered_ = true;
    if (lates_ < lates_to_believe) silent_.store(false, std::memory_order_release);
}

void breaker::took() noexcept {
    heard();
    failures_ = 0;
}

bool breaker::answered(pace how) noexcept {
    if (how == pace::in_time) lates_ = 0;
    heard();
    failures_ = 0;
    slow_start_.store(false, std::memory_order_release);
    pause_ = std::chrono::milliseconds{0};
    denied_.store(false, std::memory_order_release);
    trying_.store(false, std::memory_order_release);
    return open_.exchange(false, std::memory_order_acq_rel);
}

void breaker::try_later() noexcept { open(shortest); }

}  // namespace kiln::remote
