// SPDX-License-Identifier: Apache-2.0
#include "cub_reference.hpp"

#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/binary_search.h>
#include <thrust/execution_policy.h>
#include <thrust/iterator/counting_iterator.h>

#define KILN_CUB_KEYS(use) \
    use(i8) use(u8) use(i16) use(u16) use(i32) use(u32) use(i64) use(u64) use(f16) use(bf16) use(f32) use(f64)
#define KILN_DECLARED(key) int cub_radix_sort_##key(cub_call const*, cub_sorted);
#define KILN_LISTED(key) cub_radix_sort_##key,
extern "C" {
KILN_CUB_KEYS(KILN_DECLARED)
int cub_run_records(int algorithm, cub_call const*);
}

namespace {

int sort(int which, cub_call const* call) {
    constexpr int (*by_key[])(cub_call const*, cub_sorted) = {KILN_CUB_KEYS(KILN_LISTED)};
    return by_key[which / 2](call, cub_sorted(which % 2));
}

struct saturating_sum {
    __host__ __device__ int operator()(int a, int b) const { return a + b > 1000000 ? 1000000 : a + b; }
};
struct by_three {
    __host__ __device__ bool operator()(int a) const { return a % 3 == 0; }
};
struct ordered {
    template <class T>
    __host__ __device__ bool operator()(T a, T b) const {
        return a < b;
    }
};

template <class T>
T const* in(void const* p) {
    return static_cast<T const*>(p);
}
template <class T>
T* out(void* p) {
    return static_cast<T*>(p);
}

struct runner {
    cub_call const& c;
    std::size_t bytes;
    cudaStream_t stream;

    template <class T>
    cudaError_t scan() {
        return cub::DeviceScan::ExclusiveSum(c.scratch, bytes, in<T>(c.keys), out<T>(c.keys_out), int(c.n), stream);
    }
    template <class Index>
    cudaError_t select() {
        return cub::DeviceSelect::Flagged(c.scratch, bytes, thrust::counting_iterator<Index>(0), in<unsigned char>(c.values),
                                          out<Index>(c.keys_out), out<unsigned long long>(c.count), int(c.n), stream);
    }
    template <class T>
    cudaError_t reduce() {
        return cub::DeviceReduce::Sum(c.scratch, bytes, in<T>(c.keys), out<T>(c.keys_out), int(c.n), stream);
    }
    template <class Call>
    cudaError_t segmented(Call call) {
        auto const* const offsets = in<int>(c.values);
        return call(c.scratch, bytes, in<double>(c.keys), out<double>(c.keys_out), int(c.segments), offsets, offsets + 1, stream);
    }
    template <class T, bool Upper>
    cudaError_t bound() {
        auto const policy = thrust::cuda::par_nosync.on(stream);
        auto const* const sorted = in<T>(c.keys);
        auto const* const queries = in<T>(c.values);
        auto* const found = out<unsigned>(c.keys_out);
        if (Upper) thrust::upper_bound(policy, sorted, sorted + c.n, queries, queries + c.n, found);
        else thrust::lower_bound(policy, sorted, sorted + c.n, queries, queries + c.n, found);
        return cudaPeekAtLastError();
    }
    template <class K>
    cudaError_t radix() {
        return cub::DeviceRadixSort::SortPairs(c.scratch, bytes, in<K>(c.keys), out<K>(c.keys_out), in<int>(c.values), out<int>(c.values_out),
                                               int(c.n), 0, int(sizeof(K) * 8), stream);
    }
    template <class K>
    cudaError_t unique() {
        return cub::DeviceSelect::UniqueByKey(c.scratch, bytes, in<K>(c.keys), in<int>(c.values), out<K>(c.keys_out), out<int>(c.values_out),
                                              out<unsigned long long>(c.count), int(c.n), stream);
    }
};

}  // namespace

extern "C" int cub_run(int algorithm, cub_call const* call) {
    if (algorithm >= cub_sort_first) return sort(algorithm - cub_sort_first, call);
    if (algorithm >= cub_scan_record) return cub_run_records(algorithm, call);
    runner r{*call, call->scratch_bytes, static_cast<cudaStream_t>(call->stream)};
    cub_call const& c = *call;
    switch (algorithm) {
        case cub_exclusive_scan_i32: return r.scan<int>();
        case cub_exclusive_scan_i64: return r.scan<long long>();
        case cub_select_i32: return r.select<int>();
        case cub_select_i64: return r.select<long long>();
        case cub_reduce_sum_f64: return r.reduce<double>();
        case cub_reduce_sum_i32: return r.reduce<int>();
        case cub_segmented_reduce_sum_f64: return r.segmented([](auto... a) { return cub::DeviceSegmentedReduce::Sum(a...); });
        case cub_segmented_reduce_min_f64: return r.segmented([](auto... a) { return cub::DeviceSegmentedReduce::Min(a...); });
        case cub_segmented_reduce_max_f64: return r.segmented([](auto... a) { return cub::DeviceSegmentedReduce::Max(a...); });
        case cub_lower_bound_i32: return r.bound<int, false>();
        case cub_lower_bound_u64: return r.bound<unsigned long long, false>();
        case cub_upper_bound_i32: return r.bound<int, true>();
        case cub_upper_bound_u64: return r.bound<unsigned long long, true>();
        case cub_radix_sort_i32_i32: return r.radix<int>();
        case cub_radix_sort_u64_i32: return r.radix<unsigned long long>();
        case cub_merge_sort_u64_i32:
            return cub::DeviceMergeSort::SortPairsCopy(c.scratch, r.bytes, in<unsigned long long>(c.keys), in<int>(c.values),
                                                       out<unsigned long long>(c.keys_out), out<int>(c.values_out), int(c.n), ordered{}, r.stream);
        case cub_unique_by_key_i32_i32: return r.unique<int>();
        case cub_unique_by_key_u64_i32: return r.unique<unsigned long long>();
        case cub_scan_i32_functor:
            return cub::DeviceScan::ExclusiveScan(c.scratch, r.bytes, in<int>(c.keys), out<int>(c.keys_out), saturating_sum{}, 0, int(c.n), r.stream);
        case cub_reduce_i32_functor:
            return cub::DeviceReduce::Reduce(c.scratch, r.bytes, in<int>(c.keys), out<int>(c.keys_out), int(c.n), saturating_sum{}, 0, r.stream);
        case cub_select_if_i32:
            return cub::DeviceSelect::If(c.scratch, r.bytes, in<int>(c.keys), out<int>(c.keys_out), out<unsigned long long>(c.count), int(c.n),
                                         by_three{}, r.stream);
        default: return cudaErrorInvalidValue;
    }
}
