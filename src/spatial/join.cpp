// SPDX-License-Identifier: Apache-2.0
//
// Joins are decided here. Points and areas go through the areas' index, whichever is left; everything else through contacts or
// matrices. Whatever finds the pairs has five forms of them: pairs, first, count, any, histogram; forms that list nothing are made
// without a list where there is a way.
#include <kiln/spatial/join.hpp>

#include <kiln/spatial/nearest.hpp>

#include "spatial/apart.hpp"
#include "spatial/area_index.hpp"
#include "spatial/kept_rings.hpp"
#include "spatial/kept_tree.hpp"
#include "spatial/meeting.hpp"
#include "spatial/operations.hpp"
#include "spatial/pairs.hpp"
#include "spatial/rectangles.hpp"
#include "spatial/relations.hpp"
#include "spatial/rings.hpp"
#include "spatial/row_distances.hpp"
#include "spatial/row_facts.hpp"
#include "spatial/row_slices.hpp"

#include <kiln/runtime/memory.hpp>
#include <kiln/runtime/rewrite.hpp>

#include <algorithm>

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

// At no distance are exactly the rows that have a point in common, which contacts find sooner than distances.
constinit rewrite const within_nothing{"within-nothing", "spatial_within", "spatial_intersects"};
// How many pairs a row has is the length of its part of the list, whoever adds it up: nothing of the list itself is in the answer.
constinit rewrite const count_of_join{"count-of-join", "spatial_join", "spatial_count"};
// An upright rectangle is a product of two closed intervals, its interior of two open ones: their ends decide every predicate.
constinit rewrite const box_predicates{"box-predicates", "spatial_join", "spatial_query"};

bool are_areas(geometries const& g) { return g.kind() == family::polygon || g.kind() == family::multipolygon; }
bool are_points(geometries const& g) { return g.kind() == family::point; }

pair_list list_of(std::vector<row_pair> const& pairs) {
    pair_list out{buffer<std::int32_t>::on_host(pairs.size()), buffer<std::int32_t>::on_host(pairs.size())};
    std::ranges::transform(pairs, out.left.data(), &row_pair::left);
    std::ranges::transform(pairs, out.right.data(), &row_pair::right);
    return out;
}

// Points against areas are asked of the areas' index, `intersects` of contacts, `disjoint` of what does not meet, all others of matrices.
operation const& operation_for(std::optional<operand> const& points, predicate what) {
    if (points) return locate_operation;
    if (what == predicate::intersects) return meet_operation;
    return what == predicate::disjoint ? disjoint_operation : join_operation;
}

// ---- What finds pairs ----

// Areas left, points right: the index is asked by the points, and by what it says of them the areas are counted.
class points_of_areas {
public:
    points_of_areas(queue& on, point_locator const& find, std::size_t areas, std::size_t points)
        : on_{on}, find_{find}, areas_{areas}, points_{points} {}

    result<pair_list> pairs() {
        KILN_TRY(auto const found, find_.pairs());
        return sorted_pairs(on_, {found.right, found.left}, areas_, points_);
    }
    result<buffer<std::int32_t>> first() {
        KILN_TRY(auto const all, pairs());
        return firsts_of(on_, all, areas_);
    }
    result<buffer<std::int64_t>> count() { return find_.histogram(); }
    result<buffer<std::uint8_t>> any() {
        KILN_TRY(auto const counts, count());
        return any_of(on_, counts);
    }
    result<buffer<std::int64_t>> histogram() { return find_.count(); }

private:
    queue& on_;
    point_locator find_;
    std::size_t areas_, points_;
};

// A list that is there.
class listed_rows {
public:
    listed_rows(queue& on, pair_list pairs, std::size_t left_rows, std::size_t right_rows)
        : on_{on}, pairs_{std::move(pairs)}, left_rows_{left_rows}, right_rows_{right_rows} {}

    result<pair_list> pairs() { return pairs_; }
    result<buffer<std::int32_t>> first() { return firsts_of(on_, pairs_, left_rows_); }
    result<buffer<std::int64_t>> count() { return counts_of(on_, pairs_, left_rows_); }
    result<buffer<std::uint8_t>> any() { return any_of(on_, pairs_, left_rows_); }
    result<buffer<std::int64_t>> histogram() { return histogram_of(on_, pairs_, right_rows_); }

private:
    queue& on_;
    pair_list pairs_;
    std::size_t left_rows_, right_rows_;
};

// ---- One call ----

// Is it a question for the index? Which operand has the points?
std::optional<operand> points_of(geometries const& left, geometries const& right, predicate what) {
    if (!standings_of(what, operand::points_left)) return std::nullopt;
    if (are_points(left) && are_areas(right)) return operand::points_left;
    if (are_areas(left) && are_points(right)) return operand::points_right;
    return std::nullopt;
}

// form(what finds the pairs).
template <class Form>
auto joined(stream_ref on, geometries const& left, geometries const& right, predicate what, Form const& form)
    -> decltype(form(std::declval<listed_rows&>())) {
    auto const order = points_of(left, right, what);
    auto const& operation = operation_for(order, what);
    using made = decltype(form(std::declval<listed_rows&>()));
    return with_operands(operation, on, left, right, [&](queue& q, geometries const& a, geometries const& b) -> made {
        if (order) {
            bool const points_left = *order == operand::points_left;
            KILN_TRY(auto const index, build_index(q, points_left ? b : a));
            point_locator find{q, points_left ? a : b, *index, *standings_of(what, *order)};
            if (points_left) return form(find);
            points_of_areas found{q, find, a.rows(), b.rows()};
            return form(found);
        }
        if (what != predicate::disjoint && rewrites_enabled()) {
            KILN_TRY(auto const boxes, rectangle_rows::make(q, a, b));
            if (boxes && take(box_predicates, join_operation.name())) {
                KILN_TRY(auto pairs, boxes->pairs(what));
                listed_rows found{q, std::move(pairs), a.rows(), b.rows()};
                return form(found);
            }
        }
        if (!on_device(q.where())) {
            KILN_TRY(auto const pairs, cpu::join(a, b, what));
            listed_rows found{q, list_of(pairs), a.rows(), b.rows()};
            return form(found);
        }
        if (what == predicate::disjoint) {
            KILN_TRY(auto apart, rows_apart::make(q, a, b));
            return form(apart);
        }
        if (what == predicate::intersects) {
            KILN_TRY(auto met, rows_met::make(q, a, b));
            return form(met);
        }
        KILN_CHECK(require_borders(q, on, {a, b}));
        KILN_TRY(auto all, relate_rows(q, a, b, relating::all));
        rows_holding held{q, std::move(all), what, a.rows(), b.rows()};
        return form(held);
    });
}

// The same of a form that lists nothing: made of the list where rewrites are off.
template <class Form>
auto unlisted(stream_ref on, geometries const& left, geometries const& right, predicate what, Form const& form)
    -> decltype(form(std::declval<listed_rows&>())) {
    if (take(count_of_join, join_operation.name())) return joined(on, left, right, what, form);
    KILN_TRY(auto pairs, join(on, left, right, what));
    return with_queue(on_device(pairs.left.where()), on, left.device(), [&](queue& q) {
        listed_rows found{q, std::move(pairs), left.rows(), right.rows()};
        return form(found);
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
    if (!call.on_gpu()) KILN_CHECK(require_valid_once(points));
    return with_queue(call.on_gpu(), on, areas.device(), [&](queue& q) {
        point_locator find{q, points, areas.internals(), *wanted};
        return locate(find);
    });
}

}  // namespace

result<pair_list> join(stream_ref on, geometries const& left, geometries const& right, predicate what) {
    return joined(on, left, right, what, [](auto& found) { return found.pairs(); });
}
result<buffer<std::int32_t>> join_first(stream_ref on, geometries const& left, geometries const& right,
                                        predicate what) {
    return unlisted(on, left, right, what, [](auto& found) { return found.first(); });
}
result<buffer<std::int64_t>> join_count(stream_ref on, geometries const& left, geometries const& right,
                                        predicate what) {
    return unlisted(on, left, right, what, [](auto& found) { return found.count(); });
}
result<buffer<std::uint8_t>> join_any(stream_ref on, geometries const& left, geometries const& right, predicate what) {
    return unlisted(on, left, right, what, [](auto& found) { return found.any(); });
}
result<buffer<std::int64_t>> join_histogram(stream_ref on, geometries const& left, geometries const& right,
                                            predicate what) {
    return unlisted(on, left, right, what, [](auto& found) { return found.histogram(); });
}

result<pair_list> join_within(stream_ref on, geometries const& left, geometries const& right, double distance) {
    if (distance == 0 && take(within_nothing, within_operation.name()))
        return join(on, left, right, predicate::intersects);
    return with_operands(within_operation, on, left, right,
                         [&](queue& q, geometries const& a, geometries const& b) -> result<pair_list> {
                             if (!on_device(q.where())) return cpu::join_within(a, b, distance).transform(list_of);
                             KILN_TRY(auto near, rows_within::make(q, b, distance));
                             return near.of(a);
                         });
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

// Slices of the left side ask one right side, of which everything is made once.
class slice_asker {
public:
    static result<slice_asker> make(queue& q, stream_ref on, geometries const& right, predicate what,
                                    std::optional<operand> const& order,
                                    std::shared_ptr<area_index::state const> index) {
        slice_asker out{q, on, right, what, order};
        out.index_ = std::move(index);
        if (order || !on_device(q.where())) return out;
        if (what == predicate::intersects) {
            KILN_TRY(out.met_, meeting_target::make_lasting(q, right));
        } else {
            KILN_CHECK(require_borders(q, on, {{}, right}));  // its layer is made of rows that are valid
            KILN_TRY(out.related_, relate_target::make(q, right));
        }
        return out;
    }
    // `first`: the number of the first of them.
    [[nodiscard]] result<pair_list> pairs(geometries const& some, std::size_t first) const {
        if (index_) return point_locator{q_, some, *index_, standings()}.pairs();
        if (order_) {
            KILN_TRY(auto const areas, build_index(q_, some));
            point_locator const find{q_, right_, *areas, standings()};
            return points_of_areas{q_, find, some.rows(), right_.rows()}.pairs();
        }
        if (met_) {
            KILN_TRY(auto met, rows_met::make(q_, some, *met_));
            return met.pairs();
        }
        if (!related_) return pairs_here(some, first);
        KILN_CHECK(require_borders(q_, on_, {some, right_, first}));
        KILN_TRY(auto all, relate_rows(q_, some, *related_));
        return rows_holding{q_, std::move(all), what_, some.rows(), right_.rows()}.pairs();
    }

private:
    slice_asker(queue& q, stream_ref on, geometries const& right, predicate what, std::optional<operand> const& order)
        : q_{q}, on_{on}, right_{right}, what_{what}, order_{order} {}
    [[nodiscard]] std::uint32_t standings() const { return *standings_of(what_, *order_); }
    // What is refused of a slice has the number of its row in the whole.
    [[nodiscard]] result<pair_list> pairs_here(geometries const& some, std::size_t first) const {
        auto made = cpu::join(some, right_, what_).transform(list_of);
        if (made || made.error().code() != errc::invalid_argument) return made;
        KILN_TRY(auto const bad, validate_rings(some, 1));
        return bad.empty() ? made : refused_rings("left", first, bad[0]);
    }

    queue& q_;
    stream_ref on_;
    geometries const& right_;
    predicate what_;
    std::optional<operand> order_;
    std::shared_ptr<area_index::state const> index_;  // points left
    std::optional<meeting_target> met_;
    std::optional<relate_target> related_;
};

result<void> join_slices(queue& q, stream_ref on, geometries const& a, geometries const& b, predicate what,
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
        if (index_estimate(b, index_use::once) > most)
            return fail(errc::out_of_memory, "join: the index over {} vertices may need {} bytes, of {}", b.vertices(),
                        index_estimate(b, index_use::once), most);
        KILN_TRY(index, build_index(q, b));
        auto const taken = index->layer.bytes() + index->cells.bytes();
        if (taken >= most)
            return fail(errc::out_of_memory, "join: the index over areas that overlap takes {} bytes, of {}", taken,
                        most);
        most -= taken;
    }
    q.bound_pieces(most / lists_at_once);
    KILN_TRY(auto const ask, slice_asker::make(q, on, b, what, order, index));
    auto const list = [&](std::size_t first, std::size_t last) -> result<pair_list> {
        KILN_TRY(auto const some, rows.slice(first, last));
        KILN_TRY(auto const pairs, order ? ask.pairs(some, first) : within_bounds(ask.pairs(some, first), most));
        KILN_CHECK(rows.shift(pairs, first));
        return pairs;
    };
    return for_slices(a.rows(), list, take);
}

}  // namespace

result<void> join_in_chunks(stream_ref on, geometries const& left, geometries const& right, predicate what,
                            chunk_options const& how, pair_taker const& take) {
    auto const order = points_of(left, right, what);
    return with_operands(operation_for(order, what), on, left, right,
                         [&](queue& q, geometries const& a, geometries const& b) -> result<void> {
                             KILN_TRY(auto const most, bytes_for_lists(q, how));
                             return join_slices(q, on, a, b, what, order, most, take);
                         });
}

result<void> join_within_in_chunks(stream_ref on, geometries const& left, geometries const& right, double distance,
                                   chunk_options const& how, pair_taker const& take) {
    auto const list_all = [&](queue& q, geometries const& a, geometries const& b) -> result<void> {
        KILN_TRY(auto const most, bytes_for_lists(q, how));
        KILN_TRY(auto const rows, row_slices::make(q, a));
        KILN_TRY(auto near, rows_within::make(q, b, distance));
        q.bound_pieces(most / lists_at_once);
        auto const list = [&](std::size_t first, std::size_t last) -> result<pair_list> {
            KILN_TRY(auto const some, rows.slice(first, last));
            KILN_TRY(auto const pairs,
                     on_device(q.where())
                         ? near.of(some)
                         : within_bounds(cpu::join_within(some, b, distance).transform(list_of), most));
            KILN_CHECK(rows.shift(pairs, first));
            return pairs;
        };
        return for_slices(a.rows(), list, take);
    };
    return with_operands(within_operation, on, left, right, list_all);
}

result<pair_list> join(stream_ref on, geometries const& points, area_index const& areas, predicate what) {
    return asked(on, points, areas, what, [](point_locator& found) { return found.pairs(); });
}
result<buffer<std::int32_t>> join_first(stream_ref on, geometries const& points, area_index const& areas,
                                        predicate what) {
    return asked(on, points, areas, what, [](point_locator& found) { return found.first(); });
}
result<buffer<std::int64_t>> join_count(stream_ref on, geometries const& points, area_index const& areas,
                                        predicate what) {
    return asked(on, points, areas, what, [](point_locator& found) { return found.count(); });
}
result<buffer<std::uint8_t>> join_any(stream_ref on, geometries const& points, area_index const& areas,
                                      predicate what) {
    return asked(on, points, areas, what, [](point_locator& found) { return found.any(); });
}
result<buffer<std::int64_t>> join_histogram(stream_ref on, geometries const& points, area_index const& areas,
                                            predicate what) {
    return asked(on, points, areas, what, [](point_locator& found) { return found.histogram(); });
}

result<matrix_list> relate_join(stream_ref on, geometries const& left, geometries const& right) {
    return with_operands(relate_operation, on, left, right,
                         [&](queue& q, geometries const& a, geometries const& b) -> result<matrix_list> {
                             if (on_device(q.where())) {
                                 KILN_CHECK(require_borders(q, on, {a, b}));
                                 KILN_TRY(auto const all, relate_rows(q, a, b, relating::all));
                                 return matrix_list{all.pairs.left, all.pairs.right, all.bits};
                             }
                             KILN_TRY(auto const all, cpu::relate_join(a, b));
                             auto const n = all.size();
                             matrix_list out{buffer<std::int32_t>::on_host(n), buffer<std::int32_t>::on_host(n),
                                             buffer<std::uint32_t>::on_host(n)};
                             for (std::size_t i = 0; i < n; ++i) {
                                 out.left.data()[i] = all[i].left, out.right.data()[i] = all[i].right;
                                 out.bits.data()[i] = all[i].how.bits();
                             }
                             return out;
                         });
}

result<buffer<std::uint32_t>> relate(stream_ref on, geometries const& left, geometries const& right) {
    return with_operands(relate_operation, on, left, right,
                         [&](queue& q, geometries const& a, geometries const& b) -> result<buffer<std::uint32_t>> {
                             if (on_device(q.where())) {
                                 KILN_CHECK(require_borders(q, on, {a, b}));
                                 KILN_TRY(auto const all, relate_rows(q, a, b, relating::row_by_row));
                                 return all.bits;
                             }
                             KILN_TRY(auto const all, cpu::relate(a, b));
                             auto out = buffer<std::uint32_t>::on_host(all.size());
                             for (std::size_t i = 0; i < all.size(); ++i) out.data()[i] = all[i] ? all[i]->bits() : 0;
                             return out;
                         });
}

}  // namespace kiln::spatial
