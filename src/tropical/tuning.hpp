// SPDX-License-Identifier: Apache-2.0
//
// Shapes of the tuned kernels and the choice between them, from measurements on an H200 (docs/measurements/tropical.md).
#pragma once

#include "tropical/problem.hpp"

#include <optional>

namespace kiln::tropical {

// As the device text takes it: see `tile` in kernels/tropical/product.cu.
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
    double large_rate = 1;  // elements of C per block and time, relative to `small`
};
[[nodiscard]] tuning const& tuning_of(scalar type, with_winners arg);

// Dynamic shared memory of a block.
[[nodiscard]] unsigned shared_bytes(tile_shape const& t, scalar type, with_winners arg);

inline constexpr int split_blocks = 8;  // along k, in a cluster
// Numbers of blocks of eight steps are kept in 16 bits.
inline constexpr std::int32_t most_steps_with_arg = 8 * 65535;

struct device_facts {
    int multiprocessors = 1;
    bool has_large = false, has_split = false;
};
// One of generic, large, small, split.
[[nodiscard]] kernel_choice choose(tuning const& by, problem const& p, with_winners arg, device_facts const& on);

}  // namespace kiln::tropical
