// SPDX-License-Identifier: Apache-2.0
// Several nearest rows for each row of a layer. A thread goes through the tree over the other layer's elements, nearest first, and
// keeps the best rows so far in memory, by distance and then by number. Rows that are as near as the last of them are listed
// afterwards, where they are asked for.
#pragma once

#include "row_search.cuh"
#include "tree.cuh"

namespace kiln_spatial {

// The best rows so far of the one that asks.
struct best_rows {
    double* square;
    i32* row;
    u32 most;  // of them
    u32 count = 0;

    KILN_HD double bound(double limit) const { return count < most ? limit : square[most - 1]; }
    KILN_HD static bool comes_before(double s, i32 r, double t, i32 q) { return s < t || (s == t && r < q); }
    KILN_HD void offer(double s, i32 r) {
        u32 at = 0;  // where it is already, or the place behind all
        while (at < count && row[at] != r) ++at;
        if (at == count) {
            if (count == most) {
                if (!comes_before(s, r, square[most - 1], row[most - 1])) return;
                --at;
            } else {
                ++count;
            }
        } else if (square[at] <= s) {
            return;
        }
        for (; at > 0 && comes_before(s, r, square[at - 1], row[at - 1]); --at) square[at] = square[at - 1], row[at] = row[at - 1];
        square[at] = s, row[at] = r;
    }
};

struct many_question {
    row_search a;         // asks
    box const* around;    // its rows
    i32 const* order;     // to ask in; null: as they are
    tree t;               // over the other layer's elements
    segment const* elements;
    i32 const* rows;      // of the elements, in the order of the leaves
    i64 const* inside_at; // by asking row: where what it lies in, or has inside, begins
    i32 const* inside;
    double limit;         // a square
    u32 most;
    // By asking row, `most` of each; and how many there are.
    double* square;
    i32* row;
    u32* count;

    KILN_HD best_rows list(i32 asking) const {
        u64 const from = static_cast<u64>(asking) * most;
        return {square + from, row + from, most};
    }
    // The square of an element from the asking row, if it is no more than `bound`.
    template <certainty How>
    KILN_HD bool is_near(i32 asking, segment const& s, double bound, double& out, bool& unsure) const {
        double const far = from_bits(u64{0x7ff} << 52), above = bound < far ? next_up(bound) : far;
        out = square_from_row<How>(a, asking, s, above, unsure);
        return out < above;
    }
    // False where a filter failed.
    template <certainty How>
    KILN_HD bool ask(i32 asking) const {
        best_rows best = list(asking);
        bool unsure = false;
        if (a.state[asking] == row_there) {
            for (i64 k = inside_at[asking]; k < inside_at[asking + 1]; ++k) best.offer(0, inside[k]);
            nearest_in_tree(t, t.rough(around[asking]), best.bound(limit), [&](u32 slot, double now) {
                double d;
                if (is_near<How>(asking, elements[slot], now, d, unsure)) best.offer(square_as_reported(d), rows[slot]);
                return best.bound(limit);
            });
        }
        count[asking] = best.count;
        return !unsure;
    }
};
struct find_best_rows {
    many_question q;
    u32* later;
    u32* laters;
    KILN_HD void operator()(u64 k) const {
        i32 const i = q.order != nullptr ? q.order[k] : static_cast<i32>(k);
        append(!q.ask<certainty::filtered>(i), static_cast<u32>(i), later, laters);
    }
};
struct find_best_rows_exactly {
    many_question q;
    u32 const* later;
    u32 const* laters;
    u64 threads;
    KILN_HD void operator()(u64 thread) const {
        for (u64 k = thread; k < *laters; k += threads) q.ask<certainty::exact>(static_cast<i32>(later[k]));
    }
};

// Elements at the square of the last row of a full list, and whatever lies inside where that is 0.
struct equal_rows {
    many_question q;
    KILN_HD bool is_full(i32 asking) const { return q.count[asking] == q.most; }
    KILN_HD double last(i32 asking) const { return q.list(asking).square[q.most - 1]; }
    template <class Found>
    KILN_HD void each(i32 asking, Found found) const {
        if (!is_full(asking)) return;
        double const at = last(asking);
        best_rows const best = q.list(asking);
        u32 const listed = nearer(asking);
        for (i64 k = q.inside_at[asking]; at == 0 && k < q.inside_at[asking + 1]; ++k) found(q.inside[k]);
        nearest_in_tree(q.t, q.t.rough(q.around[asking]), at, [&](u32 slot, double) {
            double d;
            bool unsure = false;
            if (!q.is_near<certainty::exact>(asking, q.elements[slot], at, d, unsure) || square_as_reported(d) != at) return at;
            // Another element of the row may be nearer.
            i32 const row = q.rows[slot];
            u32 k = 0;
            while (k < listed && best.row[k] != row) ++k;
            if (k == listed) found(row);
            return at;
        });
    }
    // Rows of the list that are nearer than its last; all where it is not full.
    KILN_HD u32 nearer(i32 asking) const {
        u32 n = q.count[asking];
        if (!is_full(asking)) return n;
        best_rows const best = q.list(asking);
        while (n > 0 && best.square[n - 1] == best.square[q.most - 1]) --n;
        return n;
    }
};
struct count_equal_rows {
    equal_rows of;
    i64* count;
    KILN_HD void operator()(u64 k) const {
        i32 const i = of.q.order != nullptr ? of.q.order[k] : static_cast<i32>(k);
        i64 n = 0;
        of.each(i, [&](i32) { ++n; });
        count[i] = n;
    }
};
struct list_equal_rows {
    equal_rows of;
    i64 const* place;
    i32* left;
    i32* right;
    KILN_HD void operator()(u64 k) const {
        i32 const i = of.q.order != nullptr ? of.q.order[k] : static_cast<i32>(k);
        i64 at = place[i];
        if (place[i + 1] == at) return;
        of.each(i, [&](i32 row) { left[at] = i, right[at++] = row; });
    }
};
struct count_distinct_pairs {
    i32 const* left;
    i32 const* right;
    i64* count;
    KILN_HD void operator()(u64 i) const {
        count[i] = i == 0 || left[i] != left[i - 1] || right[i] != right[i - 1] ? 1 : 0;
    }
};

// What becomes of the lists. Without equal rows every list is written as it is.
struct near_places {
    equal_rows of;
    i64 const* equal;     // where the equal rows of each row begin; may be null
    i64 const* distinct;  // sums of what is counted of them

    KILN_HD i64 nearer(i32 asking) const { return equal != nullptr ? of.nearer(asking) : of.q.count[asking]; }
    KILN_HD i64 equals(i32 asking) const {
        return equal != nullptr ? distinct[equal[asking + 1]] - distinct[equal[asking]] : 0;
    }
};
struct count_near_rows {
    near_places of;
    i64* count;
    KILN_HD void operator()(u64 i) const {
        count[i] = of.nearer(static_cast<i32>(i)) + of.equals(static_cast<i32>(i));
    }
};
struct list_near_rows {
    near_places of;
    i64 const* place;
    i32* left;
    i32* right;
    double* distance;
    KILN_HD void operator()(u64 i) const {
        i32 const asking = static_cast<i32>(i);
        best_rows const best = of.of.q.list(asking);
        i64 const n = of.nearer(asking);
        for (i64 k = 0; k < n; ++k)
            left[place[i] + k] = asking, right[place[i] + k] = best.row[k], distance[place[i] + k] = root(best.square[k]);
    }
};
// By equal row, of which each once.
struct list_last_rows {
    near_places of;
    i32 const* equal_left;
    i32 const* equal_right;
    i64 const* place;
    i32* left;
    i32* right;
    double* distance;
    KILN_HD void operator()(u64 i) const {
        if (of.distinct[i + 1] == of.distinct[i]) return;
        i32 const asking = equal_left[i];
        i64 const at = place[asking] + of.nearer(asking) + of.distinct[i] - of.distinct[of.equal[asking]];
        left[at] = asking, right[at] = equal_right[i], distance[at] = root(of.of.last(asking));
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(nearest_many_find, kiln_spatial::find_best_rows, 128, 4)
KILN_KERNEL(nearest_many_exact, kiln_spatial::find_best_rows_exactly, 128, 4)
KILN_KERNEL(nearest_many_equal_count, kiln_spatial::count_equal_rows, 128, 4)
KILN_KERNEL(nearest_many_equal_list, kiln_spatial::list_equal_rows, 128, 4)
KILN_KERNEL(nearest_many_distinct, kiln_spatial::count_distinct_pairs, 256, 1)
KILN_KERNEL(nearest_many_count, kiln_spatial::count_near_rows, 256, 1)
KILN_KERNEL(nearest_many_list, kiln_spatial::list_near_rows, 256, 1)
KILN_KERNEL(nearest_many_last, kiln_spatial::list_last_rows, 256, 1)
