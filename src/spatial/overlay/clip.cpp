// SPDX-License-Identifier: Apache-2.0
#include "spatial/overlay/clip.hpp"

#include "spatial/overlay/arrangement.hpp"
#include "spatial/overlay/overlay.hpp"
#include "spatial/overlay/row_chunks.hpp"
#include "spatial/overlay_clip.cuh"
#include "spatial/overlay_noding.cuh"
#include "spatial/remade.hpp"
#include "spatial/row_room.hpp"
#include "spatial/row_shapes.cuh"
#include "spatial/rows.hpp"

namespace kiln::spatial {

using namespace kiln_spatial;

namespace {

// Asked once for every segment or point.
constexpr cell_options clip_cells{.cells_per_edge = 1, .split_above = 64, .edges_per_cell = 16};

// Areas and lines that are divided where they meet, and which segments of the lines stay.
struct divided_lines {
    kept_layer layer;
    buffer<std::uint32_t> owned;
    buffer<std::int32_t> stays;
};
result<divided_lines> staying_lines(queue& on, arrangement::noded_paths of) {
    tell_how_divided("spatial_overlay", of.unrest);
    KILN_TRY(auto const cells, kept_cells::make(on, of.layer, clip_cells));
    auto const n = of.layer.vertices();
    KILN_TRY(auto stays, on.room<std::int32_t>(n));
    KILN_CHECK(on.launch(clip_segments{of.layer.view(), cells.view(), stays.data()}, n));
    return divided_lines{std::move(of.layer), std::move(of.owned), std::move(stays)};
}

// Lines that do not come to rest beside the areas are divided by themselves, on a grid, so that others are what they are without them.
result<divided_lines> divide_lines(queue& on, kept_layer const& lines, kept_layer const& areas) {
    using unrest = arrangement::unrest;
    auto const first_line = areas.rows(), rows = first_line + lines.rows();
    KILN_TRY(auto const both, kept_layer::joined(on, areas, lines));
    KILN_TRY(auto divided, arrangement::noded_layer(on, both, unrest::is_told));
    if (divided.restless.empty()) return staying_lines(on, std::move(divided));
    KILN_TRY(auto which, on.room<std::int32_t>(2 * rows));
    auto const without = which.first(rows), alone = which.part(rows, rows);
    KILN_CHECK(on.launch(part_restless{divided.restless.data(), first_line, without.data(), alone.data()}, rows));
    auto const some = [&](buffer<std::int32_t> const& chosen, unrest how) -> result<arrangement::noded_paths> {
        KILN_TRY(auto own, both.without(on, chosen));
        return arrangement::noded_layer(on, std::move(own), how);
    };
    KILN_TRY(auto quiet, some(without, unrest::is_told));
    if (!quiet.restless.empty()) {  // not because of these lines
        KILN_TRY(auto all, arrangement::noded_layer(on, both, unrest::is_snapped));
        return staying_lines(on, std::move(all));
    }
    KILN_TRY(auto rest, some(alone, unrest::is_snapped));
    KILN_TRY(auto const a, staying_lines(on, std::move(quiet)));
    KILN_TRY(auto const b, staying_lines(on, std::move(rest)));
    // The areas of the one, and each line of where it was divided.
    KILN_TRY(auto const end_to_end_layers, kept_layer::joined(on, a.layer, b.layer));
    KILN_TRY(auto source, on.room<std::int32_t>(rows));
    KILN_CHECK(on.launch(choose_divided{without.data(), rows, source.data()}, rows));
    KILN_TRY(auto chosen, end_to_end_layers.choose(on, source));
    KILN_TRY(auto const owned, end_to_end(on, std::vector{a.owned, b.owned}));
    KILN_TRY(auto const stays, end_to_end(on, std::vector{a.stays, b.stays}));
    divided_lines out;
    auto const n = chosen.layer.vertices();
    auto const l = chosen.layer.view();
    KILN_TRY(out.owned, on.room<std::uint32_t>(n));
    KILN_TRY(out.stays, on.room<std::int32_t>(n));
    KILN_CHECK(on.launch(choose_asking{l, chosen.shift.data(), owned.data(), out.owned.data()}, n));
    KILN_CHECK(on.launch(choose_asking{l, chosen.shift.data(), reinterpret_cast<u32 const*>(stays.data()),
                                       reinterpret_cast<u32*>(out.stays.data())},
                         n));
    out.layer = std::move(chosen.layer);
    return out;
}

result<geometry_parts> lines_in_areas(queue& on, kept_layer const& lines, kept_layer const& areas) {
    KILN_TRY(auto const divided, divide_lines(on, lines, areas));
    auto const l = divided.layer.view();
    auto const n = divided.layer.vertices(), rows = lines.rows();
    KILN_TRY(auto place, on.room<std::int64_t>(n + 1));
    clipped_lines const of{l, divided.owned.data(), divided.stays.data()};
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
