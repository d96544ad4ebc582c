// SPDX-License-Identifier: Apache-2.0
//
// C = A (x) B, one thread per element, steps in order: compiled in a few hundredths of a second, it serves while the tuned
// product is still being made, and where that one does not reach. The same bits come out, but for plus_times on floats.
#include "semiring.cuh"

extern "C" __global__ void __launch_bounds__(256) product_generic(__grid_constant__ problem const p) {
    i64 const per_member = static_cast<i64>(p.m) * p.n, all = per_member * p.batch;
    i64 const step = static_cast<i64>(gridDim.x) * blockDim.x;
    for (i64 t = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; t < all; t += step) {
        i64 const which = t / per_member, inside = t - which * per_member;
        int const m = static_cast<int>(inside % p.m), n = static_cast<int>(inside / p.m);
        bool const a_k = (p.flags & a_along_k) != 0, b_k = (p.flags & b_along_k) != 0;
        element const* const a =
            member(p, static_cast<element const*>(p.a), p.stride_a, which) + (a_k ? m * p.lda : m);
        element const* const b =
            member(p, static_cast<element const*>(p.b), p.stride_b, which) + (b_k ? n * p.ldb : n);
        element* const c = member(p, static_cast<element*>(p.c), p.stride_c, which) + n * p.ldc + m;
        i64 const step_a = a_k ? 1 : p.lda, step_b = b_k ? 1 : p.ldb;
        element best = zero();
        int winner = p.no_path;
#pragma unroll 4
        for (int k = 0; k < p.k; ++k) {
            element const x = a[k * step_a], y = b[k * step_b];
            if constexpr (is_sum) {
                best = one_sum(best, x, y);
            } else {
                element const next = checked_times(x, y);
                if (beats(next, best)) {
                    best = next;
                    winner = k;
                }
            }
        }
        if (p.flags & accumulate) {
            element const old = normal(*c);
            if constexpr (is_sum) best = wrapped_sum(old, best);
            else if (!beats(best, old) && old == old) {
                best = old;
                winner = -1;
            }
        }
        *c = normal(best);
        if constexpr (with_arg) {
            i64 const at = n * p.ldarg + m;
            if (p.flags & arg_is_64) member(p, static_cast<i64*>(p.arg), p.stride_arg, which)[at] = winner;
            else member(p, static_cast<int*>(p.arg), p.stride_arg, which)[at] = winner;
        }
    }
}
