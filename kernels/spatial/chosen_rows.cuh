// SPDX-License-Identifier: Apache-2.0
// Layers made of the rows of others: without some of them, of two end to end, of those that were chosen. What is known of a layer's vertices is taken
// along, and what is found out of chosen ones is told to the whole. Chunks (src/spatial/overlay/row_chunks.hpp) are made of this.
#pragma once

#include "grid.cuh"
#include "layer.cuh"

namespace kiln_spatial {

// ---- Without some, and of two ------------------------------------------------------------------------------------------

struct leave_rows_out {
    layer l;
    i32 const* world;  // by row
    u8* kind;
    KILN_HD void operator()(u64 i) const {
        if (world[l.row_of[i]] < 0) kind[i] = no_path;
    }
};

// The same of kinds that are written anew.
struct keep_rows {
    layer l;
    i32 const* world;
    u8* kind;
    KILN_HD void operator()(u64 i) const { kind[i] = world[l.row_of[i]] < 0 ? u8{no_path} : l.kind[i]; }
};

// Of two layers, the rows of one and then those of the other.
struct join_rows {
    layer a, b;
    u8 const* a_state;
    u8 const* b_state;
    i32* row_first;  // one more than rows
    u8* state;
    KILN_HD void operator()(u64 i) const {
        bool const is_a = i < static_cast<u64>(a.rows);
        i32 const k = static_cast<i32>(i) - (is_a ? 0 : a.rows);
        row_first[i] = is_a ? a.row_first[k] : b.row_first[k] + a.paths;
        if (is_a || k < b.rows) state[i] = is_a ? a_state[k] : b_state[k];
    }
};
struct join_paths {
    layer a, b;
    i32* path_first;  // one more than paths
    i32* row_of;
    u8* kind;
    KILN_HD void operator()(u64 i) const {
        bool const is_a = i < static_cast<u64>(a.paths);
        i32 const k = static_cast<i32>(i) - (is_a ? 0 : a.paths);
        path_first[i] = is_a ? a.path_first[k] : b.path_first[k] + a.vertices;
        if (!is_a && k == b.paths) return;
        row_of[i] = is_a ? a.row_of[k] : b.row_of[k] + a.rows;
        kind[i] = is_a ? a.kind[k] : b.kind[k];
    }
};
struct join_vertices {
    layer a, b;
    point* at;
    i32* path_of;
    KILN_HD void operator()(u64 i) const {
        bool const is_a = i < static_cast<u64>(a.vertices);
        i32 const k = static_cast<i32>(i) - (is_a ? 0 : a.vertices);
        at[i] = is_a ? a.at[k] : b.at[k], path_of[i] = is_a ? a.path_of[k] : b.path_of[k] + a.paths;
    }
};

// ---- Chosen ------------------------------------------------------------------------------------------------------------

// Chosen rows as a layer of their own, in which row i is rows[i] of the whole one.
struct chosen_rows {
    layer whole;
    i32 const* rows;
    i64* place;  // by chosen row, one more: paths and vertices before it

    KILN_HD i32 first_path(i32 row) const { return whole.row_first[row]; }
    KILN_HD i32 first_vertex(i32 row) const { return whole.path_first[first_path(row)]; }
    // From a vertex of the chosen rows to that of the whole layer.
    KILN_HD i32 shift(u64 i) const { return first_vertex(rows[i]) - static_cast<i32>(low_of(place[i])); }
};
struct count_chosen {
    chosen_rows of;
    KILN_HD void operator()(u64 i) const {
        i32 const row = of.rows[i];
        of.place[i] = both_counts(static_cast<u32>(of.first_path(row + 1) - of.first_path(row)),
                                  static_cast<u32>(of.first_vertex(row + 1) - of.first_vertex(row)));
    }
};
// One more than there are chosen rows.
struct choose_rows {
    chosen_rows of;
    u64 chosen;
    u8 const* state;
    signed char const* dimension;  // null: nobody asked
    i32* row_first;
    u8* state_to;
    signed char* dimension_to;
    i32* shift;
    KILN_HD void operator()(u64 i) const {
        row_first[i] = static_cast<i32>(high_of(of.place[i]));
        if (i == chosen) return;
        i32 const row = of.rows[i];
        state_to[i] = state[row], shift[i] = of.shift(i);
        if (dimension != nullptr) dimension_to[i] = dimension[row];
    }
};
// One more than they have paths.
struct choose_paths {
    chosen_rows of;
    u64 chosen, paths;
    i32* path_first;
    i32* row_of;
    u8* kind;
    KILN_HD void operator()(u64 i) const {
        if (i == paths) {
            path_first[i] = static_cast<i32>(low_of(of.place[chosen]));
            return;
        }
        u64 const r = last_not_above(chosen, static_cast<u32>(i), [&](u64 k) { return high_of(of.place[k]); });
        i32 const path = of.first_path(of.rows[r]) + static_cast<i32>(i) - static_cast<i32>(high_of(of.place[r]));
        path_first[i] = of.whole.path_first[path] - of.shift(r);
        row_of[i] = static_cast<i32>(r), kind[i] = of.whole.kind[path];
    }
};
struct choose_vertices {
    chosen_rows of;
    u64 chosen;
    point* at;
    i32* path_of;
    KILN_HD void operator()(u64 i) const {
        u64 const r = last_not_above(chosen, static_cast<u32>(i), [&](u64 k) { return low_of(of.place[k]); });
        i32 const v = static_cast<i32>(i) + of.shift(r);
        at[i] = of.whole.at[v];
        path_of[i] = of.whole.path_of[v] - of.first_path(of.rows[r]) + static_cast<i32>(high_of(of.place[r]));
    }
};
// What is known of vertices of the whole layer, and what was found out of those of chosen rows.
struct choose_asking {
    layer l;  // of the chosen rows
    i32 const* shift;
    u32 const* asks;  // of the whole layer
    u32* to;
    KILN_HD void operator()(u64 i) const { to[i] = asks[static_cast<i32>(i) + shift[row_at(l, static_cast<i32>(i))]]; }
};
struct tell_moved {
    layer l;
    i32 const* shift;
    u32 const* moved;
    u32* to;  // of the whole layer
    KILN_HD void operator()(u64 i) const {
        if (moved[i] != 0) or_into(to + static_cast<i32>(i) + shift[row_at(l, static_cast<i32>(i))], moved[i]);
    }
};
struct tell_segments {
    layer l;
    i32 const* shift;
    i32* segment_of;  // of the chosen rows, then of the whole layer
    KILN_HD void operator()(u64 i) const { segment_of[i] += shift[row_at(l, segment_of[i])]; }
};
// Rows with a segment that asks; and how many vertices come before each row, one more.
struct find_asking_rows {
    layer l;
    u32 const* asks;
    u32* rows;  // of 0
    KILN_HD void operator()(u64 i) const {
        if (asks[i] != 0) or_into(rows + row_at(l, static_cast<i32>(i)), 1);
    }
};
struct first_vertices {
    layer l;
    i32* first;
    KILN_HD void operator()(u64 i) const { first[i] = l.path_first[l.row_first[i]]; }
};

// Numbers of chosen rows become those of all; -1 stays.
struct number_in_whole {
    i32* what;
    i32 const* rows;
    KILN_HD void operator()(u64 i) const {
        if (what[i] >= 0) what[i] = rows[what[i]];
    }
};

// A chunk has rows of its own, rows that these are held against, and rows that are there for their segments only. What rows of
// two chunks have with each other is one chunk's to find. A row that is held against many in turn is held against itself only
// once.
enum row_role : u8 { only_there = 0, held_against = 1, own_row = 2, own_row_again = 3 };
struct row_roles {
    u8 const* role;  // by row; null: all are own ones
    KILN_HD bool is_own(i32 row) const { return role == nullptr || role[row] >= own_row; }
    KILN_HD bool is_pair(i32 one, i32 other) const {
        if (role == nullptr) return true;
        u8 const a = role[one], b = role[other], lesser = a < b ? a : b, greater = a < b ? b : a;
        return lesser != only_there && lesser != own_row_again && greater >= own_row;
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(overlay_left_out, kiln_spatial::leave_rows_out, 256, 1)
KILN_KERNEL(overlay_kept_rows, kiln_spatial::keep_rows, 256, 1)
KILN_KERNEL(overlay_join_rows, kiln_spatial::join_rows, 256, 1)
KILN_KERNEL(overlay_join_paths, kiln_spatial::join_paths, 256, 1)
KILN_KERNEL(overlay_join_vertices, kiln_spatial::join_vertices, 256, 1)
KILN_KERNEL(overlay_chosen_count, kiln_spatial::count_chosen, 256, 1)
KILN_KERNEL(overlay_chosen_rows, kiln_spatial::choose_rows, 256, 1)
KILN_KERNEL(overlay_chosen_paths, kiln_spatial::choose_paths, 256, 1)
KILN_KERNEL(overlay_chosen_vertices, kiln_spatial::choose_vertices, 256, 1)
KILN_KERNEL(overlay_chosen_asking, kiln_spatial::choose_asking, 256, 1)
KILN_KERNEL(overlay_tell_moved, kiln_spatial::tell_moved, 256, 1)
KILN_KERNEL(overlay_tell_segments, kiln_spatial::tell_segments, 256, 1)
KILN_KERNEL(overlay_asking_rows, kiln_spatial::find_asking_rows, 256, 1)
KILN_KERNEL(overlay_first_vertices, kiln_spatial::first_vertices, 256, 1)
KILN_KERNEL(overlay_numbered, kiln_spatial::number_in_whole, 256, 1)
