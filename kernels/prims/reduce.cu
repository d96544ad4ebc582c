// SPDX-License-Identifier: Apache-2.0
// Reduction: every block reduces its share, then one block reduces the partial results.
#include "kiln/prims/prelude.cuh"

#include <cub/agent/agent_reduce.cuh>
#include <cub/grid/grid_even_share.cuh>

#include "kiln/prims/tuning.cuh"

#include <cub/device/dispatch/tuning/tuning_reduce.cuh>

#define KILN_OPERATOR_RESULT kiln_value
#define KILN_OPERATOR_PARAMETERS kiln_value, kiln_value
#include "kiln/prims/one_block.cuh"
#include "kiln/prims/operator.cuh"

namespace whole {
using hub = cub::detail::reduce::policy_hub<kiln_value, kiln_u32, cuda::std::plus<>>;
using policy = hub::MaxPolicy::ActivePolicy::ReducePolicy;
using last_policy = hub::MaxPolicy::ActivePolicy::SingleTilePolicy;
using agent = cub::detail::reduce::AgentReduce<policy, kiln_value const*, kiln_value*, kiln_u64, kiln_functor, kiln_value>;
// A new operator is linked before its first call, so that what is linked is short. What was compiled before need not be: this is
// 1 % faster in all.
#ifdef KILN_PRIM_LINKED
using last = one_block<last_policy::BLOCK_THREADS>;
#else
struct last {
    using whole_agent =
        cub::detail::reduce::AgentReduce<last_policy, kiln_value const*, kiln_value*, kiln_u64, kiln_functor, kiln_value>;
    using storage = whole_agent::TempStorage;
    static __device__ __forceinline__ kiln_value reduce(storage& shared, kiln_value const* in, kiln_u64 n, kiln_functor op) {
        return whole_agent(shared, in, op).ConsumeRange(kiln_u64{0}, n);
    }
};
#endif
}  // namespace whole

#define KILN_REDUCE_INFO                                                                                \
    whole::policy::BLOCK_THREADS, whole::policy::ITEMS_PER_THREAD, whole::last_policy::BLOCK_THREADS, \
        whole::last_policy::ITEMS_PER_THREAD
#ifndef KILN_PRIM_SHARED
KILN_PRIM_INFO(KILN_REDUCE_INFO);
#endif

extern "C" __global__ void __launch_bounds__(whole::policy::BLOCK_THREADS)
    kiln_reduce_partial(kiln_value const* in, kiln_value* partial, kiln_u64 n, KILN_STATE_PARAMETER) {
    __shared__ whole::agent::TempStorage storage;
    let_next_begin();
    cub::GridEvenShare<kiln_u64> share;
    share.DispatchInit(n, int(gridDim.x), whole::policy::BLOCK_THREADS * whole::policy::ITEMS_PER_THREAD);
    kiln_value const reduced = whole::agent(storage, in, kiln_functor{state}).ConsumeTiles(share);
    if (threadIdx.x == 0) partial[blockIdx.x] = reduced;
}

extern "C" __global__ void __launch_bounds__(whole::last_policy::BLOCK_THREADS, 1)
    kiln_reduce_last(kiln_value const* in, kiln_value* out, kiln_u64 n, kiln_value init, KILN_STATE_PARAMETER) {
    __shared__ whole::last::storage storage;
    wait_for_previous();
    kiln_functor const op{state};
    if (n == 0) {
        if (threadIdx.x == 0) *out = init;
        return;
    }
    kiln_value const reduced = whole::last::reduce(storage, in, n, op);
    if (threadIdx.x == 0) *out = op(init, reduced);
}
