// SPDX-License-Identifier: Apache-2.0
#include "spatial/overlay/table.hpp"

#include "spatial/kept_cells.hpp"
#include "spatial/kept_elements.hpp"
#include "spatial/overlay_table.cuh"

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

struct table_layer {
    kept_layer layer;
    kept_cells cells;
};
result<kept_layer> layer_for_table(queue& on, geometries const& of) {
    KILN_TRY(auto out, kept_layer::distinct(on, of));
    KILN_CHECK(out.orient_rings(on));
    return out;
}

template <tie Mode>
result<buffer<std::uint32_t>> ends_of_edges(queue& on, table_layer const& of, table_layer const& other) {
    auto const n = of.layer.vertices();
    KILN_TRY(auto hit, on.room<std::uint32_t>(n));
    KILN_TRY(auto later, on.room<std::uint32_t>(n));
    KILN_TRY(auto count, on.filled<std::uint32_t>(1, 0));
    auto const l = of.layer.view();
    auto const g = other.cells.view();
    KILN_CHECK(on.launch(locate_ends_quickly<Mode>{l, g, hit.data(), later.data(), count.data()}, n));
    KILN_CHECK(
        on.launch(locate_ends_exactly<Mode>{l, g, hit.data(), later.data(), count.data(), on.threads()}, on.threads()));
    return hit;
}

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

struct listed_shares {
    buffer<std::uint64_t> key;
    buffer<std::int32_t> number;
    buffer<share> shares;
};
// Of the edges of both, then of the crossings.
result<listed_shares> list_shares(queue& on, table_layer const& a, table_layer const& b, crossing_pairs const& of,
                                  std::size_t crossings, int bits) {
    KILN_TRY(auto const a_hit, ends_of_edges<tie::up>(on, a, b));
    KILN_TRY(auto const b_hit, ends_of_edges<tie::down>(on, b, a));
    edge_runs<tie::up> const left{a.layer.view(), b.cells.view(), a_hit.data()};
    edge_runs<tie::down> const right{b.layer.view(), a.cells.view(), b_hit.data()};
    auto const runs = [](table_layer const& l) { return (l.layer.vertices() + edges_together - 1) / edges_together; };
    auto const lefts = runs(a), rights = runs(b);
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
        KILN_CHECK(on.launch(list_crowds<tie::up>{left, at, to}, a.layer.vertices()));
        KILN_CHECK(on.launch(list_crowds<tie::down>{right, at + lefts, to}, b.layer.vertices()));
    }
    KILN_CHECK(on.launch(list_crossings{left.l, right.l, of, at + lefts + rights, to}, crossings));
    return out;
}

}  // namespace

result<area_list> areas_in_common(queue& on, geometries const& left, geometries const& right, cell_options const& how) {
    table_layer a, b;
    KILN_TRY(a.layer, layer_for_table(on, left));
    KILN_TRY(b.layer, layer_for_table(on, right));
    KILN_TRY(auto cells, kept_cells::make_both(on, a.layer, b.layer, how));
    a.cells = std::move(cells.first), b.cells = std::move(cells.second);
    KILN_TRY(auto const met, crossings_in_order(on, a.layer, b.layer));
    crossing_pairs const of{met.left.data(), met.right.data(), met.how.data()};
    auto const bits = bits_for(right.rows());
    KILN_TRY(auto listed, list_shares(on, a, b, of, met.size(), bits));
    auto const n = listed.key.size();
    KILN_CHECK(on.sort(listed.key, listed.number, bits + bits_for(left.rows())));

    KILN_TRY(auto before, on.room<std::int64_t>(n + 1));
    KILN_CHECK(on.launch(count_pairs{raw(listed.key), raw(before)}, n));
    KILN_TRY(auto const total, on.total_sync(before));
    auto const pairs = static_cast<std::size_t>(total);
    sorted_shares const shares{a.layer.view(),       b.layer.view(),       of,
                               listed.shares.data(), listed.number.data(), raw(before)};
    area_list all;
    KILN_TRY(all.left, on.room<std::int32_t>(pairs));
    KILN_TRY(all.right, on.room<std::int32_t>(pairs));
    KILN_TRY(auto first, on.room<std::int32_t>(pairs + 1));
    KILN_TRY(auto is_real, on.filled<std::uint32_t>(pairs, 0));
    KILN_CHECK(on.launch(
        set_pairs{shares, raw(listed.key), n, bits, all.left.data(), all.right.data(), first.data(), is_real.data()},
        n));
    KILN_TRY(auto unsure, on.room<std::uint32_t>(n));
    KILN_TRY(auto listed_unsure, on.filled<std::uint32_t>(2, 0));
    for (std::size_t const turn : {0, 1}) {
        auto* const count = listed_unsure.data() + turn;
        KILN_CHECK(on.launch(list_unsure{shares, first.data(), is_real.data(), turn == 0, unsure.data(), count}, n));
        KILN_CHECK(on.launch(look_beside{shares, a.cells.view(), b.cells.view(), all.left.data(), all.right.data(),
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
