// SPDX-License-Identifier: Apache-2.0
// European calls priced by binomial trees, one block per option, against the closed formula. The tree's depth is a macro, so it is
// part of the key; the options' data go by value in a struct that both sides know.
#include "sample.hpp"

#include <cmath>

struct call_option {
    float price, strike, years;
};

static kiln::unit const trees{
    .name = "binomial_trees",
    .source = R"(
        struct call_option { float price, strike, years; };
        struct market { float rate, volatility; };

        extern "C" __global__ void price(call_option const* options, float* out, market m) {
            __shared__ float value[STEPS + 1];
            call_option const o = options[blockIdx.x];
            float const dt = o.years / STEPS;
            float const up = m.volatility * sqrtf(dt);
            float const growth = expf(m.rate * dt), discount = expf(-m.rate * dt);
            float const p = (growth - expf(-up)) / (expf(up) - expf(-up));
            float const with_p = discount * p, without = discount * (1 - p);
            for (int i = threadIdx.x; i <= STEPS; i += blockDim.x)
                value[i] = fmaxf(o.price * expf(up * (2 * i - STEPS)) - o.strike, 0.0f);
            // From the leaves to the root; a level is read before the next is written.
            for (int level = STEPS; level > 0; --level) {
                for (int from = 0; from < level; from += blockDim.x) {
                    int const i = from + threadIdx.x;
                    __syncthreads();
                    float const next = i < level ? with_p * value[i + 1] + without * value[i] : 0;
                    __syncthreads();
                    if (i < level) value[i] = next;
                }
            }
            if (threadIdx.x == 0) out[blockIdx.x] = value[0];
        })",
    .kernels = {"price"},
    .options = {"-DSTEPS=1024"},
};

struct market {
    float rate, volatility;
};

static double closed_formula(call_option const& o, market const& m) {
    auto const normal = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
    double const s = static_cast<double>(o.price), x = static_cast<double>(o.strike), t = static_cast<double>(o.years);
    double const r = static_cast<double>(m.rate), v = static_cast<double>(m.volatility);
    double const d = (std::log(s / x) + (r + 0.5 * v * v) * t) / (v * std::sqrt(t));
    return s * normal(d) - x * std::exp(-r * t) * normal(d - v * std::sqrt(t));
}

int main() {
    return sample::run([] {
        auto const unit = sample::load(trees);
        auto const launch = unit.kernel<void(call_option const*, float*, market)>("price").value();
        market const m{0.06f, 0.10f};
        std::vector<call_option> options(512);
        for (std::size_t i = 0; i < options.size(); ++i) {
            auto const x = static_cast<float>(i);
            options[i] = {5 + 25 * std::fmod(x * 0.618f, 1.0f), 1 + 99 * std::fmod(x * 0.414f, 1.0f),
                          0.25f + 9.75f * std::fmod(x * 0.732f, 1.0f)};
        }
        auto const stream = kiln::stream::make().value();
        sample::array<call_option> const in{stream, options};
        sample::array<float> const out{stream, options.size()};
        launch(stream, {{static_cast<unsigned>(options.size())}, {256}}, in.get(), out.get(), m).value();
        auto const prices = out.read_sync(stream);
        std::size_t wrong = 0;
        double worst = 0;
        for (std::size_t i = 0; i < options.size(); ++i) {
            auto const error = std::abs(static_cast<double>(prices[i]) - closed_formula(options[i], m));
            worst = std::max(worst, error);
            // A tree of this depth is that near to its limit, and no nearer.
            wrong += !(error < 0.02);
        }
        return sample::verdict("binomial_options", options.size(), wrong, worst);
    });
}
