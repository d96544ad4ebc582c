// SPDX-License-Identifier: Apache-2.0
//
// What this process may use of the machine: cores by affinity and cgroup quota, memory by what is available and by the
// cgroup's limit. Read from /proc and /sys at the call; nothing is kept.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace kiln::compile {

struct host_resources {
    int cores = 1;
    std::uint64_t free_memory = 0;  // bytes; 0: not known

    // `root` is where proc/ and sys/ are: "/" outside tests. Affinity is always this process's own.
    [[nodiscard]] static host_resources read(std::filesystem::path const& root = "/");
};

// Compiles that fit: one per core, 400 MiB each, at least one.
[[nodiscard]] int fitting_workers(host_resources const& host) noexcept;

// Bytes of precompiled headers each of `workers` may keep: what is wanted, as far as half of what their compiles leave free
// goes (one copy is kept, one is at work) and an eighth of what one may map (0: no bound). 0 where it is too little to be of use.
struct precompiled_wish {
    std::uint64_t bytes = 0;
    std::uint64_t worker_memory = 0;
};
[[nodiscard]] std::uint64_t fitting_precompiled(host_resources const& host, int workers,
                                                precompiled_wish const& wish) noexcept;

// How many processes the kernel has killed for want of memory since boot; nullopt where it does not tell.
[[nodiscard]] std::optional<std::uint64_t> oom_kills(std::filesystem::path const& root = "/");

}  // namespace kiln::compile
