// SPDX-License-Identifier: Apache-2.0
// Lines and rings with fewer vertices, by Douglas and Peucker's rule: between two vertices that stay, the one that is farthest from the
// segment of these two stays too, if it is farther than the tolerance; else none does. All such spans of all paths are gone through together, one
// level at a time: of the vertices whose fate was open some levels ago, so that a deep path costs those that are done nothing.
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
struct count_open {
    u32 const* fate;
    i32 const* among;  // null: all
    i64* count;
    KILN_HD void operator()(u64 i) const { count[i] = fate[among == nullptr ? i : static_cast<u64>(among[i])] == fate_open ? 1 : 0; }
};
struct list_open {
    i32 const* among;
    i64 const* place;  // summed counts
    i32* open;
    KILN_HD void operator()(u64 i) const {
        if (place[i + 1] != place[i]) open[place[i]] = among == nullptr ? static_cast<i32>(i) : among[i];
    }
};
// The farthest of each span, and of those that are as far the first: kept at the span's first vertex.
struct clear_farthest {
    vertex_spans of;
    i32 const* open;
    u64* square;
    u64* vertex;
    KILN_HD void operator()(u64 i) const {
        i32 const low = of.low[open[i]];
        square[low] = ~u64{0}, vertex[low] = ~u64{0};
    }
};
struct find_farthest {
    layer l;
    vertex_spans of;
    i32 const* open;
    i32 step;
    u64* square;  // turned round, of all bits set
    u64* vertex;  // of all bits set
    KILN_HD void operator()(u64 i) const {
        i32 const v = open[i];
        if (of.fate[v] != fate_open) return;
        i32 const low = of.low[v];
        u64 const own = ~bits_of(square_from_segment(l.at[v], l.at[low], l.at[of.high[v]]));
        if (step == 0) lower_to(square + low, own);
        else if (square[low] == own) lower_to(vertex + low, static_cast<u64>(v));
    }
};
struct split_spans {
    vertex_spans of;
    i32 const* open;
    u64 const* square;
    u64 const* vertex;
    double most;      // the tolerance squared
    u32 const* must;  // by first vertex: spans that are split however near theirs are; null: none
    KILN_HD void operator()(u64 i) const {
        i32 const v = open[i];
        if (of.fate[v] != fate_open) return;
        i32 const low = of.low[v];
        if (!(from_bits(~square[low]) > most) && (must == nullptr || must[low] == 0)) {
            of.fate[v] = fate_goes;
            return;
        }
        i32 const farthest = static_cast<i32>(vertex[low]);
        if (v == farthest) of.fate[v] = fate_stays;
        else (v < farthest ? of.high : of.low)[v] = farthest;
    }
};
struct count_staying {
    u32 const* fate;
    i64* count;
    KILN_HD void operator()(u64 i) const { count[i] = fate[i] == fate_stays ? 1 : 0; }
};

}  // namespace kiln_spatial

KILN_KERNEL(simplify_begin, kiln_spatial::begin_spans, 256, 1)
KILN_KERNEL(simplify_open_count, kiln_spatial::count_open, 256, 1)
KILN_KERNEL(simplify_open, kiln_spatial::list_open, 256, 1)
KILN_KERNEL(simplify_clear, kiln_spatial::clear_farthest, 256, 1)
KILN_KERNEL(simplify_farthest, kiln_spatial::find_farthest, 256, 1)
KILN_KERNEL(simplify_split, kiln_spatial::split_spans, 256, 1)
KILN_KERNEL(simplify_staying, kiln_spatial::count_staying, 256, 1)
