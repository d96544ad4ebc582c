// SPDX-License-Identifier: Apache-2.0
#include "spatial/overlay/simplified.hpp"

#include "spatial/operations.hpp"
#include "spatial/outlines.hpp"
#include "spatial/overlay/overlay.hpp"
#include "spatial/overlay_rings.cuh"
#include "spatial/remade.hpp"
#include "spatial/simplify.cuh"

#include <kiln/spatial/validate.hpp>

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

// Levels are as many as the depth of the longest path's divisions; whether there are more is asked now and then.
constexpr int levels_between_questions = 4;

}  // namespace

result<path_spans> path_spans::begin(queue& on, kept_layer const& l) {
    path_spans out;
    auto const n = l.vertices();
    KILN_TRY(out.low_, on.room<std::int32_t>(n));
    KILN_TRY(out.high_, on.room<std::int32_t>(n));
    KILN_TRY(out.fate_, on.room<std::uint32_t>(n));
    KILN_TRY(out.square_, on.room<std::uint64_t>(n));
    KILN_TRY(out.vertex_, on.room<std::uint64_t>(n));
    KILN_CHECK(on.launch(begin_spans{l.view(), out.view()}, n));
    return out;
}

result<void> path_spans::settle(queue& on, kept_layer const& l, double tolerance, std::uint32_t const* must) {
    buffer<std::int32_t> open;
    for (auto among = l.vertices();; among = open.size()) {
        auto const* const from = open.empty() ? nullptr : open.data();
        KILN_TRY(auto place, on.room<std::int64_t>(among + 1));
        KILN_CHECK(on.launch(count_open{fate_.data(), from, raw(place)}, among));
        KILN_TRY(auto const left, on.total_sync(place));
        if (left == 0) return {};
        KILN_TRY(auto still, on.room<std::int32_t>(static_cast<std::size_t>(left)));
        KILN_CHECK(on.launch(list_open{from, raw(place), still.data()}, among));
        open = std::move(still);
        for (int level = 0; level < levels_between_questions; ++level) {
            KILN_CHECK(on.launch(clear_farthest{view(), open.data(), raw(square_), raw(vertex_)}, open.size()));
            for (i32 step = 0; step < 2; ++step)
                KILN_CHECK(on.launch(find_farthest{l.view(), view(), open.data(), step, raw(square_), raw(vertex_)},
                                     open.size()));
            KILN_CHECK(
                on.launch(split_spans{view(), open.data(), raw(square_), raw(vertex_), tolerance * tolerance, must},
                          open.size()));
            must = nullptr;
        }
    }
}

namespace {

// Without the vertices that need not stay.
result<kept_layer> thinned_layer(queue& on, geometries const& of, double tolerance) {
    KILN_TRY(auto l, kept_layer::distinct(on, of));
    KILN_TRY(auto spans, path_spans::begin(on, l));
    KILN_CHECK(spans.settle(on, l, tolerance));
    KILN_TRY(auto place, on.room<std::int64_t>(l.vertices() + 1));
    KILN_CHECK(on.launch(count_staying{spans.view().fate, raw(place)}, l.vertices()));
    KILN_CHECK(l.keep_vertices(on, place));
    KILN_CHECK(l.drop_repeated(on));  // a ring, or a closed line, of which only its ends are left
    return l;
}
result<geometries> simplified_lines(queue& on, geometries const& of, double tolerance) {
    KILN_TRY(auto const l, thinned_layer(on, of, tolerance));
    return paths_as_lines(on, l, 1U << line_path);
}
result<geometries> simplified_areas(queue& on, geometries const& of, double tolerance) {
    auto const rows = of.rows();
    KILN_TRY(auto l, thinned_layer(on, of, tolerance));
    auto const states = l.states();
    KILN_TRY(auto worlds, on.room<std::int32_t>(rows));
    KILN_CHECK(on.launch(number_words{worlds.data()}, rows));
    KILN_TRY(auto parts, put_together(on, std::move(l), {"spatial_simplify", worlds}, rows));
    KILN_TRY(parts.validity, on.room<std::uint8_t>((rows + 7) / 8));
    KILN_CHECK(on.launch(set_validity{states.data(), states.data(), rows, parts.validity->data()}, (rows + 7) / 8));
    return geometries::make(std::move(parts));
}

}  // namespace

result<geometries> simplified_rows(queue& on, geometries const& of, double tolerance) {
    auto const lines = [&](queue& q, geometries const& some) { return simplified_lines(q, some, tolerance); };
    auto const areas = [&](queue& q, geometries const& some) { return simplified_areas(q, some, tolerance); };
    return remade_rows(on, of, std::array<row_maker, 2>{{{of_lines, lines}, {of_areas, areas}}});
}

result<void> require_tolerance(std::string_view call, double tolerance) {
    if (tolerance >= 0 && in_domain(tolerance)) return {};
    return fail(errc::invalid_argument, "{}: a tolerance of {}: 0, and from 2^{} to below 2^{}, are taken", call,
                tolerance, least_exponent, most_exponent);
}

result<geometries> simplify(stream_ref on, geometries const& of, double tolerance) {
    KILN_CHECK(require_tolerance("simplify", tolerance));
    KILN_TRY(auto const call, runtime::operation_call::begin(simplify_operation, facts_of(of)));
    KILN_TRY(auto const here, brought(call, on, of));
    if (!call.on_gpu()) KILN_CHECK(require_valid(here));
    return with_queue(call.on_gpu(), on, here.device(), [&](queue& q) { return simplified_rows(q, here, tolerance); });
}

}  // namespace kiln::spatial
