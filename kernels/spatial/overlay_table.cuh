// SPDX-License-Identifier: Apache-2.0
// Areas of what rows of two layers have in common, without an overlay (after Franklin, Kankanhalli and Narayanaswami 1994). The area is half the sum of cross products along its
// edges; so an edge of a counts with the part of it that lies in a row of b, and the other way round. That part is [the edge ends in the row] - sum of s t over its
// crossings with the row, t being where along the edge and s 1 where it enters, -1 where it leaves: one number for every end and two for every crossing, in any order.
//
// The left layer is moved by (e, e^2), e infinitesimal. Then no vertex lies on the other layer, nothing runs along it, and crossings are all there is; areas
// are the limits. Only ties are decided otherwise. What had nothing but an edge in common before has an infinitely narrow sliver then: such pairs are found out by asking
// what lies beside edges where they begin and end, and left out. Rows must be valid: on one side of a ring is its row, on the other is not, all along it.
#pragma once

#include "cells.cuh"
#include "grid.cuh"
#include "moved_crossings.cuh"
#include "overlay_views.cuh"

namespace kiln_spatial {

// Segments that cross (overlay_crossings.cuh), and some that turned out not to.
struct crossing_pairs {
    i32 const* left;
    i32 const* right;
    u8 const* how;
};

// ---- Vertices in rows of the other layer -------------------------------------------------------------------------------

// Which rows a vertex is in changes along a ring at crossings alone. So the first vertex of each ring is located, and the others follow by sums along the vertices of all
// rings: of what changes there, a row in the high bits and 1 in the low ones. Where the low ones sum up to 1 the high ones are the row.
enum : u32 { bits_of_count = 24 };
KILN_HD u64 in_row(i32 row) { return static_cast<u64>(row) << bits_of_count | 1; }
KILN_HD u32 rows_of_sum(u64 sum) { return static_cast<u32>(sum & ((1U << bits_of_count) - 1)); }

// A ring begins and ends in a row.
KILN_HD void add_ring(layer const& l, i32 path, i32 row, u64* change) {
    add_to(change + l.path_first[path], in_row(row)), add_to(change + l.path_first[path + 1], ~in_row(row) + 1);
}
// Behind a crossing, which way both segments go.
struct add_crossings {
    layer a, b;
    crossing_pairs of;
    u64* a_change;  // by vertex, one more; of 0
    u64* b_change;
    u64* any_tie;  // of 0: a crossing that is none without the move
    KILN_HD void operator()(u64 i) const {
        u8 const how = of.how[i];
        if (how == crossed_not) return;
        if ((how & crossed_surely) == 0) *any_tie = 1;
        i32 const v = of.left[i], w = of.right[i];
        bool const to_left = (how & crossed_left) != 0, a_is_left = a.kind[a.path_of[v]] == ring_path, b_is_left = b.kind[b.path_of[w]] == ring_path;
        u64 const in_a = in_row(row_at(a, v)), in_b = in_row(row_at(b, w));
        add_to(a_change + v + 1, to_left == b_is_left ? in_b : ~in_b + 1);
        add_to(b_change + w + 1, to_left != a_is_left ? in_a : ~in_a + 1);
    }
};
// As cell_walk, of a point that is moved: `on` are those that it is in then and touched before.
template <tie Mode, certainty How>
struct moved_walk : cell_walk<Mode, How> {
    KILN_HD place where() const { return !this->inside ? place::outside : this->touches ? place::on : place::inside; }
};
// found(row, is_inside) for every row of the other layer that a vertex is in once it is moved: inside it before, not on its edge.
template <tie Mode, class Found>
KILN_HD void rows_around(cell_grid const& g, point p, Found found) {
    locate_by(
        g, p, [&](point corner, bool inside) { return moved_walk<Mode, certainty::exact>{{p, corner, inside}}; },
        [&](i32 row, place where) { return found(row, where == place::inside), false; });
}

// Where rings begin, by an index of the other layer, or of what was held against the edges of rows (path_points.cuh).
template <tie Mode>
struct locate_begins {
    layer l;
    cell_grid other;
    u64* change;
    u32* is_inside;  // by path, of 0: its first vertex lies in a row, on no edge of it
    KILN_HD void operator()(u64 path) const {
        if (!is_ring(l.kind[path])) return;
        rows_around<Mode>(other, l.at[l.path_first[path]], [&](i32 row, bool inside) {
            add_ring(l, static_cast<i32>(path), row, change);
            if (inside) is_inside[path] = 1;
        });
    }
};
// Of both layers at once: rings are few, and a walk through cells is long.
struct locate_both_begins {
    locate_begins<tie::up> left;
    locate_begins<tie::down> right;
    u64 lefts;
    KILN_HD void operator()(u64 i) const {
        if (i < lefts) left(i);
        else right(i - lefts);
    }
};
struct take_marked_begins {
    layer l;
    i32 const* path;
    i32 const* row;
    u32 const* mark;
    u64* change;
    u32* is_inside;
    KILN_HD void operator()(u64 i) const {
        if (!is_ring(l.kind[path[i]]) || (mark[i] & 1) == 0) return;
        add_ring(l, path[i], row[i], change);
        if ((mark[i] & 2) == 0) is_inside[path[i]] = 1;
    }
};

// Of a vertex: one row, as row << 1 | whether it is certainly inside, not on its edge; several, as in_several_rows | how many; or in_no_row.
enum : u32 { in_several_rows = 1U << 31, in_no_row = ~0U };
KILN_HD bool is_in_several(u32 hit) { return hit != in_no_row && (hit & in_several_rows) != 0; }
KILN_HD u32 rows_of(u32 hit) { return is_in_several(hit) ? hit & ~u32{in_several_rows} : hit == in_no_row ? 0 : 1; }
// Of vertices where edges end: the first of a ring is its last as well.
struct set_ends {
    layer l;
    u64 const* before;  // summed changes
    u32 const* is_inside;
    u32* hit;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i), path = l.path_of[v];
        u64 const sum = before[i + 1];
        u32 const rows = rows_of_sum(sum);
        hit[i] = in_no_row;
        if (rows == 0 || !is_ring(l.kind[path]) || v == l.path_first[path]) return;
        u32 const sure = is_segment(l, v) ? 0 : is_inside[path];
        hit[i] = rows == 1 ? static_cast<u32>(sum >> bits_of_count) << 1 | sure : in_several_rows | rows;
    }
};

// ---- Shares ------------------------------------------------------------------------------------------------------------

// A share of a pair's area: edges of the left or the right layer that follow each other and end in the pair's other row, or a crossing.
enum class share_kind : u32 { left_edges, right_edges, crossing };
struct share {
    u32 first;  // the vertex where the first edge ends; a crossing's number
    u32 facts;  // kind << 8 | edges << 2 | enters << 1 | is_sure
    KILN_HD share_kind kind() const { return static_cast<share_kind>(facts >> 8); }
    KILN_HD i32 edges() const { return static_cast<i32>(facts >> 2 & 63); }
    KILN_HD double sign() const { return (facts & 2) != 0 ? 1 : -1; }  // of a crossing: which way a goes
    KILN_HD bool is_sure() const { return (facts & 1) != 0; }          // the rows certainly have more than edges in common
};

constexpr i32 edges_together = 16;

template <tie Mode>
struct edge_runs {
    layer l;
    u32 const* hit;

    // put(row, row of the other layer, share) for the runs among so many vertices; crowd(vertex, rows) for one that is in several rows.
    template <class Put, class Crowd>
    KILN_HD void each(u64 i, Put put, Crowd crowd) const {
        i32 const first = static_cast<i32>(i) * edges_together;
        i32 const end = first + edges_together < l.vertices ? first + edges_together : l.vertices;
        i32 from = first, path = -1;
        u32 open = in_no_row, sure = 0;
        for (i32 v = first; v < end; ++v) {
            u32 const h = hit[v];
            bool const goes_on = open != in_no_row && rows_of(h) == 1 && h >> 1 == open && l.path_of[v] == path;
            if (goes_on) {
                sure |= h & 1;
                continue;
            }
            if (open != in_no_row) put(l.row_of[path], static_cast<i32>(open), edges(from, v, sure));
            open = in_no_row;
            if (h == in_no_row) continue;
            if (is_in_several(h)) {
                crowd(v, rows_of(h));
                continue;
            }
            path = l.path_of[v], open = h >> 1, from = v, sure = h & 1;
        }
        if (open != in_no_row) put(l.row_of[path], static_cast<i32>(open), edges(from, end, sure));
    }
    KILN_HD static share edges(i32 from, i32 to, u32 sure) {
        share_kind const kind = Mode == tie::up ? share_kind::left_edges : share_kind::right_edges;
        return {static_cast<u32>(from), static_cast<u32>(kind) << 8 | static_cast<u32>(to - from) << 2 | sure};
    }
};
template <tie Mode>
struct count_edge_runs {
    edge_runs<Mode> of;
    i64* count;
    u64* crowds;  // of 0: vertices in several rows
    KILN_HD void operator()(u64 i) const {
        i64 n = 0;
        u64 in_crowds = 0;
        of.each(i, [&](i32, i32, share) { ++n; }, [&](i32, u32 rows) { n += rows, ++in_crowds; });
        count[i] = n;
        if (in_crowds > 0) add_to(crowds, in_crowds);
    }
};

struct share_list {
    u64* key;  // left row << bits | right row
    i32* number;
    share* shares;
    i32 bits;
    KILN_HD void put(u64 at, i32 left, i32 right, share const& s) const {
        key[at] = static_cast<u64>(left) << bits | static_cast<u64>(right);
        number[at] = static_cast<i32>(at), shares[at] = s;
    }
    // Of a vertex of the left layer (tie::up), or of the right one.
    template <tie Mode>
    KILN_HD void put(u64 at, i32 own, i32 other, share const& s) const {
        Mode == tie::up ? put(at, own, other, s) : put(at, other, own, s);
    }
};
// Places of vertices in several rows are left free.
template <tie Mode>
struct list_edge_runs {
    edge_runs<Mode> of;
    i64 const* place;
    share_list to;
    KILN_HD void operator()(u64 i) const {
        u64 at = static_cast<u64>(place[i]);
        if (static_cast<u64>(place[i + 1]) == at) return;
        of.each(i, [&](i32 own, i32 other, share const& s) { to.put<Mode>(at++, own, other, s); }, [&](i32, u32 rows) { at += rows; });
    }
};
// By vertex: each is asked again, which one thread for all that follow each other would be long at.
template <tie Mode>
struct list_crowds {
    edge_runs<Mode> of;
    cell_grid other;
    i64 const* place;
    share_list to;
    KILN_HD void operator()(u64 i) const {
        if (!is_in_several(of.hit[i])) return;
        i32 const v = static_cast<i32>(i), own = row_at(of.l, v);
        u64 at = static_cast<u64>(place[i / edges_together]), mine = 0;
        of.each(i / edges_together, [&](i32, i32, share const&) { ++at; }, [&](i32 w, u32 rows) { mine = w == v ? at : mine, at += rows; });
        rows_around<Mode>(other, of.l.at[v], [&](i32 row, bool is_inside) {
            to.put<Mode>(mine++, own, row, edge_runs<Mode>::edges(v, v + 1, is_inside ? 1 : 0));
        });
    }
};

// In another order, which number has.
struct reorder_crossings {
    crossing_pairs from;
    i32 const* number;
    i32* left;
    i32* right;
    u8* how;
    KILN_HD void operator()(u64 i) const {
        i32 const k = number[i];
        left[i] = from.left[k], right[i] = from.right[k], how[i] = from.how[k];
    }
};
struct count_crossings {
    u8 const* how;
    i64* count;
    KILN_HD void operator()(u64 i) const { count[i] = how[i] != crossed_not ? 1 : 0; }
};
struct list_crossings {
    layer a, b;
    crossing_pairs of;
    i64 const* place;
    share_list to;
    KILN_HD void operator()(u64 i) const {
        u8 const how = of.how[i];
        if (how == crossed_not) return;
        u32 const facts = static_cast<u32>(share_kind::crossing) << 8 | ((how & crossed_left) != 0 ? 2U : 0U) | ((how & crossed_surely) != 0 ? 1U : 0U);
        to.put(static_cast<u64>(place[i]), row_at(a, of.left[i]), row_at(b, of.right[i]), {static_cast<u32>(i), facts});
    }
};

// ---- Pairs -------------------------------------------------------------------------------------------------------------

struct count_pairs {
    u64 const* key;  // sorted
    i64* is_new;
    KILN_HD void operator()(u64 i) const { is_new[i] = i == 0 || key[i] != key[i - 1] ? 1 : 0; }
};
struct sorted_shares {
    layer a, b;
    crossing_pairs of;
    share const* shares;
    i32 const* number;
    i64 const* pairs_before;  // one more than shares
    KILN_HD share at(u64 k) const { return shares[number[k]]; }
    KILN_HD u64 pair(u64 k) const { return static_cast<u64>(pairs_before[k + 1]) - 1; }
};
struct set_pairs {
    sorted_shares s;
    u64 const* key;
    u64 count;
    i32 bits;
    i32* left;
    i32* right;
    i32* first;   // one more than pairs
    u32* is_real;  // of 0
    KILN_HD void operator()(u64 k) const {
        u64 const pair = s.pair(k);
        if (static_cast<u64>(s.pairs_before[k]) == pair) {
            left[pair] = static_cast<i32>(key[k] >> bits);
            right[pair] = static_cast<i32>(key[k] & ((u64{1} << bits) - 1));
            first[pair] = static_cast<i32>(k);
        }
        if (k + 1 == count) first[pair + 1] = static_cast<i32>(count);
        if (s.at(k).is_sure()) or_into(is_real + pair, 1);
    }
};

// Shares of pairs that are not sure yet, mostly few: listed, so that many threads look at each.
struct list_unsure {
    sorted_shares s;
    i32 const* first;
    u32 const* is_real;
    bool only_first;  // of each pair a few: most that are real are found there
    u32* list;
    u32* listed;
    KILN_HD void operator()(u64 k) const {
        u64 const pair = s.pair(k);
        append(is_real[pair] == 0 && (!only_first || k < static_cast<u64>(first[pair]) + 2), static_cast<u32>(k), list, listed);
    }
};
// Whether what lies beside an edge of one row of a pair, in it, where the edge begins or ends, lies in the other. Where rows have more than edges in common, one of
// the edges in their shares says so. As many threads as the launch has share what is listed.
constexpr u64 looks_together = 8;
struct look_beside {
    sorted_shares s;
    cell_grid a_cells, b_cells;
    i32 const* left;
    i32 const* right;
    u32* is_real;
    u32 const* list;
    u32 const* listed;
    u64 threads;
    KILN_HD void operator()(u64 thread) const {
        u64 const end = *listed * looks_together;
        for (u64 i = thread; i < end; i += threads) {
            u64 const k = list[i / looks_together], pair = s.pair(k);
            share const e = s.at(k);
            i32 const looks = e.kind() == share_kind::crossing ? 4 : 2 * e.edges();
            for (i32 look = static_cast<i32>(i % looks_together); look < looks && is_real[pair] == 0; look += looks_together)
                if (finds(e, look, pair)) or_into(is_real + pair, 1);
        }
    }

private:
    KILN_HD static bool lies_beside(point at, point to, int turn, cell_grid const& g, i32 row) {
        bool found = false;
        locate_beside(g, at, to, turn, [&](i32 other) { return found = other == row; });
        return found;
    }
    KILN_HD static int turn_of(layer const& l, i32 v) { return l.kind[l.path_of[v]] == ring_path ? 1 : -1; }
    // Of a crossing each end of both edges, else each vertex both ways.
    KILN_HD bool finds(share const& e, i32 look, u64 pair) const {
        bool const is_crossing = e.kind() == share_kind::crossing, is_left = is_crossing ? look < 2 : e.kind() == share_kind::left_edges;
        layer const& l = is_left ? s.a : s.b;
        bool const forwards = (look & 1) == 0;
        i32 v = static_cast<i32>(e.first) + look / 2, to = v - 1;
        if (is_crossing) {
            v = (is_left ? s.of.left : s.of.right)[e.first], to = v + 1;
            if (!forwards) to = v, ++v;
        } else if (forwards) {
            i32 const path = l.path_of[v];
            to = v + 1 < l.path_first[path + 1] ? v + 1 : l.path_first[path] + 1;
        }
        int const turn = turn_of(l, v);
        return lies_beside(l.at[v], l.at[to], forwards ? turn : -turn, is_left ? b_cells : a_cells, (is_left ? right : left)[pair]);
    }
};

// ---- Areas -------------------------------------------------------------------------------------------------------------

// Twice the area of each share, around a point of its pair's first one: small numbers stay small.
struct share_areas {
    sorted_shares s;
    i32 const* first;
    double* twice;
    KILN_HD void operator()(u64 k) const {
        share const e = s.at(k);
        point const o = origin(s.at(static_cast<u64>(first[s.pair(k)])));
        twice[k] = e.kind() == share_kind::crossing ? of_crossing(e, o) : of_edges(e.kind() == share_kind::left_edges ? s.a : s.b, e, o);
    }

private:
    KILN_HD point origin(share const& e) const {
        if (e.kind() == share_kind::crossing) return s.a.at[s.of.left[e.first]];
        return (e.kind() == share_kind::left_edges ? s.a : s.b).at[e.first];
    }
    KILN_HD static double cross(point p, point q, point o) {
        return sub(mul(sub(p.x, o.x), sub(q.y, o.y)), mul(sub(p.y, o.y), sub(q.x, o.x)));
    }
    KILN_HD static double side_of(layer const& l, i32 v) { return l.kind[l.path_of[v]] == ring_path ? 1 : -1; }
    KILN_HD static double of_edges(layer const& l, share const& e, point o) {
        i32 const from = static_cast<i32>(e.first);
        double sum = 0;
        point a = l.at[from - 1];
        for (i32 v = from; v < from + e.edges(); ++v) {
            point const b = l.at[v];
            sum = add(sum, cross(a, b, o));
            a = b;
        }
        return mul(side_of(l, from), sum);
    }
    // Both parameters are of one point: nearly parallel segments would leave a gap between two. Of such, rounding may put it anywhere along the first; where that is beyond
    // the second, it is the second's end.
    KILN_HD double of_crossing(share const& e, point o) const {
        i32 const v = s.of.left[e.first], w = s.of.right[e.first];
        point const p = s.a.at[v], q = s.a.at[v + 1], r = s.b.at[w], t = s.b.at[w + 1];
        double const x = sub(t.x, r.x), y = sub(t.y, r.y);
        double const at_p = sub(mul(x, sub(p.y, r.y)), mul(y, sub(p.x, r.x))), at_q = sub(mul(x, sub(q.y, r.y)), mul(y, sub(q.x, r.x)));
        double along = at_p != at_q ? within_unit(quotient(at_p, sub(at_p, at_q))) : 0.5;
        double const other = nearest_on(r, t, {add(p.x, mul(along, sub(q.x, p.x))), add(p.y, mul(along, sub(q.y, p.y)))});
        if (other == 0 || other == 1) along = nearest_on(p, q, other == 0 ? r : t);
        double const sign = mul(e.sign(), mul(side_of(s.a, v), side_of(s.b, w)));
        return mul(sign, sub(mul(other, cross(r, t, o)), mul(along, cross(p, q, o))));
    }
    KILN_HD static double nearest_on(point from, point to, point c) {
        double const x = sub(to.x, from.x), y = sub(to.y, from.y);
        return within_unit(quotient(add(mul(sub(c.x, from.x), x), mul(sub(c.y, from.y), y)), add(mul(x, x), mul(y, y))));
    }
    KILN_HD static double within_unit(double v) { return v > 0 ? v < 1 ? v : 1 : 0; }
};

// Sums in a fixed order, of which long ones are made of sums of so many.
constexpr u64 shares_together = 32;
struct sum_shares {
    double const* twice;
    u64 count;
    double* sum;
    KILN_HD void operator()(u64 i) const {
        u64 const end = (i + 1) * shares_together < count ? (i + 1) * shares_together : count;
        double out = 0;
        for (u64 k = i * shares_together; k < end; ++k) out = add(out, twice[k]);
        sum[i] = out;
    }
};
struct count_real_pairs {
    u32 const* is_real;
    i64* count;
    KILN_HD void operator()(u64 i) const { count[i] = is_real[i] != 0 ? 1 : 0; }
};
// Rounding may leave a little below 0 of what has hardly anything in common.
struct write_pairs {
    i32 const* left;
    i32 const* right;
    i32 const* first;
    double const* twice;
    double const* sum;
    i64 const* place;
    i32* to_left;
    i32* to_right;
    double* area;
    KILN_HD void operator()(u64 i) const {
        i64 const at = place[i];
        if (place[i + 1] == at) return;
        u64 const end = static_cast<u64>(first[i + 1]);
        double out = 0;
        for (u64 k = static_cast<u64>(first[i]); k < end;) {
            bool const are_summed = k % shares_together == 0 && k + shares_together <= end;
            out = add(out, are_summed ? sum[k / shares_together] : twice[k]);
            k += are_summed ? shares_together : 1;
        }
        to_left[at] = left[i], to_right[at] = right[i], area[at] = out > 0 ? mul(out, 0.5) : 0;
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(table_changes, kiln_spatial::add_crossings, 256, 1)
KILN_KERNEL(table_begins, kiln_spatial::locate_both_begins, 128, 1)
KILN_KERNEL(table_marked_begins, kiln_spatial::take_marked_begins, 256, 1)
KILN_KERNEL(table_ends, kiln_spatial::set_ends, 256, 1)
KILN_KERNEL(table_left_run_count, kiln_spatial::count_edge_runs<kiln_spatial::tie::up>, 128, 1)
KILN_KERNEL(table_right_run_count, kiln_spatial::count_edge_runs<kiln_spatial::tie::down>, 128, 1)
KILN_KERNEL(table_left_runs, kiln_spatial::list_edge_runs<kiln_spatial::tie::up>, 128, 4)
KILN_KERNEL(table_right_runs, kiln_spatial::list_edge_runs<kiln_spatial::tie::down>, 128, 4)
KILN_KERNEL(table_left_crowds, kiln_spatial::list_crowds<kiln_spatial::tie::up>, 128, 1)
KILN_KERNEL(table_right_crowds, kiln_spatial::list_crowds<kiln_spatial::tie::down>, 128, 1)
KILN_KERNEL(table_crossing_order, kiln_spatial::reorder_crossings, 256, 1)
KILN_KERNEL(table_crossing_count, kiln_spatial::count_crossings, 256, 1)
KILN_KERNEL(table_crossings, kiln_spatial::list_crossings, 256, 1)
KILN_KERNEL(table_pair_count, kiln_spatial::count_pairs, 256, 1)
KILN_KERNEL(table_pairs, kiln_spatial::set_pairs, 256, 1)
KILN_KERNEL(table_unsure, kiln_spatial::list_unsure, 256, 1)
KILN_KERNEL(table_beside, kiln_spatial::look_beside, 128, 1)
KILN_KERNEL(table_share_areas, kiln_spatial::share_areas, 128, 1)
KILN_KERNEL(table_share_sums, kiln_spatial::sum_shares, 256, 1)
KILN_KERNEL(table_real_count, kiln_spatial::count_real_pairs, 256, 1)
KILN_KERNEL(table_areas, kiln_spatial::write_pairs, 128, 1)
