// SPDX-License-Identifier: Apache-2.0
//
// Compaction: keeps the items, or with KILN_SELECT_INDICES the indices 0, 1, ..., whose mask byte is not zero or, with
// KILN_SELECT_IF, for which the operator says so. At most 2^31 - 1 items a launch; the host strings launches together.
#include "kiln/prims/prelude.cuh"

#include <cub/agent/agent_select_if.cuh>

#include "kiln/prims/tuning.cuh"

#include <cub/device/dispatch/tuning/tuning_select_if.cuh>

#ifdef KILN_SELECT_IF
#define KILN_OPERATOR_RESULT bool
#define KILN_OPERATOR_PARAMETERS kiln_value
#include "kiln/prims/operator.cuh"
#else
#include "kiln/prims/support.cuh"
#endif

#ifdef KILN_SELECT_INDICES
struct counting {
    using value_type = kiln_value;
    using difference_type = kiln_i64;
    using reference = kiln_value;
    using pointer = kiln_value const*;
    using iterator_category = cuda::std::random_access_iterator_tag;

    kiln_value first;
    __device__ __forceinline__ kiln_value operator[](kiln_i64 i) const { return first + kiln_value(i); }
    __device__ __forceinline__ kiln_value operator*() const { return first; }
    __device__ __forceinline__ counting operator+(kiln_i64 i) const { return {kiln_value(first + kiln_value(i))}; }
};
using input = counting;
#else
using input = kiln_value const*;
#endif

#ifdef KILN_SELECT_IF
using condition = kiln_functor;
using flags = cub::NullType*;
using flag = cub::NullType;
#else
using condition = cub::NullType;
using flags = kiln_u8 const*;
using flag = kiln_u8;
#endif

// Which part of the whole input a launch is given.
struct part {
    kiln_u64 before;              // items of earlier parts
    kiln_u64 const* kept_before;  // how many of those were kept; null for the first part

    __device__ __forceinline__ kiln_u64 input_offset() const { return before; }
    __device__ __forceinline__ bool is_first_partition() const { return before == 0; }
    __device__ __forceinline__ kiln_u64 num_previously_selected() const { return kept_before != nullptr ? *kept_before : 0; }
    __device__ __forceinline__ kiln_u64 num_previously_rejected() const { return 0; }
    template <class Offset>
    __device__ __forceinline__ kiln_u64 num_total_items(Offset n) const {
        return n;
    }
    template <class Iterator, class Offset>
    __device__ __forceinline__ void update_num_selected(Iterator to, Offset n) const {
        *to = num_previously_selected() + kiln_u64(n);
    }
};

using hub = cub::detail::select::policy_hub<kiln_value, flag, kiln_i32, false, cub::SelectImpl::Select>;
using policy = hub::MaxPolicy::ActivePolicy::SelectIfPolicyT;
using agent = cub::detail::select::AgentSelectIf<policy, input, flags, kiln_value*, condition, cub::NullType, kiln_i32, part,
                                                 cub::SelectImpl::Select>;
using tile_state = cub::ScanTileState<kiln_i32>;
static_assert(sizeof(agent::TempStorage) <= 48 * 1024, "items too large for shared memory");

KILN_PRIM_INFO(policy::BLOCK_THREADS, policy::ITEMS_PER_THREAD, int(tile_state::description_bytes_per_tile),
               int(tile_state::payload_bytes_per_tile), int(tile_state::TILE_STATUS_PADDING));

extern "C" __global__ void __launch_bounds__(128) kiln_select_init(void* memory, int tiles) {
    let_next_begin();
    tile_state states;
    states.Init(tiles, memory, ~size_t{0});
    states.InitializeStatus(tiles);
}

// `where` is read in place: a copy of it costs NVRTC 24 registers, and with them a third of the blocks that fit.
// `kept` may be `where.kept_before` of the next launch, never of this one.
extern "C" __global__ void __launch_bounds__(policy::BLOCK_THREADS)
    kiln_select(kiln_value const* in, kiln_u8 const* mask, kiln_value* out, kiln_u64* kept, void* memory, int tiles, kiln_i32 n,
                const __grid_constant__ part where
#ifdef KILN_SELECT_IF
                ,
                KILN_STATE_PARAMETER
#endif
    ) {
    __shared__ agent::TempStorage storage;
    tile_state states;
    states.Init(tiles, memory, ~size_t{0});
    wait_for_previous();
#ifdef KILN_SELECT_INDICES
    input const items{0};
#else
    input const items = in;
#endif
#ifdef KILN_SELECT_IF
    agent(storage, items, nullptr, out, kiln_functor{state}, cub::NullType{}, n, where).ConsumeRange(tiles, states, kept);
#else
    agent(storage, items, mask, out, cub::NullType{}, cub::NullType{}, n, where).ConsumeRange(tiles, states, kept);
#endif
}
