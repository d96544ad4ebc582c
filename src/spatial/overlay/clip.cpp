// SPDX-License-Identifier: Apache-2.0
#include "spatial/overlay/clip.hpp"

#include "spatial/overlay/arrangement.hpp"
#include "spatial/overlay/overlay.hpp"
#include "spatial/overlay_clip.cuh"
#include "spatial/remade.hpp"
#include "spatial/row_room.hpp"
#include "spatial/row_shapes.cuh"
#include "spatial/rows.hpp"

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

// Asked once for every segment or point.
constexpr cell_options clip_cells{.cells_per_edge = 1, .split_above = 64, .edges_per_cell = 16};

result<geometry_parts> lines_in_areas(queue& on, kept_layer const& lines, kept_layer const& areas) {
    KILN_TRY(auto both, kept_layer::joined(on, areas, lines));
    KILN_TRY(auto const divided, arrangement::noded_layer(on, std::move(both)));
    auto const& noded = divided.layer;
    KILN_TRY(auto const cells, kept_cells::make(on, noded, clip_cells));
    auto const l = noded.view();
    auto const n = noded.vertices(), rows = lines.rows();
    KILN_TRY(auto stays, on.room<std::int32_t>(n));
    KILN_CHECK(on.launch(clip_segments{l, cells.view(), stays.data()}, n));
    KILN_TRY(auto place, on.room<std::int64_t>(n + 1));
    clipped_lines const of{l, divided.owned.data(), stays.data()};
    KILN_CHECK(on.launch(count_clipped_parts{of, raw(place)}, n));
    KILN_TRY(auto const total, on.total_sync(place));
    KILN_TRY(auto out, room_for_lines(on, rows, total));
    KILN_CHECK(
        on.launch(clipped_line_rows{l, raw(place), static_cast<i32>(areas.rows()), out.offsets[0].data()}, rows + 1));
    KILN_CHECK(
        on.launch(write_clipped_parts{of, raw(place), out.x.data(), out.y.data(), out.offsets[1].data()}, n + 1));
    return out;
}

result<geometry_parts> points_in_areas(queue& on, kept_layer const& points, kept_layer const& areas, family kind) {
    KILN_TRY(auto const cells, kept_cells::make(on, areas, clip_cells));
    auto const l = points.view();
    auto const n = points.vertices(), rows = points.rows();
    KILN_TRY(auto stays, on.room<std::int32_t>(n));
    KILN_CHECK(on.launch(clip_vertices{l, cells.view(), stays.data()}, n));
    if (kind == family::point) {
        geometry_parts out;
        KILN_TRY(out.x, on.room<double>(rows));
        KILN_TRY(out.y, on.room<double>(rows));
        KILN_CHECK(on.launch(
            write_clipped_points_of_rows{l, points.states().data(), stays.data(), out.x.data(), out.y.data()}, rows));
        return out;
    }
    KILN_TRY(auto place, on.room<std::int64_t>(n + 1));
    KILN_CHECK(on.launch(count_clipped_vertices{stays.data(), raw(place)}, n));
    KILN_TRY(auto const total, on.total_sync(place));
    KILN_TRY(auto out, room_for_multipoints(on, rows, total));
    KILN_CHECK(on.launch(write_clipped_points{l, raw(place), out.x.data(), out.y.data()}, n));
    KILN_CHECK(on.launch(clipped_point_rows{l, raw(place), out.offsets[0].data()}, rows + 1));
    return out;
}

}  // namespace

result<geometries> rows_in_areas(queue& on, geometries const& of, geometries const& areas) {
    auto const points = [&](queue& q, geometries const& some) -> result<geometries> {
        KILN_TRY(auto const inside, kept_layer::distinct(q, areas));
        KILN_TRY(auto const rows, kept_layer::plain(q, some));
        KILN_TRY(auto parts, points_in_areas(q, rows, inside, some.kind()));
        KILN_TRY(parts.validity, validity_of_rows(q, rows));
        return geometries::make(std::move(parts));
    };
    auto const lines = [&](queue& q, geometries const& some) -> result<geometries> {
        KILN_TRY(auto const inside, kept_layer::distinct(q, areas));
        KILN_TRY(auto const rows, kept_layer::distinct(q, some));
        KILN_TRY(auto parts, lines_in_areas(q, rows, inside));
        KILN_TRY(parts.validity, validity_of_rows(q, rows));
        return geometries::make(std::move(parts));
    };
    auto const parts_of_areas = [&](queue& q, geometries const& some) { return areas_in_areas(q, some, areas); };
    return remade_rows(on, of,
                       std::array<row_maker, 3>{{{of_points, points}, {of_lines, lines}, {of_areas, parts_of_areas}}});
}

}  // namespace kiln::spatial
