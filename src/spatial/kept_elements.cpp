// SPDX-License-Identifier: Apache-2.0
#include "spatial/kept_elements.hpp"

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

i64* raw(buffer<std::int64_t> const& b) { return reinterpret_cast<i64*>(b.data()); }

}  // namespace

result<kept_elements> kept_elements::make(queue& on, kept_layer const& of) {
    auto const l = of.view();
    kept_elements out;
    KILN_TRY(auto boxes, on.room<box>(of.vertices()));
    KILN_CHECK(on.launch(element_boxes{l, boxes.data()}, of.vertices()));
    // The last vertex of a path is no element: in short paths that is a large part of them.
    if (of.vertices() > 4 * of.paths()) {
        KILN_TRY(out.tree, kept_tree::make(on, boxes));
    } else {
        KILN_CHECK(out.make_of_elements(on, of, boxes));
    }
    auto const n = out.tree.size();
    KILN_TRY(out.in_order, on.room<segment>(n));
    KILN_CHECK(on.launch(elements_in_order{l, out.tree.view().item, out.in_order.data()}, n));
    return out;
}

result<void> kept_elements::make_of_elements(queue& on, kept_layer const& of, buffer<box> const& boxes) {
    auto const n = of.vertices();
    KILN_TRY(auto place, on.room<std::int64_t>(n + 1));
    KILN_CHECK(on.launch(count_elements{of.view(), raw(place)}, n));
    KILN_CHECK(on.sum(place));
    std::int64_t total = 0;
    KILN_CHECK(on.read_sync({{place.data() + n, total}}));
    auto const m = static_cast<std::size_t>(total);
    KILN_TRY(auto vertex, on.room<std::int32_t>(m));
    KILN_TRY(auto listed, on.room<box>(m));
    KILN_CHECK(on.launch(list_elements{of.view(), raw(place), boxes.data(), vertex.data(), listed.data()}, n));
    KILN_TRY(tree, kept_tree::make(on, listed));
    return on.launch(name_elements{vertex.data(), tree.items().data()}, m);
}

result<contacts> find_contacts(queue& on, kept_layer const& a, kept_layer const& b, kept_elements const& of_b,
                               rows_wanted rows) {
    contacts out;
    auto const n = a.vertices();
    if (n == 0 || of_b.tree.size() == 0) return out;
    // Long paths are in order as they are.
    buffer<std::int32_t> order;
    if (n >= (std::size_t{1} << 14) && n < 8 * a.paths()) {
        KILN_TRY(auto boxes, on.room<box>(n));
        KILN_CHECK(on.launch(element_boxes{a.view(), boxes.data()}, n));
        KILN_TRY(order, order_for(on, of_b.tree, boxes));
    }
    contact_question const q{
        a.view(), b.view(), of_b.tree.view(), of_b.in_order.data(), rows, order.empty() ? nullptr : order.data()};
    KILN_TRY(auto counts, on.room<std::int64_t>(n + 1));
    KILN_TRY(auto heavy, on.room<std::uint32_t>(n));
    KILN_TRY(auto heavies, on.filled<std::int64_t>(1, 0));
    KILN_CHECK(on.launch(count_contacts{q, raw(counts), heavy.data(), reinterpret_cast<u32*>(heavies.data())}, n));
    KILN_CHECK(on.sum(counts));
    std::int64_t light = 0, many = 0, more = 0;
    KILN_CHECK(on.read_sync({{counts.data() + n, light}, {heavies.data(), many}}));

    auto const cut = of_b.tree.cut_for(static_cast<std::size_t>(many), std::size_t{1} << 24);
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
    KILN_CHECK(on.launch(list_contacts{q, raw(counts), out.list()}, n));
    if (many > 0) {
        contact_list const behind{out.left.data() + light, out.right.data() + light, out.how.data() + light};
        KILN_CHECK(on.launch(list_heavy_contacts{h, raw(heavy_counts), behind}, pieces));
    }
    KILN_CHECK(on.launch(decide_contacts{q.a, q.b, out.list()}, total));
    return out;
}

}  // namespace kiln::spatial
