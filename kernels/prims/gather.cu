// SPDX-License-Identifier: Apache-2.0
// out[i] = in[index[i]]; kiln_mapped is the type of the indices.
#include "kiln/prims/names.cuh"

#define CUB_VERSION 0
#define CUB_PTX_ARCH __CUDA_ARCH__
#include "kiln/prims/support.cuh"

namespace kiln_device {

constexpr int threads = 256;
constexpr int items = 4;
KILN_PRIM_INFO(threads, items);

extern "C" __global__ void __launch_bounds__(threads)
    kiln_gather(kiln_value const* in, kiln_mapped const* index, kiln_value* out, kiln_u64 n) {
    kiln_u64 const first = kiln_u64{blockIdx.x} * (threads * items) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < items; ++i) {
        kiln_u64 const at = first + kiln_u64(i) * threads;
        if (at < n) out[at] = in[index[at]];
    }
}

}  // namespace kiln_device
