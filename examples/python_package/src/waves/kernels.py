# SPDX-License-Identifier: Apache-2.0
"""What this package needs compiled."""

import kiln

step = kiln.Unit("waves.step", r'''
extern "C" __global__ void step(int n, float c, const float* before, const float* now, float* next) {
    int const i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i > 0 && i < n - 1) next[i] = 2 * now[i] - before[i] + c * c * (now[i - 1] - 2 * now[i] + now[i + 1]);
}''')

needs = kiln.requires("waves", [step])
