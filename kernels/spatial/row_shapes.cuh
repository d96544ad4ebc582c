// SPDX-License-Identifier: Apache-2.0
// Shapes made of rows: circles around points, and what of points and lines lies in a rectangle. Which side of the rectangle a line
// enters and leaves by is the sign of an orientation, and the points where it does are correctly rounded.
#pragma once

#include "circle.cuh"
#include "grid.cuh"
#include "layer.cuh"

namespace kiln_spatial {

// Eight rows at a time: which are not null.
struct valid_states {
    u8 const* state;
    u64 rows;
    u8* to;
    KILN_HD void operator()(u64 i) const {
        u32 bits = 0;
        for (u64 k = 0; k < 8 && 8 * i + k < rows; ++k) bits |= (state[8 * i + k] != row_null ? 1U : 0U) << k;
        to[i] = static_cast<u8>(bits);
    }
};

// ---- Circles -----------------------------------------------------------------------------------------------------------

struct count_circles {
    u8 const* state;
    i64* count;
    KILN_HD void operator()(u64 i) const { count[i] = state[i] == row_there ? 1 : 0; }
};
struct circle_rows {
    i64 const* place;
    i32* row_rings;
    KILN_HD void operator()(u64 i) const { row_rings[i] = static_cast<i32>(place[i]); }
};
struct circle_rings {
    i32 corners;
    i32* ring_vertices;
    KILN_HD void operator()(u64 i) const { ring_vertices[i] = static_cast<i32>(i) * corners; }
};
// By row and corner.
struct draw_circles {
    layer l;
    i64 const* place;
    quarter_circle circle;
    double radius;
    double* x;
    double* y;
    KILN_HD void operator()(u64 item) const {
        u64 const corners = 4 * static_cast<u64>(circle.steps) + 1, row = item / corners;
        i64 const ring = place[row];
        if (place[row + 1] == ring) return;
        point const o = l.at[l.path_first[l.row_first[row]]], c = circle.corner(static_cast<i32>(item % corners));
        u64 const at = static_cast<u64>(ring) * corners + item % corners;
        x[at] = add(o.x, mul(radius, c.x)), y[at] = add(o.y, mul(radius, c.y));
    }
};

// ---- Rectangles --------------------------------------------------------------------------------------------------------

KILN_HD bool is_in(box const& r, point p) { return p.x >= r.min_x && p.x <= r.max_x && p.y >= r.min_y && p.y <= r.max_y; }

// Where y is, relative to a height, when a line that is not upright is at x: -1 below, 0, 1 above.
KILN_HD int height_at(point a, point b, double x, double y) {
    int const side = orient(a, b, {x, y});
    return a.x < b.x ? -side : side;
}
KILN_HD point at_x(point a, point b, double x) { return {x, crossing_point(a, b, {x, 0}, {x, 1}).y}; }
KILN_HD point at_y(point a, point b, double y) { return {crossing_point(a, b, {0, y}, {1, y}).x, y}; }

struct clipped_segment {
    point a, b;
    bool starts, ends;  // where the segment does
};
// The part of a segment in a closed rectangle; false where that has no length.
KILN_HD_COLD bool clip_segment(point a, point b, box const& r, clipped_segment& out) {
    if (a == b || most(a.x, b.x) < r.min_x || least(a.x, b.x) > r.max_x || most(a.y, b.y) < r.min_y || least(a.y, b.y) > r.max_y)
        return false;
    bool const right = a.x < b.x, up = a.y < b.y;
    int const way = up ? 1 : -1;
    double const x0 = right ? r.min_x : r.max_x, x1 = right ? r.max_x : r.min_x;  // entered and left by
    double const y0 = up ? r.min_y : r.max_y, y1 = up ? r.max_y : r.min_y;
    bool in_x = right ? a.x < x0 : a.x > x0, in_y = up ? a.y < y0 : a.y > y0;
    bool out_x = right ? b.x > x1 : b.x < x1, out_y = up ? b.y > y1 : b.y < y1;
    // Of two sides, the one that is entered last and the one that is left first; at a corner, both.
    if (in_x && in_y) {
        int const passed = way * height_at(a, b, x0, y0);
        in_y = passed <= 0, in_x = passed >= 0;
    }
    if (out_x && out_y) {
        int const passed = way * height_at(a, b, x1, y1);
        out_x = passed <= 0, out_y = passed >= 0;
    }
    // It must be entered before it is left.
    if (in_x && out_x && !(r.min_x < r.max_x)) return false;
    if (in_y && out_y && !(r.min_y < r.max_y)) return false;
    if (in_x && out_y && way * height_at(a, b, x0, y1) >= 0) return false;
    if (in_y && out_x && way * height_at(a, b, x1, y0) <= 0) return false;
    bool const starts = !in_x && !in_y, ends = !out_x && !out_y;
    if (starts && ((out_x && a.x == x1) || (out_y && a.y == y1))) return false;
    if (ends && ((in_x && b.x == x0) || (in_y && b.y == y0))) return false;
    out.starts = starts, out.ends = ends;
    out.a = starts ? a : in_x && in_y ? point{x0, y0} : in_x ? at_x(a, b, x0) : at_y(a, b, y0);
    out.b = ends ? b : out_x && out_y ? point{x1, y1} : out_x ? at_x(a, b, x1) : at_y(a, b, y1);
    return true;
}

// The lines of one row: to.begin() and to.put(point).
template <class To>
KILN_HD void clip_row(layer const& l, i32 row, box const& r, To& to) {
    for (i32 p = l.row_first[row]; p < l.row_first[row + 1]; ++p) {
        if (l.kind[p] != line_path) continue;
        bool open = false;
        for (i32 v = l.path_first[p]; v + 1 < l.path_first[p + 1]; ++v) {
            if (l.at[v] == l.at[v + 1]) continue;
            clipped_segment s;
            if (!clip_segment(l.at[v], l.at[v + 1], r, s)) {
                open = false;
                continue;
            }
            if (!open || !s.starts) to.begin(), to.put(s.a);
            to.put(s.b);
            open = s.ends;
        }
    }
}
struct counted_lines {
    u32 lines = 0, vertices = 0;
    KILN_HD void begin() { ++lines; }
    KILN_HD void put(point) { ++vertices; }
};
struct count_clipped_lines {
    layer l;
    box r;
    i64* count;  // lines (high) and vertices (low)
    KILN_HD void operator()(u64 i) const {
        counted_lines to;
        clip_row(l, static_cast<i32>(i), r, to);
        count[i] = both_counts(to.lines, to.vertices);
    }
};
struct written_lines {
    double* x;
    double* y;
    i32* line_first;
    u32 line, vertex;
    KILN_HD void begin() { line_first[line++] = static_cast<i32>(vertex); }
    KILN_HD void put(point p) { x[vertex] = p.x, y[vertex++] = p.y; }
};
// One more than rows: the last writes where lines end.
struct write_clipped_lines {
    layer l;
    box r;
    i64 const* place;
    double* x;
    double* y;
    i32* row_first;
    i32* line_first;
    KILN_HD void operator()(u64 i) const {
        row_first[i] = static_cast<i32>(high_of(place[i]));
        written_lines to{x, y, line_first, high_of(place[i]), low_of(place[i])};
        if (i < static_cast<u64>(l.rows)) clip_row(l, static_cast<i32>(i), r, to);
        else line_first[to.line] = static_cast<i32>(to.vertex);
    }
};

// Points stay rows; what is outside is empty.
struct clip_points {
    layer l;
    u8 const* state;
    box r;
    double* x;
    double* y;
    KILN_HD void operator()(u64 i) const {
        point p{from_bits(u64{0x7ff8} << 48), from_bits(u64{0x7ff8} << 48)};
        if (state[i] == row_there) {
            point const at = l.at[l.path_first[l.row_first[i]]];
            if (is_in(r, at)) p = at;
        }
        x[i] = p.x, y[i] = p.y;
    }
};
struct count_clipped_points {
    layer l;
    box r;
    i64* count;  // by vertex
    KILN_HD void operator()(u64 v) const { count[v] = l.kind[l.path_of[v]] == point_path && is_in(r, l.at[v]) ? 1 : 0; }
};
struct write_clipped_points {
    layer l;
    i64 const* place;
    double* x;
    double* y;
    KILN_HD void operator()(u64 v) const {
        i64 const at = place[v];
        if (place[v + 1] != at) x[at] = l.at[v].x, y[at] = l.at[v].y;
    }
};
// One more than rows.
struct clipped_point_rows {
    layer l;
    i64 const* place;
    i32* row_first;
    KILN_HD void operator()(u64 i) const { row_first[i] = static_cast<i32>(place[l.path_first[l.row_first[i]]]); }
};

}  // namespace kiln_spatial

KILN_KERNEL(shape_valid, kiln_spatial::valid_states, 128, 1)
KILN_KERNEL(circle_count, kiln_spatial::count_circles, 256, 1)
KILN_KERNEL(circle_row_rings, kiln_spatial::circle_rows, 256, 1)
KILN_KERNEL(circle_ring_vertices, kiln_spatial::circle_rings, 256, 1)
KILN_KERNEL(circle_draw, kiln_spatial::draw_circles, 256, 1)
KILN_KERNEL(clip_line_count, kiln_spatial::count_clipped_lines, 128, 4)
KILN_KERNEL(clip_line_write, kiln_spatial::write_clipped_lines, 128, 4)
KILN_KERNEL(clip_point_rows, kiln_spatial::clip_points, 256, 1)
KILN_KERNEL(clip_multipoint_count, kiln_spatial::count_clipped_points, 256, 1)
KILN_KERNEL(clip_multipoint_write, kiln_spatial::write_clipped_points, 256, 1)
KILN_KERNEL(clip_multipoint_rows, kiln_spatial::clipped_point_rows, 256, 1)
