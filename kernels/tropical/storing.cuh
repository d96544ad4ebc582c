// SPDX-License-Identifier: Apache-2.0
// From registers into C, together with what C holds and what the other blocks of a cluster have.
#pragma once

#include "machine.cuh"
#include "multiplying.cuh"
#include "winners.cuh"

// Where a thread's elements are in C: runs of `wide` along m.
template <class Tile>
struct position {
    int m, n;
    __device__ __forceinline__ position(int m0, int n0) {
        int const warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        m = m0 + warp % (Tile::bm / Tile::warp_m) * Tile::warp_m + lane % Tile::lanes_m * wide;
        n = n0 + warp / (Tile::bm / Tile::warp_m) * Tile::warp_n + lane / Tile::lanes_m * wide;
    }
    [[nodiscard]] __device__ __forceinline__ int m_of(int item) const {
        return m + item % Tile::tm / wide * Tile::lanes_m * wide;
    }
    [[nodiscard]] __device__ __forceinline__ int n_of(int item) const {
        int const j = item / Tile::tm;
        return n + j / wide * Tile::lanes_n * wide + j % wide;
    }
};

// Goes through a thread's columns of C one after the other.
template <class Tile>
struct columns {
    element* column;
    i64 ld;
    __device__ __forceinline__ columns(element* c, i64 ldc, position<Tile> const& where)
        : column{c + where.n * ldc + where.m}, ld{unknown(ldc)} {}
    __device__ __forceinline__ void next(int j) { column += j % wide == 0 ? ld * ((Tile::lanes_n - 1) * wide + 1) : ld; }
    [[nodiscard]] __device__ __forceinline__ element* row(int i) const { return column + i * Tile::lanes_m; }
};

// A whole tile, straight from registers.
template <class Tile>
__device__ __forceinline__ void store_whole(problem const& p, element* c, accumulators<Tile> const& acc,
                                            position<Tile> const& where) {
    columns<Tile> at{c, p.ldc, where};
#pragma unroll
    for (int j = 0; j < Tile::tn; ++j, at.next(j)) {
#pragma unroll
        for (int i = 0; i < Tile::tm; i += wide) {
            element value[wide];
#pragma unroll
            for (int e = 0; e < wide; ++e) value[e] = normal(acc.value[j][i + e]);
            // Worked out anew, f64's loops get better registers: 4 % of its speed.
            write_wide(wide == 2 ? c + where.n_of(j * Tile::tm + i) * p.ldc + where.m_of(i) : at.row(i), value);
        }
    }
}
// A whole tile, from shared memory, onto what C holds. Many loads are on their way at once.
template <class Tile>
__device__ __forceinline__ void add_whole(problem const& p, element* c, element const* shared, position<Tile> const& where) {
    constexpr int at_once = Tile::items < 16 * wide ? Tile::tn : 16 * wide / Tile::tm;
    static_assert(Tile::tn % at_once == 0 && at_once % wide == 0);
    columns<Tile> at{c, p.ldc, where};
    element const* from = shared + threadIdx.x;
#pragma unroll 1
    for (int first = 0; first < Tile::tn; first += at_once) {
        element old[at_once][Tile::tm];
        columns<Tile> to = at;
#pragma unroll
        for (int j = 0; j < at_once; ++j, at.next(j))
#pragma unroll
            for (int i = 0; i < Tile::tm; i += wide)
                *reinterpret_cast<int4*>(old[j] + i) = *reinterpret_cast<int4 const*>(at.row(i));
#pragma unroll
        for (int j = 0; j < at_once; ++j, to.next(j))
#pragma unroll
            for (int i = 0; i < Tile::tm; i += wide) {
#pragma unroll
                for (int e = 0; e < wide; ++e) {
                    element const x = from[(j * Tile::tm + i + e) * Tile::threads];
                    element& y = old[j][i + e];
                    y = normal(is_sum ? y + x : better(x, normal(y)));
                }
                write_wide(to.row(i), old[j] + i);
            }
        from += at_once * Tile::tm * Tile::threads;
    }
}

// Elements pass through shared memory, so that this is a loop over runs of `wide` and not 64 copies of its body. `onto`:
// what C holds counts too.
template <class Tile>
__device__ __forceinline__ void store(problem const& p, place const& at, accumulators<Tile> const& acc, element* shared,
                                      int m0, int n0, bool onto) {
    constexpr int items = Tile::items, threads = Tile::threads;
    u32* const blocks = reinterpret_cast<u32*>(shared + items * threads);
    int const id = threadIdx.x;
    position<Tile> const where{m0, n0};
    bool const aligned = is_aligned(at.c, p.ldc);
    u32 const parts = Tile::in_parts ? cluster_size() : 1;
    bool const whole = aligned && parts == 1 && m0 + i64{Tile::bm} <= p.m && n0 + i64{Tile::bn} <= p.n;
    if constexpr (!with_arg) {
        if (whole && !onto) return store_whole(p, at.c, acc, where);
    }
#pragma unroll
    for (int j = 0; j < Tile::tn; ++j)
#pragma unroll
        for (int i = 0; i < Tile::tm; ++i) {
            shared[(j * Tile::tm + i) * threads + id] = acc.value[j][i];
            if constexpr (with_arg) blocks[(j * Tile::tm + i) * threads + id] = acc.block_of(j, i);
        }
    if constexpr (!with_arg) {
        if (whole) return add_whole(p, at.c, shared, where);
    }
    bool const b_in_pieces = (p.flags & b_along_k) != 0 && is_aligned(at.b, p.ldb) && p.k > 0 && p.k % 8 == 0;
    int first = 0, last = items;
    if (parts > 1) {
        cluster_barrier();
        first = static_cast<int>(cluster_rank()) * (items / most_parts);
        last = first + items / most_parts;
    }
#pragma unroll 1
    for (int item = first; item < last; item += wide) {
        int const m = where.m_of(item), n = where.n_of(item);
        element value[wide];
        u32 block[wide];
#pragma unroll
        for (int e = 0; e < wide; ++e) {
            int const s = (item + e) * threads + id;
            if (parts == 1) {
                value[e] = shared[s];
                if constexpr (with_arg) block[e] = blocks[s];
            } else if constexpr (Tile::in_parts) {
                value[e] = read_from(shared + s, 0);
                if constexpr (with_arg) block[e] = read_from(blocks + s, 0);
#pragma unroll
                for (u32 r = 1; r < most_parts; ++r) {
                    element const other = read_from(shared + s, r);
                    if constexpr (with_arg) {
                        u32 const k = read_from(blocks + s, r);
                        if (beats(other, value[e])) block[e] = k;
                    }
                    value[e] = better(value[e], other);
                }
            }
        }
        if (m >= p.m || n >= p.n) continue;
        i64 const index = n * p.ldc + m;
        int const count = min(wide, p.m - m);
        int winner[wide];
        if constexpr (with_arg) {
            if (p.k > 0) {
                find_winners(winner, value, block, p, at, m, n, b_in_pieces);
            } else {
#pragma unroll
                for (int e = 0; e < wide; ++e) winner[e] = p.no_path;
            }
        }
#pragma unroll
        for (int e = 0; e < wide; ++e) {
            if (e >= count) continue;
            if (onto) {
                element const old = normal(at.c[index + e]);
                if constexpr (with_arg) {
                    if (!beats(value[e], old) && old == old) {
                        value[e] = old;
                        winner[e] = -1;
                    }
                } else {
                    value[e] = is_sum ? old + value[e] : better(value[e], old);
                }
            }
            value[e] = normal(value[e]);
            if constexpr (with_arg) store_arg(p, at, n * p.ldarg + m + e, winner[e]);
        }
        if (aligned && count == wide) {
            *reinterpret_cast<int4*>(at.c + index) = *reinterpret_cast<int4 const*>(value);
        } else {
#pragma unroll
            for (int e = 0; e < wide; ++e)
                if (e < count) at.c[index + e] = value[e];
        }
    }
    // Nobody leaves, or overwrites its part, while another block may still read it.
    if (parts > 1) cluster_barrier();
}
