// SPDX-License-Identifier: Apache-2.0
// Blocks that wait for each other: heat spreads along a rod for many steps in one launch, with grid.sync() between two steps.
#include "sample.hpp"

#include <cmath>

static kiln::unit const rod{
    .name = "rod",
    .source = R"(
        #include <cooperative_groups.h>
        extern "C" __global__ void spread(float* now, float* next, int n, int steps) {
            auto const grid = cooperative_groups::this_grid();
            for (int s = 0; s < steps; ++s) {
                for (int i = grid.thread_rank(); i < n; i += grid.size()) {
                    float const left = now[i == 0 ? 0 : i - 1], right = now[i == n - 1 ? n - 1 : i + 1];
                    next[i] = __fadd_rn(now[i], __fmul_rn(0.25f, __fadd_rn(__fsub_rn(left, now[i]), __fsub_rn(right, now[i]))));
                }
                grid.sync();
                float* const old = now;
                now = next;
                next = old;
            }
        })",
    .kernels = {"spread"},
};

int main() {
    return sample::run([] {
        constexpr int n = 20'000, steps = 200;
        constexpr unsigned threads = 256;
        auto const unit = sample::load(rod);
        auto const launch = unit.kernel<void(float*, float*, int, int)>("spread").value();
        auto const at_once = static_cast<unsigned>(launch.blocks_per_multiprocessor(threads).value() *
                                                   kiln::device(0).value().multiprocessors);
        std::vector<float> now(n), next(n);
        for (std::size_t i = 0; i < n; ++i) now[i] = static_cast<float>(i % 1000);
        auto const stream = kiln::stream::make().value();
        sample::array<float> const a{stream, now}, b{stream, now};
        launch(stream, {.grid = at_once, .block = threads, .kind = kiln::grid_kind::cooperative}, a.get(), b.get(), n,
               steps)
            .value();
        // One block more than fit could never meet: the launch is refused, with the number that do.
        auto const too_many =
            launch(stream, {.grid = at_once + 1, .block = threads, .kind = kiln::grid_kind::cooperative}, a.get(),
                   b.get(), n, steps);
        std::printf("cooperative: %u blocks at once; one more: %s\n", at_once,
                    too_many ? "taken?" : too_many.error().what());

        auto const found = a.read_sync(stream);  // an even number of steps ends where it began
        for (int s = 0; s < steps; ++s) {
            for (std::size_t i = 0; i < n; ++i) {
                float const left = now[i == 0 ? 0 : i - 1], right = now[i == n - 1 ? n - 1 : i + 1];
                float const change = (left - now[i]) + (right - now[i]);
                float const quarter = 0.25f * change;
                next[i] = now[i] + quarter;
            }
            std::swap(now, next);
        }
        std::size_t wrong = too_many.has_value();
        double worst = 0;
        for (std::size_t i = 0; i < n; ++i) {
            auto const error = std::abs(static_cast<double>(found[i]) - static_cast<double>(now[i]));
            worst = std::max(worst, error);
            wrong += error > 1e-3;
        }
        return sample::verdict("cooperative", n, wrong, worst);
    });
}
