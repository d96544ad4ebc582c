// SPDX-License-Identifier: Apache-2.0
//
// A reduction by one block, of one run of items or of every so many-th tile of one. CUB's agent holds it four times, for aligned
// and other input and for blocks with and without a full tile. Here they share it, so that a link with a new operator has half as
// much to make, and operands are paired instead of strung together: a thread waits for fewer of them one after the other.
#pragma once

#include "kiln/prims/operator.cuh"

#include <cub/iterator/cache_modified_input_iterator.cuh>
#include <cub/util_ptx.cuh>

namespace kiln_device {

template <int Threads, int Items, cub::CacheLoadModifier How>
struct block_reduction {
    static constexpr int tile = Threads * Items, warps = Threads / 32;
    static constexpr int in_word = sizeof(kiln_value) < 16 ? 16 / int(sizeof(kiln_value)) : 1;  // of the widest load
    static constexpr bool fits_words = in_word > 1 && 16 % sizeof(kiln_value) == 0 && Items % in_word == 0;
    static_assert(Threads % 32 == 0);
    using input = cub::CacheModifiedInputIterator<How, kiln_value, kiln_i64>;
    using words = cub::CacheModifiedInputIterator<How, uint4, kiln_i64>;
    using storage = cub::Uninitialized<kiln_value[Threads]>;

    template <int N>
    static __device__ __forceinline__ kiln_value pairwise(kiln_value (&of)[N], kiln_functor op) {
#pragma unroll
        for (int step = 1; step < N; step *= 2)
#pragma unroll
            for (int i = 0; i + step < N; i += 2 * step) of[i] = op(of[i], of[i + step]);
        return of[0];
    }

    // N items of a thread, all on their way before the first is used.
    template <int N>
    static __device__ __forceinline__ kiln_value rows(input in, kiln_functor op) {
        kiln_value some[N];
#pragma unroll
        for (int k = 0; k < N; ++k) some[k] = in[k * Threads];
        return pairwise(some, op);
    }

    static __device__ __forceinline__ kiln_value full_tile(kiln_value const* in, bool aligned, kiln_functor op) {
        alignas(16) kiln_value some[Items];
        if (fits_words && aligned) {
            words const from{reinterpret_cast<uint4 const*>(in) + threadIdx.x};
#pragma unroll
            for (int k = 0; k < Items / in_word; ++k) reinterpret_cast<uint4*>(some)[k] = from[k * Threads];
        } else {
            input const from{in + threadIdx.x};
#pragma unroll
            for (int k = 0; k < Items; ++k) some[k] = from[k * Threads];
        }
        return pairwise(some, op);
    }

    // Of the first `valid` threads, at least one; the result is thread 0's. The first warp does it all: a warp's operator costs
    // the same for one lane as for all of them.
    static __device__ __forceinline__ kiln_value of_threads(storage& shared, kiln_value sum, int valid, kiln_functor op) {
        auto& sums = shared.Alias();
        sums[threadIdx.x] = sum;
        __syncthreads();
        int const lane = threadIdx.x;
        if (lane >= 32) return sum;
        if (valid == Threads) {
            kiln_value some[warps];
#pragma unroll
            for (int k = 0; k < warps; ++k) some[k] = sums[k * 32 + lane];
            sum = pairwise(some, op);
        } else {
#pragma unroll 1
            for (int i = lane + 32; i < valid; i += 32) sum = op(sum, sums[i]);
        }
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            kiln_value const other = cub::ShuffleDown<32>(sum, step, 31, 0xffffffffu);
            if (lane + step < valid) sum = op(sum, other);
        }
        return sum;
    }

    // Of n items those in every `step / tile`-th tile from `at` on, at least one item; the result is thread 0's.
    static __device__ __forceinline__ kiln_value reduce(storage& shared, kiln_value const* in, kiln_u64 at, kiln_u64 n,
                                                        kiln_u64 step, kiln_functor op) {
        bool const aligned = reinterpret_cast<size_t>(in + at) % 16 == 0;
        int const valid = n - at < Threads ? int(n - at) : Threads;
        kiln_value sum{};
        bool begun = false;
        auto const add = [&](kiln_value part) {
            sum = begun ? op(sum, part) : part;
            begun = true;
        };
#pragma unroll 1
        for (; at < n && n - at >= tile; at += step) add(full_tile(in + at, aligned, op));
        if (at < n) {
            int left = int(n - at);
            kiln_value const* from = in + at + threadIdx.x;
            constexpr int some = 4;
#pragma unroll 1
            for (; left >= some * Threads; left -= some * Threads, from += some * Threads)
                add(rows<some>(input{from}, op));
#pragma unroll 1
            for (; left > 0; left -= Threads, from += Threads)
                if (int(threadIdx.x) < left) add(*input{from});
        }
        return of_threads(shared, sum, valid, op);
    }

    static __device__ __forceinline__ kiln_value reduce(storage& shared, kiln_value const* in, kiln_u64 n, kiln_functor op) {
        return reduce(shared, in, 0, n, tile, op);
    }
};

}  // namespace kiln_device
