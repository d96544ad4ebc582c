// SPDX-License-Identifier: Apache-2.0
//
// Both gradients of a product in one launch: dA[i, k*] gets what came in at [i, j], and so does dB[k*, j], where k* is the
// winner of [i, j]. A warp owns one row of dA or one column of dB, holds it in shared memory and goes through its inputs in
// order, so every sum has one order and comes out the same, bit for bit, on every run, every device and the CPU. Nothing is
// zeroed before and nothing is added atomically. Rows longer than shared memory are done in parts.
//
//     KILN_TROPICAL_TYPE  1 f32, 2 f64       KILN_TROPICAL_RULE  1 plus, 2 mul: the other factor is multiplied in

using i64 = long long;
using u32 = unsigned int;
#if KILN_TROPICAL_TYPE == 1
using element = float;
using word = u32;
__device__ __forceinline__ word word_of(element x) { return static_cast<word>(__float_as_int(x)); }
__device__ __forceinline__ element element_of(word x) { return __int_as_float(static_cast<int>(x)); }
#else
using element = double;
using word = unsigned long long;
__device__ __forceinline__ word word_of(element x) { return static_cast<word>(__double_as_longlong(x)); }
__device__ __forceinline__ element element_of(word x) { return __longlong_as_double(static_cast<long long>(x)); }
#endif
// What a place holds while somebody adds to it: a NaN that no sum gives.
constexpr word busy = ~word(0);
constexpr bool is_mul = KILN_TROPICAL_RULE == 2;

// The same struct as in src/tropical/problem.hpp.
struct gradient {
    void const* g;  // m x n, neighbours along m
    void const* arg;
    void const* a;  // of the forward product; for mul alone
    void const* b;
    void* da;
    void* db;
    i64 ldg, ldarg, lda, ldb, ldda, lddb;
    i64 stride_g, stride_arg, stride_a, stride_b, stride_da, stride_db;
    i64 batch;
    int m, n, k;
    u32 flags;
    int part;  // steps of k a warp holds
    int unused;
};
constexpr u32 a_along_k = 1, b_along_k = 2, accumulate = 4, arg_is_64 = 8, da_along_k = 16, db_along_k = 32;

constexpr int lines = 8;                     // of a block: one per warp
constexpr int ahead = 32 / sizeof(element);  // entries that a thread has under way
constexpr int columns = 32 * ahead;          // of a piece of rows
constexpr u32 everyone = ~0u;

struct entry {
    element g;
    int k;
};

__device__ __forceinline__ entry read(gradient const& p, i64 which, i64 m, i64 n) {
    i64 const at = which * p.stride_arg + n * p.ldarg + m;
    int const k = (p.flags & arg_is_64) ? static_cast<int>(static_cast<i64 const*>(p.arg)[at])
                                        : static_cast<int const*>(p.arg)[at];
    return {static_cast<element const*>(p.g)[which * p.stride_g + n * p.ldg + m], k};
}

// What one lane adds to a line: nothing where k is negative.
struct addend {
    int k;
    element x, factor;
};

__device__ __forceinline__ element sum_of(element old, addend const& what) {
    return is_mul ? fma(what.x, what.factor, old) : old + what.x;
}

// Adds what 32 lanes bring; where two bring the same k, the lower lane comes first. That is rare, and shows by somebody
// finding a place busy.
__device__ __forceinline__ void add(word* line, addend const& what) {
    int const lane = threadIdx.x % 32;
    bool const taken = what.k >= 0;
    word* const place = line + what.k;
    word const old = taken ? atomicExch(place, busy) : word(0);
    bool const is_second = old == busy;
    if (!__any_sync(everyone, is_second)) {
        if (taken) *place = word_of(sum_of(element_of(old), what));
        __syncwarp();
        return;
    }
    if (taken && !is_second) *place = old;
    __syncwarp();
    u32 const same = __match_any_sync(everyone, taken ? what.k : -1 - lane);
    int const rank = __popc(same & ((1u << lane) - 1));
    for (int r = 0; __any_sync(everyone, rank >= r); ++r) {
        if (taken && rank == r) *place = word_of(sum_of(element_of(*place), what));
        __syncwarp();
    }
}

extern "C" __global__ void __launch_bounds__(lines * 32) backward(__grid_constant__ gradient const p) {
    extern __shared__ __align__(16) unsigned char raw[];
    word* const held = reinterpret_cast<word*>(raw);
    auto* const piece = reinterpret_cast<entry(*)[lines + 1]>(held + static_cast<i64>(lines) * p.part);
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    word* const line = held + static_cast<i64>(warp) * p.part;
    i64 const parts = (p.k + i64{p.part} - 1) / p.part;
    i64 const of_a = (p.m + i64{lines} - 1) / lines * parts, of_b = (p.n + i64{lines} - 1) / lines * parts;
    for (i64 t = blockIdx.x; t < (of_a + of_b) * p.batch; t += gridDim.x) {
        i64 const which = t / (of_a + of_b), inside = t % (of_a + of_b);
        bool const rows = inside < of_a;
        i64 const at = rows ? inside : inside - of_a;
        int const first = static_cast<int>(at / parts) * lines, k0 = static_cast<int>(at % parts) * p.part;
        int const size = rows ? p.m : p.n, count = min(p.part, p.k - k0);
        int const own = first + warp;
        for (int k = lane; k < count; k += 32) line[k] = 0;
        __syncwarp();

        auto const addend_of = [&](entry const& e, int other) {
            int const k = e.k - k0;
            bool const taken = e.k >= 0 && k >= 0 && k < count && own < size;
            element factor = element(1);
            if constexpr (is_mul) {
                if (taken && rows)
                    factor = static_cast<element const*>(p.b)[which * p.stride_b + ((p.flags & b_along_k)
                                                                                        ? e.k + other * p.ldb
                                                                                        : other + e.k * p.ldb)];
                else if (taken)
                    factor = static_cast<element const*>(p.a)[which * p.stride_a + ((p.flags & a_along_k)
                                                                                        ? e.k + other * p.lda
                                                                                        : other + e.k * p.lda)];
            }
            return addend{taken ? k : -1, e.g, factor};
        };
        entry const nothing{element(0), -1};
        entry next[ahead];

        if (rows) {
            // Neighbours in memory belong to different warps: pieces of 8 rows come in together.
            int const r = threadIdx.x % lines, c = threadIdx.x / lines;
            auto const fetch = [&](int n0) {
#pragma unroll
                for (int i = 0; i < ahead; ++i) {
                    int const n = n0 + c + i * 32;
                    next[i] = n < p.n && first + r < p.m ? read(p, which, first + r, n) : nothing;
                }
            };
            fetch(0);
            for (int n0 = 0; n0 < p.n; n0 += columns) {
                __syncthreads();
#pragma unroll
                for (int i = 0; i < ahead; ++i) piece[c + i * 32][r] = next[i];
                __syncthreads();
                if (n0 + columns < p.n) fetch(n0 + columns);
                int const filled = min(columns, p.n - n0);
#pragma unroll 2
                for (int i = lane; i - lane < filled; i += 32) add(line, addend_of(piece[i][warp], n0 + i));
            }
        } else {
            auto const fetch = [&](int i, int m) { next[i] = m < p.m && own < p.n ? read(p, which, m, own) : nothing; };
#pragma unroll
            for (int i = 0; i < ahead; ++i) fetch(i, i * 32 + lane);
            for (int m0 = lane; m0 - lane < p.m; m0 += 32 * ahead) {
#pragma unroll
                for (int i = 0; i < ahead; ++i) {
                    auto const what = addend_of(next[i], m0 + i * 32);
                    fetch(i, m0 + (i + ahead) * 32);
                    add(line, what);
                }
            }
        }

        element* const out = rows ? static_cast<element*>(p.da) + which * p.stride_da
                                  : static_cast<element*>(p.db) + which * p.stride_db;
        i64 const ld = rows ? p.ldda : p.lddb;
        auto const put = [&](i64 index, element x) { out[index] = (p.flags & accumulate) ? out[index] + x : x; };
        __syncthreads();
        if (p.flags & (rows ? da_along_k : db_along_k)) {
            if (own < size)
                for (int k = lane; k < count; k += 32) put(own * ld + k0 + k, element_of(line[k]));
        } else {
            int const l = threadIdx.x % lines;
            if (first + l < size)
                for (int k = threadIdx.x / lines; k < count; k += 32)
                    put((k0 + k) * ld + first + l, element_of(held[static_cast<i64>(l) * p.part + k]));
        }
        __syncthreads();
    }
}
