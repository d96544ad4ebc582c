// SPDX-License-Identifier: Apache-2.0
//
// C = A (x) B with multiplicities: each result, and in how many ways it is reached. Two passes over k: the first is that of a plain product,
// the second adds up whose sum is the result, bit for bit the same sum. That is five instructions a step, where keeping the count of the
// best so far takes seven that wait for each other. A thread makes 4 x 4 results, 8 x 8 where they fit into its registers. Values
// are compared and counts are integers, so the order of the steps does not matter for a bit of either.
#include "semiring.cuh"

// The same struct as in src/tropical/counting.cpp. Counts lie as their values do; those of A and B may be null: one each.
struct counting {
    problem values;
    i64 const* a_counts;
    i64 const* b_counts;
    i64* c_counts;
};

constexpr int depth = 16, threads = 256;

// `depth` steps of as many lines, on their way from memory to where all threads read them; beyond the matrix what changes nothing, and
// ones where there is none. A column more than there are lines: along k, neighbouring threads then write to different banks.
template <class T, int side>
using staged = T[depth][side + 1];

template <class T, int side>
struct fetched {
    static constexpr int per = side * depth / threads;
    // A thread's elements are so many lines (along k) or steps apart: one address and a distance, not one address each.
    static constexpr int lines_apart = threads / depth, steps_apart = threads / side;
    T held[per];

    __device__ __forceinline__ void fetch(T const* from, bool along_k, i64 ld, int line, int lines, int k, int steps, T outside) {
        int x = line + (along_k ? threadIdx.x / depth : threadIdx.x % side);
        int step = k + (along_k ? threadIdx.x % depth : threadIdx.x / side);
        T const* at = from + (along_k ? x * ld + step : step * ld + x);
        i64 const apart = (along_k ? lines_apart : steps_apart) * ld;
#pragma unroll
        for (int e = 0; e < per; ++e) {
            held[e] = x >= lines || step >= steps ? outside : from == nullptr ? T(1) : *at;
            at += apart;
            (along_k ? x : step) += along_k ? lines_apart : steps_apart;
        }
    }
    __device__ __forceinline__ void put(staged<T, side>& to, bool along_k) const {
        int const x = along_k ? threadIdx.x / depth : threadIdx.x % side;
        int const step = along_k ? threadIdx.x % depth : threadIdx.x / side;
        T* const at = &to[step][x];
        int const apart = along_k ? lines_apart : steps_apart * (side + 1);
#pragma unroll
        for (int e = 0; e < per; ++e) at[e * apart] = held[e];
    }
};

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

// One pass over k: tiles of A and B by turns in shared memory, the next on its way while `body(step)` works on this one.
template <int side, class Values, class Body>
__device__ __forceinline__ void each_step(problem const& p, i64 which, int m, int n, Values& shared, Body body) {
    bool const a_k = (p.flags & a_along_k) != 0, b_k = (p.flags & b_along_k) != 0;
    auto const* const from_a = static_cast<element const*>(p.a) + which * p.stride_a;
    auto const* const from_b = static_cast<element const*>(p.b) + which * p.stride_b;
    fetched<element, side> next_a, next_b;
    next_a.fetch(from_a, a_k, p.lda, m, p.m, 0, p.k, zero());
    next_b.fetch(from_b, b_k, p.ldb, n, p.n, 0, p.k, zero());
#pragma unroll 1
    for (int k = 0; k < p.k; k += depth) {
        __syncthreads();
        next_a.put(shared.a, a_k);
        next_b.put(shared.b, b_k);
        body.begin(k);
        __syncthreads();
        if (k + depth < p.k) {
            next_a.fetch(from_a, a_k, p.lda, m, p.m, k + depth, p.k, zero());
            next_b.fetch(from_b, b_k, p.ldb, n, p.n, k + depth, p.k, zero());
        }
#pragma unroll 1
        for (int step = 0; step < depth; ++step) body(step);
    }
}

template <bool Weighted>
struct tile {
    using number = typename counts<Weighted>::type;
    static constexpr int per = counts<Weighted>::per, side = 16 * per;

    struct memory {
        staged<element, side> a, b;
        staged<i64, Weighted ? side : 1> a_ways, b_ways;
    };

    counting const& all;
    memory& shared;
    i64 which;
    int m, n;
    int x = threadIdx.x % 16, y = threadIdx.x / 16;
    element best[per][per];
    number ways[per][per];

    // Every sum of this step, as the same instruction in both passes.
    template <class Each>
    __device__ __forceinline__ void sums(int step, Each each) {
        element of_a[per];
#pragma unroll
        for (int i = 0; i < per; ++i) of_a[i] = shared.a[step][x + 16 * i];
#pragma unroll
        for (int j = 0; j < per; ++j) {
            element const of_b = shared.b[step][y + 16 * j];
#pragma unroll
            for (int i = 0; i < per; ++i) each(j, i, of_a[i] + of_b);
        }
    }

    struct finding {
        tile& of;
        __device__ __forceinline__ void begin(int) {}
        __device__ __forceinline__ void operator()(int step) {
            of.sums(step, [&](int j, int i, element next) { of.best[j][i] = better(of.best[j][i], next); });
        }
    };

    struct adding_up {
        tile& of;
        __device__ __forceinline__ void begin(int k) {
            if constexpr (Weighted) of.fetch_ways(k);
        }
        __device__ __forceinline__ void operator()(int step) {
            of.sums(step, [&](int j, int i, element next) {
                if (next != of.best[j][i]) return;
                if constexpr (Weighted) of.ways[j][i] += of.shared.a_ways[step][of.x + 16 * i] * of.shared.b_ways[step][of.y + 16 * j];
                else ++of.ways[j][i];
            });
        }
    };

    __device__ __forceinline__ void fetch_ways(int k) {
        problem const& p = all.values;
        bool const a_k = (p.flags & a_along_k) != 0, b_k = (p.flags & b_along_k) != 0;
        fetched<i64, side> now;
        now.fetch(member(p, all.a_counts, p.stride_a, which), a_k, p.lda, m, p.m, k, p.k, i64{0});
        now.put(shared.a_ways, a_k);
        now.fetch(member(p, all.b_counts, p.stride_b, which), b_k, p.ldb, n, p.n, k, p.k, i64{0});
        now.put(shared.b_ways, b_k);
    }

    __device__ __forceinline__ void make() {
#pragma unroll
        for (int i = 0; i < per * per; ++i) best[i / per][i % per] = zero(), ways[i / per][i % per] = 0;
        each_step<side>(all.values, which, m, n, shared, finding{*this});
        each_step<side>(all.values, which, m, n, shared, adding_up{*this});
#pragma unroll
        for (int j = 0; j < per; ++j) {
#pragma unroll
            for (int i = 0; i < per; ++i) {
                int const row = m + x + 16 * i, column = n + y + 16 * j;
                if (row >= all.values.m || column >= all.values.n) continue;
                store(all, which * all.values.stride_c + column * all.values.ldc + row, best[j][i], ways[j][i]);
            }
        }
    }
};

template <bool Weighted>
__device__ __forceinline__ void product(counting const& all) {
    __shared__ typename tile<Weighted>::memory shared;
    constexpr int side = tile<Weighted>::side;
    problem const& p = all.values;
    int const tiles_m = (p.m + side - 1) / side, tiles_n = (p.n + side - 1) / side;
    i64 const tiles = static_cast<i64>(tiles_m) * tiles_n * p.batch;
    for (i64 t = blockIdx.x; t < tiles; t += gridDim.x) {
        i64 const which = t / (static_cast<i64>(tiles_m) * tiles_n);
        int const inside = static_cast<int>(t - which * tiles_m * tiles_n);
        tile<Weighted>{all, shared, which, inside % tiles_m * side, inside / tiles_m * side}.make();
    }
}

extern "C" __global__ void __launch_bounds__(threads) product_counting(__grid_constant__ counting const p) {
    product<false>(p);
}
extern "C" __global__ void __launch_bounds__(threads) product_counting_weighted(__grid_constant__ counting const p) {
    product<true>(p);
}
