// SPDX-License-Identifier: Apache-2.0
// Looking for something in one row of a layer. A row's vertices are taken in blocks, and blocks in groups, each with the box around
// its elements. They are in the order of their paths, where neighbours are near each other, so most of a row is left out by a few
// boxes, and nothing has to be sorted. No rows have blocks in common.
#pragma once

#include "cells.cuh"
#include "distance.cuh"
#include "grid.cuh"

namespace kiln_spatial {

enum : i32 { block_vertices = 64, group_vertices = 64 * 64 };

struct row_search {
    layer l;
    box const* blocks;
    box const* groups;
    u8 const* state;               // row_null, row_empty, row_there
    signed char const* dimension;  // by row

    KILN_HD i32 first(i32 row) const { return l.path_first[l.row_first[row]]; }
    KILN_HD i32 vertices(i32 row) const { return first(row + 1) - first(row); }
};
// Where the blocks of a row begin, which begins at a vertex.
KILN_HD i32 first_block(i32 row, i32 vertex) { return vertex / block_vertices + row; }
KILN_HD i32 first_group(i32 row, i32 vertex) { return vertex / group_vertices + row; }

KILN_HD box no_box() {
    double const far = from_bits(u64{0x7ff} << 52);
    return {far, far, -far, -far};
}
KILN_HD box around_both(box const& a, box const& b) {
    return {least(a.min_x, b.min_x), least(a.min_y, b.min_y), most(a.max_x, b.max_x), most(a.max_y, b.max_y)};
}
// No more than the square of the distance (distance.cuh) of anything in one from anything in the other.
KILN_HD double square_between_boxes(box const& a, box const& b) {
    double const x = most(0, most(sub(a.min_x, b.max_x), sub(b.min_x, a.max_x)));
    double const y = most(0, most(sub(a.min_y, b.max_y), sub(b.min_y, a.max_y)));
    return add(mul(x, x), mul(y, y));
}

// The row's elements in the blocks whose boxes are wanted(box): visit(vertex) until it returns false.
template <class Wanted, class Visit>
KILN_HD void walk_row(row_search const& s, i32 row, Wanted wanted, Visit visit) {
    i32 const first = s.first(row), end = s.first(row + 1);
    i32 const own_blocks = first_block(row, first), own_groups = first_group(row, first);
    for (i32 g = first; g < end; g += group_vertices) {
        if (end - first > block_vertices && !wanted(s.groups[own_groups + (g - first) / group_vertices])) continue;
        i32 const group_end = end - g < group_vertices ? end : g + group_vertices;
        for (i32 b = g; b < group_end; b += block_vertices) {
            if (end - first > 4 && !wanted(s.blocks[own_blocks + (b - first) / block_vertices])) continue;
            i32 const block_end = end - b < block_vertices ? end : b + block_vertices;
            for (i32 v = b; v < block_end; ++v)
                if (is_element(s.l, v) && !visit(v)) return;
        }
    }
}

// The vertex where the block begins that is nearest to a box, of a group that is.
KILN_HD i32 nearest_block(row_search const& s, i32 row, box const& to) {
    i32 const first = s.first(row), end = s.first(row + 1);
    i32 const own_blocks = first_block(row, first), own_groups = first_group(row, first);
    i32 group = first, block;
    double best = square_between_boxes(s.groups[own_groups], to);
    for (i32 g = first + group_vertices; g < end; g += group_vertices) {
        double const d = square_between_boxes(s.groups[own_groups + (g - first) / group_vertices], to);
        if (d < best) best = d, group = g;
    }
    block = group, best = square_between_boxes(s.blocks[own_blocks + (group - first) / block_vertices], to);
    for (i32 b = group + block_vertices; b < end && b < group + group_vertices; b += block_vertices) {
        double const d = square_between_boxes(s.blocks[own_blocks + (b - first) / block_vertices], to);
        if (d < best) best = d, block = b;
    }
    return block;
}

// As square_between_elements; whether it is 0 is left open where a filter cannot tell.
KILN_HD double quick_square_of_elements(segment const& s, segment const& t, bool& unsure) {
    int const met = quick_meet(s.a, s.b, t.a, t.b);
    if (met > 0) return 0;
    unsure |= met < 0;
    return square_of_apart(s.a, s.b, t.a, t.b);
}

// The least square of an element from a row, or something above `best` where it is not below that.
template <certainty How>
KILN_HD double square_from_row(row_search const& in, i32 row, segment const& s, double best, bool& unsure) {
    box const around = box_of(s);
    auto const look = [&](i32 v) {
        segment const t{in.l.at[v], element_end(in.l, v)};
        if (square_between_boxes(box_of(t), around) > best) return true;
        double d;
        if constexpr (How == certainty::exact) d = square_between_elements(s.a, s.b, t.a, t.b);
        else d = quick_square_of_elements(s, t, unsure);
        best = least(best, d);
        return best > 0;
    };
    // Something near first: then most of the rest is too far.
    if (best == from_bits(u64{0x7ff} << 52) && in.vertices(row) > 2 * block_vertices) {
        i32 const from = nearest_block(in, row, around), end = in.first(row + 1);
        for (i32 v = from; v < end && v < from + block_vertices && best > 0; ++v)
            if (is_element(in.l, v)) look(v);
        if (best == 0) return 0;
    }
    walk_row(in, row, [&](box const& b) { return !(square_between_boxes(b, around) > best); }, look);
    return best;
}

// Is a point that is on none of the row's rings inside its area? On one, either answer may come.
template <certainty How>
KILN_HD bool is_inside_row(row_search const& in, i32 row, point p, bool& unsure) {
    bool inside = false;
    walk_row(
        in, row, [&](box const& b) { return b.min_x <= p.x && b.max_x >= p.x && b.max_y >= p.y; },
        [&](i32 v) {
            point a = in.l.at[v], b = element_end(in.l, v);
            // Half open, so that a vertex at that x counts once.
            if (!is_ring(in.l.kind[in.l.path_of[v]]) || (a.x > p.x) == (b.x > p.x) || (a.y < p.y && b.y < p.y)) return true;
            if (a.y > p.y && b.y > p.y) {
                inside = !inside;
                return true;
            }
            if (a.x > b.x) {
                point const t = a;
                a = b, b = t;
            }
            if constexpr (How == certainty::exact) {
                inside = inside != (orient(a, b, p) < 0);
            } else {
                guess const g = orient_filter(a, b, p);
                unsure |= !g.certain;
                inside = inside != (g.side < 0);
            }
            return true;
        });
    return inside;
}

}  // namespace kiln_spatial
