// SPDX-License-Identifier: Apache-2.0
//
// Joins are decided here. Points and areas go through the areas' index, whichever is left; everything else through matrices.
// Forms that list nothing are made by the locator itself where points are left, and of the list elsewhere.
#include <kiln/spatial/join.hpp>

#include <kiln/spatial/nearest.hpp>

#include "spatial/apart.hpp"
#include "spatial/area_index.hpp"
#include "spatial/kept_tree.hpp"
#include "spatial/meeting.hpp"
#include "spatial/operations.hpp"
#include "spatial/pairs.hpp"
#include "spatial/relations.hpp"
#include "spatial/row_distances.hpp"
#include "spatial/row_slices.hpp"

#include <kiln/runtime/memory.hpp>
#include <kiln/runtime/rewrite.hpp>

#include <algorithm>

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

// At no distance are exactly the rows that have a point in common, which contacts find sooner than distances.
constinit rewrite const within_nothing{"within-nothing", "spatial_within", "spatial_intersects"};

bool are_areas(geometries const& g) { return g.kind() == family::polygon || g.kind() == family::multipolygon; }
bool are_points(geometries const& g) { return g.kind() == family::point; }

pair_list list_of(std::vector<row_pair> const& pairs) {
    pair_list out{buffer<std::int32_t>::on_host(pairs.size()), buffer<std::int32_t>::on_host(pairs.size())};
    std::ranges::transform(pairs, out.left.data(), &row_pair::left);
    std::ranges::transform(pairs, out.right.data(), &row_pair::right);
    return out;
}

// By matrices, where a queue runs.
result<pair_list> related_there(queue& on, geometries const& left, geometries const& right, predicate what) {
    KILN_TRY(auto const all, relate_rows(on, left, right, relating::all));
    return holding(on, all, what);
}

// Points against areas are asked of the areas' index, `intersects` of contacts, `disjoint` of what does not meet, all others of matrices.
operation const& operation_for(std::optional<operand> const& points, predicate what) {
    if (points) return locate_operation;
    if (what == predicate::intersects) return meet_operation;
    return what == predicate::disjoint ? disjoint_operation : join_operation;
}

// Pairs without an index of areas.
result<pair_list> listed(queue& q, geometries const& a, geometries const& b, predicate what) {
    if (!on_device(q.where())) return cpu::join(a, b, what).transform(list_of);
    return what == predicate::intersects ? meeting_rows(q, a, b) : related_there(q, a, b, what);
}

// ---- One call ----

// Is it a question for the index? Which operand has the points?
std::optional<operand> points_of(geometries const& left, geometries const& right, predicate what) {
    if (!standings_of(what, operand::points_left)) return std::nullopt;
    if (are_points(left) && are_areas(right)) return operand::points_left;
    if (are_areas(left) && are_points(right)) return operand::points_right;
    return std::nullopt;
}

// `locate` makes the result of a locator of the left rows, `complement` of what meets, `reduce` of a list.
template <class Locate, class Complement, class Reduce>
auto joined(stream_ref on, geometries const& left, geometries const& right, predicate what, Locate const& locate,
            Complement const& complement, Reduce const& reduce)
    -> decltype(reduce(std::declval<queue&>(), std::declval<pair_list const&>())) {
    auto const order = points_of(left, right, what);
    auto const& operation = operation_for(order, what);
    KILN_TRY(auto const facts, facts_of(operation, left, right));
    KILN_TRY(auto const call, runtime::operation_call::begin(operation, facts));
    KILN_TRY(auto const a, brought(call, on, left));
    KILN_TRY(auto const b, brought(call, on, right));
    return with_queue(call.on_gpu(), on, a.device(), [&](queue& q) -> decltype(reduce(q, pair_list{})) {
        if (!order) {
            if (call.on_gpu() && what == predicate::disjoint) {
                KILN_TRY(auto apart, rows_apart::make(q, a, b));
                return complement(apart);
            }
            KILN_TRY(auto const pairs, listed(q, a, b, what));
            return reduce(q, pairs);
        }
        bool const points_left = *order == operand::points_left;
        auto const wanted = *standings_of(what, *order);
        KILN_TRY(auto const index, build_index(q, points_left ? b : a));
        point_locator find{q, points_left ? a : b, *index, wanted};
        if (points_left) return locate(find);
        KILN_TRY(auto const pairs, find.pairs());
        KILN_TRY(auto const turned, sorted_pairs(q, {pairs.right, pairs.left}, a.rows(), b.rows()));
        return reduce(q, turned);
    });
}

// The same through an index that is there.
template <class Locate>
auto asked(stream_ref on, geometries const& points, area_index const& areas, predicate what, Locate const& locate)
    -> decltype(locate(std::declval<point_locator&>())) {
    if (!are_points(points))
        return fail(errc::invalid_argument, "join: an array of points is needed, not of {}", name_of(points.kind()));
    if (!points.empty() && on_device(points.where()) != on_device(areas.where())) {
        return fail(errc::invalid_argument, "join: the index is on the {} and the points are not; move one of them",
                    on_device(areas.where()) ? "device" : "host");
    }
    auto const wanted = standings_of(what, operand::points_left);
    if (!wanted) return fail(errc::unsupported, "join: an index of areas does not answer '{}'", name_of(what));
    call_facts const facts{.items = points.rows(), .type = scalar::f64, .where = areas.where()};
    KILN_TRY(auto const call, runtime::operation_call::begin(locate_operation, facts));
    if (call.on_gpu() != on_device(areas.where()))
        return fail(errc::unsupported, "join: the index is on the {}, and the call was to run on the {}",
                    on_device(areas.where()) ? "device" : "host", call.on_gpu() ? "device" : "host");
    return with_queue(call.on_gpu(), on, areas.device(), [&](queue& q) {
        point_locator find{q, points, areas.internals(), *wanted};
        return locate(find);
    });
}

}  // namespace

result<pair_list> join(stream_ref on, geometries const& left, geometries const& right, predicate what) {
    return joined(
        on, left, right, what, [](point_locator& find) { return find.pairs(); },
        [](rows_apart& apart) { return apart.pairs(); },
        [](queue&, pair_list const& pairs) -> result<pair_list> { return pairs; });
}
result<buffer<std::int32_t>> join_first(stream_ref on, geometries const& left, geometries const& right,
                                        predicate what) {
    return joined(
        on, left, right, what, [](point_locator& find) { return find.first(); },
        [](rows_apart& apart) { return apart.first(); },
        [&](queue& q, pair_list const& pairs) { return firsts_of(q, pairs, left.rows()); });
}
result<buffer<std::int64_t>> join_count(stream_ref on, geometries const& left, geometries const& right,
                                        predicate what) {
    return joined(
        on, left, right, what, [](point_locator& find) { return find.count(); },
        [](rows_apart& apart) { return apart.count(); },
        [&](queue& q, pair_list const& pairs) { return counts_of(q, pairs, left.rows()); });
}
result<buffer<std::uint8_t>> join_any(stream_ref on, geometries const& left, geometries const& right, predicate what) {
    return joined(
        on, left, right, what, [](point_locator& find) { return find.any(); },
        [](rows_apart& apart) { return apart.any(); },
        [&](queue& q, pair_list const& pairs) { return any_of(q, pairs, left.rows()); });
}
result<buffer<std::int64_t>> join_histogram(stream_ref on, geometries const& left, geometries const& right,
                                            predicate what) {
    return joined(
        on, left, right, what, [](point_locator& find) { return find.histogram(); },
        [](rows_apart& apart) { return apart.histogram(); },
        [&](queue& q, pair_list const& pairs) { return histogram_of(q, pairs, right.rows()); });
}

result<pair_list> join_within(stream_ref on, geometries const& left, geometries const& right, double distance) {
    if (distance == 0 && take(within_nothing, within_operation.name()))
        return join(on, left, right, predicate::intersects);
    KILN_TRY(auto const facts, facts_of(within_operation, left, right));
    KILN_TRY(auto const call, runtime::operation_call::begin(within_operation, facts));
    KILN_TRY(auto const a, brought(call, on, left));
    KILN_TRY(auto const b, brought(call, on, right));
    if (!call.on_gpu()) return cpu::join_within(a, b, distance).transform(list_of);
    device_queue there{on, a.device()};
    KILN_TRY(auto const near, rows_within::make(there, b, distance));
    return near.of(a);
}

// ---- In chunks ----

namespace {

// What lists may take, of what is left beside the operands.
result<std::size_t> bytes_for_lists(queue const& q, chunk_options const& how) {
    if (how.most_bytes != 0) return how.most_bytes;
    if (!on_device(q.where())) return std::size_t{1} << 30;
    KILN_TRY(auto const room, admit(~std::uint64_t{0} / 2, q.device()));
    return static_cast<std::size_t>(room.fits / 2);
}

// A list that came whole, where nobody could bound it before.
result<pair_list> within_bounds(result<pair_list> made, std::size_t most) {
    if (made && made->size() * 2 * sizeof(std::int32_t) > most)
        return fail(errc::out_of_memory, "join: {} pairs of one chunk, which may have {} bytes", made->size(), most);
    return made;
}

result<void> join_slices(queue& q, geometries const& a, geometries const& b, predicate what,
                         std::optional<operand> const& order, std::size_t most, pair_taker const& take) {
    if (what == predicate::disjoint && on_device(q.where())) {
        KILN_TRY(auto apart, rows_apart::make(q, a, b));
        q.bound_pieces(most / lists_at_once);
        return for_slices(
            a.rows(), [&](std::size_t first, std::size_t last) { return apart.pairs(first, last); }, take);
    }
    KILN_TRY(auto const rows, row_slices::make(q, a));
    std::shared_ptr<area_index::state const> index;
    if (order == operand::points_left) {
        if (area_index::estimate(b) > most)
            return fail(errc::out_of_memory, "join: the index over {} vertices may need {} bytes, of {}", b.vertices(),
                        area_index::estimate(b), most);
        KILN_TRY(index, build_index(q, b));
        auto const taken = index->layer.bytes() + index->cells.bytes();
        if (taken >= most)
            return fail(errc::out_of_memory, "join: the index over areas that overlap takes {} bytes, of {}", taken,
                        most);
        most -= taken;
    }
    q.bound_pieces(most / lists_at_once);
    auto const locate_in = [&](area_index::state const& areas, geometries const& points) {
        return point_locator{q, points, areas, *standings_of(what, *order)}.pairs();
    };
    auto const locate_from = [&](geometries const& areas) -> result<pair_list> {
        KILN_TRY(auto const of_some, build_index(q, areas));
        KILN_TRY(auto const pairs, locate_in(*of_some, b));
        return sorted_pairs(q, {pairs.right, pairs.left}, areas.rows(), b.rows());
    };
    auto const list = [&](std::size_t first, std::size_t last) -> result<pair_list> {
        KILN_TRY(auto const some, rows.slice(first, last));
        KILN_TRY(auto const pairs, index                            ? locate_in(*index, some)
                                   : order == operand::points_right ? locate_from(some)
                                                                    : within_bounds(listed(q, some, b, what), most));
        KILN_CHECK(rows.shift(pairs, first));
        return pairs;
    };
    return for_slices(a.rows(), list, take);
}

}  // namespace

result<void> join_in_chunks(stream_ref on, geometries const& left, geometries const& right, predicate what,
                            chunk_options const& how, pair_taker const& take) {
    auto const order = points_of(left, right, what);
    auto const& operation = operation_for(order, what);
    KILN_TRY(auto const facts, facts_of(operation, left, right));
    KILN_TRY(auto const call, runtime::operation_call::begin(operation, facts));
    KILN_TRY(auto const a, brought(call, on, left));
    KILN_TRY(auto const b, brought(call, on, right));
    return with_queue(call.on_gpu(), on, a.device(), [&](queue& q) -> result<void> {
        KILN_TRY(auto const most, bytes_for_lists(q, how));
        return join_slices(q, a, b, what, order, most, take);
    });
}

result<void> join_within_in_chunks(stream_ref on, geometries const& left, geometries const& right, double distance,
                                   chunk_options const& how, pair_taker const& take) {
    KILN_TRY(auto const facts, facts_of(within_operation, left, right));
    KILN_TRY(auto const call, runtime::operation_call::begin(within_operation, facts));
    KILN_TRY(auto const a, brought(call, on, left));
    KILN_TRY(auto const b, brought(call, on, right));
    return with_queue(call.on_gpu(), on, a.device(), [&](queue& q) -> result<void> {
        KILN_TRY(auto const most, bytes_for_lists(q, how));
        KILN_TRY(auto const rows, row_slices::make(q, a));
        KILN_TRY(auto const near, rows_within::make(q, b, distance));
        q.bound_pieces(most / lists_at_once);
        auto const list = [&](std::size_t first, std::size_t last) -> result<pair_list> {
            KILN_TRY(auto const some, rows.slice(first, last));
            KILN_TRY(auto const pairs,
                     call.on_gpu() ? near.of(some)
                                   : within_bounds(cpu::join_within(some, b, distance).transform(list_of), most));
            KILN_CHECK(rows.shift(pairs, first));
            return pairs;
        };
        return for_slices(a.rows(), list, take);
    });
}

result<pair_list> join(stream_ref on, geometries const& points, area_index const& areas, predicate what) {
    return asked(on, points, areas, what, [](point_locator& find) { return find.pairs(); });
}
result<buffer<std::int32_t>> join_first(stream_ref on, geometries const& points, area_index const& areas,
                                        predicate what) {
    return asked(on, points, areas, what, [](point_locator& find) { return find.first(); });
}
result<buffer<std::int64_t>> join_count(stream_ref on, geometries const& points, area_index const& areas,
                                        predicate what) {
    return asked(on, points, areas, what, [](point_locator& find) { return find.count(); });
}
result<buffer<std::uint8_t>> join_any(stream_ref on, geometries const& points, area_index const& areas,
                                      predicate what) {
    return asked(on, points, areas, what, [](point_locator& find) { return find.any(); });
}
result<buffer<std::int64_t>> join_histogram(stream_ref on, geometries const& points, area_index const& areas,
                                            predicate what) {
    return asked(on, points, areas, what, [](point_locator& find) { return find.histogram(); });
}

result<matrix_list> relate_join(stream_ref on, geometries const& left, geometries const& right) {
    KILN_TRY(auto const facts, facts_of(relate_operation, left, right));
    KILN_TRY(auto const call, runtime::operation_call::begin(relate_operation, facts));
    KILN_TRY(auto const a, brought(call, on, left));
    KILN_TRY(auto const b, brought(call, on, right));
    if (call.on_gpu()) {
        device_queue there{on, a.device()};
        KILN_TRY(auto const all, relate_rows(there, a, b, relating::all));
        return matrix_list{all.pairs.left, all.pairs.right, all.bits};
    }
    KILN_TRY(auto const all, cpu::relate_join(a, b));
    auto const n = all.size();
    matrix_list out{buffer<std::int32_t>::on_host(n), buffer<std::int32_t>::on_host(n),
                    buffer<std::uint32_t>::on_host(n)};
    for (std::size_t i = 0; i < n; ++i)
        out.left.data()[i] = all[i].left, out.right.data()[i] = all[i].right, out.bits.data()[i] = all[i].how.bits();
    return out;
}

result<buffer<std::uint32_t>> relate(stream_ref on, geometries const& left, geometries const& right) {
    KILN_TRY(auto const facts, facts_of(relate_operation, left, right));
    KILN_TRY(auto const call, runtime::operation_call::begin(relate_operation, facts));
    KILN_TRY(auto const a, brought(call, on, left));
    KILN_TRY(auto const b, brought(call, on, right));
    if (call.on_gpu()) {
        device_queue there{on, a.device()};
        KILN_TRY(auto const all, relate_rows(there, a, b, relating::row_by_row));
        return all.bits;
    }
    KILN_TRY(auto const all, cpu::relate(a, b));
    auto out = buffer<std::uint32_t>::on_host(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) out.data()[i] = all[i] ? all[i]->bits() : 0;
    return out;
}

}  // namespace kiln::spatial
