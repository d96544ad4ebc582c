// SPDX-License-Identifier: Apache-2.0
//
// Where each query would go in a sorted range. Every thread halves the range the same number of times, so a warp never
// diverges and sorted queries read the same lines.
#include "kiln/prims/prelude.cuh"

#include <cub/util_arch.cuh>
#include <cub/version.cuh>

#define KILN_OPERATOR_RESULT bool
#define KILN_OPERATOR_PARAMETERS kiln_value, kiln_value
#include "kiln/prims/operator.cuh"

constexpr int threads = 256;
KILN_PRIM_INFO(threads, 1);

enum class side { lower, upper };

template <side Side, class Index>
static __device__ __forceinline__ Index bound(kiln_value const* sorted, Index n, kiln_value query, kiln_functor less) {
    kiln_value const* at = sorted;
    while (n > 0) {
        Index const half = n - n / 2;
        kiln_value const middle = at[half - 1];
        bool const right = Side == side::upper ? !less(query, middle) : less(middle, query);
        if (right) at += half;
        n -= half;
    }
    return Index(at - sorted);
}

template <side Side>
static __device__ __forceinline__ void bounds(kiln_value const* sorted, kiln_u64 n, kiln_value const* queries, kiln_u64 count,
                                              void* out, int wide_out, kiln_functor less) {
    kiln_u64 const i = kiln_u64{blockIdx.x} * threads + threadIdx.x;
    if (i >= count) return;
    kiln_value const query = queries[i];
    kiln_u64 const found =
        n <= 0x7fffffff ? bound<Side, kiln_u32>(sorted, kiln_u32(n), query, less) : bound<Side, kiln_u64>(sorted, n, query, less);
    if (wide_out != 0) {
        static_cast<kiln_u64*>(out)[i] = found;
    } else {
        static_cast<kiln_u32*>(out)[i] = kiln_u32(found);
    }
}

extern "C" __global__ void __launch_bounds__(threads)
    kiln_lower_bound(kiln_value const* sorted, kiln_u64 n, kiln_value const* queries, kiln_u64 count, void* out, int wide_out,
                     KILN_STATE_PARAMETER) {
    bounds<side::lower>(sorted, n, queries, count, out, wide_out, kiln_functor{state});
}

extern "C" __global__ void __launch_bounds__(threads)
    kiln_upper_bound(kiln_value const* sorted, kiln_u64 n, kiln_value const* queries, kiln_u64 count, void* out, int wide_out,
                     KILN_STATE_PARAMETER) {
    bounds<side::upper>(sorted, n, queries, count, out, wide_out, kiln_functor{state});
}
