// SPDX-License-Identifier: Apache-2.0
#include "spatial/area_index.hpp"

#include "spatial/operations.hpp"
#include "spatial/row_facts.hpp"

#include <algorithm>

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

// What was measured on an H200 to be best for many points; a host has no use for a million cells of its own.
constexpr std::size_t least_cells_for(index_use use) { return std::size_t{1} << (use == index_use::kept ? 22 : 20); }
cell_options options_for(queue const& on, index_use use) {
    cell_options out;
    if (on_device(on.where())) out.least_cells = least_cells_for(use);
    return out;
}

}  // namespace

result<std::shared_ptr<area_index::state const>> build_index(queue& on, kept_layer const& areas,
                                                             cell_options const& how) {
    auto out = std::make_shared<area_index::state>();
    out->layer = areas;
    KILN_TRY(out->cells, kept_cells::make(on, out->layer, how));
    out->rows = areas.rows(), out->where = on.where(), out->device = on.device();
    return std::shared_ptr<area_index::state const>{std::move(out)};
}

result<std::shared_ptr<area_index::state const>> build_index(queue& on, geometries const& areas, index_use use) {
    KILN_TRY(auto const layer, kept_layer::plain(on, areas));
    return build_index(on, layer, options_for(on, use));
}
result<std::shared_ptr<area_index::state const>> build_brief_index(queue& on, kept_layer const& areas) {
    auto how = options_for(on, index_use::once);
    how.split_above = 64;
    return build_index(on, areas, how);
}

result<area_index> area_index::make(stream_ref on, geometries const& areas) {
    if (on_device(areas.where())) {
        device_queue there{on, areas.device()};
        KILN_TRY(auto made, build_index(there, areas, index_use::kept));
        return area_index{std::move(made)};
    }
    KILN_CHECK(require_valid_once(areas));
    host_queue here;
    KILN_TRY(auto made, build_index(here, areas, index_use::kept));
    return area_index{std::move(made)};
}

std::size_t area_index::rows() const noexcept { return state_->rows; }
residency area_index::where() const noexcept { return state_->where; }
int area_index::device() const noexcept { return state_->device; }
std::size_t area_index::bytes() const noexcept { return state_->layer.bytes() + state_->cells.bytes(); }

// Counts and sums by vertex, three entries of an edge twice while they are sorted, cells with their sizes.
std::size_t index_estimate(geometries const& areas, index_use use) noexcept {
    constexpr std::size_t by_vertex = 24 + 16 + 3 * 2 * 12 + 3 * 16, by_cell = 28;
    auto const cells = std::clamp<std::size_t>(4 * areas.vertices(), least_cells_for(use),
                                               most_cells_for(areas.vertices(), cell_options{}));
    return areas.vertices() * by_vertex + cells * by_cell + areas.rows() * 32;
}

std::size_t area_index::estimate(geometries const& areas) noexcept { return index_estimate(areas, index_use::kept); }

std::optional<std::uint32_t> standings_of(predicate what, operand order) noexcept {
    bool const points_left = order == operand::points_left;
    switch (what) {
        case predicate::intersects: return wanted_inside | wanted_on;
        case predicate::touches: return wanted_on;
        case predicate::within: return points_left ? wanted_inside : 0U;
        case predicate::covered_by: return points_left ? wanted_inside | wanted_on : 0U;
        case predicate::contains:
        case predicate::contains_properly: return points_left ? 0U : wanted_inside;
        case predicate::covers: return points_left ? 0U : wanted_inside | wanted_on;
        case predicate::crosses:
        case predicate::overlaps:
        case predicate::equals: return 0U;
        case predicate::disjoint: return std::nullopt;
    }
    return std::nullopt;
}

point_rows point_rows_of(geometries const& points) {
    auto const data = [](auto const& b) { return b ? b->data() : nullptr; };
    auto const& p = points.parts();
    return {p.x.data(), p.y.data(), data(p.validity), data(points.chosen())};
}

point_locator::point_locator(queue& on, point_rows const& points, std::size_t count, area_index::state const& areas,
                             std::uint32_t wanted)
    : on_{on}, question_{areas.cells.view(), points, wanted}, rows_{count}, areas_{areas.rows} {}

template <class Sink>
result<void> point_locator::locate(Sink const& to) {
    if (rows_ > 0xffffffff) return fail(errc::unsupported, "join: more than 2^32 points: take them in parts");
    KILN_TRY(auto list, on_.room<std::uint32_t>(rows_));
    KILN_TRY(auto count, on_.filled<std::uint32_t>(1, 0));
    undecided const later{list.data(), count.data()};
    KILN_CHECK(on_.launch(locate_quickly<Sink>{question_, to, later}, rows_));
    auto const threads = std::min(on_.threads(), rows_);
    return on_.launch(locate_exactly<Sink>{question_, to, later, threads}, threads);
}

result<buffer<std::int32_t>> point_locator::first() {
    KILN_TRY(auto out, on_.room<std::int32_t>(rows_));
    KILN_CHECK(locate(first_sink{out.data()}));
    return out;
}
result<buffer<std::uint8_t>> point_locator::any() {
    KILN_TRY(auto out, on_.room<std::uint8_t>(rows_));
    KILN_CHECK(locate(any_sink{out.data()}));
    return out;
}
result<buffer<std::int64_t>> point_locator::count() {
    KILN_TRY(auto out, on_.room<std::int64_t>(rows_));
    KILN_CHECK(locate(count_sink{reinterpret_cast<i64*>(out.data()), nullptr}));
    return out;
}
result<buffer<std::int64_t>> point_locator::histogram() {
    std::size_t const copies =
        std::clamp<std::size_t>((std::size_t{1} << 18) / std::max<std::size_t>(areas_, 1), 1, 256);
    KILN_TRY(auto bins, on_.filled<std::uint64_t>(areas_ * copies, 0));
    auto* const counts = reinterpret_cast<u64*>(bins.data());
    KILN_CHECK(locate(histogram_sink{counts, areas_, copies}));
    KILN_TRY(auto out, on_.room<std::int64_t>(areas_));
    KILN_CHECK(on_.launch(sum_of_copies{counts, areas_, copies, reinterpret_cast<i64*>(out.data())}, areas_));
    return out;
}

result<pair_list> point_locator::pairs() {
    KILN_TRY(auto counts, on_.room<std::int64_t>(rows_ + 1));
    KILN_TRY(auto firsts, on_.room<std::int32_t>(rows_));
    KILN_CHECK(locate(count_sink{reinterpret_cast<i64*>(counts.data()), firsts.data()}));
    KILN_TRY(auto const total, on_.total_sync(counts));
    pair_list out;
    KILN_TRY(out.left, on_.room<std::int32_t>(static_cast<std::size_t>(total)));
    KILN_TRY(out.right, on_.room<std::int32_t>(static_cast<std::size_t>(total)));
    located_pairs const write{question_, reinterpret_cast<i64 const*>(counts.data()), firsts.data(), out.left.data(),
                              out.right.data()};
    KILN_TRY(auto list, on_.room<std::uint32_t>(rows_));
    KILN_TRY(auto listed, on_.filled<std::uint32_t>(1, 0));
    undecided const later{list.data(), listed.data()};
    KILN_CHECK(on_.launch(list_quickly{write, later}, rows_));
    auto const threads = std::min(on_.threads(), rows_);
    KILN_CHECK(on_.launch(list_exactly{write, later, threads}, threads));
    return out;
}

}  // namespace kiln::spatial
