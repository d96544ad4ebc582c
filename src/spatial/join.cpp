// SPDX-License-Identifier: Apache-2.0
//
// Joins are decided here. Points and areas go through the areas' index, whichever is left; everything else through matrices.
// Forms that list nothing are made by the locator itself where points are left, and of the list elsewhere.
#include <kiln/spatial/join.hpp>

#include <kiln/spatial/nearest.hpp>

#include "spatial/area_index.hpp"
#include "spatial/kept_tree.hpp"
#include "spatial/meeting.hpp"
#include "spatial/operations.hpp"
#include "spatial/pairs.hpp"
#include "spatial/relations.hpp"

#include <algorithm>

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

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
    if (what == predicate::disjoint)
        return fail(errc::unsupported, "join: 'disjoint' is for the CPU; of what remains, join 'intersects'");
    KILN_TRY(auto const all, relate_rows(on, left, right, relating::all));
    return holding(on, all, what);
}

// ---- One call ----

// Is it a question for the index? Which operand has the points?
std::optional<operand> points_of(geometries const& left, geometries const& right, predicate what) {
    if (!standings_of(what, operand::points_left)) return std::nullopt;
    if (are_points(left) && are_areas(right)) return operand::points_left;
    if (are_areas(left) && are_points(right)) return operand::points_right;
    return std::nullopt;
}

// `locate` makes the result of a locator of the left rows, `reduce` of a list.
template <class Locate, class Reduce>
auto joined(stream_ref on, geometries const& left, geometries const& right, predicate what, Locate const& locate,
            Reduce const& reduce) -> decltype(reduce(std::declval<queue&>(), std::declval<pair_list const&>())) {
    auto const order = points_of(left, right, what);
    bool const meet = !order && what == predicate::intersects;
    auto const& operation = order                         ? locate_operation
                            : meet                        ? meet_operation
                            : what == predicate::disjoint ? disjoint_operation
                                                          : join_operation;
    KILN_TRY(auto const facts, facts_of(operation, left, right));
    KILN_TRY(auto const call, runtime::operation_call::begin(operation, facts));
    KILN_TRY(auto const a, brought(call, on, left));
    KILN_TRY(auto const b, brought(call, on, right));
    return with_queue(call.on_gpu(), on, a.device(), [&](queue& q) -> decltype(reduce(q, pair_list{})) {
        if (!order) {
            KILN_TRY(auto const pairs, meet            ? meeting_rows(q, a, b)
                                       : call.on_gpu() ? related_there(q, a, b, what)
                                                       : cpu::join(a, b, what).transform(list_of));
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
        [](queue&, pair_list const& pairs) -> result<pair_list> { return pairs; });
}
result<buffer<std::int32_t>> join_first(stream_ref on, geometries const& left, geometries const& right,
                                        predicate what) {
    return joined(
        on, left, right, what, [](point_locator& find) { return find.first(); },
        [&](queue& q, pair_list const& pairs) { return firsts_of(q, pairs, left.rows()); });
}
result<buffer<std::int64_t>> join_count(stream_ref on, geometries const& left, geometries const& right,
                                        predicate what) {
    return joined(
        on, left, right, what, [](point_locator& find) { return find.count(); },
        [&](queue& q, pair_list const& pairs) { return counts_of(q, pairs, left.rows()); });
}
result<buffer<std::uint8_t>> join_any(stream_ref on, geometries const& left, geometries const& right, predicate what) {
    return joined(
        on, left, right, what, [](point_locator& find) { return find.any(); },
        [&](queue& q, pair_list const& pairs) { return any_of(q, pairs, left.rows()); });
}
result<buffer<std::int64_t>> join_histogram(stream_ref on, geometries const& left, geometries const& right,
                                            predicate what) {
    return joined(
        on, left, right, what, [](point_locator& find) { return find.histogram(); },
        [&](queue& q, pair_list const& pairs) { return histogram_of(q, pairs, right.rows()); });
}

result<pair_list> join_within(stream_ref on, geometries const& left, geometries const& right, double distance) {
    KILN_TRY(auto const facts, facts_of(within_operation, left, right));
    KILN_TRY(auto const call, runtime::operation_call::begin(within_operation, facts));
    KILN_TRY(auto const a, brought(call, on, left));
    KILN_TRY(auto const b, brought(call, on, right));
    return cpu::join_within(a, b, distance).transform(list_of);
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
