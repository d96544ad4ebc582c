// SPDX-License-Identifier: Apache-2.0
//
// Host time of a launch through kiln::kernel, and through kiln_kernel_launch of kiln.h, against cuLaunchKernel itself, same kernel, same
// arguments, same stream. Batches alternate, and which goes first alternates too, so that clocks and caches favour none; each
// batch is short enough for the launch queue never to fill. Reported are medians over the rounds.
#include "cuda/library.hpp"

#include "base/clock.hpp"

#include <kiln/kernel.hpp>
#include <kiln/kiln.h>

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace {

constexpr std::string_view image = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry none() { ret; }
.visible .entry three(.param .u64 a, .param .u32 b, .param .u32 c) { ret; }
.visible .entry eight(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d,
                      .param .u32 e, .param .u32 f, .param .f32 g, .param .f64 h) { ret; }
)";

constexpr int rounds = 400;
constexpr int batch = 200;

double median(std::vector<double> values) {
    std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
    return values[values.size() / 2];
}

template <class Launch>
double ns_per_launch(kiln::stream const& stream, Launch&& launch) {
    kiln::base::stopwatch const watch;
    for (int i = 0; i < batch; ++i) launch(i);
    auto const ns = static_cast<double>(watch.ns()) / batch;
    stream.wait_sync().value();
    return ns;
}

template <class... Args>
kiln::result<void> compare(std::shared_ptr<kiln::cuda::library const> const& library, kiln::stream const& stream,
                           std::string_view name, Args... args) {
    KILN_TRY(auto const function, library->find(name));
    KILN_TRY(auto const kernel, kiln::untyped_kernel{function}.template typed<void(Args...)>());
    auto const raw_launch = library->where().api().launch_kernel;
    auto* const raw_function = function->get();
    int failures = 0;

    auto const through_kiln = [&](int) {
        if (!kernel(stream, {.grid = 1, .block = 32}, args...)) ++failures;
    };
    auto const by_hand = [&](int) {
        // Copies, as the parameters of kernel::operator() are.
        auto const go = [&](Args... copies) {
            void* pointers[sizeof...(Args) + 1] = {static_cast<void*>(&copies)..., nullptr};
            return raw_launch(raw_function, 1, 1, 1, 32, 1, 1, 0, stream.get(), pointers, nullptr);
        };
        if (go(args...) != CUDA_SUCCESS) ++failures;
    };

    kiln_kernel* in_c = nullptr;
    if (kiln_error* const why = kiln_kernel_adopt(raw_function, 0, &in_c); why != nullptr) {
        auto out = kiln::fail(kiln::errc::driver, "{}", kiln_error_message(why));
        kiln_error_free(why);
        return out;
    }
    kiln_launch shape = KILN_LAUNCH_INIT;
    shape.block[0] = 32;
    auto const through_c = [&](int) {
        auto const go = [&](Args... copies) {
            void* pointers[sizeof...(Args) + 1] = {static_cast<void*>(&copies)..., nullptr};
            return kiln_kernel_launch(in_c, stream.get(), &shape, pointers);
        };
        if (go(args...) != nullptr) ++failures;
    };

    std::vector<double> raw;
    std::vector<double> ours;
    std::vector<double> ratios;
    std::vector<double> ratios_in_c;
    for (int round = -20; round < rounds; ++round) {
        double r = 0;
        double k = 0;
        double c = 0;
        if (round % 2 == 0)
            r = ns_per_launch(stream, by_hand), k = ns_per_launch(stream, through_kiln),
            c = ns_per_launch(stream, through_c);
        else
            c = ns_per_launch(stream, through_c), k = ns_per_launch(stream, through_kiln),
            r = ns_per_launch(stream, by_hand);
        if (round < 0) continue;  // warming up
        raw.push_back(r);
        ours.push_back(k);
        ratios.push_back(k / r);
        ratios_in_c.push_back(c / r);
    }
    kiln_kernel_free(in_c);
    if (failures > 0) return kiln::fail(kiln::errc::driver, "{} launches failed", failures);
    fmt::print("{:<8} {:>10} {:>18.1f} {:>14.1f} {:>10.4f} {:>16.4f} {:>10.4f}\n", name, sizeof...(Args), median(raw),
               median(ours), median(ours) / median(raw), median(ratios), median(ratios_in_c));
    return {};
}

kiln::result<void> run() {
    KILN_TRY(auto const info, kiln::device(0));
    KILN_TRY(auto const where, kiln::cuda::context::of(0));
    KILN_TRY(auto const library, kiln::cuda::library::make(where, kiln::base::as_bytes(image)));
    KILN_TRY(auto const stream, kiln::stream::make(where));
    KILN_TRY(auto const memory, kiln::device_memory::make(1024, where));
    // As in a program that uses CUDA already: the raw launches need it.
    KILN_TRY(auto const scope, kiln::cuda::current_context::enter(*where));

    fmt::print("{}, driver for CUDA {}.{}; medians of {} rounds of {} launches\n", info.name,
               info.driver_version / 1000, info.driver_version % 1000 / 10, rounds, batch);
    fmt::print("{:<8} {:>10} {:>18} {:>14} {:>10} {:>16} {:>10}\n", "kernel", "arguments", "cuLaunchKernel ns",
               "kiln ns", "ratio", "paired ratio", "in C");
    auto* const p = memory.as<float>();
    KILN_CHECK(compare(library, stream, "none"));
    KILN_CHECK(compare(library, stream, "three", p, 1U, 2U));
    KILN_CHECK(compare(library, stream, "eight", p, p, p, p, 1, 2, 3.0F, 4.0));
    return {};
}

}  // namespace

int main() {
    auto const done = run();
    if (done) return 0;
    fmt::print(stderr, "bench_launch: {}\n", done.error().message());
    if (done.error().code() != kiln::errc::no_device) return 1;
    fmt::print(stderr, "bench_launch: skipped\n");
    return 0;
}
