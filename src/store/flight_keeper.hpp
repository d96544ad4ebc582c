// SPDX-License-Identifier: Apache-2.0
//
// Counts in the lock files of the flights this process leads, so that those who wait see that it is at work. One thread, there
// only while something is led; a process that is stopped does not count, which is what tells it from one that compiles.
#pragma once

#include "base/fork_guard.hpp"
#include "store/flight.hpp"

namespace kiln::store {

class flight_keeper {
public:
    explicit flight_keeper(std::chrono::milliseconds interval) : interval_{interval} {}
    // Waits a fifth of a second for a beat in progress: a file system that hangs does not make the program hang.
    ~flight_keeper();
    flight_keeper(flight_keeper const&) = delete;
    flight_keeper& operator=(flight_keeper const&) = delete;

    // Until it is let go. Where no thread can be had, or all have ended, it is not kept, and others give up on it in time.
    void keep(flight const& leading);
    // Where nothing is led any more its thread is gone afterwards, and not at its next beat. Waits as the destructor does.
    void rest();

private:
    struct state;
    std::chrono::milliseconds interval_;
    base::forkable_mutex mutex_;  // state_
    std::shared_ptr<state> state_;
};

}  // namespace kiln::store
