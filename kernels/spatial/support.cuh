// SPDX-License-Identifier: Apache-2.0
// What all of the spatial pack's text stands on. Every file of it is compiled twice: by NVRTC into kernels, and by the host
// compiler into the CPU variants and the tests, so that both give the same bits. Hence plain pointers, no library, and every
// operation whose rounding matters written as a call: no flag of a user's build may contract or reorder it. (Host builds also
// need -ffp-contract=off.)
#pragma once

#ifdef __CUDACC__
#define KILN_HD __host__ __device__ __forceinline__
#define KILN_HD_COLD __host__ __device__ __noinline__
#define KILN_UNROLL _Pragma("unroll")
#else
#define KILN_HD inline
#define KILN_HD_COLD [[gnu::noinline, gnu::cold]] inline
#define KILN_UNROLL
#endif

namespace kiln_spatial {

using u8 = unsigned char;
using i32 = int;
using u32 = unsigned int;
using i64 = long long;
using u64 = unsigned long long;

struct alignas(16) point {
    double x, y;
};
KILN_HD bool operator==(point const& a, point const& b) { return a.x == b.x && a.y == b.y; }
KILN_HD bool operator!=(point const& a, point const& b) { return !(a == b); }

struct alignas(16) box {
    double min_x, min_y, max_x, max_y;
};

KILN_HD int sign_of(double v) { return (v > 0) - (v < 0); }
KILN_HD double least(double a, double b) { return a < b ? a : b; }
KILN_HD double most(double a, double b) { return a > b ? a : b; }

#ifdef __CUDA_ARCH__
KILN_HD double add(double a, double b) { return __dadd_rn(a, b); }
KILN_HD double sub(double a, double b) { return __dsub_rn(a, b); }
KILN_HD double mul(double a, double b) { return __dmul_rn(a, b); }
KILN_HD double quotient(double a, double b) { return __ddiv_rn(a, b); }
KILN_HD double fused(double a, double b, double c) { return __fma_rn(a, b, c); }
KILN_HD double root(double a) { return __dsqrt_rn(a); }
KILN_HD double magnitude(double a) { return fabs(a); }
KILN_HD double whole(double a) { return floor(a); }
KILN_HD u64 bits_of(double a) { return static_cast<u64>(__double_as_longlong(a)); }
KILN_HD double from_bits(u64 a) { return __longlong_as_double(static_cast<i64>(a)); }
KILN_HD float round_down(double a) { return __double2float_rd(a); }
KILN_HD float round_up(double a) { return __double2float_ru(a); }
KILN_HD int lowest_bit(u32 v) { return __ffs(static_cast<int>(v)) - 1; }
KILN_HD u32 bits_set(u32 v) { return static_cast<u32>(__popc(static_cast<int>(v))); }
KILN_HD i32 whole_number(double a) { return __double2int_rd(a); }
#else
KILN_HD double add(double a, double b) { return a + b; }
KILN_HD double sub(double a, double b) { return a - b; }
KILN_HD double mul(double a, double b) { return a * b; }
KILN_HD double quotient(double a, double b) { return a / b; }
KILN_HD double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
KILN_HD double root(double a) { return __builtin_sqrt(a); }
KILN_HD double magnitude(double a) { return __builtin_fabs(a); }
KILN_HD double whole(double a) { return __builtin_floor(a); }
KILN_HD u64 bits_of(double a) { return __builtin_bit_cast(u64, a); }
KILN_HD double from_bits(u64 a) { return __builtin_bit_cast(double, a); }
// nextafterf would be a call of a library.
KILN_HD float round_down(double a) {
    float const f = static_cast<float>(a);
    if (!(static_cast<double>(f) > a)) return f;
    u32 const bits = __builtin_bit_cast(u32, f);
    return __builtin_bit_cast(float, f == 0 ? 0x8000'0001u : f > 0 ? bits - 1 : bits + 1);
}
KILN_HD float round_up(double a) { return -round_down(-a); }
KILN_HD int lowest_bit(u32 v) { return __builtin_ctz(v); }
KILN_HD u32 bits_set(u32 v) { return static_cast<u32>(__builtin_popcount(v)); }
// Rounded down; what does not fit is the least or the largest, and NaN the least.
KILN_HD i32 whole_number(double a) {
    if (!(a >= -2147483648.0)) return -2147483647 - 1;
    return a < 2147483648.0 ? static_cast<i32>(__builtin_floor(a)) : 2147483647;
}
#endif

// The neighbouring doubles of a finite one.
KILN_HD double next_up(double v) {
    if (v == 0) return from_bits(1);
    return from_bits(v > 0 ? bits_of(v) + 1 : bits_of(v) - 1);
}
KILN_HD double next_down(double v) { return -next_up(-v); }

}  // namespace kiln_spatial
