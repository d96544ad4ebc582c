// SPDX-License-Identifier: Apache-2.0
//
// C = A (x) B, tuned. A block owns a tile of C; its threads hold 16 x 8 to 8 x 2 elements each; tiles of A and B pass through
// two stages of shared memory as [k][m] and [k][n], copied asynchronously. Rows beyond the edge repeat the last one and are
// not stored; steps beyond the last k are filled with zeros of the semiring. So the inner loops have no conditions. Where the
// tiles of C do not go round among the multiprocessors, the steps of the last ones are shared out (see `schedule`).
//
// Three ideas make them fast, and each falls back to the plain way where it would not be exact:
//
//   - f32: the larger of two floats is the larger of two ints while both are >= 0, and one instruction takes the maximum of
//     three ints. Each warp watches the signs of its elements after every tile and picks the way that is exact for them.
//   - integers: plain sums are exact while values are small or one of the two infinities; every element is looked at once
//     on its way in. Otherwise the tile is done again with checked sums.
//   - arg: inside 8 steps only the best is kept, then one comparison. The winner among the 8 is found at the end.
//
// Small products are split along k over the blocks of a cluster, which put their parts together in shared memory: max and
// min do not mind the order.
//
// Where a specialisation does not ship, somebody waits for NVRTC to read this. Its optimiser takes most of the time, and what it
// sees most of is unrolled 128 times; so the innermost operations are assembly that it does not look into (elsewhere, and for
// the host, they are C++). Measure before changing their form: docs/measurements/tropical.md says how.
//
// The texts below, in the order they are best read in:
#include "semiring.cuh"
#include "tile.cuh"
#include "machine.cuh"
#include "staging.cuh"
#include "arithmetic.cuh"
#include "multiplying.cuh"
#include "winners.cuh"
#include "storing.cuh"
#include "schedule.cuh"

template <class Tile>
__device__ __forceinline__ void product(problem const& p) {
    extern __shared__ __align__(16) unsigned char raw[];
    element* const shared = reinterpret_cast<element*>(raw);
    wait_for_previous();
    u32 const tiles_m = (static_cast<u32>(p.m) + Tile::bm - 1) / Tile::bm;
    u32 const tiles_n = (static_cast<u32>(p.n) + Tile::bn - 1) / Tile::bn;
    u32 const k_tiles = (static_cast<u32>(p.k) + Tile::bk - 1) / Tile::bk;
    u32 const per_member = tiles_m * tiles_n;
    schedule const all{p, per_member * static_cast<u32>(p.batch), k_tiles, Tile::in_parts};
#pragma unroll 1
    for (int turn = all.first; turn < all.last; ++turn) {
        task now;
        if (!all.get(now, turn)) continue;
        i64 const which = now.tile / per_member;
        u32 const in_member = now.tile % per_member;
        // Eight rows of tiles at a time: what they share stays in the cache.
        u32 const group = 8 * tiles_n, first = in_member / group * 8;
        u32 const rows = min(tiles_m - first, 8u);
        int const m0 = static_cast<int>(first + in_member % group % rows) * Tile::bm;
        int const n0 = static_cast<int>(in_member % group / rows) * Tile::bn;
        place const at{member(p, static_cast<element const*>(p.a), p.stride_a, which),
                       member(p, static_cast<element const*>(p.b), p.stride_b, which),
                       member(p, static_cast<element*>(p.c), p.stride_c, which),
                       static_cast<char*>(p.arg) == nullptr || (p.flags & by_pointer)
                           ? member(p, static_cast<char*>(p.arg), 0, which)
                           : static_cast<char*>(p.arg) + which * p.stride_arg * ((p.flags & arg_is_64) ? 8 : 4)};
        operand const a{at.a, p.lda, m0, p.m, (p.flags & a_along_k) != 0};
        operand const b{at.b, p.ldb, n0, p.n, (p.flags & b_along_k) != 0};
        accumulators<Tile> acc;
        acc.one = static_cast<element>(p.one);
        bool plain_only = !is_by_sign && !is_ranged;
        while (multiply<Tile>(acc, shared, a, b, now.begin, now.end, p.k, plain_only)) plain_only = true;
        bool const waits = now.before != 0;
        if (waits) {
            if (threadIdx.x == 0) wait_for(now.signal, now.before);
            __syncthreads();
        }
        store<Tile>(p, at, acc, shared, m0, n0, waits || (p.flags & accumulate) != 0);
        __syncthreads();
        // The last one leaves the signal as it was before the launch.
        bool const is_last = now.end == static_cast<int>(k_tiles);
        if (now.signal != nullptr && threadIdx.x == 0) tell(now.signal, is_last ? 0 : now.before + 1);
    }
}

// ---- Entry points --------------------------------------------------------------------------------------------------
// Measured to be best, per element type: bm, bn, bk, tm, tn, blocks per multiprocessor, unrolling. The host knows the same
// numbers (src/tropical/tuning.cpp) and hands them in.

#define KILN_PRODUCT(name, ...)                                                                              \
    extern "C" __global__ void __launch_bounds__(tile<__VA_ARGS__>::threads, tile<__VA_ARGS__>::min_blocks) \
        name(__grid_constant__ problem const p) {                                                            \
        product<tile<__VA_ARGS__>>(p);                                                                       \
    }

#ifdef KILN_TROPICAL_LARGE
KILN_PRODUCT(product_large, KILN_TROPICAL_LARGE, false)
#endif
KILN_PRODUCT(product_small, KILN_TROPICAL_SMALL, true)
