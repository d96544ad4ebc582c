// SPDX-License-Identifier: Apache-2.0
// Makes a layer (layer.cuh) of geometries in GeoArrow's arrays: all families, mixed arrays and views alike. First how many paths
// and vertices each row has, then a table of paths, then one of vertices; each item finds its owner by a binary search in
// the sums. A path may have no vertices and then is of no kind; so are the paths of null rows and empty points.
#pragma once

#include "geometry_rows.cuh"
#include "grid.cuh"
#include "layer.cuh"

namespace kiln_spatial {

// Paths (high) and vertices (low) of every row.
struct row_extents {
    geometry_rows g;
    i64* extent;
    u8* state;
    signed char* dimension;
    u64* wrapped;  // of what is asked next, or null
    KILN_HD void operator()(u64 i) const {
        if (i == 0 && wrapped != nullptr) *wrapped = 0;
        row_source const s = source_of(g, static_cast<i32>(i));
        extent[i] = 0, state[i] = row_null, dimension[i] = -1;
        if (s.family < 0) return;
        family_memory const& f = g.memory[s.family];
        item_range const paths = paths_of(f, s.family, s.row);
        i32 const first = first_vertex(f, s.family, paths.first), last = first_vertex(f, s.family, paths.last);
        extent[i] = both_counts(static_cast<u32>(paths.last - paths.first), static_cast<u32>(last - first));
        if (!s.valid) return;
        bool const is_empty = first == last || (s.family == a_point && is_no_point(f, first));
        state[i] = is_empty ? row_empty : row_there;
        dimension[i] = static_cast<signed char>(dimension_of_family(s.family));
    }
};

// A view may repeat rows until their sums do not fit any more: one of them begins anew.
struct find_wrapped_sums {
    i64 const* extent;  // summed
    u64* wrapped;       // of 0
    KILN_HD void operator()(u64 i) const {
        if (low_of(extent[i + 1]) < low_of(extent[i]) || high_of(extent[i + 1]) < high_of(extent[i])) *wrapped = 1;
    }
};

// One more than rows.
struct row_table {
    i64 const* extent;  // summed
    i32* row_first;
    KILN_HD void operator()(u64 i) const { row_first[i] = static_cast<i32>(high_of(extent[i])); }
};

// One more than paths. `source` is where the path's first vertex lies in the memory of its family.
struct path_table {
    geometry_rows g;
    i64 const* extent;  // summed
    u32 paths, vertices;
    double share;  // rows for a path
    i32* path_first;
    i32* row_of;
    u8* kind;
    i32* source;
    u8* family;
    KILN_HD void operator()(u64 i) const {
        if (i == paths) {
            path_first[i] = static_cast<i32>(vertices);
            return;
        }
        i32 const row = static_cast<i32>(last_not_above_near(evenly(i, share), static_cast<u64>(g.rows), static_cast<u32>(i),
                                                             [this](u64 r) { return high_of(extent[r]); }));
        row_source const s = source_of(g, row);
        family_memory const& f = g.memory[s.family];
        item_range const own = paths_of(f, s.family, s.row);
        i32 const path = own.first + static_cast<i32>(static_cast<u32>(i) - high_of(extent[row]));
        i32 const first = first_vertex(f, s.family, path), size = first_vertex(f, s.family, path + 1) - first;
        path_first[i] = static_cast<i32>(low_of(extent[row])) + first - first_vertex(f, s.family, own.first);
        row_of[i] = row;
        source[i] = first;
        family[i] = static_cast<u8>(s.family);
        kind[i] = s.valid ? kind_of(f, s, path, first, size) : u8{no_path};
    }

private:
    // The first ring of a polygon is its shell, the others are holes. A line of one point is a point.
    KILN_HD u8 kind_of(family_memory const& f, row_source const& s, i32 path, i32 first, i32 size) const {
        if (size == 0 || (s.family == a_point && is_no_point(f, first))) return no_path;
        if (size == 1) return point_path;
        if (dimension_of_family(s.family) == 1) return line_path;
        i32 const* const rings = f.offsets[s.family == a_polygon ? 0 : 1];
        i32 polygon = s.row;
        if (s.family == a_multipolygon) {
            i32 const from = f.offsets[0][s.row];
            polygon = from + static_cast<i32>(last_not_above(static_cast<u64>(f.offsets[0][s.row + 1] - from), path,
                                                             [&](u64 k) { return rings[from + static_cast<i32>(k)]; }));
        }
        return rings[polygon] == path ? u8{ring_path} : u8{reversed_ring};
    }
};

struct vertex_table {
    geometry_rows g;
    i32 const* path_first;
    i32 const* source;
    u8 const* family;
    u32 paths;
    double share;  // paths for a vertex
    i32* path_of;
    point* at;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i);
        u64 const path = last_not_above_near(evenly(i, share), paths, v, [this](u64 p) { return path_first[p]; });
        family_memory const& f = g.memory[family[path]];
        i32 const from = source[path] + v - path_first[path];
        path_of[i] = static_cast<i32>(path);
        at[i] = {add(f.x[from], 0.0), add(f.y[from], 0.0)};  // no negative zeros: equal points have equal bits
    }
};

// The box around the vertices of paths of some kinds, as ordered() numbers: least x and y, and what is least when turned round.
struct layer_extent {
    layer l;
    u32 kinds;  // bits
    u64 stride;
    u64* least;  // of all bits set
    KILN_HD void operator()(u64 i) const {
        u64 box[4] = {~u64{0}, ~u64{0}, ~u64{0}, ~u64{0}};
        for (u64 v = i; v < static_cast<u64>(l.vertices); v += stride) {
            u8 const kind = l.kind[l.path_of[v]];
            if (kind > reversed_ring || (kinds >> kind & 1) == 0) continue;
            point const p = l.at[v];
            u64 const of[4] = {ordered(p.x), ordered(p.y), ordered(-p.x), ordered(-p.y)};
            for (int k = 0; k < 4; ++k) box[k] = of[k] < box[k] ? of[k] : box[k];
        }
        for (int k = 0; k < 4; ++k) lower_together(least + k, box[k]);
    }
};

// The box of every row, as ordered() numbers; rows without vertices stay as they are. An item takes some neighbouring vertices: a
// row that begins and ends among them is its own alone, the others gather.
enum : u64 { vertices_of_item = 8 };
struct row_extents_of_layer {
    layer l;
    u64* least;  // four by row, of all bits set
    KILN_HD void operator()(u64 i) const {
        u64 const first = i * vertices_of_item, n = static_cast<u64>(l.vertices);
        u64 const last = first + vertices_of_item < n ? first + vertices_of_item : n;
        double const far = from_bits(u64{0x7ff} << 52);
        box around{far, far, -far, -far};
        i32 row = -1, path = -1;
        bool begins_here = false, is_there = false;
        for (u64 v = first; v < last; ++v) {
            if (l.path_of[v] != path) {
                path = l.path_of[v];
                is_there = l.kind[path] != no_path;
                if (is_there && l.row_of[path] != row) {
                    if (row >= 0) put(row, around, begins_here);
                    begins_here = row >= 0;
                    row = l.row_of[path], around = {far, far, -far, -far};
                }
            }
            if (!is_there) continue;
            point const p = l.at[v];
            around = {kiln_spatial::least(around.min_x, p.x), kiln_spatial::least(around.min_y, p.y), most(around.max_x, p.x),
                      most(around.max_y, p.y)};
        }
        if (row >= 0) put(row, around, false);
    }

private:
    KILN_HD void put(i32 row, box const& b, bool alone) const {
        u64* const own = least + 4 * static_cast<u64>(row);
        u64 const of[4] = {ordered(b.min_x), ordered(b.min_y), ordered(-b.max_x), ordered(-b.max_y)};
        for (int k = 0; k < 4; ++k) {
            if (alone) own[k] = of[k];
            else lower_to(own + k, of[k]);
        }
    }
};
// Turned round where there is none.
struct row_boxes {
    u64 const* least;
    box* to;
    KILN_HD void operator()(u64 i) const { set(i, i); }
    KILN_HD void set(u64 from, u64 row) const {
        u64 const* const own = least + 4 * from;
        if (own[0] == ~u64{0}) to[row] = {1, 1, -1, -1};
        else to[row] = {unordered(own[0]), unordered(own[1]), -unordered(own[2]), -unordered(own[3])};
    }
};

// ---- Boxes of rows without a layer ----

// Rows of few vertices at once; the others are listed.
enum : i32 { vertices_of_short_row = 128, threads_of_long_row = 256 };
struct short_row_boxes {
    geometry_rows g;
    box* to;
    u32* later;
    u32* laters;
    KILN_HD void operator()(u64 i) const {
        row_source const s = source_of(g, static_cast<i32>(i));
        item_range const own = vertices_of(s);
        bool const is_long = own.last - own.first > vertices_of_short_row;
        if (!is_long) to[i] = around(s, own.first, own.last, 1);
        append(is_long, static_cast<u32>(i), later, laters);
    }
    // None of null rows. A row's vertices lie together.
    KILN_HD item_range vertices_of(row_source const& s) const {
        if (!s.valid) return {0, 0};
        family_memory const& f = g.memory[s.family];
        item_range const paths = paths_of(f, s.family, s.row);
        return {first_vertex(f, s.family, paths.first), first_vertex(f, s.family, paths.last)};
    }
    // Turned round where there are none.
    KILN_HD box around(row_source const& s, i32 first, i32 last, i32 step) const {
        if (first >= last || (s.family == a_point && is_no_point(g.memory[s.family], first))) return {1, 1, -1, -1};
        double const* const x = g.memory[s.family].x;
        double const* const y = g.memory[s.family].y;
        box out{x[first], y[first], x[first], y[first]};
        for (i32 v = first + step; v < last; v += step)
            out = {least(out.min_x, x[v]), least(out.min_y, y[v]), most(out.max_x, x[v]), most(out.max_y, y[v])};
        return out;
    }
};
// Each of the others by many threads, in the order of the list.
struct long_row_boxes {
    short_row_boxes of;
    u64 threads;
    u64* least;  // four by listed row, of all bits set
    KILN_HD void operator()(u64 thread) const {
        for (u64 k = thread / threads_of_long_row; k < *of.laters; k += threads / threads_of_long_row) {
            row_source const s = source_of(of.g, static_cast<i32>(of.later[k]));
            item_range const own = of.vertices_of(s);
            i32 const first = own.first + static_cast<i32>(thread % threads_of_long_row);
            if (first >= own.last) continue;
            box const b = of.around(s, first, own.last, threads_of_long_row);
            u64 const sides[4] = {ordered(b.min_x), ordered(b.min_y), ordered(-b.max_x), ordered(-b.max_y)};
            for (int j = 0; j < 4; ++j) lower_to(least + 4 * k + j, sides[j]);
        }
    }
};
struct set_long_row_boxes {
    short_row_boxes of;
    u64 threads;
    u64 const* least;
    KILN_HD void operator()(u64 thread) const {
        for (u64 k = thread; k < *of.laters; k += threads) row_boxes{least, of.to}.set(k, of.later[k]);
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(layer_rows, kiln_spatial::row_extents, 256, 1)
KILN_KERNEL(layer_wrapped_sums, kiln_spatial::find_wrapped_sums, 256, 1)
KILN_KERNEL(layer_row_table, kiln_spatial::row_table, 256, 1)
KILN_KERNEL(layer_paths, kiln_spatial::path_table, 256, 1)
KILN_KERNEL(layer_vertices, kiln_spatial::vertex_table, 256, 1)
KILN_KERNEL(layer_row_extents, kiln_spatial::row_extents_of_layer, 256, 1)
KILN_KERNEL(layer_row_boxes, kiln_spatial::row_boxes, 256, 1)
KILN_KERNEL(layer_box, kiln_spatial::layer_extent, 256, 1)
KILN_KERNEL(layer_short_row_boxes, kiln_spatial::short_row_boxes, 256, 1)
KILN_KERNEL(layer_long_row_boxes, kiln_spatial::long_row_boxes, 256, 1)
KILN_KERNEL(layer_set_long_row_boxes, kiln_spatial::set_long_row_boxes, 256, 1)
