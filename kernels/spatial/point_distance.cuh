// SPDX-License-Identifier: Apache-2.0
// The nearest rows of a layer. Distances are those of distance.cuh, bit for bit. First the least square of every row that asks,
// then the rows at that distance: several where they are equally near.
#pragma once

#include "cells.cuh"
#include "distance.cuh"
#include "grid.cuh"
#include "tree.cuh"

namespace kiln_spatial {

// Whether a point is certainly farther from a segment than `best`, a square: told by products alone, without dividing and without
// asking whether it lies on the segment. What this leaves out would be left out by square_between_elements, however that rounds.
KILN_HD bool is_beyond(point p, segment const& s, double best) {
    double const dx = sub(s.b.x, s.a.x), dy = sub(s.b.y, s.a.y), length = add(mul(dx, dx), mul(dy, dy));
    double const ux = sub(p.x, s.a.x), uy = sub(p.y, s.a.y), from_a = add(mul(ux, ux), mul(uy, uy));
    double const from_b = square_between(p, s.b), along = add(mul(ux, dx), mul(uy, dy));
    // Roundings are below 2^-50 of |u||d|: what is 2^-48 of it away from an end or from the line is so without them.
    double const error = 0x1p-96, ends = least(from_a, from_b);
    if (!(ends > best && ends > mul(length, error))) return false;
    if (!(along > 0 && along < length)) return true;
    // The distance, aside / length * aside, is rounded twice, and so is the product: four times their error is added, and the least normal
    // number for those too small to have one. Infinite and undefined products say no.
    double const aside = sub(mul(uy, dx), mul(ux, dy)), square = mul(aside, aside), least_normal = 0x1p-1022;
    return square > add(mul(mul(best, length), 1 + 0x1p-50), least_normal) && square > mul(mul(from_a, length), error);
}

// As square_between_elements of a point: whether it is 0 is left open where a filter cannot tell.
KILN_HD double quick_square(point p, segment const& s, bool& unsure) {
    if (s.a == s.b) {
        double const out = square_between(s.a, p);
        return out > 0 || p == s.a ? out : from_bits(1);
    }
    if (in_box_of(s.a, s.b, p)) {
        guess const g = orient_filter(s.a, s.b, p);
        if (p == s.a || p == s.b || (g.certain && g.side == 0)) return 0;
        unsure |= !g.certain;
    }
    double const out = least(square_from_segment(p, s.a, s.b), least(square_between(s.a, p), square_between(s.b, p)));
    return out > 0 ? out : from_bits(1);
}

struct nearest_question {
    layer a;  // asks
    layer b;
    tree t;
    segment const* elements;  // of b, in the order of the leaves
    double most;              // a square

    KILN_HD i32 row_of_slot(u32 slot) const { return row_at(b, static_cast<i32>(t.item[slot])); }
    KILN_HD rough_box around(segment const& s) const {
        return t.rough({least(s.a.x, s.b.x), least(s.a.y, s.b.y), most_of(s.a.x, s.b.x), most_of(s.a.y, s.b.y)});
    }

private:
    KILN_HD static double most_of(double p, double q) { return p > q ? p : q; }
};

// The least square of each row, as an ordered() number; rows with several elements gather. Points by filters, and again exactly
// where those fail.
struct find_least_squares {
    nearest_question q;
    u64* least_square;  // by row of a: ordered(most)
    u32* later;
    u32* laters;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i);
        bool unsure = false;
        if (is_element(q.a, v)) {
            segment const s{q.a.at[v], element_end(q.a, v)};
            u64* const own = least_square + row_at(q.a, v);
            if (s.a == s.b) {
                double best = unordered(*own);
                nearest_in_tree(q.t, q.around(s), best, [&](u32 slot, double) {
                    segment const e = q.elements[slot];
                    if (!is_beyond(s.a, e, best)) best = least(best, quick_square(s.a, e, unsure));
                    return best;
                });
                if (!unsure) lower_to(own, ordered(best));
            } else {
                unsure = true;
            }
        }
        append(unsure, static_cast<u32>(i), later, laters);
    }
};
struct find_least_squares_exactly {
    nearest_question q;
    u64* least_square;
    u32 const* later;
    u32 const* laters;
    u64 threads;
    KILN_HD void operator()(u64 thread) const {
        for (u64 k = thread; k < *laters; k += threads) {
            i32 const v = static_cast<i32>(later[k]);
            segment const s{q.a.at[v], element_end(q.a, v)};
            u64* const own = least_square + row_at(q.a, v);
            double best = unordered(*own);
            nearest_in_tree(q.t, q.around(s), best, [&](u32 slot, double) {
                best = least(best, square_between_elements(s.a, s.b, q.elements[slot].a, q.elements[slot].b));
                return best;
            });
            lower_to(own, ordered(best));
        }
    }
};

struct set_squares {
    u64* to;
    u64 value;
    KILN_HD void operator()(u64 i) const { to[i] = value; }
};
// Rows one of which has a path inside an area of the other are at no distance.
struct set_no_distance {
    i32 const* row;
    u64* least_square;
    KILN_HD void operator()(u64 i) const { lower_to(least_square + row[i], ordered(0)); }
};

// The elements at a row's least square: counted, then listed.
struct nearest_elements {
    nearest_question q;
    u64 const* least_square;
    template <class Found>
    KILN_HD void each(u64 i, Found found) const {
        i32 const v = static_cast<i32>(i);
        if (!is_element(q.a, v)) return;
        segment const s{q.a.at[v], element_end(q.a, v)};
        double const best = square_as_reported(unordered(least_square[row_at(q.a, v)]));
        nearest_in_tree(q.t, q.around(s), best, [&](u32 slot, double) {
            if (square_between_elements(s.a, s.b, q.elements[slot].a, q.elements[slot].b) <= best) found(slot);
            return best;
        });
    }
};
struct count_nearest {
    nearest_elements of;
    i64* count;
    KILN_HD void operator()(u64 i) const {
        i64 n = 0;
        of.each(i, [&](u32) { ++n; });
        count[i] = n;
    }
};
struct list_nearest {
    nearest_elements of;
    i64 const* place;
    i32* left;
    i32* right;
    KILN_HD void operator()(u64 i) const {
        u64 at = static_cast<u64>(place[i]);
        if (static_cast<u64>(place[i + 1]) == at) return;
        i32 const row = row_at(of.q.a, static_cast<i32>(i));
        of.each(i, [&](u32 slot) { left[at] = row, right[at++] = of.q.row_of_slot(slot); });
    }
};
// One nearest row for each of many points: the first of those that are equally near, or -1. Asked in any order.
struct nearest_rows {
    tree t;
    segment const* elements;
    i32 const* rows;  // in the order of the leaves
    point_rows p;
    i32 const* order;  // may be null
    double most;
    i32* row;
    double* distance;
    u32* later;
    u32* laters;
    u64* without;  // how many found nothing, of 0

    // False where a filter could not tell whether a point lies on an element.
    template <certainty How>
    KILN_HD bool ask(u64 i) const {
        point const at = p.at(i);
        bool unsure = false;
        u32 const nobody = ~0U;
        double best = most;  // of all that are equally near, the least square
        u32 found = nobody;  // of these the first row's
        if (at != at) {  // null or empty
            row[i] = -1;
            add_to(without, 1);
            return true;
        }
        nearest_in_tree(t, t.rough({at.x, at.y, at.x, at.y}), most, [&](u32 slot, double) {
            segment const s = elements[slot];
            double const bound = least(most, with_ties(best));  // worked out again: a register more would be one in memory
            if (is_beyond(at, s, bound)) return bound;
            double d;
            if constexpr (How == certainty::exact) d = square_between_elements(at, at, s.a, s.b);
            else d = quick_square(at, s, unsure);
            if (!(d <= bound)) return bound;
            if (found != nobody && is_same_distance(d, best)) {
                found = rows[slot] < rows[found] ? slot : found;
                best = least(best, d);
            } else if (d < best || found == nobody) {
                found = slot, best = d;
            }
            return least(most, with_ties(best));
        });
        if (How == certainty::filtered && unsure) return false;
        row[i] = found != nobody ? rows[found] : -1, distance[i] = root(best);
        if (found == nobody) add_to(without, 1);
        return true;
    }
    KILN_HD void operator()(u64 k) const {
        u64 const i = order != nullptr ? static_cast<u64>(order[k]) : k;
        append(!ask<certainty::filtered>(i), static_cast<u32>(i), later, laters);
    }
};
struct nearest_rows_exactly {
    nearest_rows of;
    u64 threads;
    KILN_HD void operator()(u64 thread) const {
        for (u64 k = thread; k < *of.laters; k += threads) of.ask<certainty::exact>(of.later[k]);
    }
};
struct rows_in_order {
    layer l;
    u32 const* item;
    i32* row;
    KILN_HD void operator()(u64 i) const { row[i] = row_at(l, static_cast<i32>(item[i])); }
};
struct point_keys {
    point_rows p;
    u64 const* around;
    i32* key;
    i32* item;
    KILN_HD void operator()(u64 i) const {
        point const at = p.at(i);
        key[i] = static_cast<i32>(box_key(frame_of_extent(around), {at.x, at.y, at.x, at.y}) ^ 0x80000000U);
        item[i] = static_cast<i32>(i);
    }
};
struct number_rows {
    i32* row;
    KILN_HD void operator()(u64 i) const { row[i] = static_cast<i32>(i); }
};
// Points that found something.
struct count_found {
    i32 const* row;
    i64* count;
    KILN_HD void operator()(u64 i) const { count[i] = row[i] >= 0 ? 1 : 0; }
};
struct list_found {
    i32 const* row;
    double const* distance;
    i64 const* place;
    i32* left;
    i32* right;
    double* to;
    KILN_HD void operator()(u64 i) const {
        if (row[i] < 0) return;
        i64 const at = place[i];
        left[at] = static_cast<i32>(i), right[at] = row[i], to[at] = distance[i];
    }
};
// Pairs that are in order, each once.
struct count_distinct {
    i32 const* left;
    i32 const* right;
    i64* count;
    KILN_HD void operator()(u64 i) const {
        count[i] = i == 0 || left[i] != left[i - 1] || right[i] != right[i - 1] ? 1 : 0;
    }
};
// With the distance of the left row; with one for each left row if asked.
struct count_firsts {
    i32 const* left;
    i64* count;
    KILN_HD void operator()(u64 i) const { count[i] = i == 0 || left[i] != left[i - 1] ? 1 : 0; }
};
struct list_distinct {
    i32 const* left;
    i32 const* right;
    i64 const* place;
    u64 const* least_square;
    i32* to_left;
    i32* to_right;
    double* distance;
    KILN_HD void operator()(u64 i) const {
        if (place[i + 1] == place[i]) return;
        i64 const at = place[i];
        to_left[at] = left[i], to_right[at] = right[i], distance[at] = root(unordered(least_square[left[i]]));
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(nearest_least, kiln_spatial::find_least_squares, 128, 1)
KILN_KERNEL(nearest_least_exact, kiln_spatial::find_least_squares_exactly, 128, 1)
KILN_KERNEL(nearest_inside, kiln_spatial::set_no_distance, 256, 1)
KILN_KERNEL(nearest_count, kiln_spatial::count_nearest, 128, 1)
KILN_KERNEL(nearest_scatter, kiln_spatial::list_nearest, 128, 1)
KILN_KERNEL(nearest_first, kiln_spatial::nearest_rows, 128, 9)
KILN_KERNEL(nearest_first_exact, kiln_spatial::nearest_rows_exactly, 128, 1)
KILN_KERNEL(nearest_rows_in_order, kiln_spatial::rows_in_order, 256, 1)
KILN_KERNEL(nearest_point_keys, kiln_spatial::point_keys, 256, 1)
KILN_KERNEL(nearest_numbers, kiln_spatial::number_rows, 256, 1)
KILN_KERNEL(nearest_found_count, kiln_spatial::count_found, 256, 1)
KILN_KERNEL(nearest_found, kiln_spatial::list_found, 256, 1)
KILN_KERNEL(nearest_distinct_count, kiln_spatial::count_distinct, 256, 1)
KILN_KERNEL(nearest_firsts_count, kiln_spatial::count_firsts, 256, 1)
KILN_KERNEL(nearest_distinct, kiln_spatial::list_distinct, 256, 1)
KILN_KERNEL(nearest_begin, kiln_spatial::set_squares, 256, 1)
