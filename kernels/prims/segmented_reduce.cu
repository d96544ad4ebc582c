// SPDX-License-Identifier: Apache-2.0
//
// Reduction of each segment. The host knows only the mean length: short segments on average are taken by 8 or 32 lanes
// each, and those that turn out long are queued for whole blocks; otherwise every segment has a block, as in CUB.
#include "kiln/prims/prelude.cuh"

#include <cub/agent/agent_reduce.cuh>

#include "kiln/prims/tuning.cuh"

#include <cub/device/dispatch/tuning/tuning_reduce.cuh>
#include <cub/warp/warp_reduce.cuh>

#define KILN_OPERATOR_RESULT kiln_value
#define KILN_OPERATOR_PARAMETERS kiln_value, kiln_value
#include "kiln/prims/block_reduction.cuh"
#include "kiln/prims/operator.cuh"

namespace kiln_device {

namespace by_segment {
using hub = cub::detail::reduce::policy_hub<kiln_value, kiln_u32, cuda::std::plus<>>;
using policy = hub::MaxPolicy::ActivePolicy::SegmentedReducePolicy;
constexpr int lanes_threads = 256;
constexpr int long_for_8 = 256;     // longer segments than these are queued
constexpr int long_for_32 = 2048;

using block = block_reduction<policy::BLOCK_THREADS, policy::ITEMS_PER_THREAD, policy::LOAD_MODIFIER>;

struct range {
    kiln_u64 begin;
    kiln_u64 end;
};

// Where the segments are: two arrays of 32- or 64-bit offsets, which may be one array and the same moved by one.
struct segments {
    void const* begins;
    void const* ends;
    kiln_u64 count;
    int wide;
    int unused;
};

static __device__ __forceinline__ kiln_u64 offset_at(void const* offsets, kiln_u64 i, int wide) {
    return wide != 0 ? static_cast<kiln_u64 const*>(offsets)[i] : static_cast<kiln_u32 const*>(offsets)[i];
}

static __device__ __forceinline__ range segment_at(segments const& where, kiln_u64 i) {
    range out{offset_at(where.begins, i, where.wide), offset_at(where.ends, i, where.wide)};
    if (out.end < out.begin) out.end = out.begin;
    return out;
}

// Segments that are left to whole blocks. `entries` may be more than `capacity`: what does not fit was not left.
struct queue {
    kiln_u64* entries;  // [0] counts, the rest are numbers of segments
    kiln_u64 capacity;
};

template <int Lanes, int Long>
static __device__ __forceinline__ void reduce_with_lanes(kiln_value const* in, kiln_value* out, segments const& where,
                                                         kiln_u64 first, queue waiting, kiln_value init, kiln_functor op) {
    using warp_reduce = cub::WarpReduce<kiln_value, Lanes>;
    __shared__ typename warp_reduce::TempStorage storage[lanes_threads / Lanes];
    int const lane = threadIdx.x % Lanes;
    kiln_u64 const i = first + kiln_u64{blockIdx.x} * (lanes_threads / Lanes) + threadIdx.x / Lanes;
    bool const exists = i < where.count;
    range r = exists ? segment_at(where, i) : range{0, 0};
    kiln_u64 const length = r.end - r.begin;

    bool left = false;
    if (length > Long && waiting.capacity > 0) {
        kiln_u64 slot = 0;
        if (lane == 0) slot = atomicAdd(waiting.entries, kiln_u64{1});
        // Lanes of one segment stay together; groups of one warp may differ.
        unsigned const group = Lanes == 32 ? 0xffffffffu : ((1u << (Lanes % 32)) - 1u) << (threadIdx.x % 32 / Lanes * Lanes);
        slot = __shfl_sync(group, slot, 0, Lanes);
        left = slot < waiting.capacity;
        if (left && lane == 0) waiting.entries[1 + slot] = i;
    }
    if (left) r.end = r.begin;

    kiln_value sum = init;
    kiln_u64 at = r.begin + lane;
    if (at < r.end) {
        sum = in[at];
#pragma unroll 4
        for (at += Lanes; at < r.end; at += Lanes) sum = op(sum, in[at]);
    }
    int const valid = r.end - r.begin < Lanes ? int(r.end - r.begin) : Lanes;
    __syncwarp();
    if (valid == 0) {
        // The lanes of a segment agree, so whole groups leave; cub's group masks never wait for them.
        if (exists && !left && lane == 0) out[i] = init;
        return;
    }
    sum = warp_reduce(storage[threadIdx.x / Lanes]).Reduce(sum, op, valid);
    if (lane == 0) out[i] = op(init, sum);
}
}  // namespace by_segment

#define KILN_SEGMENTED_REDUCE_INFO                                                                                     \
    by_segment::policy::BLOCK_THREADS, by_segment::policy::ITEMS_PER_THREAD, by_segment::lanes_threads, by_segment::long_for_8, \
        by_segment::long_for_32
#ifndef KILN_PRIM_SHARED
KILN_PRIM_INFO(by_segment::policy::BLOCK_THREADS, by_segment::policy::ITEMS_PER_THREAD, 0, 0, KILN_SEGMENTED_REDUCE_INFO);
#endif

// A block for every segment from `first` on, or, with a queue, for those that were left to it.
extern "C" __global__ void __launch_bounds__(by_segment::policy::BLOCK_THREADS)
    kiln_segmented_reduce_block(kiln_value const* in, kiln_value* out, by_segment::segments where, kiln_u64 first, by_segment::queue waiting,
                                kiln_value init, KILN_STATE_PARAMETER) {
    __shared__ by_segment::block::storage storage;
    wait_for_previous();
    kiln_functor const op{state};
    bool const has_queue = waiting.capacity != 0;
    kiln_u64 const count = !has_queue ? gridDim.x : waiting.entries[0] < waiting.capacity ? waiting.entries[0] : waiting.capacity;
#pragma unroll 1
    for (kiln_u64 q = blockIdx.x; q < count; q += gridDim.x) {
        kiln_u64 const i = has_queue ? waiting.entries[1 + q] : first + q;
        by_segment::range const r = by_segment::segment_at(where, i);
        kiln_value reduced = init;
        if (r.begin != r.end) {
            reduced = by_segment::block::reduce(storage, in + r.begin, r.end - r.begin, op);
            reduced = op(init, reduced);
        }
        if (threadIdx.x == 0) out[i] = reduced;
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(by_segment::lanes_threads)
    kiln_segmented_reduce_8(kiln_value const* in, kiln_value* out, by_segment::segments where, kiln_u64 first, by_segment::queue waiting,
                            kiln_value init, KILN_STATE_PARAMETER) {
    let_next_begin();
    by_segment::reduce_with_lanes<8, by_segment::long_for_8>(in, out, where, first, waiting, init, kiln_functor{state});
}

extern "C" __global__ void __launch_bounds__(by_segment::lanes_threads)
    kiln_segmented_reduce_32(kiln_value const* in, kiln_value* out, by_segment::segments where, kiln_u64 first, by_segment::queue waiting,
                             kiln_value init, KILN_STATE_PARAMETER) {
    let_next_begin();
    by_segment::reduce_with_lanes<32, by_segment::long_for_32>(in, out, where, first, waiting, init, kiln_functor{state});
}

}  // namespace kiln_device
