// SPDX-License-Identifier: Apache-2.0
// Lines and rings with fewer vertices, by Douglas and Peucker's rule: between two vertices that stay, the one that is farthest from the
// segment of these two stays too, if it is farther than the tolerance; else none does. All such spans of all paths are gone through together, one
// level at a time.
#pragma once

#include "distance.cuh"
#include "grid.cuh"
#include "layer.cuh"
#include "vertex_spans.cuh"

namespace kiln_spatial {

struct begin_spans {
    layer l;
    vertex_spans of;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i), path = l.path_of[v];
        i32 const first = l.path_first[path], last = l.path_first[path + 1] - 1;
        of.low[i] = first, of.high[i] = last;
        bool const is_line = l.kind[path] == line_path || is_ring(l.kind[path]);
        of.fate[i] = !is_line || v == first || v == last ? fate_stays : fate_open;
    }
};
// The farthest of each span, and of those that are as far the first: kept at the span's first vertex.
struct find_farthest {
    layer l;
    vertex_spans of;
    i32 step;
    u64* square;  // turned round, of all bits set
    u64* vertex;  // of all bits set
    KILN_HD void operator()(u64 i) const {
        if (of.fate[i] != fate_open) return;
        i32 const low = of.low[i];
        u64 const own = ~bits_of(square_from_segment(l.at[i], l.at[low], l.at[of.high[i]]));
        if (step == 0) lower_to(square + low, own);
        else if (square[low] == own) lower_to(vertex + low, i);
    }
};
struct split_spans {
    vertex_spans of;
    u64 const* square;
    u64 const* vertex;
    double most;      // the tolerance squared
    u32 const* must;  // by first vertex: spans that are split however near theirs are; null: none
    u64* open;        // of 0: those whose fate is open still
    KILN_HD void operator()(u64 i) const {
        if (of.fate[i] != fate_open) return;
        i32 const low = of.low[i], v = static_cast<i32>(i);
        if (!(from_bits(~square[low]) > most) && (must == nullptr || must[low] == 0)) {
            of.fate[i] = fate_goes;
            return;
        }
        i32 const farthest = static_cast<i32>(vertex[low]);
        if (v == farthest) {
            of.fate[i] = fate_stays;
            return;
        }
        (v < farthest ? of.high : of.low)[i] = farthest;
        add_to(open, 1);
    }
};
struct count_staying {
    u32 const* fate;
    i64* count;
    KILN_HD void operator()(u64 i) const { count[i] = fate[i] == fate_stays ? 1 : 0; }
};

}  // namespace kiln_spatial

KILN_KERNEL(simplify_begin, kiln_spatial::begin_spans, 256, 1)
KILN_KERNEL(simplify_farthest, kiln_spatial::find_farthest, 256, 1)
KILN_KERNEL(simplify_split, kiln_spatial::split_spans, 256, 1)
KILN_KERNEL(simplify_staying, kiln_spatial::count_staying, 256, 1)
