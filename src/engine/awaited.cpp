// SPDX-License-Identifier: Apache-2.0
#include "engine/awaited.hpp"

#include "engine/flight.hpp"
#include "engine/thread_role.hpp"

namespace kiln::engine_detail {

std::shared_ptr<coordinator::awaited> coordinator::make_awaited() const {
    return std::make_shared<awaited>(hand().back);
}

void coordinator::awaited::is_for(asked const& what) {
    {
        std::lock_guard const lock{mutex_};
        behind_ = what.behind;
        if (waiting_ == 0) return;
    }
    back_->with_coordinator([&](coordinator& c) { c.raise(what.behind, priority::blocking); });
}

bool coordinator::awaited::tell(blocked_wait const& how) noexcept {
    // Whoever would answer is in the parent, and the locks are its.
    if (generation_ != base::fork_generation()) return false;
    // What the warm-up waits for nobody waits for.
    if (thread_role::current().what != thread_role::kind::caller) return true;
    flight_ptr f;
    bool is_first = false;
    {
        std::lock_guard const lock{mutex_};
        waiting_ += how.is_over ? -1 : 1;
        f = behind_;
        // Found at the first look: that it was done on another thread is no wait.
        if (how.is_over && f && f->missed) is_first = !std::exchange(is_told_, true);
    }
    if (!f) return true;
    if (!how.is_over) back_->with_coordinator([&](coordinator& c) { c.raise(f, priority::blocking); });
    else if (f->missed) {
        back_->with_coordinator([&](coordinator& c) {
            if (is_first || how.is_answered) c.book_.waited(f->line(), f->target, how.time.count());
            c.tell_wait(f->order, {.ns = how.time.count(), .is_answered = how.is_answered, .is_first = is_first});
        });
    }
    return true;
}

}  // namespace kiln::engine_detail
