// SPDX-License-Identifier: Apache-2.0
// Unique by key: the first item of every run of equal keys, with its value.
#include "kiln/prims/prelude.cuh"

#include <cub/agent/agent_unique_by_key.cuh>

#include "kiln/prims/tuning.cuh"

#include <cub/device/dispatch/tuning/tuning_unique_by_key.cuh>

#define KILN_OPERATOR_RESULT bool
#define KILN_OPERATOR_PARAMETERS kiln_value, kiln_value
#include "kiln/prims/operator.cuh"
#include "kiln/prims/tiles.cuh"

namespace kiln_device {

using policy =
    cub::detail::unique_by_key::policy_hub<kiln_value, kiln_mapped>::MaxPolicy::ActivePolicy::UniqueByKeyPolicyT;
using tile_state = cub::ScanTileState<kiln_offset>;

// Keeps the heads of runs of one tile.
struct tile_agent {
    static constexpr int threads = policy::BLOCK_THREADS, items = policy::ITEMS_PER_THREAD, full = threads * items;
    template <class T>
    using block_load = cub::BlockLoad<T, threads, items, policy::LOAD_ALGORITHM>;
    using block_heads = cub::BlockDiscontinuity<kiln_value, threads>;
    using block_scan = cub::BlockScan<kiln_offset, threads, policy::SCAN_ALGORITHM>;
    using prefix = tile_prefix<kiln_offset, cuda::std::plus<>, policy::detail::delay_constructor_t>;
    template <class T>
    using input = cub::CacheModifiedInputIterator<policy::LOAD_MODIFIER, T, kiln_i64>;
    template <class T>
    using packed = cub::Uninitialized<T[full]>;

    union storage {
        struct {
            typename block_scan::TempStorage scan;
            typename prefix::look_back::TempStorage before;
            typename block_heads::TempStorage heads;
        } scanning;
        typename block_load<kiln_value>::TempStorage load_keys;
        typename block_load<kiln_mapped>::TempStorage load_values;
        packed<kiln_value> keys;
        packed<kiln_mapped> values;
    };

    storage& shared;
    tile_state& states;
    kiln_functor equal;
    int count;  // of the tile's items, 1 to `full`
    kept_items<items> kept{};

    template <class T>
    __device__ __forceinline__ void write(packed<T>& pack, T const (&from)[items], T* out, int at, int here) {
        T* const packed = pack.Alias();
        __syncthreads();
        kept.put(from, packed + at);
        __syncthreads();
#pragma unroll 1
        for (int i = threadIdx.x; i < here; i += threads) out[i] = packed[i];
    }

    // Gives how many of this tile and those before it are kept.
    __device__ __forceinline__ kiln_offset run(kiln_value const* keys_in, kiln_mapped const* values_in, kiln_value* keys_out,
                                               kiln_mapped* values_out) {
        kiln_value keys[items];
        kiln_mapped values[items];
        input<kiln_value> const all_keys{keys_in};
        load_tile<block_load<kiln_value>>(shared.load_keys, all_keys, keys, count, full);
        __syncthreads();
        load_tile<block_load<kiln_mapped>>(shared.load_values, input<kiln_mapped>{values_in}, values, count, full);
        __syncthreads();
        // The very first key has none before it, and is a head whatever the operator says of it and itself.
        bool const is_first = blockIdx.x == 0;
        kiln_value const key_before = all_keys[is_first ? 0 : -1];
        int heads[items];
        block_heads(shared.scanning.heads).FlagHeads(heads, keys, cub::InequalityWrapper<kiln_functor>(equal), key_before);
#pragma unroll
        for (int i = 0; i < items; ++i) kept.set(i, heads[i] != 0);
        if (is_first && threadIdx.x == 0) kept.set(0, true);
        if (count != full) kept.limit(count);
        wait_for_previous();
        __syncthreads();
        kiln_offset at;
        prefix before{states, shared.scanning.before, cuda::std::plus<>{}, 0};
        block_scan(shared.scanning.scan).ExclusiveSum(kiln_offset(kept.count()), at, before);
        int const here = int(before.GetBlockAggregate());
        kiln_offset const first = before.GetExclusivePrefix();
        write(shared.keys, keys, keys_out + first, int(at - first), here);
        write(shared.values, values, values_out + first, int(at - first), here);
        return first + kiln_offset(here);
    }
};
static_assert(sizeof(tile_agent::storage) <= 48 * 1024, "items too large for shared memory");

KILN_PRIM_INFO(policy::BLOCK_THREADS, policy::ITEMS_PER_THREAD, int(tile_state::description_bytes_per_tile),
               int(tile_state::payload_bytes_per_tile), int(tile_state::TILE_STATUS_PADDING), int(sizeof(kiln_offset)));

extern "C" __global__ void __launch_bounds__(128) kiln_unique_init(void* memory, int tiles) {
    let_next_begin();
    tile_states<kiln_offset>(memory, tiles).InitializeStatus(tiles);
}

extern "C" __global__ void __launch_bounds__(policy::BLOCK_THREADS)
    kiln_unique(kiln_value const* keys_in, kiln_mapped const* values_in, kiln_value* keys_out, kiln_mapped* values_out,
                kiln_u64* count, void* memory, int tiles, kiln_offset n, KILN_STATE_PARAMETER) {
    __shared__ tile_agent::storage storage;
    auto states = tile_states<kiln_offset>(memory, tiles);
    kiln_u64 const begin = kiln_u64(blockIdx.x) * tile_agent::full;
    tile_agent tile{storage, states, kiln_functor{state}, items_of_tile(n, tile_agent::full)};
    kiln_offset const all = tile.run(keys_in + begin, values_in + begin, keys_out, values_out);
    if (int(blockIdx.x) == tiles - 1 && threadIdx.x == 0) *count = all;
}

}  // namespace kiln_device
