// SPDX-License-Identifier: Apache-2.0
// Work on files that may hang, for somebody who cannot: a program that ends.
#pragma once

#include "base/clock.hpp"
#include "base/quiet_thread.hpp"

#include <condition_variable>
#include <memory>
#include <mutex>

namespace kiln::base {

// False: it is not done by `deadline`, and goes on, on a thread of its own that nobody waits for any more; so it must own what it uses, and
// throw nothing. Or there was no thread for it.
template <class Work>
bool within(time_point deadline, Work work) {
    struct outcome {
        std::mutex mutex;
        std::condition_variable told;
        bool is_done = false;
    };
    auto const shared = std::make_shared<outcome>();
    auto thread = start_quiet_thread([shared, work = std::move(work)]() mutable {
        work();
        std::lock_guard const lock{shared->mutex};
        shared->is_done = true;
        shared->told.notify_one();
    });
    if (!thread) return false;
    thread->detach();
    std::unique_lock lock{shared->mutex};
    return shared->told.wait_until(lock, deadline, [&] { return shared->is_done; });
}

}  // namespace kiln::base
