// SPDX-License-Identifier: Apache-2.0
// Shapes around rows and of their edges: convex hulls, boxes, boundaries. All follow from exact signs and vertices of the input.
#pragma once

#include "grid.cuh"
#include "layer.cuh"

namespace kiln_spatial {

// ---- Vertices by row, x and y ------------------------------------------------------------------------------------------

// One step after the other, the one that counts most last: sorts are stable.
struct outline_keys {
    layer l;
    i32 const* vertex;
    i32 step;
    u64* key;
    KILN_HD void operator()(u64 i) const {
        i32 const v = vertex[i];
        key[i] = step == 2 ? static_cast<u64>(row_at(l, v)) : ordered(step == 0 ? l.at[v].y : l.at[v].x);
    }
};

// ---- Outlines: so many corners of each row, made an array of points, lines and polygons ----------------------------------

// Of a row's vertices in order, those of its hull, counter-clockwise from the least: into room for as many and one more.
struct find_hulls {
    layer l;
    u8 const* state;
    i32 const* vertex;
    point* corner;
    i32* corners;  // by row
    KILN_HD void operator()(u64 i) const {
        i32 const first = l.path_first[l.row_first[i]], last = l.path_first[l.row_first[i + 1]];
        corners[i] = 0;
        if (state[i] != row_there) return;
        point* const hull = corner + first + static_cast<i32>(i);
        i32 n = 0;
        for (i32 k = first; k < last; ++k) add_corner(hull, n, 1, l.at[vertex[k]]);
        i32 const lower = n;
        for (i32 k = last - 2; k >= first; --k) add_corner(hull, n, lower, l.at[vertex[k]]);
        corners[i] = n > 1 ? n - 1 : n;  // the last is the first
    }

private:
    // Corners from `fixed` on may go.
    KILN_HD static void add_corner(point* hull, i32& n, i32 fixed, point p) {
        if (n > 0 && hull[n - 1] == p) return;
        while (n > fixed && orient(hull[n - 2], hull[n - 1], p) <= 0) --n;
        hull[n++] = p;
    }
};
struct hull_outline {
    layer l;
    point const* corner;
    i32 const* corners;
    KILN_HD i32 size(u64 row) const { return corners[row]; }
    KILN_HD point at(u64 row, i32 k) const { return corner[l.path_first[l.row_first[row]] + static_cast<i32>(row) + k]; }
};
struct box_outline {
    box const* around;
    KILN_HD i32 size(u64 row) const {
        box const b = around[row];
        if (!(b.min_x <= b.max_x)) return 0;
        return (b.min_x < b.max_x ? 2 : 1) * (b.min_y < b.max_y ? 2 : 1);
    }
    KILN_HD point at(u64 row, i32 k) const {
        box const b = around[row];
        bool const flat = size(row) == 2;
        bool const right = k == 1 || (k == 2 && !flat), up = k >= 2 || (flat && k == 1);
        return {right ? b.max_x : b.min_x, up ? b.max_y : b.min_y};
    }
};

// What a row becomes, by how many corners it has: a point, a line, and else a polygon, which may be empty.
KILN_HD i32 family_of_outline(i32 corners) { return corners == 1 ? 0 : corners == 2 ? 1 : 2; }

template <class Outline>
struct count_outlines {
    Outline of;
    i64* thin;  // points (high) and lines (low)
    i64* wide;  // polygons that are not empty (high) and their vertices (low)
    KILN_HD void operator()(u64 i) const {
        i32 const n = of.size(i);
        thin[i] = both_counts(n == 1 ? 1 : 0, n == 2 ? 1 : 0);
        wide[i] = n > 2 ? both_counts(1, static_cast<u32>(n) + 1) : 0;
    }
};
struct outline_array {
    // Of mixed arrays, else null.
    signed char* type;
    i32* child_row;
    double* point_x;
    double* point_y;
    double* line_x;
    double* line_y;
    i32* line_first;  // one more than lines
    // Polygons: a row for each row that is neither a point nor a line.
    double* x;
    double* y;
    i32* row_rings;      // one more than rows of polygons
    i32* ring_vertices;  // one more than rings
};
// One more than rows.
template <class Outline>
struct write_outlines {
    Outline of;
    i64 const* thin;  // summed
    i64 const* wide;
    u64 rows;
    outline_array to;
    KILN_HD void operator()(u64 i) const {
        i32 const points = static_cast<i32>(high_of(thin[i])), lines = static_cast<i32>(low_of(thin[i]));
        i32 const polygon = static_cast<i32>(i) - points - lines, ring = static_cast<i32>(high_of(wide[i]));
        i32 const n = i < rows ? of.size(i) : 0;
        i32 const family = family_of_outline(n);
        if (i < rows && to.type != nullptr) {
            to.type[i] = static_cast<signed char>(family + 1);
            to.child_row[i] = family == 0 ? points : family == 1 ? lines : polygon;
        }
        if (family == 2) to.row_rings[polygon] = ring;
        if (n > 2 || i == rows) to.ring_vertices[ring] = static_cast<i32>(low_of(wide[i]));
        if (to.type != nullptr && (n == 2 || i == rows)) to.line_first[lines] = 2 * lines;
        if (n == 1) to.point_x[points] = of.at(i, 0).x, to.point_y[points] = of.at(i, 0).y;
        if (n == 2)
            for (i32 k = 0; k < 2; ++k) to.line_x[2 * lines + k] = of.at(i, k).x, to.line_y[2 * lines + k] = of.at(i, k).y;
        if (n <= 2) return;
        u32 const first = low_of(wide[i]);
        for (i32 k = 0; k <= n; ++k) {
            point const p = of.at(i, k < n ? k : 0);
            to.x[first + static_cast<u32>(k)] = p.x, to.y[first + static_cast<u32>(k)] = p.y;
        }
    }
};

// ---- Boundaries --------------------------------------------------------------------------------------------------------

// Of areas their rings, as lines: paths of some kinds.
struct count_ring_lines {
    layer l;
    u32 kinds;  // bits
    i64* count;  // by path: lines (high) and vertices (low)
    KILN_HD void operator()(u64 i) const {
        count[i] = (kinds >> l.kind[i] & 1) != 0 ? both_counts(1, static_cast<u32>(l.path_first[i + 1] - l.path_first[i])) : 0;
    }
};
// One more than paths.
struct write_ring_lines {
    layer l;
    i64 const* place;
    i32* line_first;
    KILN_HD void operator()(u64 i) const {
        if (i == static_cast<u64>(l.paths) || place[i + 1] != place[i]) line_first[high_of(place[i])] = static_cast<i32>(low_of(place[i]));
    }
};
struct write_ring_vertices_of_lines {
    layer l;
    i64 const* place;  // of paths
    double* x;
    double* y;
    KILN_HD void operator()(u64 v) const {
        i32 const path = l.path_of[v];
        if (place[path + 1] == place[path]) return;
        u32 const at = low_of(place[path]) + static_cast<u32>(static_cast<i32>(v) - l.path_first[path]);
        x[at] = l.at[v].x, y[at] = l.at[v].y;
    }
};
// One more than rows.
struct boundary_rows {
    layer l;
    i64 const* place;  // of paths
    i32* row_first;
    KILN_HD void operator()(u64 i) const { row_first[i] = static_cast<i32>(high_of(place[l.row_first[i]])); }
};

// Of lines the points where an odd number of them ends. Two ends of each path, -1 of what is no line.
struct list_ends {
    layer l;
    i64* count;  // by path
    KILN_HD void operator()(u64 i) const { count[i] = l.kind[i] == line_path ? 2 : 0; }
};
struct write_ends {
    layer l;
    i64 const* place;
    i32* vertex;
    KILN_HD void operator()(u64 i) const {
        if (place[i + 1] == place[i]) return;
        vertex[place[i]] = l.path_first[i], vertex[place[i] + 1] = l.path_first[i + 1] - 1;
    }
};
// In order: the first of an odd number that are at one place of a row.
struct count_odd_ends {
    layer l;
    i32 const* vertex;
    u64 ends;
    i64* count;
    u64* of_row;  // of 0
    KILN_HD void operator()(u64 i) const {
        count[i] = 0;
        if (i > 0 && are_together(i, i - 1)) return;
        u64 n = 1;
        while (i + n < ends && are_together(i, i + n)) ++n;
        if (n % 2 == 0) return;
        count[i] = 1;
        add_to(of_row + row_at(l, vertex[i]), 1);
    }

private:
    KILN_HD bool are_together(u64 i, u64 k) const {
        return l.at[vertex[i]] == l.at[vertex[k]] && row_at(l, vertex[i]) == row_at(l, vertex[k]);
    }
};
struct write_odd_ends {
    layer l;
    i32 const* vertex;
    i64 const* place;
    double* x;
    double* y;
    KILN_HD void operator()(u64 i) const {
        i64 const at = place[i];
        if (place[i + 1] != at) x[at] = l.at[vertex[i]].x, y[at] = l.at[vertex[i]].y;
    }
};
// One more than rows.
struct end_rows {
    i64 const* sums;
    i32* row_first;
    KILN_HD void operator()(u64 i) const { row_first[i] = static_cast<i32>(sums[i]); }
};

// ---- A point in every row ----------------------------------------------------------------------------------------------

struct count_shells_of_rows {
    layer l;
    i64* count;  // by path
    KILN_HD void operator()(u64 i) const { count[i] = l.kind[i] == ring_path ? 1 : 0; }
};
// Of each polygon, numbered from 1, a level line through its middle that meets no vertex; of the sections of it that are inside, the middle of
// the widest.
struct polygon_heights {
    layer l;
    i64 const* number;  // by path, summed: polygons before it
    u64* least_y;       // by polygon, of all bits set
    u64* most_y;        // turned round, likewise
    KILN_HD void operator()(u64 v) const {
        i32 const path = l.path_of[v];
        if (!is_ring(l.kind[path])) return;
        lower_to(least_y + number[path + 1], ordered(l.at[v].y)), lower_to(most_y + number[path + 1], ordered(-l.at[v].y));
    }
};
// The nearest vertices below and above the middle.
struct polygon_gaps {
    layer l;
    i64 const* number;
    u64 const* least_y;
    u64 const* most_y;
    u64* above;  // of all bits set
    u64* below;  // turned round, likewise
    KILN_HD void operator()(u64 v) const {
        i32 const path = l.path_of[v];
        if (!is_ring(l.kind[path])) return;
        i64 const polygon = number[path + 1];
        double const low = unordered(least_y[polygon]), high = -unordered(most_y[polygon]), y = l.at[v].y;
        if (y > add(mul(low, 0.5), mul(high, 0.5))) lower_to(above + polygon, ordered(y));
        else lower_to(below + polygon, ordered(-y));
    }
};
KILN_HD double level_of(u64 above, u64 below) {
    if (above == ~u64{0}) return -unordered(below);
    return add(mul(unordered(above), 0.5), mul(-unordered(below), 0.5));
}
struct level_crossings {
    layer l;
    i64 const* number;
    u64 const* above;
    u64 const* below;

    KILN_HD bool crosses(i32 v) const {
        i32 const path = l.path_of[v];
        if (!is_ring(l.kind[path]) || !is_segment(l, v)) return false;
        double const y = level(path);
        return (l.at[v].y > y) != (l.at[v + 1].y > y);
    }
    KILN_HD double x(i32 v) const {
        point const a = l.at[v], b = l.at[v + 1];
        double const t = quotient(sub(level(l.path_of[v]), a.y), sub(b.y, a.y));
        return add(a.x, mul(t, sub(b.x, a.x)));
    }
    KILN_HD double level(i32 path) const { return level_of(above[number[path + 1]], below[number[path + 1]]); }
};
struct count_level_crossings {
    level_crossings of;
    i64* count;
    KILN_HD void operator()(u64 v) const { count[v] = of.crosses(static_cast<i32>(v)) ? 1 : 0; }
};
struct list_level_crossings {
    level_crossings of;
    i64 const* place;
    u64* key;
    i32* vertex;
    KILN_HD void operator()(u64 v) const {
        i64 const at = place[v];
        if (place[v + 1] == at) return;
        key[at] = ordered(of.x(static_cast<i32>(v))), vertex[at] = static_cast<i32>(v);
    }
};
struct level_polygon_keys {
    level_crossings of;
    i32 const* vertex;
    u64* key;
    KILN_HD void operator()(u64 i) const { key[i] = static_cast<u64>(of.number[of.l.path_of[vertex[i]] + 1]); }
};
// Crossings of a polygon are in order of x: every second gap is inside. Widths are above 0 and compare as their bits do.
struct widest_sections {
    level_crossings of;
    i32 const* vertex;
    u64 const* polygon;  // by crossing
    u64 crossings;
    i32 step;
    u64* width;  // by row, turned round, of all bits set
    u64* first;  // by row: the first crossing of that width, of all bits set
    KILN_HD void operator()(u64 i) const {
        u64 const own_polygon = polygon[i];
        u64 const begin = polygon[0] == own_polygon ? 0 : last_not_above(i + 1, own_polygon - 1, [this](u64 k) { return polygon[k]; }) + 1;
        if ((i - begin) % 2 != 0 || i + 1 == crossings || polygon[i + 1] != own_polygon) return;
        i32 const row = row_at(of.l, vertex[i]);
        u64 const own = ~bits_of(sub(of.x(vertex[i + 1]), of.x(vertex[i])));
        if (step == 0) lower_to(width + row, own);
        else if (width[row] == own) lower_to(first + row, i);
    }
};
// Of points and lines, the vertex that is nearest to the centroid; of lines rather one that is no end.
struct nearest_to_middle {
    layer l;
    double const* x;
    double const* y;
    i32 step;
    u64* distance;  // by row, of all bits set
    u64* first;
    KILN_HD void operator()(u64 v) const {
        i32 const path = l.path_of[v], row = l.row_of[path];
        u8 const kind = l.kind[path];
        if (kind != point_path && kind != line_path) return;
        double const dx = sub(l.at[v].x, x[row]), dy = sub(l.at[v].y, y[row]);
        bool const is_end = kind == line_path && (static_cast<i32>(v) == l.path_first[path] || static_cast<i32>(v) + 1 == l.path_first[path + 1]);
        u64 const own = bits_of(add(mul(dx, dx), mul(dy, dy))) | (is_end ? u64{1} << 63 : 0);
        if (step == 0) lower_to(distance + row, own);
        else if (distance[row] == own) lower_to(first + row, v);
    }
};
// An area without any sections is represented by its first vertex.
struct points_in_rows {
    level_crossings of;
    i32 const* vertex;
    u8 const* state;
    signed char const* dimension;
    u64 const* section;  // by row: crossing, or all bits set
    u64 const* nearest;  // by row: vertex
    double* x;
    double* y;
    KILN_HD void operator()(u64 i) const {
        double const nothing = from_bits(u64{0x7ff8} << 48);
        x[i] = nothing, y[i] = nothing;
        if (state[i] != row_there) return;
        if (dimension[i] == 2 && section[i] != ~u64{0}) {
            i32 const v = vertex[section[i]], w = vertex[section[i] + 1];
            x[i] = add(mul(of.x(v), 0.5), mul(of.x(w), 0.5)), y[i] = of.level(of.l.path_of[v]);
            return;
        }
        i32 v = of.l.path_first[of.l.row_first[i]];
        if (dimension[i] < 2 && nearest[i] != ~u64{0}) v = static_cast<i32>(nearest[i]);
        x[i] = of.l.at[v].x, y[i] = of.l.at[v].y;
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(outline_vertex_keys, kiln_spatial::outline_keys, 256, 1)
KILN_KERNEL(outline_hulls, kiln_spatial::find_hulls, 128, 1)
KILN_KERNEL(outline_hull_count, kiln_spatial::count_outlines<kiln_spatial::hull_outline>, 256, 1)
KILN_KERNEL(outline_hull_write, kiln_spatial::write_outlines<kiln_spatial::hull_outline>, 256, 1)
KILN_KERNEL(outline_box_count, kiln_spatial::count_outlines<kiln_spatial::box_outline>, 256, 1)
KILN_KERNEL(outline_box_write, kiln_spatial::write_outlines<kiln_spatial::box_outline>, 256, 1)
KILN_KERNEL(boundary_line_count, kiln_spatial::count_ring_lines, 256, 1)
KILN_KERNEL(boundary_lines, kiln_spatial::write_ring_lines, 256, 1)
KILN_KERNEL(boundary_vertices, kiln_spatial::write_ring_vertices_of_lines, 256, 1)
KILN_KERNEL(boundary_row_lines, kiln_spatial::boundary_rows, 256, 1)
KILN_KERNEL(boundary_end_count, kiln_spatial::list_ends, 256, 1)
KILN_KERNEL(boundary_ends, kiln_spatial::write_ends, 256, 1)
KILN_KERNEL(boundary_odd_count, kiln_spatial::count_odd_ends, 256, 1)
KILN_KERNEL(boundary_odd_ends, kiln_spatial::write_odd_ends, 256, 1)
KILN_KERNEL(boundary_row_ends, kiln_spatial::end_rows, 256, 1)
KILN_KERNEL(inside_polygon_count, kiln_spatial::count_shells_of_rows, 256, 1)
KILN_KERNEL(inside_heights, kiln_spatial::polygon_heights, 256, 1)
KILN_KERNEL(inside_gaps, kiln_spatial::polygon_gaps, 256, 1)
KILN_KERNEL(inside_crossing_count, kiln_spatial::count_level_crossings, 256, 1)
KILN_KERNEL(inside_crossings, kiln_spatial::list_level_crossings, 256, 1)
KILN_KERNEL(inside_polygon_keys, kiln_spatial::level_polygon_keys, 256, 1)
KILN_KERNEL(inside_widest, kiln_spatial::widest_sections, 256, 1)
KILN_KERNEL(inside_nearest, kiln_spatial::nearest_to_middle, 256, 1)
KILN_KERNEL(inside_points, kiln_spatial::points_in_rows, 256, 1)
