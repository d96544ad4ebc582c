// SPDX-License-Identifier: Apache-2.0
// The tile of C that a block owns, and how it is shared out among its threads.
#pragma once

#include "semiring.cuh"

// Bytes of a 16-byte access as elements.
constexpr int wide = 16 / sizeof(element);

// Blocks of a cluster that share a product along k.
constexpr int most_parts = 8;

template <int Bm, int Bn, int Bk, int Tm, int Tn, int MinBlocks, int Unroll, bool InParts>
struct tile {
    static constexpr int bm = Bm, bn = Bn, bk = Bk, tm = Tm, tn = Tn, min_blocks = MinBlocks, unroll = Unroll;
    static constexpr bool in_parts = InParts;
    static constexpr int lanes_m = 8, lanes_n = 4;
    static constexpr int warp_m = lanes_m * tm, warp_n = lanes_n * tn;
    static constexpr int threads = bm / warp_m * (bn / warp_n) * 32;
    static constexpr int pitch_a = bm + wide, pitch_b = bn + wide;  // in elements; no bank is hit twice
    static constexpr int stage = bk * (pitch_a + pitch_b);
    static constexpr int items = tm * tn;
    static_assert(bm % warp_m == 0 && bn % warp_n == 0 && bk % 8 == 0);
    static_assert(tm % wide == 0 && tn % wide == 0 && (!in_parts || items % (most_parts * wide) == 0));
};

__device__ __forceinline__ bool is_aligned(void const* data, i64 ld) {
    return reinterpret_cast<unsigned long long>(data) % 16 == 0 && ld % wide == 0;
}
