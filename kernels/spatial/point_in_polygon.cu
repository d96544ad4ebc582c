// SPDX-License-Identifier: Apache-2.0
// Points in the areas of a cell grid. Filters alone in the first kernel, which keeps it small; points that it could not decide
// are listed and looked at again, exactly, by the second.
#include "cells.cuh"
#include "grid.cuh"

using namespace kiln_spatial;

struct points {
    double const* x;
    double const* y;
    u64 count;
};
struct undecided {
    u32* list;
    u32* count;
};

namespace {

// The first area of each point: -1 for none. With its standing: ~id for points on its boundary.
template <certainty How>
__device__ __forceinline__ bool first_area(cell_grid const& g, point p, i32& out) {
    i32 first = -1;
    bool const sure = locate<tie::on, How>(g, p, [&](i32 row, place where) {
        first = where == place::on ? -2 - row : row;
        return true;
    });
    out = first;
    return sure;
}
template <certainty How>
__device__ __forceinline__ bool count_areas(cell_grid const& g, point p, u32& out) {
    u32 n = 0;
    bool const sure = locate<tie::on, How>(g, p, [&](i32, place) {
        ++n;
        return false;
    });
    out = n;
    return sure;
}

}  // namespace

// -1: in no area; -2 - row: on the boundary of row.
extern "C" __global__ void __launch_bounds__(256, 6) locate_first(cell_grid g, points p, i32* area, undecided later) {
    for (u64 i = first_item(); i < p.count; i += item_stride()) {
        i32 found;
        bool const sure = first_area<certainty::filtered>(g, {p.x[i], p.y[i]}, found);
        if (sure) area[i] = found;
        append(!sure, static_cast<u32>(i), later.list, later.count);
    }
}
extern "C" __global__ void __launch_bounds__(128) locate_first_exact(cell_grid g, points p, i32* area, undecided later) {
    for (u64 k = first_item(); k < *later.count; k += item_stride()) {
        u32 const i = later.list[k];
        i32 found;
        first_area<certainty::exact>(g, {p.x[i], p.y[i]}, found);
        area[i] = found;
    }
}

extern "C" __global__ void __launch_bounds__(256, 6) locate_count(cell_grid g, points p, u32* areas, undecided later) {
    for (u64 i = first_item(); i < p.count; i += item_stride()) {
        u32 n;
        bool const sure = count_areas<certainty::filtered>(g, {p.x[i], p.y[i]}, n);
        if (sure) areas[i] = n;
        append(!sure, static_cast<u32>(i), later.list, later.count);
    }
}
extern "C" __global__ void __launch_bounds__(128) locate_count_exact(cell_grid g, points p, u32* areas, undecided later) {
    for (u64 k = first_item(); k < *later.count; k += item_stride()) {
        u32 const i = later.list[k];
        u32 n;
        count_areas<certainty::exact>(g, {p.x[i], p.y[i]}, n);
        areas[i] = n;
    }
}

// Pairs at their places: `first` is the exclusive sum of the counts. Rows of a cell are in order, so pairs are too.
extern "C" __global__ void __launch_bounds__(128) locate_pairs(cell_grid g, points p, u64 const* first, i32* left, i32* right, u8* on) {
    for (u64 i = first_item(); i < p.count; i += item_stride()) {
        u64 at = first[i];
        locate<tie::on, certainty::exact>(g, {p.x[i], p.y[i]}, [&](i32 row, place where) {
            left[at] = static_cast<i32>(i), right[at] = row, on[at] = where == place::on;
            ++at;
            return false;
        });
    }
}
