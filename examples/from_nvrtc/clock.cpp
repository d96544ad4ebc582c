// SPDX-License-Identifier: Apache-2.0
// A kernel that times itself: each block finds the least of its numbers and notes when it began and ended.
#include "sample.hpp"

#include <algorithm>

static kiln::unit const timed_minimum{
    .name = "timed_minimum",
    .source = R"(
        extern "C" __global__ void timed_minimum(float const* in, float* out, long long* times) {
            extern __shared__ float numbers[];
            int const t = threadIdx.x;
            if (t == 0) times[blockIdx.x] = clock64();
            numbers[t] = in[blockIdx.x * blockDim.x + t];
            for (int half = blockDim.x / 2; half > 0; half /= 2) {
                __syncthreads();
                if (t < half) numbers[t] = fminf(numbers[t], numbers[t + half]);
            }
            if (t == 0) out[blockIdx.x] = numbers[0];
            __syncthreads();
            if (t == 0) times[gridDim.x + blockIdx.x] = clock64();
        })",
    .kernels = {"timed_minimum"},
};

int main() {
    return sample::run([] {
        auto const unit = sample::load(timed_minimum);
        auto const launch = unit.kernel<void(float const*, float*, long long*)>("timed_minimum").value();
        constexpr unsigned blocks = 64, threads = 256;
        auto const stream = kiln::stream::make().value();
        std::vector<float> numbers(blocks * threads);
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>((i * 7919 + 13) % 100'003);
        sample::array<float> const in{stream, numbers};
        sample::array<float> const least{stream, blocks};
        sample::array<long long> const times{stream, 2 * blocks};
        launch(stream, {{blocks}, {threads}, threads * sizeof(float)}, in.get(), least.get(), times.get()).value();

        auto const found = least.read_sync(stream);
        auto const when = times.read_sync(stream);
        std::size_t wrong = 0;
        double cycles = 0;
        for (unsigned b = 0; b < blocks; ++b) {
            auto const* const first = numbers.data() + b * threads;
            wrong += found[b] != *std::min_element(first, first + threads) || when[blocks + b] <= when[b];
            cycles += static_cast<double>(when[blocks + b] - when[b]) / blocks;
        }
        std::printf("clock: %.0f cycles per block\n", cycles);
        return sample::verdict("clock", blocks, wrong);
    });
}
