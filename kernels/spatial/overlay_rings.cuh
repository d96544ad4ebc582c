// SPDX-License-Identifier: Apache-2.0
// From the borders of results to polygons. A "piece" is a border as a result runs along it, with the result on its left; results
// are numbered, and their pieces lie next to each other. At a place, a piece that arrives goes on with the one that is next clockwise: both
// bound the same corner of the result. Following these gives one ring for each boundary of each connected part. Such a ring may
// come to a place more than once, where a hole touches it; there it is cut: what arrives goes on with the next piece of the same ring
// counter-clockwise, and hole and shell come apart. (Take two visits of a ring to a place. A curve inside the result from the
// one corner to the other separates the plane, so the parts of the ring between its visits do not cross each other, and each begins
// next to where it ends; closing each of them leaves rings that come to no place twice.) So every ring is simple, shells run
// counter-clockwise, holes clockwise, and they meet in places only.
#pragma once

#include "grid.cuh"
#include "overlay_views.cuh"

namespace kiln_spatial {

// ---- Results -----------------------------------------------------------------------------------------------------------

// Of pieces in the order of their keys.
struct count_results {
    u64 const* key;
    i64* is_new;
    KILN_HD void operator()(u64 i) const { is_new[i] = i == 0 || key[i] != key[i - 1] ? 1 : 0; }
};
struct set_results {
    u64 const* key;
    i64 const* is_new;  // summed
    i32 const* number;
    i32 const* piece;
    i32* to;        // pieces in their new order
    i32* result;    // by piece
    i32* left;      // by result
    i32* right;
    i32* first;     // one more: among pieces
    u64 pieces;
    KILN_HD void operator()(u64 i) const {
        i64 const r = is_new[i + 1] - 1;
        to[i] = piece[number[i]], result[i] = static_cast<i32>(r);
        if (is_new[i + 1] != is_new[i]) left[r] = left_of_key(key[i]), right[r] = right_of_key(key[i]), first[r] = static_cast<i32>(i);
        if (i + 1 == pieces) first[r + 1] = static_cast<i32>(pieces);
    }
};

// ---- From piece to piece -----------------------------------------------------------------------------------------------

// The two ends of every piece: 2h leaves a place, 2h + 1 arrives at one.
struct end_keys {
    piece_list p;
    i32 const* result;
    i32 place_bits;
    u64* key;
    i32* end;
    KILN_HD void operator()(u64 i) const {
        i32 const h = static_cast<i32>(i >> 1);
        bool const arrives = (i & 1) != 0;
        u64 const place = static_cast<u64>(p.place(h, arrives ? p.length(h) : 0));
        key[i] = static_cast<u64>(result[h]) << place_bits | place, end[i] = static_cast<i32>(i);
    }
};

enum class turn : int { clockwise = -1, counter_clockwise = 1 };

// Around w from the direction of r: is p reached before q?
KILN_HD int sector_of(point w, point r, point p, turn way) {
    int const side = orient(w, r, p);
    return side == static_cast<int>(way) ? 0 : side == 0 ? 1 : 2;
}
KILN_HD bool reached_before(point w, point r, point p, point q, turn way) {
    int const own = sector_of(w, r, p, way), other = sector_of(w, r, q, way);
    if (own != other) return own < other;
    return orient(w, p, q) == static_cast<int>(way);
}

// Ends in order: every one that arrives finds the one that leaves.
struct link_pieces {
    piece_list p;
    u64 const* key;
    i32 const* end;
    u64 ends;
    i32 const* ring;  // by piece; null: of any, clockwise. Else of the same ring, counter-clockwise.
    i32* next;
    u64* changed;  // of 0
    KILN_HD void operator()(u64 i) const {
        if ((end[i] & 1) == 0) return;
        i32 const h = end[i] >> 1;
        i32 best = -1;
        u64 from = i, to = i + 1;
        while (from > 0 && key[from - 1] == key[i]) --from;
        while (to < ends && key[to] == key[i]) ++to;
        if (to - from == 2) {
            best = end[end[from] == end[i] ? to - 1 : from] >> 1;
        } else {
            i32 const n = p.length(h);
            point const w = p.at(h, n), r = p.at(h, n - 1);
            turn const way = ring == nullptr ? turn::clockwise : turn::counter_clockwise;
            for (u64 k = from; k < to; ++k) {
                i32 const other = end[k] >> 1;
                if ((end[k] & 1) != 0 || (ring != nullptr && ring[other] != ring[h])) continue;
                if (best < 0 || reached_before(w, r, p.at(other, 1), p.at(best, 1), way)) best = other;
            }
        }
        if (ring != nullptr && next[h] != best) add_to(changed, 1);
        next[h] = best;
    }
};

// ---- Rings -------------------------------------------------------------------------------------------------------------

// The first piece of every piece's ring, by doubling: after k steps the least of 2^k pieces on.
struct begin_rings {
    i32 const* next;
    i32* first;
    i32* jump;
    KILN_HD void operator()(u64 i) const { first[i] = static_cast<i32>(i), jump[i] = next[i]; }
};
struct double_rings {
    i32 const* first;
    i32 const* jump;
    i32* first_to;
    i32* jump_to;
    u64* changed;  // of 0
    KILN_HD void operator()(u64 i) const {
        i32 const far = jump[i], own = first[i], other = first[far];
        first_to[i] = other < own ? other : own, jump_to[i] = jump[far];
        if (other < own && *changed == 0) *changed = 1;
    }
};
// How many vertices come from a piece on until its ring ends.
struct begin_ranks {
    piece_list p;
    i32 const* next;
    i32 const* first;
    i32* jump;  // -1: the ring ends
    i32* left;
    KILN_HD void operator()(u64 i) const {
        jump[i] = next[i] == first[i] ? -1 : next[i], left[i] = p.length(static_cast<i32>(i));
    }
};
struct double_ranks {
    i32 const* jump;
    i32 const* left;
    i32* jump_to;
    i32* left_to;
    u64* changed;  // of 0
    KILN_HD void operator()(u64 i) const {
        i32 const far = jump[i];
        jump_to[i] = far < 0 ? -1 : jump[far], left_to[i] = left[i] + (far < 0 ? 0 : left[far]);
        if (far >= 0 && *changed == 0) *changed = 1;
    }
};
// Rings and their vertices, in one number.
struct count_rings {
    i32 const* first;
    i32 const* left;
    piece_list p;
    i64* count;
    i64* length;
    KILN_HD void operator()(u64 i) const {
        count[i] = first[i] == static_cast<i32>(i) ? both_counts(1, static_cast<u32>(left[i]) + 1) : 0;
        length[i] = p.length(static_cast<i32>(i));
    }
};
struct ring_table {
    i32* first;   // one more: vertices
    i32* result;  // by ring
};
struct set_rings {
    i64 const* place;  // summed counts, by piece, one more
    i32 const* result;
    u64 pieces;
    ring_table to;
    KILN_HD void operator()(u64 i) const {
        to.first[high_of(place[i])] = static_cast<i32>(low_of(place[i]));
        if (i < pieces && place[i + 1] != place[i]) to.result[high_of(place[i])] = result[i];
    }
};
// One item for every vertex of every piece.
struct write_rings {
    piece_list p;
    u64 pieces;
    double share;      // pieces in items
    i64 const* begin;  // summed lengths
    i64 const* place;
    i32 const* first;
    i32 const* left;
    point* at;
    i32* ring_of;
    KILN_HD void operator()(u64 i) const {
        u64 const h = last_not_above_near(evenly(i, share), pieces, static_cast<i64>(i), [&](u64 k) { return begin[k]; });
        i32 const lead = first[h], k = static_cast<i32>(static_cast<i64>(i) - begin[h]);
        u32 const base = low_of(place[lead]), ring = high_of(place[lead]);
        point const q = p.at(static_cast<i32>(h), k);
        put(base + static_cast<u32>(left[lead] - left[h] + k), q, ring);
        if (static_cast<i32>(h) == lead && k == 0) put(base + static_cast<u32>(left[lead]), q, ring);
    }

private:
    KILN_HD void put(u32 to, point q, u32 ring) const { at[to] = q, ring_of[to] = static_cast<i32>(ring); }
};

// ---- Shells and holes --------------------------------------------------------------------------------------------------

struct drawn_rings {
    point const* at;
    i32 const* ring_of;  // by vertex
    i32 const* first;    // by ring, one more
    i32 const* result;
};
// Leftmost, and of those lowest.
struct lowest_of_rings {
    drawn_rings r;
    u64* x;  // by ring, of all bits set
    u64* y;
    u64* vertex;
    i32 step;
    KILN_HD void operator()(u64 i) const {
        i32 const ring = r.ring_of[i];
        u64 const px = ordered(r.at[i].x), py = ordered(r.at[i].y);
        if (step == 0) return lower_in_runs(x, ring, px);
        bool const is_leftmost = px == x[ring];
        if (step == 1) return lower_in_runs(y, ring, is_leftmost ? py : ~u64{0});
        if (is_leftmost && py == y[ring]) lower_to(vertex + ring, i);
    }
};
struct shell_counts {
    u64* shells;       // by result, of 0
    u64* holes;
    u64* first_shell;  // of all bits set
    KILN_HD bool is_ambiguous(i32 result) const { return shells[result] > 1 && holes[result] > 0; }
};
// The vertex there is on the outside, so it turns the way the ring does.
struct find_shells {
    drawn_rings r;
    u64 const* vertex;
    u8* is_shell;
    shell_counts to;
    KILN_HD void operator()(u64 i) const {
        i32 const first = r.first[i], last = r.first[i + 1] - 1, v = static_cast<i32>(vertex[i]);
        point const before = r.at[v == first ? last - 1 : v - 1], after = r.at[v + 1];
        bool const shell = orient(before, r.at[v], after) > 0;
        is_shell[i] = shell ? 1 : 0;
        i32 const of = r.result[i];
        add_to((shell ? to.shells : to.holes) + of, 1);
        if (shell) lower_to(to.first_shell + of, i);
    }
};
// A hole belongs to the only shell there is; else it is looked for.
struct give_holes {
    drawn_rings r;
    u8 const* is_shell;
    shell_counts counts;
    i32* shell;       // by ring
    u64* ambiguous;   // of 0
    u64* crowded;     // of 0: some result has several shells, or several holes
    KILN_HD void operator()(u64 i) const {
        shell[i] = is_shell[i] != 0 ? static_cast<i32>(i) : static_cast<i32>(counts.first_shell[r.result[i]]);
        if (is_shell[i] == 0 && counts.is_ambiguous(r.result[i])) add_to(ambiguous, 1);
        bool const many = counts.shells[r.result[i]] > 1 || counts.holes[r.result[i]] > 1;
        if (many && *crowded == 0) *crowded = 1;
    }
};
// Rings, or lines, as rows of a layer.
struct ring_rows {
    i32* row_of;
    i32* row_first;  // one more
    u8* kind;
    u8* state;
    u64 rings;
    u8 what;  // path_kind
    KILN_HD void operator()(u64 i) const {
        row_first[i] = static_cast<i32>(i);
        if (i < rings) row_of[i] = static_cast<i32>(i), kind[i] = what, state[i] = row_there;
    }
};
// A hole of a result with several shells, of which it lies in the innermost around it. Shells around one place lie one in the other, so the inner one begins
// further to the right or above; where two of them begin at one vertex they go on from it in different directions, since no two of a result run along each other.
struct begun_rings {
    drawn_rings r;
    u64 const* vertex;
    KILN_HD point begin(i32 ring) const { return r.at[vertex[ring]]; }
    KILN_HD point next(i32 ring) const { return r.at[vertex[ring] + 1]; }
    KILN_HD bool is_within(i32 inner, i32 outer) const {
        point const a = begin(inner), b = begin(outer);
        if (a.x != b.x) return a.x > b.x;
        if (a.y != b.y) return a.y > b.y;
        return orient(b, next(outer), next(inner)) > 0;
    }
};
// By an index of all rings, by result.
struct innermost_shells {
    begun_rings of;
    u8 const* is_shell;
    shell_counts counts;
    world_cells g;
    i32* shell;
    KILN_HD void operator()(u64 i) const {
        i32 const hole = static_cast<i32>(i), result = of.r.result[i];
        if (is_shell[i] != 0 || !counts.is_ambiguous(result)) return;
        i32 best = -1;
        locate_left_of(g.of_row_like(hole), of.begin(hole), of.next(hole), [&](i32 ring) {
            if (is_shell[ring] != 0 && of.r.result[ring] == result && (best < 0 || of.is_within(ring, best))) best = ring;
            return false;
        });
        shell[i] = best;
    }
};
// Or, of few such holes, by all edges of their results' shells: a bit for every hole and shell says how often those are crossed on the way to the hole. Rings
// lie in the order of their results, and so do holes.
struct lost_holes {
    drawn_rings r;
    u8 const* is_shell;
    shell_counts counts;
    KILN_HD bool has(u64 ring) const { return is_shell[ring] == 0 && counts.is_ambiguous(r.result[ring]); }
    KILN_HD bool may_be_in(u64 ring) const { return is_shell[ring] != 0 && counts.is_ambiguous(r.result[ring]); }
    KILN_HD u32 words(u64 ring) const { return may_be_in(ring) ? static_cast<u32>((counts.holes[r.result[ring]] + 31) / 32) : 0; }
};
struct count_lost_holes {
    lost_holes of;
    i64* place;  // holes, and words of bits
    KILN_HD void operator()(u64 i) const { place[i] = both_counts(of.has(i) ? 1 : 0, of.words(i)); }
};
struct list_lost_holes {
    lost_holes of;
    i64 const* place;  // summed
    i32* hole;
    u64* first;  // by result, of all bits set
    KILN_HD void operator()(u64 i) const {
        if (!of.has(i)) return;
        u32 const k = high_of(place[i]);
        hole[k] = static_cast<i32>(i);
        lower_to(first + of.r.result[i], k);
    }
};
struct crossed_to_holes {
    lost_holes of;
    begun_rings by;
    i64 const* place;
    i32 const* hole;
    u64 const* first;
    u32* crossed;  // of 0
    KILN_HD void operator()(u64 i) const {
        i32 const ring = of.r.ring_of[i];
        if (static_cast<i32>(i) + 1 == of.r.first[ring + 1] || !of.may_be_in(static_cast<u64>(ring))) return;
        i32 const result = of.r.result[ring];
        i32 const* const own = hole + first[result];
        u32* const bits = crossed + low_of(place[ring]);
        point const p = of.r.at[i], q = of.r.at[i + 1];
        for (u64 k = 0; k < of.counts.holes[result]; ++k)
            if (besides(by.begin(own[k]), by.next(own[k]), 1).is_beyond(p, q)) flip(bits + k / 32, 1U << (k % 32));
    }
};
struct offer_shells {
    lost_holes of;
    begun_rings by;
    i64 const* place;
    u64 const* first;
    u32 const* crossed;
    u32* best;  // by hole, of all bits set
    KILN_HD void operator()(u64 i) const {
        u32 const from = low_of(place[i]), words = low_of(place[i + 1]) - from, shell = static_cast<u32>(i);
        for (u32 w = 0; w < words; ++w)
            for (u32 bits = crossed[from + w]; bits != 0; bits &= bits - 1)
                put_unless(best + first[of.r.result[i]] + 32 * w + lowest_bit(bits), shell,
                           [&](u32 other) { return other != ~0U && by.is_within(static_cast<i32>(other), static_cast<i32>(shell)); });
    }
};
struct take_shells {
    i32 const* hole;
    u32 const* best;
    i32* shell;  // by ring
    KILN_HD void operator()(u64 k) const { shell[hole[k]] = static_cast<i32>(best[k]); }
};

// ---- Arrays ------------------------------------------------------------------------------------------------------------

// Rings of a result by where they are leftmost and lowest: an order that does not depend on what else was drawn. Rings that touch
// each other there go on to different vertices, since no two of a result run along each other.
struct ring_order_keys {
    drawn_rings r;
    u64 const* vertex;
    i32 step;
    i32 const* ring;
    u64* key;
    KILN_HD void operator()(u64 i) const {
        i32 const k = ring[i];
        point const p = r.at[vertex[k]];
        key[i] = step == 0 ? ordered(p.y) : step == 1 ? ordered(p.x) : static_cast<u64>(r.result[k]);
    }
};
struct rank_rings {
    drawn_rings r;
    u64 const* vertex;
    i32 const* ring;  // in order but for those that touch
    u64 rings;
    i32* order;
    i32* rank;  // by ring
    KILN_HD void operator()(u64 i) const {
        i32 const own = ring[i];
        u64 from = i, to = i + 1;
        while (from > 0 && are_together(ring[from - 1], own)) --from;
        while (to < rings && are_together(ring[to], own)) ++to;
        u64 at = from;
        for (u64 k = from; k < to; ++k)
            if (goes_before(ring[k], own)) ++at;
        order[at] = own, rank[own] = static_cast<i32>(at);
    }

private:
    KILN_HD bool are_together(i32 a, i32 b) const { return r.result[a] == r.result[b] && r.at[vertex[a]] == r.at[vertex[b]]; }
    KILN_HD bool goes_before(i32 a, i32 b) const {
        point const p = r.at[vertex[a] + 1], q = r.at[vertex[b] + 1];
        return p.x != q.x ? p.x < q.x : p.y < q.y;
    }
};
// Rings in the order of their polygons, the shell first.
struct ring_keys {
    u8 const* is_shell;
    i32 const* shell;
    i32 const* order;  // of rings, and where each of them is in it; null: as they are
    i32 const* rank;
    u64* key;
    i32* ring;
    KILN_HD void operator()(u64 i) const {
        i32 const k = order != nullptr ? order[i] : static_cast<i32>(i), around = shell[k];
        key[i] = static_cast<u64>(rank != nullptr ? rank[around] : around) << 1 | (is_shell[k] != 0 ? 0 : 1), ring[i] = k;
    }
};
struct ring_sizes {
    drawn_rings r;
    u8 const* is_shell;
    i32 const* ring;
    i32* rank;  // by ring
    i64* size;  // polygons and vertices
    KILN_HD void operator()(u64 i) const {
        i32 const k = ring[i];
        rank[k] = static_cast<i32>(i);
        size[i] = both_counts(is_shell[k], static_cast<u32>(r.first[k + 1] - r.first[k]));
    }
};
struct count_row_polygons {
    drawn_rings r;
    u8 const* is_shell;
    i32 const* row;  // by result; null: results are rows
    u64* polygons;   // by row, of 0
    KILN_HD void operator()(u64 i) const {
        if (is_shell[i] != 0) add_to(polygons + (row != nullptr ? row[r.result[i]] : r.result[i]), 1);
    }
};
struct write_ring_offsets {
    i64 const* size;  // summed, one more
    u64 rings;
    i32* polygon_first;
    i32* ring_first;
    KILN_HD void operator()(u64 i) const {
        ring_first[i] = static_cast<i32>(low_of(size[i]));
        if (i == rings || high_of(size[i + 1]) != high_of(size[i])) polygon_first[high_of(size[i])] = static_cast<i32>(i);
    }
};
struct write_row_offsets {
    i64 const* polygons;  // summed
    i32* row_first;
    KILN_HD void operator()(u64 i) const { row_first[i] = static_cast<i32>(polygons[i]); }
};
// Eight rows: those that are not null, here and there.
struct set_validity {
    u8 const* state;
    u8 const* other;
    u64 rows;
    u8* to;
    KILN_HD void operator()(u64 i) const {
        u32 bits = 0;
        for (u64 k = 0; k < 8 && 8 * i + k < rows; ++k) bits |= static_cast<u32>(is_there(8 * i + k)) << k;
        to[i] = static_cast<u8>(bits);
    }

private:
    KILN_HD bool is_there(u64 row) const { return state[row] != row_null && other[row] != row_null; }
};
// Every ring from its lowest vertex on.
struct write_ring_vertices {
    drawn_rings r;
    u64 const* vertex;
    i32 const* rank;
    i64 const* size;
    double* x;
    double* y;
    KILN_HD void operator()(u64 i) const {
        i32 const ring = r.ring_of[i], first = r.first[ring], n = r.first[ring + 1] - first - 1;
        i32 const lowest = static_cast<i32>(vertex[ring]), k = static_cast<i32>(i) - lowest;
        bool const closes = static_cast<i32>(i) == first + n;
        u64 const to = static_cast<u64>(low_of(size[rank[ring]])) + static_cast<u64>(closes ? n : k < 0 ? k + n : k);
        point const p = r.at[closes ? lowest : static_cast<i32>(i)];
        x[to] = p.x, y[to] = p.y;
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(overlay_result_count, kiln_spatial::count_results, 256, 1)
KILN_KERNEL(overlay_results, kiln_spatial::set_results, 256, 1)
KILN_KERNEL(overlay_end_keys, kiln_spatial::end_keys, 256, 1)
KILN_KERNEL(overlay_links, kiln_spatial::link_pieces, 128, 1)
KILN_KERNEL(overlay_ring_begin, kiln_spatial::begin_rings, 256, 1)
KILN_KERNEL(overlay_ring_double, kiln_spatial::double_rings, 256, 1)
KILN_KERNEL(overlay_rank_begin, kiln_spatial::begin_ranks, 256, 1)
KILN_KERNEL(overlay_rank_double, kiln_spatial::double_ranks, 256, 1)
KILN_KERNEL(overlay_ring_count, kiln_spatial::count_rings, 256, 1)
KILN_KERNEL(overlay_rings, kiln_spatial::set_rings, 256, 1)
KILN_KERNEL(overlay_ring_vertices, kiln_spatial::write_rings, 256, 1)
KILN_KERNEL(overlay_ring_lowest, kiln_spatial::lowest_of_rings, 256, 1)
KILN_KERNEL(overlay_shells, kiln_spatial::find_shells, 128, 1)
KILN_KERNEL(overlay_holes, kiln_spatial::give_holes, 256, 1)
KILN_KERNEL(overlay_ring_rows, kiln_spatial::ring_rows, 256, 1)
KILN_KERNEL(overlay_innermost, kiln_spatial::innermost_shells, 128, 1)
KILN_KERNEL(overlay_lost_hole_count, kiln_spatial::count_lost_holes, 256, 1)
KILN_KERNEL(overlay_lost_holes, kiln_spatial::list_lost_holes, 256, 1)
KILN_KERNEL(overlay_crossed_to_holes, kiln_spatial::crossed_to_holes, 256, 1)
KILN_KERNEL(overlay_offered_shells, kiln_spatial::offer_shells, 128, 1)
KILN_KERNEL(overlay_taken_shells, kiln_spatial::take_shells, 256, 1)
KILN_KERNEL(overlay_ring_order, kiln_spatial::ring_order_keys, 256, 1)
KILN_KERNEL(overlay_ring_ranks, kiln_spatial::rank_rings, 256, 1)
KILN_KERNEL(overlay_ring_keys, kiln_spatial::ring_keys, 256, 1)
KILN_KERNEL(overlay_ring_sizes, kiln_spatial::ring_sizes, 256, 1)
KILN_KERNEL(overlay_row_polygons, kiln_spatial::count_row_polygons, 256, 1)
KILN_KERNEL(overlay_ring_offsets, kiln_spatial::write_ring_offsets, 256, 1)
KILN_KERNEL(overlay_row_offsets, kiln_spatial::write_row_offsets, 256, 1)
KILN_KERNEL(overlay_validity, kiln_spatial::set_validity, 256, 1)
KILN_KERNEL(overlay_output_vertices, kiln_spatial::write_ring_vertices, 256, 1)
