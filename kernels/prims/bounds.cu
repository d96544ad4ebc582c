// SPDX-License-Identifier: Apache-2.0
//
// Where each query would go in a sorted range. Every thread halves the range the same number of times, so a warp never
// diverges and sorted queries read the same lines.
//
// Of many queries each costs a sector of memory per step, so the kernels for them save steps: the first dozen are made in
// shared memory, on pivots that every block reads once, and where the range is larger than the cache all but the last few
// are made in a sample of it that is not.
#include "kiln/prims/prelude.cuh"

#include <cub/util_arch.cuh>
#include <cub/version.cuh>

#define KILN_OPERATOR_RESULT bool
#define KILN_OPERATOR_PARAMETERS kiln_value, kiln_value
#include "kiln/prims/operator.cuh"

namespace kiln_device {

constexpr int threads = 256;
constexpr int many_threads = 512;

constexpr int pivots_in(int bytes) {
    int out = 4096;
    while (out * int(sizeof(kiln_value)) > bytes) out /= 2;
    return out;
}
constexpr int pivots = pivots_in(32 * 1024);
KILN_PRIM_INFO(threads, 1, many_threads, pivots);

enum class side { lower, upper };

// Is the answer behind an item with this value?
template <side Side>
static __device__ __forceinline__ bool behind(kiln_value item, kiln_value query, kiln_functor less) {
    return Side == side::upper ? !less(query, item) : less(item, query);
}

template <side Side, class Index>
static __device__ __forceinline__ Index bound(kiln_value const* sorted, Index n, kiln_value query, kiln_functor less) {
    kiln_value const* at = sorted;
    while (n > 0) {
        Index const half = n - n / 2;
        if (behind<Side>(at[half - 1], query, less)) at += half;
        n -= half;
    }
    return Index(at - sorted);
}

// The same within `length` items from `at`, of which only those before `n` exist.
template <side Side, class Index>
static __device__ __forceinline__ Index bound_from(kiln_value const* sorted, Index n, Index at, Index length, kiln_value query,
                                                   kiln_functor less) {
    while (length > 0) {
        Index const half = length - length / 2;
        Index const middle = at + half - 1;
        if (middle < n && behind<Side>(sorted[middle], query, less)) at += half;
        length -= half;
    }
    return at < n ? at : n;
}

static __device__ __forceinline__ void put(void* out, kiln_u64 i, kiln_u64 found, int wide_out) {
    if (wide_out != 0) {
        static_cast<kiln_u64*>(out)[i] = found;
    } else {
        static_cast<kiln_u32*>(out)[i] = kiln_u32(found);
    }
}

template <side Side>
static __device__ __forceinline__ void bounds(kiln_value const* sorted, kiln_u64 n, kiln_value const* queries, kiln_u64 count,
                                              void* out, int wide_out, kiln_functor less) {
    kiln_u64 const i = kiln_u64{blockIdx.x} * threads + threadIdx.x;
    if (i >= count) return;
    kiln_value const query = queries[i];
    kiln_u64 const found =
        n <= 0x7fffffff ? bound<Side, kiln_u32>(sorted, kiln_u32(n), query, less) : bound<Side, kiln_u64>(sorted, n, query, less);
    put(out, i, found, wide_out);
}

// sample[k] is the last item of the k-th 2^shift items; with a shift of 0 it is `sorted` itself.
struct sampled {
    kiln_value const* sorted;
    kiln_u64 n;
    kiln_value const* sample;
    kiln_u64 size;
    int shift;
    int pivots;  // a power of two, at most `pivots`
};

template <side Side, class Index>
static __device__ __forceinline__ void bounds_of_many(kiln_value* pivot, sampled const& in, kiln_value const* queries,
                                                      kiln_u64 count, void* out, int wide_out, kiln_functor less) {
    Index const size = Index(in.size);
    Index const n = Index(in.n);
    Index const step = (size + in.pivots - 1) >> (__ffs(in.pivots) - 1);
    for (int k = threadIdx.x; k < in.pivots; k += many_threads) {
        Index const end = Index(k + 1) * step;
        pivot[k] = in.sample[(end < size ? end : size) - 1];
    }
    __syncthreads();
    for (kiln_u64 i = kiln_u64{blockIdx.x} * many_threads + threadIdx.x; i < count; i += kiln_u64{gridDim.x} * many_threads) {
        kiln_value const query = queries[i];
        Index chunk = 0;
        for (int half = in.pivots / 2; half > 0; half /= 2) {
            if (behind<Side>(pivot[chunk + half - 1], query, less)) chunk += half;
        }
        Index at = chunk * step;
        at = bound_from<Side, Index>(in.sample, size, at < size ? at : size, step, query, less);
        if (in.shift > 0) at = bound_from<Side, Index>(in.sorted, n, at << in.shift, Index(1) << in.shift, query, less);
        put(out, i, at, wide_out);
    }
}

template <side Side>
static __device__ __forceinline__ void bounds_of_many(sampled const& in, kiln_value const* queries, kiln_u64 count, void* out,
                                                      int wide_out, kiln_functor less) {
    // Bytes, because a user's type may have a constructor.
    __shared__ alignas(16) unsigned char storage[pivots * sizeof(kiln_value)];
    auto* const pivot = reinterpret_cast<kiln_value*>(storage);
    if (in.n <= 0x3fffffff) {
        bounds_of_many<Side, kiln_u32>(pivot, in, queries, count, out, wide_out, less);
    } else {
        bounds_of_many<Side, kiln_u64>(pivot, in, queries, count, out, wide_out, less);
    }
}

extern "C" __global__ void __launch_bounds__(threads)
    kiln_lower_bound(kiln_value const* sorted, kiln_u64 n, kiln_value const* queries, kiln_u64 count, void* out, int wide_out,
                     KILN_STATE_PARAMETER) {
    bounds<side::lower>(sorted, n, queries, count, out, wide_out, kiln_functor{state});
}

extern "C" __global__ void __launch_bounds__(threads)
    kiln_upper_bound(kiln_value const* sorted, kiln_u64 n, kiln_value const* queries, kiln_u64 count, void* out, int wide_out,
                     KILN_STATE_PARAMETER) {
    bounds<side::upper>(sorted, n, queries, count, out, wide_out, kiln_functor{state});
}

extern "C" __global__ void __launch_bounds__(many_threads)
    kiln_lower_bound_many(sampled in, kiln_value const* queries, kiln_u64 count, void* out, int wide_out, KILN_STATE_PARAMETER) {
    bounds_of_many<side::lower>(in, queries, count, out, wide_out, kiln_functor{state});
}

extern "C" __global__ void __launch_bounds__(many_threads)
    kiln_upper_bound_many(sampled in, kiln_value const* queries, kiln_u64 count, void* out, int wide_out, KILN_STATE_PARAMETER) {
    bounds_of_many<side::upper>(in, queries, count, out, wide_out, kiln_functor{state});
}

extern "C" __global__ void __launch_bounds__(threads) kiln_bound_sample(kiln_value const* sorted, kiln_u64 n, kiln_value* sample,
                                                                        kiln_u64 size, int shift) {
    kiln_u64 const k = kiln_u64{blockIdx.x} * threads + threadIdx.x;
    if (k >= size) return;
    kiln_u64 const end = (k + 1) << shift;
    sample[k] = sorted[(end < n ? end : n) - 1];
}

}  // namespace kiln_device
