// SPDX-License-Identifier: Apache-2.0
// assert on the device: the GPU prints which threads failed it, and the host is told by the next call that waits. <cassert> is
// there, though NVRTC has no standard library.
#include "sample.hpp"

static kiln::unit const checked{
    .name = "checked",
    .source = R"(
        #include <cassert>
        extern "C" __global__ void checked(int least) {
            int const i = blockIdx.x * blockDim.x + threadIdx.x;
            assert(i < least);
        })",
    .kernels = {"checked"},
};

int main() {
    return sample::run([] {
        auto const unit = sample::load(checked);
        auto const launch = unit.kernel<void(int)>("checked").value();
        auto const stream = kiln::stream::make().value();
        launch(stream, {{2}, {32}}, 64).value();
        if (auto const fine = stream.wait_sync(); !fine) return sample::verdict("simple_assert: held", 1, 1);

        launch(stream, {{2}, {32}}, 60).value();
        auto const failed = stream.wait_sync();
        constexpr int assert_failed = 710;  // CUDA_ERROR_ASSERT
        bool const told = !failed && failed.error().status() == assert_failed;
        std::printf("simple_assert: four threads failed, and the host %s: %s\n", told ? "knows" : "does not know",
                    failed ? "no error" : failed.error().what());
        std::fflush(nullptr);
        // A context in which an assert failed is of no more use to anybody.
        std::_Exit(told ? 0 : 1);
    });
}
