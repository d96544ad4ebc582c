// SPDX-License-Identifier: Apache-2.0
// Reduction: every block reduces its share, then one block reduces the partial results.
#include "kiln/prims/prelude.cuh"

#include <cub/agent/agent_reduce.cuh>

#include "kiln/prims/tuning.cuh"

#include <cub/device/dispatch/tuning/tuning_reduce.cuh>

#define KILN_OPERATOR_RESULT kiln_value
#define KILN_OPERATOR_PARAMETERS kiln_value, kiln_value
#include "kiln/prims/block_reduction.cuh"
#include "kiln/prims/operator.cuh"

namespace kiln_device {

namespace whole {
using hub = cub::detail::reduce::policy_hub<kiln_value, kiln_u32, cuda::std::plus<>>;
using policy = hub::MaxPolicy::ActivePolicy::ReducePolicy;
using last_policy = hub::MaxPolicy::ActivePolicy::SingleTilePolicy;
using share = block_reduction<policy::BLOCK_THREADS, policy::ITEMS_PER_THREAD, policy::LOAD_MODIFIER>;
// What it reads is written while it begins, so that not even the texture cache may have seen it.
using last = block_reduction<last_policy::BLOCK_THREADS, last_policy::ITEMS_PER_THREAD, cub::LOAD_DEFAULT>;
}  // namespace whole

#define KILN_REDUCE_INFO                                                                                \
    whole::policy::BLOCK_THREADS, whole::policy::ITEMS_PER_THREAD, whole::last_policy::BLOCK_THREADS, \
        whole::last_policy::ITEMS_PER_THREAD
#ifndef KILN_PRIM_SHARED
KILN_PRIM_INFO(KILN_REDUCE_INFO);
#endif

extern "C" __global__ void __launch_bounds__(whole::policy::BLOCK_THREADS)
    kiln_reduce_partial(kiln_value const* in, kiln_value* partial, kiln_u64 n, KILN_STATE_PARAMETER) {
    __shared__ whole::share::storage storage;
    let_next_begin();
    constexpr kiln_u64 tile = whole::share::tile;
    kiln_value const reduced = whole::share::reduce(storage, in, blockIdx.x * tile, n, gridDim.x * tile, kiln_functor{state});
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

}  // namespace kiln_device
