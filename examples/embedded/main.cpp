// SPDX-License-Identifier: Apache-2.0
// A program that carries its kernels: compiled when it was built, found inside itself when it runs. It starts and launches
// with no compiler, no cache directory and no headers, also under KILN_JIT=forbid.
#include "wave_kernels.hpp"

#include <kiln/engine.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

int main() try {
    auto& engine = kiln::engine::process();
    if (!kiln::devices()) {
        auto const found = engine.artifact_sync(wave_kernels::wave(), kiln::target::parse("sm_90").value()).value();
        std::printf("no GPU here; the sm_90 artifact came from: %s\n", name_of(found.from).data());
        return found.from == kiln::provenance::bundle ? 0 : 1;
    }
    auto const unit = engine.get_sync(wave_kernels::wave()).value();
    auto const wave = unit.kernel<void(float*, int, float, float)>("wave").value();
    int const n = 1000;
    auto const stream = kiln::stream::make().value();
    auto memory = kiln::device_memory::make(n * sizeof(float)).value();
    wave(stream, {{(n + 127) / 128}, {128}}, memory.as<float>(), n, 0.01f, 0.5f).value();
    std::vector<float> out(n);
    memory.download_sync(stream, out).value();
    double worst = 0;
    for (int i = 0; i < n; ++i)
        worst = std::fmax(worst, std::fabs(out[static_cast<std::size_t>(i)] - std::sin(0.01 * i + 0.5)));
    std::printf("kernel from %s, largest error %.2g\n", name_of(unit.from()).data(), worst);
    return worst < 1e-4 ? 0 : 1;
} catch (kiln::error const& e) {
    std::fprintf(stderr, "embedded: %s\n", e.what());
    return 1;
}
