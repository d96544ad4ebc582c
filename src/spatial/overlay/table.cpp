// SPDX-License-Identifier: Apache-2.0
#include "spatial/overlay/table.hpp"

#include "spatial/kept_cells.hpp"
#include "spatial/kept_elements.hpp"
#include "spatial/overlay_table.cuh"
#include "spatial/path_points.hpp"

#include <optional>

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

result<kept_layer> layer_for_table(queue& on, geometries const& of) {
    KILN_TRY(auto out, kept_layer::distinct(on, of));
    KILN_CHECK(out.orient_rings(on));
    return out;
}
struct table_layers {
    kept_layer a, b;
    cell_options how;
    std::optional<std::pair<kept_cells, kept_cells>> cells = {};  // where something needs them

    result<void> keep_cells(queue& on) {
        if (cells) return {};
        KILN_TRY(cells, kept_cells::make_both(on, a, b, how));
        return {};
    }
    [[nodiscard]] cell_grid a_cells() const { return cells->first.view(); }
    [[nodiscard]] cell_grid b_cells() const { return cells->second.view(); }
};

// Such that what follows does not depend on how threads came by.
result<contacts> crossings_in_order(queue& on, kept_layer& a, kept_layer& b) {
    KILN_CHECK(b.keep_elements(on));
    KILN_TRY(auto found, find_crossings_of_moved(on, a, b, b.elements()));
    auto const n = found.size();
    if (found.at_once == n) return found;
    KILN_TRY(auto key, on.room<std::uint64_t>(n));
    KILN_TRY(auto number, on.room<std::int32_t>(n));
    KILN_CHECK(on.launch(element_keys{found.list(), raw(key), number.data()}, n));
    KILN_CHECK(on.sort(key, number, 64));
    contacts out;
    KILN_TRY(out.left, on.room<std::int32_t>(n));
    KILN_TRY(out.right, on.room<std::int32_t>(n));
    KILN_TRY(out.how, on.room<std::uint8_t>(n));
    KILN_CHECK(on.launch(reorder_crossings{{found.left.data(), found.right.data(), found.how.data()},
                                           number.data(),
                                           out.left.data(),
                                           out.right.data(),
                                           out.how.data()},
                         n));
    return out;
}

// What the vertices of one layer are in of the other (overlay_table.cuh).
struct ring_changes {
    buffer<std::int64_t> by_vertex;  // one more
    buffer<std::uint32_t> is_inside;

    static result<ring_changes> none(queue& on, kept_layer const& of) {
        ring_changes out;
        KILN_TRY(out.by_vertex, on.filled<std::int64_t>(of.vertices() + 1, 0));
        KILN_TRY(out.is_inside, on.filled<std::uint32_t>(of.paths(), 0));
        return out;
    }
    // Where rings begin: nothing where an index is better.
    template <tie Mode>
    result<bool> begin_by_edges(queue& on, kept_layer const& of, kept_layer const& other) const {
        KILN_TRY(auto const found, candidates_in(on, of, other, line_ends::no));
        if (!found) return false;
        KILN_TRY(auto const mark, found->marks<Mode>(on, other));
        KILN_CHECK(on.launch(take_marked_begins{of.view(), found->pairs.left.data(), found->pairs.right.data(),
                                                mark.data(), counts_in(by_vertex), is_inside.data()},
                             found->pairs.size()));
        return true;
    }
    template <tie Mode>
    [[nodiscard]] locate_begins<Mode> begins_by_cells(kept_layer const& of, cell_grid const& other) const {
        return {of.view(), other, counts_in(by_vertex), is_inside.data()};
    }
    // By vertex. Changes become sums.
    result<buffer<std::uint32_t>> ends(queue& on, kept_layer const& of) const {
        KILN_CHECK(on.sum(by_vertex));
        KILN_TRY(auto out, on.room<std::uint32_t>(of.vertices()));
        KILN_CHECK(on.launch(set_ends{of.view(), counts_in(by_vertex), is_inside.data(), out.data()}, of.vertices()));
        return out;
    }
};

struct ends_of_edges {
    buffer<std::uint32_t> a, b;
};
// Ties are between layers that have edges in common, of which cells have to be asked later on anyway; else few rings begin in few rows.
result<ends_of_edges> find_ends(queue& on, table_layers& l, crossing_pairs const& of, std::size_t crossings) {
    KILN_TRY(auto const a, ring_changes::none(on, l.a));
    KILN_TRY(auto const b, ring_changes::none(on, l.b));
    KILN_TRY(auto any_tie, on.filled<std::uint64_t>(1, 0));
    KILN_CHECK(on.launch(
        add_crossings{l.a.view(), l.b.view(), of, counts_in(a.by_vertex), counts_in(b.by_vertex), raw(any_tie)},
        crossings));
    std::uint64_t ties = 0;
    KILN_CHECK(on.read_sync({{any_tie.data(), ties}}));
    bool a_begun = false, b_begun = false;
    if (ties == 0) {
        KILN_TRY(a_begun, a.begin_by_edges<tie::up>(on, l.a, l.b));
        KILN_TRY(b_begun, b.begin_by_edges<tie::down>(on, l.b, l.a));
    }
    if (!a_begun || !b_begun) {
        KILN_CHECK(l.keep_cells(on));
        auto const lefts = a_begun ? 0 : l.a.paths(), rights = b_begun ? 0 : l.b.paths();
        KILN_CHECK(on.launch(locate_both_begins{a.begins_by_cells<tie::up>(l.a, l.b_cells()),
                                                b.begins_by_cells<tie::down>(l.b, l.a_cells()), lefts},
                             lefts + rights));
    }
    ends_of_edges out;
    KILN_TRY(out.a, a.ends(on, l.a));
    KILN_TRY(out.b, b.ends(on, l.b));
    return out;
}

struct listed_shares {
    buffer<std::uint64_t> key;
    buffer<std::int32_t> number;
    buffer<share> shares;
};
// Of the edges of both, then of the crossings.
result<listed_shares> list_shares(queue& on, table_layers& l, crossing_pairs const& of, std::size_t crossings,
                                  int bits) {
    KILN_TRY(auto const ends, find_ends(on, l, of, crossings));
    edge_runs<tie::up> const left{l.a.view(), ends.a.data()};
    edge_runs<tie::down> const right{l.b.view(), ends.b.data()};
    auto const runs = [](kept_layer const& of_layer) {
        return (of_layer.vertices() + edges_together - 1) / edges_together;
    };
    auto const lefts = runs(l.a), rights = runs(l.b);
    KILN_TRY(auto place, on.room<std::int64_t>(lefts + rights + crossings + 1));
    KILN_TRY(auto crowded, on.filled<std::int64_t>(1, 0));
    auto* const at = raw(place);
    KILN_CHECK(on.launch(count_edge_runs<tie::up>{left, at, counts_in(crowded)}, lefts));
    KILN_CHECK(on.launch(count_edge_runs<tie::down>{right, at + lefts, counts_in(crowded)}, rights));
    KILN_CHECK(on.launch(count_crossings{of.how, at + lefts + rights}, crossings));
    KILN_CHECK(on.sum(place));
    std::int64_t total = 0, crowds = 0;
    KILN_CHECK(on.read_sync({{place.data() + place.size() - 1, total}, {crowded.data(), crowds}}));
    if (total > 0x3fffffff)
        return fail(errc::unsupported, "area_table: {} shares of areas: take the arrays in parts", total);
    auto const n = static_cast<std::size_t>(total);
    listed_shares out;
    KILN_TRY(out.key, on.room<std::uint64_t>(n));
    KILN_TRY(out.number, on.room<std::int32_t>(n));
    KILN_TRY(out.shares, on.room<share>(n));
    share_list const to{raw(out.key), out.number.data(), out.shares.data(), bits};
    KILN_CHECK(on.launch(list_edge_runs<tie::up>{left, at, to}, lefts));
    KILN_CHECK(on.launch(list_edge_runs<tie::down>{right, at + lefts, to}, rights));
    if (crowds > 0) {
        KILN_CHECK(l.keep_cells(on));
        KILN_CHECK(on.launch(list_crowds<tie::up>{left, l.b_cells(), at, to}, l.a.vertices()));
        KILN_CHECK(on.launch(list_crowds<tie::down>{right, l.a_cells(), at + lefts, to}, l.b.vertices()));
    }
    KILN_CHECK(on.launch(list_crossings{left.l, right.l, of, at + lefts + rights, to}, crossings));
    return out;
}

}  // namespace

result<area_list> areas_in_common(queue& on, geometries const& left, geometries const& right, cell_options const& how) {
    table_layers l{.a = {}, .b = {}, .how = how};
    KILN_TRY(l.a, layer_for_table(on, left));
    KILN_TRY(l.b, layer_for_table(on, right));
    KILN_TRY(auto const met, crossings_in_order(on, l.a, l.b));
    crossing_pairs const of{met.left.data(), met.right.data(), met.how.data()};
    auto const bits = bits_for(right.rows());
    KILN_TRY(auto listed, list_shares(on, l, of, met.size(), bits));
    auto const n = listed.key.size();
    KILN_CHECK(on.sort(listed.key, listed.number, bits + bits_for(left.rows())));

    KILN_TRY(auto before, on.room<std::int64_t>(n + 1));
    KILN_CHECK(on.launch(count_pairs{raw(listed.key), raw(before)}, n));
    KILN_TRY(auto const total, on.total_sync(before));
    auto const pairs = static_cast<std::size_t>(total);
    sorted_shares const shares{l.a.view(), l.b.view(), of, listed.shares.data(), listed.number.data(), raw(before)};
    area_list all;
    KILN_TRY(all.left, on.room<std::int32_t>(pairs));
    KILN_TRY(all.right, on.room<std::int32_t>(pairs));
    KILN_TRY(auto first, on.room<std::int32_t>(pairs + 1));
    KILN_TRY(auto is_real, on.filled<std::uint32_t>(pairs, 0));
    KILN_CHECK(on.launch(
        set_pairs{shares, raw(listed.key), n, bits, all.left.data(), all.right.data(), first.data(), is_real.data()},
        n));
    KILN_TRY(auto unsure, on.room<std::uint32_t>(n));
    KILN_TRY(auto listed_unsure, on.filled<std::uint64_t>(2, 0));
    for (std::size_t const turn : {0, 1}) {
        auto* const count = reinterpret_cast<u32*>(listed_unsure.data() + turn);
        KILN_CHECK(on.launch(list_unsure{shares, first.data(), is_real.data(), turn == 0, unsure.data(), count}, n));
        if (!l.cells) {
            std::uint64_t some = 0;
            KILN_CHECK(on.read_sync({{listed_unsure.data(), some}}));
            if (some == 0) break;
            KILN_CHECK(l.keep_cells(on));
        }
        KILN_CHECK(on.launch(look_beside{shares, l.a_cells(), l.b_cells(), all.left.data(), all.right.data(),
                                         is_real.data(), unsure.data(), count, on.threads()},
                             on.threads()));
    }
    KILN_TRY(auto place, on.room<std::int64_t>(pairs + 1));
    KILN_CHECK(on.launch(count_real_pairs{is_real.data(), raw(place)}, pairs));

    KILN_TRY(auto twice, on.room<double>(n));
    KILN_CHECK(on.launch(share_areas{shares, first.data(), twice.data()}, n));
    auto const blocks = (n + shares_together - 1) / shares_together;
    KILN_TRY(auto sum, on.room<double>(blocks));
    KILN_CHECK(on.launch(sum_shares{twice.data(), n, sum.data()}, blocks));
    KILN_TRY(auto const real, on.total_sync(place));
    area_list out;
    KILN_TRY(out.left, on.room<std::int32_t>(static_cast<std::size_t>(real)));
    KILN_TRY(out.right, on.room<std::int32_t>(static_cast<std::size_t>(real)));
    KILN_TRY(out.area, on.room<double>(static_cast<std::size_t>(real)));
    KILN_CHECK(on.launch(write_pairs{all.left.data(), all.right.data(), first.data(), twice.data(), sum.data(),
                                     raw(place), out.left.data(), out.right.data(), out.area.data()},
                         pairs));
    return out;
}

}  // namespace kiln::spatial
