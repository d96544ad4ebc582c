// SPDX-License-Identifier: Apache-2.0
#include "spatial/overlay/overlay.hpp"

#include "spatial/operations.hpp"
#include "spatial/overlay/clip.hpp"
#include "spatial/overlay/in_chunks.hpp"
#include "spatial/overlay/table.hpp"
#include "spatial/overlay_areas.cuh"
#include "spatial/overlay_borders.cuh"
#include "spatial/overlay_noding.cuh"
#include "spatial/overlay_rings.cuh"
#include "spatial/overlay_sameness.cuh"
#include "spatial/remade.hpp"
#include "spatial/row_measures.hpp"
#include "spatial/rows.hpp"

#include <kiln/event.hpp>
#include <kiln/spatial/validate.hpp>

#include <algorithm>

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

constexpr std::array<std::string_view, 6> kind_names{"intersection",         "union",    "difference",
                                                     "symmetric_difference", "identity", "update"};

}  // namespace

std::uint32_t parts_of(overlay_kind what) noexcept {
    switch (what) {
        case overlay_kind::intersection: return common_parts;
        case overlay_kind::union_: return common_parts | left_parts | right_parts;
        case overlay_kind::difference: return left_parts;
        case overlay_kind::symmetric_difference: return left_parts | right_parts;
        case overlay_kind::identity: return common_parts | left_parts;
        case overlay_kind::update: return left_parts | right_rows;
    }
    return 0;
}

result<void> require_areas(std::string_view operation, geometries const& of) {
    auto const is_area = [](family kind) { return kind == family::polygon || kind == family::multipolygon; };
    bool good = of.empty() || is_area(of.kind());
    if (of.kind() == family::mixed)
        good = std::ranges::all_of(of.mixed().children,
                                   [&](geometries const& g) { return g.empty() || is_area(g.kind()); });
    if (good) return {};
    // Rows on a device are not looked at for a message.
    for (std::size_t i = 0; of.where() == residency::host && i < of.rows(); ++i)
        if (!of.is_null(i) && !is_area(of.kind_of(i)))
            return fail(errc::unsupported, "{}: polygons and multipolygons are needed; row {} is a {}", operation, i,
                        name_of(of.kind_of(i)));
    if (of.where() == residency::host) return {};  // rows that are all null are of no family
    return fail(errc::unsupported, "{}: polygons and multipolygons are needed, not {}", operation, name_of(of.kind()));
}

void tell_how_divided(std::string_view operation, arrangement::unrest_found const& found) {
    if (found.moved_again > 0)
        event_log::process().emit({.kind = event_kind::note,
                                   .unit = operation,
                                   .reason = "divided-again",
                                   .detail = "segments onto which rounded crossings had moved others",
                                   .value = static_cast<std::int64_t>(found.moved_again)});
    if (found.snapped > 0)
        event_log::process().emit(
            {.kind = event_kind::note,
             .unit = operation,
             .reason = "snapped",
             .detail = fmt::format("rounded crossings did not come to rest: on a grid of {}", found.grid),
             .value = static_cast<std::int64_t>(found.snapped)});
}

namespace {

// Room for as many as were counted, by border; the counts are summed.
result<result_borders> room_for_borders(queue& on, buffer<std::int64_t> const& counts) {
    result_borders out;
    KILN_TRY(auto const total, on.total_sync(counts));
    if (total > 0x3fffffff)
        return fail(errc::unsupported, "overlay: {} borders of results: take the arrays in parts", total);
    KILN_TRY(out.key, on.room<std::uint64_t>(static_cast<std::size_t>(total)));
    KILN_TRY(out.piece, on.room<std::int32_t>(static_cast<std::size_t>(total)));
    return out;
}
result<result_borders> borders_of(queue& on, arrangement const& in, overlay_rule const& rule) {
    KILN_TRY(auto const covers, in.find_covers(on));
    auto const n = in.borders();
    KILN_TRY(auto place, on.room<std::int64_t>(n + 1));
    KILN_CHECK(on.launch(count_result_borders{rule, covers.cover.data(), raw(covers.first), raw(place)}, n));
    KILN_TRY(auto out, room_for_borders(on, place));
    KILN_CHECK(on.launch(
        list_result_borders{rule, covers.cover.data(), raw(covers.first), raw(place), raw(out.key), out.piece.data()},
        n));
    return out;
}
result<result_borders> borders_of_worlds(queue& on, arrangement const& in, world_question const& how) {
    KILN_TRY(auto const cells, in.index_rows(on));
    auto const n = in.borders();
    KILN_TRY(auto place, on.room<std::int64_t>(n + 1));
    KILN_TRY(auto sides, on.room<std::uint32_t>(n));
    KILN_CHECK(on.launch(count_world_borders{{in.view(), cells.by_world(), in.worlds().data()},
                                             {static_cast<i32>(how.left_rows), how.what},
                                             sides.data(),
                                             raw(place)},
                         n));
    KILN_TRY(auto out, room_for_borders(on, place));
    KILN_CHECK(on.launch(
        list_world_borders{in.view(), how.worlds.data(), sides.data(), raw(place), raw(out.key), out.piece.data()}, n));
    return out;
}

result<arrangement> arranged_in_worlds(queue& on, kept_layer of, world_question const& how) {
    KILN_TRY(auto out, arrangement::make(on, std::move(of), {how.worlds, how.worth_it}, how.grid));
    tell_how_divided(how.operation, out.found_unrest());
    return out;
}

}  // namespace

result<geometry_parts> put_together(queue& on, arrangement const& in, world_question const& how, std::size_t rows) {
    KILN_TRY(auto const borders, borders_of_worlds(on, in, how));
    drawing out{on, in};
    KILN_CHECK(out.order(borders));
    return out.draw(rows);
}
result<buffer<std::uint64_t>> marks_of(queue& on, kept_layer const& of) {
    auto const l = of.view();
    KILN_TRY(auto rings, on.filled<std::uint64_t>(of.paths(), 0));
    KILN_CHECK(on.launch(sum_ring_marks{l, raw(rings)}, of.vertices()));
    KILN_TRY(auto number, on.room<std::int64_t>(of.paths() + 1));
    KILN_CHECK(on.launch(count_polygons{l, raw(number)}, of.paths()));
    KILN_CHECK(on.sum(number));
    KILN_TRY(auto polygons, on.filled<std::uint64_t>(of.paths() + 1, 0));
    KILN_CHECK(on.launch(sum_polygon_marks{l, raw(rings), raw(number), raw(polygons)}, of.paths()));
    KILN_TRY(auto out, on.filled<std::uint64_t>(of.rows(), 0));
    KILN_CHECK(on.launch(sum_row_marks{l, raw(polygons), raw(number), raw(out)}, of.paths()));
    return out;
}

result<areas_to_draw> areas_of_rows(queue& on, geometries const& of) {
    areas_to_draw out;
    auto const rows = of.rows();
    KILN_TRY(out.layer, kept_layer::distinct(on, of));
    auto const* const dimension = reinterpret_cast<signed char const*>(out.layer.dimensions().data());
    KILN_TRY(out.shrunk, on.filled<std::uint32_t>(rows, 0));
    KILN_CHECK(on.launch(find_shrunk_rows{out.layer.view(), dimension, out.shrunk.data()}, out.layer.paths()));
    KILN_TRY(out.worlds, on.room<std::int32_t>(rows));
    KILN_CHECK(on.launch(number_areas{dimension, out.worlds.data()}, rows));
    KILN_CHECK(out.layer.leave_out(on, out.worlds));
    KILN_CHECK(on.launch(number_words{out.worlds.data()}, rows));  // every row in one, so that all are counted
    return out;
}

result<geometry_parts> put_together(queue& on, kept_layer of, world_question const& how, std::size_t rows) {
    KILN_TRY(auto const in, arranged_in_worlds(on, std::move(of), how));
    return put_together(on, in, how, rows);
}

std::string_view name_of(overlay_kind what) noexcept { return kind_names[static_cast<std::size_t>(what)]; }

std::optional<overlay_kind> overlay_kind_of(std::string_view name) noexcept {
    auto const found = std::ranges::find(kind_names, name);
    if (found == kind_names.end()) return {};
    return static_cast<overlay_kind>(found - kind_names.begin());
}

namespace {

result<arrangement> arranged(queue& on, geometries const& left, geometries const& right, double grid) {
    KILN_TRY(auto const a, kept_layer::distinct(on, left));
    KILN_TRY(auto const b, kept_layer::distinct(on, right));
    KILN_TRY(auto both, kept_layer::joined(on, a, b));
    KILN_TRY(auto out, arrangement::make(on, std::move(both), {}, grid));
    tell_how_divided("spatial_overlay", out.found_unrest());
    return out;
}

}  // namespace

result<drawing> ordered_parts(queue& on, arrangement const& in, std::size_t left_rows, std::uint32_t parts) {
    KILN_TRY(auto const borders, borders_of(on, in, overlay_rule{static_cast<i32>(left_rows), parts}));
    drawing out{on, in};
    KILN_CHECK(out.order(borders));
    return out;
}

result<overlay_rows> overlaid_rows(queue& on, geometries const& left, geometries const& right, overlay_kind what,
                                   overlay_options const& how) {
    KILN_TRY(auto const in, arranged(on, left, right, how.grid));
    KILN_TRY(auto drawn, ordered_parts(on, in, left.rows(), parts_of(what)));
    KILN_TRY(auto parts, drawn.draw());
    overlay_rows out;
    KILN_TRY(out.rows, geometries::make(std::move(parts)));
    out.left = drawn.left(), out.right = drawn.right();
    return out;
}

result<geometries> areas_in_areas(queue& on, geometries const& left, geometries const& right) {
    auto const rows = left.rows();
    KILN_TRY(auto const in, arranged(on, left, right, 0));
    KILN_TRY(auto drawn, ordered_parts(on, in, rows, left_covered));
    KILN_TRY(auto parts, drawn.draw(rows));
    KILN_TRY(parts.validity, on.room<std::uint8_t>((rows + 7) / 8));
    auto const* const states = in.noded().states().data();  // those of the left rows come first
    KILN_CHECK(on.launch(set_validity{states, states, rows, parts.validity->data()}, (rows + 7) / 8));
    return geometries::make(std::move(parts));
}

result<geometries> overlaid_row_by_row(queue& on, geometries const& left, geometries const& right, set_operation what,
                                       double grid) {
    auto const rows = left.rows();
    KILN_TRY(auto const a, kept_layer::distinct(on, left));
    KILN_TRY(auto const b, kept_layer::distinct(on, right));
    KILN_TRY(auto both, kept_layer::joined(on, a, b));
    KILN_TRY(auto worlds, on.room<std::int32_t>(2 * rows));
    KILN_CHECK(on.launch(worlds_of_pairs{static_cast<i32>(rows), worlds.data()}, 2 * rows));
    KILN_TRY(auto parts, put_together(on, std::move(both), {"spatial_overlay", worlds, rows, what, grid}, rows));
    KILN_TRY(parts.validity, on.room<std::uint8_t>((rows + 7) / 8));
    KILN_CHECK(
        on.launch(set_validity{a.states().data(), b.states().data(), rows, parts.validity->data()}, (rows + 7) / 8));
    return geometries::make(std::move(parts));
}

result<buffer<double>> areas_in_common_row_by_row(queue& on, geometries const& left, geometries const& right,
                                                  std::size_t most_edges) {
    auto const rows = left.rows();
    KILN_TRY(auto const a, kept_layer::plain(on, left));
    KILN_TRY(auto const b, kept_layer::plain(on, right));
    // Of rows with many vertices, pairs of edges would be too many.
    if (std::max(a.vertices(), b.vertices()) > most_edges * rows) {
        KILN_TRY(auto const parts, overlaid_row_by_row(on, left, right, set_operation::intersection));
        KILN_TRY(auto const of, row_measures::make(on, parts));
        return of.area();
    }
    KILN_TRY(auto a_signs, on.room<double>(a.paths()));
    KILN_TRY(auto b_signs, on.room<double>(b.paths()));
    KILN_CHECK(on.launch(find_path_signs{a.view(), a_signs.data()}, a.paths()));
    KILN_CHECK(on.launch(find_path_signs{b.view(), b_signs.data()}, b.paths()));
    KILN_TRY(auto shares, on.room<double>(a.vertices()));
    KILN_CHECK(
        on.launch(common_areas{a.view(), b.view(), a_signs.data(), b_signs.data(), shares.data()}, a.vertices()));
    KILN_TRY(auto out, on.room<double>(rows));
    KILN_CHECK(
        on.launch(sum_common_areas{a.view(), a.states().data(), b.states().data(), shares.data(), out.data()}, rows));
    return out;
}

result<buffer<double>> overlaps_row_by_row(queue& on, geometries const& left, geometries const& right) {
    KILN_TRY(auto const common, areas_in_common_row_by_row(on, left, right));
    KILN_TRY(auto const a, row_measures::make(on, left));
    KILN_TRY(auto const b, row_measures::make(on, right));
    KILN_TRY(auto const left_areas, a.area());
    KILN_TRY(auto const right_areas, b.area());
    KILN_TRY(auto out, on.room<double>(left.rows()));
    KILN_CHECK(
        on.launch(overlap_ratios{common.data(), left_areas.data(), right_areas.data(), out.data()}, left.rows()));
    return out;
}

result<geometries> dissolved_rows(queue& on, geometries const& of, buffer<std::int32_t> const& key, std::size_t keys) {
    KILN_TRY(auto l, kept_layer::distinct(on, of));
    KILN_TRY(auto worlds, on.room<std::int32_t>(of.rows()));
    KILN_CHECK(on.launch(worlds_of_keys{key.data(), static_cast<i32>(keys), worlds.data()}, of.rows()));
    KILN_TRY(auto parts,
             put_together(on, std::move(l),
                          {.operation = "spatial_dissolve", .worlds = worlds, .worth_it = kept_worlds::many}, keys));
    return geometries::make(std::move(parts));
}

result<geometries> united_rows(queue& on, geometries const& of) {
    KILN_TRY(auto l, kept_layer::distinct(on, of));
    KILN_TRY(auto const worlds, on.filled<std::int32_t>(of.rows(), 0));
    KILN_TRY(auto parts, put_together(on, std::move(l), {"spatial_dissolve", worlds}, 1));
    return geometries::make(std::move(parts));
}

result<mended_rows> rows_mended(queue& on, geometries const& of) {
    auto const rows = of.rows();
    KILN_TRY(auto areas, areas_of_rows(on, of));
    auto const states = areas.layer.states();
    world_question const how{"spatial_dissolve", areas.worlds};
    KILN_TRY(auto const in, arranged_in_worlds(on, std::move(areas.layer), how));
    KILN_TRY(auto parts, put_together(on, in, how, rows));
    KILN_TRY(parts.validity, on.room<std::uint8_t>((rows + 7) / 8));
    KILN_CHECK(on.launch(set_validity{states.data(), states.data(), rows, parts.validity->data()}, (rows + 7) / 8));
    mended_rows out;
    KILN_TRY(out.rows, geometries::make(std::move(parts)));
    KILN_TRY(auto const drawn, kept_layer::plain(on, out.rows));
    KILN_TRY(auto const before, marks_of(on, in.noded()));
    KILN_TRY(auto const after, marks_of(on, drawn));
    KILN_TRY(out.was_valid, on.room<std::uint8_t>(rows));
    KILN_CHECK(on.launch(
        compare_rows{raw(before), raw(after), areas.shrunk.data(), in.crossed_rows().data(), out.was_valid.data()},
        rows));
    return out;
}

result<geometries> areas_mended(queue& on, geometries const& of) {
    auto const areas = [](queue& q, geometries const& some) -> result<geometries> {
        KILN_TRY(auto out, rows_mended(q, some));
        return std::move(out.rows);
    };
    return remade_rows(on, of, std::array<row_maker, 1>{{{of_areas, areas}}});
}

namespace {

// A call of two operands, which are checked on the host.
template <class Use>
auto with_decided(runtime::operation_call const& call, stream_ref on, geometries const& left, geometries const& right,
                  Use const& use) -> decltype(use(std::declval<queue&>(), left, right)) {
    KILN_TRY(auto const a, brought(call, on, left));
    KILN_TRY(auto const b, brought(call, on, right));
    if (!call.on_gpu()) {
        KILN_CHECK(require_valid(a));
        KILN_CHECK(require_valid(b));
    }
    return with_queue(call.on_gpu(), on, a.device(), [&](queue& q) { return use(q, a, b); });
}
template <class Use>
auto with_valid_operands(stream_ref on, geometries const& left, geometries const& right, Use const& use)
    -> decltype(use(std::declval<queue&>(), left, right)) {
    KILN_TRY(auto const facts, facts_of(overlay_operation, left, right));
    KILN_TRY(auto const call, runtime::operation_call::begin(overlay_operation, facts));
    return with_decided(call, on, left, right, use);
}
// The same of two that are areas.
template <class Use>
auto with_both(std::string_view name, stream_ref on, geometries const& left, geometries const& right, Use const& use)
    -> decltype(use(std::declval<queue&>(), left, right)) {
    KILN_CHECK(require_areas(name, left));
    KILN_CHECK(require_areas(name, right));
    return with_valid_operands(on, left, right, use);
}
// The same of as many rows on both sides.
template <class Use>
auto with_row_pairs(std::string_view name, stream_ref on, geometries const& left, geometries const& right,
                    Use const& use) -> decltype(use(std::declval<queue&>(), left, right)) {
    if (left.rows() != right.rows())
        return fail(errc::invalid_argument, "{}: {} left rows and {} right ones", name, left.rows(), right.rows());
    return with_both(name, on, left, right, use);
}

std::optional<set_operation> set_operation_of(overlay_kind what) noexcept {
    switch (what) {
        case overlay_kind::intersection: return set_operation::intersection;
        case overlay_kind::union_: return set_operation::union_;
        case overlay_kind::difference: return set_operation::difference;
        case overlay_kind::symmetric_difference: return set_operation::symmetric_difference;
        default: return {};
    }
}

result<void> check_grid(std::string_view name, double grid) {
    if (grid == 0 || (grid > 0 && in_domain(grid) && in_domain(1 / grid))) return {};
    return fail(errc::invalid_argument, "{}: a grid of {}: 0, or a step above it within the range of coordinates", name,
                grid);
}

}  // namespace

result<overlay_rows> overlay(stream_ref on, geometries const& left, geometries const& right, overlay_kind what,
                             overlay_options const& how) {
    KILN_CHECK(check_grid("overlay", how.grid));
    KILN_CHECK(require_areas("overlay", left));
    KILN_CHECK(require_areas("overlay", right));
    KILN_TRY(auto const facts, facts_of(overlay_operation, left, right));
    KILN_TRY(auto const call, runtime::operation_call::begin(overlay_operation, facts));
    KILN_TRY(auto const most, bytes_for_chunks(call, {left, right}, how.most_bytes));
    if (most != 0)
        return with_chunks(call, on, {left, right}, most, [&](chunked_call const& by, auto const& operands) {
            return overlaid_in_chunks(by, operands[0], operands[1], what, how);
        });
    return with_decided(call, on, left, right, [&](queue& q, geometries const& a, geometries const& b) {
        return overlaid_rows(q, a, b, what, how);
    });
}
result<geometries> clip(stream_ref on, geometries const& of, geometries const& areas) {
    KILN_CHECK(require_areas("clip", areas));
    return with_valid_operands(
        on, of, areas, [](queue& q, geometries const& a, geometries const& b) { return rows_in_areas(q, a, b); });
}
result<area_list> area_table(stream_ref on, geometries const& left, geometries const& right) {
    return with_both("area_table", on, left, right,
                     [](queue& q, geometries const& a, geometries const& b) { return areas_in_common(q, a, b); });
}
result<geometries> overlay_row_by_row(stream_ref on, geometries const& left, geometries const& right, overlay_kind what,
                                      overlay_options const& how) {
    KILN_CHECK(check_grid("overlay_row_by_row", how.grid));
    auto const operation = set_operation_of(what);
    if (!operation)
        return fail(errc::invalid_argument, "overlay_row_by_row: {} is of layers, not of rows", name_of(what));
    return with_row_pairs("overlay_row_by_row", on, left, right,
                          [&](queue& q, geometries const& a, geometries const& b) {
                              return overlaid_row_by_row(q, a, b, *operation, how.grid);
                          });
}
result<buffer<double>> intersection_area(stream_ref on, geometries const& left, geometries const& right) {
    return with_row_pairs("intersection_area", on, left, right, [](queue& q, geometries const& a, geometries const& b) {
        return areas_in_common_row_by_row(q, a, b);
    });
}
result<buffer<double>> iou(stream_ref on, geometries const& left, geometries const& right) {
    return with_row_pairs("iou", on, left, right, [](queue& q, geometries const& a, geometries const& b) {
        return overlaps_row_by_row(q, a, b);
    });
}

namespace {

// A call of one operand, whatever its family: use(queue, operand), or in_chunks(where, operand).
template <class Use, class InChunks>
auto with_rows(stream_ref on, geometries const& of, memory_options const& how, Use const& use,
               InChunks const& in_chunks) -> decltype(use(std::declval<queue&>(), of)) {
    KILN_TRY(auto const call, runtime::operation_call::begin(dissolve_operation, facts_of(of)));
    KILN_TRY(auto const most, bytes_for_chunks(call, {of}, how.most_bytes));
    if (most != 0)
        return with_chunks(call, on, {of}, most,
                           [&](chunked_call const& by, auto const& operands) { return in_chunks(by, operands[0]); });
    KILN_TRY(auto const here, brought(call, on, of));
    if (!call.on_gpu()) KILN_CHECK(require_valid(here));
    return with_queue(call.on_gpu(), on, here.device(), [&](queue& q) { return use(q, here); });
}

}  // namespace

result<geometries> dissolve(stream_ref on, geometries const& of, buffer<std::int32_t> const& key, std::size_t keys,
                            memory_options const& how) {
    if (key.size() != of.rows())
        return fail(errc::invalid_argument, "dissolve: {} keys for {} rows", key.size(), of.rows());
    KILN_CHECK(require_numbered("dissolve", keys, of.rows()));
    KILN_CHECK(require_areas("dissolve", of));
    return with_rows(
        on, of, how,
        [&](queue& q, geometries const& here) -> result<geometries> {
            KILN_TRY(auto const own, brought_sync(q, on, key));
            return dissolved_rows(q, here, own, keys);
        },
        [&](chunked_call const& by, geometries const& here) -> result<geometries> {
            KILN_TRY(auto const own, brought_sync(by.in.home, on, key));
            return dissolved_in_chunks(by, here, own, keys);
        });
}
result<geometries> union_all(stream_ref on, geometries const& of) {
    KILN_CHECK(require_areas("union_all", of));
    KILN_TRY(auto const call, runtime::operation_call::begin(dissolve_operation, facts_of(of)));
    KILN_TRY(auto const here, brought(call, on, of));
    if (!call.on_gpu()) KILN_CHECK(require_valid(here));
    return with_queue(call.on_gpu(), on, here.device(), [&](queue& q) { return united_rows(q, here); });
}

namespace {

result<mended_rows> areas_mended_in_chunks(chunked_call const& by, geometries const& here) {
    if (dimensions_in(here) != of_areas)
        return fail(errc::out_of_memory,
                    "make_valid: rows that are no areas are not taken in chunks; filter them first");
    return mended_in_chunks(by, here);
}

}  // namespace

result<geometries> make_valid(stream_ref on, geometries const& of, memory_options const& how) {
    return with_rows(on, of, how, areas_mended,
                     [](chunked_call const& by, geometries const& here) -> result<geometries> {
                         KILN_TRY(auto out, areas_mended_in_chunks(by, here));
                         return std::move(out.rows);
                     });
}
result<mended_rows> mend(stream_ref on, geometries const& of, memory_options const& how) {
    return with_rows(
        on, of, how,
        [](queue& q, geometries const& here) -> result<mended_rows> {
            KILN_TRY(auto out, rows_mended(q, here));
            if (dimensions_in(here) == of_areas) return out;
            KILN_TRY(out.rows, areas_mended(q, here));
            return out;
        },
        areas_mended_in_chunks);
}
result<buffer<std::uint8_t>> is_valid(stream_ref on, geometries const& of) {
    KILN_TRY(auto out,
             with_rows(
                 on, of, memory_options{}, [](queue& q, geometries const& here) { return rows_mended(q, here); },
                 [](chunked_call const& by, geometries const& here) { return mended_in_chunks(by, here); }));
    return std::move(out.was_valid);
}

}  // namespace kiln::spatial
