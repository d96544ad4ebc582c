// SPDX-License-Identifier: Apache-2.0
// A program that says early what it will need, does something else meanwhile, and then waits for nothing.
//
//     ./example_warmup                                         the first run compiles, in the background
//     ./example_warmup                                         the second finds everything
//     KILN_PROFILE=app.profile ./example_warmup                on a GPU: what was loaded is learned, and brought in at the next start
#include <kiln/catalogue.hpp>
#include <kiln/demand.hpp>
#include <kiln/plan.hpp>
#include <kiln/status.hpp>

#include <chrono>
#include <cstdio>

namespace {

using namespace std::chrono_literals;

kiln::unit const scale{
    .name = "scale",
    .source = R"(extern "C" __global__ void scale(int n, float a, float* x) {
                     int i = blockIdx.x * blockDim.x + threadIdx.x;
                     if (i < n) x[i] *= a;
                 })",
    .kernels = {"scale"},
};

// Beside the code that uses them. Costs nothing: no thread, no file, no compiler.
KILN_REQUIRES(histogram, scale, "exclusive_scan_i32", "select_i32");

}  // namespace

int main() try {
    // For this machine's GPU; where there is none, artifacts for an architecture that is named.
    kiln::demand_options how;
    if (!kiln::devices()) how.targets = {kiln::target::parse("sm_90").value()};

    auto const began = std::chrono::steady_clock::now();
    histogram_requires.demand(how);  // returns at once
    auto const us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count();
    std::printf("demand() took %.0f us; reading files, parsing arguments ...\n", us);

    kiln::plan const pipeline{"histogram", histogram_requires.wants(), how};
    auto report = pipeline.ensure_warm(20ms);
    std::printf("after 20 ms:  %s\n", report.text().c_str());
    report = pipeline.ensure_warm(120s);
    std::printf("after %.0f ms: %s\n", report.waited_ms, report.text().c_str());

    for (auto const& u : kiln::status().units)
        std::printf("  %-28s %-8s from %-8s ready after %6.1f ms, compile time %6.1f ms\n", u.name.c_str(),
                    name_of(u.state).data(), u.from ? name_of(*u.from).data() : "-", u.ready_ms, u.compile_ms);
    return report ? 0 : 1;
} catch (kiln::error const& e) {
    std::fprintf(stderr, "warmup: %s\n%s", e.what(), e.log().c_str());
    return 1;
}
