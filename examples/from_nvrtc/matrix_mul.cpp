// SPDX-License-Identifier: Apache-2.0
// C = A * B by tiles in shared memory: a template whose tile is chosen here, and named as the compiler is to see it.
#include "sample.hpp"

#include <cmath>

static kiln::unit const product{
    .name = "product",
    .source = R"(
        template <int Tile>
        __global__ void product(float const* a, float const* b, float* c, int inner, int columns) {
            __shared__ float rows_of_a[Tile][Tile];
            __shared__ float columns_of_b[Tile][Tile];
            int const x = threadIdx.x, y = threadIdx.y;
            int const row = blockIdx.y * Tile + y, column = blockIdx.x * Tile + x;
            float sum = 0;
            for (int from = 0; from < inner; from += Tile) {
                rows_of_a[y][x] = a[row * inner + from + x];
                columns_of_b[y][x] = b[(from + y) * columns + column];
                __syncthreads();
                #pragma unroll
                for (int k = 0; k < Tile; ++k) sum += rows_of_a[y][k] * columns_of_b[k][x];
                __syncthreads();
            }
            c[row * columns + column] = sum;
        })",
    .kernels = {"product<16>", "product<32>"},
};

int main() {
    return sample::run([] {
        constexpr int rows = 160, inner = 320, columns = 192;
        auto const unit = sample::load(product);
        auto const stream = kiln::stream::make().value();
        std::vector<float> a(rows * inner), b(inner * columns);
        for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 17) * 0.25f;
        for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 23) * 0.5f - 4;
        sample::array<float> const left{stream, a}, right{stream, b};
        std::size_t wrong = 0;
        double worst = 0;
        for (unsigned const tile : {16u, 32u}) {
            auto const name = "product<" + std::to_string(tile) + ">";
            auto const launch = unit.kernel<void(float const*, float const*, float*, int, int)>(name).value();
            sample::array<float> const out{stream, rows * columns};
            launch(stream, {{columns / tile, rows / tile}, {tile, tile}}, left.get(), right.get(), out.get(), inner,
                   columns)
                .value();
            auto const c = out.read_sync(stream);
            for (int r = 0; r < rows; ++r) {
                for (int q = 0; q < columns; ++q) {
                    double sum = 0;
                    for (int k = 0; k < inner; ++k)
                        sum += static_cast<double>(a[static_cast<std::size_t>(r * inner + k)]) *
                               static_cast<double>(b[static_cast<std::size_t>(k * columns + q)]);
                    auto const error =
                        std::abs(sum - static_cast<double>(c[static_cast<std::size_t>(r * columns + q)]));
                    worst = std::max(worst, error);
                    wrong += error > 1e-3 * (1 + std::abs(sum));
                }
            }
        }
        return sample::verdict("matrix_mul", 2 * rows * columns, wrong, worst);
    });
}
