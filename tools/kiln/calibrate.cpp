// SPDX-License-Identifier: Apache-2.0
// Where the GPU overtakes the CPU, operation by operation, with host data: moved, run and waited for.
#include "base/clock.hpp"
#include "base/config.hpp"
#include "command.hpp"
#include "plot/plot.hpp"
#include "progress.hpp"
#include "runtime/calibration.hpp"
#include "runtime/execution.hpp"
#include "store/store.hpp"

#include <kiln/prims/run.hpp>
#include <kiln/prims/sum.hpp>

#include <algorithm>
#include <random>

namespace kiln::cli {

namespace {

constexpr int least_power = 8, most_power = 22;

struct arguments {
    std::vector<std::string> only;
    std::string plot;
    bool dry_run = false;
    bool json = false;
};

// One operation on n host elements; the result is waited for wherever it was made.
struct subject {
    operation const* what;
    std::function<result<void>(stream_ref on, std::size_t n)> run;
};

template <class T>
result<void> settled(result<buffer<T>> made, stream_ref on) {
    KILN_TRY(auto const out, std::move(made));
    if (!on_device(out.where())) return {};
    KILN_TRY(auto waits, fence::make(on, out.device()));
    if (!out.empty()) KILN_CHECK(waits.add(out.data()));
    return waits.wait_sync();
}

class bench_data {
public:
    explicit bench_data(std::size_t most) {
        std::minstd_rand random{11};
        keys = buffer<int>::on_host(most);
        floats = buffer<float>::on_host(most);
        sorted = buffer<int>::on_host(most);
        mask = buffer<std::uint8_t>::on_host(most);
        offsets = buffer<std::int32_t>::on_host(most / 16 + 1);
        for (std::size_t i = 0; i < most; ++i) {
            keys.data()[i] = static_cast<int>(random());
            floats.data()[i] = static_cast<float>(i % 1000);
            sorted.data()[i] = static_cast<int>(i / 4);
            mask.data()[i] = static_cast<std::uint8_t>(random() % 2);
        }
        for (std::size_t i = 0; i < offsets.size(); ++i) offsets.data()[i] = static_cast<std::int32_t>(i * 16);
    }
    buffer<int> keys, sorted;
    buffer<float> floats;
    buffer<std::uint8_t> mask;
    buffer<std::int32_t> offsets;
};

std::vector<subject> subjects(std::shared_ptr<bench_data> const& d) {
    auto const exclusive = std::make_shared<run::exclusive_scan<int>>(plus);
    auto const inclusive = std::make_shared<run::inclusive_scan<int>>(plus);
    auto const reduce = std::make_shared<run::reduce<int>>(plus);
    auto const sum = std::make_shared<run::sum<float>>();
    auto const segmented = std::make_shared<run::segmented_reduce<int>>(plus);
    auto const select = std::make_shared<run::select<int>>();
    auto const lower = std::make_shared<run::lower_bound<int>>();
    auto const upper = std::make_shared<run::upper_bound<int>>();
    auto const radix = std::make_shared<run::radix_sort<int>>();
    auto const merge = std::make_shared<run::merge_sort<int>>();
    auto const unique = std::make_shared<run::unique_by_key<int, int>>();
    return {
        {&prims::exclusive_scan_operation,
         [=](stream_ref on, std::size_t n) { return settled((*exclusive)(on, d->keys.first(n)), on); }},
        {&prims::inclusive_scan_operation,
         [=](stream_ref on, std::size_t n) { return settled((*inclusive)(on, d->keys.first(n)), on); }},
        {&prims::reduce_operation,
         [=](stream_ref on, std::size_t n) { return settled((*reduce)(on, d->keys.first(n)), on); }},
        {&prims::sum_operation,
         [=](stream_ref on, std::size_t n) { return settled((*sum)(on, d->floats.first(n)), on); }},
        {&prims::segmented_reduce_operation,
         [=](stream_ref on, std::size_t n) -> result<void> {
             KILN_TRY(auto const out,
                      (*segmented)(on, column<int>::lists(d->keys.first(n), d->offsets.first(n / 16 + 1))));
             return settled(result<buffer<int>>{out.values()}, on);
         }},
        {&prims::select_operation,
         [=](stream_ref on, std::size_t n) { return settled((*select)(on, d->keys.first(n), d->mask.first(n)), on); }},
        {&prims::lower_bound_operation,
         [=](stream_ref on, std::size_t n) { return settled((*lower)(on, d->sorted.first(n), d->keys.first(n)), on); }},
        {&prims::upper_bound_operation,
         [=](stream_ref on, std::size_t n) { return settled((*upper)(on, d->sorted.first(n), d->keys.first(n)), on); }},
        {&prims::radix_sort_operation,
         [=](stream_ref on, std::size_t n) { return settled((*radix)(on, d->keys.first(n)), on); }},
        {&prims::merge_sort_operation,
         [=](stream_ref on, std::size_t n) { return settled((*merge)(on, d->keys.first(n)), on); }},
        {&prims::unique_by_key_operation,
         [=](stream_ref on, std::size_t n) -> result<void> {
             KILN_TRY(auto const out, (*unique)(on, d->sorted.first(n), d->keys.first(n)));
             return settled(result<buffer<int>>{out.keys}, on);
         }},
    };
}

// Microseconds: the median of a few, after one that makes everything ready.
result<double> time_of(subject const& s, execution_mode mode, stream_ref on, std::size_t n) {
    scoped_execution_mode const here{mode};
    KILN_CHECK(s.run(on, n));
    std::vector<double> samples;
    for (int i = 0; i < 5; ++i) {
        base::stopwatch const watch;
        KILN_CHECK(s.run(on, n));
        samples.push_back(static_cast<double>(watch.ns()) * 1e-3);
    }
    std::ranges::sort(samples);
    return samples[samples.size() / 2];
}

struct curve {
    operation const* what = nullptr;
    std::vector<plot::point> cpu = {}, gpu = {};
    std::uint64_t crossover = 0;  // items
};

// The smallest size from which on the GPU is never slower, between two measured ones by a straight line; past the largest
// one if it never is.
std::uint64_t crossover_of(curve const& c) {
    auto at = c.cpu.size();
    while (at > 0 && c.gpu[at - 1].y <= c.cpu[at - 1].y) --at;
    if (at == c.cpu.size()) return static_cast<std::uint64_t>(c.cpu.back().x) * 2;
    if (at == 0) return static_cast<std::uint64_t>(c.cpu.front().x);
    auto const before = c.gpu[at - 1].y - c.cpu[at - 1].y, after = c.cpu[at].y - c.gpu[at].y;
    auto const share = before / (before + after);
    return static_cast<std::uint64_t>(c.cpu[at - 1].x + share * (c.cpu[at].x - c.cpu[at - 1].x));
}

result<curve> measure(subject const& s, stream_ref on) {
    curve out{.what = s.what};
    for (int power = least_power; power <= most_power; power += 1) {
        auto const n = std::size_t{1} << power;
        KILN_TRY(auto const cpu, time_of(s, execution_mode::cpu, on, n));
        KILN_TRY(auto const gpu, time_of(s, execution_mode::gpu, on, n));
        out.cpu.push_back({static_cast<double>(n), cpu});
        out.gpu.push_back({static_cast<double>(n), gpu});
        if (cpu > 50'000 && gpu < cpu) break;  // far beyond: more would only take time
    }
    out.crossover = crossover_of(out);
    return out;
}

void show(std::vector<curve> const& curves) {
    std::vector<std::vector<std::string>> rows{{"operation", "default", "measured", "CPU us there", "GPU us there"}};
    for (auto const& c : curves) {
        auto const at = std::ranges::lower_bound(c.cpu, static_cast<double>(c.crossover), {}, &plot::point::x);
        auto const i = static_cast<std::size_t>(at == c.cpu.end() ? c.cpu.size() - 1 : at - c.cpu.begin());
        rows.push_back({std::string{c.what->name()}, std::to_string(c.what->preset_crossover(call_shape::pairwise)),
                        std::to_string(c.crossover), fmt::format("{:.1f}", c.cpu[i].y),
                        fmt::format("{:.1f}", c.gpu[i].y)});
    }
    print(table(rows));
}

plot::line_plot figure(std::vector<curve> const& curves, std::string const& device) {
    plot::line_plot out{.title = fmt::format("GPU time over CPU time, host data ({})", device),
                        .x = {.label = "items", .scale = plot::scale::log2},
                        .y = {.label = "GPU / CPU", .scale = plot::scale::log10},
                        .lines = {},
                        .marks = {{"as fast", 1.0}}};
    for (auto const& c : curves) {
        plot::line line{std::string{c.what->name()}, {}};
        for (std::size_t i = 0; i < c.cpu.size(); ++i) line.points.push_back({c.cpu[i].x, c.gpu[i].y / c.cpu[i].y});
        out.lines.push_back(std::move(line));
    }
    return out;
}

json as_json(std::vector<curve> const& curves, std::string const& file) {
    json rows = json::array();
    for (auto const& c : curves) {
        json points = json::array();
        for (std::size_t i = 0; i < c.cpu.size(); ++i)
            points.push_back({{"items", c.cpu[i].x}, {"cpu_us", c.cpu[i].y}, {"gpu_us", c.gpu[i].y}});
        rows.push_back({{"operation", c.what->name()},
                        {"shape", "pairwise"},
                        {"default", c.what->preset_crossover(call_shape::pairwise)},
                        {"measured", c.crossover},
                        {"points", std::move(points)}});
    }
    return {{"file", file}, {"crossovers", std::move(rows)}};
}

int calibrate(arguments const& args) {
    auto const gpu = usable_gpu();
    if (!gpu) {
        complain(fmt::format("nothing to calibrate: {}", gpu.error().message()));
        return failed;
    }
    auto const on = stream::make().value();
    auto const data = std::make_shared<bench_data>(std::size_t{1} << most_power);
    std::vector<curve> curves;
    auto all = subjects(data);
    std::string known;
    for (auto const& s : all) (known += known.empty() ? "" : ", ") += s.what->name();
    if (!args.only.empty()) {
        std::erase_if(
            all, [&](subject const& s) { return std::ranges::find(args.only, s.what->name()) == args.only.end(); });
        if (all.empty()) {
            complain(fmt::format("none of these can be calibrated; there are: {}", known));
            return misused;
        }
    }
    for (auto const& s : all) {
        if (!args.json) fmt::print(stderr, "{} ...\n", s.what->name());
        auto measured = measure(s, on);
        if (!measured) {
            complain(std::move(measured).error().within(s.what->name()));
            return failed;
        }
        curves.push_back(*std::move(measured));
    }
    auto const cache = store::options_from(base::config::load()).disk;
    std::string file;
    if (cache && !args.dry_run) {
        auto const path = runtime::calibration_file(cache->root, *gpu);
        // What was measured before and not now stays.
        auto found = runtime::read_calibration(path);
        auto made = found && *found ? **found : runtime::calibration{};
        made.device = gpu->name;
        made.driver = gpu->driver_version;
        for (auto const& c : curves) made.crossovers[{std::string{c.what->name()}, call_shape::pairwise}] = c.crossover;
        runtime::write_calibration(path, made).value();
        file = path.native();
    }
    if (!args.plot.empty()) plot::write_svg(args.plot, figure(curves, gpu->name)).value();
    if (args.json) {
        print_json(as_json(curves, file));
        return ok;
    }
    show(curves);
    print(plot::text(figure(curves, gpu->name)));
    if (!file.empty()) print(fmt::format("kept in {}; operations use it from now on\n", file));
    else print(args.dry_run ? "nothing was kept\n" : "there is no cache directory: nothing was kept\n");
    return ok;
}

}  // namespace

void add_calibrate(CLI::App& root, std::vector<command>& commands) {
    auto* const app = add_command(root, "calibrate");
    auto const args = std::make_shared<arguments>();
    app->add_option("operations", args->only);
    app->add_option("--plot", args->plot);
    app->add_flag("--dry-run", args->dry_run);
    app->add_flag("--json", args->json);
    commands.push_back({app, [args] { return calibrate(*args); }});
}

}  // namespace kiln::cli
