// SPDX-License-Identifier: Apache-2.0
#include "spatial/overlay/overlay.hpp"

#include "spatial/operations.hpp"
#include "spatial/overlay/drawing.hpp"
#include "spatial/overlay_borders.cuh"
#include "spatial/overlay_noding.cuh"
#include "spatial/overlay_rings.cuh"
#include "spatial/row_measures.hpp"

#include <kiln/event.hpp>
#include <kiln/spatial/validate.hpp>

#include <algorithm>

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

constexpr std::array<std::string_view, 6> kind_names{"intersection",         "union",    "difference",
                                                     "symmetric_difference", "identity", "update"};

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
    return fail(errc::unsupported, "{}: polygons and multipolygons are needed, not {}", operation, name_of(of.kind()));
}

// Rounded crossings that made others cross: told, because a result that follows them was moved twice.
void tell(std::string_view operation, arrangement const& of) {
    if (of.moved_again() == 0) return;
    event_log::process().emit({.kind = event_kind::note,
                               .unit = operation,
                               .reason = "divided-again",
                               .detail = "segments onto which rounded crossings had moved others",
                               .value = static_cast<std::int64_t>(of.moved_again())});
}

template <class Rule>
result<result_borders> borders_of(queue& on, arrangement const& in, arrangement::covers const& covers,
                                  Rule const& rule) {
    auto const n = in.borders();
    result_borders out;
    KILN_TRY(auto place, on.room<std::int64_t>(n + 1));
    KILN_CHECK(on.launch(count_result_borders<Rule>{rule, covers.cover.data(), raw(covers.first), raw(place)}, n));
    KILN_TRY(auto const total, on.total_sync(place));
    if (total > 0x3fffffff)
        return fail(errc::unsupported, "overlay: {} borders of results: take the arrays in parts", total);
    KILN_TRY(out.key, on.room<std::uint64_t>(static_cast<std::size_t>(total)));
    KILN_TRY(out.piece, on.room<std::int32_t>(static_cast<std::size_t>(total)));
    KILN_CHECK(on.launch(list_result_borders<Rule>{rule, covers.cover.data(), raw(covers.first), raw(place),
                                                   raw(out.key), out.piece.data()},
                         n));
    return out;
}

// Of each world, all its rows as one.
result<geometry_parts> united(queue& on, std::string_view operation, kept_layer of, buffer<std::int32_t> const& worlds,
                              std::size_t rows) {
    KILN_TRY(auto const in, arrangement::make(on, std::move(of), worlds));
    tell(operation, in);
    KILN_TRY(auto const covers, in.find_covers(on));
    KILN_TRY(auto const borders, borders_of(on, in, covers, union_rule{worlds.data()}));
    drawing out{on, in};
    KILN_CHECK(out.order(borders));
    return out.draw(rows);
}

}  // namespace

std::string_view name_of(overlay_kind what) noexcept { return kind_names[static_cast<std::size_t>(what)]; }

std::optional<overlay_kind> overlay_kind_of(std::string_view name) noexcept {
    auto const found = std::ranges::find(kind_names, name);
    if (found == kind_names.end()) return {};
    return static_cast<overlay_kind>(found - kind_names.begin());
}

result<overlay_rows> overlaid_rows(queue& on, geometries const& left, geometries const& right, overlay_kind what) {
    KILN_TRY(auto const a, kept_layer::distinct(on, left));
    KILN_TRY(auto const b, kept_layer::distinct(on, right));
    KILN_TRY(auto both, kept_layer::joined(on, a, b));
    KILN_TRY(auto const in, arrangement::make(on, std::move(both)));
    tell("spatial_overlay", in);
    KILN_TRY(auto const covers, in.find_covers(on));
    KILN_TRY(auto const borders,
             borders_of(on, in, covers, overlay_rule{static_cast<i32>(left.rows()), parts_of(what)}));
    drawing drawn{on, in};
    KILN_CHECK(drawn.order(borders));
    KILN_TRY(auto parts, drawn.draw());
    overlay_rows out;
    KILN_TRY(out.rows, geometries::make(std::move(parts)));
    out.left = drawn.left(), out.right = drawn.right();
    return out;
}

result<area_list> areas_in_common(queue& on, geometries const& left, geometries const& right) {
    KILN_TRY(auto const made, overlaid_rows(on, left, right, overlay_kind::intersection));
    KILN_TRY(auto const of, row_measures::make(on, made.rows));
    area_list out{made.left, made.right, {}};
    KILN_TRY(out.area, of.area());
    return out;
}

result<geometries> dissolved_rows(queue& on, geometries const& of, buffer<std::int32_t> const& key, std::size_t keys) {
    KILN_TRY(auto l, kept_layer::distinct(on, of));
    KILN_TRY(auto worlds, on.room<std::int32_t>(of.rows()));
    KILN_CHECK(on.launch(worlds_of_keys{key.data(), static_cast<i32>(keys), worlds.data()}, of.rows()));
    KILN_TRY(auto parts, united(on, "spatial_dissolve", std::move(l), worlds, keys));
    return geometries::make(std::move(parts));
}

result<geometries> united_rows(queue& on, geometries const& of) {
    KILN_TRY(auto l, kept_layer::distinct(on, of));
    KILN_TRY(auto const worlds, on.filled<std::int32_t>(of.rows(), 0));
    KILN_TRY(auto parts, united(on, "spatial_dissolve", std::move(l), worlds, 1));
    return geometries::make(std::move(parts));
}

result<geometries> valid_rows(queue& on, geometries const& of) {
    auto const rows = of.rows();
    KILN_TRY(auto l, kept_layer::distinct(on, of));
    auto const states = l.states();
    KILN_TRY(auto const worlds, on.room<std::int32_t>(rows));
    KILN_CHECK(on.launch(number_words{worlds.data()}, rows));
    KILN_TRY(auto parts, united(on, "spatial_dissolve", std::move(l), worlds, rows));
    KILN_TRY(parts.validity, on.room<std::uint8_t>((rows + 7) / 8));
    KILN_CHECK(on.launch(set_validity{states.data(), rows, parts.validity->data()}, (rows + 7) / 8));
    return geometries::make(std::move(parts));
}

result<overlay_rows> overlay(stream_ref on, geometries const& left, geometries const& right, overlay_kind what) {
    KILN_CHECK(require_areas("overlay", left));
    KILN_CHECK(require_areas("overlay", right));
    return with_operands(overlay_operation, on, left, right,
                         [&](queue& q, geometries const& a, geometries const& b) -> result<overlay_rows> {
                             if (q.where() == residency::host) {
                                 KILN_CHECK(require_valid(a));
                                 KILN_CHECK(require_valid(b));
                             }
                             return overlaid_rows(q, a, b, what);
                         });
}

result<area_list> area_table(stream_ref on, geometries const& left, geometries const& right) {
    KILN_CHECK(require_areas("area_table", left));
    KILN_CHECK(require_areas("area_table", right));
    return with_operands(overlay_operation, on, left, right,
                         [&](queue& q, geometries const& a, geometries const& b) -> result<area_list> {
                             if (q.where() == residency::host) {
                                 KILN_CHECK(require_valid(a));
                                 KILN_CHECK(require_valid(b));
                             }
                             return areas_in_common(q, a, b);
                         });
}

namespace {

// A call of one operand.
template <class Use>
result<geometries> with_areas(std::string_view name, stream_ref on, geometries const& of, Use const& use) {
    KILN_CHECK(require_areas(name, of));
    KILN_TRY(auto const call, runtime::operation_call::begin(dissolve_operation, facts_of(of)));
    KILN_TRY(auto const here, brought(call, on, of));
    if (!call.on_gpu()) KILN_CHECK(require_valid(here));
    return with_queue(call.on_gpu(), on, here.device(), [&](queue& q) { return use(q, here); });
}

}  // namespace

result<geometries> dissolve(stream_ref on, geometries const& of, buffer<std::int32_t> const& key, std::size_t keys) {
    if (key.size() != of.rows())
        return fail(errc::invalid_argument, "dissolve: {} keys for {} rows", key.size(), of.rows());
    if (keys > 0x7fffffff) return fail(errc::invalid_argument, "dissolve: {} keys are more than rows can have", keys);
    return with_areas("dissolve", on, of, [&](queue& q, geometries const& here) -> result<geometries> {
        bool const there = q.where() == residency::device;
        KILN_TRY(auto const own, there ? key.to_device(on, q.device()) : key.to_host_sync(on));
        return dissolved_rows(q, here, own, keys);
    });
}
result<geometries> union_all(stream_ref on, geometries const& of) {
    return with_areas("union_all", on, of, [](queue& q, geometries const& here) { return united_rows(q, here); });
}
result<geometries> make_valid(stream_ref on, geometries const& of) {
    return with_areas("make_valid", on, of, [](queue& q, geometries const& here) { return valid_rows(q, here); });
}

}  // namespace kiln::spatial
