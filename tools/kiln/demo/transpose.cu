// SPDX-License-Identifier: Apache-2.0
// Transposes through a padded tile in shared memory, so that reads and writes are both coalesced.
template <class T>
__device__ void transpose_tile(T const* in, T* out, int rows, int columns) {
    __shared__ T tile[32][33];
    int const x = blockIdx.x * 32 + threadIdx.x;
    for (int i = threadIdx.y; i < 32; i += blockDim.y) {
        int const y = blockIdx.y * 32 + i;
        if (x < columns && y < rows) tile[i][threadIdx.x] = in[(long long)y * columns + x];
    }
    __syncthreads();
    int const tx = blockIdx.y * 32 + threadIdx.x;
    for (int i = threadIdx.y; i < 32; i += blockDim.y) {
        int const ty = blockIdx.x * 32 + i;
        if (tx < rows && ty < columns) out[(long long)ty * rows + tx] = tile[threadIdx.x][i];
    }
}
extern "C" __global__ void transpose_f32(float const* in, float* out, int rows, int columns) { transpose_tile(in, out, rows, columns); }
extern "C" __global__ void transpose_f64(double const* in, double* out, int rows, int columns) { transpose_tile(in, out, rows, columns); }
