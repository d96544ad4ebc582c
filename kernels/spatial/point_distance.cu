// SPDX-License-Identifier: Apache-2.0
// The nearest element of a layer to each point. Of equal ones, the lowest.
#include "distance.cuh"
#include "grid.cuh"
#include "tree.cuh"

using namespace kiln_spatial;

struct alignas(16) segment {
    point a, b;
};

// `segments` in the order of the leaves; `most` is a square.
extern "C" __global__ void __launch_bounds__(128) nearest_element(tree t, segment const* segments, double const* x, double const* y,
                                                                  u64 count, double most, i32* nearest, double* square) {
    for (u64 i = (static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x); i < count; i += (static_cast<u64>(gridDim.x) * blockDim.x)) {
        point const p{x[i], y[i]};
        i32 best = -1;
        double least_square = most;
        nearest_in_tree(t, outwards({p.x, p.y, p.x, p.y}), most, [&](u32 slot, double) {
            double const d = square_from_segment(p, segments[slot].a, segments[slot].b);
            i32 const item = static_cast<i32>(t.item[slot]);
            if (d < least_square || (d == least_square && (best < 0 || item < best))) least_square = d, best = item;
            return least_square;
        });
        nearest[i] = best, square[i] = least_square;
    }
}
