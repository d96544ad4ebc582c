// SPDX-License-Identifier: Apache-2.0
// What an arrangement of rings consists of. A "place" is a point where vertices are. Most places are passed by rings that all come from
// one neighbour and go to the other; the rest are "junctions". A "strand" is the part of a ring from a junction to the next; strands
// that run along each other, whichever way, are one "border". All that is asked of the arrangement is asked of borders, of which there
// are few: on every side of one lie the same rows from its beginning to its end.
//
// Which rows those are: of a border from a to b, the left side is the point a + e(b - a) + e^2 n, e infinitesimal and n to the left.
// Rows that contain it are found by the cells (cells.cuh), with ties decided by which way that point has moved from a. On the right
// are the same rows, but for those of which an odd number of strands runs along the border.
#pragma once

#include "cells.cuh"
#include "grid.cuh"
#include "hash.cuh"
#include "overlay_views.cuh"
#include "tree.cuh"

namespace kiln_spatial {

// ---- Places ------------------------------------------------------------------------------------------------------------

// The vertex that closes a ring is its first one once more.
KILN_HD bool is_corner(layer const& l, i32 v) { return is_ring(l.kind[l.path_of[v]]) && is_segment(l, v); }

// Vertices at one place of a world, or of the world if there is one.
struct placed_vertices {
    layer l;
    i32 const* world;  // by row, or null

    KILN_HD i32 world_of(i32 v) const { return world != nullptr ? world[row_at(l, v)] : 0; }
    KILN_HD bool are_together(i32 v, i32 w) const { return l.at[v] == l.at[w] && world_of(v) == world_of(w); }
};
// Next to each other, those that are no corners behind all others: along a curve through the layer, so that places which are near
// have numbers that are, and by a hash of where exactly; or, should two of them be the same, by y, x and world.
constexpr u64 no_place = ~u64{0};
struct place_hashes {
    placed_vertices of;
    u64 const* around;  // the layer's extent
    u64* key;
    i32* vertex;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i);
        point const p = of.l.at[i];
        u64 const near = box_key(frame_of_extent(around), {p.x, p.y, p.x, p.y}) >> 8;
        key[i] = is_corner(of.l, v) ? near << 39 | hash_of(p, static_cast<u64>(of.world_of(v))) >> 25 : no_place;
        vertex[i] = v;
    }
};
struct place_keys {
    placed_vertices of;
    i32 step;
    i32 const* vertex;
    u64* key;
    KILN_HD void operator()(u64 i) const {
        i32 const v = vertex[i];
        u64 const own = step == 2 ? static_cast<u64>(of.world_of(v)) : ordered(step == 0 ? of.l.at[v].y : of.l.at[v].x);
        key[i] = is_corner(of.l, v) ? own : no_place;
    }
};
struct count_places {
    placed_vertices of;
    u64 const* key;  // in order; the same for vertices that are together
    i32 const* vertex;
    i64* is_new;
    u64* clash;  // of 0: the same for others
    KILN_HD void operator()(u64 i) const {
        bool const like_last = i > 0 && key[i] == key[i - 1], is_place = key[i] != no_place;
        bool const clashes = is_place && like_last && !of.are_together(vertex[i], vertex[i - 1]);
        is_new[i] = is_place && (!like_last || clashes) ? 1 : 0;
        if (clashes) *clash = 1;
    }
};
struct set_places {
    u64 const* key;
    i32 const* vertex;
    i64 const* is_new;  // summed
    u64 vertices;
    i32* place_of;  // by vertex
    i32* first;     // by place, one more: among `vertex`
    KILN_HD void operator()(u64 i) const {
        i32 const v = vertex[i], place = static_cast<i32>(is_new[i + 1]) - 1;
        if (key[i] == no_place) {
            place_of[v] = -1;
            return;
        }
        place_of[v] = place;
        if (is_new[i + 1] != is_new[i]) first[place] = static_cast<i32>(i);
        if (i + 1 == vertices || key[i + 1] == no_place) first[place + 1] = static_cast<i32>(i) + 1;
    }
};

// ---- Junctions ---------------------------------------------------------------------------------------------------------

// Where more vertices than this are at one place, it is a junction without looking.
constexpr i32 most_passing = 8;

struct find_junctions {
    layer l;
    i32 const* place_of;
    i32 const* first;
    i32 const* vertex;
    i64* is_junction;
    u64* of_path;  // how many, of 0
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i);
        is_junction[i] = 0;
        if (!is_corner(l, v) || is_passed(v)) return;
        is_junction[i] = 1;
        add_to(of_path + l.path_of[v], 1);
    }

private:
    KILN_HD bool is_passed(i32 v) const {
        i32 const p = place_of[vertex_before(l, v)], q = place_of[vertex_after(l, v)];
        i32 const from = first[place_of[v]], to = first[place_of[v] + 1];
        if (p == q || to - from > most_passing) return false;
        for (i32 k = from; k < to; ++k) {
            i32 const u = vertex[k], before = place_of[vertex_before(l, u)], after = place_of[vertex_after(l, u)];
            if (!(before == p && after == q) && !(before == q && after == p)) return false;
        }
        return true;
    }
};
// A ring without any has one where it is leftmost, and of that lowest: rings that are the same agree on it.
struct find_anchors {
    layer l;
    u64 const* of_path;
    u64* x;  // by path, of all bits set
    u64* y;
    i32 step;
    i64* is_junction;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i), path = l.path_of[v];
        if (of_path[path] != 0) return;
        bool const asks = is_corner(l, v);
        u64 const px = ordered(l.at[v].x), py = ordered(l.at[v].y), nothing = ~u64{0};
        if (step == 0) return lower_in_runs(x, path, asks ? px : nothing);
        bool const is_leftmost = asks && px == x[path];
        if (step == 1) return lower_in_runs(y, path, is_leftmost ? py : nothing);
        if (is_leftmost && py == y[path]) is_junction[i] = 1;
    }
};

// ---- Strands and borders -----------------------------------------------------------------------------------------------

struct set_strands {
    i64 const* number;  // summed junctions
    i32* start;
    KILN_HD void operator()(u64 i) const {
        if (number[i + 1] != number[i]) start[number[i]] = static_cast<i32>(i);
    }
};
struct strand_keys {
    strand_list s;
    u64* key;
    i32* number;
    KILN_HD void operator()(u64 i) const {
        i32 const c = static_cast<i32>(i);
        u64 const there = s.key(c), back = s.key_backwards(c);
        key[i] = there <= back ? there : back, number[i] = c;
    }
};
struct count_borders {
    u64 const* key;
    i64* is_new;
    KILN_HD void operator()(u64 i) const { is_new[i] = i == 0 || key[i] != key[i - 1] ? 1 : 0; }
};
struct set_borders {
    i64 const* is_new;  // summed
    u64 strands;
    i32* first;  // by border, one more
    KILN_HD void operator()(u64 i) const {
        i64 const border = is_new[i + 1] - 1;
        if (is_new[i + 1] != is_new[i]) first[border] = static_cast<i32>(i);
        if (i + 1 == strands) first[border + 1] = static_cast<i32>(strands);
    }
};

// ---- What lies on both sides -------------------------------------------------------------------------------------------

struct cover_search {
    border_list b;
    world_cells g;
    i32 const* world;  // by row, or null

    // found(row, sides), in order of rows; it returns true to stop.
    template <class Found>
    KILN_HD void each(u64 i, Found found) const {
        i32 const border = static_cast<i32>(i), end = b.first[border + 1];
        point const a = b.s.l.at[b.vertex(border, 0)], to = b.s.l.at[b.vertex(border, 1)];
        i32 next = b.first[border];
        i32 const first = b.row(next), own = world != nullptr ? world[first] : 0;
        i32 odd = odd_row(next, end);
        bool stops = false;
        locate_left_of(g.of_row_like(first), a, to, [&](i32 row) {
            if (world != nullptr && world[row] != own) return false;
            for (; odd < row && !stops; odd = odd_row(next, end)) stops = found(odd, right_side);
            if (stops) return true;
            bool const along = odd == row;
            if (along) odd = odd_row(next, end);
            return stops = found(row, along ? left_side : left_side | right_side);
        });
        for (; odd != no_row && !stops; odd = odd_row(next, end)) stops = found(odd, right_side);
    }

private:
    static constexpr i32 no_row = 0x7fffffff;
    // The next row that an odd number of strands is of. Strands are in the order of their rows.
    KILN_HD i32 odd_row(i32& next, i32 end) const {
        while (next < end) {
            i32 const row = b.row(next);
            i32 n = 0;
            for (; next < end && b.row(next) == row; ++next) ++n;
            if (n % 2 != 0) return row;
        }
        return no_row;
    }
};
// The first ones are kept, so that few are looked for twice.
constexpr u64 covers_kept = 4;
KILN_HD u32 cover_of(i32 row, u32 sides) { return static_cast<u32>(row) << 2 | sides; }

struct count_covers {
    cover_search of;
    u64 borders;
    u32* kept;
    i64* count;
    KILN_HD void operator()(u64 i) const {
        u64 n = 0;
        of.each(i, [&](i32 row, u32 sides) {
            if (n < covers_kept) kept[n * borders + i] = cover_of(row, sides);
            ++n;
            return false;
        });
        count[i] = static_cast<i64>(n);
    }
};
struct list_covers {
    cover_search of;
    u64 borders;
    u32 const* kept;
    i64 const* place;
    u32* cover;
    KILN_HD void operator()(u64 i) const {
        i64 at = place[i];
        u64 const n = static_cast<u64>(place[i + 1] - at);
        if (n > covers_kept) return of.each(i, [&](i32 row, u32 sides) { return cover[at++] = cover_of(row, sides), false; });
        for (u64 k = 0; k < n; ++k) cover[at++] = kept[k * borders + i];
    }
};

// ---- Borders of results ------------------------------------------------------------------------------------------------

// A result is a set of points given by which rows they are in. A border is one of it where one side is in it and the other is not,
// run through so that it is on the left. put(key, backwards) for every result of a rule; keys are in the order of results.

// Of two layers: what both have, by pair of rows, and what only one has, by row.
struct overlay_rule {
    i32 left_rows;
    u32 what;  // overlay_parts

    template <class Put>
    KILN_HD void each(cover_range const& all, Put put) const {
        u64 middle = all.first;
        u32 left = 0, right = 0;
        for (; middle < all.last && all.row(middle) < left_rows; ++middle) left |= all.sides(middle);
        for (u64 k = middle; k < all.last; ++k) right |= all.sides(k);
        for (u64 i = all.first; i < middle; ++i) {
            u32 const own = all.sides(i);
            if ((what & common_parts) != 0)
                for (u64 j = middle; j < all.last; ++j) put_side(own & all.sides(j), pair_key(all.row(i), all.row(j) - left_rows), put);
            if ((what & left_parts) != 0) put_side(own & ~right, pair_key(all.row(i), -1), put);
            if ((what & left_covered) != 0) put_side(own & right, pair_key(all.row(i), -1), put);
        }
        if ((what & (right_parts | right_rows)) == 0) return;
        for (u64 j = middle; j < all.last; ++j)
            put_side(all.sides(j) & ((what & right_rows) != 0 ? ~0U : ~left), pair_key(-1, all.row(j) - left_rows), put);
    }
};
struct count_result_borders {
    overlay_rule rule;
    u32 const* cover;
    i64 const* place;  // of covers
    i64* count;
    KILN_HD void operator()(u64 i) const {
        i64 n = 0;
        rule.each({cover, static_cast<u64>(place[i]), static_cast<u64>(place[i + 1])}, [&](u64, u32) { ++n; });
        count[i] = n;
    }
};
struct list_result_borders {
    overlay_rule rule;
    u32 const* cover;
    i64 const* place;  // of covers
    i64 const* to;     // summed counts
    u64* key;
    i32* piece;  // border << 1 | backwards
    KILN_HD void operator()(u64 i) const {
        i64 at = to[i];
        rule.each({cover, static_cast<u64>(place[i]), static_cast<u64>(place[i + 1])}, [&](u64 k, u32 backwards) {
            key[at] = k, piece[at++] = static_cast<i32>(static_cast<u32>(i) << 1 | backwards);
        });
    }
};

// Of each world: what any of its left rows and any of its right ones has, put together. Only whether there is any counts, so that rows are looked at until the
// others cannot change the answer: where many lie over each other, that is after one or two of them.
struct world_rule {
    i32 left_rows;  // 0: all rows are right ones
    set_operation what;
    static constexpr u32 both_sides = left_side | right_side;
    struct seen {
        u32 left = 0, right = 0;  // sides that some row lies on
    };

    KILN_HD void see(seen& so_far, i32 row, u32 sides) const { (row < left_rows ? so_far.left : so_far.right) |= sides; }
    KILN_HD bool is_settled(seen const& of) const {
        if (what == set_operation::union_) return (of.left | of.right) == both_sides;
        if (what == set_operation::difference) return of.right == both_sides;
        return (of.left & of.right) == both_sides;
    }
    KILN_HD u32 sides_of_result(seen const& of) const {
        if (what == set_operation::intersection) return of.left & of.right;
        if (what == set_operation::difference) return of.left & ~of.right;
        if (what == set_operation::symmetric_difference) return of.left ^ of.right;
        return of.left | of.right;
    }
};
struct count_world_borders {
    cover_search of;
    world_rule rule;
    u32* sides;  // of the border that the result of its world lies on
    i64* count;
    KILN_HD void operator()(u64 i) const {
        world_rule::seen all;
        of.each(i, [&](i32 row, u32 beside) {
            rule.see(all, row, beside);
            return rule.is_settled(all);
        });
        sides[i] = rule.sides_of_result(all);
        count[i] = sides[i] == left_side || sides[i] == right_side ? 1 : 0;
    }
};
struct list_world_borders {
    border_list b;
    i32 const* world;  // by row
    u32 const* sides;
    i64 const* to;  // summed counts
    u64* key;
    i32* piece;
    KILN_HD void operator()(u64 i) const {
        put_side(sides[i], pair_key(world[b.row(b.first[i])], -1), [&](u64 k, u32 backwards) {
            key[to[i]] = k, piece[to[i]] = static_cast<i32>(static_cast<u32>(i) << 1 | backwards);
        });
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(overlay_place_hashes, kiln_spatial::place_hashes, 256, 1)
KILN_KERNEL(overlay_place_keys, kiln_spatial::place_keys, 256, 1)
KILN_KERNEL(overlay_place_count, kiln_spatial::count_places, 256, 1)
KILN_KERNEL(overlay_places, kiln_spatial::set_places, 256, 1)
KILN_KERNEL(overlay_junctions, kiln_spatial::find_junctions, 256, 1)
KILN_KERNEL(overlay_anchors, kiln_spatial::find_anchors, 256, 1)
KILN_KERNEL(overlay_strands, kiln_spatial::set_strands, 256, 1)
KILN_KERNEL(overlay_strand_keys, kiln_spatial::strand_keys, 256, 1)
KILN_KERNEL(overlay_border_count, kiln_spatial::count_borders, 256, 1)
KILN_KERNEL(overlay_borders, kiln_spatial::set_borders, 256, 1)
KILN_KERNEL(overlay_cover_count, kiln_spatial::count_covers, 128, 1)
KILN_KERNEL(overlay_covers, kiln_spatial::list_covers, 128, 1)
KILN_KERNEL(overlay_pair_count, kiln_spatial::count_result_borders, 256, 1)
KILN_KERNEL(overlay_pairs, kiln_spatial::list_result_borders, 256, 1)
KILN_KERNEL(overlay_world_count, kiln_spatial::count_world_borders, 128, 1)
KILN_KERNEL(overlay_world_borders, kiln_spatial::list_world_borders, 256, 1)
