// SPDX-License-Identifier: Apache-2.0
//
// What the runtime costs: an event, a decision, a warm operation against its handle, and the pool against
// cuMemAllocAsync + cuMemFreeAsync. Medians of rounds taken in turns. Usage: bench_runtime [--rounds N]
#include "base/clock.hpp"
#include "runtime/device_pool.hpp"

#include <kiln/event.hpp>
#include <kiln/prims/run.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace kiln;

constexpr int calls = 200;

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

// Nanoseconds per call of each, taken in turns so that clocks and caches treat them alike.
std::vector<double> compare(int rounds, std::vector<std::function<void()>> const& what,
                            std::function<void()> const& between) {
    std::vector<std::vector<double>> samples(what.size());
    for (int round = 0; round < rounds; ++round) {
        for (std::size_t i = 0; i < what.size(); ++i) {
            base::stopwatch const watch;
            for (int c = 0; c < calls; ++c) what[i]();
            samples[i].push_back(static_cast<double>(watch.ns()) / calls);
            between();
        }
    }
    std::vector<double> out;
    for (auto& s : samples) out.push_back(median(std::move(s)));
    return out;
}

void row(std::string_view what, double ns, std::string_view goal) {
    std::printf("| %-58.*s | %9.1f | %.*s |\n", static_cast<int>(what.size()), what.data(), ns,
                static_cast<int>(goal.size()), goal.data());
}

int on_gpu(int rounds) {
    auto const stream = stream::make().value();
    auto const idle = [&] { stream.wait_sync().value(); };
    auto const n = std::size_t{1000};
    auto in = buffer<int>::on_device(stream, n).value();
    auto out = buffer<int>::on_device(stream, n).value();
    run::exclusive_scan<int> const operation{plus};
    auto const handle = exclusive_scan<int>(plus).value();
    operation.into(stream, in, out).value();
    auto const scan = compare(rounds,
                              {[&] {
                                   handle(stream, {in.data(), n}, {out.data(), n}).value();
                               },
                               [&] { operation.into(stream, in, out).value(); }},
                              idle);
    row("exclusive_scan, 1000 items: its handle", scan[0], "");
    row("the same as an operation", scan[1], "");
    row("dispatch costs", scan[1] - scan[0], "200");

    auto* const pool = runtime::device_pool::of(0).value();
    auto const& api = pool->context()->api();
    auto const scope = cuda::current_context::enter(*pool->context()).value();
    for (std::size_t const bytes : {std::size_t{1} << 10, std::size_t{1} << 20, std::size_t{64} << 20}) {
        auto const memory = compare(rounds,
                                    {[&] {
                                         CUdeviceptr at = 0;
                                         if (api.mem_alloc_async(&at, bytes, stream.get()) != CUDA_SUCCESS)
                                             std::abort();
                                         if (api.mem_free_async(at, stream.get()) != CUDA_SUCCESS) std::abort();
                                     },
                                     [&] { pool->deallocate(stream, pool->allocate(stream, bytes).value(), bytes); }},
                                    idle);
        row(std::to_string(bytes) + " bytes: cuMemAllocAsync + cuMemFreeAsync", memory[0], "");
        row(std::to_string(bytes) + " bytes: Kiln's pool", memory[1], "no slower");
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    int const rounds = argc > 2 && std::string_view{argv[1]} == "--rounds" ? std::atoi(argv[2]) : 301;
    std::printf("| what | ns | goal |\n|---|---|---|\n");
    event_log log;
    event const e{.kind = event_kind::dispatched,
                  .unit = "exclusive_scan",
                  .target = "gpu",
                  .reason = "device-resident",
                  .detail = "auto -> gpu; i32 on device",
                  .value = 1000};
    row("an event", compare(rounds, {[&] { log.emit(e); }}, [] {})[0], "100");
    call_facts const small{.items = 10, .type = scalar::i32};
    row("a decision with its event (host data, below the crossover)",
        compare(rounds, {[&] { (void)decide(prims::reduce_operation, small).value(); }}, [] {})[0], "200");
    if (auto const gpu = usable_gpu(); !gpu) {
        std::printf("no GPU: %s\n", gpu.error().message().c_str());
        return 0;
    }
    return on_gpu(rounds);
}
