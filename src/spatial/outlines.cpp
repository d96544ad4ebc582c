// SPDX-License-Identifier: Apache-2.0
#include "spatial/outlines.hpp"

#include "spatial/operations.hpp"
#include "spatial/remade.hpp"
#include "spatial/row_measures.hpp"
#include "spatial/row_outlines.cuh"
#include "spatial/row_room.hpp"
#include "spatial/rows.hpp"

#include <kiln/spatial/outlines.hpp>
#include <kiln/spatial/validate.hpp>

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

// These vertices by row, then x, then y.
result<void> sort_by_place(queue& on, kept_layer const& l, buffer<std::int32_t>& vertices) {
    KILN_TRY(auto key, on.room<std::uint64_t>(vertices.size()));
    for (i32 step = 0; step < 3; ++step) {
        KILN_CHECK(on.launch(outline_keys{l.view(), vertices.data(), step, raw(key)}, vertices.size()));
        KILN_CHECK(on.sort(key, vertices, step == 2 ? bits_for(l.rows()) : 64));
    }
    return {};
}

// Corners of every row become polygons, or a mixed array where some rows have only one or two.
template <class Outline>
result<geometries> drawn_outlines(queue& on, kept_layer const& l, Outline const& of) {
    auto const rows = l.rows();
    KILN_TRY(auto thin, on.room<std::int64_t>(rows + 1));
    KILN_TRY(auto wide, on.room<std::int64_t>(rows + 1));
    KILN_CHECK(on.launch(count_outlines<Outline>{of, raw(thin), raw(wide)}, rows));
    KILN_CHECK(on.sum(thin));
    KILN_CHECK(on.sum(wide));
    std::int64_t thins = 0, wides = 0;
    KILN_CHECK(on.read_sync({{thin.data() + rows, thins}, {wide.data() + rows, wides}}));
    auto const points = std::size_t{high_of(thins)}, lines = std::size_t{low_of(thins)};
    bool const is_mixed = points + lines > 0;

    geometry_parts polygons, thin_lines;
    polygons.kind = family::polygon, thin_lines.kind = family::linestring;
    KILN_TRY(polygons.x, on.room<double>(low_of(wides)));
    KILN_TRY(polygons.y, on.room<double>(low_of(wides)));
    KILN_TRY(polygons.offsets[0], on.room<std::int32_t>(rows - points - lines + 1));
    KILN_TRY(polygons.offsets[1], on.room<std::int32_t>(std::size_t{high_of(wides)} + 1));
    outline_array to{};
    to.x = polygons.x.data(), to.y = polygons.y.data();
    to.row_rings = polygons.offsets[0].data(), to.ring_vertices = polygons.offsets[1].data();
    mixed_parts mixed;
    geometry_parts dots;
    if (is_mixed) {
        KILN_TRY(mixed.type, on.room<std::int8_t>(rows));
        KILN_TRY(mixed.child_row, on.room<std::int32_t>(rows));
        KILN_TRY(dots.x, on.room<double>(points));
        KILN_TRY(dots.y, on.room<double>(points));
        KILN_TRY(thin_lines.x, on.room<double>(2 * lines));
        KILN_TRY(thin_lines.y, on.room<double>(2 * lines));
        KILN_TRY(thin_lines.offsets[0], on.room<std::int32_t>(lines + 1));
        to.type = reinterpret_cast<signed char*>(mixed.type.data()), to.child_row = mixed.child_row.data();
        to.point_x = dots.x.data(), to.point_y = dots.y.data();
        to.line_x = thin_lines.x.data(), to.line_y = thin_lines.y.data();
        to.line_first = thin_lines.offsets[0].data();
    }
    KILN_CHECK(on.launch(write_outlines<Outline>{of, raw(thin), raw(wide), rows, to}, rows + 1));
    KILN_TRY(auto validity, validity_of_rows(on, l));
    if (!is_mixed) {
        polygons.validity = std::move(validity);
        return geometries::make(std::move(polygons));
    }
    mixed.validity = std::move(validity);
    for (auto* const child : {&dots, &thin_lines, &polygons}) {
        KILN_TRY(auto made, geometries::make(std::move(*child)));
        if (made.rows() > 0) mixed.children.push_back(std::move(made));
    }
    return geometries::make(std::move(mixed));
}

result<geometries> ends_of_lines(queue& on, kept_layer const& l) {
    auto const rows = l.rows(), paths = l.paths();
    KILN_TRY(auto listed, on.room<std::int64_t>(paths + 1));
    KILN_CHECK(on.launch(list_ends{l.view(), raw(listed)}, paths));
    KILN_TRY(auto const all, on.total_sync(listed));
    auto const ends = static_cast<std::size_t>(all);
    KILN_TRY(auto vertex, on.room<std::int32_t>(ends));
    KILN_CHECK(on.launch(write_ends{l.view(), raw(listed), vertex.data()}, paths));
    KILN_CHECK(sort_by_place(on, l, vertex));
    KILN_TRY(auto place, on.room<std::int64_t>(ends + 1));
    KILN_TRY(auto of_row, on.filled<std::int64_t>(rows + 1, 0));
    KILN_CHECK(on.launch(count_odd_ends{l.view(), vertex.data(), ends, raw(place), counts_in(of_row)}, ends));
    KILN_CHECK(on.sum(of_row));
    KILN_TRY(auto const odd, on.total_sync(place));
    KILN_TRY(auto out, room_for_multipoints(on, rows, odd));
    KILN_CHECK(on.launch(write_odd_ends{l.view(), vertex.data(), raw(place), out.x.data(), out.y.data()}, ends));
    KILN_CHECK(on.launch(end_rows{raw(of_row), out.offsets[0].data()}, rows + 1));
    KILN_TRY(out.validity, validity_of_rows(on, l));
    return geometries::make(std::move(out));
}

}  // namespace

result<geometries> paths_as_lines(queue& on, kept_layer const& l, std::uint32_t kinds) {
    auto const rows = l.rows(), paths = l.paths();
    KILN_TRY(auto place, on.room<std::int64_t>(paths + 1));
    KILN_CHECK(on.launch(count_ring_lines{l.view(), kinds, raw(place)}, paths));
    KILN_TRY(auto const total, on.total_sync(place));
    KILN_TRY(auto out, room_for_lines(on, rows, total));
    KILN_CHECK(on.launch(boundary_rows{l.view(), raw(place), out.offsets[0].data()}, rows + 1));
    KILN_CHECK(on.launch(write_ring_lines{l.view(), raw(place), out.offsets[1].data()}, paths + 1));
    KILN_CHECK(on.launch(write_ring_vertices_of_lines{l.view(), raw(place), out.x.data(), out.y.data()}, l.vertices()));
    KILN_TRY(out.validity, validity_of_rows(on, l));
    return geometries::make(std::move(out));
}

result<geometries> hulls_of_rows(queue& on, geometries const& of) {
    KILN_TRY(auto const l, kept_layer::plain(on, of));
    auto const n = l.vertices();
    KILN_TRY(auto vertex, on.room<std::int32_t>(n));
    KILN_CHECK(on.launch(number_words{vertex.data()}, n));
    KILN_CHECK(sort_by_place(on, l, vertex));
    KILN_TRY(auto corner, on.room<point>(n + l.rows()));
    KILN_TRY(auto corners, on.room<std::int32_t>(l.rows()));
    KILN_CHECK(
        on.launch(find_hulls{l.view(), l.states().data(), vertex.data(), corner.data(), corners.data()}, l.rows()));
    return drawn_outlines(on, l, hull_outline{l.view(), corner.data(), corners.data()});
}

result<geometries> boxes_around_rows(queue& on, geometries const& of) {
    KILN_TRY(auto const l, kept_layer::plain(on, of));
    KILN_TRY(auto const boxes, l.row_boxes(on));
    return drawn_outlines(on, l, box_outline{boxes.data()});
}

result<geometries> boundaries_of_rows(queue& on, geometries const& of) {
    auto const rings = [](queue& q, geometries const& some) -> result<geometries> {
        KILN_TRY(auto const l, kept_layer::plain(q, some));
        return paths_as_lines(q, l, ring_kinds);
    };
    auto const ends = [](queue& q, geometries const& some) -> result<geometries> {
        KILN_TRY(auto const l, kept_layer::plain(q, some));
        return ends_of_lines(q, l);
    };
    return remade_rows(on, of, std::array<row_maker, 2>{{{of_points | of_lines, ends}, {of_areas, rings}}});
}

result<geometries> points_on_rows(queue& on, geometries const& of) {
    KILN_TRY(auto const l, kept_layer::plain(on, of));
    auto const rows = l.rows(), n = l.vertices();
    KILN_TRY(auto number, on.room<std::int64_t>(l.paths() + 1));
    KILN_CHECK(on.launch(count_shells_of_rows{l.view(), raw(number)}, l.paths()));
    KILN_CHECK(on.sum(number));
    buffer<std::uint64_t> height[4];  // least, most turned round, above the middle, below turned round
    for (auto& h : height) {
        KILN_TRY(h, on.filled<std::uint64_t>(l.paths() + 1, ~0U));
    }
    KILN_CHECK(on.launch(polygon_heights{l.view(), raw(number), raw(height[0]), raw(height[1])}, n));
    KILN_CHECK(on.launch(
        polygon_gaps{l.view(), raw(number), raw(height[0]), raw(height[1]), raw(height[2]), raw(height[3])}, n));
    level_crossings const levels{l.view(), raw(number), raw(height[2]), raw(height[3])};
    KILN_TRY(auto place, on.room<std::int64_t>(n + 1));
    KILN_CHECK(on.launch(count_level_crossings{levels, raw(place)}, n));
    KILN_TRY(auto const total, on.total_sync(place));
    auto const crossings = static_cast<std::size_t>(total);
    KILN_TRY(auto key, on.room<std::uint64_t>(crossings));
    KILN_TRY(auto vertex, on.room<std::int32_t>(crossings));
    KILN_CHECK(on.launch(list_level_crossings{levels, raw(place), raw(key), vertex.data()}, n));
    KILN_CHECK(on.sort(key, vertex, 64));
    KILN_CHECK(on.launch(level_polygon_keys{levels, vertex.data(), raw(key)}, crossings));
    KILN_CHECK(on.sort(key, vertex, bits_for(l.paths() + 1)));

    KILN_TRY(auto const middle, row_measures::make(on, of));
    KILN_TRY(auto const centre, middle.centroid());
    buffer<std::uint64_t> best[4];  // widths, sections; distances, vertices
    for (auto& b : best) {
        KILN_TRY(b, on.filled<std::uint64_t>(rows, ~0U));
    }
    for (i32 step = 0; step < 2; ++step) {
        KILN_CHECK(on.launch(
            widest_sections{levels, vertex.data(), raw(key), crossings, step, raw(best[0]), raw(best[1])}, crossings));
        KILN_CHECK(on.launch(
            nearest_to_middle{l.view(), centre.x.data(), centre.y.data(), step, raw(best[2]), raw(best[3])}, n));
    }
    geometry_parts out;
    KILN_TRY(out.x, on.room<double>(rows));
    KILN_TRY(out.y, on.room<double>(rows));
    auto const* const dimension = reinterpret_cast<signed char const*>(l.dimensions().data());
    KILN_CHECK(on.launch(points_in_rows{levels, vertex.data(), l.states().data(), dimension, raw(best[1]), raw(best[3]),
                                        out.x.data(), out.y.data()},
                         rows));
    KILN_TRY(out.validity, validity_of_rows(on, l));
    return geometries::make(std::move(out));
}

namespace {

using outline_call = result<geometries> (*)(queue&, geometries const&);
result<geometries> outlined(stream_ref on, geometries const& of, outline_call call_it) {
    KILN_TRY(auto const call, runtime::operation_call::begin(outlines_operation, facts_of(of)));
    KILN_TRY(auto const here, brought(call, on, of));
    if (!call.on_gpu()) KILN_CHECK(require_valid(here));
    return with_queue(call.on_gpu(), on, here.device(), [&](queue& q) { return call_it(q, here); });
}

}  // namespace

result<geometries> convex_hull(stream_ref on, geometries const& of) { return outlined(on, of, hulls_of_rows); }
result<geometries> envelope(stream_ref on, geometries const& of) { return outlined(on, of, boxes_around_rows); }
result<geometries> boundary(stream_ref on, geometries const& of) { return outlined(on, of, boundaries_of_rows); }
result<geometries> point_on_surface(stream_ref on, geometries const& of) { return outlined(on, of, points_on_rows); }

}  // namespace kiln::spatial
