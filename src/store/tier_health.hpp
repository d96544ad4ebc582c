// SPDX-License-Identifier: Apache-2.0
// A tier that fails several times running, or takes far too long, is not asked for a while.
#pragma once

#include "base/clock.hpp"
#include "base/fork_guard.hpp"

namespace kiln::store {

struct health_limits {
    unsigned faults_to_rest = 3;
    std::chrono::milliseconds rest{10'000};
    std::chrono::milliseconds slow{2'000};
};

class tier_health {
public:
    explicit tier_health(health_limits limits) : limits_{limits} {}

    [[nodiscard]] bool resting() const {
        std::lock_guard const lock{mutex_};
        return base::clock::now() < resting_until_;
    }
    void faulted() {
        std::lock_guard const lock{mutex_};
        if (++faults_ >= limits_.faults_to_rest) rest();
    }
    // True: it took too long and rests from now on.
    bool answered(std::chrono::nanoseconds took) {
        std::lock_guard const lock{mutex_};
        faults_ = 0;
        if (took <= limits_.slow) return false;
        rest();
        return true;
    }

private:
    void rest() {
        faults_ = 0;
        resting_until_ = base::clock::now() + limits_.rest;
    }
    health_limits limits_;
    mutable base::forkable_mutex mutex_;
    unsigned faults_ = 0;
    base::time_point resting_until_{};
};

}  // namespace kiln::store
