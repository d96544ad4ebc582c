// SPDX-License-Identifier: Apache-2.0
// Builds the tree of kernels/spatial/tree.cuh on the host.
#pragma once

#include "spatial/tree.cuh"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace kiln::spatial {

class host_tree {
public:
    host_tree() = default;
    explicit host_tree(std::span<kiln_spatial::box const> boxes);

    [[nodiscard]] kiln_spatial::tree view() const noexcept {
        return {nodes_.data(), items_.data(), first_leaf_, top_, static_cast<std::uint32_t>(items_.size()),
                around_.data()};
    }
    // Of n items, before building: nodes and order.
    [[nodiscard]] static std::size_t bytes_for(std::size_t n) noexcept;

private:
    std::vector<kiln_spatial::tree_node> nodes_;
    std::vector<std::uint32_t> items_;
    std::array<kiln_spatial::u64, 4> around_{};
    std::uint32_t first_leaf_ = 0;
    int top_ = 0;
};

// Stable, by 32 bits.
[[nodiscard]] std::vector<std::uint32_t> sorted_by_key(std::span<std::uint32_t const> keys);
[[nodiscard]] kiln_spatial::key_frame frame_of(std::span<kiln_spatial::box const> boxes);

}  // namespace kiln::spatial
