// SPDX-License-Identifier: Apache-2.0
#include "spatial/overlay/arrangement.hpp"

#include "spatial/noding.cuh"
#include "spatial/overlay_borders.cuh"
#include "spatial/overlay_noding.cuh"

#include <algorithm>
#include <cmath>

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

// An index that is asked once for every border: built quickly rather than finely.
constexpr cell_options coarse_cells{.cells_per_edge = 1, .split_above = 64, .edges_per_cell = 16};

// Crossings move segments by rounding, and that ends soon, unless many of them run nearly along each other.
constexpr int most_rounds = 12;
constexpr std::size_t grows_by_chance = 1000;
constexpr int most_rounds_on_a_grid = 64;

double step_for(box const& around) {
    return step_for_size(
        std::max({std::abs(around.min_x), std::abs(around.min_y), std::abs(around.max_x), std::abs(around.max_y)}));
}

}  // namespace

result<arrangement> arrangement::make(queue& on, kept_layer of, world_list worlds, double grid) {
    all_at_once whole;
    KILN_TRY(auto out, divided(on, std::move(of), std::move(worlds), grid, whole));
    KILN_CHECK(out.find_all(on));
    return out;
}

result<arrangement> arrangement::divided(queue& on, kept_layer of, world_list worlds, double grid,
                                         division_source& by) {
    if (!worlds.of_row.empty()) KILN_CHECK(of.leave_out(on, worlds.of_row));
    KILN_TRY(auto numbered, kept_worlds::make(on, std::move(worlds.of_row), worlds.worth_it));
    arrangement out{std::move(of), std::move(numbered)};
    out.by_ = &by;
    KILN_CHECK(out.divide_all(on, grid));
    out.by_ = nullptr;
    return out;
}

result<arrangement> arrangement::of_divided(queue& on, kept_layer of, world_list worlds) {
    KILN_TRY(auto numbered, kept_worlds::make(on, std::move(worlds.of_row), worlds.worth_it));
    arrangement out{std::move(of), std::move(numbered)};
    KILN_CHECK(out.find_all(on));
    return out;
}

result<void> arrangement::find_all(queue& on) {
    KILN_CHECK(find_places(on));
    KILN_CHECK(find_strands(on));
    return find_borders(on);
}

result<arrangement::noded_paths> arrangement::noded_layer(queue& on, kept_layer of, unrest what) {
    all_at_once whole;
    arrangement out{std::move(of), {}};
    out.by_ = &whole;
    KILN_TRY(out.owned_, on.filled<std::uint32_t>(out.layer_.vertices(), 1));
    if (what == unrest::is_snapped) {
        KILN_CHECK(out.divide_all(on, 0));
        return noded_paths{std::move(out.layer_), std::move(out.owned_), {}, out.unrest_};
    }
    KILN_TRY(out.crossed_rows_, on.filled<std::uint32_t>(out.layer_.rows(), 0));
    KILN_TRY(bool const is_noded, out.node(on));
    auto restless = is_noded ? buffer<std::uint32_t>{} : std::move(out.restless_);
    return noded_paths{std::move(out.layer_), std::move(out.owned_), std::move(restless), out.unrest_};
}

result<void> arrangement::carry_owned(queue& on, buffer<std::int64_t> const& place) {
    if (owned_.empty()) return {};
    KILN_TRY(auto owned, on.room<std::uint32_t>(layer_.vertices()));
    KILN_CHECK(on.launch(kiln_spatial::carry_owned{owned_.data(), raw(place), owned.data()}, owned_.size()));
    owned_ = std::move(owned);
    return {};
}

result<void> arrangement::divide_all(queue& on, double grid) {
    if (grid != 0) {
        KILN_CHECK(require_coarse(on, grid));
        return snap(on, {grid});
    }
    auto const before = layer_;
    auto const owned = owned_;
    KILN_TRY(crossed_rows_, on.filled<std::uint32_t>(layer_.rows(), 0));
    KILN_TRY(bool const is_noded, node(on));
    if (is_noded) return {};
    if (!worlds_.empty()) return snap_restless(on, before);
    layer_ = before, owned_ = owned;  // not what crossings made of it
    KILN_TRY(auto const around, layer_.bounds(on, segment_kinds));
    unrest_.grid = step_for(around);
    KILN_TRY(unrest_.snapped, rows_with(on, owned_.empty() ? ring_kinds : 1U << line_path));
    return snap(on, {unrest_.grid});
}

// Only worlds that do not come to rest are put onto a grid, each onto its own.
result<void> arrangement::snap_restless(queue& on, kept_layer const& before) {
    auto const rows = layer_.rows();
    auto const* const number = worlds_.number.data();
    KILN_TRY(auto which, on.room<std::int32_t>(rows));
    KILN_CHECK(on.launch(choose_worlds{worlds_.data(), number, restless_.data(), 1, which.data()}, rows));
    KILN_TRY(auto restless, kept_worlds::make(on, std::move(which), worlds_.worth_it));
    unrest_.snapped = restless.count;
    if (restless.count == worlds_.count) layer_ = before;
    else {
        KILN_TRY(auto const both, kept_layer::joined(on, before, layer_));
        KILN_TRY(auto const source, on.room<std::int32_t>(rows));
        KILN_CHECK(on.launch(choose_calm_rows{number, restless_.data(), static_cast<i32>(rows), source.data()}, rows));
        KILN_TRY(auto chosen, both.choose(on, source));
        layer_ = std::move(chosen.layer);
    }
    auto const all = std::exchange(worlds_, std::move(restless));
    KILN_TRY(auto const grids, grids_of_worlds(on));
    unrest_.grid = grids.step;
    KILN_CHECK(snap(on, grids));
    worlds_ = all;
    return {};
}

result<kept_grids> arrangement::grids_of_worlds(queue& on) const {
    auto const* const number = worlds_.number.data();
    KILN_TRY(auto const least, on.filled<std::uint64_t>(worlds_.count + 1, ~0U));
    KILN_TRY(auto const of_all, on.filled<std::uint64_t>(1, ~0U));
    kept_grids out;
    KILN_TRY(out.scales, on.room<double>(layer_.rows()));
    KILN_CHECK(on.launch(find_world_sizes{layer_.view(), number, raw(least)}, layer_.vertices()));
    KILN_CHECK(on.launch(set_row_scales{number, raw(least), out.scales.data()}, layer_.rows()));
    KILN_CHECK(on.launch(find_largest_world{raw(least), raw(of_all)}, worlds_.count));
    std::uint64_t largest = 0;
    KILN_CHECK(on.read_sync({{of_all.data(), largest}}));
    out.step = step_for_size(from_bits(~largest));
    return out;
}

result<std::size_t> arrangement::rows_with(queue& on, std::uint32_t kinds) const {
    KILN_TRY(auto const count, on.filled<std::uint64_t>(1, 0));
    KILN_CHECK(on.launch(count_rows_with{layer_.view(), kinds, raw(count)}, layer_.rows()));
    std::uint64_t out = 0;
    KILN_CHECK(on.read_sync({{count.data(), out}}));
    return static_cast<std::size_t>(out);
}

// Squares of a finer grid would have no inside among doubles, and nothing would come through them.
result<void> arrangement::require_coarse(queue& on, double grid) const {
    KILN_TRY(auto const around, layer_.bounds(on, ring_kinds));
    double const finest = step_for(around);
    if (around.min_x > around.max_x || grid >= finest) return {};
    return fail(errc::invalid_argument,
                "overlay: a grid of {} is finer than coordinates of this size are; {} is the least", grid, finest);
}

// Nothing moves before something crosses, so it does not matter in which round a row is seen to.
result<void> arrangement::note_crossed(queue& on, buffer<std::uint32_t> const& moved) const {
    return on.launch(find_crossed_rows{layer_.view(), moved.data(), crossed_rows_.data()}, layer_.vertices());
}

result<void> arrangement::note_restless(queue& on, buffer<std::uint32_t> const& moved) {
    auto number = worlds_.number;
    if (worlds_.empty()) {
        auto const rows = layer_.rows();
        KILN_TRY(number, on.room<std::int32_t>(rows));
        KILN_CHECK(on.launch(number_words{number.data()}, rows));
        KILN_TRY(restless_, on.filled<std::uint32_t>(rows, 0));
    }
    return on.launch(find_restless{layer_.view(), moved.data(), number.data(), restless_.data()}, layer_.vertices());
}

// Worlds are judged by their own divisions, so that none is given up, or waited for, because of others.
result<bool> arrangement::judge(queue& on, int round, found_divisions& found, buffer<std::uint32_t> const& moved,
                                buffer<std::uint64_t>& counts) {
    auto const worlds = worlds_.count + 1;  // one more for rows of none, or for the only one
    auto const* const number = worlds_.empty() ? nullptr : worlds_.number.data();
    KILN_TRY(auto const now, on.filled<std::uint64_t>(worlds, 0));
    KILN_CHECK(on.launch(count_world_divisions{layer_.view(), found.segment_of.data(), number, raw(now)}, found.count));
    auto const before = std::exchange(counts, now);
    if (round == 0) return true;
    KILN_TRY(auto const told, on.filled<std::uint64_t>(2, 0));
    KILN_CHECK(on.launch(
        judge_worlds{raw(now), raw(before), grows_by_chance, round > 3, restless_.data(), raw(told), raw(told) + 1},
        worlds));
    std::uint64_t calm = 0, given_up = 0;
    KILN_CHECK(on.read_sync({{told.data(), calm}, {told.data() + 1, given_up}}));
    unrest_.moved_again += static_cast<std::size_t>(calm);
    if (given_up == 0) return true;
    if (calm > 0) KILN_CHECK(give_up_restless(on, found, moved));
    else {
        if (worlds_.empty()) KILN_CHECK(note_restless(on, moved));
        found = {};
    }
    return false;
}

result<void> arrangement::give_up_restless(queue& on, found_divisions& found,
                                           buffer<std::uint32_t> const& moved) const {
    auto const* const number = worlds_.number.data();
    calm_divisions const of{layer_.view(), found.segment_of.data(), found.at.data(), number, restless_.data()};
    KILN_TRY(auto const place, on.room<std::int64_t>(found.count + 1));
    KILN_CHECK(on.launch(count_calm_divisions{of, raw(place)}, found.count));
    KILN_TRY(auto const total, on.total_sync(place));
    found_divisions out;
    out.count = static_cast<std::size_t>(total);
    KILN_TRY(out.segment_of, on.room<std::int32_t>(out.count));
    KILN_TRY(out.at, on.room<point>(out.count));
    KILN_TRY(out.number, on.room<std::int32_t>(out.count));
    KILN_CHECK(on.launch(keep_calm_divisions{of, raw(place), out.segment_of.data(), out.at.data(), out.number.data()},
                         found.count));
    found = std::move(out);
    return on.launch(forget_moved{layer_.view(), number, restless_.data(), moved.data()}, layer_.vertices());
}

result<bool> arrangement::node(queue& on) {
    buffer<std::uint32_t> asks;  // empty: all
    buffer<std::uint64_t> counts;
    bool all_rest = true;
    KILN_TRY(restless_, on.filled<std::uint32_t>(worlds_.count + 1, 0));
    for (int round = 0; round < most_rounds; ++round) {
        auto const n = layer_.vertices();
        if (n == 0) return all_rest;
        KILN_TRY(auto moved, on.filled<std::uint32_t>(n, 0));
        KILN_TRY(auto found, by_->crossings(on, layer_, worlds_, asks, moved));
        if (found.count == 0) return all_rest;
        KILN_CHECK(note_crossed(on, moved));
        KILN_TRY(bool const others_rest, judge(on, round, found, moved, counts));
        all_rest &= others_rest;
        if (found.count == 0) return all_rest;
        KILN_TRY(auto const place, divide(on, std::move(found)));
        KILN_CHECK(carry_owned(on, place));
        KILN_TRY(asks, on.room<std::uint32_t>(layer_.vertices()));
        KILN_TRY(auto any, on.filled<std::uint64_t>(1, 0));
        KILN_CHECK(on.launch(spread_moved{moved.data(), raw(place), asks.data(), raw(any)}, n));
        std::uint64_t left = 0;
        KILN_CHECK(on.read_sync({{any.data(), left}}));
        if (left == 0) return all_rest;
    }
    KILN_CHECK(note_restless(on, asks));
    return false;
}

result<void> arrangement::snap(queue& on, kept_grids const& grids) {
    KILN_CHECK(layer_.round(on, grids.view(), worlds_.data()));
    if (!owned_.empty()) {
        KILN_TRY(owned_, on.filled<std::uint32_t>(layer_.vertices(), 1));
    }
    for (int round = 0; round < most_rounds_on_a_grid; ++round) {
        if (layer_.vertices() == 0) return {};
        // After the first turn only what is new is hot: others have had their segments.
        KILN_TRY(auto hot,
                 by_->squares(on, layer_, worlds_, grids, round == 0 ? hot_vertices::all : hot_vertices::none));
        if (hot.count == 0 && hot.crossings == 0) return {};
        if (hot.count == 0)
            return fail(errc::internal, "overlay: crossings are in no square of a grid of {}", grids.step);
        KILN_TRY(auto const place, divide(on, std::move(hot)));
        KILN_CHECK(carry_owned(on, place));
    }
    return fail(errc::internal, "overlay: crossings still move segments on a grid of {} after {} rounds", grids.step,
                most_rounds_on_a_grid);
}

result<buffer<std::int64_t>> arrangement::divide(queue& on, found_divisions at) {
    auto const m = at.count;
    KILN_TRY(auto key, on.room<std::uint64_t>(m));
    KILN_TRY(auto own, on.room<std::int32_t>(m));
    KILN_CHECK(on.launch(number_words{own.data()}, m));
    for (i32 step = 0; step < 2; ++step) {
        KILN_CHECK(on.launch(
            division_keys{layer_.view(), at.segment_of.data(), at.at.data(), at.number.data(), step, raw(key)}, m));
        KILN_CHECK(on.sort(key, at.number, 64));
    }
    KILN_CHECK(on.launch(segment_keys{at.number.data(), at.segment_of.data(), raw(key)}, m));
    KILN_CHECK(on.sort(key, at.number, bits_for(layer_.vertices())));
    KILN_TRY(auto place, layer_.divide(on, {std::move(key), std::move(at.number), std::move(own), at.at.data()}));
    return place;
}

result<void> arrangement::find_places(queue& on) {
    placed_vertices const of{layer_.view(), worlds_.data()};
    auto const n = layer_.vertices();
    KILN_TRY(auto key, on.room<std::uint64_t>(n));
    KILN_TRY(at_place_, on.room<std::int32_t>(n));
    KILN_TRY(auto const around, layer_.extent(on, ring_kinds));
    KILN_CHECK(on.launch(place_hashes{of, raw(around), raw(key), at_place_.data()}, n));
    KILN_CHECK(on.sort(key, at_place_, 64));
    KILN_TRY(auto is_new, on.room<std::int64_t>(n + 1));
    KILN_TRY(auto clashes, on.filled<std::uint64_t>(1, 0));
    KILN_CHECK(on.launch(count_places{of, raw(key), at_place_.data(), raw(is_new), raw(clashes)}, n));
    KILN_CHECK(on.sum(is_new));
    std::int64_t total = 0;
    std::uint64_t clash = 0;
    KILN_CHECK(on.read_sync({{is_new.data() + n, total}, {clashes.data(), clash}}));
    if (clash > 0) {
        for (i32 step = 0; step < (worlds_.empty() ? 2 : 3); ++step) {
            KILN_CHECK(on.launch(place_keys{of, step, at_place_.data(), raw(key)}, n));
            KILN_CHECK(on.sort(key, at_place_, 64));
        }
        KILN_CHECK(on.launch(count_places{of, raw(key), at_place_.data(), raw(is_new), raw(clashes)}, n));
        KILN_TRY(total, on.total_sync(is_new));
    }
    places_ = static_cast<std::size_t>(total);
    KILN_TRY(place_of_, on.room<std::int32_t>(n));
    KILN_TRY(place_first_, on.room<std::int32_t>(places_ + 1));
    return on.launch(set_places{raw(key), at_place_.data(), raw(is_new), n, place_of_.data(), place_first_.data()}, n);
}

result<void> arrangement::find_strands(queue& on) {
    auto const l = layer_.view();
    auto const n = layer_.vertices(), paths = layer_.paths();
    KILN_TRY(strand_number_, on.room<std::int64_t>(n + 1));
    KILN_TRY(auto of_path, on.filled<std::uint64_t>(paths, 0));
    KILN_CHECK(on.launch(
        find_junctions{l, place_of_.data(), place_first_.data(), at_place_.data(), raw(strand_number_), raw(of_path)},
        n));
    KILN_TRY(auto const least, on.filled<std::uint64_t>(2 * paths, ~0U));
    for (i32 step = 0; step < 3; ++step)
        KILN_CHECK(
            on.launch(find_anchors{l, raw(of_path), raw(least), raw(least) + paths, step, raw(strand_number_)}, n));
    KILN_TRY(auto const total, on.total_sync(strand_number_));
    KILN_TRY(start_, on.room<std::int32_t>(static_cast<std::size_t>(total)));
    return on.launch(set_strands{raw(strand_number_), start_.data()}, n);
}

result<void> arrangement::find_borders(queue& on) {
    auto const n = start_.size();
    KILN_TRY(auto key, on.room<std::uint64_t>(n));
    KILN_TRY(member_, on.room<std::int32_t>(n));
    KILN_CHECK(on.launch(strand_keys{view().s, raw(key), member_.data()}, n));
    KILN_CHECK(on.sort(key, member_, 32 + bits_for(places_)));
    KILN_TRY(auto is_new, on.room<std::int64_t>(n + 1));
    KILN_CHECK(on.launch(count_borders{raw(key), raw(is_new)}, n));
    KILN_TRY(auto const total, on.total_sync(is_new));
    borders_ = static_cast<std::size_t>(total);
    KILN_TRY(border_first_, on.room<std::int32_t>(borders_ + 1));
    return on.launch(set_borders{raw(is_new), n, border_first_.data()}, n);
}

border_list arrangement::view() const noexcept {
    return {
        {layer_.view(), place_of_.data(), raw(strand_number_), start_.data()}, member_.data(), border_first_.data()};
}

result<kept_cells> arrangement::index_rows(queue& on) const {
    return kept_cells::make(on, layer_, coarse_cells, worlds_);
}

result<arrangement::covers> arrangement::find_covers(queue& on) const {
    covers out;
    KILN_TRY(auto const cells, index_rows(on));
    cover_search const search{view(), cells.by_world(), worlds_.data()};
    KILN_TRY(out.first, on.room<std::int64_t>(borders_ + 1));
    KILN_TRY(auto kept, on.room<std::uint32_t>(covers_kept * borders_));
    KILN_CHECK(on.launch(count_covers{search, borders_, kept.data(), raw(out.first)}, borders_));
    KILN_TRY(auto const total, on.total_sync(out.first));
    KILN_TRY(out.cover, on.room<std::uint32_t>(static_cast<std::size_t>(total)));
    KILN_CHECK(on.launch(list_covers{search, borders_, kept.data(), raw(out.first), out.cover.data()}, borders_));
    return out;
}

// ---- Layers for it ----

result<void> kept_layer::leave_out(queue& on, buffer<std::int32_t> const& numbers) {
    return on.launch(leave_rows_out{view(), numbers.data(), kind_.data()}, paths());
}

result<kept_layer> kept_layer::without(queue& on, buffer<std::int32_t> const& numbers) const {
    auto out = *this;
    KILN_TRY(out.kind_, on.room<std::uint8_t>(paths()));
    KILN_CHECK(on.launch(keep_rows{view(), numbers.data(), out.kind_.data()}, paths()));
    out.elements_.reset();
    return out;
}

result<void> kept_layer::round(queue& on, row_grids const& grids, std::int32_t const* numbers) {
    KILN_TRY(auto at, on.room<point>(vertices()));
    KILN_CHECK(on.launch(round_vertices{view(), numbers, grids, at.data()}, vertices()));
    at_ = std::move(at);
    KILN_CHECK(drop_repeated(on));
    elements_.reset();
    return {};
}

result<kept_layer> kept_layer::joined(queue& on, kept_layer const& first, kept_layer const& second) {
    auto const a = first.view(), b = second.view();
    auto const rows = first.rows() + second.rows(), paths = first.paths() + second.paths(),
               vertices = first.vertices() + second.vertices();
    if (vertices > 0x7fffffff)
        return fail(errc::unsupported, "overlay: {} vertices: take the arrays in parts", vertices);
    kept_layer out;
    out.rows_ = rows;
    KILN_TRY(out.row_first_, on.room<std::int32_t>(rows + 1));
    KILN_TRY(out.state_, on.room<std::uint8_t>(rows));
    KILN_TRY(out.path_first_, on.room<std::int32_t>(paths + 1));
    KILN_TRY(out.row_of_, on.room<std::int32_t>(paths));
    KILN_TRY(out.kind_, on.room<std::uint8_t>(paths));
    KILN_TRY(out.at_, on.room<point>(vertices));
    KILN_TRY(out.path_of_, on.room<std::int32_t>(vertices));
    KILN_CHECK(
        on.launch(join_rows{a, b, first.state_.data(), second.state_.data(), out.row_first_.data(), out.state_.data()},
                  rows + 1));
    KILN_CHECK(on.launch(join_paths{a, b, out.path_first_.data(), out.row_of_.data(), out.kind_.data()}, paths + 1));
    KILN_CHECK(on.launch(join_vertices{a, b, out.at_.data(), out.path_of_.data()}, vertices));
    return out;
}

}  // namespace kiln::spatial
