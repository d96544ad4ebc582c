// SPDX-License-Identifier: Apache-2.0
// How kernels of the pack share work: one thread per item, in strides of the grid; and lists of what a filter could not decide,
// which a second kernel goes through without the host knowing how many there are.
#pragma once

#include "support.cuh"

namespace kiln_spatial {

__device__ __forceinline__ u64 first_item() { return static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ __forceinline__ u64 item_stride() { return static_cast<u64>(gridDim.x) * blockDim.x; }

// Appends `item` where `wanted`, one atomic per warp. The order is not fixed: what follows must not depend on it.
__device__ __forceinline__ void append(bool wanted, u32 item, u32* list, u32* count) {
    u32 const active = __activemask(), takers = __ballot_sync(active, wanted);
    if (takers == 0) return;
    int const lane = static_cast<int>(threadIdx.x & 31), leader = __ffs(static_cast<int>(takers)) - 1;
    u32 at = 0;
    if (lane == leader) at = atomicAdd(count, static_cast<u32>(__popc(takers)));
    at = __shfl_sync(active, at, leader);
    if (wanted) list[at + static_cast<u32>(__popc(takers & ((1U << lane) - 1)))] = item;
}

}  // namespace kiln_spatial
