// SPDX-License-Identifier: Apache-2.0
// Escape times of the Mandelbrot set.
extern "C" __global__ void mandelbrot(int* out, int width, int height, double left, double top, double step, int limit) {
    int const px = blockIdx.x * blockDim.x + threadIdx.x;
    int const py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;
    double const cr = left + px * step, ci = top - py * step;
    double zr = 0, zi = 0;
    int n = 0;
    while (n < limit && zr * zr + zi * zi < 4) {
        double const t = zr * zr - zi * zi + cr;
        zi = 2 * zr * zi + ci;
        zr = t;
        ++n;
    }
    out[(long long)py * width + px] = n;
}
