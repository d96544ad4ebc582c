// SPDX-License-Identifier: Apache-2.0
// Bytes the caller could not use: remembered for the life of the process so that no tier offers them again.
#pragma once

#include "base/fork_guard.hpp"
#include "store/tier.hpp"

#include <atomic>
#include <mutex>
#include <set>

namespace kiln::store {

class refusals {
public:
    void add(digest const& key, digest const& payload) {
        std::lock_guard const lock{mutex_};
        refused_.emplace(key, payload);
        any_.store(true, std::memory_order_release);
    }
    // Cheap while nothing was ever refused: callers can skip making the digest.
    [[nodiscard]] bool any() const noexcept { return any_.load(std::memory_order_acquire); }
    [[nodiscard]] bool has(digest const& key, digest const& payload) const {
        if (!any()) return false;
        std::lock_guard const lock{mutex_};
        return refused_.contains({key, payload});
    }

private:
    mutable base::forkable_mutex mutex_;
    std::set<std::pair<digest, digest>> refused_;
    std::atomic<bool> any_{false};
};

}  // namespace kiln::store
