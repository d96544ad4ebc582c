// SPDX-License-Identifier: Apache-2.0
// Areas, lengths and centroids of rows as sums in a fixed order: of runs of 64 vertices, each from its first to its last, then of the
// runs. Threads take runs, the host takes them one after the other, and both give the same bits.
#pragma once

#include "layer.cuh"

namespace kiln_spatial {

enum : i32 { run_vertices = 64 };

struct moments {
    double weight, x, y;
};
KILN_HD moments sum_of(moments const& a, moments const& b) {
    return {add(a.weight, b.weight), add(a.x, b.x), add(a.y, b.y)};
}

// Twice the signed area of a ring and six times its first moments, around its first vertex: small numbers stay small.
KILN_HD moments ring_run(layer const& l, i32 path, i32 from) {
    i32 const last = l.path_first[path + 1] - 1, end = last - from < run_vertices ? last : from + run_vertices;
    point const o = l.at[l.path_first[path]];
    moments out{0, 0, 0};
    for (i32 v = from; v < end; ++v) {
        double const ax = sub(l.at[v].x, o.x), ay = sub(l.at[v].y, o.y), bx = sub(l.at[v + 1].x, o.x), by = sub(l.at[v + 1].y, o.y);
        double const cross = sub(mul(ax, by), mul(ay, bx));
        out = sum_of(out, {cross, mul(cross, add(ax, bx)), mul(cross, add(ay, by))});
    }
    return out;
}

struct row_range {
    i32 first, last;  // vertices
};
KILN_HD row_range vertices_of_row(layer const& l, i32 row) {
    return {l.path_first[l.row_first[row]], l.path_first[l.row_first[row + 1]]};
}
KILN_HD point origin_of(layer const& l, i32 row) { return l.at[l.path_first[l.row_first[row]]]; }

KILN_HD double length_between(point a, point b) {
    double const x = sub(b.x, a.x), y = sub(b.y, a.y);
    return root(add(mul(x, x), mul(y, y)));
}
// Lengths, and twice their first moments around the row's first vertex.
KILN_HD moments line_run(layer const& l, i32 row, i32 from) {
    i32 const last = vertices_of_row(l, row).last, end = last - from < run_vertices ? last : from + run_vertices;
    point const o = origin_of(l, row);
    moments out{0, 0, 0};
    for (i32 v = from; v < end; ++v) {
        if (l.kind[l.path_of[v]] == no_path || !is_segment(l, v)) continue;
        double const d = length_between(l.at[v], l.at[v + 1]);
        double const x = add(sub(l.at[v].x, o.x), sub(l.at[v + 1].x, o.x)), y = add(sub(l.at[v].y, o.y), sub(l.at[v + 1].y, o.y));
        out = sum_of(out, {d, mul(d, x), mul(d, y)});
    }
    return out;
}
// How many vertices, and their sum around the row's first one.
KILN_HD moments point_run(layer const& l, i32 row, i32 from) {
    i32 const last = vertices_of_row(l, row).last, end = last - from < run_vertices ? last : from + run_vertices;
    point const o = origin_of(l, row);
    moments out{0, 0, 0};
    for (i32 v = from; v < end; ++v)
        if (l.kind[l.path_of[v]] != no_path) out = sum_of(out, {1, sub(l.at[v].x, o.x), sub(l.at[v].y, o.y)});
    return out;
}

// `run(path, from)` gives the sums of a run of a ring, `run(row, from)` of a row.
template <class Run>
KILN_HD moments sums_of_ring(layer const& l, i32 path, Run run) {
    moments out{0, 0, 0};
    for (i32 v = l.path_first[path]; v + 1 < l.path_first[path + 1]; v += run_vertices) out = sum_of(out, run(path, v));
    // As if it ran counter-clockwise; holes count down.
    double const sign = (out.weight < 0) != (l.kind[path] == reversed_ring) ? -1 : 1;
    return {sign * out.weight, sign * out.x, sign * out.y};
}
template <class Run>
KILN_HD moments sums_of_row(layer const& l, i32 row, Run run) {
    row_range const all = vertices_of_row(l, row);
    moments out{0, 0, 0};
    for (i32 v = all.first; v < all.last; v += run_vertices) out = sum_of(out, run(row, v));
    return out;
}

template <class RingRun>
KILN_HD double area_of_row(layer const& l, i32 row, RingRun ring) {
    double out = 0;
    for (i32 p = l.row_first[row]; p < l.row_first[row + 1]; ++p)
        if (is_ring(l.kind[p])) out = add(out, mul(sums_of_ring(l, p, ring).weight, 0.5));
    return out;
}
// Of the highest dimension with any extent.
template <class RingRun, class LineRun, class PointRun>
KILN_HD point centroid_of_row(layer const& l, i32 row, RingRun ring, LineRun line, PointRun points) {
    point const o = origin_of(l, row);  // one origin, so that sums of paths fit together
    moments all{0, 0, 0};
    for (i32 p = l.row_first[row]; p < l.row_first[row + 1]; ++p) {
        if (!is_ring(l.kind[p])) continue;
        moments const s = sums_of_ring(l, p, ring);
        point const own = l.at[l.path_first[p]];
        double const weight = mul(3, s.weight);
        all = sum_of(all, {weight, add(s.x, mul(weight, sub(own.x, o.x))), add(s.y, mul(weight, sub(own.y, o.y)))});
    }
    if (all.weight == 0) {
        all = sums_of_row(l, row, line);
        all.weight = mul(2, all.weight);
    }
    if (all.weight == 0) all = sums_of_row(l, row, points);
    return {add(o.x, quotient(all.x, all.weight)), add(o.y, quotient(all.y, all.weight))};
}

}  // namespace kiln_spatial
