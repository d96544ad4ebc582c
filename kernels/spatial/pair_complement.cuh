// SPDX-License-Identifier: Apache-2.0
// Pairs of rows that are not in a list: what is disjoint, from what meets. Null rows are in neither.
#pragma once

#include "grid.cuh"
#include "layer.cuh"

namespace kiln_spatial {

struct count_rows_there {
    u8 const* state;
    i64* count;
    KILN_HD void operator()(u64 i) const { count[i] = state[i] != row_null ? 1 : 0; }
};

struct met_rows {
    u8 const* left_state;
    u8 const* right_state;
    i64 const* at;     // by left row, where the right rows that it meets begin
    i32 const* right;  // in order
    i64 const* rank;   // of right rows among those that are not null; one more than rows
    u64 rights;

    // How many of the right rows that the left one meets come before this one.
    KILN_HD i64 before(i32 left, i32 row) const {
        i64 low = at[left], high = at[left + 1];
        while (low < high) {
            i64 const middle = low + (high - low) / 2;
            if (right[middle] < row) low = middle + 1;
            else high = middle;
        }
        return low - at[left];
    }
    KILN_HD bool meets(i32 left, i32 row, i64 met_before) const {
        i64 const k = at[left] + met_before;
        return k < at[left + 1] && right[k] == row;
    }
};
struct count_apart {
    met_rows of;
    i64* count;
    KILN_HD void operator()(u64 i) const {
        count[i] = of.left_state[i] == row_null ? 0 : of.rank[of.rights] - (of.at[i + 1] - of.at[i]);
    }
};
// Of some left rows: every one with every right row.
struct list_apart {
    met_rows of;
    i64 const* place;  // of the first of them
    i32 first;
    i32* left;
    i32* right;
    KILN_HD void operator()(u64 item) const {
        i32 const i = static_cast<i32>(item / of.rights), j = static_cast<i32>(item % of.rights), row = first + i;
        if (of.left_state[row] == row_null || of.right_state[j] == row_null) return;
        i64 const met = of.before(row, j);
        if (of.meets(row, j, met)) return;
        i64 const at = place[i] - place[0] + of.rank[j] - met;
        left[at] = row, right[at] = j;
    }
};
// The lowest right row that is apart, or -1.
struct first_apart {
    met_rows of;
    i32* to;
    KILN_HD void operator()(u64 i) const {
        to[i] = -1;
        if (of.left_state[i] == row_null) return;
        i64 k = of.at[i];
        for (u64 j = 0; j < of.rights; ++j) {
            if (k < of.at[i + 1] && of.right[k] == static_cast<i32>(j)) {
                ++k;
            } else if (of.right_state[j] != row_null) {
                to[i] = static_cast<i32>(j);
                return;
            }
        }
    }
};
// By right row, of how many left ones meet it.
struct count_left_apart {
    u8 const* right_state;
    i64 const* there;  // left rows that are not null
    i64* count;
    KILN_HD void operator()(u64 j) const { count[j] = right_state[j] == row_null ? 0 : *there - count[j]; }
};

}  // namespace kiln_spatial

KILN_KERNEL(apart_rows_there, kiln_spatial::count_rows_there, 256, 1)
KILN_KERNEL(apart_count, kiln_spatial::count_apart, 256, 1)
KILN_KERNEL(apart_list, kiln_spatial::list_apart, 256, 1)
KILN_KERNEL(apart_first, kiln_spatial::first_apart, 256, 1)
KILN_KERNEL(apart_histogram, kiln_spatial::count_left_apart, 256, 1)
