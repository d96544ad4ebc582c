// SPDX-License-Identifier: Apache-2.0
// Jobs that wait for a worker, the most urgent first. Not safe for threads by itself: the pool's mutex guards it.
#pragma once

#include "base/digest.hpp"
#include "compile/worker_pool.hpp"

#include <optional>
#include <set>
#include <unordered_map>

namespace kiln::compile {

// Whoever submitted a job is answered once. A job that is dropped on its way, for want of memory, answers as it goes: not under a lock
// that the completion may ask for.
class owed_answer {
public:
    owed_answer() = default;
    owed_answer(worker_pool::completion to) noexcept : to_{std::move(to)} {}
    owed_answer(owed_answer&& other) noexcept : to_{std::exchange(other.to_, nullptr)} {}
    owed_answer& operator=(owed_answer&& other) noexcept {
        drop();
        to_ = std::exchange(other.to_, nullptr);
        return *this;
    }
    ~owed_answer() { drop(); }

    void operator()(result<product> with) {
        if (auto const to = std::exchange(to_, nullptr)) to(std::move(with));
    }

private:
    void drop() noexcept {
        if (to_) (*this)(error{errc::out_of_memory, "out of memory"});
    }
    worker_pool::completion to_;
};

struct queued_job {
    worker_pool::ticket id = 0;
    priority how = priority::predicted;
    job work;
    owed_answer done;
    job_notices tell = {};
    std::optional<base::digest> prefix = {};  // of its headers: source_prefix.hpp
};

class job_queue {
public:
    // Takes it, or throws and leaves it as it is.
    void push(queued_job&& j);
    // The most urgent; of equals the one with the smallest ticket.
    [[nodiscard]] std::optional<queued_job> pop();
    // Of the most urgent the one with the lowest rank, of equals the one with the smallest ticket. What ranks nowhere stays.
    using rank = std::function<std::optional<int>(queued_job const&)>;
    [[nodiscard]] std::optional<queued_job> pop(rank const& by);
    [[nodiscard]] std::optional<queued_job> take(worker_pool::ticket id);
    // False: it is not here.
    bool raise(worker_pool::ticket id, priority how);
    [[nodiscard]] std::size_t size() const noexcept { return jobs_.size(); }
    // How many that somebody waits for, counted to `most`.
    [[nodiscard]] int count_blocking(int most) const noexcept;

private:
    struct place {
        priority how;
        worker_pool::ticket id;
        bool operator<(place const& other) const noexcept { return how != other.how ? how > other.how : id < other.id; }
    };
    std::set<place> order_;
    std::unordered_map<worker_pool::ticket, queued_job> jobs_;
};

}  // namespace kiln::compile
