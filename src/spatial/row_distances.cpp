// SPDX-License-Identifier: Apache-2.0
//
// Pairs of rows are divided into items, one for each vertex of the smaller row (kernels/spatial/pair_distance.cuh), so that neither many
// small pairs nor one of two large rows leave threads idle. Rows within a distance come from their boxes, which decide most of them.
#include "spatial/row_distances.hpp"

#include "spatial/near.hpp"
#include "spatial/operations.hpp"
#include "spatial/pair_distance.cuh"
#include "spatial/pairs.hpp"
#include "spatial/path_points.hpp"
#include "spatial/row_blocks.cuh"

#include <kiln/spatial/nearest.hpp>

#include <algorithm>
#include <cmath>

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

// Items of one launch: what is put off has a number of 32 bits, and a list for all of them.
constexpr std::size_t most_items = std::size_t{1} << 26;

// Asks all items, by filters and then exactly.
template <class Asked>
result<void> search(queue& on, buffer<std::int64_t> const& place, Asked const& asked) {
    std::int64_t total = 0;
    KILN_CHECK(on.read_sync({{place.data() + place.size() - 1, total}}));
    auto const all = static_cast<std::size_t>(total);
    if (all == 0) return {};
    KILN_TRY(auto later, on.room<std::uint32_t>(std::min(all, most_items)));
    for (std::size_t first = 0; first < all; first += most_items) {
        auto const n = std::min(most_items, all - first), threads = std::min(on.threads(), n);
        KILN_TRY(auto laters, on.filled<std::uint32_t>(1, 0));
        ask_quickly<Asked> const quickly{asked, first, later.data(), laters.data()};
        KILN_CHECK(on.launch(quickly, n));
        KILN_CHECK(on.launch(ask_exactly<Asked>{quickly, threads}, threads));
    }
    return {};
}

}  // namespace

result<kept_search> kept_search::make(queue& on, geometries const& of) {
    kept_search out;
    KILN_TRY(out.layer_, kept_layer::plain(on, of));
    auto const n = out.layer_.vertices(), rows = out.layer_.rows();
    KILN_TRY(out.blocks_, on.room<box>(n / block_vertices + rows + 1));
    KILN_TRY(out.groups_, on.room<box>(n / group_vertices + rows + 1));
    auto const l = out.layer_.view();
    KILN_CHECK(on.launch(make_row_blocks{l, out.blocks_.data()}, n));
    KILN_CHECK(on.launch(make_row_groups{l, out.blocks_.data(), out.groups_.data()}, n));
    return out;
}

row_search kept_search::view() const noexcept {
    return {layer_.view(), blocks_.data(), groups_.data(), layer_.states().data(),
            reinterpret_cast<signed char const*>(layer_.dimensions().data())};
}

result<buffer<double>> distances_of_rows(queue& on, geometries const& left, geometries const& right) {
    auto const n = std::min(left.rows(), right.rows());
    KILN_TRY(auto const a, kept_search::make(on, left));
    KILN_TRY(auto const b, kept_search::make(on, right));
    pair_sides const sides{a.view(), b.view(), {nullptr, nullptr}};
    KILN_TRY(auto place, on.room<std::int64_t>(n + 1));
    KILN_TRY(auto squares, on.room<std::uint64_t>(n));
    KILN_CHECK(on.launch(count_pair_items{sides, raw(place), raw(squares)}, n));
    KILN_CHECK(on.sum(place));
    pair_items const items{sides, raw(place), n, right_areas::asked};
    KILN_CHECK(search(on, place, pair_squares{items, raw(squares)}));
    KILN_TRY(auto out, on.room<double>(n));
    KILN_CHECK(on.launch(roots_of_squares{raw(squares), out.data()}, n));
    return out;
}

result<rows_within> rows_within::make(queue& on, geometries const& right, double distance, std::size_t walked) {
    if (!(distance >= 0) || !in_domain(distance))
        return fail(errc::invalid_argument, "dwithin: a distance of {}; 0, or from 2^-300 to below 2^330", distance);
    rows_within out{on};
    out.distance_ = distance, out.walked_ = walked, out.has_areas_ = has_areas(right);
    if (right.empty()) return out;
    KILN_TRY(out.right_, kept_search::make(on, right));
    KILN_TRY(out.boxes_, out.right_.layer().row_boxes(on));
    KILN_TRY(out.tree_, kept_tree::make(on, out.boxes_));
    return out;
}

// A point's way through the blocks of a large area's ring is long. Where many go it, an index is made, which tells at once.
result<right_areas> rows_within::mark_insides(kept_layer const& left, pair_list const& asked,
                                              buffer<std::uint32_t> const& found) {
    auto const& right = right_.layer();
    if (!has_areas_ || asked.size() * (right.vertices() / right.rows()) <= walked_) return right_areas::asked;
    if (!areas_) {
        KILN_TRY(areas_, build_brief_index(*on_, right));
    }
    KILN_TRY(auto const in, first_vertices_in(*on_, left, *areas_, wanted_inside | wanted_on));
    KILN_CHECK(on_->launch(
        mark_inside_pairs{
            in.left.data(), in.right.data(), {asked.left.data(), asked.right.data()}, asked.size(), found.data()},
        in.size()));
    return right_areas::known;
}

result<pair_list> rows_within::of(geometries const& left) {
    if (left.empty() || boxes_.empty()) return pair_list{};
    auto& on = *on_;
    auto const distance = distance_;
    KILN_TRY(auto const a, kept_search::make(on, left));
    KILN_TRY(auto const left_boxes, a.layer().row_boxes(on));
    // Boxes are compared in doubles: a little more than the distance, so that rounding leaves nothing out.
    KILN_TRY(auto const asked, query_boxes(on, tree_, left_boxes, distance * (1 + 0x1p-40)));
    auto const n = asked.size();
    if (n == 0) return pair_list{};

    double const square = distance * distance, far = square * (1 + 0x1p-40), near = square * (1 - 0x1p-40);
    pair_sides const sides{a.view(), right_.view(), {asked.left.data(), asked.right.data()}};
    KILN_TRY(auto place, on.room<std::int64_t>(n + 1));
    KILN_TRY(auto found, on.room<std::uint32_t>(n));
    KILN_CHECK(on.launch(judge_pairs{sides, left_boxes.data(), boxes_.data(), near, far, raw(place), found.data()}, n));
    KILN_CHECK(on.sum(place));
    KILN_TRY(auto const insides, mark_insides(a.layer(), asked, found));
    pair_items const items{sides, raw(place), n, insides};
    KILN_CHECK(search(on, place, pairs_within{items, distance, far, found.data()}));

    KILN_CHECK(on.launch(count_pairs_found{found.data(), raw(place)}, n));
    return counted_pairs(on, asked, place);
}

result<buffer<double>> distance(stream_ref on, geometries const& left, geometries const& right) {
    KILN_TRY(auto const facts, facts_of(distance_operation, left, right));
    KILN_TRY(auto const call, runtime::operation_call::begin(distance_operation, facts));
    KILN_TRY(auto const a, brought(call, on, left));
    KILN_TRY(auto const b, brought(call, on, right));
    if (call.on_gpu()) {
        device_queue there{on, a.device()};
        return distances_of_rows(there, a, b);
    }
    KILN_TRY(auto const all, cpu::distance(a, b));
    auto out = buffer<double>::on_host(all.size());
    std::ranges::transform(all, out.data(), [](std::optional<double> const& d) { return d.value_or(NAN); });
    return out;
}

}  // namespace kiln::spatial
