// SPDX-License-Identifier: Apache-2.0
// PTX inside of CUDA C++: each thread asks for its lane, and a byte permutation that C++ has no word for.
#include "sample.hpp"

static kiln::unit const lanes{
    .name = "lanes",
    .source = R"(
        extern "C" __global__ void lanes(unsigned* lane, unsigned* swapped, int n) {
            unsigned const i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i >= n) return;
            unsigned own;
            asm("mov.u32 %0, %%laneid;" : "=r"(own));
            lane[i] = own;
            unsigned reversed;
            asm("prmt.b32 %0, %1, 0, 0x0123;" : "=r"(reversed) : "r"(i));
            swapped[i] = reversed;
        })",
    .kernels = {"lanes"},
};

int main() {
    return sample::run([] {
        auto const unit = sample::load(lanes);
        auto const launch = unit.kernel<void(unsigned*, unsigned*, int)>("lanes").value();
        constexpr int n = 100'000;
        auto const stream = kiln::stream::make().value();
        sample::array<unsigned> const lane{stream, n}, swapped{stream, n};
        launch(stream, {{(n + 255) / 256}, {256}}, lane.get(), swapped.get(), n).value();
        auto const l = lane.read_sync(stream), s = swapped.read_sync(stream);
        std::size_t wrong = 0;
        for (unsigned i = 0; i < n; ++i) wrong += l[i] != i % 32 || s[i] != __builtin_bswap32(i);
        return sample::verdict("inline_ptx", n, wrong);
    });
}
