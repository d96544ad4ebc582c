// SPDX-License-Identifier: Apache-2.0
#include "spatial/kept_elements.hpp"

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

// Below this many, the elements' own order is as good.
constexpr std::size_t worth_ordering = 1 << 14;

// Elements with their keys, in the order of their vertices.
struct listed_elements {
    buffer<std::int32_t> keys, vertices;
};

// The last vertex of a path is no element: in short paths that is a large part of them, and they are left out. One fence then.
result<listed_elements> list_elements(queue& on, kept_layer const& of, u64 const* around) {
    listed_elements out;
    auto const n = of.vertices();
    if (n > 4 * of.paths()) {
        KILN_TRY(out.keys, on.room<std::int32_t>(n));
        KILN_TRY(out.vertices, on.room<std::int32_t>(n));
        KILN_CHECK(on.launch(element_keys_by_vertex{of.view(), around, out.keys.data(), out.vertices.data()}, n));
        return out;
    }
    KILN_TRY(auto place, on.room<std::int64_t>(n + 1));
    KILN_CHECK(on.launch(count_elements{of.view(), raw(place)}, n));
    KILN_CHECK(on.sum(place));
    std::int64_t total = 0;
    KILN_CHECK(on.read_sync({{place.data() + n, total}}));
    KILN_TRY(out.keys, on.room<std::int32_t>(static_cast<std::size_t>(total)));
    KILN_TRY(out.vertices, on.room<std::int32_t>(static_cast<std::size_t>(total)));
    KILN_CHECK(on.launch(element_keys_in_list{of.view(), around, raw(place), out.keys.data(), out.vertices.data()}, n));
    return out;
}

}  // namespace

result<kept_elements> kept_elements::make(queue& on, kept_layer const& of) {
    kept_elements out;
    KILN_TRY(auto const around, of.extent(on, all_kinds));
    KILN_TRY(auto listed, list_elements(on, of, reinterpret_cast<u64 const*>(around.data())));
    auto const n = listed.vertices.size();
    KILN_TRY(out.in_order, on.room<segment>(n));
    KILN_TRY(
        out.tree,
        kept_tree::make(
            on, around, listed.keys, listed.vertices, [&](kept_tree const& tree, tree_node* leaves, std::size_t slots) {
                return on.launch(element_leaves{of.view(), leaves, tree.items().data(), n, out.in_order.data()}, slots);
            }));
    return out;
}

result<std::optional<buffer<std::int32_t>>> asking_order(queue& on, kept_layer const& a, kept_elements const& of_b) {
    std::optional<buffer<std::int32_t>> out;
    auto const n = a.vertices();
    if (n < worth_ordering || n >= 8 * a.paths() || of_b.tree.size() == 0) return out;
    KILN_TRY(auto listed, list_elements(on, a, of_b.tree.around()));
    KILN_CHECK(on.sort(listed.keys, listed.vertices));
    out = std::move(listed.vertices);
    return out;
}

result<contacts> find_contacts(queue& on, kept_layer const& a, kept_layer const& b, kept_elements const& of_b,
                               rows_wanted rows) {
    KILN_TRY(auto const order, asking_order(on, a, of_b));
    return find_contacts(on, a, b, of_b, rows, order);
}

result<contacts> find_contacts(queue& on, kept_layer const& a, kept_layer const& b, kept_elements const& of_b,
                               rows_wanted rows, std::optional<buffer<std::int32_t>> const& order) {
    contacts out;
    auto const n = a.vertices();
    bool const one_by_one = order.has_value();
    if (n == 0 || of_b.tree.size() == 0) return out;
    contact_question const q{
        a.view(), b.view(), of_b.tree.view(), of_b.in_order.data(), rows, one_by_one ? order->data() : nullptr};
    auto const groups = one_by_one ? order->size() : (n + most_in_group - 1) / most_in_group;
    auto const homes = one_by_one ? n : groups;
    KILN_TRY(auto hits, on.room<std::uint64_t>(groups * hits_kept));
    kept_hits const kept{reinterpret_cast<u64*>(hits.data()), groups};
    KILN_TRY(auto counts, on.room<std::int64_t>(homes + 1));
    if (one_by_one) KILN_CHECK(on.fill(counts, 0));
    KILN_TRY(auto heavy, on.room<std::uint32_t>(groups));
    KILN_TRY(auto heavies, on.filled<std::int64_t>(1, 0));
    KILN_CHECK(
        on.launch(count_contacts{q, kept, raw(counts), heavy.data(), reinterpret_cast<u32*>(heavies.data())}, groups));
    KILN_CHECK(on.sum(counts));
    std::int64_t light = 0, many = 0, more = 0;
    KILN_CHECK(on.read_sync({{counts.data() + homes, light}, {heavies.data(), many}}));

    auto const cut = of_b.tree.cut_for(static_cast<std::size_t>(many), std::size_t{1} << 22);
    heavy_contacts const h{q, heavy.data(), cut.first_node, cut.nodes, cut.level};
    auto const pieces = static_cast<std::size_t>(many) * cut.nodes;
    buffer<std::int64_t> heavy_counts;
    if (many > 0) {
        KILN_TRY(heavy_counts, on.room<std::int64_t>(pieces + 1));
        KILN_CHECK(on.launch(count_heavy_contacts{h, raw(heavy_counts)}, pieces));
        KILN_CHECK(on.sum(heavy_counts));
        KILN_CHECK(on.read_sync({{heavy_counts.data() + pieces, more}}));
    }
    auto const total = static_cast<std::size_t>(light + more);
    if (total > 0x7fffffff)
        return fail(errc::unsupported, "spatial: {} contacts of segments: take the arrays in parts", total);
    KILN_TRY(out.left, on.room<std::int32_t>(total));
    KILN_TRY(out.right, on.room<std::int32_t>(total));
    KILN_TRY(out.how, on.room<std::uint8_t>(total));
    KILN_CHECK(on.launch(list_contacts{q, kept, raw(counts), out.list()}, groups));
    out.in_order = one_by_one && many == 0;
    if (many > 0) {
        contact_list const behind{out.left.data() + light, out.right.data() + light, out.how.data() + light};
        KILN_CHECK(on.launch(list_heavy_contacts{h, raw(heavy_counts), behind}, pieces));
    }
    KILN_TRY(out.aparts, on.filled<std::uint64_t>(1, 0));
    KILN_CHECK(on.launch(decide_contacts{q.a, q.b, out.list(), reinterpret_cast<u64*>(out.aparts.data())}, total));
    return out;
}

}  // namespace kiln::spatial
