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
using partition_agent = cub::detail::merge_sort::AgentPartition<kiln_value*, kiln_offset, kiln_functor, kiln_value>;
using merge_agent =
    cub::detail::merge_sort::AgentMerge<policy, kiln_value*, mapped*, kiln_offset, kiln_functor, kiln_value, mapped>;
namespace loading = thrust::cuda_cub::core::detail;

KILN_PRIM_INFO(policy::BLOCK_THREADS, policy::ITEMS_PER_THREAD, int(sizeof(kiln_offset)));

// The passes are launched so that each may begin while the one before it ends: each lets the next one begin (CUB's agents do so
// once they have read) and waits for the one before.

// Sorts one tile. CUB's agent for this holds the whole sort twice, for full tiles and for the last one. Here they share it and
// differ only in how they are loaded and stored, so that a link with a new order has half as much to make.
struct tile_agent {
    static constexpr int threads = policy::BLOCK_THREADS, items = policy::ITEMS_PER_THREAD, full = policy::ITEMS_PER_TILE;
    static constexpr bool has_values = !::cuda::std::is_same_v<mapped, cub::NullType>;
    template <class T>
    using block_load = cub::BlockLoad<T, threads, items, policy::LOAD_ALGORITHM>;
    template <class T>
    using block_store = cub::BlockStore<T, threads, items, policy::STORE_ALGORITHM>;
    using block_sort = cub::BlockMergeSort<kiln_value, threads, items, mapped>;

    union storage {
        typename block_load<kiln_value>::TempStorage load_keys;
        typename block_load<mapped>::TempStorage load_values;
        typename block_sort::TempStorage sort;
        typename block_store<kiln_value>::TempStorage store_keys;
        typename block_store<mapped>::TempStorage store_values;
    };

    storage& shared;
    int count;  // of the tile's items, 1 to `full`
    kiln_functor less;

    template <class T>
    __device__ __forceinline__ void load(typename block_load<T>::TempStorage& in_shared, T const* in, T (&to)[items]) {
        if (count == full) block_load<T>(in_shared).Load(in, to);
        else block_load<T>(in_shared).Load(in, to, count, *in);
    }

    template <class T>
    __device__ __forceinline__ void store(typename block_store<T>::TempStorage& in_shared, T* out, T (&from)[items]) {
        if (count == full) block_store<T>(in_shared).Store(out, from);
        else block_store<T>(in_shared).Store(out, from, count);
    }

    // A thread with fewer keys than it sorts repeats its greatest, which a stable sort leaves behind them.
    __device__ __forceinline__ void fill_up(kiln_value (&keys)[items]) {
        int const own = count - int(threadIdx.x) * items;
        kiln_value greatest = keys[0];
#pragma unroll
        for (int i = 1; i < items; ++i) {
            if (i >= own) keys[i] = greatest;
            else if (less(greatest, keys[i])) greatest = keys[i];
        }
    }

    __device__ __forceinline__ void sort(kiln_value const* keys_in, mapped const* values_in, kiln_value* keys_out,
                                         mapped* values_out) {
        kiln_value keys[items];
        mapped values[items];
        if constexpr (has_values) {
            load(shared.load_values, values_in, values);
            __syncthreads();
        }
        load(shared.load_keys, keys_in, keys);
        __syncthreads();
        let_next_begin();
        if (count != full) fill_up(keys);
        // `false`: CUB need not fill up itself. It merges no more than `count` keys all the same.
        block_sort(shared.sort).template StableSort<kiln_functor, false>(keys, values, less, count, keys[0]);
        __syncthreads();
        store(shared.store_keys, keys_out, keys);
        if constexpr (has_values) {
            __syncthreads();
            store(shared.store_values, values_out, values);
        }
    }
};
static_assert(sizeof(tile_agent::storage) <= 48 * 1024 && sizeof(merge_agent::TempStorage) <= 48 * 1024,
              "items too large for shared memory");

extern "C" __global__ void __launch_bounds__(policy::BLOCK_THREADS)
    kiln_merge_sort_tiles(kiln_value const* keys_in, mapped const* values_in, kiln_value* keys_out, mapped* values_out,
                          kiln_offset n, KILN_STATE_PARAMETER) {
    __shared__ tile_agent::storage storage;
    kiln_offset const begin = kiln_offset(blockIdx.x) * tile_agent::full;
    int const count = int((::cuda::std::min)(n - begin, kiln_offset(tile_agent::full)));
    wait_for_previous();
    tile_agent{storage, count, kiln_functor{state}}.sort(keys_in + begin, values_in + begin, keys_out + begin,
                                                         values_out + begin);
}

// CUB's other agents choose between two sides at run time and hold every load and store twice for it. Here the host has
// chosen: they are told a constant, and what they are given for the other side is never looked at.
constexpr bool chosen_side = true;

extern "C" __global__ void __launch_bounds__(256)
    kiln_merge_sort_partition(kiln_value* keys, kiln_offset n, kiln_offset count, kiln_offset* partitions,
                              kiln_offset merged_tiles, int tile, KILN_STATE_PARAMETER) {
    let_next_begin();
    wait_for_previous();
    kiln_offset const i = kiln_offset(blockDim.x) * blockIdx.x + threadIdx.x;
    if (i >= count) return;
    partition_agent agent(chosen_side, keys, keys, n, i, partitions, kiln_functor{state}, merged_tiles, tile, count);
    agent.Process();
}

extern "C" __global__ void __launch_bounds__(policy::BLOCK_THREADS)
    kiln_merge_sort_merge(kiln_value* keys_in, mapped* values_in, kiln_value* keys_out, mapped* values_out, kiln_offset n,
                          kiln_offset* partitions, kiln_offset merged_tiles, KILN_STATE_PARAMETER) {
    __shared__ merge_agent::TempStorage storage;
    wait_for_previous();
    auto const keys = loading::make_load_iterator(policy(), keys_in);
    auto const values = loading::make_load_iterator(policy(), values_in);
    merge_agent agent(chosen_side, storage, keys, values, keys, values, n, keys_out, values_out, keys_out, values_out,
                      kiln_functor{state}, partitions, merged_tiles);
    agent.Process();
}
