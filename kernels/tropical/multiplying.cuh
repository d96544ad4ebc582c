// SPDX-License-Identifier: Apache-2.0
// The tiles of k, one after the other, into the elements that a thread holds in registers.
#pragma once

#include "arithmetic.cuh"
#include "staging.cuh"

template <class Tile>
struct accumulators {
    element value[Tile::tn][Tile::tm];
    element one;
    // Number of the eight steps that hold the best so far, two in a register; no_block: none.
    u32 block[with_arg ? Tile::tn : 1][with_arg ? Tile::tm / 2 : 1];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int j = 0; j < Tile::tn; ++j)
#pragma unroll
            for (int i = 0; i < Tile::tm; ++i) {
                value[j][i] = zero();
                if constexpr (with_arg) block[j][i / 2] = ~0u;
            }
    }
    __device__ __forceinline__ void set_block(int j, int i, u32 number) {
        u32& both = block[j][i / 2];
        both = __byte_perm(both, number, i % 2 == 0 ? 0x3254 : 0x5410);
    }
    [[nodiscard]] __device__ __forceinline__ u32 block_of(int j, int i) const {
        return i % 2 == 0 ? block[j][i / 2] & 0xffffu : block[j][i / 2] >> 16;
    }
};

// Where the next step is read from.
template <class Tile>
struct row {
    static constexpr int step_a = Tile::pitch_a * apart, step_b = Tile::pitch_b * apart;
    shared_place a, b;

    __device__ __forceinline__ row(element const* from_a, element const* from_b) : a{place_of(from_a)}, b{place_of(from_b)} {}
    [[nodiscard]] __device__ __forceinline__ row after(int steps) const {
        row out = *this;
        out.a += steps * step_a;
        out.b += steps * step_b;
        return out;
    }
    __device__ __forceinline__ void read(element (&to)[Tile::tm], element (&other)[Tile::tn], int ahead) const {
#pragma unroll
        for (int g = 0; g < Tile::tm / wide; ++g)
            read_wide(to + g * wide, a + (ahead * step_a + g * Tile::lanes_m * wide * apart));
#pragma unroll
        for (int g = 0; g < Tile::tn / wide; ++g)
            read_wide(other + g * wide, b + (ahead * step_b + g * Tile::lanes_n * wide * apart));
    }
};

// A tile's steps, a multiple of 8. `meanwhile` is called with the number of every run of them, to be done along with it.
template <way How, class Tile>
struct stride {
    static constexpr bool by_halves = How == way::fast && is_i32 && is_plus;
    static constexpr bool pairs = by_halves || (How != way::plain && How != way::fast);
    // The plain way is rare where there is another.
    static constexpr int run = How != way::plain ? 2 * Tile::unroll : is_ranged ? 1 : is_by_sign ? 2 : 2 * Tile::unroll;
};
template <way How, class Tile, class Meanwhile>
__device__ __forceinline__ void work(accumulators<Tile>& acc, row<Tile> const& at, int steps, Meanwhile meanwhile) {
    using by = stride<How, Tile>;
    static_assert(8 % by::run == 0);
#pragma unroll 1
    for (int begin = 0; begin < steps; begin += by::run) {
        row<Tile> const now = at.after(begin);
        meanwhile(begin / by::run);
#pragma unroll
        for (int k = 0; k < by::run; k += by::pairs ? 2 : 1) {
            element a0[Tile::tm], b0[Tile::tn];
            now.read(a0, b0, k);
            if constexpr (by::pairs) {
                element a1[Tile::tm], b1[Tile::tn];
                now.read(a1, b1, k + 1);
#pragma unroll
                for (int i = 0; i < Tile::tm; ++i)
#pragma unroll
                    for (int j = 0; j < Tile::tn; ++j) {
                        element& x = acc.value[j][i];
                        if constexpr (by::by_halves) x = two_steps(x, a0[i], b0[j], a1[i], b1[j], j % 2 == 0, acc.one);
                        else x = best_of<How>(times(a0[i], b0[j]), times(a1[i], b1[j]), x);
                    }
            } else {
#pragma unroll
                for (int j = 0; j < Tile::tn; ++j)
#pragma unroll
                    for (int i = 0; i < Tile::tm; ++i) acc.value[j][i] = step<How>(acc.value[j][i], a0[i], b0[j]);
            }
        }
    }
}
struct nothing {
    __device__ __forceinline__ void operator()(int) const {}
};

// The best of eight steps, kept apart from what came before.
template <way How, class Tile>
__device__ __forceinline__ void best_of_eight(element (&best)[Tile::tn][Tile::tm], row<Tile> const& at) {
    constexpr bool pairs = How != way::plain && How != way::fast;
    // The plain way is rare where there is another, and long for integers; and-or is for checks.
    constexpr int unroll = How != way::plain ? 8 : is_ranged || is_and_or ? 1 : is_by_sign ? 2 : 8;
    if constexpr (unroll < 8 || (is_float && !is_f32)) {
#pragma unroll
        for (int j = 0; j < Tile::tn; ++j)
#pragma unroll
            for (int i = 0; i < Tile::tm; ++i) best[j][i] = zero();
    }
#pragma unroll unroll
    for (int s = 0; s < 8; s += pairs ? 2 : 1) {
        element a0[Tile::tm], b0[Tile::tn], a1[Tile::tm], b1[Tile::tn];
        at.read(a0, b0, s);
        if constexpr (pairs) at.read(a1, b1, s + 1);
#pragma unroll
        for (int j = 0; j < Tile::tn; ++j)
#pragma unroll
            for (int i = 0; i < Tile::tm; ++i) {
                element& x = best[j][i];
                if constexpr (pairs) {
                    element const y = times(a0[i], b0[j]), z = times(a1[i], b1[j]);
                    x = s == 0 ? best_of<How>(y, z) : best_of<How>(y, z, x);
                } else if (unroll == 8 && s == 0 && (is_f32 || !is_float)) {
                    x = times(a0[i], b0[j]);  // may be a NaN, which the next maximum drops
                } else {
                    x = step<How>(x, a0[i], b0[j]);
                }
            }
    }
}

template <way How, class Tile>
__device__ __forceinline__ void keep(accumulators<Tile>& acc, element const (&best)[Tile::tn][Tile::tm], u32 number) {
    auto const replaces = [](element x, element y) {
        // A NaN among ints of the winning sign has hidden the others: it must stay to be seen.
        if constexpr (is_f32 && How == way::int_max) return bits_of(x) > bits_of(y);
        return beats(x, y);
    };
#pragma unroll
    for (int j = 0; j < Tile::tn; ++j)
#pragma unroll
        for (int i = 0; i < Tile::tm; ++i)
            if (replaces(best[j][i], acc.value[j][i])) {
                acc.value[j][i] = best[j][i];
                acc.set_block(j, i, number);
            }
}

template <class Tile>
__device__ __forceinline__ way next_way(accumulators<Tile> const& acc) {
    if (all_win(acc.value)) return winning_way;
    return is_plus && all_lose(acc.value) ? losing_way : way::plain;
}

// A guess from eight products per lane: elements start with the losing sign, and one winner among so many means that soon
// there will be one for each of them.
template <class Tile>
__device__ __forceinline__ way first_way(row<Tile> const& at) {
    if constexpr (!is_plus) return winning_way;
    int all = is_min_plus ? 0 : -1;
#pragma unroll
    for (int k = 0; k < 8; ++k) {
        element a[wide], b[wide];
        read_wide(a, at.a + k * at.step_a);
        read_wide(b, at.b + k * at.step_b);
        int const sign = bits_of(static_cast<float>(times(a[0], b[0])));
        all = is_min_plus ? all | sign : all & sign;
    }
    return __any_sync(~0u, is_min_plus ? all < 0 : all >= 0) ? winning_way : losing_way;
}

// One warp's share of a tile of f32, in the way that is exact for it; `how` is what the next tile begins with. True: a NaN
// got in and the whole product must be done the plain way.
template <class Tile>
__device__ __forceinline__ bool work_by_sign(way& how, accumulators<Tile>& acc, row<Tile> const& at, int steps,
                                             bool is_first, bool plain_only) {
    bool nan = false;
    if (is_first && !plain_only) how = first_way(at);
    if (how == winning_way) {
        work<winning_way>(acc, at, steps, nothing{});
        if (!is_plus || !is_first || all_win(acc.value)) return false;
        acc.clear();  // not all have won: what is kept of those means nothing
    } else if (is_plus && how == losing_way) {
        work<losing_way>(acc, at, steps, nothing{});
        if (all_lose(acc.value)) return false;
        // A sign has changed: what is kept is real, but maybe not the best of this tile. Once more, the plain way.
        if constexpr (is_max_plus) nan = has_nan(acc.value);
    }
    work<way::plain>(acc, at, steps, nothing{});
    how = plain_only ? way::plain : next_way(acc);
    return nan;
}

// The same with the winner's place. Eight steps of the losing sign are looked at before they are kept: afterwards it would
// be too late to tell which of two equal ones came first.
template <class Tile>
__device__ __forceinline__ void work_with_arg(way& how, accumulators<Tile>& acc, row<Tile> const& at, int steps,
                                              int k0, bool plain_only) {
#pragma unroll 1
    for (int k = 0; k < steps; k += 8) {
        element best[Tile::tn][Tile::tm];
        row<Tile> const now = at.after(k);
        u32 const number = static_cast<u32>(k0 + k) / 8;
        if constexpr (is_by_sign) {
            if (how == winning_way) {
                best_of_eight<winning_way>(best, now);
                keep<winning_way>(acc, best, number);
                continue;
            }
            if (is_plus && how == losing_way) best_of_eight<losing_way>(best, now);
            if (how == way::plain || !all_lose(best)) best_of_eight<way::plain>(best, now);
        } else if (is_ranged && !plain_only) {
            best_of_eight<way::fast>(best, now);
        } else {
            best_of_eight<way::plain>(best, now);
        }
        keep<way::plain>(acc, best, number);
        // At the beginning the signs settle soon.
        if constexpr (is_by_sign) {
            if (!plain_only && (k0 == 0 || k + 8 == steps)) how = next_way(acc);
        }
    }
}

// Looks at this thread's share of a tile, in as many turns as the tile has runs of steps. Any thread may look at any part once
// all copies have arrived.
template <class Tile>
struct looking {
    static constexpr int turns = Tile::bk / stride<way::fast, Tile>::run;
    static constexpr int of_a = Tile::bk * Tile::bm / wide / Tile::threads / turns;
    static constexpr int of_b = Tile::bk * Tile::bn / wide / Tile::threads / turns;
    static_assert(of_a > 0 && of_b > 0 && Tile::threads % (Tile::bm / wide) == 0 && Tile::threads % (Tile::bn / wide) == 0);
    range_check& range;
    element const *a, *b;

    __device__ __forceinline__ looking(range_check& into, element const* tile_a, element const* tile_b)
        : range{into}, a{start<Tile::bm, Tile::pitch_a>(tile_a)}, b{start<Tile::bn, Tile::pitch_b>(tile_b)} {}

    __device__ __forceinline__ void operator()(int turn) const {
#pragma unroll
        for (int i = 0; i < of_a; ++i) look(a + (turn * of_a + i) * (Tile::threads / (Tile::bm / wide)) * Tile::pitch_a);
#pragma unroll
        for (int i = 0; i < of_b; ++i) look(b + (turn * of_b + i) * (Tile::threads / (Tile::bn / wide)) * Tile::pitch_b);
    }

private:
    template <int Bx, int Pitch>
    __device__ __forceinline__ static element const* start(element const* tile) {
        return tile + threadIdx.x / (Bx / wide) * Pitch + threadIdx.x % (Bx / wide) * wide;
    }
    __device__ __forceinline__ void look(element const* from) const {
        element x[wide];
        *reinterpret_cast<int4*>(x) = *reinterpret_cast<int4 const*>(from);
#pragma unroll
        for (int e = 0; e < wide; ++e) range.look(x[e]);
    }
};

// All tiles of k from `begin` to `end`. True: not exact, do it again plainly.
template <class Tile>
__device__ __forceinline__ bool multiply(accumulators<Tile>& acc, element* shared, operand const& a, operand const& b,
                                         int begin, int end, int k, bool plain_only) {
    constexpr int a_size = Tile::bk * Tile::pitch_a;
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int const at_a = warp % (Tile::bm / Tile::warp_m) * Tile::warp_m + lane % Tile::lanes_m * wide;
    int const at_b = warp / (Tile::bm / Tile::warp_m) * Tile::warp_n + lane / Tile::lanes_m * wide;
    acc.clear();
    way how = with_arg && is_max_mul && !plain_only ? winning_way : way::plain;
    bool again = false;
    [[maybe_unused]] range_check range;
    feed<Tile, Tile::bm, Tile::pitch_a> feed_a;
    feed<Tile, Tile::bn, Tile::pitch_b> feed_b;
    feed_a.begin(a, begin * Tile::bk);
    feed_b.begin(b, begin * Tile::bk);
#pragma unroll 1
    for (int t = begin - 1; t < end; ++t) {
        wait_for_copies();
        __syncthreads();
        if (t + 1 < end) {
            element* const next = shared + (t + 1) % 2 * Tile::stage;
            feed_a.fetch(next, a, (t + 1) * Tile::bk, k);
            feed_b.fetch(next + a_size, b, (t + 1) * Tile::bk, k);
        }
        if (t < begin) continue;
        element* const tile_a = shared + t % 2 * Tile::stage;
        element* const tile_b = tile_a + a_size;
        row<Tile> const at{tile_a + at_a, tile_b + at_b};
        // Beyond the last k there are zeros up to the end of the tile.
        int const steps = (min(k - t * Tile::bk, Tile::bk) + 7) / 8 * 8;
        if constexpr (with_arg) {
            if constexpr (is_ranged) {
                looking<Tile> const look{range, tile_a, tile_b};
                for (int turn = 0; turn < (plain_only ? 0 : look.turns); ++turn) look(turn);
            }
            work_with_arg(how, acc, at, steps, t * Tile::bk, plain_only);
        } else if constexpr (is_by_sign) {
            if (work_by_sign(how, acc, at, steps, t == begin, plain_only)) again = true;
        } else if constexpr (is_ranged) {
            if (plain_only) work<way::plain>(acc, at, steps, nothing{});
            else work<way::fast>(acc, at, steps, looking<Tile>{range, tile_a, tile_b});
        } else {
            work<way::plain>(acc, at, steps, nothing{});
        }
    }
    if constexpr (is_ranged) again = !range.exact();
    if constexpr (is_by_sign && !is_min_plus) again = again || (how == winning_way && has_nan(acc.value));
    // Also the barrier after which the stages may be overwritten.
    return __syncthreads_or(!plain_only && again) != 0;
}
