// SPDX-License-Identifier: Apache-2.0
// Stable merge sort by any order, of keys or of keys with values (KILN_SORT_PAIRS): blocks sort tiles, passes merge them.
#include "kiln/prims/prelude.cuh"

#include <cub/agent/agent_merge_sort.cuh>

#include "kiln/prims/tuning.cuh"

#include <cub/device/dispatch/tuning/tuning_merge_sort.cuh>

#define KILN_OPERATOR_RESULT bool
#define KILN_OPERATOR_PARAMETERS kiln_value, kiln_value
#include "kiln/prims/operator.cuh"
#include "kiln/prims/tiles.cuh"

namespace kiln_device {

#ifdef KILN_SORT_PAIRS
using mapped = kiln_mapped;
#else
using mapped = cub::NullType;
#endif

using policy = cub::detail::merge_sort::policy_hub<kiln_value*>::MaxPolicy::ActivePolicy::MergeSortPolicy;
using partition_agent = cub::detail::merge_sort::AgentPartition<kiln_value*, kiln_offset, kiln_functor, kiln_value>;

KILN_PRIM_INFO(policy::BLOCK_THREADS, policy::ITEMS_PER_THREAD, int(sizeof(kiln_offset)));

// The passes are launched so that each may begin while the one before it ends: each waits for the one before and lets the next one
// begin once it has read.

constexpr int threads = policy::BLOCK_THREADS, items = policy::ITEMS_PER_THREAD, full = policy::ITEMS_PER_TILE;
constexpr bool has_values = !::cuda::std::is_same_v<mapped, cub::NullType>;
template <class T>
using block_store = cub::BlockStore<T, threads, items, policy::STORE_ALGORITHM>;

struct tile_sorter {
    template <class T>
    using block_load = cub::BlockLoad<T, threads, items, policy::LOAD_ALGORITHM>;
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
            load_tile<block_load<mapped>>(shared.load_values, values_in, values, count, full);
            __syncthreads();
        }
        load_tile<block_load<kiln_value>>(shared.load_keys, keys_in, keys, count, full);
        __syncthreads();
        let_next_begin();
        if (count != full) fill_up(keys);
        // `false`: CUB need not fill up itself. It merges no more than `count` keys all the same.
        block_sort(shared.sort).template StableSort<kiln_functor, false>(keys, values, less, count, keys[0]);
        __syncthreads();
        store_tile<block_store<kiln_value>>(shared.store_keys, keys_out, keys, count, full);
        if constexpr (has_values) {
            __syncthreads();
            store_tile<block_store<mapped>>(shared.store_values, values_out, values, count, full);
        }
    }
};

// Of two sorted runs a tile is given a piece each: `many` items from `begin` on, the others after `skipped` more.
struct pieces {
    kiln_offset begin, skipped;
    int many;

    __device__ __forceinline__ kiln_offset at(int i) const { return begin + kiln_offset(i) + (i < many ? 0 : skipped); }
};

struct tile_merger {
    template <class T>
    using input = cub::CacheModifiedInputIterator<policy::LOAD_MODIFIER, T, kiln_offset>;
    template <class T>
    using area = cub::Uninitialized<T[full + 1]>;

    // Where there is room enough, values have a place of their own beside the keys: it saves registers, and waiting.
    static constexpr bool is_roomy = CUB_PTX_ARCH == 800 || (CUB_PTX_ARCH >= 900 && CUB_PTX_ARCH < 1200);
    static constexpr bool apart = has_values && is_roomy && sizeof(area<kiln_value>) + sizeof(area<mapped>) <= 40 * 1024;

    struct side_by_side {
        area<kiln_value> keys;
        area<mapped> values;
    };
    union one_place {
        area<kiln_value> keys;
        area<mapped> values;
    };
    struct stores_side_by_side {
        typename block_store<kiln_value>::TempStorage keys;
        typename block_store<mapped>::TempStorage values;
    };
    union stores_in_one_place {
        typename block_store<kiln_value>::TempStorage keys;
        typename block_store<mapped>::TempStorage values;
    };
    union storage {
        ::cuda::std::conditional_t<apart, side_by_side, one_place> pieces;
        ::cuda::std::conditional_t<apart, stores_side_by_side, stores_in_one_place> store;
    };

    storage& shared;
    int count;  // of the tile's items, 1 to `full`
    kiln_functor less;

    // Item i of the two pieces is thread i % threads's. All loads are on their way before the first is used.
    template <bool Full>
    __device__ __forceinline__ void load(input<kiln_value> keys_in, input<mapped> values_in, pieces where, kiln_value (&keys)[items],
                                         mapped (&values)[items]) {
#pragma unroll
        for (int k = 0; k < items; ++k)
            if (int const i = k * threads + int(threadIdx.x); Full || i < count) keys[k] = keys_in[where.at(i)];
        if constexpr (has_values) {
#pragma unroll
            for (int k = 0; k < items; ++k)
                if (int const i = k * threads + int(threadIdx.x); Full || i < count) values[k] = values_in[where.at(i)];
        }
    }

    template <class T>
    static __device__ __forceinline__ void put(T const (&held)[items], T* to) {
#pragma unroll
        for (int k = 0; k < items; ++k) to[k * threads + int(threadIdx.x)] = held[k];
    }

    template <class T>
    static __device__ __forceinline__ void take(T const* from, int const (&where)[items], T (&held)[items]) {
#pragma unroll
        for (int k = 0; k < items; ++k) held[k] = from[where[k]];
    }

    __device__ __forceinline__ void merge(kiln_value const* keys_in, mapped const* values_in, pieces where, kiln_value* keys_out,
                                          mapped* values_out) {
        kiln_value keys[items];
        mapped values[items];
        int from[items];
        auto* const all_keys = shared.pieces.keys.Alias();
        auto* const all_values = shared.pieces.values.Alias();
        if (count == full) load<true>(input<kiln_value>{keys_in}, input<mapped>{values_in}, where, keys, values);
        else load<false>(input<kiln_value>{keys_in}, input<mapped>{values_in}, where, keys, values);
        put(keys, all_keys);
        if constexpr (apart) put(values, all_values);
        __syncthreads();
        let_next_begin();
        int const one = where.many, other = count - one;
        int const diagonal = (::cuda::std::min)(count, items * int(threadIdx.x));
        int const begin = cub::MergePath(all_keys, all_keys + one, one, other, diagonal, less);
        cub::SerialMerge(all_keys, begin, one + diagonal - begin, one - begin, other - (diagonal - begin), keys, from, less);
        if constexpr (apart) take(all_values, from, values);
        __syncthreads();
        store_tile<block_store<kiln_value>>(shared.store.keys, keys_out, keys, count, full);
        if constexpr (has_values && !apart) {
            __syncthreads();
            put(values, all_values);
            __syncthreads();
            take(all_values, from, values);
            __syncthreads();
        }
        if constexpr (has_values) store_tile<block_store<mapped>>(shared.store.values, values_out, values, count, full);
    }
};
static_assert(sizeof(tile_sorter::storage) <= 48 * 1024 && sizeof(tile_merger::storage) <= 48 * 1024,
              "items too large for shared memory");

// As the partition kernel has found them.
static __device__ __forceinline__ pieces pieces_of_tile(kiln_offset n, kiln_offset const* partitions, kiln_offset merged_tiles) {
    kiln_offset const tile = blockIdx.x, last = merged_tiles - 1;
    kiln_offset const start = (tile & ~last) * kiln_offset(full);  // of the two runs, each of `run` items but where the input ends
    kiln_offset const run = merged_tiles / 2 * full;
    kiln_offset const ahead = tile * full - start;
    kiln_offset const rest = n - start;
    kiln_offset const one_begin = partitions[tile] - start;
    kiln_offset const one_end = (tile & last) == last ? (::cuda::std::min)(rest, run) : partitions[tile + 1] - start;
    kiln_offset const other_begin = (::cuda::std::min)(rest > run ? rest - run : kiln_offset(0), ahead - one_begin);
    return {start + one_begin, run + other_begin - one_end, int(one_end - one_begin)};
}

extern "C" __global__ void __launch_bounds__(policy::BLOCK_THREADS)
    kiln_merge_sort_tiles(kiln_value const* keys_in, mapped const* values_in, kiln_value* keys_out, mapped* values_out,
                          kiln_offset n, KILN_STATE_PARAMETER) {
    __shared__ tile_sorter::storage storage;
    kiln_offset const begin = kiln_offset(blockIdx.x) * full;
    wait_for_previous();
    tile_sorter{storage, items_of_tile(n, full), kiln_functor{state}}.sort(keys_in + begin, values_in + begin, keys_out + begin,
                                                                           values_out + begin);
}

extern "C" __global__ void __launch_bounds__(256)
    kiln_merge_sort_partition(kiln_value* keys, kiln_offset n, kiln_offset count, kiln_offset* partitions,
                              kiln_offset merged_tiles, int tile, KILN_STATE_PARAMETER) {
    wait_for_previous();
    // Not sooner: blocks of the next merge that find a place beside those of the last one crowd a few multiprocessors.
    let_next_begin();
    kiln_offset const i = kiln_offset(blockDim.x) * blockIdx.x + threadIdx.x;
    if (i >= count) return;
    // CUB's agent chooses between two sides at run time. Here the host has chosen.
    constexpr bool side = true;
    partition_agent(side, keys, keys, n, i, partitions, kiln_functor{state}, merged_tiles, tile, count).Process();
}

extern "C" __global__ void __launch_bounds__(policy::BLOCK_THREADS)
    kiln_merge_sort_merge(kiln_value* keys_in, mapped* values_in, kiln_value* keys_out, mapped* values_out, kiln_offset n,
                          kiln_offset* partitions, kiln_offset merged_tiles, KILN_STATE_PARAMETER) {
    __shared__ tile_merger::storage storage;
    wait_for_previous();
    kiln_offset const begin = kiln_offset(blockIdx.x) * full;
    tile_merger{storage, items_of_tile(n, full), kiln_functor{state}}.merge(
        keys_in, values_in, pieces_of_tile(n, partitions, merged_tiles), keys_out + begin, values_out + begin);
}

}  // namespace kiln_device
