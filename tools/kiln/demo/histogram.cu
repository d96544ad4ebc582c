// SPDX-License-Identifier: Apache-2.0
// 256 bins: one private histogram per block, added to the global one at the end.
extern "C" __global__ void histogram(unsigned char const* data, long long n, unsigned long long* bins) {
    __shared__ unsigned local[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
    __syncthreads();
    long long const stride = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) atomicAdd(&local[data[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) {
        if (local[i]) atomicAdd(&bins[i], (unsigned long long)local[i]);
    }
}
