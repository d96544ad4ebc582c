// SPDX-License-Identifier: Apache-2.0
#include "wave.cuh"

extern "C" __global__ void wave(float* out, int n, float step, float phase) {
    int const i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = wave_at(static_cast<float>(i) * step, phase);
}
