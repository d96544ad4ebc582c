// SPDX-License-Identifier: Apache-2.0
// Stable merge sort by any order, of keys or of keys with values (KILN_SORT_PAIRS): blocks sort tiles, passes merge them.
#include "kiln/prims/prelude.cuh"

#include <cub/agent/agent_merge_sort.cuh>

#include "kiln/prims/tuning.cuh"

#include <cub/device/dispatch/tuning/tuning_merge_sort.cuh>
#include <thrust/system/cuda/detail/core/make_load_iterator.h>

#define KILN_OPERATOR_RESULT bool
#define KILN_OPERATOR_PARAMETERS kiln_value, kiln_value
#include "kiln/prims/operator.cuh"

#ifdef KILN_SORT_PAIRS
using mapped = kiln_mapped;
#else
using mapped = cub::NullType;
#endif

using policy = cub::detail::merge_sort::policy_hub<kiln_value*>::MaxPolicy::ActivePolicy::MergeSortPolicy;
using block_agent = cub::detail::merge_sort::AgentBlockSort<policy, kiln_value const*, mapped const*, kiln_value*, mapped*,
                                                            kiln_offset, kiln_functor, kiln_value, mapped>;
using partition_agent = cub::detail::merge_sort::AgentPartition<kiln_value*, kiln_offset, kiln_functor, kiln_value>;
using merge_agent =
    cub::detail::merge_sort::AgentMerge<policy, kiln_value*, mapped*, kiln_offset, kiln_functor, kiln_value, mapped>;
namespace loading = thrust::cuda_cub::core::detail;
static_assert(sizeof(block_agent::TempStorage) <= 48 * 1024 && sizeof(merge_agent::TempStorage) <= 48 * 1024,
              "items too large for shared memory");

KILN_PRIM_INFO(policy::BLOCK_THREADS, policy::ITEMS_PER_THREAD, int(sizeof(kiln_offset)));

// The passes are launched so that each may begin while the one before it ends. Each lets the next one begin (CUB's agents
// do so once they have read), and waits for the one before, and so for all before that, ahead of its first look at memory.
static __device__ __forceinline__ void wait_for_previous_pass() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
static __device__ __forceinline__ void let_next_pass_begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// CUB's agents choose between two sides at run time and hold every load and store twice for it. Here the host has chosen:
// the agents are told a constant, and what they are given for the other side is never looked at.
constexpr bool chosen_side = true;

extern "C" __global__ void __launch_bounds__(policy::BLOCK_THREADS)
    kiln_merge_sort_tiles(kiln_value const* keys_in, mapped const* values_in, kiln_value* keys_out, mapped* values_out,
                          kiln_offset n, KILN_STATE_PARAMETER) {
    __shared__ block_agent::TempStorage storage;
    block_agent agent(chosen_side, storage, loading::make_load_iterator(policy(), keys_in),
                      loading::make_load_iterator(policy(), values_in), n, keys_out, values_out, keys_out, values_out,
                      kiln_functor{state});
    agent.Process();
}

extern "C" __global__ void __launch_bounds__(256)
    kiln_merge_sort_partition(kiln_value* keys, kiln_offset n, kiln_offset count, kiln_offset* partitions,
                              kiln_offset merged_tiles, int tile, KILN_STATE_PARAMETER) {
    let_next_pass_begin();
    wait_for_previous_pass();
    kiln_offset const i = kiln_offset(blockDim.x) * blockIdx.x + threadIdx.x;
    if (i >= count) return;
    partition_agent agent(chosen_side, keys, keys, n, i, partitions, kiln_functor{state}, merged_tiles, tile, count);
    agent.Process();
}

extern "C" __global__ void __launch_bounds__(policy::BLOCK_THREADS)
    kiln_merge_sort_merge(kiln_value* keys_in, mapped* values_in, kiln_value* keys_out, mapped* values_out, kiln_offset n,
                          kiln_offset* partitions, kiln_offset merged_tiles, KILN_STATE_PARAMETER) {
    __shared__ merge_agent::TempStorage storage;
    wait_for_previous_pass();
    auto const keys = loading::make_load_iterator(policy(), keys_in);
    auto const values = loading::make_load_iterator(policy(), values_in);
    merge_agent agent(chosen_side, storage, keys, values, keys, values, n, keys_out, values_out, keys_out, values_out,
                      kiln_functor{state}, partitions, merged_tiles);
    agent.Process();
}
