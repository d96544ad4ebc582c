// SPDX-License-Identifier: Apache-2.0
// The pool's rules, apart from its machinery: how often a job is tried, how many workers run when memory is short, and
// when starting workers is given up for a while. Plain values; time comes in as an argument.
#pragma once

#include "base/clock.hpp"

#include <algorithm>
#include <chrono>
#include <string>

namespace kiln::compile {

// What can become of a worker in the middle of a job.
enum class mishap { crashed, killed, hung, memory };

// A crash, a hang or a lack of memory is most likely the job's own doing: one more try. A kill from outside is not: a few
// more, so that jobs outlive somebody who kills every worker, and more than once.
class attempts {
public:
    void add(mishap what) noexcept { ++(what == mishap::killed ? killed_ : own_); }
    [[nodiscard]] bool may_try_again() const noexcept { return own_ < 2 && killed_ < 5; }
    [[nodiscard]] int count() const noexcept { return own_ + killed_; }
    // May this job run inside the host process, where a crash would take the host along?
    [[nodiscard]] bool harmless() const noexcept { return own_ == 0; }

private:
    int own_ = 0;
    int killed_ = 0;
};

// Halves when a worker ran out of memory, doubles again in quiet times.
class concurrency_limit {
public:
    static constexpr std::chrono::seconds one_event{1};  // workers that die together are one shortage, not many
    static constexpr std::chrono::seconds recovery{10};

    explicit concurrency_limit(int capacity) noexcept : capacity_{capacity}, limit_{capacity} {}

    void halve(base::time_point now) noexcept {
        if (limit_ < capacity_ && now - changed_ < one_event) return;
        limit_ = std::max(1, limit_ / 2);
        changed_ = now;
    }
    [[nodiscard]] int at(base::time_point now) noexcept {
        while (limit_ < capacity_ && now - changed_ >= recovery) {
            limit_ = std::min(capacity_, limit_ * 2);
            changed_ += recovery;
        }
        return limit_;
    }
    [[nodiscard]] base::time_point next_change() const noexcept {
        return limit_ < capacity_ ? changed_ + recovery : base::time_point::max();
    }

private:
    int capacity_;
    int limit_;
    base::time_point changed_{};
};

// Whether it is worth starting workers. Workers that end before they said hello are counted in rounds: sixteen started
// together and killed together are one failure. What succeeded once is tried again after a rest.
class start_trouble {
public:
    static constexpr int most_rounds = 3;
    static constexpr std::chrono::seconds rest{30};

    void ended_early(base::time_point started, base::time_point now, std::string why) {
        if (started < counted_) return;
        counted_ = now;
        if (++rounds_ >= most_rounds) give_up(now, std::move(why));
    }
    void give_up(base::time_point now, std::string why) {
        rounds_ = 0;
        until_ = now + rest;
        why_ = std::move(why);
    }
    void succeeded() noexcept { rounds_ = 0; }
    [[nodiscard]] bool resting(base::time_point now) const noexcept { return now < until_; }
    [[nodiscard]] base::time_point until() const noexcept { return until_; }
    [[nodiscard]] std::string const& why() const noexcept { return why_; }

private:
    int rounds_ = 0;
    base::time_point counted_{};
    base::time_point until_{};
    std::string why_;
};

}  // namespace kiln::compile
