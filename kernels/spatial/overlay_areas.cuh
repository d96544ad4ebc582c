// SPDX-License-Identifier: Apache-2.0
// Areas in common, row by row. Of rows with few vertices they need no predicate, no crossing, no ring. What lies below an edge counts down where the edge
// runs to the right and up where it runs to the left, if interiors are on the left; so the area two rows have in common is a sum over
// pairs of edges of what lies below both. Each is an integral of the lower of two lines. Sums are in a fixed order: of an edge of the left row
// with all edges of the right one, then of the edges.
#pragma once

#include "grid.cuh"
#include "layer.cuh"
#include "row_sums.cuh"

namespace kiln_spatial {

// By path: 1 where its row's interior is on its left, -1 where it is on its right, 0 where it is no ring.
struct find_path_signs {
    layer l;
    double* sign;
    KILN_HD void operator()(u64 i) const {
        i32 const path = static_cast<i32>(i);
        if (!is_ring(l.kind[path])) {
            sign[i] = 0;
            return;
        }
        double twice = 0;
        for (i32 v = l.path_first[path]; v + 1 < l.path_first[path + 1]; v += run_vertices) twice = add(twice, ring_run(l, path, v).weight);
        sign[i] = (twice < 0) != (l.kind[path] == reversed_ring) ? -1 : 1;
    }
};

KILN_HD double slope_of(point a, point b) { return quotient(sub(b.y, a.y), sub(b.x, a.x)); }
// What lies below both of two segments that run to the right, between the ends they have in common. `slope`: of the first.
KILN_HD double area_below_both(point a, point b, double slope, point c, point d) {
    double const from = most(a.x, c.x), to = least(b.x, d.x);
    if (!(from < to)) return 0;
    double const other = slope_of(c, d);
    double const c0 = add(c.y, mul(sub(from, c.x), other)), c1 = add(c.y, mul(sub(to, c.x), other));
    double const over0 = sub(add(a.y, mul(sub(from, a.x), slope)), c0), over1 = sub(add(a.y, mul(sub(to, a.x), slope)), c1);
    double const width = sub(to, from), below = mul(mul(width, 0.5), add(c0, c1));
    if (over0 >= 0 && over1 >= 0) return below;
    if (over0 <= 0 && over1 <= 0) return add(below, mul(mul(width, 0.5), add(over0, over1)));
    double const part = over0 < 0 ? over0 : over1;  // the triangle where it is lower
    return add(below, mul(mul(mul(width, 0.5), part), quotient(part, sub(part, over0 < 0 ? over1 : over0))));
}

struct common_areas {
    layer a, b;
    double const* a_sign;
    double const* b_sign;
    double* share;  // by vertex of a
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i), path = a.path_of[v], row = a.row_of[path];
        double const sign = a_sign[path];
        double sum = 0;
        if (sign != 0 && is_segment(a, v) && a.at[v].x != a.at[v + 1].x) {
            point const o = origin_of(a, row);
            point p = from(a.at[v], o), q = from(a.at[v + 1], o);
            double const own = q.x > p.x ? -sign : sign;
            if (q.x < p.x) swap(p, q);
            double const slope = slope_of(p, q);
            for (i32 other = b.row_first[row]; other < b.row_first[row + 1]; ++other) {
                i32 const first = b.path_first[other], last = b.path_first[other + 1] - 1;
                double const right = b_sign[other];
                if (right == 0 || first >= last) continue;
                double const both = mul(own, right);
                point r = from(b.at[first], o);
                for (i32 w = first; w < last; ++w) {
                    // Rows of a warp run to either side, so a branch for each would be two integrals for every edge.
                    point const s = from(b.at[w + 1], o);
                    bool const is_right = s.x > r.x;
                    double const below = area_below_both(p, q, slope, is_right ? r : s, is_right ? s : r);
                    sum = add(sum, is_right ? -mul(both, below) : mul(both, below));
                    r = s;
                }
            }
        }
        share[i] = sum;
    }

private:
    KILN_HD static point from(point p, point o) { return {sub(p.x, o.x), sub(p.y, o.y)}; }
    KILN_HD static void swap(point& p, point& q) {
        point const t = p;
        p = q, q = t;
    }
};
// Rounding may leave a little below 0 of what has nothing in common.
struct sum_common_areas {
    layer a;
    u8 const* a_state;
    u8 const* b_state;
    double const* share;
    double* area;
    KILN_HD void operator()(u64 i) const {
        row_range const all = vertices_of_row(a, static_cast<i32>(i));
        double sum = 0;
        for (i32 v = all.first; v < all.last; ++v) sum = add(sum, share[v]);
        bool const is_null = a_state[i] == row_null || b_state[i] == row_null;
        area[i] = is_null ? from_bits(~u64{0}) : sum > 0 ? sum : 0;
    }
};
struct overlap_ratios {
    double const* common;
    double const* left;
    double const* right;
    double* ratio;
    KILN_HD void operator()(u64 i) const {
        double const all = sub(add(left[i], right[i]), common[i]);
        double const share = all == 0 ? 0 : quotient(common[i], all);
        ratio[i] = share > 1 ? 1 : share < 0 ? 0 : share;  // of slivers, areas are noise
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(overlay_path_signs, kiln_spatial::find_path_signs, 256, 1)
KILN_KERNEL(overlay_common_areas, kiln_spatial::common_areas, 128, 1)
KILN_KERNEL(overlay_common_sums, kiln_spatial::sum_common_areas, 256, 1)
KILN_KERNEL(overlay_ratios, kiln_spatial::overlap_ratios, 256, 1)
