// SPDX-License-Identifier: Apache-2.0
// Unique by key: the first item of every run of equal keys, with its value.
#include "kiln/prims/prelude.cuh"

#include <cub/agent/agent_unique_by_key.cuh>

#include "kiln/prims/tuning.cuh"

#include <cub/device/dispatch/tuning/tuning_unique_by_key.cuh>

#define KILN_OPERATOR_RESULT bool
#define KILN_OPERATOR_PARAMETERS kiln_value, kiln_value
#include "kiln/prims/operator.cuh"

using policy =
    cub::detail::unique_by_key::policy_hub<kiln_value, kiln_mapped>::MaxPolicy::ActivePolicy::UniqueByKeyPolicyT;
using agent = cub::detail::unique_by_key::AgentUniqueByKey<policy, kiln_value const*, kiln_mapped const*, kiln_value*,
                                                           kiln_mapped*, kiln_functor, kiln_offset>;
using tile_state = cub::ScanTileState<kiln_offset>;
static_assert(sizeof(agent::TempStorage) <= 48 * 1024, "items too large for shared memory");

KILN_PRIM_INFO(policy::BLOCK_THREADS, policy::ITEMS_PER_THREAD, int(tile_state::description_bytes_per_tile),
               int(tile_state::payload_bytes_per_tile), int(tile_state::TILE_STATUS_PADDING), int(sizeof(kiln_offset)));

extern "C" __global__ void __launch_bounds__(128) kiln_unique_init(void* memory, int tiles) {
    let_next_begin();
    tile_state states;
    states.Init(tiles, memory, ~size_t{0});
    states.InitializeStatus(tiles);
}

extern "C" __global__ void __launch_bounds__(policy::BLOCK_THREADS)
    kiln_unique(kiln_value const* keys_in, kiln_mapped const* values_in, kiln_value* keys_out, kiln_mapped* values_out,
                kiln_u64* count, void* memory, int tiles, kiln_offset n, KILN_STATE_PARAMETER) {
    __shared__ agent::TempStorage storage;
    tile_state states;
    states.Init(tiles, memory, ~size_t{0});
    wait_for_previous();
    agent(storage, keys_in, values_in, keys_out, values_out, kiln_functor{state}, n).ConsumeRange(tiles, states, count);
}
