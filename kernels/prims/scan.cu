// SPDX-License-Identifier: Apache-2.0
// Exclusive and inclusive scan: one pass over the data, tiles that look back at their predecessors.
#include "kiln/prims/prelude.cuh"

#include <cub/agent/agent_scan.cuh>

#include "kiln/prims/tuning.cuh"

#include <cub/device/dispatch/tuning/tuning_scan.cuh>

#define KILN_OPERATOR_RESULT kiln_value
#define KILN_OPERATOR_PARAMETERS kiln_value, kiln_value
#include "kiln/prims/operator.cuh"
#include "kiln/prims/tiles.cuh"

namespace kiln_device {

// Tuned as for plus<>, whatever the operator is: CUB itself drops to its untuned default for an unknown one.
using hub = cub::detail::scan::policy_hub<kiln_value, kiln_value, kiln_value, kiln_u32, cuda::std::plus<>>;
using policy = hub::MaxPolicy::ActivePolicy::ScanPolicyT;
using tile_state = cub::ScanTileState<kiln_value>;

KILN_PRIM_INFO(policy::BLOCK_THREADS, policy::ITEMS_PER_THREAD, int(tile_state::description_bytes_per_tile),
               int(tile_state::payload_bytes_per_tile), int(tile_state::TILE_STATUS_PADDING));

struct tile_agent {
    static constexpr int threads = policy::BLOCK_THREADS, items = policy::ITEMS_PER_THREAD, full = threads * items;
    using block_load = cub::BlockLoad<kiln_value, threads, items, policy::LOAD_ALGORITHM>;
    using block_store = cub::BlockStore<kiln_value, threads, items, policy::STORE_ALGORITHM>;
    using block_scan = cub::BlockScan<kiln_value, threads, policy::SCAN_ALGORITHM>;
    using prefix = tile_prefix<kiln_value, kiln_functor, policy::detail::delay_constructor_t>;
    using input = cub::CacheModifiedInputIterator<policy::LOAD_MODIFIER, kiln_value, kiln_u64>;

    union storage {
        typename block_load::TempStorage load;
        typename block_store::TempStorage store;
        struct {
            typename prefix::look_back::TempStorage before;
            typename block_scan::TempStorage scan;
        } scanning;
    };

    storage& shared;
    tile_state& states;
    kiln_functor op;
    int count;  // of the tile's items, 1 to `full`

    __device__ __forceinline__ void scan_exclusive(kiln_value const* in, kiln_value* out, kiln_value init) {
        kiln_value held[items];
        load_tile<block_load>(shared.load, input{in}, held, count, full);
        wait_for_previous();
        __syncthreads();
        prefix before{states, shared.scanning.before, op, init};
        block_scan(shared.scanning.scan).ExclusiveScan(held, held, op, before);
        __syncthreads();
        store_tile<block_store>(shared.store, out, held, count, full);
    }

    // Nothing is before the first tile, not even an initial value: it needs a scan of its own.
    __device__ __forceinline__ void scan_inclusive(kiln_value const* in, kiln_value* out) {
        kiln_value held[items];
        load_tile<block_load>(shared.load, input{in}, held, count, full);
        wait_for_previous();
        __syncthreads();
        if (blockIdx.x == 0) {
            kiln_value sum;
            block_scan(shared.scanning.scan).InclusiveScan(held, held, op, sum);
            if (threadIdx.x == 0 && gridDim.x > 1) states.SetInclusive(0, sum);
        } else {
            typename prefix::look_back before{states, shared.scanning.before, op, int(blockIdx.x)};
            block_scan(shared.scanning.scan).InclusiveScan(held, held, op, before);
        }
        __syncthreads();
        store_tile<block_store>(shared.store, out, held, count, full);
    }
};

extern "C" __global__ void __launch_bounds__(128) kiln_scan_init(void* memory, int tiles) {
    let_next_begin();
    tile_states<kiln_value>(memory, tiles).InitializeStatus(tiles);
}

extern "C" __global__ void __launch_bounds__(policy::BLOCK_THREADS)
    kiln_scan_exclusive(kiln_value const* in, kiln_value* out, void* memory, int tiles, kiln_u64 n, kiln_value init,
                        KILN_STATE_PARAMETER) {
    __shared__ tile_agent::storage storage;
    auto states = tile_states<kiln_value>(memory, tiles);
    kiln_u64 const begin = kiln_u64(blockIdx.x) * tile_agent::full;
    tile_agent{storage, states, kiln_functor{state}, items_of_tile(n, tile_agent::full)}.scan_exclusive(in + begin, out + begin, init);
}

extern "C" __global__ void __launch_bounds__(policy::BLOCK_THREADS)
    kiln_scan_inclusive(kiln_value const* in, kiln_value* out, void* memory, int tiles, kiln_u64 n, KILN_STATE_PARAMETER) {
    __shared__ tile_agent::storage storage;
    auto states = tile_states<kiln_value>(memory, tiles);
    kiln_u64 const begin = kiln_u64(blockIdx.x) * tile_agent::full;
    tile_agent{storage, states, kiln_functor{state}, items_of_tile(n, tile_agent::full)}.scan_inclusive(in + begin, out + begin);
}

}  // namespace kiln_device
