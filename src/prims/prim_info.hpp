// SPDX-License-Identifier: Apache-2.0
// The constants a primitive's device text exports, read from its image: kernels/prims/support.cuh is the other half.
#pragma once

#include "base/bytes.hpp"
#include "base/check.hpp"

#include <array>

namespace kiln::prims {

[[nodiscard]] constexpr std::size_t ceil_div(std::size_t a, std::size_t b) noexcept {
    return a / b + (a % b != 0 ? 1 : 0);
}
[[nodiscard]] constexpr std::size_t aligned_256(std::size_t bytes) noexcept { return ceil_div(bytes, 256) * 256; }

struct prim_info {
    int threads = 0;
    int items = 0;               // per thread
    std::array<int, 11> more{};  // what each algorithm names for itself
    [[nodiscard]] std::size_t tile() const noexcept {
        return static_cast<std::size_t>(threads) * static_cast<std::size_t>(items);
    }
};

[[nodiscard]] result<prim_info> decode_info(base::byte_span data);

// Scratch of a look-back scan over tiles: descriptors, and for types wider than a word two arrays of payloads.
struct tile_states {
    std::size_t descriptor = 0;
    std::size_t payload = 0;
    std::size_t padding = 0;
    [[nodiscard]] std::size_t bytes(std::size_t tiles) const noexcept;
};
[[nodiscard]] tile_states tile_states_of(prim_info const& info) noexcept;

}  // namespace kiln::prims
