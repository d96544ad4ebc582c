// SPDX-License-Identifier: Apache-2.0
// Strands and borders (overlay_borders.cuh) as kernels see them, and on which rows' inside a border's left side is.
#pragma once

#include "cells.cuh"
#include "layer.cuh"

namespace kiln_spatial {

struct strand_list {
    layer l;
    i32 const* place_of;  // by vertex
    i64 const* number;    // by vertex, one more: how many strands begin before it
    i32 const* start;     // by strand: the vertex where it begins

    // Vertices of its ring, without the one that closes it.
    struct ring {
        i32 first, last;
    };
    KILN_HD ring ring_of(i32 strand) const {
        i32 const path = l.path_of[start[strand]];
        return {l.path_first[path], l.path_first[path + 1] - 1};
    }
    KILN_HD i32 length(i32 strand) const {
        ring const r = ring_of(strand);
        i32 const next = strand + 1;
        if (next < static_cast<i32>(number[r.last])) return start[next] - start[strand];
        return start[number[r.first]] + r.last - r.first - start[strand];
    }
    KILN_HD i32 vertex(i32 strand, i32 k) const {
        ring const r = ring_of(strand);
        i32 const v = start[strand] + k;
        return v >= r.last ? v - (r.last - r.first) : v;
    }
    // Its first step, which no other strand has; and that of its way back.
    KILN_HD u64 key(i32 strand) const { return step(vertex(strand, 0), vertex(strand, 1)); }
    KILN_HD u64 key_backwards(i32 strand) const {
        i32 const n = length(strand);
        return step(vertex(strand, n), vertex(strand, n - 1));
    }

private:
    KILN_HD u64 step(i32 from, i32 to) const {
        return static_cast<u64>(static_cast<u32>(place_of[from])) << 32 | static_cast<u32>(place_of[to]);
    }
};

struct border_list {
    strand_list s;
    i32 const* member;  // strands, those of a border next to each other
    i32 const* first;   // by border, one more: among `member`

    KILN_HD i32 row(i32 k) const { return row_at(s.l, s.start[member[k]]); }
    KILN_HD i32 length(i32 border) const { return s.length(member[first[border]]); }
    // Along the border, which runs the way of the lesser of its keys.
    KILN_HD i32 vertex(i32 border, i32 k) const {
        i32 const strand = member[first[border]];
        return s.vertex(strand, s.key(strand) <= s.key_backwards(strand) ? k : s.length(strand) - k);
    }
};

// Pieces of results (overlay_rings.cuh).
struct piece_list {
    border_list b;
    i32 const* piece;  // border << 1 | backwards, by result

    KILN_HD i32 length(i32 h) const { return b.length(piece[h] >> 1); }
    KILN_HD i32 vertex(i32 h, i32 k) const {
        i32 const border = piece[h] >> 1;
        return b.vertex(border, (piece[h] & 1) != 0 ? b.length(border) - k : k);
    }
    KILN_HD point at(i32 h, i32 k) const { return b.s.l.at[vertex(h, k)]; }
    KILN_HD i32 place(i32 h, i32 k) const { return b.s.place_of[vertex(h, k)]; }
};

// A point right beside a that went a little towards `to` and a little less to the left, or to the right.
struct besides {
    point a, to;
    int turn;  // 1 left, -1 right
    bool rises;

    KILN_HD besides(point from, point towards, int turned)
        : a{from}, to{towards}, turn{turned}, rises{to.y > a.y || (to.y == a.y && (to.x > a.x) == (turn > 0))} {}
    KILN_HD bool is_below(point p) const { return rises ? p.y > a.y : p.y >= a.y; }
    // Of a line upwards with one end below and one above.
    KILN_HD int side_of(point low, point high) const {
        int const side = orient(low, high, a);
        if (side != 0) return side;
        int const next = orient(low, high, to);
        return next != 0 ? next : to.y > a.y ? turn : -turn;  // along the edge, and beside it
    }
    // Does whoever comes from far on the left cross the edge?
    KILN_HD bool is_beyond(point p, point q) const {
        bool const p_above = is_below(p), q_above = is_below(q);
        if (p_above == q_above || least(p.x, q.x) > a.x) return false;
        return side_of(p_above ? q : p, p_above ? p : q) < 0;
    }
};
// As cell_walk, from a corner to there.
struct side_walk {
    besides there;
    point corner;
    bool inside;
    static constexpr bool unsure = false;

    KILN_HD void edge(point p, point q) {
        across(p, q);
        inside ^= changes_upwards(p, q, corner, there.a.y, there.rises, [](point u, point v, point w) { return orient(u, v, w); });
    }
    KILN_HD place where() const { return inside ? place::inside : place::outside; }

private:
    KILN_HD void across(point p, point q) {
        bool const p_above = there.is_below(p), q_above = there.is_below(q);
        if (p_above == q_above) return;
        if (most(p.x, q.x) < least(there.a.x, corner.x) || least(p.x, q.x) > most(there.a.x, corner.x)) return;
        point const low = p_above ? q : p, high = p_above ? p : q;
        int const at_corner = orient(low, high, {corner.x, there.a.y});
        bool const left_of_corner = at_corner < 0 || (!there.rises && at_corner == 0 && high.x > low.x);
        inside ^= (there.side_of(low, high) < 0) != left_of_corner;
    }
};
// found(row) for every row, in order, that contains what lies at a beside the way to `to`: on its left, or where turn is -1 on its right. It returns true to stop.
template <class Found>
KILN_HD void locate_beside(cell_grid const& g, point a, point to, int turn, Found found) {
    besides const there{a, to, turn};
    locate_by(
        g, a, [&](point corner, bool inside) { return side_walk{there, corner, inside}; },
        [&](i32 row, place) { return found(row); });
}
template <class Found>
KILN_HD void locate_left_of(cell_grid const& g, point a, point to, Found found) {
    locate_beside(g, a, to, 1, found);
}

// Rows on the sides of a border: row << 2 | sides, in order of rows.
enum : u32 { left_side = 1, right_side = 2 };
struct cover_range {
    u32 const* cover;
    u64 first, last;
    KILN_HD i32 row(u64 k) const { return static_cast<i32>(cover[k] >> 2); }
    KILN_HD u32 sides(u64 k) const { return cover[k] & 3; }
};

// Results by number: of the left row, then of the right one; -1 is behind all others.
KILN_HD u64 pair_key(i32 left, i32 right) {
    return static_cast<u64>(static_cast<u32>(left)) << 32 | static_cast<u32>(right);
}
KILN_HD i32 left_of_key(u64 key) { return static_cast<i32>(key >> 32); }
KILN_HD i32 right_of_key(u64 key) { return static_cast<i32>(static_cast<u32>(key)); }

// Which results of two layers are wanted.
enum overlay_parts : u32 {
    common_parts = 1,  // of two rows
    left_parts = 2,    // of a left row, in no right one
    right_parts = 4,   // of a right row, in no left one
    right_rows = 8,    // right rows as they are
    left_covered = 16,  // of a left row, in any right one
};
enum class set_operation : int { intersection, union_, difference, symmetric_difference };
template <class Put>
KILN_HD void put_side(u32 sides, u64 key, Put put) {
    if ((sides & 3) == left_side) put(key, 0U);
    if ((sides & 3) == right_side) put(key, 1U);
}

}  // namespace kiln_spatial
