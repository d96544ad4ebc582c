// SPDX-License-Identifier: Apache-2.0
#include "spatial/tree.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

namespace kiln::spatial {

namespace {

using namespace kiln_spatial;

// Nodes of each level, leaves first, and where each level begins in the heap's numbering.
struct shape {
    std::array<std::size_t, 12> count{}, first{};
    int levels = 0;

    explicit shape(std::size_t items) {
        do count[static_cast<std::size_t>(levels++)] = items = (items + 7) / 8;
        while (items > 1);
        std::size_t at = 0, width = 1;
        for (auto l = static_cast<std::size_t>(levels); l-- > 0; at += width, width *= 8) first[l] = at;
    }
    [[nodiscard]] std::size_t nodes() const { return first[0] + count[0]; }
};

constexpr float infinity = std::numeric_limits<float>::infinity();

tree_node empty_node() {
    tree_node out;
    std::fill(std::begin(out.min_x), std::end(out.min_x), infinity);
    std::fill(std::begin(out.min_y), std::end(out.min_y), infinity);
    std::fill(std::begin(out.max_x), std::end(out.max_x), -infinity);
    std::fill(std::begin(out.max_y), std::end(out.max_y), -infinity);
    return out;
}

rough_box around(tree_node const& n) {
    return {*std::min_element(n.min_x, n.min_x + 8), *std::min_element(n.min_y, n.min_y + 8),
            *std::max_element(n.max_x, n.max_x + 8), *std::max_element(n.max_y, n.max_y + 8)};
}

}  // namespace

std::vector<std::uint32_t> sorted_by_key(std::span<std::uint32_t const> keys) {
    std::vector<std::uint32_t> order(keys.size()), other(keys.size());
    std::iota(order.begin(), order.end(), 0U);
    for (int shift = 0; shift < 32; shift += 8) {
        std::array<std::size_t, 257> at{};
        for (auto const key : keys) ++at[(key >> shift & 0xff) + 1];
        std::partial_sum(at.begin(), at.end(), at.begin());
        for (auto const i : order) other[at[keys[i] >> shift & 0xff]++] = i;
        order.swap(other);
    }
    return order;
}

key_frame frame_of(std::span<box const> boxes) {
    double const far = std::numeric_limits<double>::infinity();
    box all{far, far, -far, -far};
    for (auto const& b : boxes) {
        all.min_x = std::min(all.min_x, b.min_x), all.min_y = std::min(all.min_y, b.min_y);
        all.max_x = std::max(all.max_x, b.max_x), all.max_y = std::max(all.max_y, b.max_y);
    }
    auto const scale = [](double from, double to) { return to > from ? 65535 / (to - from) : 0.0; };
    return {all.min_x, all.min_y, scale(all.min_x, all.max_x), scale(all.min_y, all.max_y)};
}

host_tree::host_tree(std::span<box const> boxes) {
    if (boxes.empty()) return;
    auto const frame = frame_of(boxes);
    std::vector<std::uint32_t> keys(boxes.size());
    std::transform(boxes.begin(), boxes.end(), keys.begin(), [&](box const& b) { return box_key(frame, b); });
    items_ = sorted_by_key(keys);
    around_ = {ordered(frame.x), ordered(frame.y)};

    shape const s{boxes.size()};
    nodes_.assign(s.nodes(), empty_node());
    for (std::size_t i = 0; i < items_.size(); ++i)
        set_child(nodes_[s.first[0] + i / 8], i % 8, outwards_from(around_.data(), boxes[items_[i]]));
    for (std::size_t l = 1; l < static_cast<std::size_t>(s.levels); ++l)
        for (std::size_t i = 0; i < s.count[l - 1]; ++i)
            set_child(nodes_[s.first[l] + i / 8], i % 8, around(nodes_[s.first[l - 1] + i]));
    first_leaf_ = static_cast<std::uint32_t>(s.first[0]);
    top_ = s.levels - 1;
}

std::size_t host_tree::bytes_for(std::size_t n) noexcept {
    return n == 0 ? 0 : shape{n}.nodes() * sizeof(tree_node) + n * sizeof(std::uint32_t);
}

}  // namespace kiln::spatial
