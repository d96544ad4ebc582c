// SPDX-License-Identifier: Apache-2.0
//
// One background thread that writes entries to one persistent tier, started by the first one. The queue is bounded: what does
// not fit is refused, never waited for. stop() waits a bounded time and then abandons the rest: the thread is
// detached and ends at its next step. After fork() the child starts afresh with an empty queue.
#pragma once

#include "base/clock.hpp"
#include "base/fork_guard.hpp"
#include "store/flight.hpp"
#include "store/tier.hpp"

#include <functional>

namespace kiln::store {

struct publisher_limits {
    std::size_t entries = 0;
    std::uint64_t bytes = 0;
};

// Why an entry is written: somebody put it, or a tier further away had it.
enum class errand { keep, fill };

class publisher {
public:
    // Both run on the publisher's thread and may outlive this object: they must own what they use.
    struct tasks {
        std::function<void(entry_ptr const&, errand)> publish;
        std::function<void()> idle;  // the queue has just become empty
    };
    publisher(publisher_limits limits, tasks what) : limits_{limits}, tasks_{std::move(what)} {}
    ~publisher() { stop(base::clock::now()); }

    // Flight and claim are let go when the entry was published, or at once when it is refused. False: the queue is full.
    bool enqueue(entry_ptr what, errand why, flight leading, claim_ptr under = {});
    // Runs tasks::idle once more. False: there is nobody to run it.
    bool poke();
    [[nodiscard]] bool wait_idle(base::time_point deadline);
    // Entries that were put and are not written yet.
    [[nodiscard]] std::size_t waiting();
    // False: entries were abandoned.
    bool stop(base::time_point deadline);

private:
    struct state;
    [[nodiscard]] std::shared_ptr<state> current();
    bool push(entry_ptr what, errand why, flight leading, claim_ptr under);

    publisher_limits limits_;
    tasks tasks_;
    base::forkable_mutex mutex_;  // state_
    std::shared_ptr<state> state_;
};

}  // namespace kiln::store
