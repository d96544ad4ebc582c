// SPDX-License-Identifier: Apache-2.0
//
// C = A (x) B with multiplicities: each result, and in how many ways it is reached. A block makes a tile of 64 x 64, a thread 4 x 4
// of it. Values are compared and counts are integers, so the order of the steps does not matter for a bit of either.
#include "semiring.cuh"

// The same struct as in src/tropical/counting.cpp. Counts lie as their values do; those of A and B may be null: one each.
struct counting {
    problem values;
    i64 const* a_counts;
    i64 const* b_counts;
    i64* c_counts;
};

constexpr int side = 64, depth = 16, threads = 256, per = 4;

// `depth` steps of 64 lines; beyond the matrix what changes nothing.
template <class T>
__device__ __forceinline__ void load(T (&to)[depth][side], T const* from, bool along_k, i64 ld, int line, int lines, int k,
                                     int steps, T outside) {
    for (int i = threadIdx.x; i < side * depth; i += threads) {
        int const x = along_k ? i / depth : i % side, step = along_k ? i % depth : i / side;
        bool const inside = line + x < lines && k + step < steps;
        i64 const at = along_k ? (line + x) * ld + k + step : (k + step) * ld + line + x;
        to[step][x] = inside ? from[at] : outside;
    }
}

template <bool Weighted>
__device__ __forceinline__ void product(counting const& all) {
    __shared__ element a[depth][side], b[depth][side];
    __shared__ i64 a_ways[Weighted ? depth : 1][side], b_ways[Weighted ? depth : 1][side];
    problem const& p = all.values;
    bool const a_k = (p.flags & a_along_k) != 0, b_k = (p.flags & b_along_k) != 0;
    int const tiles_m = (p.m + side - 1) / side, tiles_n = (p.n + side - 1) / side;
    i64 const tiles = static_cast<i64>(tiles_m) * tiles_n * p.batch;
    int const x = threadIdx.x % 16, y = threadIdx.x / 16;
    for (i64 t = blockIdx.x; t < tiles; t += gridDim.x) {
        i64 const which = t / (static_cast<i64>(tiles_m) * tiles_n);
        int const inside = static_cast<int>(t - which * tiles_m * tiles_n);
        int const m = inside % tiles_m * side, n = inside / tiles_m * side;
        element best[per][per];
        i64 ways[per][per];
#pragma unroll
        for (int i = 0; i < per * per; ++i) best[i / per][i % per] = zero(), ways[i / per][i % per] = 0;
        for (int k = 0; k < p.k; k += depth) {
            __syncthreads();
            load(a, static_cast<element const*>(p.a) + which * p.stride_a, a_k, p.lda, m, p.m, k, p.k, zero());
            load(b, static_cast<element const*>(p.b) + which * p.stride_b, b_k, p.ldb, n, p.n, k, p.k, zero());
            if constexpr (Weighted) {
                i64 const* const wa = all.a_counts, *const wb = all.b_counts;
                if (wa != nullptr) load(a_ways, wa + which * p.stride_a, a_k, p.lda, m, p.m, k, p.k, i64{0});
                if (wb != nullptr) load(b_ways, wb + which * p.stride_b, b_k, p.ldb, n, p.n, k, p.k, i64{0});
            }
            __syncthreads();
#pragma unroll 4
            for (int step = 0; step < depth; ++step) {
#pragma unroll
                for (int j = 0; j < per; ++j) {
#pragma unroll
                    for (int i = 0; i < per; ++i) {
                        element const next = a[step][x + 16 * i] + b[step][y + 16 * j];
                        i64 here = 1;
                        if constexpr (Weighted) {
                            if (all.a_counts != nullptr) here = a_ways[step][x + 16 * i];
                            if (all.b_counts != nullptr) here *= b_ways[step][y + 16 * j];
                        }
                        if (beats(next, best[j][i])) {
                            best[j][i] = next;
                            ways[j][i] = here;
                        } else if (next == best[j][i]) {
                            ways[j][i] += here;
                        }
                    }
                }
            }
        }
#pragma unroll
        for (int j = 0; j < per; ++j) {
#pragma unroll
            for (int i = 0; i < per; ++i) {
                int const row = m + x + 16 * i, column = n + y + 16 * j;
                if (row >= p.m || column >= p.n) continue;
                i64 const at = which * p.stride_c + column * p.ldc + row;
                element value = best[j][i];
                // Where there is no path there is no way, whatever was equal to none.
                i64 count = beats(value, zero()) ? ways[j][i] : 0;
                if (p.flags & accumulate) {
                    element const old = normal(static_cast<element const*>(p.c)[at]);
                    if (old == value) count += all.c_counts[at];
                    else if (old == old && !beats(value, old)) value = old, count = all.c_counts[at];
                }
                static_cast<element*>(p.c)[at] = normal(value);
                all.c_counts[at] = count;
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(threads) product_counting(__grid_constant__ counting const p) {
    product<false>(p);
}
extern "C" __global__ void __launch_bounds__(threads) product_counting_weighted(__grid_constant__ counting const p) {
    product<true>(p);
}
