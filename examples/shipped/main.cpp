// SPDX-License-Identifier: Apache-2.0
// A program whose kernels are shipped in a bundle beside it:
//
//     kiln build heat.cu --arch sm_80,sm_90,sm_100 -o example_shipped.kiln      # anywhere, no GPU needed
//     KILN_JIT=forbid ./example_shipped                                         # finds example_shipped.kiln beside itself
#include "heat_kernels.hpp"

#include <kiln/engine.hpp>

#include <cmath>
#include <cstdio>
#include <numeric>
#include <vector>

namespace {

std::vector<float> on_the_cpu(std::vector<float> const& in, float k) {
    auto const n = in.size();
    std::vector<float> out(n);
    for (std::size_t i = 0; i < n; ++i) out[i] = in[i] + k * (in[(i + n - 1) % n] + in[(i + 1) % n] - 2 * in[i]);
    return out;
}

}  // namespace

int main() try {
    auto& engine = kiln::engine::process();
    auto const devices = kiln::devices();
    if (!devices) {
        auto const found = engine.artifact_sync(heat_kernels::heat(), kiln::target::parse("sm_90").value()).value();
        std::printf("no GPU here; the sm_90 artifact came from: %s\n", name_of(found.from).data());
        return 0;
    }
    auto const unit = engine.get_sync(heat_kernels::heat()).value();
    auto const heat = unit.kernel<void(float const*, float*, int, float)>("heat").value();
    int const n = 10'000;
    std::vector<float> in(n), out(n);
    std::iota(in.begin(), in.end(), 0.0f);
    auto const stream = kiln::stream::make().value();
    auto from = kiln::device_memory::make(n * sizeof(float)).value();
    auto to = kiln::device_memory::make(n * sizeof(float)).value();
    from.upload_sync(stream, in).value();
    heat(stream, {{(n + 255) / 256}, {256}}, from.as<float>(), to.as<float>(), n, 0.25f).value();
    to.download_sync(stream, out).value();
    double worst = 0;
    auto const expected = on_the_cpu(in, 0.25f);
    for (std::size_t i = 0; i < out.size(); ++i) worst = std::fmax(worst, std::fabs(out[i] - expected[i]));
    std::printf("on %s, kernel from %s (%s), largest error %g\n", devices->front().name.c_str(),
                name_of(unit.from()).data(), unit.target().arch.name().c_str(), worst);
    return worst < 1e-2 ? 0 : 1;
} catch (kiln::error const& e) {
    std::fprintf(stderr, "shipped: %s\n", e.what());
    return 1;
}
