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
#include "workshop/pack_tool.hpp"

#include <algorithm>

namespace kiln::cli {

namespace {

using workshop::trial;

constexpr std::size_t least_items = 1 << 8;

struct arguments {
    std::vector<std::string> only;
    std::string plot;
    bool dry_run = false;
    bool json = false;
};

// Microseconds: the median of a few, after one that makes everything ready.
result<double> time_of(trial const& s, execution_mode mode, stream_ref on, std::size_t n) {
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

result<curve> measure(trial const& s, stream_ref on) {
    curve out{.what = s.what};
    for (auto n = least_items; n <= workshop::most_trial_items; n *= 2) {
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

std::vector<trial> all_trials() {
    std::vector<trial> out;
    for (auto const* p : engine_detail::packs()) {
        for (auto& t : workshop::tool_of(*p).trials()) out.push_back(std::move(t));
    }
    return out;
}

// Those of these names, all without any. errc::invalid_argument with what there is.
result<std::vector<trial>> chosen(std::vector<std::string> const& only) {
    auto all = all_trials();
    if (only.empty()) return all;
    std::string known;
    for (auto const& t : all) (known += known.empty() ? "" : ", ") += t.what->name();
    for (auto const& name : only) {
        if (std::ranges::none_of(all, [&](trial const& t) { return t.what->name() == name; }))
            return fail(errc::invalid_argument, "'{}' cannot be calibrated; there are: {}", name, known);
    }
    std::erase_if(all, [&](trial const& t) { return std::ranges::find(only, t.what->name()) == only.end(); });
    return all;
}

int calibrate(arguments const& args) {
    auto const all = chosen(args.only);
    if (!all) {
        complain(all.error());
        return misused;
    }
    auto const gpu = usable_gpu();
    if (!gpu) {
        complain(fmt::format("nothing to calibrate: {}", gpu.error().message()));
        return failed;
    }
    auto const on = stream::make().value();
    std::vector<curve> curves;
    for (auto const& s : *all) {
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
