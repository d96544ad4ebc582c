// SPDX-License-Identifier: Apache-2.0
// y = a x + y
extern "C" __global__ void saxpy(int n, float a, float const* x, float* y) {
    int const i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
