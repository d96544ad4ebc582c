// SPDX-License-Identifier: Apache-2.0
// One step of the heat equation on a plane, five points.
extern "C" __global__ void heat_step(float const* in, float* out, int width, int height, float k) {
    int const x = blockIdx.x * blockDim.x + threadIdx.x;
    int const y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    long long const at = (long long)y * width + x;
    float const c = in[at];
    float const l = x > 0 ? in[at - 1] : c;
    float const r = x + 1 < width ? in[at + 1] : c;
    float const u = y > 0 ? in[at - width] : c;
    float const d = y + 1 < height ? in[at + width] : c;
    out[at] = c + k * (l + r + u + d - 4 * c);
}
