// SPDX-License-Identifier: Apache-2.0
// Counts points inside a circle: one number per block, by warp votes.
extern "C" __global__ void points_in_circle(double const* x, double const* y, int n, double cx, double cy, double r, int* counts) {
    __shared__ int total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    int const i = blockIdx.x * blockDim.x + threadIdx.x;
    bool inside = false;
    if (i < n) {
        double const dx = x[i] - cx, dy = y[i] - cy;
        inside = dx * dx + dy * dy <= r * r;
    }
    unsigned const votes = __ballot_sync(0xffffffffu, inside);
    if ((threadIdx.x & 31) == 0 && votes) atomicAdd(&total, __popc(votes));
    __syncthreads();
    if (threadIdx.x == 0) counts[blockIdx.x] = total;
}
