// SPDX-License-Identifier: Apache-2.0
// out[i] = operator(in[i]); kiln_mapped is the type of the results.
#include "kiln/prims/names.cuh"

#define CUB_VERSION 0
#define CUB_PTX_ARCH __CUDA_ARCH__
#define KILN_OPERATOR_RESULT kiln_mapped
#define KILN_OPERATOR_PARAMETERS kiln_value
#include "kiln/prims/operator.cuh"

namespace kiln_device {

constexpr int threads = 256;
constexpr int items = 4;
KILN_PRIM_INFO(threads, items);

extern "C" __global__ void __launch_bounds__(threads)
    kiln_transform(kiln_value const* in, kiln_mapped* out, kiln_u64 n, KILN_STATE_PARAMETER) {
    kiln_functor const op{state};
    kiln_u64 const first = kiln_u64{blockIdx.x} * (threads * items) + threadIdx.x;
    if (first + kiln_u64{threads} * (items - 1) < n) {
        kiln_value loaded[items];
#pragma unroll
        for (int i = 0; i < items; ++i) loaded[i] = in[first + i * threads];
#pragma unroll
        for (int i = 0; i < items; ++i) out[first + i * threads] = op(loaded[i]);
    } else {
        for (int i = 0; i < items; ++i) {
            if (first + i * threads < n) out[first + i * threads] = op(in[first + i * threads]);
        }
    }
}

}  // namespace kiln_device
