// SPDX-License-Identifier: Apache-2.0
// What the tuned product asks of the machine: asynchronous copies, clusters, wide accesses, signals between blocks. Each also
// for architectures that lack it, and for the host.
#pragma once

#include "semiring.cuh"

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
