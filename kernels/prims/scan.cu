// SPDX-License-Identifier: Apache-2.0
// Exclusive and inclusive scan: one pass over the data, tiles that look back at their predecessors.
#include "kiln/prims/prelude.cuh"

#include <cub/agent/agent_scan.cuh>

#include "kiln/prims/tuning.cuh"

#include <cub/device/dispatch/tuning/tuning_scan.cuh>

#define KILN_OPERATOR_RESULT kiln_value
#define KILN_OPERATOR_PARAMETERS kiln_value, kiln_value
#include "kiln/prims/operator.cuh"

// Tuned as for plus<>, whatever the operator is: CUB itself drops to its untuned default for an unknown one.
using hub = cub::detail::scan::policy_hub<kiln_value, kiln_value, kiln_value, kiln_u32, cuda::std::plus<>>;
using policy = hub::MaxPolicy::ActivePolicy::ScanPolicyT;
using exclusive_agent =
    cub::detail::scan::AgentScan<policy, kiln_value const*, kiln_value*, kiln_functor, kiln_value, kiln_u64, kiln_value>;
using inclusive_agent =
    cub::detail::scan::AgentScan<policy, kiln_value const*, kiln_value*, kiln_functor, cub::NullType, kiln_u64, kiln_value>;
using tile_state = cub::ScanTileState<kiln_value>;

KILN_PRIM_INFO(policy::BLOCK_THREADS, policy::ITEMS_PER_THREAD, int(tile_state::description_bytes_per_tile),
               int(tile_state::payload_bytes_per_tile), int(tile_state::TILE_STATUS_PADDING));

static __device__ __forceinline__ tile_state state_at(void* memory, int tiles) {
    tile_state states;
    states.Init(tiles, memory, ~size_t{0});
    return states;
}

extern "C" __global__ void __launch_bounds__(128) kiln_scan_init(void* memory, int tiles) {
    let_next_begin();
    state_at(memory, tiles).InitializeStatus(tiles);
}

extern "C" __global__ void __launch_bounds__(policy::BLOCK_THREADS)
    kiln_scan_exclusive(kiln_value const* in, kiln_value* out, void* memory, int tiles, kiln_u64 n, kiln_value init,
                        KILN_STATE_PARAMETER) {
    __shared__ exclusive_agent::TempStorage storage;
    auto states = state_at(memory, tiles);
    wait_for_previous();
    exclusive_agent(storage, in, out, kiln_functor{state}, init).ConsumeRange(n, states, 0);
}

extern "C" __global__ void __launch_bounds__(policy::BLOCK_THREADS)
    kiln_scan_inclusive(kiln_value const* in, kiln_value* out, void* memory, int tiles, kiln_u64 n, KILN_STATE_PARAMETER) {
    __shared__ inclusive_agent::TempStorage storage;
    auto states = state_at(memory, tiles);
    wait_for_previous();
    inclusive_agent(storage, in, out, kiln_functor{state}, cub::NullType{}).ConsumeRange(n, states, 0);
}
