// SPDX-License-Identifier: Apache-2.0
// One step of the heat equation on a ring.
extern "C" __global__ void heat(float const* in, float* out, int n, float k) {
    int const i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float const left = in[i == 0 ? n - 1 : i - 1];
    float const right = in[i == n - 1 ? 0 : i + 1];
    out[i] = in[i] + k * (left + right - 2 * in[i]);
}
