// SPDX-License-Identifier: Apache-2.0
// Points that stand for the paths of a layer, to be located in another: the first vertex of every path, and behind them the ends of
// lines. What is not asked is NaN, which is nowhere.
#pragma once

#include "grid.cuh"
#include "layer.cuh"

namespace kiln_spatial {

struct path_questions {
    layer l;
    double* x;
    double* y;
    KILN_HD void operator()(u64 i) const {
        u64 const paths = static_cast<u64>(l.paths);
        i32 v = -1;
        if (i < paths) {
            if (l.kind[i] != no_path) v = l.path_first[i];
        } else {
            i32 const end = static_cast<i32>(i - paths);
            if (l.is_end[end] != 0 && l.member[l.group_first[end]] == end) v = end;
        }
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

}  // namespace kiln_spatial

KILN_KERNEL(path_points, kiln_spatial::path_questions, 256, 1)
KILN_KERNEL(path_point_rows, kiln_spatial::rows_of_questions, 256, 1)
