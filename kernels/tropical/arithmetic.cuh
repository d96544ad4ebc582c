// SPDX-License-Identifier: Apache-2.0
// How a step is put into an element, and how it is known which of the ways is exact.
#pragma once

#include "semiring.cuh"

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
