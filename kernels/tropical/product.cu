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
#include "semiring.cuh"

// ---- Geometry ------------------------------------------------------------------------------------------------------

// Bytes of a 16-byte access as elements.
constexpr int wide = 16 / sizeof(element);

// Blocks of a cluster that share a product along k.
constexpr int most_parts = 8;

template <int Bm, int Bn, int Bk, int Tm, int Tn, int MinBlocks, int Unroll, bool InParts>
struct tile {
    static constexpr int bm = Bm, bn = Bn, bk = Bk, tm = Tm, tn = Tn, min_blocks = MinBlocks, unroll = Unroll;
    static constexpr bool in_parts = InParts;
    static constexpr int lanes_m = 8, lanes_n = 4;
    static constexpr int warp_m = lanes_m * tm, warp_n = lanes_n * tn;
    static constexpr int threads = bm / warp_m * (bn / warp_n) * 32;
    static constexpr int pitch_a = bm + wide, pitch_b = bn + wide;  // in elements; no bank is hit twice
    static constexpr int stage = bk * (pitch_a + pitch_b);
    static constexpr int items = tm * tn;
    static_assert(bm % warp_m == 0 && bn % warp_n == 0 && bk % 8 == 0);
    static_assert(tm % wide == 0 && tn % wide == 0 && (!in_parts || items % (most_parts * wide) == 0));
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

// A block of a cluster of one or most_parts.
__device__ __forceinline__ u32 cluster_rank() {
    u32 out = 0;
#if __CUDA_ARCH__ >= 900
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(out));
#endif
    return out;
}
__device__ __forceinline__ u32 cluster_size() {
    u32 out = 1;
#if __CUDA_ARCH__ >= 900
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(out));
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

// A place in shared memory, and how far the next element is from it. Given a pointer, the compiler works out the place again in
// every turn of a loop. That costs little, and f64 gets better registers that way.
#if defined(__CUDA_ARCH__) && KILN_TROPICAL_TYPE != 2
using shared_place = u32;
constexpr int apart = sizeof(element);
__device__ __forceinline__ shared_place place_of(element const* p) { return shared_address(p); }
// 16 bytes.
__device__ __forceinline__ void read_wide(float* to, shared_place from) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
                 : "r"(from)
                 : "memory");
}
__device__ __forceinline__ void read_wide(int* to, shared_place from) {
    asm volatile("ld.shared.v4.s32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}
__device__ __forceinline__ void read_wide(i64* to, shared_place from) {
    asm volatile("ld.shared.v2.s64 {%0, %1}, [%2];" : "=l"(to[0]), "=l"(to[1]) : "r"(from) : "memory");
}
#else
using shared_place = element const*;
constexpr int apart = 1;
__device__ __forceinline__ shared_place place_of(element const* p) { return p; }
__device__ __forceinline__ void read_wide(element* to, shared_place from) {
    *reinterpret_cast<int4*>(to) = *reinterpret_cast<int4 const*>(from);
}
#endif

// 16 bytes of global memory.
#if defined(__CUDA_ARCH__) && KILN_TROPICAL_TYPE == 1
__device__ __forceinline__ void write_wide(float* to, float const* x) {
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3])
                 : "memory");
}
#elif defined(__CUDA_ARCH__) && KILN_TROPICAL_TYPE == 3
__device__ __forceinline__ void write_wide(int* to, int const* x) {
    asm volatile("st.global.v4.s32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
                 : "memory");
}
#else
__device__ __forceinline__ void write_wide(element* to, element const* x) {
    *reinterpret_cast<int4*>(to) = *reinterpret_cast<int4 const*>(x);
}
#endif

// The same, but what follows from it is not worked out ahead of loops, where it would take registers.
__device__ __forceinline__ i64 unknown(i64 x) {
#ifdef __CUDA_ARCH__
    asm volatile("" : "+l"(x));
#endif
    return x;
}

// The kernel before this one in the stream may still be running; the next may be set up while this one runs.
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;\ngriddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// What other blocks wait for. By one thread, after a barrier of its block and before the next.
__device__ __forceinline__ void tell(u32* signal, u32 value) {
#if __CUDA_ARCH__ >= 700
    asm volatile("fence.acq_rel.gpu;\nst.relaxed.gpu.global.u32 [%0], %1;" ::"l"(signal), "r"(value) : "memory");
#else
    *signal = value;
#endif
}
__device__ __forceinline__ void wait_for(u32 const* signal, u32 value) {
#if __CUDA_ARCH__ >= 700
    u32 now;
    do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(signal) : "memory");
    while (now != value);
#elif defined(KILN_WAITED)
    KILN_WAITED(*signal == value);  // elsewhere blocks run one after the other
#endif
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
// One instruction. The compiler finds it too, but takes a seventh more time for the whole text.
#ifdef __CUDA_ARCH__
#define KILN_BEST_OF_THREE(instruction)                                                                            \
    asm("{.reg .b32 x, y;\nmov.b32 x, %1;\nmov.b32 y, %2;\n" instruction " x, x, y;\nmov.b32 y, %3;\n" instruction \
        " x, x, y;\nmov.b32 %0, x;}"                                                                               \
        : "=f"(out)                                                                                                \
        : "f"(x), "f"(y), "f"(z))
template <way How>
__device__ __forceinline__ float best_of(float x, float y, float z) {
    float out;
    if constexpr (How == way::int_max) KILN_BEST_OF_THREE("max.s32");
    else if constexpr (How == way::int_min) KILN_BEST_OF_THREE("min.s32");
    else if constexpr (How == way::unsigned_min) KILN_BEST_OF_THREE("min.u32");
    else KILN_BEST_OF_THREE("max.u32");
    return out;
}
#undef KILN_BEST_OF_THREE
#else
template <way How>
float best_of(float x, float y, float z) {
    return best_of<How>(best_of<How>(x, y), z);
}
#endif

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

[[maybe_unused]] constexpr u32 no_block = 0xffff;

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

// Two steps of i32. Every other sum goes through the multiplier, by a one that the compiler does not know: maxima and the
// sums that come with them are all one kind of unit can do, and it would be the only one at work.
__device__ __forceinline__ element two_steps(element acc, element a0, element b0, element a1, element b1, bool multiplied,
                                             element one) {
#if defined(__CUDA_ARCH__) && KILN_TROPICAL_TYPE == 3 && (KILN_TROPICAL_SEMIRING == 1 || KILN_TROPICAL_SEMIRING == 2)
    // What the two lines below say, in a tenth less time for the whole text.
#if KILN_TROPICAL_SEMIRING == 1
#define KILN_BEST "max.s32"
#else
#define KILN_BEST "min.s32"
#endif
    if (!multiplied)
        asm("{.reg .s32 x;\nadd.s32 x, %1, %2;\n" KILN_BEST " %0, %0, x;\nadd.s32 x, %3, %4;\n" KILN_BEST " %0, %0, x;}"
            : "+r"(acc)
            : "r"(a0), "r"(b0), "r"(a1), "r"(b1));
    else
        asm("{.reg .s32 x, y;\nmad.lo.s32 x, %1, %5, %2;\nmad.lo.s32 y, %3, %5, %4;\n" KILN_BEST " x, x, y;\n" KILN_BEST
            " %0, x, %0;}"
            : "+r"(acc)
            : "r"(a0), "r"(b0), "r"(a1), "r"(b1), "r"(one));
    return acc;
#undef KILN_BEST
#else
    if (!multiplied) return better(better(acc, wrapped_sum(a0, b0)), wrapped_sum(a1, b1));
    return better(better(one_sum(b0, a0, one), one_sum(b1, a1, one)), acc);
#endif
}

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

// The bits of many f32 put into one int. Four at a time: every operation the compiler does not see makes it faster.
enum class fold { by_and, by_or, by_max };
#ifdef __CUDA_ARCH__
#define KILN_FOLD(instruction)                                                                                 \
    asm("{.reg .b32 x;\nmov.b32 x, %1;\n" instruction " %0, %0, x;\nmov.b32 x, %2;\n" instruction              \
        " %0, %0, x;\nmov.b32 x, %3;\n" instruction " %0, %0, x;\nmov.b32 x, %4;\n" instruction " %0, %0, x;}" \
        : "+r"(all)                                                                                            \
        : "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]))
template <fold By>
__device__ __forceinline__ void fold_four(int& all, float const* x) {
    if constexpr (By == fold::by_and) KILN_FOLD("and.b32");
    else if constexpr (By == fold::by_or) KILN_FOLD("or.b32");
    else KILN_FOLD("max.s32");
}
#undef KILN_FOLD
#else
template <fold By>
void fold_four(int& all, float const* x) {
    for (int e = 0; e < 4; ++e) {
        int const y = bits_of(x[e]);
        all = By == fold::by_and ? all & y : By == fold::by_or ? all | y : max(all, y);
    }
}
#endif
template <fold By, int N, int M>
__device__ __forceinline__ int folded(int all, float const (&x)[N][M]) {
#pragma unroll
    for (int j = 0; j < N; ++j)
#pragma unroll
        for (int i = 0; i < M; i += 4) fold_four<By>(all, x[j] + i);
    return all;
}
template <int N, int M>
__device__ __forceinline__ bool all_negative(float const (&x)[N][M]) {
    return folded<fold::by_and>(-1, x) < 0;
}
template <int N, int M>
__device__ __forceinline__ bool none_negative(float const (&x)[N][M]) {
    return folded<fold::by_or>(0, x) >= 0;
}
template <int N, int M>
__device__ __forceinline__ bool has_nan(float const (&x)[N][M]) {
    return folded<fold::by_max>(0, x) > 0x7f800000;
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

// ---- Putting it into C ---------------------------------------------------------------------------------------------

struct place {
    element const *a, *b;
    element* c;
    char* arg;
};

// The eight elements of an operand that a block of steps takes; `from` is where x has its first. Beyond the last k, the last
// again. Of the two ways each is faster for its size of elements, by a few percent of small products.
__device__ __forceinline__ void read_steps(element (&to)[8], element const* from, i64 step, u32 block, int k) {
    int const first = static_cast<int>(block) * 8;
    if constexpr (wide == 4) from += first * step;
#pragma unroll
    for (int s = 0; s < 8; ++s) {
        if constexpr (wide == 4) {
            to[s] = *from;
            from += first + s + 1 < k ? step : 0;
        } else {
            to[s] = from[min(first + s, k - 1) * step];
        }
    }
}

// What the products of a run's blocks of steps are made from. All loads are on their way before the first is used; `Wide`: B has
// the elements of a block of steps side by side, aligned.
template <bool Wide>
__device__ __forceinline__ void read_blocks(element (&a)[wide][8], element (&b)[wide][8], u32 const (&block)[wide],
                                            problem const& p, place const& at, int m, int n) {
    bool const a_k = (p.flags & a_along_k) != 0, b_k = (p.flags & b_along_k) != 0;
    element const* const column = at.b + (b_k ? n * p.ldb : n);
#pragma unroll
    for (int e = 0; e < wide; ++e) {
        u32 const which = block[e] == no_block ? 0 : block[e];
        if constexpr (Wide) {
#pragma unroll
            for (int s = 0; s < 8; s += wide)
                *reinterpret_cast<int4*>(b[e] + s) = *reinterpret_cast<int4 const*>(column + which * 8 + s);
        } else {
            read_steps(b[e], column, b_k ? 1 : p.ldb, which, p.k);
        }
        int const row = min(m + e, p.m - 1);
        read_steps(a[e], at.a + (a_k ? row * p.lda : row), a_k ? 1 : p.lda, which, p.k);
    }
}

// Which k gave the values of a run.
__device__ __forceinline__ void find_winners(int (&winner)[wide], element const (&value)[wide], u32 const (&block)[wide],
                                             problem const& p, place const& at, int m, int n, bool in_pieces) {
    element a[wide][8], b[wide][8];
    if (in_pieces) {
        read_blocks<true>(a, b, block, p, at, m, n);
        asm volatile("" ::: "memory");  // or else the two ways would be put together, and wait between B and A
    } else {
        read_blocks<false>(a, b, block, p, at, m, n);
    }
#pragma unroll
    for (int e = 0; e < wide; ++e) {
        winner[e] = p.no_path;
#pragma unroll
        for (int s = 7; s >= 0; --s)
            if (checked_times(a[e][s], b[e][s]) == value[e]) winner[e] = static_cast<int>(block[e]) * 8 + s;
        if (block[e] == no_block || is_infinite(value[e])) winner[e] = p.no_path;
    }
}

__device__ __forceinline__ void store_arg(problem const& p, place const& at, i64 index, int k) {
    if (p.flags & arg_is_64) reinterpret_cast<i64*>(at.arg)[index] = k;
    else reinterpret_cast<int*>(at.arg)[index] = k;
}

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

// What a block does next: a tile of C, or some steps of it.
struct task {
    u32 tile;
    int begin, end;  // tiles of k
    u32* signal;     // of the tile, where several blocks do it one after the other
    u32 before;      // of them
};

// What a block does. Without signals: every gridDim.x-th tile. With: the same for as many rounds as all blocks have a tile;
// the steps of the tiles that are left are dealt out evenly, and whoever has some in the middle of a tile puts them onto what
// the blocks before it have stored. Where a tile begins nobody is waited for, so that comes first; what waits comes last, and
// waits only for blocks of lower numbers, which started earlier. The host sees to it that 32 bits are enough.
struct schedule {
    u32 k_tiles;
    u32* signals;
    int first, last;  // turns
    int begin, end;   // of whole tiles: this block's part of k
    // Of the tiles that are left: this block's steps.
    u32 left, share = 1, first_step = 0, last_step = 0;

    __device__ __forceinline__ schedule(problem const& p, u32 tiles, u32 k_tiles_, bool in_parts)
        : k_tiles{k_tiles_}, signals{p.signals} {
        u32 const rank = in_parts ? cluster_rank() : 0, parts = in_parts && cluster_size() > 1 ? most_parts : 1;
        begin = static_cast<int>(k_tiles * rank / parts);
        end = static_cast<int>(k_tiles * (rank + 1) / parts);
        u32 const rounds = tiles / gridDim.x;
        left = rounds * gridDim.x;
        first = 0;
        last = static_cast<int>(left + blockIdx.x < tiles ? rounds + 1 : rounds);
        if (signals == nullptr) return;
        first = -1;
        last = static_cast<int>(rounds + 1);
        u32 const steps = (tiles - left) * k_tiles;
        share = (steps + gridDim.x - 1) / gridDim.x;
        first_step = min(blockIdx.x * share, steps);
        last_step = min(first_step + share, steps);
    }
    // False: nothing to do in this turn.
    __device__ __forceinline__ bool get(task& out, int turn) const {
        out = {blockIdx.x + turn * gridDim.x, begin, end, nullptr, 0};
        if (signals == nullptr || (turn >= 0 && turn + 1 < last)) return true;
        if (first_step == last_step) return false;
        u32 const which = (first_step + (turn < 0 ? k_tiles - 1 : 0)) / k_tiles, from = which * k_tiles;
        if (turn < 0 ? from >= last_step : from == first_step) return false;
        out.tile = left + which;
        out.begin = static_cast<int>(turn < 0 ? 0 : first_step - from);
        out.end = static_cast<int>(min(last_step - from, k_tiles));
        out.signal = signals + which;
        out.before = turn < 0 ? 0 : blockIdx.x - from / share;
        return true;
    }
};

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
