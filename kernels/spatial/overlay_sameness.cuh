// SPDX-License-Identifier: Apache-2.0
// Whether rows of areas are the same but for where their rings begin, which way they run and in which order they come: by numbers that are
// sums, of rings over their segments, of polygons over their rings, of rows over their polygons. Two arrangements of the same segments, one as
// it came and one as it was drawn anew, have the same numbers where nothing was wrong. (That others do, too, by chance, happens once in 2^64.)
// But a crossing that is rounded onto a vertex is one that both have: whether segments of a row cross is told by who divides them.
#pragma once

#include "grid.cuh"
#include "hash.cuh"
#include "layer.cuh"

namespace kiln_spatial {

struct sum_ring_marks {
    layer l;
    u64* ring;  // by path, of 0
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i), path = l.path_of[v];
        if (!is_ring(l.kind[path]) || !is_segment(l, v)) return;
        add_to(ring + path, mixed_bits(hash_of(l.at[v], 0) + hash_of(l.at[v + 1], 0)));
    }
};
struct count_polygons {
    layer l;
    i64* count;  // by path
    KILN_HD void operator()(u64 i) const { count[i] = l.kind[i] == ring_path ? 1 : 0; }
};
struct sum_polygon_marks {
    layer l;
    u64 const* ring;
    i64 const* number;  // summed: rings up to this one are of one polygon less
    u64* polygon;       // one more than polygons, of 0
    KILN_HD void operator()(u64 i) const {
        // A hole whose shell has shrunk to a point is of no polygon, and not of the last one of a row before.
        if (!is_ring(l.kind[i]) || number[i + 1] == number[l.row_first[l.row_of[i]]]) return;
        add_to(polygon + number[i + 1], mixed_bits(ring[i] + (l.kind[i] == ring_path ? 1 : 2)));
    }
};
struct sum_row_marks {
    layer l;
    u64 const* polygon;
    i64 const* number;
    u64* row;  // of 0
    KILN_HD void operator()(u64 i) const {
        if (l.kind[i] == ring_path) add_to(row + l.row_of[i], mixed_bits(polygon[number[i + 1]]));
    }
};

// Of a distinct layer: rows with a line or ring that has shrunk to a point, and those that are areas.
struct find_shrunk_rows {
    layer l;
    signed char const* dimension;  // by row
    u32* shrunk;                   // of 0
    KILN_HD void operator()(u64 i) const {
        if (l.kind[i] == point_path && dimension[l.row_of[i]] > 0) or_into(shrunk + l.row_of[i], 1);
    }
};
struct number_areas {
    signed char const* dimension;
    i32* number;  // negative where a row is none
    KILN_HD void operator()(u64 i) const { number[i] = dimension[i] == 2 ? static_cast<i32>(i) : -1; }
};
struct compare_rows {
    u64 const* one;
    u64 const* other;
    u32 const* shrunk;
    u32 const* crossed;
    u8* same;
    KILN_HD void operator()(u64 i) const { same[i] = one[i] == other[i] && shrunk[i] == 0 && crossed[i] == 0 ? 1 : 0; }
};

}  // namespace kiln_spatial

KILN_KERNEL(overlay_ring_marks, kiln_spatial::sum_ring_marks, 256, 1)
KILN_KERNEL(overlay_polygon_count, kiln_spatial::count_polygons, 256, 1)
KILN_KERNEL(overlay_polygon_marks, kiln_spatial::sum_polygon_marks, 256, 1)
KILN_KERNEL(overlay_row_marks, kiln_spatial::sum_row_marks, 256, 1)
KILN_KERNEL(overlay_shrunk_rows, kiln_spatial::find_shrunk_rows, 256, 1)
KILN_KERNEL(overlay_number_areas, kiln_spatial::number_areas, 256, 1)
KILN_KERNEL(overlay_rows_compare, kiln_spatial::compare_rows, 256, 1)
