// SPDX-License-Identifier: Apache-2.0
// The way of A and B into shared memory.
#pragma once

#include "machine.cuh"
#include "tile.cuh"

// Where one operand's tiles come from: `x` is m or n.
struct operand {
    element const* data;
    i64 ld;
    int first, size;  // x
    bool along_k;
};

// Brings one operand's tiles into shared memory, asynchronously, in the best of three ways:
//   rows     neighbours along x: 16 bytes at a time
//   columns  neighbours along k: element by element, a warp 8 along k of 4 along x, so that no bank is hit twice
//   any      element by element, also the last tile of k
template <class Tile, int Bx, int Pitch>
struct feed {
    enum class kind { any, rows, columns };
    static constexpr int threads = Tile::threads, bk = Tile::bk;
    // Of `rows`: how many rows all threads copy at once. Of `columns`: how many columns.
    static constexpr int rows_at_once = threads / (Bx / wide), columns_at_once = threads / 8;
    static_assert(bk % rows_at_once == 0 && Bx % columns_at_once == 0 && bk % 8 == 0);

    kind how = kind::any;
    element const* next;
    int slot;   // of this thread's first element in a stage
    int after;  // of `columns`: how many of them are left after this thread's first

    __device__ __forceinline__ void begin(operand const& from, int k0) {
        int const id = threadIdx.x;
        if (from.along_k) {
            how = kind::columns;
            int const x = min(from.first + id / 8, from.size - 1), kk = id % 8;
            next = from.data + x * from.ld + k0 + kk;
            slot = kk * Pitch + id / 8;
            after = from.size - 1 - x;
        } else {
            bool const inside = from.first + i64{Bx} <= from.size;
            if (is_aligned(from.data, from.ld) && (inside || from.size % wide == 0)) how = kind::rows;
            int const x = id % (Bx / wide) * wide, kk = id / (Bx / wide);
            next = from.data + min(from.first + x, max(from.size - wide, 0)) + (k0 + kk) * from.ld;
            slot = kk * Pitch + x;
        }
    }
    __device__ __forceinline__ void fetch(element* to, operand const& from, int k0, int k) {
        bool const whole = k0 + bk <= k;
        if (how == kind::rows && whole) {
#pragma unroll
            for (int kk = 0; kk < bk; kk += rows_at_once) copy_async<16>(to + slot + kk * Pitch, next + kk * from.ld);
            next += bk * from.ld;
        } else if (how == kind::columns && whole) {
            i64 const ld = unknown(from.ld);
#pragma unroll
            for (int x = 0; x < Bx; x += columns_at_once) {
                element const* const column = next + min(x, after) * ld;
#pragma unroll
                for (int kk = 0; kk < bk; kk += 8) copy_async<sizeof(element)>(to + slot + kk * Pitch + x, column + kk);
            }
            next += bk;
        } else {
            fetch_any(to, from, k0, k);
        }
    }

private:
    __device__ __forceinline__ void fetch_any(element* to, operand const& from, int k0, int k) {
        i64 const step_x = from.along_k ? from.ld : 1, step_k = from.along_k ? 1 : from.ld;
#pragma unroll 1
        for (int i = threadIdx.x; i < Bx * bk; i += threads) {
            int const x = from.along_k ? i / 8 % Bx : i % Bx, kk = from.along_k ? i % 8 + i / (8 * Bx) * 8 : i / Bx;
            element* const at = to + kk * Pitch + x;
            if (k0 + kk < k)
                copy_async<sizeof(element)>(at, from.data + min(from.first + x, from.size - 1) * step_x + (k0 + kk) * step_k);
            else *at = zero();
        }
    }
};
