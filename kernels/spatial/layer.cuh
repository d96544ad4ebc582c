// SPDX-License-Identifier: Apache-2.0
// An array of geometries as algorithms see it, the same for all families: rows consist of paths, paths of vertices. A path is a
// point, a line or a ring. An element is the segment from a vertex to the next of its path, or a point; its number is that of its
// first vertex. For relations a layer is "noded": no path repeats a vertex, and where a vertex lies on another segment of its own
// row that segment is divided there. The vertex is an input coordinate that lies on the segment exactly, so nothing moves; and every
// place where a row meets itself, but for crossings of lines, is then a vertex of all that meet there.
#pragma once

#include "exact.cuh"

namespace kiln_spatial {

enum path_kind : u8 {
    point_path = 0,
    line_path = 1,
    ring_path = 2,      // its row's interior on the left; of a layer that is not noded: a shell
    reversed_ring = 3,  // on the right; a hole
    no_path = 4,        // of null rows, empty points and lines without vertices: not there
};
// Of rows.
enum : u8 { row_null = 0, row_empty = 1, row_there = 2 };

KILN_HD bool is_ring(u8 kind) { return kind == ring_path || kind == reversed_ring; }

// How many paths of a row, or of some of it, and among them points, in one number that can be added to.
struct path_count {
    u64 both;
    KILN_HD static u64 one(u8 kind) { return kind == point_path ? u64{1} << 32 | 1 : 1; }
    KILN_HD u64 all() const { return both & 0xffffffff; }
    KILN_HD u64 points() const { return both >> 32; }
};

struct layer {
    point const* at;
    i32 const* path_first;  // vertices of a path, one more than paths
    i32 const* path_of;     // by vertex
    i32 const* row_of;      // by path
    i32 const* row_first;   // paths of a row, one more than rows
    u8 const* kind;         // by path
    // Of a noded layer: the vertices of the row with the same coordinates, among `member` from group_first on. The vertex that
    // closes a ring is in no group; its ring's first one is.
    i32 const* group_first;
    i32 const* group_size;
    i32 const* member;
    u8 const* is_end;  // by vertex: the point is in the boundary of its row's lines, where an odd number of them ends
    i32 rows, paths, vertices;
};

KILN_HD i32 row_at(layer const& l, i32 v) { return l.row_of[l.path_of[v]]; }
KILN_HD bool is_segment(layer const& l, i32 v) { return v + 1 < l.path_first[l.path_of[v] + 1]; }
KILN_HD bool is_element(layer const& l, i32 v) {
    u8 const kind = l.kind[l.path_of[v]];
    return kind == point_path || (kind != no_path && is_segment(l, v));
}
KILN_HD point element_end(layer const& l, i32 v) { return l.at[is_segment(l, v) ? v + 1 : v]; }

struct alignas(16) segment {
    point a, b;  // the same for a point
};
KILN_HD box box_of(segment const& s) {
    return {least(s.a.x, s.b.x), least(s.a.y, s.b.y), most(s.a.x, s.b.x), most(s.a.y, s.b.y)};
}

// The vertex where the segment v ends; for the last of a ring, its first.
KILN_HD i32 end_vertex(layer const& l, i32 v) {
    i32 const path = l.path_of[v];
    if (!is_segment(l, v)) return v;
    if (is_ring(l.kind[path]) && v + 2 == l.path_first[path + 1]) return l.path_first[path];
    return v + 1;
}

// Neighbours along the path, -1 at the ends of a line. Of noded layers: they differ from v.
KILN_HD i32 vertex_before(layer const& l, i32 v) {
    i32 const path = l.path_of[v], first = l.path_first[path];
    if (v > first) return v - 1;
    return is_ring(l.kind[path]) ? l.path_first[path + 1] - 2 : -1;
}
KILN_HD i32 vertex_after(layer const& l, i32 v) {
    i32 const path = l.path_of[v], last = l.path_first[path + 1] - 1;
    if (is_ring(l.kind[path])) return v + 1 >= last ? l.path_first[path] : v + 1;
    return v < last ? v + 1 : -1;
}

// Rows of an array of points. Null ones, and empty ones (NaN), are nowhere.
struct point_rows {
    double const* x;
    double const* y;
    u8 const* validity;
    i32 const* chosen;
    KILN_HD point at(u64 i) const {
        u64 const m = chosen != nullptr ? static_cast<u64>(chosen[i]) : i;
        if (validity != nullptr && (validity[m >> 3] >> (m & 7) & 1) == 0) return {from_bits(~u64{0}), 0};
        return {x[m], y[m]};
    }
};

}  // namespace kiln_spatial
