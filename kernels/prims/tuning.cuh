// SPDX-License-Identifier: Apache-2.0
//
// Comes before cub/device/dispatch/tuning/*.cuh, which hold CUB's tuned policies and also name helpers that exist only
// in host code. These stand in for them and are never called.
#pragma once

#include <cub/util_device.cuh>

CUB_NAMESPACE_BEGIN
namespace detail {
template <class Policy>
struct PolicyWrapper : Policy {
    __device__ PolicyWrapper(Policy p) : Policy(p) {}
};
template <class Policy>
__device__ PolicyWrapper<Policy> MakePolicyWrapper(Policy p) {
    return {p};
}
}  // namespace detail
CUB_NAMESPACE_END
