// SPDX-License-Identifier: Apache-2.0
// One struct through each of CUB's algorithms that take one, with operators CUB does not know.
#include "cub_reference.hpp"

#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/device/device_select.cuh>
#include <thrust/binary_search.h>
#include <thrust/execution_policy.h>

namespace {

struct tally {
    double total;
    int count;
    int most;
};
struct sum {
    __host__ __device__ tally operator()(tally a, tally b) const {
        return {a.total + b.total, a.count + b.count, a.most > b.most ? a.most : b.most};
    }
};
struct fewer {
    __host__ __device__ bool operator()(tally a, tally b) const { return a.count < b.count; }
};
struct as_many {
    __host__ __device__ bool operator()(tally a, tally b) const { return a.count == b.count; }
};
struct even {
    __host__ __device__ bool operator()(tally a) const { return a.count % 2 == 0; }
};

}  // namespace

extern "C" int cub_run_records(int algorithm, cub_call const* call) {
    cub_call const& c = *call;
    auto const* const in = static_cast<tally const*>(c.keys);
    auto* const out = static_cast<tally*>(c.keys_out);
    auto* const stream = static_cast<cudaStream_t>(c.stream);
    auto* const count = static_cast<unsigned long long*>(c.count);
    auto const* const values = static_cast<int const*>(c.values);
    int const n = int(c.n);
    std::size_t bytes = c.scratch_bytes;
    switch (algorithm) {
        case cub_scan_record: return cub::DeviceScan::ExclusiveScan(c.scratch, bytes, in, out, sum{}, tally{}, n, stream);
        case cub_reduce_record: return cub::DeviceReduce::Reduce(c.scratch, bytes, in, out, n, sum{}, tally{}, stream);
        case cub_segmented_reduce_record:
            return cub::DeviceSegmentedReduce::Reduce(c.scratch, bytes, in, out, int(c.segments), values, values + 1, sum{}, tally{}, stream);
        case cub_select_if_record: return cub::DeviceSelect::If(c.scratch, bytes, in, out, count, n, even{}, stream);
        case cub_lower_bound_record: {
            auto const* const queries = static_cast<tally const*>(c.values);
            thrust::lower_bound(thrust::cuda::par_nosync.on(stream), in, in + n, queries, queries + n, static_cast<unsigned*>(c.keys_out),
                                fewer{});
            return cudaPeekAtLastError();
        }
        case cub_merge_sort_record:
            return cub::DeviceMergeSort::SortPairsCopy(c.scratch, bytes, in, values, out, static_cast<int*>(c.values_out), n, fewer{}, stream);
        case cub_unique_by_key_record:
            return cub::DeviceSelect::UniqueByKey(c.scratch, bytes, in, values, out, static_cast<int*>(c.values_out), count, n, as_many{}, stream);
        default: return cudaErrorInvalidValue;
    }
}
