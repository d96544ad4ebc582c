// SPDX-License-Identifier: Apache-2.0
// How kernels of the pack are written: as a structure of what they read and write, with an operator() that does one item. The
// device runs one thread per item; the host runs the same text in a loop, in any order, which is how
// the tests find what depends on it. KILN_KERNEL makes a kernel of such a structure for NVRTC, and a name for the host.
#pragma once

#include "support.cuh"

#ifdef __CUDACC__
#define KILN_KERNEL(entry, type, threads, blocks)                                                                  \
    extern "C" __global__ void __launch_bounds__(threads, blocks) entry(type what, kiln_spatial::u64 count) {     \
        kiln_spatial::u64 const i = static_cast<kiln_spatial::u64>(blockIdx.x) * blockDim.x + threadIdx.x;         \
        if (i < count) what(i);                                                                                   \
    }
#else
#define KILN_KERNEL(entry, type, threads, blocks)                                  \
    template <>                                                                    \
    struct kiln_spatial::kernel_facts<type> {                                      \
        static constexpr char const* name = #entry;                                \
        static constexpr unsigned block = threads;                                 \
    };
#endif

namespace kiln_spatial {

template <class Kernel>
struct kernel_facts;

// ---- What threads do together ------------------------------------------------------------------------------------------

#ifdef __CUDA_ARCH__
KILN_HD void lower_to(u64* at, u64 v) {
    if (v < *at) atomicMin(at, v);
}
// The same where all threads have one place: they would wait for each other there, so a warp goes once.
KILN_HD void lower_together(u64* at, u64 v) {
    if (__activemask() == ~0U) {
        for (int step = 16; step > 0; step /= 2) {
            u64 const other = __shfl_xor_sync(~0U, v, step);
            v = other < v ? other : v;
        }
        if ((threadIdx.x & 31) != 0) return;
    }
    lower_to(at, v);
}
// The same of places of which neighbouring threads mostly have the same one: of each run of them in a warp one goes, if the whole warp calls it. A thread
// that has nothing to tell has all bits set.
KILN_HD void lower_in_runs(u64* places, i32 place, u64 v) {
    if (__activemask() == ~0U) {
        int const lane = static_cast<int>(threadIdx.x & 31);
        for (int step = 1; step < 32; step *= 2) {
            u64 const other = __shfl_down_sync(~0U, v, step);
            i32 const other_place = __shfl_down_sync(~0U, place, step);
            if (lane + step < 32 && other_place == place && other < v) v = other;
        }
        i32 const before = __shfl_up_sync(~0U, place, 1);
        if (lane != 0 && before == place) return;
    }
    if (v != ~u64{0}) lower_to(places + place, v);
}
// Puts `v` there unless keeps(what is there).
template <class Keeps>
KILN_HD void put_unless(u32* at, u32 v, Keeps keeps) {
    for (u32 there = *at; !keeps(there);) {
        u32 const found = atomicCAS(at, there, v);
        if (found == there) return;
        there = found;
    }
}
KILN_HD void add_to(u64* at, u64 v) { atomicAdd(at, v); }
KILN_HD void or_into(u32* at, u32 v) {
    if ((*at & v) != v) atomicOr(at, v);
}
KILN_HD void flip(u32* at, u32 bits) { atomicXor(at, bits); }
// Adds 1 to bins[bin] for every thread that calls it: one atomic per bin and warp.
KILN_HD void count_in(u64* bins, u32 bin) {
    u32 const same = __match_any_sync(__activemask(), bin);
    if ((threadIdx.x & 31) == static_cast<u32>(__ffs(static_cast<int>(same)) - 1)) atomicAdd(bins + bin, static_cast<u64>(__popc(same)));
}
// Appends an item where it is wanted, one atomic per warp. The order is not fixed: what follows must not depend on it.
template <class T>
KILN_HD void append(bool wanted, T item, T* list, u32* count) {
    u32 const active = __activemask(), takers = __ballot_sync(active, wanted);
    if (takers == 0) return;
    int const lane = static_cast<int>(threadIdx.x & 31), leader = __ffs(static_cast<int>(takers)) - 1;
    u32 at = 0;
    if (lane == leader) at = atomicAdd(count, static_cast<u32>(__popc(takers)));
    at = __shfl_sync(active, at, leader);
    if (wanted) list[at + static_cast<u32>(__popc(takers & ((1U << lane) - 1)))] = item;
}
#else
KILN_HD void lower_to(u64* at, u64 v) {
    if (v < *at) *at = v;
}
KILN_HD void lower_together(u64* at, u64 v) { lower_to(at, v); }
KILN_HD void lower_in_runs(u64* places, i32 place, u64 v) { lower_to(places + place, v); }
template <class Keeps>
KILN_HD void put_unless(u32* at, u32 v, Keeps keeps) {
    if (!keeps(*at)) *at = v;
}
KILN_HD void add_to(u64* at, u64 v) { *at += v; }
KILN_HD void or_into(u32* at, u32 v) { *at |= v; }
KILN_HD void flip(u32* at, u32 bits) { *at ^= bits; }
KILN_HD void count_in(u64* bins, u32 bin) { ++bins[bin]; }
template <class T>
KILN_HD void append(bool wanted, T item, T* list, u32* count) {
    if (wanted) list[(*count)++] = item;
}
#endif

// Numbers that compare as doubles do.
KILN_HD u64 ordered(double v) {
    u64 const b = bits_of(add(v, 0.0));
    return (b >> 63) != 0 ? ~b : b | u64{1} << 63;
}
KILN_HD double unordered(u64 v) { return from_bits((v >> 63) != 0 ? v & ~(u64{1} << 63) : ~v); }

// Two counts in one number, so that one scan sums both: each total stays below 2^31.
KILN_HD i64 both_counts(u32 high, u32 low) { return static_cast<i64>(static_cast<u64>(high) << 32 | low); }
KILN_HD u32 high_of(i64 both) { return static_cast<u32>(static_cast<u64>(both) >> 32); }
KILN_HD u32 low_of(i64 both) { return static_cast<u32>(static_cast<u64>(both)); }

// The last i below n with key(i) <= wanted; keys do not fall, and key(0) is one of them.
template <class Key, class T>
KILN_HD u64 last_not_above(u64 n, T wanted, Key key) {
    u64 low = 0;
    while (n - low > 1) {
        u64 const middle = low + (n - low) / 2;
        if (key(middle) <= wanted) low = middle;
        else n = middle;
    }
    return low;
}

// The same from a guess, which is looked around in growing steps: a step or two where items are spread evenly.
template <class Key, class T>
KILN_HD u64 last_not_above_near(u64 guess, u64 n, T wanted, Key key) {
    u64 low = guess < n ? guess : n - 1, high = low + 1;
    if (key(low) <= wanted) {
        for (u64 step = 1; high < n && key(high) <= wanted; step *= 2) low = high, high = low + step < n ? low + step : n;
    } else {
        u64 step = 1;
        do high = low, low = low > step ? low - step : 0, step *= 2;
        while (key(low) > wanted);
    }
    return low + last_not_above(high - low, wanted, [&](u64 k) { return key(low + k); });
}
// A guess of where i of `of` lies among n, for the above.
KILN_HD u64 evenly(u64 i, double share) { return static_cast<u64>(mul(static_cast<double>(i), share)); }

}  // namespace kiln_spatial
