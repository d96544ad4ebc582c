// SPDX-License-Identifier: Apache-2.0
// Points that stand for the paths of a layer, to be located in another: the first vertex of every path, and behind them the ends of
// lines. What is not asked is NaN, which is nowhere. Many are located by an index of the areas (cells.cuh). Few are not worth one:
// they are held against every edge of the rows whose boxes they lie in, an edge at a time.
#pragma once

#include "cells.cuh"
#include "grid.cuh"
#include "layer.cuh"

namespace kiln_spatial {

// The vertex that question i asks for; -1: none.
KILN_HD i32 vertex_of_question(layer const& l, u64 i) {
    u64 const paths = static_cast<u64>(l.paths);
    if (i < paths) return l.kind[i] != no_path ? l.path_first[i] : -1;
    i32 const end = static_cast<i32>(i - paths);
    return l.is_end[end] != 0 && l.member[l.group_first[end]] == end ? end : -1;
}
struct path_questions {
    layer l;
    double* x;
    double* y;
    KILN_HD void operator()(u64 i) const {
        i32 const v = vertex_of_question(l, i);
        double const nan = from_bits(~u64{0});
        x[i] = v >= 0 ? l.at[v].x : nan, y[i] = v >= 0 ? l.at[v].y : nan;
    }
};
// Pairs of a question and a row become pairs of rows.
struct rows_of_questions {
    layer l;
    i32* question;
    KILN_HD void operator()(u64 i) const {
        i32 const k = question[i];
        question[i] = k < l.paths ? l.row_of[k] : row_at(l, k - l.paths);
    }
};

// ---- A few, edge by edge -------------------------------------------------------------------------------------------------

struct question_boxes {
    layer l;
    box* to;
    KILN_HD void operator()(u64 i) const {
        i32 const v = vertex_of_question(l, i);
        point const p = v >= 0 ? l.at[v] : point{0, 0};
        to[i] = v >= 0 ? box{p.x, p.y, p.x, p.y} : box{1, 1, -1, -1};
    }
};

// A question and a row whose box it lies in.
struct candidate_rows {
    layer areas;
    i32 const* question;
    i32 const* row;
};
// Vertices of the row.
struct candidate_work {
    candidate_rows of;
    i64* count;
    KILN_HD void operator()(u64 i) const {
        layer const& l = of.areas;
        i32 const r = of.row[i];
        count[i] = l.path_first[l.row_first[r + 1]] - l.path_first[l.row_first[r]];
    }
};

enum : u32 { mark_odd = 1, mark_on = 2 };
// What the edge from a to b does to a point: it is on it, or a ray from it to the right meets it. Heights are half open, so a ring
// is met an odd number of times from inside, whatever the ray meets. tie::down moves the point by -(e, e^2), e infinitesimal, tie::up the other way.
template <tie Mode>
KILN_HD u32 mark_of_edge(point a, point b, point p) {
    bool const a_above = Mode == tie::down ? a.y >= p.y : a.y > p.y, b_above = Mode == tie::down ? b.y >= p.y : b.y > p.y;
    if (a_above == b_above) {
        bool const on = a.y == p.y && (a.x == p.x || (b.y == p.y && p.x >= least(a.x, b.x) && p.x <= most(a.x, b.x)));
        return on ? u32{mark_on} : 0U;
    }
    if (most(a.x, b.x) < p.x) return 0;
    if (least(a.x, b.x) > p.x) return mark_odd;
    int const side = a_above ? orient(b, a, p) : orient(a, b, p);
    if (side == 0) return Mode == tie::down ? u32{mark_on} | u32{mark_odd} : u32{mark_on};
    return side > 0 ? u32{mark_odd} : 0U;
}
// Vertices of the candidates' rows, one row behind the other: an item takes some that follow each other.
enum : u64 { marks_of_item = 4 };
template <tie Mode>
struct mark_candidates {
    candidate_rows of;
    box const* asked;
    i64 const* first;  // summed work
    u64 candidates, work;
    double share;  // candidates for a vertex
    u32* mark;     // of 0
    KILN_HD void operator()(u64 i) const {
        u64 at = i * marks_of_item;
        u64 const last = at + marks_of_item < work ? at + marks_of_item : work;
        u64 k = last_not_above_near(evenly(at, share), candidates, static_cast<i64>(at), [this](u64 c) { return first[c]; });
        for (; at < last; ++at) {
            while (static_cast<u64>(first[k + 1]) <= at) ++k;
            take(k, static_cast<i32>(at - static_cast<u64>(first[k])));
        }
    }

private:
    KILN_HD void take(u64 k, i32 number) const {
        layer const& l = of.areas;
        i32 const v = l.path_first[l.row_first[of.row[k]]] + number, path = l.path_of[v];
        if (v + 1 >= l.path_first[path + 1] || !is_ring(l.kind[path])) return;
        box const q = asked[of.question[k]];
        u32 const m = mark_of_edge<Mode>(l.at[v], l.at[v + 1], {q.min_x, q.min_y});
        if ((m & mark_odd) != 0) flip(mark + k, mark_odd);
        if ((m & mark_on) != 0) or_into(mark + k, mark_on);
    }
};
// Those that stand as wanted: inside (1), on the boundary (2).
struct count_marked {
    u32 const* mark;
    u32 wanted;
    i64* count;
    KILN_HD void operator()(u64 i) const {
        u32 const standing = (mark[i] & mark_on) != 0 ? 2U : mark[i] & mark_odd;
        count[i] = (standing & wanted) != 0 ? 1 : 0;
    }
};
struct list_marked {
    candidate_rows of;
    i64 const* place;
    i32* left;
    i32* right;
    KILN_HD void operator()(u64 i) const {
        i64 const at = place[i];
        if (place[i + 1] != at) left[at] = of.question[i], right[at] = of.row[i];
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(path_point_boxes, kiln_spatial::question_boxes, 256, 1)
KILN_KERNEL(path_candidate_work, kiln_spatial::candidate_work, 256, 1)
KILN_KERNEL(path_candidate_marks, kiln_spatial::mark_candidates<kiln_spatial::tie::up>, 256, 1)
KILN_KERNEL(path_candidate_marks_down, kiln_spatial::mark_candidates<kiln_spatial::tie::down>, 256, 1)
KILN_KERNEL(path_marked_count, kiln_spatial::count_marked, 256, 1)
KILN_KERNEL(path_marked, kiln_spatial::list_marked, 256, 1)
KILN_KERNEL(path_points, kiln_spatial::path_questions, 256, 1)
KILN_KERNEL(path_point_rows, kiln_spatial::rows_of_questions, 256, 1)
