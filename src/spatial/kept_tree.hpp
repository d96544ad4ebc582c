// SPDX-License-Identifier: Apache-2.0
// The tree of kernels/spatial/tree.cuh over boxes, built where a queue runs.
#pragma once

#include "spatial/queue.hpp"
#include "spatial/tree.cuh"

#include <kiln/spatial/join.hpp>

#include <functional>
#include <optional>

namespace kiln::spatial {

class kept_tree {
public:
    kept_tree() = default;
    // Boxes that are turned round (min_x > max_x) are in it and never met. No fence.
    [[nodiscard]] static result<kept_tree> make(queue& on, buffer<kiln_spatial::box> const& boxes);

    // Of other things, with keys (which are sorted) and numbers of their own; `leaves` then sets the children of the leaves, of
    // which there are `slots`, from the tree's items(). in_order() has none of them. `regroup`, where there is one, may put items that
    // are in order into another one. No fence.
    using regrouper = std::function<result<void>(buffer<std::int32_t>& items)>;
    using leaf_maker =
        std::function<result<void>(kept_tree const& of, kiln_spatial::tree_node* leaves, std::size_t slots)>;
    [[nodiscard]] static result<kept_tree> make(queue& on, buffer<std::uint64_t> const& around,
                                                buffer<std::int32_t>& keys, buffer<std::int32_t> const& items,
                                                regrouper const& regroup, leaf_maker const& leaves);

    [[nodiscard]] kiln_spatial::tree view() const noexcept;
    [[nodiscard]] buffer<std::int32_t> const& items() const noexcept { return items_; }            // by leaf
    [[nodiscard]] kiln_spatial::box const* in_order() const noexcept { return in_order_.data(); }  // of the leaves
    // Was it made of these?
    [[nodiscard]] bool is_of(buffer<kiln_spatial::box> const& boxes) const noexcept {
        return boxes.data() == of_ && boxes.size() == size();
    }
    // The box around everything, for frame_of_extent().
    [[nodiscard]] kiln_spatial::u64 const* around() const noexcept {
        return reinterpret_cast<kiln_spatial::u64 const*>(around_.data());
    }
    [[nodiscard]] std::size_t size() const noexcept { return items_.size(); }
    [[nodiscard]] std::size_t bytes() const noexcept;

    // A level of the tree that parts the work of `queries` queries into about `pieces`.
    struct cut {
        std::uint32_t first_node = 0, nodes = 1;
        std::int32_t level = 0;  // levels below them
    };
    [[nodiscard]] cut cut_for(std::size_t queries, std::size_t pieces) const noexcept;
    // The nodes with so many levels below them; none below the leaves.
    [[nodiscard]] cut nodes_of(std::int32_t level) const noexcept;

private:
    template <class Leaves>
    [[nodiscard]] result<void> build(queue& on, buffer<std::int32_t>& keys, Leaves const& leaves,
                                     regrouper const& regroup = {});

    buffer<kiln_spatial::tree_node> nodes_;
    buffer<std::int32_t> items_;
    buffer<kiln_spatial::box> in_order_;
    buffer<std::uint64_t> around_;
    kiln_spatial::box const* of_ = nullptr;
    std::uint32_t first_leaf_ = 0;
    int top_ = 0;
};

// Numbers of boxes such that neighbours are together, as the tree has them.
[[nodiscard]] result<buffer<std::int32_t>> order_for(queue& on, kept_tree const& in,
                                                     buffer<kiln_spatial::box> const& asked);
// Pairs of boxes that are no more than `distance` apart: by asked, then by number in the tree. One fence, and two more where
// some have many.
[[nodiscard]] result<pair_list> query_boxes(queue& on, kept_tree const& in, buffer<kiln_spatial::box> const& asked,
                                            double distance);
// Up to so many boxes are held against each other one by one: half a millisecond on an H200, whatever they meet.
inline constexpr std::size_t most_held_together = std::size_t{1} << 31;
// Nothing where there are more than `most`: they are counted, and not listed. Queries that have much to look at are held against all
// boxes where that is no more than `together`; else they are searched for in the tree, and what they meet is sorted.
[[nodiscard]] result<std::optional<pair_list>> query_boxes(queue& on, kept_tree const& in,
                                                           buffer<kiln_spatial::box> const& asked, double distance,
                                                           std::size_t most, std::size_t together = most_held_together);

}  // namespace kiln::spatial
