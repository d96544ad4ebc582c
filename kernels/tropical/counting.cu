// SPDX-License-Identifier: Apache-2.0
//
// C = A (x) B with multiplicities: each result, and in how many ways it is reached. A thread makes 4 x 4 results, 8 x 8 where they fit
// into its registers. Values are compared and counts are integers, so the order of the steps does not matter for a bit of either.
#include "semiring.cuh"

// The same struct as in src/tropical/counting.cpp. Counts lie as their values do; those of A and B may be null: one each.
struct counting {
    problem values;
    i64 const* a_counts;
    i64 const* b_counts;
    i64* c_counts;
};

constexpr int depth = 16, threads = 256;

// `depth` steps of as many lines; beyond the matrix what changes nothing, and ones where there is none.
template <class T, int side>
__device__ __forceinline__ void load(T (&to)[depth][side], T const* from, bool along_k, i64 ld, int line, int lines, int k,
                                     int steps, T outside) {
#pragma unroll 2
    for (int i = threadIdx.x; i < side * depth; i += threads) {
        int const x = along_k ? i / depth : i % side, step = along_k ? i % depth : i / side;
        bool const inside = line + x < lines && k + step < steps;
        i64 const at = along_k ? (line + x) * ld + k + step : (k + step) * ld + line + x;
        to[step][x] = !inside ? outside : from == nullptr ? T(1) : from[at];
    }
}

template <bool Weighted>
struct counts;
template <>
struct counts<true> {
    using type = i64;
    static constexpr int per = 4;
};
template <>
struct counts<false> {
    using type = int;  // at most one per step
    static constexpr int per = is_f32 ? 8 : 4;
};

// Not inlined: sixty-four copies of it would be most of the kernel, and of the time to compile it.
__device__ __noinline__ void store(counting const& all, i64 at, element value, i64 count) {
    // Where there is no path there is no way, whatever was equal to none.
    if (!beats(value, zero())) count = 0;
    element* const c = static_cast<element*>(all.values.c) + at;
    if (all.values.flags & accumulate) {
        element const old = normal(*c);
        if (old == value) count += all.c_counts[at];
        else if (old == old && !beats(value, old)) value = old, count = all.c_counts[at];
    }
    *c = normal(value);
    all.c_counts[at] = count;
}

template <bool Weighted>
__device__ __forceinline__ void product(counting const& all) {
    using number = typename counts<Weighted>::type;
    constexpr int per = counts<Weighted>::per, side = 16 * per;
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
        number ways[per][per];
#pragma unroll
        for (int i = 0; i < per * per; ++i) best[i / per][i % per] = zero(), ways[i / per][i % per] = 0;
        for (int k = 0; k < p.k; k += depth) {
            __syncthreads();
            load(a, static_cast<element const*>(p.a) + which * p.stride_a, a_k, p.lda, m, p.m, k, p.k, zero());
            load(b, static_cast<element const*>(p.b) + which * p.stride_b, b_k, p.ldb, n, p.n, k, p.k, zero());
            if constexpr (Weighted) {
                load(a_ways, member(p, all.a_counts, p.stride_a, which), a_k, p.lda, m, p.m, k, p.k, i64{0});
                load(b_ways, member(p, all.b_counts, p.stride_b, which), b_k, p.ldb, n, p.n, k, p.k, i64{0});
            }
            __syncthreads();
#pragma unroll 1
            for (int step = 0; step < depth; ++step) {
                element of_a[per];
#pragma unroll
                for (int i = 0; i < per; ++i) of_a[i] = a[step][x + 16 * i];
#pragma unroll
                for (int j = 0; j < per; ++j) {
                    element const of_b = b[step][y + 16 * j];
#pragma unroll
                    for (int i = 0; i < per; ++i) {
                        element const next = of_a[i] + of_b;
                        number here = 1;
                        if constexpr (Weighted) here = a_ways[step][x + 16 * i] * b_ways[step][y + 16 * j];
                        number const tied = next == best[j][i] ? ways[j][i] + here : ways[j][i];
                        ways[j][i] = beats(next, best[j][i]) ? here : tied;
                        best[j][i] = better(best[j][i], next);
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
                store(all, which * p.stride_c + column * p.ldc + row, best[j][i], ways[j][i]);
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
