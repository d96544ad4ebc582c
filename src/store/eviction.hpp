// SPDX-License-Identifier: Apache-2.0
//
// Keeps a cache directory within its bound and free of litter. One evictor at a time per directory; whoever finds
// another at work lets it. Only files that look exactly like entries of this format are ever removed.
#pragma once

#include "store/usage.hpp"

#include <chrono>

namespace kiln::store {

struct eviction_limits {
    std::uint64_t max_bytes = 0;  // evict when more than this
    std::uint64_t low_bytes = 0;  // down to this
    std::uint64_t incoming = 0;   // about to be added
    enum class when { always, account_missing } need = when::always;
    std::chrono::seconds stale{3600};  // age of temporaries and lock files to sweep
};

enum class eviction_state { done, busy, unneeded };

struct eviction_report {
    eviction_state state = eviction_state::done;
    std::uint64_t evicted = 0;
    std::uint64_t evicted_bytes = 0;
    std::uint64_t swept = 0;  // temporaries and lock files
    usage left;               // with `incoming`
};

// Counts the files, evicts the least recently used until within the limits, sweeps, and corrects the account.
[[nodiscard]] result<eviction_report> evict(disk_layout const& layout, usage_account& account,
                                            eviction_limits const& limits);

enum class removal { removed, gone, kept };
// Removes one entry file. kept: it is of a newer format and left alone, or unlink failed.
[[nodiscard]] removal remove_entry_file(std::filesystem::path const& path);

// Wall-clock nanoseconds in order of use: those of the future are clamped to `now`, ties keep their order.
void sort_by_use(std::vector<stored_file>& files, std::int64_t now_ns);

// Whether the last sweep is longer ago than `stale`, or there was none.
[[nodiscard]] bool sweep_is_due(disk_layout const& layout, std::chrono::seconds stale);

}  // namespace kiln::store
