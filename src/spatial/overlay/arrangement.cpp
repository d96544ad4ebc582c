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

// Of coordinates up to this size, a step that is coarse beside their rounding and fine beside everything else: 2^-46 of it, and never so fine
// that its multiples would be too small for exact signs.
double step_for(box const& around) {
    double const size =
        std::max({std::abs(around.min_x), std::abs(around.min_y), std::abs(around.max_x), std::abs(around.max_y)});
    return size > 0 ? std::ldexp(1.0, std::max(std::ilogb(size) - 46, least_exponent)) : 1;
}

}  // namespace

result<arrangement> arrangement::make(queue& on, kept_layer of, buffer<std::int32_t> worlds, double grid) {
    all_at_once whole;
    KILN_TRY(auto out, divided(on, std::move(of), std::move(worlds), grid, whole));
    KILN_CHECK(out.find_all(on));
    return out;
}

result<arrangement> arrangement::divided(queue& on, kept_layer of, buffer<std::int32_t> worlds, double grid,
                                         division_source& by) {
    if (!worlds.empty()) KILN_CHECK(of.leave_out(on, worlds));
    arrangement out{std::move(of), std::move(worlds)};
    out.by_ = &by;
    KILN_CHECK(out.divide_all(on, grid));
    out.by_ = nullptr;
    return out;
}

result<arrangement> arrangement::of_divided(queue& on, kept_layer of, buffer<std::int32_t> worlds) {
    arrangement out{std::move(of), std::move(worlds)};
    KILN_CHECK(out.find_all(on));
    return out;
}

result<void> arrangement::find_all(queue& on) {
    KILN_CHECK(find_places(on));
    KILN_CHECK(find_strands(on));
    return find_borders(on);
}

result<arrangement::noded_paths> arrangement::noded_layer(queue& on, kept_layer of) {
    all_at_once whole;
    arrangement out{std::move(of), {}};
    out.by_ = &whole;
    KILN_TRY(out.owned_, on.filled<std::uint32_t>(out.layer_.vertices(), 1));
    KILN_CHECK(out.divide_all(on, 0));
    return noded_paths{std::move(out.layer_), std::move(out.owned_)};
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
        return snap(on, grid);
    }
    auto const before = layer_;
    auto const owned = owned_;
    KILN_TRY(crossed_rows_, on.filled<std::uint32_t>(layer_.rows(), 0));
    KILN_TRY(bool const is_noded, node(on));
    if (is_noded) return {};
    layer_ = before, owned_ = owned;  // not what crossings made of it
    KILN_TRY(auto const around, layer_.bounds(on, segment_kinds));
    if (worlds_.empty()) return snap(on, step_for(around));
    // Only worlds that do not come to rest are put onto a grid.
    auto const all = worlds_;
    KILN_TRY(auto const restless, worlds_that(on, 1));
    KILN_TRY(worlds_, worlds_that(on, 0));
    KILN_TRY(bool const others_are, node(on));
    worlds_ = others_are ? restless : all;
    if (!others_are) layer_ = before, owned_ = owned;
    KILN_CHECK(snap(on, step_for(around)));
    worlds_ = all;
    return {};
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
    if (worlds_.empty()) return {};
    KILN_TRY(auto last, on.filled<std::uint64_t>(1, ~0U));
    KILN_CHECK(on.launch(find_last_world{worlds_.data(), raw(last)}, worlds_.size()));
    std::uint64_t turned = 0;
    KILN_CHECK(on.read_sync({{last.data(), turned}}));
    KILN_TRY(restless_, on.filled<std::uint32_t>(static_cast<std::size_t>(~turned) + 1, 0));
    return on.launch(find_restless{layer_.view(), moved.data(), worlds_.data(), restless_.data()}, layer_.vertices());
}

result<buffer<std::int32_t>> arrangement::worlds_that(queue& on, std::uint32_t restless) const {
    KILN_TRY(auto out, on.room<std::int32_t>(worlds_.size()));
    KILN_CHECK(on.launch(choose_worlds{worlds_.data(), restless_.data(), restless, out.data()}, worlds_.size()));
    return out;
}

result<bool> arrangement::node(queue& on) {
    buffer<std::uint32_t> asks;  // empty: all
    std::size_t before = 0;
    for (int round = 0; round < most_rounds; ++round) {
        auto const n = layer_.vertices();
        if (n == 0) return true;
        KILN_TRY(auto moved, on.filled<std::uint32_t>(n, 0));
        KILN_TRY(auto found, by_->crossings(on, layer_, worlds_, asks, moved));
        if (found.count == 0) return true;
        KILN_CHECK(note_crossed(on, moved));
        bool const grows = round > 0 && found.count > before + grows_by_chance;
        if (grows || (round > 3 && 2 * found.count > before)) {
            KILN_CHECK(note_restless(on, moved));
            return false;
        }
        before = found.count;
        if (round > 0) moved_again_ += found.count;
        KILN_TRY(auto const place, divide(on, std::move(found)));
        KILN_CHECK(carry_owned(on, place));
        KILN_TRY(asks, on.room<std::uint32_t>(layer_.vertices()));
        KILN_TRY(auto any, on.filled<std::uint64_t>(1, 0));
        KILN_CHECK(on.launch(spread_moved{moved.data(), raw(place), asks.data(), raw(any)}, n));
        std::uint64_t left = 0;
        KILN_CHECK(on.read_sync({{any.data(), left}}));
        if (left == 0) return true;
    }
    KILN_CHECK(note_restless(on, asks));
    return false;
}

result<void> arrangement::snap(queue& on, double grid) {
    grid_ = grid;
    KILN_CHECK(layer_.round(on, 1 / grid, worlds()));
    if (!owned_.empty()) {
        KILN_TRY(owned_, on.filled<std::uint32_t>(layer_.vertices(), 1));
    }
    for (int round = 0; round < most_rounds_on_a_grid; ++round) {
        if (layer_.vertices() == 0) return {};
        // After the first turn only what is new is hot: others have had their segments.
        KILN_TRY(auto hot,
                 by_->squares(on, layer_, worlds_, grid, round == 0 ? hot_vertices::all : hot_vertices::none));
        if (hot.count == 0 && hot.crossings == 0) return {};
        if (hot.count == 0) return fail(errc::internal, "overlay: crossings are in no square of a grid of {}", grid);
        KILN_TRY(auto const place, divide(on, std::move(hot)));
        KILN_CHECK(carry_owned(on, place));
    }
    return fail(errc::internal, "overlay: crossings still move segments on a grid of {} after {} rounds", grid,
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
    placed_vertices const of{layer_.view(), worlds()};
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
    KILN_TRY(auto x, on.filled<std::uint64_t>(paths, ~0U));
    KILN_TRY(auto y, on.filled<std::uint64_t>(paths, ~0U));
    for (i32 step = 0; step < 3; ++step)
        KILN_CHECK(on.launch(find_anchors{l, raw(of_path), raw(x), raw(y), step, raw(strand_number_)}, n));
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

result<arrangement::covers> arrangement::find_covers(queue& on) const {
    covers out;
    KILN_TRY(auto const cells, kept_cells::make(on, layer_, coarse_cells));
    cover_search const search{view(), cells.view(), worlds()};
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

result<void> kept_layer::round(queue& on, double scale, std::int32_t const* numbers) {
    KILN_TRY(auto at, on.room<point>(vertices()));
    KILN_CHECK(on.launch(round_vertices{view(), numbers, {scale}, at.data()}, vertices()));
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
