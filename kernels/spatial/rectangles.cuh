// SPDX-License-Identifier: Apache-2.0
// Areas that are upright rectangles. Such a rectangle is the product of two closed intervals and its interior that of two open ones, so
// what a predicate asks of two of them is told by comparing their sides.
#pragma once

#include "geometry_rows.cuh"
#include "grid.cuh"

namespace kiln_spatial {

// The boxes of rows that are upright rectangles; turned round of null and empty ones. Others are counted.
struct find_rectangles {
    geometry_rows g;  // of polygons
    box* to;
    u64* others;  // of 0
    KILN_HD void operator()(u64 i) const {
        row_source const s = source_of(g, static_cast<i32>(i));
        to[i] = {1, 1, -1, -1};
        if (!s.valid) return;
        family_memory const& f = g.memory[a_polygon];
        item_range const rings = paths_of(f, a_polygon, s.row);
        i32 const first = first_vertex(f, a_polygon, rings.first), last = first_vertex(f, a_polygon, rings.last);
        if (first == last) return;
        if (rings.last - rings.first != 1 || last - first != 5 || !is_rectangle(f.x + first, f.y + first)) {
            add_to(others, 1);
            return;
        }
        double const* const x = f.x + first;
        double const* const y = f.y + first;
        to[i] = {least(x[0], x[2]), least(y[0], y[2]), most(x[0], x[2]), most(y[0], y[2])};
    }

private:
    // Its sides are level and upright by turns, it has an area and ends where it began.
    KILN_HD static bool is_rectangle(double const* x, double const* y) {
        bool const level_first = y[0] == y[1] && x[1] == x[2] && y[2] == y[3] && x[3] == x[0];
        bool const upright_first = x[0] == x[1] && y[1] == y[2] && x[2] == x[3] && y[3] == y[0];
        return (level_first || upright_first) && x[0] != x[2] && y[0] != y[2] && x[4] == x[0] && y[4] == y[0];
    }
};

// Of pairs of rectangles that meet, those that a predicate holds for, as 1 and 0.
struct judge_rectangles {
    i32 what;  // a predicate
    i32 const* left;
    i32 const* right;
    box const* left_box;
    box const* right_box;
    i64* count;
    KILN_HD void operator()(u64 i) const { count[i] = holds(left_box[left[i]], right_box[right[i]]) ? 1 : 0; }

private:
    KILN_HD static bool covers(box const& a, box const& b) {
        return a.min_x <= b.min_x && a.min_y <= b.min_y && a.max_x >= b.max_x && a.max_y >= b.max_y;
    }
    KILN_HD static bool covers_inside(box const& a, box const& b) {
        return a.min_x < b.min_x && a.min_y < b.min_y && a.max_x > b.max_x && a.max_y > b.max_y;
    }
    KILN_HD static bool interiors_meet(box const& a, box const& b) {
        return a.min_x < b.max_x && a.min_y < b.max_y && a.max_x > b.min_x && a.max_y > b.min_y;
    }
    KILN_HD bool holds(box const& a, box const& b) const {
        switch (what) {
            case 0: return true;
            case 2:
            case 5: return covers(a, b);
            case 3: return covers_inside(a, b);
            case 4:
            case 6: return covers(b, a);
            case 7: return !interiors_meet(a, b);
            case 9: return interiors_meet(a, b) && !covers(a, b) && !covers(b, a);
            case 10: return covers(a, b) && covers(b, a);
            default: return false;  // areas do not cross; disjoint ones are not among the pairs
        }
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(rectangle_boxes, kiln_spatial::find_rectangles, 256, 1)
KILN_KERNEL(rectangle_judge, kiln_spatial::judge_rectangles, 256, 1)
