// SPDX-License-Identifier: Apache-2.0
//
// Shapes of the tuned kernels and the choice between them, from measurements on an H200 (docs/measurements/tropical.md).
#pragma once

#include "tropical/problem.hpp"

#include <optional>

namespace kiln::tropical {

// As the device text takes it: see kernels/tropical/tile.cuh.
struct tile_shape {
    int bm, bn, bk, tm, tn, blocks, unroll;

    [[nodiscard]] int threads() const noexcept { return bm / (8 * tm) * (bn / (4 * tn)) * 32; }
    [[nodiscard]] std::int64_t tiles(problem const& p) const noexcept {
        return ((p.m + std::int64_t{bm} - 1) / bm) * ((p.n + std::int64_t{bn} - 1) / bn) * p.batch;
    }
    // "256, 128, 32, ...".
    [[nodiscard]] std::string text() const;
};

struct tuning {
    std::optional<tile_shape> large;  // where it beats `small`
    tile_shape small;
    double large_rate = 1;  // elements of C per multiprocessor and time, relative to `small`
    // Whether several blocks may do a tile: their order must not matter, and they keep no winners.
    bool may_share = false;
};
[[nodiscard]] tuning const& tuning_of(semiring s, scalar type, with_winners arg);

// Dynamic shared memory of a block.
[[nodiscard]] unsigned shared_bytes(tile_shape const& t, scalar type, with_winners arg);

inline constexpr int split_blocks = 8;  // along k, in a cluster: most_parts in the device text
inline constexpr unsigned most_blocks_sharing = 1024;
inline constexpr std::int64_t most_tiles = (std::int64_t{1} << 31) - 1;
// Numbers of blocks of eight steps are kept in 16 bits.
inline constexpr std::int32_t most_steps_with_arg = 8 * 65535;

struct device_facts {
    int multiprocessors = 1;
    bool has_large = false, has_split = false;
};
struct launch_choice {
    kernel_choice kernel = kernel_choice::generic;  // or large, small, split
    bool shares = false;  // tiles that are left over are done by several blocks: see `schedule` in the device text
    bool operator==(launch_choice const&) const = default;
};
[[nodiscard]] launch_choice choose(tuning const& by, problem const& p, with_winners arg, device_facts const& on);
// The same for a kernel that is given.
[[nodiscard]] launch_choice choose(tuning const& by, problem const& p, kernel_choice kernel, device_facts const& on);

}  // namespace kiln::tropical
