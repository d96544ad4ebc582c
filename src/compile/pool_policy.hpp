// SPDX-License-Identifier: Apache-2.0
// The pool's rules, apart from its machinery: how long a job may take and how often it is tried, how many workers run when
// memory is short, and when starting workers is given up for a while. Plain values; time comes in as an argument.
#pragma once

#include "base/clock.hpp"
#include "base/digest.hpp"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <vector>

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

// What a worker has had of the machine since it was started, all threads together.
struct worker_time {
    std::chrono::nanoseconds used{};  // on a CPU
    bool wants_more = false;          // has one, or would if others had none
};

// How long a worker may be at a job. A healthy compile takes long where the machine has no time for it, so what counts is
// the CPU time the worker had. It is given up
//   - when it has used the limit in CPU time, and the limit has passed: the threads of a link add up;
//   - when it has used next to none for as long as the limit, and was not waiting for a CPU either: it hangs;
//   - after ten times the limit, whatever it does.
// Where CPU time cannot be read, the limit is all there is.
class patience {
public:
    using duration = std::chrono::nanoseconds;
    static constexpr int looks = 10;           // in the time of one limit
    static constexpr int next_to_none = 1000;  // a limit's part
    static constexpr int most_limits = 10;

    patience() = default;
    // `had` is what the worker had had before, here and below; nullopt: nobody can tell.
    patience(base::time_point now, duration limit, std::optional<worker_time> had) noexcept
        : limit_{limit},
          begun_{now},
          cpu_begun_{had.value_or(worker_time{}).used},
          progressed_{now},
          cpu_progressed_{cpu_begun_},
          next_look_{now + limit / looks} {}

    // Why it is given up; nullopt: it may go on, until the next look at least.
    [[nodiscard]] std::optional<std::string> exhausted(base::time_point now, std::optional<worker_time> had) {
        next_look_ = now + limit_ / looks;
        if (had && (had->wants_more || had->used - cpu_progressed_ >= limit_ / next_to_none)) {
            progressed_ = now;
            cpu_progressed_ = had->used;
        }
        if (now - begun_ < limit_) return std::nullopt;
        if (!had) return fmt::format("no result within {} ms", in_ms(limit_));
        if (had->used - cpu_begun_ >= limit_) return fmt::format("no result within {} ms of CPU time", in_ms(limit_));
        if (now - progressed_ >= limit_) return fmt::format("no result, and no CPU time used for {} ms", in_ms(limit_));
        if (now - begun_ >= most_limits * limit_)
            return fmt::format("no result within {} ms", in_ms(most_limits * limit_));
        return std::nullopt;
    }
    [[nodiscard]] base::time_point next_look() const noexcept { return next_look_; }

    // Time that does not count.
    void excuse(duration span) noexcept {
        begun_ += span;
        progressed_ += span;
    }

private:
    [[nodiscard]] static std::int64_t in_ms(duration d) noexcept {
        return std::chrono::duration_cast<std::chrono::milliseconds>(d).count();
    }

    duration limit_{};
    base::time_point begun_{};
    duration cpu_begun_{};
    base::time_point progressed_{};
    duration cpu_progressed_{};
    base::time_point next_look_{};
};

// What nobody waits for is compiled in a worker that steps back for everybody else, which a process cannot take back. When somebody
// waits for it by then, and others leave it less than a quarter of a CPU, it is begun anew in a worker that has not stepped back.
class starvation {
public:
    static constexpr std::uint8_t nice = 15;
    static constexpr std::chrono::milliseconds span{200};  // one look
    static constexpr int part = 4;

    // Called when somebody waits; nullopt: nobody can tell. True: it gets too little.
    [[nodiscard]] bool seen(base::time_point now, std::optional<worker_time> had) noexcept {
        if (!had) {
            from_ = now;  // and look again no sooner
            return false;
        }
        if (from_ && now - *from_ < span) return false;
        bool const starved = from_ && had->wants_more && had->used - used_ < (now - *from_) / part;
        from_ = now;
        used_ = had->used;
        return starved;
    }
    [[nodiscard]] base::time_point next_look() const noexcept { return from_ ? *from_ + span : base::time_point{}; }

private:
    std::optional<base::time_point> from_;
    std::chrono::nanoseconds used_{};
};

// Whether a worker is the one for a job, by the precompiled header the job would use; the first is the best.
enum class steering {
    here,     // this worker has it
    nowhere,  // none has it: whoever makes it is as good as the next
    busy,     // workers that are at work have it: better made twice than waited for
    idle,     // another one has it and is free to take the job
};

// Of which prefixes a worker has, or is making, precompiled headers: as many as are likely to fit.
class recent_prefixes {
public:
    static constexpr std::size_t most = 4;

    void add(base::digest const& prefix) {
        std::erase(all_, prefix);
        all_.insert(all_.begin(), prefix);
        if (all_.size() > most) all_.pop_back();
    }
    [[nodiscard]] bool has(base::digest const& prefix) const { return std::ranges::find(all_, prefix) != all_.end(); }

private:
    std::vector<base::digest> all_;
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
