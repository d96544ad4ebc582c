// SPDX-License-Identifier: Apache-2.0
// Somebody may come to wait for what was asked for because nobody waits: a pending of artifact() or get(). From then on it is asked for as
// for him, at the front of every line and with the patience of those who wait; and what he waited is counted and told, as if he had asked
// so from the beginning.
#pragma once

#include "engine/coordinator.hpp"

namespace kiln::engine_detail {

class coordinator::awaited {
public:
    explicit awaited(std::shared_ptr<way_back> back) noexcept : back_{std::move(back)} {}

    // What the pending is answered by, as soon as that is known; once more where it is asked for anew.
    void is_for(asked const& what);
    // For pending::state::blocked. The coordinator may be gone. However often somebody looks, a little at a time, it is one wait.
    bool tell(blocked_wait const& how) noexcept;

private:
    std::shared_ptr<way_back> const back_;
    std::uint64_t const generation_ = base::fork_generation();
    std::mutex mutex_;  // the rest
    flight_ptr behind_;
    int waiting_ = 0;
    bool is_told_ = false;
};

}  // namespace kiln::engine_detail
