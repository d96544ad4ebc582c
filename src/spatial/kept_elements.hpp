// SPDX-License-Identifier: Apache-2.0
// The elements of a layer under a tree, and where they meet those of another.
#pragma once

#include "spatial/kept_layer.hpp"
#include "spatial/kept_tree.hpp"
#include "spatial/segment_intersection.cuh"

#include <optional>

namespace kiln::spatial {

struct kept_elements {
    kept_tree tree;
    buffer<kiln_spatial::segment> in_order;  // of the leaves
    kept_worlds worlds;                      // where they are several, elements of one are next to each other:
    buffer<std::int32_t> world_first;        // by number, one more: where they begin

    // One fence where paths are short.
    [[nodiscard]] static result<kept_elements> make(queue& on, kept_layer const& of, kept_worlds const& worlds = {});
    [[nodiscard]] bool are_in(kept_worlds const& other) const noexcept { return worlds.data() == other.data(); }
};

// Elements of two layers that are not apart.
struct contacts {
    buffer<std::int32_t> left, right;
    buffer<std::uint8_t> how;      // segment_contact; `apart` for what turned out to be
    buffer<std::uint64_t> aparts;  // how many of those
    bool in_order = false;         // by left, then right; else in no particular order
    std::size_t at_once = 0;       // so many of the first come in an order that is always the same
    [[nodiscard]] std::size_t size() const noexcept { return left.size(); }
    [[nodiscard]] kiln_spatial::contact_list list() const noexcept { return {left.data(), right.data(), how.data()}; }
};
// One fence, and a second where some elements have much to look at; one more where paths are short, and have to be put in order.
[[nodiscard]] result<contacts> find_contacts(queue& on, kept_layer const& a, kept_layer const& b,
                                             kept_elements const& of_b, kiln_spatial::rows_wanted rows);

// Elements of short paths such that neighbours are together; nothing where they are as they come.
struct asking_order {
    buffer<std::int32_t> vertices;
    buffer<kiln_spatial::segment> elements;
    [[nodiscard]] static result<std::optional<asking_order>> of(queue& on, kept_layer const& a,
                                                                kept_elements const& of_b);
};
[[nodiscard]] result<contacts> find_contacts(queue& on, kept_layer const& a, kept_layer const& b,
                                             kept_elements const& of_b, kiln_spatial::rows_wanted rows,
                                             std::optional<asking_order> const& order);

// Segments that cross where a is moved by (e, e^2), e infinitesimal (kernels/spatial/moved_crossings.cuh): `how` is how they do, crossed_not for what turned out not
// to. Fences as above.
[[nodiscard]] result<contacts> find_crossings_of_moved(queue& on, kept_layer const& a, kept_layer const& b,
                                                       kept_elements const& of_b);

}  // namespace kiln::spatial
