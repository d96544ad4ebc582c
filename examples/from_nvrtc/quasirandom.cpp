// SPDX-License-Identifier: Apache-2.0
// Numbers that fill the unit cube evenly: Sobol' sequences in three dimensions. The host computes the table of directions and puts it
// into a __constant__ variable of the loaded unit, by its name in the source; a second kernel bends the numbers into a bell.
#include "sample.hpp"

#include <array>
#include <cmath>
#include <cstdint>

static kiln::unit const sequences{
    .name = "sequences",
    .source = R"(
        #include <cstdint>
        namespace sobol {
        __constant__ std::uint32_t directions[3][32];

        __global__ void points(std::uint32_t* out, int n) {
            int const dimension = blockIdx.y;
            for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
                std::uint32_t bits = 0;
                std::uint32_t const gray = i ^ (i >> 1);
                for (int b = 0; b < 32; ++b)
                    if (gray >> b & 1) bits ^= directions[dimension][b];
                out[dimension * n + i] = bits;
            }
        }
        }

        __global__ void normal(std::uint32_t const* in, float* out, int n) {
            int const i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) out[i] = normcdfinvf((in[i] + 0.5f) * 0x1p-32f);
        })",
};

using table = std::array<std::array<std::uint32_t, 32>, 3>;

// Dimension 0 mirrors the index; the others follow the recurrences of x + 1 and x^2 + x + 1.
static table directions() {
    table out{};
    for (unsigned b = 0; b < 32; ++b) out[0][b] = 1U << (31 - b);
    out[1][0] = out[2][0] = 1U << 31;
    for (unsigned b = 1; b < 32; ++b) out[1][b] = out[1][b - 1] ^ (out[1][b - 1] >> 1);
    out[2][1] = 3U << 30;
    for (unsigned b = 2; b < 32; ++b) out[2][b] = out[2][b - 1] ^ out[2][b - 2] ^ (out[2][b - 2] >> 2);
    return out;
}

int main() {
    return sample::run([] {
        auto const unit = sample::load(sequences);
        auto const stream = kiln::stream::make().value();
        auto const chosen = directions();
        unit.variable("sobol::directions").value().write_sync(stream, chosen).value();

        constexpr int n = 1 << 16;
        sample::array<std::uint32_t> const points{stream, 3 * n};
        sample::array<float> const bell{stream, 3 * n};
        // Nobody named the kernels: they are found as they are called in the source.
        auto const make = unit.kernel<void(std::uint32_t*, int)>("sobol::points").value();
        auto const bend = unit.kernel<void(std::uint32_t const*, float*, int)>("normal").value();
        make(stream, {{64, 3}, {128}}, points.get(), n).value();
        bend(stream, {{3 * n / 256}, {256}}, points.get(), bell.get(), 3 * n).value();

        auto const bits = points.read_sync(stream);
        auto const normal = bell.read_sync(stream);
        std::size_t wrong = 0;
        double worst = 0;
        for (std::size_t d = 0; d < 3; ++d) {
            double mean = 0, square = 0;
            for (std::size_t i = 0; i < n; ++i) {
                std::uint32_t expected = 0;
                for (unsigned b = 0; b < 32; ++b)
                    if ((i ^ (i >> 1)) >> b & 1) expected ^= chosen[d][b];
                wrong += bits[d * n + i] != expected;
                auto const x = static_cast<double>(normal[d * n + i]);
                mean += x / n;
                square += x * x / n;
            }
            worst = std::max({worst, std::abs(mean), std::abs(square - 1)});
        }
        wrong += !(worst < 0.01);  // a standard normal distribution has mean 0 and variance 1
        return sample::verdict("quasirandom", 3 * n, wrong, worst);
    });
}
