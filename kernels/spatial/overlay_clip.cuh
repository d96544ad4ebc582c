// SPDX-License-Identifier: Apache-2.0
// What of lines and points lies in areas. Lines are divided where they meet rings, so that a segment has the same areas on its left from end to
// end, and the same on its right; it is in an area, or along its edge, where one of these is. Divisions at which nothing begins or ends are left out again.
// Points are asked as they are.
#pragma once

#include "cells.cuh"
#include "grid.cuh"
#include "overlay_views.cuh"

namespace kiln_spatial {

struct clip_segments {
    layer l;
    cell_grid g;
    i32* stays;  // by vertex: the segment from it does
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i);
        stays[i] = l.kind[l.path_of[v]] == line_path && is_segment(l, v) && (is_left_of(l.at[v], l.at[v + 1]) || is_left_of(l.at[v + 1], l.at[v]));
    }

private:
    KILN_HD bool is_left_of(point a, point b) const {
        bool found = false;
        locate_left_of(g, a, b, [&](i32) { return found = true; });
        return found;
    }
};
struct clip_vertices {
    layer l;
    cell_grid g;
    i32* stays;
    KILN_HD void operator()(u64 i) const {
        bool found = false;
        if (l.kind[l.path_of[i]] == point_path) locate<tie::on, certainty::exact>(g, l.at[i], [&](i32, place) { return found = true; });
        stays[i] = found;
    }
};

// Lines that did not come to rest, and all others with the areas: rows are numbered in the one that they are in, and negative in the other.
struct part_restless {
    u32 const* restless;  // by row: areas, then lines
    u64 first_line;
    i32* without;
    i32* alone;
    KILN_HD void operator()(u64 i) const {
        bool const is_line = i >= first_line, leaves = is_line && restless[i] != 0;
        without[i] = leaves ? -1 : 0, alone[i] = !is_line || leaves ? 0 : -1;
    }
};
// Of the rows of both, one behind the other.
struct choose_divided {
    i32 const* without;
    u64 rows;
    i32* source;
    KILN_HD void operator()(u64 i) const { source[i] = static_cast<i32>(without[i] >= 0 ? i : i + rows); }
};

// Segments that stay and follow each other are a line.
struct clipped_lines {
    layer l;
    u32 const* owned;  // by vertex: no division
    i32 const* stays;
    KILN_HD bool begins(i32 v) const { return stays[v] != 0 && (v == l.path_first[l.path_of[v]] || stays[v - 1] == 0); }
    // Of a segment that stays: its end is written.
    KILN_HD bool has_end(i32 v) const { return owned[v + 1] != 0 || stays[v + 1] == 0; }
};
struct count_clipped_parts {
    clipped_lines of;
    i64* count;  // lines (high) and vertices (low)
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i);
        u32 const starts = of.begins(v) ? 1 : 0;
        count[i] = of.stays[v] == 0 ? 0 : both_counts(starts, starts + (of.has_end(v) ? 1 : 0));
    }
};
// One more than vertices: the last writes where lines end.
struct write_clipped_parts {
    clipped_lines of;
    i64 const* place;
    double* x;
    double* y;
    i32* line_first;
    KILN_HD void operator()(u64 i) const {
        u32 at = low_of(place[i]);
        if (i == static_cast<u64>(of.l.vertices)) {
            line_first[high_of(place[i])] = static_cast<i32>(at);
            return;
        }
        i32 const v = static_cast<i32>(i);
        if (of.stays[v] == 0) return;
        if (of.begins(v)) {
            line_first[high_of(place[i])] = static_cast<i32>(at);
            x[at] = of.l.at[v].x, y[at] = of.l.at[v].y, ++at;
        }
        if (of.has_end(v)) x[at] = of.l.at[v + 1].x, y[at] = of.l.at[v + 1].y;
    }
};
// One more than rows, of which some lie before.
struct clipped_line_rows {
    layer l;
    i64 const* place;
    i32 before;
    i32* row_first;
    KILN_HD void operator()(u64 i) const { row_first[i] = static_cast<i32>(high_of(place[l.path_first[l.row_first[before + static_cast<i32>(i)]]])); }
};

struct count_clipped_vertices {
    i32 const* stays;
    i64* count;
    KILN_HD void operator()(u64 i) const { count[i] = stays[i]; }
};
// Points stay rows; what is outside is empty.
struct write_clipped_points_of_rows {
    layer l;
    u8 const* state;
    i32 const* stays;
    double* x;
    double* y;
    KILN_HD void operator()(u64 i) const {
        i32 const v = l.path_first[l.row_first[i]];
        double const nothing = from_bits(u64{0x7ff8} << 48);
        bool const is_there = state[i] == row_there && stays[v] != 0;
        x[i] = is_there ? l.at[v].x : nothing, y[i] = is_there ? l.at[v].y : nothing;
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(clip_segments_by_areas, kiln_spatial::clip_segments, 128, 1)
KILN_KERNEL(clip_vertices_by_areas, kiln_spatial::clip_vertices, 128, 1)
KILN_KERNEL(clip_part_restless, kiln_spatial::part_restless, 256, 1)
KILN_KERNEL(clip_choose_divided, kiln_spatial::choose_divided, 256, 1)
KILN_KERNEL(clip_part_count, kiln_spatial::count_clipped_parts, 256, 1)
KILN_KERNEL(clip_parts, kiln_spatial::write_clipped_parts, 256, 1)
KILN_KERNEL(clip_part_rows, kiln_spatial::clipped_line_rows, 256, 1)
KILN_KERNEL(clip_vertex_count, kiln_spatial::count_clipped_vertices, 256, 1)
KILN_KERNEL(clip_point_write, kiln_spatial::write_clipped_points_of_rows, 256, 1)
