// SPDX-License-Identifier: Apache-2.0
// Which k won: its block of eight steps is known, and the eight are looked at once more.
#pragma once

#include "tile.cuh"

// Of the blocks of eight steps: none of them.
[[maybe_unused]] constexpr u32 no_block = 0xffff;

struct place {
    element const *a, *b;
    element* c;
    char* arg;
};

// The eight elements of an operand that a block of steps takes; `from` is where x has its first. Beyond the last k, the last
// again. Of the two ways each is faster for its size of elements, by a few percent of small products.
__device__ __forceinline__ void read_steps(element (&to)[8], element const* from, i64 step, u32 block, int k) {
    int const first = static_cast<int>(block) * 8;
    if constexpr (wide == 4) from += first * step;
#pragma unroll
    for (int s = 0; s < 8; ++s) {
        if constexpr (wide == 4) {
            to[s] = *from;
            from += first + s + 1 < k ? step : 0;
        } else {
            to[s] = from[min(first + s, k - 1) * step];
        }
    }
}

// What the products of a run's blocks of steps are made from. All loads are on their way before the first is used; `Wide`: B has
// the elements of a block of steps side by side, aligned.
template <bool Wide>
__device__ __forceinline__ void read_blocks(element (&a)[wide][8], element (&b)[wide][8], u32 const (&block)[wide],
                                            problem const& p, place const& at, int m, int n) {
    bool const a_k = (p.flags & a_along_k) != 0, b_k = (p.flags & b_along_k) != 0;
    element const* const column = at.b + (b_k ? n * p.ldb : n);
#pragma unroll
    for (int e = 0; e < wide; ++e) {
        u32 const which = block[e] == no_block ? 0 : block[e];
        if constexpr (Wide) {
#pragma unroll
            for (int s = 0; s < 8; s += wide)
                *reinterpret_cast<int4*>(b[e] + s) = *reinterpret_cast<int4 const*>(column + which * 8 + s);
        } else {
            read_steps(b[e], column, b_k ? 1 : p.ldb, which, p.k);
        }
        int const row = min(m + e, p.m - 1);
        read_steps(a[e], at.a + (a_k ? row * p.lda : row), a_k ? 1 : p.lda, which, p.k);
    }
}

// Which k gave the values of a run.
__device__ __forceinline__ void find_winners(int (&winner)[wide], element const (&value)[wide], u32 const (&block)[wide],
                                             problem const& p, place const& at, int m, int n, bool in_pieces) {
    element a[wide][8], b[wide][8];
    if (in_pieces) {
        read_blocks<true>(a, b, block, p, at, m, n);
        asm volatile("" ::: "memory");  // or else the two ways would be put together, and wait between B and A
    } else {
        read_blocks<false>(a, b, block, p, at, m, n);
    }
#pragma unroll
    for (int e = 0; e < wide; ++e) {
        winner[e] = p.no_path;
#pragma unroll
        for (int s = 7; s >= 0; --s)
            if (checked_times(a[e][s], b[e][s]) == value[e]) winner[e] = static_cast<int>(block[e]) * 8 + s;
        if (block[e] == no_block || is_infinite(value[e])) winner[e] = p.no_path;
    }
}

__device__ __forceinline__ void store_arg(problem const& p, place const& at, i64 index, int k) {
    if (p.flags & arg_is_64) reinterpret_cast<i64*>(at.arg)[index] = k;
    else reinterpret_cast<int*>(at.arg)[index] = k;
}
