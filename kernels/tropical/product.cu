// SPDX-License-Identifier: Apache-2.0
//
// C = A (x) B, tuned. A block owns a tile of C; its threads hold 16 x 8 to 8 x 2 elements each; tiles of A and B pass through
// two stages of shared memory as [k][m] and [k][n], copied asynchronously. Rows beyond the edge repeat the last one and are
// not stored; steps beyond the last k are filled with zeros of the semiring. So the inner loops have no conditions.
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
#include "semiring.cuh"

// ---- Geometry ------------------------------------------------------------------------------------------------------

// Bytes of a 16-byte access as elements.
constexpr int wide = 16 / sizeof(element);

template <int Bm, int Bn, int Bk, int Tm, int Tn, int MinBlocks, int Unroll, int Split>
struct tile {
    static constexpr int bm = Bm, bn = Bn, bk = Bk, tm = Tm, tn = Tn, min_blocks = MinBlocks, unroll = Unroll, split = Split;
    static constexpr int lanes_m = 8, lanes_n = 4;
    static constexpr int warp_m = lanes_m * tm, warp_n = lanes_n * tn;
    static constexpr int threads = bm / warp_m * (bn / warp_n) * 32;
    static constexpr int pitch_a = bm + wide, pitch_b = bn + wide;  // in elements; no bank is hit twice
    static constexpr int stage = bk * (pitch_a + pitch_b);
    static constexpr int items = tm * tn;
    static_assert(bm % warp_m == 0 && bn % warp_n == 0 && threads % bk == 0 && bk % 8 == 0);
    static_assert(bm * bk % (threads * wide) == 0 && bn * bk % (threads * wide) == 0);
    static_assert(tm % wide == 0 && tn % wide == 0 && items % (split * wide) == 0);
};

// ---- Machine -------------------------------------------------------------------------------------------------------

__device__ __forceinline__ u32 shared_address(void const* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }

template <int Bytes>
__device__ __forceinline__ void copy_async(void* to, void const* from) {
#if __CUDA_ARCH__ >= 800
    if constexpr (Bytes == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_address(to)), "l"(from), "n"(Bytes)
                     : "memory");
#else
    if constexpr (Bytes == 16) *static_cast<int4*>(to) = *static_cast<int4 const*>(from);
    else *static_cast<element*>(to) = *static_cast<element const*>(from);
#endif
}
__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

__device__ __forceinline__ u32 cluster_rank() {
    u32 out = 0;
#if __CUDA_ARCH__ >= 900
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(out));
#endif
    return out;
}
__device__ __forceinline__ void cluster_barrier() {
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}
// From the shared memory of another block of the cluster.
template <class T>
__device__ __forceinline__ T read_from(T const* p, u32 rank) {
    T out = *p;
#if __CUDA_ARCH__ >= 900
    u32 at;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(shared_address(p)), "r"(rank));
    if constexpr (sizeof(T) == 4) {
        u32 raw;
        asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(raw) : "r"(at) : "memory");
        memcpy(&out, &raw, 4);
    } else {
        unsigned long long raw;
        asm volatile("ld.shared::cluster.u64 %0, [%1];" : "=l"(raw) : "r"(at) : "memory");
        memcpy(&out, &raw, 8);
    }
#endif
    return out;
}

// ---- Steps ---------------------------------------------------------------------------------------------------------

// How steps are put into an element. `plain` is right for everything.
enum class way { plain, int_max, unsigned_min, int_min, unsigned_max, fast };

// Of f32: exact while all elements of a warp have the losing sign, and from then on when all have the winning one.
constexpr bool is_by_sign = is_f32 && (is_plus || is_max_mul);
[[maybe_unused]] constexpr way losing_way = is_min_plus ? way::int_min : way::unsigned_min;
[[maybe_unused]] constexpr way winning_way = is_min_plus ? way::unsigned_max : way::int_max;

__device__ __forceinline__ int bits_of(float x) { return __float_as_int(x); }
__device__ __forceinline__ float float_of(int x) { return __int_as_float(x); }
// Of f32, on bit patterns.
template <way How>
__device__ __forceinline__ float best_of(float x, float y) {
    if constexpr (How == way::int_max) return float_of(max(bits_of(x), bits_of(y)));
    if constexpr (How == way::int_min) return float_of(min(bits_of(x), bits_of(y)));
    if constexpr (How == way::unsigned_min) return float_of(min(u32(bits_of(x)), u32(bits_of(y))));
    return float_of(max(u32(bits_of(x)), u32(bits_of(y))));
}
// One instruction.
template <way How>
__device__ __forceinline__ float best_of(float x, float y, float z) {
    return best_of<How>(best_of<How>(x, y), z);
}

template <way How>
__device__ __forceinline__ element step(element acc, element a, element b) {
    if constexpr (is_sum) return one_sum(acc, a, b);
    return better(acc, How == way::plain ? checked_times(a, b) : times(a, b));
}

// ---- A tile of C ---------------------------------------------------------------------------------------------------

// Where one operand's tiles come from: `x` is m or n.
struct operand {
    element const* data;
    i64 ld;
    int first, size;  // x
    bool along_k;
};

__device__ __forceinline__ bool is_aligned(void const* data, i64 ld) {
    return reinterpret_cast<unsigned long long>(data) % 16 == 0 && ld % wide == 0;
}

// Brings one operand's tiles into shared memory, in the best of three ways:
//   rows    neighbours along x: 16-byte asynchronous copies
//   turned  neighbours along k: 16-byte asynchronous copies as they are; each thread transposes its own once they are there
//   any     element by element, asynchronously; also the last tile of k, and what is not aligned
template <class Tile, int Bx, int Pitch>
struct feed {
    enum class kind { any, rows, turned };
    static constexpr int threads = Tile::threads, bk = Tile::bk;
    static constexpr int chunks = Bx * bk / wide / threads;
    // Of `rows`: how many rows all threads copy at once.
    static constexpr int at_once = threads / (Bx / wide);
    // Of `turned`: two neighbours share 32 bytes along k, so that no bank is hit twice on the way out.
    static constexpr bool one_column = threads / 2 >= Bx;
    static constexpr int columns = one_column ? 1 : Bx / (threads / 2);
    static constexpr int k_step = one_column ? 2 * (threads / 2 / Bx) * wide : 2 * wide;

    kind how = kind::any;
    bool pending = false;
    element const* next;
    int slot;  // of this thread's first element in a stage

    __device__ __forceinline__ void begin(operand const& from, int k0) {
        int const id = threadIdx.x;
        bool const inside = from.first + i64{Bx} <= from.size;
        if (from.along_k) {
            if (is_aligned(from.data, from.ld) && (one_column || inside)) how = kind::turned;
            int const x = id / 2 % Bx, kk = (id % 2 + id / 2 / Bx * 2) * wide;
            next = from.data + min(from.first + x, from.size - 1) * from.ld + k0 + kk;
            slot = kk * Pitch + x;
        } else {
            if (is_aligned(from.data, from.ld) && (inside || from.size % wide == 0)) how = kind::rows;
            int const x = id % (Bx / wide) * wide, kk = id / (Bx / wide);
            next = from.data + min(from.first + x, max(from.size - wide, 0)) + (k0 + kk) * from.ld;
            slot = kk * Pitch + x;
        }
    }
    __device__ __forceinline__ void fetch(element* to, element* raw, operand const& from, int k0, int k) {
        bool const whole = k0 + bk <= k;
        if (how == kind::rows && whole) {
#pragma unroll
            for (int i = 0; i < chunks; ++i) copy_async<16>(to + slot + i * at_once * Pitch, next + i * at_once * from.ld);
            next += bk * from.ld;
        } else if (how == kind::turned && whole) {
#pragma unroll
            for (int i = 0; i < chunks; ++i) {
                element const* const at = next + i % columns * (threads / 2) * from.ld + i / columns * k_step;
                copy_async<16>(raw + (threadIdx.x + i * threads) * wide, at);
            }
            next += bk;
            pending = true;
        } else {
            fetch_any(to, from, k0, k);
        }
    }
    // After the copies of this thread have arrived.
    __device__ __forceinline__ void finish(element* to, element const* raw) {
        pending = false;
#pragma unroll
        for (int i = 0; i < chunks; ++i) {
            element run[wide];
            *reinterpret_cast<int4*>(run) = *reinterpret_cast<int4 const*>(raw + (threadIdx.x + i * threads) * wide);
#pragma unroll
            for (int e = 0; e < wide; ++e)
                to[slot + i % columns * (threads / 2) + (i / columns * k_step + e) * Pitch] = run[e];
        }
    }

private:
    __device__ __forceinline__ void fetch_any(element* to, operand const& from, int k0, int k) {
        i64 const step_x = from.along_k ? from.ld : 1, step_k = from.along_k ? 1 : from.ld;
#pragma unroll 4
        for (int i = 0; i < chunks * wide; ++i) {
            int const c = threadIdx.x + i * threads;
            int const x = from.along_k ? c / bk : c % Bx, kk = from.along_k ? c % bk : c / Bx;
            element* const at = to + kk * Pitch + x;
            if (k0 + kk < k)
                copy_async<sizeof(element)>(at, from.data + min(from.first + x, from.size - 1) * step_x + (k0 + kk) * step_k);
            else *at = zero();
        }
    }
};

// Whether every value seen so far is one that plain integer arithmetic is exact for.
struct range_check {
    int mixed = 0;  // bits 31 and 29: the top four bits are neither all equal nor the infinity's
    int extreme = is_min_plus ? 0x7fffffff : -0x7fffffff - 1;
    int least = 0;

    __device__ __forceinline__ void look(element x) {
        if constexpr (is_plus) {
            int const top = is_i32 ? static_cast<int>(x) : static_cast<int>(static_cast<i64>(x) >> 32);
            mixed |= top ^ (top << 1);
            extreme = is_min_plus ? min(extreme, top) : max(extreme, top);
        } else if constexpr (is_i32) {
            extreme = max(extreme, static_cast<int>(x));
            least = min(least, static_cast<int>(x));
        } else if constexpr (!is_float) {
            mixed |= x > 3037000499LL || x < -3037000499LL;
        }
    }
    [[nodiscard]] __device__ __forceinline__ bool exact() const {
        constexpr int quarter = 1 << 28;
        if constexpr (is_plus) return (mixed & 0xa0000000) == 0 && (is_min_plus ? extreme >= -quarter : extreme < quarter);
        if constexpr (is_i32) return extreme <= 46340 && least >= -46340;
        return mixed == 0;
    }
};

constexpr u32 no_block = 0xffff;

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

template <class Tile>
__device__ __forceinline__ void read_row(element (&to)[Tile::tm], element (&other)[Tile::tn], element const* a,
                                         element const* b) {
#pragma unroll
    for (int g = 0; g < Tile::tm / wide; ++g)
        *reinterpret_cast<int4*>(to + g * wide) = *reinterpret_cast<int4 const*>(a + g * Tile::lanes_m * wide);
#pragma unroll
    for (int g = 0; g < Tile::tn / wide; ++g)
        *reinterpret_cast<int4*>(other + g * wide) = *reinterpret_cast<int4 const*>(b + g * Tile::lanes_n * wide);
}

// Two steps of i32. Every other sum goes through the multiplier, by a one that the compiler does not know: maxima and the
// sums that come with them are all one kind of unit can do, and it would be the only one at work.
__device__ __forceinline__ element two_steps(element acc, element a0, element b0, element a1, element b1, bool multiplied,
                                             element one) {
    if (!multiplied) return better(better(acc, wrapped_sum(a0, b0)), wrapped_sum(a1, b1));
    return better(better(one_sum(b0, a0, one), one_sum(b1, a1, one)), acc);
}

// A tile's steps. `meanwhile` is called with the number of every run of them, to be done along with it.
template <way How, class Tile>
struct stride {
    static constexpr bool by_halves = How == way::fast && is_i32 && is_plus;
    static constexpr bool pairs = by_halves || (How != way::plain && How != way::fast);
    // The plain way of ranged integers is long and rare.
    static constexpr int run = How == way::plain && is_ranged ? 1 : 2 * Tile::unroll;
};
template <way How, class Tile, class Meanwhile>
__device__ __forceinline__ void work(accumulators<Tile>& acc, element const* a, element const* b, Meanwhile meanwhile) {
    using by = stride<How, Tile>;
#pragma unroll 1
    for (int begin = 0; begin < Tile::bk; begin += by::run) {
        meanwhile(begin / by::run);
#pragma unroll
        for (int k = begin; k < begin + by::run; k += by::pairs ? 2 : 1) {
            element a0[Tile::tm], b0[Tile::tn];
            read_row<Tile>(a0, b0, a + k * Tile::pitch_a, b + k * Tile::pitch_b);
            if constexpr (by::pairs) {
                element a1[Tile::tm], b1[Tile::tn];
                read_row<Tile>(a1, b1, a + (k + 1) * Tile::pitch_a, b + (k + 1) * Tile::pitch_b);
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
__device__ __forceinline__ void best_of_eight(element (&best)[Tile::tn][Tile::tm], element const* a, element const* b) {
    constexpr bool pairs = How != way::plain && How != way::fast;
    // The plain way of ranged integers is long and rare.
    constexpr int unroll = How == way::plain && is_ranged ? 1 : 8;
    if constexpr (unroll == 1 || (is_float && !is_f32)) {
#pragma unroll
        for (int j = 0; j < Tile::tn; ++j)
#pragma unroll
            for (int i = 0; i < Tile::tm; ++i) best[j][i] = zero();
    }
#pragma unroll unroll
    for (int s = 0; s < 8; s += pairs ? 2 : 1) {
        element a0[Tile::tm], b0[Tile::tn], a1[Tile::tm], b1[Tile::tn];
        read_row<Tile>(a0, b0, a + s * Tile::pitch_a, b + s * Tile::pitch_b);
        if constexpr (pairs) read_row<Tile>(a1, b1, a + (s + 1) * Tile::pitch_a, b + (s + 1) * Tile::pitch_b);
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

template <int N, int M>
__device__ __forceinline__ bool all_negative(element const (&x)[N][M]) {
    int sign = -1;
#pragma unroll
    for (int j = 0; j < N; ++j)
#pragma unroll
        for (int i = 0; i < M; ++i) sign &= bits_of(static_cast<float>(x[j][i]));
    return sign < 0;
}
template <int N, int M>
__device__ __forceinline__ bool none_negative(element const (&x)[N][M]) {
    int sign = 0;
#pragma unroll
    for (int j = 0; j < N; ++j)
#pragma unroll
        for (int i = 0; i < M; ++i) sign |= bits_of(static_cast<float>(x[j][i]));
    return sign >= 0;
}
template <int N, int M>
__device__ __forceinline__ bool has_nan(element const (&x)[N][M]) {
    int largest = 0;
#pragma unroll
    for (int j = 0; j < N; ++j)
#pragma unroll
        for (int i = 0; i < M; ++i) largest = max(largest, bits_of(static_cast<float>(x[j][i])));
    return largest > 0x7f800000;
}
// For all lanes of the warp.
template <int N, int M>
__device__ __forceinline__ bool all_lose(element const (&x)[N][M]) {
    return __all_sync(~0u, is_min_plus ? none_negative(x) : all_negative(x)) != 0;
}
template <int N, int M>
__device__ __forceinline__ bool all_win(element const (&x)[N][M]) {
    return __all_sync(~0u, is_min_plus ? all_negative(x) : none_negative(x)) != 0;
}
template <class Tile>
__device__ __forceinline__ way next_way(accumulators<Tile> const& acc) {
    if (all_win(acc.value)) return winning_way;
    return is_plus && all_lose(acc.value) ? losing_way : way::plain;
}

// One warp's share of a tile of f32, in the way that is exact for it; `how` is what the next tile begins with. True: a NaN
// got in and the whole product must be done the plain way.
template <class Tile>
__device__ __forceinline__ bool work_by_sign(way& how, accumulators<Tile>& acc, element const* a, element const* b,
                                             bool plain_only) {
    bool nan = false;
    if (how == winning_way) {
        work<winning_way>(acc, a, b, nothing{});
        return false;
    }
    if (is_plus && how == losing_way) {
        work<losing_way>(acc, a, b, nothing{});
        if (all_lose(acc.value)) return false;
        // A sign has changed: what is kept is real, but maybe not the best of this tile. Once more, the plain way.
        if constexpr (is_max_plus) nan = has_nan(acc.value);
    }
    work<way::plain>(acc, a, b, nothing{});
    how = plain_only ? way::plain : next_way(acc);
    return nan;
}

// The same with the winner's place. Eight steps of the losing sign are looked at before they are kept: afterwards it would
// be too late to tell which of two equal ones came first.
template <class Tile>
__device__ __forceinline__ void work_with_arg(way& how, accumulators<Tile>& acc, element const* a, element const* b, int k0,
                                              bool plain_only) {
#pragma unroll 1
    for (int k = 0; k < Tile::bk; k += 8) {
        element best[Tile::tn][Tile::tm];
        element const *const at_a = a + k * Tile::pitch_a, *const at_b = b + k * Tile::pitch_b;
        u32 const number = static_cast<u32>(k0 + k) / 8;
        if constexpr (is_by_sign) {
            if (how == winning_way) {
                best_of_eight<winning_way, Tile>(best, at_a, at_b);
                keep<winning_way>(acc, best, number);
                continue;
            }
            if (is_plus && how == losing_way) best_of_eight<losing_way, Tile>(best, at_a, at_b);
            if (how == way::plain || !all_lose(best)) best_of_eight<way::plain, Tile>(best, at_a, at_b);
        } else if (is_ranged && !plain_only) {
            best_of_eight<way::fast, Tile>(best, at_a, at_b);
        } else {
            best_of_eight<way::plain, Tile>(best, at_a, at_b);
        }
        keep<way::plain>(acc, best, number);
    }
    if constexpr (is_by_sign) {
        if (!plain_only && how != winning_way) how = next_way(acc);
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
    way how = is_max_mul && !plain_only ? winning_way : way::plain;
    bool again = false;
    range_check range;
    feed<Tile, Tile::bm, Tile::pitch_a> feed_a;
    feed<Tile, Tile::bn, Tile::pitch_b> feed_b;
    feed_a.begin(a, begin * Tile::bk);
    feed_b.begin(b, begin * Tile::bk);
    element* const raw_a = shared + 2 * Tile::stage;
    element* const raw_b = raw_a + Tile::bk * Tile::bm;
    auto const finish = [&](element* to) {
        if (!feed_a.pending && !feed_b.pending) return;
        wait_for_copies();
        if (feed_a.pending) feed_a.finish(to, raw_a);
        if (feed_b.pending) feed_b.finish(to + a_size, raw_b);
    };
#pragma unroll 1
    for (int t = begin - 1; t < end; ++t) {
        wait_for_copies();
        __syncthreads();
        element* const tile_a = shared + t % 2 * Tile::stage;
        element* const tile_b = tile_a + a_size;
        element* const next = shared + (t + 1) % 2 * Tile::stage;
        if (t + 1 < end) {
            feed_a.fetch(next, raw_a, a, (t + 1) * Tile::bk, k);
            feed_b.fetch(next + a_size, raw_b, b, (t + 1) * Tile::bk, k);
        }
        if (t < begin) {
            finish(next);
            continue;
        }
        if constexpr (with_arg) {
            if constexpr (is_ranged) {
                looking<Tile> const look{range, tile_a, tile_b};
                for (int turn = 0; turn < (plain_only ? 0 : look.turns); ++turn) look(turn);
            }
            work_with_arg(how, acc, tile_a + at_a, tile_b + at_b, t * Tile::bk, plain_only);
        } else if constexpr (is_by_sign) {
            if (work_by_sign(how, acc, tile_a + at_a, tile_b + at_b, plain_only)) again = true;
        } else if (is_ranged && !plain_only) {
            work<way::fast>(acc, tile_a + at_a, tile_b + at_b, looking<Tile>{range, tile_a, tile_b});
        } else {
            work<way::plain>(acc, tile_a + at_a, tile_b + at_b, nothing{});
        }
        finish(next);
    }
    if constexpr (is_ranged) again = !range.exact();
    if constexpr (is_by_sign && !is_min_plus) again = again || (how == winning_way && has_nan(acc.value));
    // Also the barrier after which the stages may be overwritten.
    return __syncthreads_or(!plain_only && again) != 0;
}

// ---- Putting it into C ---------------------------------------------------------------------------------------------

struct place {
    element const *a, *b;
    element* c;
    char* arg;
};

// The eight products of a block of steps.
__device__ __forceinline__ void evaluate(element (&out)[8], problem const& p, place const& at, u32 block, int m, int n) {
    bool const a_k = (p.flags & a_along_k) != 0, b_k = (p.flags & b_along_k) != 0;
    element const* const a = at.a + (a_k ? m * p.lda : m);
    element const* const b = at.b + (b_k ? n * p.ldb : n);
    i64 const step_a = a_k ? 1 : p.lda, step_b = b_k ? 1 : p.ldb;
#pragma unroll
    for (int s = 0; s < 8; ++s) {
        int const k = min(static_cast<int>(block) * 8 + s, p.k - 1);
        out[s] = checked_times(a[k * step_a], b[k * step_b]);
    }
}

__device__ __forceinline__ void store_arg(problem const& p, place const& at, i64 index, int k) {
    if (p.flags & arg_is_64) reinterpret_cast<i64*>(at.arg)[index] = k;
    else reinterpret_cast<int*>(at.arg)[index] = k;
}

// Elements pass through shared memory, so that this is a loop over runs of `wide` and not 64 copies of its body.
template <class Tile>
__device__ __forceinline__ void store(problem const& p, place const& at, accumulators<Tile> const& acc, element* shared,
                                      int m0, int n0) {
    constexpr int items = Tile::items, threads = Tile::threads;
    u32* const blocks = reinterpret_cast<u32*>(shared + items * threads);
    int const id = threadIdx.x;
#pragma unroll
    for (int j = 0; j < Tile::tn; ++j)
#pragma unroll
        for (int i = 0; i < Tile::tm; ++i) {
            shared[(j * Tile::tm + i) * threads + id] = acc.value[j][i];
            if constexpr (with_arg) blocks[(j * Tile::tm + i) * threads + id] = acc.block_of(j, i);
        }
    u32 rank = 0;
    if constexpr (Tile::split > 1) {
        cluster_barrier();
        rank = cluster_rank();
    }
    int const warp = id / 32, lane = id % 32;
    int const lane_m = m0 + warp % (Tile::bm / Tile::warp_m) * Tile::warp_m + lane % Tile::lanes_m * wide;
    int const lane_n = n0 + warp / (Tile::bm / Tile::warp_m) * Tile::warp_n + lane / Tile::lanes_m * wide;
    constexpr int share = items / Tile::split;
    bool const aligned = is_aligned(at.c, p.ldc);
#pragma unroll 1
    for (int item = rank * share; item < static_cast<int>(rank + 1) * share; item += wide) {
        int const i = item % Tile::tm, j = item / Tile::tm;
        int const m = lane_m + i / wide * Tile::lanes_m * wide;
        int const n = lane_n + j / wide * Tile::lanes_n * wide + j % wide;
        element value[wide];
        u32 block[wide];
#pragma unroll
        for (int e = 0; e < wide; ++e) {
            int const s = (item + e) * threads + id;
            if constexpr (Tile::split == 1) {
                value[e] = shared[s];
                if constexpr (with_arg) block[e] = blocks[s];
            } else {
                value[e] = read_from(shared + s, 0);
                if constexpr (with_arg) block[e] = read_from(blocks + s, 0);
#pragma unroll
                for (u32 r = 1; r < Tile::split; ++r) {
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
            // All loads before the first use, and no branch between them.
            if (p.k > 0) {
                element product[wide][8];
#pragma unroll
                for (int e = 0; e < wide; ++e)
                    evaluate(product[e], p, at, block[e] == no_block ? 0 : block[e], min(m + e, p.m - 1), n);
#pragma unroll
                for (int e = 0; e < wide; ++e) {
                    winner[e] = p.no_path;
#pragma unroll
                    for (int s = 7; s >= 0; --s)
                        if (product[e][s] == value[e]) winner[e] = static_cast<int>(block[e]) * 8 + s;
                    if (block[e] == no_block || is_infinite(value[e])) winner[e] = p.no_path;
                }
            } else {
#pragma unroll
                for (int e = 0; e < wide; ++e) winner[e] = p.no_path;
            }
        }
#pragma unroll
        for (int e = 0; e < wide; ++e) {
            if (e >= count) continue;
            if (p.flags & accumulate) {
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
    if constexpr (Tile::split > 1) cluster_barrier();
}

template <class Tile>
__device__ __forceinline__ void product(problem const& p) {
    extern __shared__ __align__(16) unsigned char raw[];
    element* const shared = reinterpret_cast<element*>(raw);
    i64 const tiles_m = (p.m + i64{Tile::bm} - 1) / Tile::bm, tiles_n = (p.n + i64{Tile::bn} - 1) / Tile::bn;
    i64 const per_member = tiles_m * tiles_n;
    int const k_tiles = static_cast<int>((p.k + i64{Tile::bk} - 1) / Tile::bk);
    int begin = 0, end = k_tiles;
    if constexpr (Tile::split > 1) {
        i64 const rank = cluster_rank();
        begin = static_cast<int>(k_tiles * rank / Tile::split);
        end = static_cast<int>(k_tiles * (rank + 1) / Tile::split);
    }
    for (i64 t = blockIdx.x; t < per_member * p.batch; t += gridDim.x) {
        i64 const which = p.batch == 1 ? 0 : t / per_member;
        u32 const in_member = static_cast<u32>(t - which * per_member);
        // Eight rows of tiles at a time: what they share stays in the cache.
        u32 const group = 8 * static_cast<u32>(tiles_n);
        u32 const first = in_member / group * 8;
        u32 const rows = min(static_cast<u32>(tiles_m) - first, 8u);
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
        // Where k is short, looking at signs does not pay.
        bool plain_only = is_by_sign ? end - begin < 4 : !is_ranged;
        while (multiply<Tile>(acc, shared, a, b, begin, end, p.k, plain_only)) plain_only = true;
        store<Tile>(p, at, acc, shared, m0, n0);
        __syncthreads();
    }
}

// ---- Entry points --------------------------------------------------------------------------------------------------
// Measured to be best, per element type: bm, bn, bk, tm, tn, blocks per multiprocessor, unrolling. The host knows the same
// numbers (src/tropical/tuning.cpp) and hands them in.

#define KILN_PRODUCT(name, cluster, ...)                                                                           \
    extern "C" __global__ void cluster __launch_bounds__(tile<__VA_ARGS__>::threads, tile<__VA_ARGS__>::min_blocks) \
        name(__grid_constant__ problem const p) {                                                                  \
        product<tile<__VA_ARGS__>>(p);                                                                             \
    }

#ifdef KILN_TROPICAL_LARGE
KILN_PRODUCT(product_large, , KILN_TROPICAL_LARGE, 1)
#endif
KILN_PRODUCT(product_small, , KILN_TROPICAL_SMALL, 1)
#if __CUDA_ARCH__ >= 900
KILN_PRODUCT(product_split, __cluster_dims__(1, 1, 8), KILN_TROPICAL_SMALL, 8)
#endif
