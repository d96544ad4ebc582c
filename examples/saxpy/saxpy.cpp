// SPDX-License-Identifier: Apache-2.0
// The first program: a kernel as text, found or compiled, loaded, launched through a handle.
#include <kiln/engine.hpp>

#include <cstdio>
#include <vector>

static kiln::unit const saxpy{
    .name = "saxpy",
    .source = R"(
        extern "C" __global__ void saxpy(int n, float a, float const* x, float* y) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) y[i] = a * x[i] + y[i];
        })",
    .kernels = {"saxpy"},
};

int main() try {
    auto& engine = kiln::engine::process();
    if (!kiln::devices()) {
        // No GPU: artifacts can still be made, for any architecture.
        auto const made = engine.artifact_sync(saxpy, kiln::target::parse("sm_90").value()).value();
        std::printf("no GPU here; sm_90 artifact of %zu bytes (%s, %.1f ms)\n", made.what->image.size(),
                    name_of(made.from).data(), made.ms);
        return 0;
    }
    auto const unit = engine.get_sync(saxpy).value();
    auto const launch = unit.kernel<void(int, float, float const*, float*)>("saxpy").value();

    int const n = 1 << 20;
    std::vector<float> x(n, 1.0f), y(n, 2.0f);
    auto const stream = kiln::stream::make().value();
    auto dx = kiln::device_memory::make(n * sizeof(float)).value();
    auto dy = kiln::device_memory::make(n * sizeof(float)).value();
    dx.upload_sync(stream, x).value();
    dy.upload_sync(stream, y).value();
    launch(stream, {{(n + 255) / 256}, {256}}, n, 3.0f, dx.as<float>(), dy.as<float>()).value();
    dy.download_sync(stream, y).value();
    std::printf("y[0] = %g (expected 5), kernel from %s\n", static_cast<double>(y[0]), name_of(unit.from()).data());
    return y[0] == 5.0f && y[n - 1] == 5.0f ? 0 : 1;
} catch (kiln::error const& e) {
    std::fprintf(stderr, "saxpy: %s\n%s", e.what(), e.log().c_str());
    return 1;
}
