// SPDX-License-Identifier: Apache-2.0
#include "spatial/kept_tree.hpp"

#include "spatial/spatial_index.cuh"

#include <algorithm>

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

// Nodes of each level, leaves first, and where each level begins in the heap's numbering.
struct shape {
    std::array<std::size_t, 12> count{}, first{};
    std::size_t levels = 0;

    explicit shape(std::size_t items) {
        do count[levels++] = items = (items + 7) / 8;
        while (items > 1);
        std::size_t at = 0, width = 1;
        for (auto l = levels; l-- > 0; at += width, width *= 8) first[l] = at;
    }
    [[nodiscard]] std::size_t nodes() const { return first[0] + count[0]; }
};

}  // namespace

result<kept_tree> kept_tree::make(queue& on, buffer<box> const& boxes) {
    kept_tree out;
    auto const n = boxes.size();
    if (n == 0) return out;
    out.of_ = boxes.data();
    KILN_TRY(out.around_, on.filled<std::uint64_t>(4, ~0U));
    auto* const around = reinterpret_cast<u64*>(out.around_.data());
    auto const threads = std::min(4 * on.threads(), n);
    KILN_CHECK(on.launch(box_extent{boxes.data(), n, threads, around}, threads));
    KILN_TRY(auto keys, on.room<std::int32_t>(n));
    KILN_TRY(out.items_, on.room<std::int32_t>(n));
    KILN_CHECK(on.launch(make_box_keys{boxes.data(), around, keys.data(), out.items_.data()}, n));
    KILN_TRY(out.in_order_, on.room<box>(n));
    KILN_CHECK(out.build(on, keys, [&](tree_node* leaves, std::size_t slots) {
        return on.launch(make_leaves{leaves, boxes.data(), out.items_.data(), n, out.in_order_.data(), around}, slots);
    }));
    return out;
}

result<kept_tree> kept_tree::make(queue& on, buffer<std::uint64_t> const& around, buffer<std::int32_t>& keys,
                                  buffer<std::int32_t> const& items, regrouper const& regroup,
                                  leaf_maker const& leaves) {
    kept_tree out;
    if (items.size() == 0) return out;
    out.around_ = around, out.items_ = items;
    KILN_CHECK(out.build(
        on, keys, [&](tree_node* to, std::size_t slots) { return leaves(out, to, slots); }, regroup));
    return out;
}

template <class Leaves>
result<void> kept_tree::build(queue& on, buffer<std::int32_t>& keys, Leaves const& leaves, regrouper const& regroup) {
    KILN_CHECK(on.sort(keys, items_));
    if (regroup) KILN_CHECK(regroup(items_));
    shape const s{items_.size()};
    KILN_TRY(nodes_, on.room<tree_node>(s.nodes()));
    first_leaf_ = static_cast<std::uint32_t>(s.first[0]);
    top_ = static_cast<int>(s.levels) - 1;
    KILN_CHECK(leaves(nodes_.data() + s.first[0], s.count[0] * 8));
    for (std::size_t l = 1; l < s.levels; ++l)
        KILN_CHECK(
            on.launch(make_inner_nodes{nodes_.data() + s.first[l], nodes_.data() + s.first[l - 1], s.count[l - 1]},
                      s.count[l] * 8 * 4));
    return {};
}

tree kept_tree::view() const noexcept {
    return {
        nodes_.data(), reinterpret_cast<u32 const*>(items_.data()), first_leaf_, top_, static_cast<u32>(items_.size()),
        around()};
}
std::size_t kept_tree::bytes() const noexcept {
    return nodes_.raw().bytes() + items_.raw().bytes() + in_order_.raw().bytes();
}

kept_tree::cut kept_tree::nodes_of(std::int32_t level) const noexcept {
    if (level < 0 || size() == 0) return {0, 0, level};
    shape const s{size()};
    auto const l = static_cast<std::size_t>(level);
    return {static_cast<std::uint32_t>(s.first[l]), static_cast<std::uint32_t>(s.count[l]), level};
}

kept_tree::cut kept_tree::cut_for(std::size_t queries, std::size_t pieces) const noexcept {
    cut out{0, 1, top_};
    if (size() == 0) return out;
    shape const s{size()};
    for (auto l = s.levels; l-- > 0;) {
        if (s.count[l] * queries > pieces) break;
        out = {static_cast<std::uint32_t>(s.first[l]), static_cast<std::uint32_t>(s.count[l]),
               static_cast<std::int32_t>(l)};
    }
    return out;
}

result<buffer<std::int32_t>> order_for(queue& on, kept_tree const& in, buffer<box> const& asked) {
    KILN_TRY(auto keys, on.room<std::int32_t>(asked.size()));
    KILN_TRY(auto order, on.room<std::int32_t>(asked.size()));
    KILN_CHECK(on.launch(make_box_keys{asked.data(), in.around(), keys.data(), order.data()}, asked.size()));
    KILN_CHECK(on.sort(keys, order));
    return order;
}

namespace {

// Queries that were put off, and what they meet, in order. Few are held against every box. Of many, the subtrees of a level that
// each may meet are searched, and what is found is sorted.
class heavy_queries {
public:
    heavy_queries(queue& on, kept_tree const& in, box_question const& q, buffer<std::uint32_t> const& heavy,
                  std::size_t many, std::size_t together)
        : on_{on},
          in_{in},
          heavy_{heavy},
          many_{many},
          marks_{many * in.size() <= together},
          bits_{bits_for(in.size())} {
        auto const cut = in.cut_for(many, 32 * on.threads());
        auto const below = in.nodes_of(cut.level - 1);
        with_ = {q, heavy.data(), cut.first_node, cut.nodes, cut.level, below.first_node + below.nodes};
    }

    // Adds what they meet to counts, of which the light ones are summed already; sums both. A fence where they are many.
    result<buffer<std::int64_t>> count(buffer<std::int64_t> const& light) {
        KILN_CHECK(marks_ ? mark() : search());
        auto const n = light.size() - 1;
        KILN_TRY(auto out, on_.room<std::int64_t>(n + 1));
        KILN_CHECK(on_.launch(count_light_boxes{raw(light), raw(out)}, n));
        auto const by_query = marks_ ? add_heavy_counts{heavy_.data(), raw(part_), with_marks_.stretches, raw(out)}
                                     : add_heavy_counts{heavy_.data(), raw(first_), 1, raw(out)};
        KILN_CHECK(on_.launch(by_query, many_));
        KILN_CHECK(on_.sum(out));
        return out;
    }
    result<void> list(std::size_t met, buffer<std::int64_t> const& place, pair_list const& to) {
        if (marks_)
            return on_.launch(list_marked_boxes{with_marks_, raw(part_), raw(place), to.left.data(), to.right.data()},
                              parts_);
        KILN_TRY(auto key, on_.room<std::uint64_t>(met));
        KILN_TRY(auto unused, on_.room<std::int32_t>(met));
        KILN_CHECK(
            on_.launch(list_heavy_boxes{with_, raw(subtrees_), raw(part_), bits_, raw(key), unused.data()}, parts_));
        KILN_CHECK(on_.sort(key, unused, bits_ + bits_for(many_)));
        return on_.launch(
            place_heavy_boxes{heavy_.data(), raw(first_), raw(place), bits_, raw(key), to.left.data(), to.right.data()},
            met);
    }

private:
    result<void> mark() {
        std::size_t const n = in_.size(), masks = (n + items_of_mask - 1) / items_of_mask,
                          stretches = (masks + masks_of_stretch - 1) / masks_of_stretch;
        KILN_TRY(auto boxes, on_.room<box>(n));
        KILN_CHECK(on_.launch(boxes_by_item{in_.in_order(), in_.view().item, boxes.data()}, n));
        KILN_TRY(mask_, on_.room<std::uint32_t>(masks * many_));
        parts_ = stretches * many_;
        KILN_TRY(part_, on_.room<std::int64_t>(parts_ + 1));
        with_marks_ = {heavy_.data(), many_, n, stretches, mask_.data()};
        KILN_CHECK(on_.launch(mark_heavy_boxes{with_marks_, with_.q, boxes.data(), raw(part_)}, parts_));
        return on_.sum(part_);
    }
    result<void> search() {
        auto const pieces = many_ * with_.nodes;
        KILN_TRY(subtrees_, on_.room<std::uint64_t>(pieces));
        KILN_TRY(auto listed, on_.filled<std::int64_t>(1, 0));
        KILN_CHECK(
            on_.launch(list_heavy_subtrees{with_, raw(subtrees_), reinterpret_cast<u32*>(listed.data())}, pieces));
        std::int64_t found = 0;
        KILN_CHECK(on_.read_sync({{listed.data(), found}}));
        parts_ = 8 * static_cast<std::size_t>(found);
        KILN_TRY(part_, on_.room<std::int64_t>(parts_ + 1));
        KILN_TRY(first_, on_.filled<std::int64_t>(many_ + 1, 0));
        KILN_CHECK(on_.launch(count_heavy_boxes{with_, raw(subtrees_), raw(part_), counts_in(first_)}, parts_));
        KILN_CHECK(on_.sum(part_));
        return on_.sum(first_);
    }

    queue& on_;
    kept_tree const& in_;
    buffer<std::uint32_t> const& heavy_;
    std::size_t many_;
    bool marks_;
    int bits_;
    heavy_boxes with_{};
    heavy_marks with_marks_{};
    std::size_t parts_ = 0;
    buffer<std::uint32_t> mask_;
    buffer<std::uint64_t> subtrees_;
    buffer<std::int64_t> part_, first_;  // of parts; of queries
};

}  // namespace

result<pair_list> query_boxes(queue& on, kept_tree const& in, buffer<box> const& asked, double distance) {
    KILN_TRY(auto found, query_boxes(on, in, asked, distance, ~std::size_t{0}));
    return *std::move(found);
}

result<std::optional<pair_list>> query_boxes(queue& on, kept_tree const& in, buffer<box> const& asked, double distance,
                                             std::size_t most, std::size_t together) {
    std::optional<pair_list> found{std::in_place};
    auto& out = *found;
    auto const n = asked.size();
    if (n == 0 || in.size() == 0) return found;
    // Of a tree with itself the order is there.
    KILN_TRY(auto const order, in.is_of(asked) ? result<buffer<std::int32_t>>{in.items()} : order_for(on, in, asked));
    box_question const q{in.view(), in.in_order(), asked.data(), order.data(), distance};
    auto const each = n <= std::size_t{1} << 24 ? most_kept_hits : most_kept_hits / 2;
    KILN_TRY(auto hits, on.room<std::int32_t>(n * each));
    kept_items const kept{hits.data(), n, each};
    KILN_TRY(auto light, on.room<std::int64_t>(n + 1));
    KILN_TRY(auto heavy, on.room<std::uint32_t>(n));
    KILN_TRY(auto heavies, on.filled<std::int64_t>(1, 0));
    KILN_CHECK(on.launch(count_boxes{q, kept, raw(light), heavy.data(), reinterpret_cast<u32*>(heavies.data())}, n));
    KILN_CHECK(on.sum(light));
    std::int64_t few = 0, many = 0, total = 0;
    KILN_CHECK(on.read_sync({{light.data() + n, few}, {heavies.data(), many}}));
    total = few;

    heavy_queries later{on, in, q, heavy, static_cast<std::size_t>(many), together};
    auto place = light;
    if (many > 0) {
        KILN_TRY(place, later.count(light));
        KILN_CHECK(on.read_sync({{place.data() + n, total}}));
    }
    if (static_cast<std::size_t>(total) > most) return std::optional<pair_list>{};
    KILN_TRY(out.left, on.room<std::int32_t>(static_cast<std::size_t>(total)));
    KILN_TRY(out.right, on.room<std::int32_t>(static_cast<std::size_t>(total)));
    listed_boxes const to{q, raw(light), raw(place), out.left.data(), out.right.data()};
    KILN_TRY(auto more, on.room<std::uint32_t>(n));
    KILN_TRY(auto mores, on.filled<std::uint32_t>(1, 0));
    KILN_CHECK(on.launch(list_boxes{to, kept, more.data(), mores.data()}, n));
    auto const threads = std::min(on.threads(), n);
    KILN_CHECK(on.launch(list_more_boxes{to, more.data(), mores.data(), threads}, threads));
    if (many > 0) KILN_CHECK(later.list(static_cast<std::size_t>(total - few), place, out));
    return found;
}

}  // namespace kiln::spatial
