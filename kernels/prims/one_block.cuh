// SPDX-License-Identifier: Apache-2.0
//
// A reduction by one block, for what is too short for more. Far less code than CUB's agent, and all of it is linked before the
// first call with a new operator.
#pragma once

#include "kiln/prims/operator.cuh"

#include <cub/block/block_reduce.cuh>

template <int Threads>
struct one_block {
    using by_warps = cub::BlockReduce<kiln_value, Threads, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
    using storage = typename by_warps::TempStorage;
    // A thread takes one item, then so many at a time: after the first turn a power of two.
    static constexpr int at_once = sizeof(kiln_value) <= 4 ? 15 : sizeof(kiln_value) <= 8 ? 7 : 3;

    // Of at least one item; the result is thread 0's. All loads of a turn are on their way before the first is used.
    static __device__ __forceinline__ kiln_value reduce(storage& shared, kiln_value const* in, kiln_u64 n, kiln_functor op) {
        kiln_value const *at = in + threadIdx.x, *const end = in + n;
        kiln_value sum = *(at < end ? at : in);
        at += Threads;
        for (; end - at > (at_once - 1) * Threads; at += at_once * Threads) {
            kiln_value some[at_once];
#pragma unroll
            for (int k = 0; k < at_once; ++k) some[k] = at[k * Threads];
#pragma unroll
            for (int k = 0; k < at_once; ++k) sum = op(sum, some[k]);
        }
#pragma unroll 2
        for (; at < end; at += Threads) sum = op(sum, *at);
        return by_warps(shared).Reduce(sum, op, n < Threads ? static_cast<int>(n) : Threads);
    }
};
