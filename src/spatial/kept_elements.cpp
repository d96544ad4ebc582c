// SPDX-License-Identifier: Apache-2.0
#include "spatial/kept_elements.hpp"

#include "spatial/overlay_crossings.cuh"
#include "spatial/overlay_noding.cuh"

#include <algorithm>

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

// Below this many, the elements' own order is as good.
constexpr std::size_t worth_ordering = 1 << 14;

// The last vertex of a path is no element: in short paths that is a large part of them.
bool has_short_paths(kept_layer const& of) { return of.vertices() <= 4 * of.paths(); }

// Elements of short paths, with their keys and their numbers in the list.
struct listed_elements {
    buffer<std::int32_t> keys, numbers, vertices;
    buffer<segment> elements;
    [[nodiscard]] elements_in_order ordered(buffer<std::int32_t> const& sorted, buffer<segment> const& to) const {
        return {elements.data(), vertices.data(), sorted.data(), to.data()};
    }
};
result<listed_elements> list_elements(queue& on, kept_layer const& of, u64 const* around) {
    listed_elements out;
    auto const n = of.vertices();
    KILN_TRY(auto place, on.room<std::int64_t>(n + 1));
    KILN_CHECK(on.launch(count_elements{of.view(), raw(place)}, n));
    KILN_TRY(auto const total, on.total_sync(place));
    auto const m = static_cast<std::size_t>(total);
    KILN_TRY(out.keys, on.room<std::int32_t>(m));
    KILN_TRY(out.numbers, on.room<std::int32_t>(m));
    KILN_TRY(out.vertices, on.room<std::int32_t>(m));
    KILN_TRY(out.elements, on.room<segment>(m));
    KILN_CHECK(on.launch(element_keys_in_list{of.view(), around, raw(place), out.keys.data(), out.numbers.data(),
                                              out.vertices.data(), out.elements.data()},
                         n));
    return out;
}

// Puts items that are in order into that of their worlds, stably.
result<void> put_apart(queue& on, kept_layer const& of, std::int32_t const* vertex, kept_worlds const& worlds,
                       buffer<std::int32_t>& items, buffer<std::int32_t>& first) {
    auto const n = items.size();
    auto const count = static_cast<i32>(worlds.count);
    KILN_TRY(auto key, on.room<std::int32_t>(n));
    KILN_CHECK(on.launch(worlds_of_items{of.view(), items.data(), vertex, worlds.number.data(), count, key.data()}, n));
    KILN_CHECK(on.sort(key, items));
    KILN_TRY(first, on.room<std::int32_t>(worlds.count + 1));
    return on.launch(begin_worlds{key.data(), n, count, first.data()}, n + 1);
}

}  // namespace

result<kept_worlds> kept_worlds::make(queue& on, buffer<std::int32_t> of_row, std::size_t worth_it) {
    kept_worlds out;
    out.of_row = std::move(of_row);
    auto const n = out.of_row.size();
    if (n == 0) return out;
    auto world = out.of_row;
    KILN_TRY(auto row, on.room<std::int32_t>(n));
    KILN_CHECK(on.launch(number_words{row.data()}, n));
    KILN_CHECK(on.sort(world, row));
    KILN_TRY(auto is_new, on.room<std::int64_t>(n + 1));
    KILN_CHECK(on.launch(count_worlds{world.data(), raw(is_new)}, n));
    KILN_TRY(auto const total, on.total_sync(is_new));
    out.count = static_cast<std::size_t>(total);
    out.worth_it = std::max(worth_it, always);
    out.are_apart = out.count >= out.worth_it;
    KILN_TRY(out.number, on.room<std::int32_t>(n));
    KILN_CHECK(on.launch(number_worlds{world.data(), row.data(), raw(is_new), n, out.number.data()}, n));
    return out;
}

result<kept_elements> kept_elements::make(queue& on, kept_layer const& of, kept_worlds const& worlds) {
    kept_elements out;
    out.worlds = worlds;
    kept_tree::regrouper apart;
    KILN_TRY(auto const around, of.extent(on, all_kinds));
    auto const* const frame = reinterpret_cast<u64 const*>(around.data());
    if (has_short_paths(of)) {
        KILN_TRY(auto listed, list_elements(on, of, frame));
        auto const n = listed.numbers.size();
        KILN_TRY(out.in_order, on.room<segment>(n));
        if (worlds.are_apart)
            apart = [&](buffer<std::int32_t>& items) {
                return put_apart(on, of, listed.vertices.data(), worlds, items, out.world_first);
            };
        KILN_TRY(out.tree, kept_tree::make(on, around, listed.keys, listed.numbers, apart,
                                           [&](kept_tree const& tree, tree_node* leaves, std::size_t slots) {
                                               return on.launch(
                                                   listed_element_leaves{listed.ordered(tree.items(), out.in_order),
                                                                         leaves, n, tree.around()},
                                                   slots);
                                           }));
        return out;
    }
    auto const n = of.vertices();
    KILN_TRY(auto keys, on.room<std::int32_t>(n));
    KILN_TRY(auto vertices, on.room<std::int32_t>(n));
    KILN_CHECK(on.launch(element_keys_by_vertex{of.view(), frame, keys.data(), vertices.data()}, n));
    KILN_TRY(out.in_order, on.room<segment>(n));
    if (worlds.are_apart)
        apart = [&](buffer<std::int32_t>& items) { return put_apart(on, of, nullptr, worlds, items, out.world_first); };
    KILN_TRY(out.tree, kept_tree::make(on, around, keys, vertices, apart,
                                       [&](kept_tree const& tree, tree_node* leaves, std::size_t slots) {
                                           return on.launch(element_leaves{of.view(), leaves, tree.items().data(), n,
                                                                           out.in_order.data(), tree.around()},
                                                            slots);
                                       }));
    return out;
}

result<std::optional<asking_order>> asking_order::of(queue& on, kept_layer const& a, kept_elements const& of_b) {
    std::optional<asking_order> out;
    if (a.vertices() < worth_ordering || !has_short_paths(a) || of_b.tree.size() == 0) return out;
    KILN_TRY(auto listed, list_elements(on, a, of_b.tree.around()));
    KILN_CHECK(on.sort(listed.keys, listed.numbers));
    out.emplace();
    auto const n = listed.numbers.size();
    KILN_TRY(out->elements, on.room<segment>(n));
    KILN_CHECK(on.launch(listed.ordered(listed.numbers, out->elements), n));
    out->vertices = std::move(listed.numbers);
    return out;
}

namespace {

// One after another: counts, with the first hits kept; places; the list.
template <class Asking>
class contact_finder {
public:
    contact_finder(queue& on, kept_elements const& of_b, Asking const& who, std::size_t groups, std::size_t homes)
        : on_{on}, tree_{of_b.tree}, who_{who}, groups_{groups}, homes_{homes} {}

    result<contacts> find() {
        KILN_TRY(auto hits, on_.room<std::uint64_t>(groups_ * hits_kept));
        kept_hits const kept{reinterpret_cast<u64*>(hits.data()), groups_};
        KILN_TRY(auto counts, on_.room<std::int64_t>(homes_ + 1));
        if (homes_ != groups_) KILN_CHECK(on_.fill(counts, 0));
        KILN_TRY(auto heavy, on_.room<std::uint32_t>(groups_));
        KILN_TRY(auto heavies, on_.filled<std::int64_t>(1, 0));
        KILN_CHECK(on_.launch(
            count_contacts<Asking>{who_, kept, raw(counts), heavy.data(), reinterpret_cast<u32*>(heavies.data())},
            groups_));
        KILN_CHECK(on_.sum(counts));
        std::int64_t light = 0, many = 0, more = 0;
        KILN_CHECK(on_.read_sync({{counts.data() + homes_, light}, {heavies.data(), many}}));

        auto const cut = tree_.cut_for(static_cast<std::size_t>(many), 64 * on_.threads());
        heavy_contacts<Asking> const h{who_, heavy.data(), cut.first_node, cut.nodes, cut.level};
        auto const pieces = static_cast<std::size_t>(many) * cut.nodes;
        buffer<std::int64_t> heavy_counts;
        if (many > 0) {
            KILN_TRY(heavy_counts, on_.room<std::int64_t>(pieces + 1));
            KILN_CHECK(on_.launch(count_heavy_contacts<Asking>{h, raw(heavy_counts)}, pieces));
            KILN_CHECK(on_.sum(heavy_counts));
            KILN_CHECK(on_.read_sync({{heavy_counts.data() + pieces, more}}));
        }
        auto const total = static_cast<std::size_t>(light + more);
        if (total > 0x7fffffff)
            return fail(errc::unsupported, "spatial: {} contacts of segments: take the arrays in parts", total);
        contacts out;
        KILN_TRY(out.left, on_.room<std::int32_t>(total));
        KILN_TRY(out.right, on_.room<std::int32_t>(total));
        KILN_TRY(out.how, on_.room<std::uint8_t>(total));
        KILN_TRY(out.aparts, on_.filled<std::uint64_t>(1, 0));
        out.in_order = Asking::in_order && many == 0;
        out.at_once = static_cast<std::size_t>(light);
        KILN_CHECK(on_.launch(list_contacts<Asking>{who_, kept, raw(counts), out.list()}, groups_));
        if (many > 0) {
            contact_list const behind{out.left.data() + light, out.right.data() + light, out.how.data() + light};
            KILN_CHECK(on_.launch(list_heavy_contacts<Asking>{h, raw(heavy_counts), behind}, pieces));
        }
        KILN_CHECK(
            on_.launch(decide_contacts<decltype(who_.q)>{who_.q.a, who_.q.b, out.list(), raw(out.aparts)}, total));
        return out;
    }

private:
    queue& on_;
    kept_tree const& tree_;
    Asking who_;
    std::size_t groups_, homes_;
};

template <class Question>
result<contacts> find_by(queue& on, Question const& q, kept_elements const& of_b,
                         std::optional<asking_order> const& order) {
    auto const n = static_cast<std::size_t>(q.a.vertices);
    if (n == 0 || of_b.tree.size() == 0) return contacts{};
    if (order) {
        asking_one_by_one<Question> const who{q, order->vertices.data(), order->elements.data()};
        return contact_finder<asking_one_by_one<Question>>{on, of_b, who, order->vertices.size(), n}.find();
    }
    auto const pairs = (n + 1) / 2;
    return contact_finder<asking_in_pairs<Question>>{on, of_b, {q}, pairs, pairs}.find();
}

}  // namespace

result<contacts> find_contacts(queue& on, kept_layer const& a, kept_layer const& b, kept_elements const& of_b,
                               rows_wanted rows) {
    KILN_TRY(auto const order, asking_order::of(on, a, of_b));
    return find_contacts(on, a, b, of_b, rows, order);
}

result<contacts> find_contacts(queue& on, kept_layer const& a, kept_layer const& b, kept_elements const& of_b,
                               rows_wanted rows, std::optional<asking_order> const& order) {
    contact_question const q{a.view(), b.view(), of_b.tree.view(), of_b.in_order.data(), rows};
    return find_by(on, q, of_b, order);
}

result<contacts> find_crossings_of_moved(queue& on, kept_layer const& a, kept_layer const& b,
                                         kept_elements const& of_b) {
    KILN_TRY(auto const order, asking_order::of(on, a, of_b));
    crossing_question const q{{a.view(), b.view(), of_b.tree.view(), of_b.in_order.data(), rows_wanted::all}};
    return find_by(on, q, of_b, order);
}

}  // namespace kiln::spatial
