// SPDX-License-Identifier: Apache-2.0
// Makes a layer noded (layer.cuh): repeated vertices go, segments are divided at vertices of their own row that lie on them, rings
// learn on which side their interior is, and vertices with the same coordinates find each other. All but the first of these may be
// done for some rows alone: those that touch something.
#pragma once

#include "grid.cuh"
#include "hash.cuh"
#include "layer.cuh"
#include "some_rows.cuh"
#include "tree.cuh"

namespace kiln_spatial {

// ---- Repeated vertices -------------------------------------------------------------------------------------------------

struct count_kept_vertices {
    layer l;
    i64* kept;
    KILN_HD void operator()(u64 i) const {
        i32 const path = l.path_of[i];
        bool const first = static_cast<i32>(i) == l.path_first[path];
        kept[i] = l.kind[path] != no_path && (first || l.at[i] != l.at[i - 1]) ? 1 : 0;
    }
};
// One more than paths. What had several vertices and has one left is a point.
struct move_paths {
    layer l;
    i64 const* place;  // of vertices
    i32* path_first;
    u8* kind;
    KILN_HD void operator()(u64 i) const {
        i32 const first = static_cast<i32>(place[l.path_first[i]]);
        path_first[i] = first;
        if (i == static_cast<u64>(l.paths)) return;
        i32 const size = static_cast<i32>(place[l.path_first[i + 1]]) - first;
        kind[i] = size == 0 ? u8{no_path} : size == 1 ? u8{point_path} : l.kind[i];
    }
};
struct move_vertices {
    layer l;
    i64 const* place;
    point* at;
    i32* path_of;
    KILN_HD void operator()(u64 i) const {
        i64 const to = place[i];
        if (place[i + 1] == to) return;
        at[to] = l.at[i], path_of[to] = l.path_of[i];
    }
};

// ---- Vertices on segments ----------------------------------------------------------------------------------------------

KILN_HD bool closes_ring(layer const& l, i32 v) { return is_ring(l.kind[l.path_of[v]]) && !is_segment(l, v); }

// Vertices inside segments of their own row.
struct vertex_on_segments {
    layer l;
    tree t;
    some_rows rows;
    template <class Found>
    KILN_HD void each(u64 i, Found found) const {
        i32 const v = static_cast<i32>(i);
        i32 const row = row_at(l, v);
        if (!rows.has(row) || l.kind[l.path_of[v]] == no_path || closes_ring(l, v)) return;
        point const q = l.at[v];
        query_tree(t, t.rough({q.x, q.y, q.x, q.y}), [&](u32 slot) {
            i32 const s = static_cast<i32>(t.item[slot]);
            if (row_at(l, s) != row || !is_segment(l, s)) return;
            point const a = l.at[s], b = l.at[s + 1];
            if (q != a && q != b && on_segment(a, b, q)) found(s);
        });
    }
};
struct count_divisions {
    vertex_on_segments of;
    i64* count;
    KILN_HD void operator()(u64 i) const {
        i64 n = 0;
        of.each(i, [&](i32) { ++n; });
        count[i] = n;
    }
};
// With a number that grows along the segment.
struct list_divisions {
    vertex_on_segments of;
    i64 const* place;
    u64* along;
    i32* number;
    i32* segment_of;
    i32* vertex;
    KILN_HD void operator()(u64 i) const {
        u64 at = static_cast<u64>(place[i]);
        if (static_cast<u64>(place[i + 1]) == at) return;
        of.each(i, [&](i32 s) {
            point const a = of.l.at[s], b = of.l.at[s + 1], q = of.l.at[i];
            bool const upright = a.x == b.x, falls = upright ? a.y > b.y : a.x > b.x;
            u64 const k = ordered(upright ? q.y : q.x);
            along[at] = falls ? ~k : k, number[at] = static_cast<i32>(at);
            segment_of[at] = s, vertex[at++] = static_cast<i32>(i);
        });
    }
};
struct segment_keys {
    i32 const* number;
    i32 const* segment_of;
    u64* key;
    KILN_HD void operator()(u64 i) const { key[i] = static_cast<u64>(segment_of[number[i]]); }
};
// Of divisions in order, those that are not at the place of the one before.
struct count_new_vertices {
    layer l;
    u64 const* segment_of;
    i32 const* number;
    i32 const* vertex;
    i64* is_new;
    u64* by_segment;  // how many, of 0
    KILN_HD void operator()(u64 i) const {
        bool const fresh = i == 0 || segment_of[i] != segment_of[i - 1] || l.at[vertex[number[i]]] != l.at[vertex[number[i - 1]]];
        is_new[i] = fresh ? 1 : 0;
        if (fresh) add_to(by_segment + segment_of[i], 1);
    }
};
struct count_with_divisions {
    u64 const* by_segment;
    i64* count;
    KILN_HD void operator()(u64 i) const { count[i] = 1 + static_cast<i64>(by_segment[i]); }
};
struct add_vertices {
    layer l;
    u64 const* segment_of;
    u64 divisions;
    i32 const* number;
    i32 const* vertex;
    i64 const* is_new;  // summed
    i64 const* place;   // of vertices
    point* at;
    i32* path_of;
    KILN_HD void operator()(u64 i) const {
        if (is_new[i + 1] == is_new[i]) return;
        u64 const s = segment_of[i];
        u64 first = 0, last = i;  // the first division of s
        while (first < last) {
            u64 const middle = (first + last) / 2;
            if (segment_of[middle] < s) first = middle + 1;
            else last = middle;
        }
        i64 const to = place[s] + 1 + is_new[i] - is_new[first];
        at[to] = l.at[vertex[number[i]]], path_of[to] = l.path_of[s];
    }
};
// As move_vertices, where others come between.
struct spread_vertices {
    layer l;
    i64 const* place;
    point* at;
    i32* path_of;
    KILN_HD void operator()(u64 i) const { at[place[i]] = l.at[i], path_of[place[i]] = l.path_of[i]; }
};

// ---- Orientation of rings ----------------------------------------------------------------------------------------------

// The leftmost vertex of each ring, of those the lowest, of those the first: one coordinate after the other.
struct ring_extremes {
    layer l;
    some_rows rows;
    u64* x;       // by path, of all bits set
    u64* y;
    u64* vertex;
    u64* count;  // of vertices there, of 0
    i32 step;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i), path = l.path_of[v];
        if (!is_ring(l.kind[path]) || !rows.has(l.row_of[path])) return;
        bool const asks = is_segment(l, v);
        u64 const px = ordered(l.at[v].x), py = ordered(l.at[v].y), nothing = ~u64{0};
        if (step == 0) return lower_in_runs(x, path, asks ? px : nothing);
        bool const is_leftmost = asks && px == x[path];
        if (step == 1) return lower_in_runs(y, path, is_leftmost ? py : nothing);
        if (is_leftmost && py == y[path]) lower_to(vertex + path, i), add_to(count + path, 1);
    }
};
// Exactly, and also where the ring touches itself: at the lowest of the leftmost vertices all rays point right or up, and below
// the lowest of them is the outside. So the inside is on its left, and the ring runs counter-clockwise if it runs along it.
struct ring_kinds_of {
    layer l;
    some_rows rows;
    u64 const* vertex;
    u64 const* count;
    u8* kind;
    KILN_HD void operator()(u64 i) const {
        if (!is_ring(kind[i]) || !rows.has(l.row_of[i])) return;
        i32 const best = static_cast<i32>(vertex[i]), last = l.path_first[i + 1] - 1;
        point const x = l.at[best];
        point lowest = l.at[vertex_before(l, best)];
        bool is_incoming = true;
        u64 left = count[i];
        for (i32 v = best; v < last && left > 0; ++v) {
            if (l.at[v] != x) continue;
            --left;
            point const in = l.at[vertex_before(l, v)], out = l.at[vertex_after(l, v)];
            if (orient(x, lowest, in) < 0) lowest = in, is_incoming = true;
            if (orient(x, lowest, out) < 0) lowest = out, is_incoming = false;
        }
        bool const is_hole = kind[i] == reversed_ring;
        kind[i] = is_incoming != is_hole ? u8{reversed_ring} : u8{ring_path};
    }
};

// ---- Groups ------------------------------------------------------------------------------------------------------------

// Vertices that are in groups.
struct count_members {
    layer l;
    some_rows rows;
    i64* count;
    u8* is_end;  // of those in none, too
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i);
        bool const is_in_group = rows.has(row_at(l, v)) && l.kind[l.path_of[v]] != no_path && !closes_ring(l, v);
        count[i] = is_in_group ? 1 : 0, is_end[i] = 0;
    }
};
// One sort by a hash of row and place, where no two of them have the same.
struct group_hashes {
    layer l;
    i64 const* place;  // summed counts
    u64* key;
    i32* member;
    KILN_HD void operator()(u64 i) const {
        i64 const at = place[i];
        if (place[i + 1] == at) return;
        i32 const v = static_cast<i32>(i);
        key[at] = hash_of(l.at[i], static_cast<u64>(row_at(l, v)));
        member[at] = v;
    }
};
struct check_hashes {
    layer l;
    u64 const* key;
    i32 const* member;
    u64* clash;  // of 0
    KILN_HD void operator()(u64 i) const {
        if (i == 0 || key[i] != key[i - 1]) return;
        i32 const v = member[i], w = member[i - 1];
        if (row_at(l, v) != row_at(l, w) || l.at[v] != l.at[w]) add_to(clash, 1);
    }
};
// Without hashes: three sorts.
struct group_keys {
    layer l;
    i32 step;  // by y, x, row
    u64* key;
    i32 const* member;
    KILN_HD void operator()(u64 i) const {
        i32 const v = member[i];
        key[i] = step < 2 ? ordered(step == 0 ? l.at[v].y : l.at[v].x) : static_cast<u64>(row_at(l, v));
    }
};
struct count_groups {
    layer l;
    i32 const* member;
    i64* is_new;
    KILN_HD void operator()(u64 i) const {
        is_new[i] = 1;
        if (i == 0) return;
        i32 const v = member[i], w = member[i - 1];
        if (row_at(l, v) == row_at(l, w) && l.at[v] == l.at[w]) is_new[i] = 0;
    }
};
// How many ends of lines are at v.
KILN_HD u32 ends_at(layer const& l, i32 v) {
    i32 const path = l.path_of[v];
    if (l.kind[path] != line_path) return 0;
    return (v == l.path_first[path] ? 1U : 0U) + (is_segment(l, v) ? 0U : 1U);
}
struct group_starts {
    layer l;
    i32 const* member;
    i64 const* is_new;  // summed
    u64 members;
    i32* start;  // by group, one more
    u64* ends;   // of 0
    KILN_HD void operator()(u64 i) const {
        i64 const group = is_new[i + 1] - 1;
        if (is_new[i + 1] != is_new[i]) start[group] = static_cast<i32>(i);
        if (i + 1 == members) start[group + 1] = static_cast<i32>(members);
        u32 const n = ends_at(l, member[i]);
        if (n != 0) add_to(ends + group, n);
    }
};
// By row: points in the boundary of lines.
struct set_groups {
    layer l;
    i32 const* member;
    i64 const* is_new;  // summed
    i32 const* start;
    u64 const* ends;
    i32* group_first;
    i32* group_size;
    u8* is_end;
    u64* row_ends;
    KILN_HD void operator()(u64 i) const {
        i32 const v = member[i];
        i64 const group = is_new[i + 1] - 1;
        group_first[v] = start[group], group_size[v] = start[group + 1] - start[group];
        bool const odd = ends[group] % 2 != 0;
        is_end[v] = odd ? 1 : 0;
        if (odd && start[group] == static_cast<i32>(i)) add_to(row_ends + row_at(l, v), 1);
    }
};
// By row: paths and segments.
struct count_row_paths {
    layer l;
    u64* paths;  // of 0; a path_count
    u64* segments;
    KILN_HD void operator()(u64 i) const {
        if (l.kind[i] == no_path) return;
        i32 const row = l.row_of[i];
        add_to(paths + row, path_count::one(l.kind[i])), add_to(segments + row, static_cast<u64>(l.path_first[i + 1] - l.path_first[i] - 1));
    }
};
// Lines without length are points.
struct line_dimensions {
    u64 const* paths;
    u64 const* segments;
    signed char* dimension;
    KILN_HD void operator()(u64 row) const {
        if (dimension[row] == 1 && paths[row] != 0 && segments[row] == 0) dimension[row] = 0;
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(node_kept_count, kiln_spatial::count_kept_vertices, 256, 1)
KILN_KERNEL(node_paths, kiln_spatial::move_paths, 256, 1)
KILN_KERNEL(node_vertices, kiln_spatial::move_vertices, 256, 1)
KILN_KERNEL(node_division_count, kiln_spatial::count_divisions, 128, 1)
KILN_KERNEL(node_divisions, kiln_spatial::list_divisions, 128, 1)
KILN_KERNEL(node_segment_keys, kiln_spatial::segment_keys, 256, 1)
KILN_KERNEL(node_new_count, kiln_spatial::count_new_vertices, 256, 1)
KILN_KERNEL(node_grown_count, kiln_spatial::count_with_divisions, 256, 1)
KILN_KERNEL(node_add, kiln_spatial::add_vertices, 256, 1)
KILN_KERNEL(node_spread, kiln_spatial::spread_vertices, 256, 1)
KILN_KERNEL(node_ring_extremes, kiln_spatial::ring_extremes, 256, 1)
KILN_KERNEL(node_ring_kinds, kiln_spatial::ring_kinds_of, 128, 1)
KILN_KERNEL(node_member_count, kiln_spatial::count_members, 256, 1)
KILN_KERNEL(node_group_keys, kiln_spatial::group_keys, 256, 1)
KILN_KERNEL(node_group_count, kiln_spatial::count_groups, 256, 1)
KILN_KERNEL(node_group_starts, kiln_spatial::group_starts, 256, 1)
KILN_KERNEL(node_groups, kiln_spatial::set_groups, 256, 1)
KILN_KERNEL(node_row_paths, kiln_spatial::count_row_paths, 256, 1)
KILN_KERNEL(node_line_dimensions, kiln_spatial::line_dimensions, 256, 1)
KILN_KERNEL(node_group_hashes, kiln_spatial::group_hashes, 256, 1)
KILN_KERNEL(node_group_clashes, kiln_spatial::check_hashes, 256, 1)
