// SPDX-License-Identifier: Apache-2.0
// One semiring over one element type, chosen by macros, and what the host passes to every product. It uses no header of the
// toolkit: parsing them would cost more than compiling this.
//
//     KILN_TROPICAL_TYPE      1 f32, 2 f64, 3 i32, 4 i64
//     KILN_TROPICAL_SEMIRING  1 max_plus, 2 min_plus, 3 max_mul, 4 and_or, 5 plus_times
//     KILN_TROPICAL_ARG       1: the product also says which k won
#pragma once

using i64 = long long;
using u32 = unsigned int;

#if KILN_TROPICAL_TYPE == 1
using element = float;
#elif KILN_TROPICAL_TYPE == 2
using element = double;
#elif KILN_TROPICAL_TYPE == 3
using element = int;
#elif KILN_TROPICAL_TYPE == 4
using element = i64;
#endif

constexpr int semiring = KILN_TROPICAL_SEMIRING;
constexpr bool is_max_plus = semiring == 1;
constexpr bool is_min_plus = semiring == 2;
constexpr bool is_max_mul = semiring == 3;
constexpr bool is_and_or = semiring == 4;
constexpr bool is_sum = semiring == 5;
constexpr bool is_plus = is_max_plus || is_min_plus;
constexpr bool is_float = KILN_TROPICAL_TYPE <= 2;
constexpr bool is_f32 = KILN_TROPICAL_TYPE == 1;
constexpr bool is_i32 = KILN_TROPICAL_TYPE == 3;
constexpr bool with_arg = KILN_TROPICAL_ARG != 0;
// Integers that may leave the range in which plain arithmetic is exact.
constexpr bool is_ranged = !is_float && (is_plus || is_max_mul);

// The same struct as in src/tropical/problem.hpp.
struct problem {
    void const* a;  // or an array of pointers: by_pointer
    void const* b;
    void* c;
    void* arg;
    i64 lda, ldb, ldc, ldarg;
    i64 stride_a, stride_b, stride_c, stride_arg;  // between members of a batch
    i64 batch;
    int m, n, k;
    u32 flags;
    int no_path;  // what arg says where there is none
    int one;  // see two_steps
    // A word for every block, zero before and after: blocks share tiles (see `schedule`). Null: they do not, as for k = 0.
    u32* signals;
};
constexpr u32 a_along_k = 1;  // neighbours in memory are neighbours along k; else along m
constexpr u32 b_along_k = 2;  // else along n
constexpr u32 accumulate = 4;
constexpr u32 arg_is_64 = 8;
constexpr u32 by_pointer = 16;

// Integers have no infinity: what lies beyond half_range counts as one and is written as `zero()`. Finite values this side
// of quarter_range add up exactly and apart from every sum with an infinity, which is what the fast path relies on.
constexpr int bits = sizeof(element) * 8;
constexpr i64 half_range = i64{1} << (bits - 3);
constexpr i64 infinity = i64{1} << (bits - 2);
constexpr i64 most = bits == 32 ? 0x7fffffffLL : 0x7fffffffffffffffLL;

// The positive one.
__device__ __forceinline__ element infinite() {
    if constexpr (is_f32) return static_cast<element>(__int_as_float(0x7f800000));
    if constexpr (is_float) return static_cast<element>(__longlong_as_double(0x7ff0000000000000LL));
    return static_cast<element>(infinity);
}

// The neutral element of the sum, and what absorbs in the product.
__device__ __forceinline__ element zero() {
    if constexpr (is_max_plus) return -infinite();
    if constexpr (is_min_plus) return is_float ? infinite() : static_cast<element>(infinite() - 1);
    return element(0);
}

__device__ __forceinline__ bool is_infinite(element x) {
    if constexpr (is_float || !is_plus) return false;
    if constexpr (is_max_plus) return x < -static_cast<element>(half_range);
    return x >= static_cast<element>(half_range);
}

// True where `x` beats `y`; never for NaN.
__device__ __forceinline__ bool beats(element x, element y) {
    if constexpr (is_min_plus) return x < y;
    return x > y;
}

// The sum of the semiring. NaN in `y` is ignored (not by plus_times).
__device__ __forceinline__ element better(element x, element y) {
    if constexpr (is_sum) return x + y;
    if constexpr (is_f32) {
        if constexpr (is_min_plus) return fminf(x, y);
        return fmaxf(x, y);
    }
    return beats(y, x) ? y : x;
}

// A GPU's arithmetic gives NaNs of one pattern, 0x7fffffff, and the ways by bit patterns rely on its sign. Whoever runs this
// elsewhere must see to it.
#ifndef KILN_CANONICAL
#define KILN_CANONICAL(x) (x)
#endif

__device__ __forceinline__ element wrapped_sum(element x, element y) {
    if constexpr (is_float) return KILN_CANONICAL(x + y);
    if constexpr (is_i32) return static_cast<int>(static_cast<u32>(x) + static_cast<u32>(y));
    return static_cast<element>(static_cast<unsigned long long>(x) + static_cast<unsigned long long>(y));
}
__device__ __forceinline__ element wrapped_product(element x, element y) {
    if constexpr (is_float) return KILN_CANONICAL(x * y);
    if constexpr (is_i32) return static_cast<int>(static_cast<u32>(x) * static_cast<u32>(y));
    return static_cast<element>(static_cast<unsigned long long>(x) * static_cast<unsigned long long>(y));
}

// The product of the semiring without regard to range.
__device__ __forceinline__ element times(element x, element y) {
    if constexpr (is_plus) return wrapped_sum(x, y);
    if constexpr (is_and_or) return element(x != element(0) && y != element(0));
    return wrapped_product(x, y);
}

// The same, exact for all values: infinities absorb, what does not fit is the nearest that does.
template <class T>
__device__ __forceinline__ T checked(T x, T y) {
    if constexpr (!is_ranged) {
        return times(x, y);
    } else if constexpr (is_plus) {
        T const sum = wrapped_sum(x, y);
        bool const overflow = ((x ^ sum) & (y ^ sum)) < 0;
        T const fitted = overflow ? static_cast<T>(x < 0 ? -most - 1 : most) : sum;
        // One of three is infinite where the least or the largest is, which is one instruction of i32.
        if constexpr (is_i32)
            return is_infinite(is_max_plus ? min(min(x, y), fitted) : max(max(x, y), fitted)) ? zero() : fitted;
        return is_infinite(x) || is_infinite(y) || is_infinite(fitted) ? zero() : fitted;
    } else {
        T const low = wrapped_product(x, y);
        T high;
        if constexpr (is_i32) high = __mulhi(x, y);
        else high = __mul64hi(x, y);
        if (high == (low >> (bits - 1))) return low;
        return static_cast<T>((x ^ y) < 0 ? -most - 1 : most);
    }
}
__device__ __forceinline__ element checked_times(element x, element y) { return checked<element>(x, y); }

// One step of plus_times.
template <class T>
__device__ __forceinline__ T one_sum(T acc, T a, T b) {
    if constexpr (is_float) return fma(a, b, acc);
    else return wrapped_sum(acc, wrapped_product(a, b));
}

__device__ __forceinline__ element normal(element x) {
    if constexpr (is_float) return x + element(0);  // -0 becomes +0
    return is_infinite(x) ? zero() : x;
}

// Member `i` of a batch.
template <class T>
__device__ __forceinline__ T* member(problem const& p, T* base, i64 stride, i64 i) {
    if (p.flags & by_pointer) return base == nullptr ? nullptr : reinterpret_cast<T* const*>(base)[i];
    return base == nullptr ? nullptr : base + i * stride;
}
