// SPDX-License-Identifier: Apache-2.0
#include "spatial/overlay/divisions.hpp"

#include "spatial/kept_elements.hpp"
#include "spatial/overlay_noding.cuh"

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

world_slots slots_of(kept_elements const& of) {
    if (of.world_first.empty()) return {nullptr, nullptr, 0};
    return {of.worlds.number.data(), of.world_first.data(), static_cast<i32>(of.worlds.count)};
}

}  // namespace

result<found_divisions> find_divisions(queue& on, division_question const& what, std::uint32_t const* asks,
                                       buffer<std::uint32_t> const& moved) {
    found_divisions out;
    auto const& elements = what.of.elements();
    meeting_search const search{what.of.view(), elements.tree.view(), elements.in_order.data(), elements.worlds.data(),
                                asks,           {what.roles},         slots_of(elements)};
    auto const leaves = (elements.tree.size() + 7) / 8;
    if (leaves == 0) return out;
    KILN_TRY(auto kept, on.room<std::uint64_t>(leaves * meetings_kept));
    kept_meetings const first{raw(kept), leaves};
    KILN_TRY(auto place, on.room<std::int64_t>(leaves + 1));
    KILN_CHECK(on.launch(count_meetings{search, first, raw(place)}, leaves));
    KILN_TRY(auto const met, on.total_sync(place));
    auto const pairs = static_cast<std::size_t>(met);
    if (pairs > 0x3fffffff)
        return fail(errc::unsupported, "overlay: {} pairs of segments that meet: take the arrays in parts", pairs);
    if (pairs == 0) return out;
    KILN_TRY(auto left, on.room<std::int32_t>(pairs));
    KILN_TRY(auto right, on.room<std::int32_t>(pairs));
    KILN_CHECK(on.launch(list_meetings{search, first, raw(place), left.data(), right.data()}, leaves));

    KILN_TRY(auto segments, on.room<std::int32_t>(2 * pairs));
    KILN_TRY(auto points, on.room<point>(2 * pairs));
    KILN_TRY(auto counts, on.room<std::int64_t>(pairs + 1));
    division_pair const found{segments.data(), points.data()};
    KILN_CHECK(on.launch(kiln_spatial::find_divisions{what.of.view(), left.data(), right.data(), found, what.grids,
                                                      raw(counts), moved.data()},
                         pairs));
    KILN_TRY(auto const total, on.total_sync(counts));
    out.count = static_cast<std::size_t>(total);
    KILN_TRY(out.segment_of, on.room<std::int32_t>(out.count));
    KILN_TRY(out.at, on.room<point>(out.count));
    KILN_TRY(out.number, on.room<std::int32_t>(out.count));
    KILN_CHECK(on.launch(gather_divisions{found, raw(counts), out.segment_of.data(), out.at.data(), out.number.data()},
                         pairs));
    return out;
}

result<found_divisions> find_hot(queue& on, division_question const& what, found_divisions const& crossings,
                                 hot_vertices which) {
    found_divisions out;
    out.crossings = crossings.count;
    auto const& elements = what.of.elements();
    auto const vertices = which == hot_vertices::all ? what.of.vertices() : 0;
    hot_search const search{
        what.of.view(), elements.tree.view(), elements.in_order.data(),    elements.worlds.data(), what.grids,
        vertices,       crossings.at.data(),  crossings.segment_of.data(), {what.roles},           slots_of(elements)};
    auto const n = vertices + crossings.count;
    if (n == 0) return out;
    KILN_TRY(auto place, on.room<std::int64_t>(n + 1));
    KILN_CHECK(on.launch(count_hot{search, raw(place)}, n));
    KILN_TRY(auto const total, on.total_sync(place));
    out.count = static_cast<std::size_t>(total);
    if (out.count > 0x7fffffff)
        return fail(errc::unsupported, "overlay: {} segments to snap: take the arrays in parts", out.count);
    KILN_TRY(out.segment_of, on.room<std::int32_t>(out.count));
    KILN_TRY(out.at, on.room<point>(out.count));
    KILN_TRY(out.number, on.room<std::int32_t>(out.count));
    KILN_CHECK(on.launch(list_hot{search, raw(place), out.segment_of.data(), out.at.data(), out.number.data()}, n));
    return out;
}

result<found_divisions> all_at_once::crossings(queue& home, kept_layer& of, kept_worlds const& worlds,
                                               buffer<std::uint32_t> const& asks, buffer<std::uint32_t> const& moved) {
    KILN_CHECK(of.keep_elements(home, worlds));
    return find_divisions(home, {of}, asks.empty() ? nullptr : asks.data(), moved);
}
result<found_divisions> all_at_once::squares(queue& home, kept_layer& of, kept_worlds const& worlds,
                                             kept_grids const& grids, hot_vertices which) {
    KILN_CHECK(of.keep_elements(home, worlds));
    division_question const what{of, grids.view()};
    KILN_TRY(auto const moved, home.filled<std::uint32_t>(of.vertices(), 0));
    KILN_TRY(auto const found, find_divisions(home, what, nullptr, moved));
    return find_hot(home, what, found, which);
}

}  // namespace kiln::spatial
