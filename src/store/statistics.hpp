// SPDX-License-Identifier: Apache-2.0
//
// The counters of a store: plain numbers, added up over all processes that share a directory. The file that keeps
// them is replaced whole under a short lock; a process that finds the lock busy tries again later, and one that is
// killed loses what it had not added yet. Counters of newer versions are carried along unread.
#pragma once

#include "base/bytes.hpp"
#include "base/check.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace kiln::store {

using counter_map = std::map<std::string, std::uint64_t, std::less<>>;

struct statistics {
    // Kernels asked for: those found (counted by the store), compiled and failed (counted by the engine).
    std::uint64_t requests = 0;
    std::uint64_t compiled = 0;
    std::uint64_t failed = 0;
    std::uint64_t blocked = 0;     // requests that made a caller wait; counted by the engine
    std::uint64_t blocked_ms = 0;  // how long, together
    std::uint64_t published = 0;   // entries written to the disk
    std::uint64_t evicted = 0;     // entries removed to keep the bound
    std::uint64_t evicted_bytes = 0;
    std::uint64_t dropped = 0;    // puts not persisted: queue full, resting, too large
    std::uint64_t divergent = 0;  // puts whose bytes differed from the valid entry already there
    std::uint64_t since = 0;      // when counting began, in seconds since 1970; 0: not known, or nothing counted yet
    counter_map hits{};           // by tier: what was used, not what was looked at
    counter_map rejected{};       // by reason
    counter_map errors{};         // by reason
    counter_map fleet{};          // of tiers far away: asked, misses, late, bytes, leases, ...
    counter_map other{};          // names this version does not know

    // Of the requests, those that were hits.
    [[nodiscard]] std::uint64_t found() const noexcept;
    void add(statistics const& more);
    [[nodiscard]] bool empty() const noexcept;
    bool operator==(statistics const&) const = default;
};

[[nodiscard]] base::bytes encode_statistics(statistics const& s);
// errc::corrupt for anything encode_statistics() did not write.
[[nodiscard]] result<statistics> decode_statistics(base::byte_span data);

// Sum so far; zeros where there is no file or it is damaged.
[[nodiscard]] result<statistics> read_statistics(std::filesystem::path const& file);
// Adds under flock on `lock`. False: the lock was busy and nothing was added; keep the numbers and try later.
[[nodiscard]] result<bool> add_statistics(std::filesystem::path const& file, std::filesystem::path const& lock,
                                          statistics const& more);

}  // namespace kiln::store
