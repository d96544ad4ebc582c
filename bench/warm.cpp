// SPDX-License-Identifier: Apache-2.0
//
// What warming up costs and what it is worth:
//   1. demand() of 100 units, in the caller;
//   2. everything Kiln has, from source: worker processes against threads of one process, and against CPU time / cores;
//   3. the same from the disk cache: loaded and launchable, after the context exists (GPU);
//   4. process start to the first correct result of a pipeline of three primitives: against CUB compiled by nvcc, and with
//      operators nobody has seen, with a profile and without Kiln's help (GPU);
//   5. what a CPU-bound program loses while its warm-up runs on the same cores.
// Usage: bench_warm [PART...] [--cores N]; parts that cannot run here say so.
#include "warm/pipeline.hpp"

#include "base/files.hpp"
#include "compile/host_resources.hpp"
#include "engine/engine_state.hpp"
#include "engine/pack.hpp"
#include "prims/catalogue.hpp"
#include "prims/request.hpp"

#include <kiln/plan.hpp>
#include <kiln/status.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <spawn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern char** environ;

namespace {

using namespace kiln;
using namespace std::chrono_literals;

int cores = 0;

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

target here() {
    if (auto const all = devices())
        return {arch::of_device(all->front().major, all->front().minor), artifact_kind::cubin};
    return target::parse("sm_90").value();
}

bool has_gpu() { return devices().has_value(); }

std::vector<want> everything() {
    std::vector<want> out;
    for (auto const& s : catalogue()) out.emplace_back(s.name);
    return out;
}

engine_options options(std::filesystem::path const& cache, std::vector<std::pair<std::string, std::string>> more = {}) {
    engine_options out;
    out.settings = {{"KILN_CACHE_DIR", cache.native()}, {"KILN_WORKERS", std::to_string(cores)}};
    for (auto& m : more) out.settings.push_back(std::move(m));
    return out;
}

// ---- 1 -------------------------------------------------------------------------------------------------------------

void bench_demand() {
    // What the first demand of a process pays beyond the others.
    base::stopwatch const making;
    (void)engine::process();
    std::printf("1. the process's engine: made in %.0f microseconds\n", static_cast<double>(making.ns()) * 1e-3);
    std::vector<unit> units;
    for (int i = 0; i < 100; ++i) {
        unit u{.name = fmt::format("unit_{}", i),
               .source = "extern \"C\" __global__ void k(float* x) {\n",
               .kernels = {"k"}};
        for (int n = 0; n < 40; ++n) u.source += fmt::format("    x[threadIdx.x + {}] *= {}.0f + x[{}];\n", n, i, n);
        u.source += "}\n";
        units.push_back(std::move(u));
    }
    auto const scratch = base::temporary_directory::make("kiln-bench").value();
    std::printf("   demand() of 100 units of %zu bytes, microseconds in the caller (median, most of 20 engines)\n",
                units.front().source.size());
    for (auto const* cache : {"empty", "full"}) {
        for (bool const copied : {false, true}) {
            std::vector<double> first, again;
            for (int round = 0; round < 20; ++round) {
                auto const name =
                    std::string_view{cache} == "empty" ? fmt::format("{}{}{}", cache, copied, round) : cache;
                engine e{options(scratch.path() / name, {{"KILN_WORKERS", "1"}})};
                demand_options const how{.targets = {here()}, .engine = &e};
                auto const call = [&] {
                    std::vector<want> what;
                    for (auto const& u : units) what.push_back(copied ? want{u} : want::static_unit(u));
                    return demand(std::move(what), how);
                };
                base::stopwatch const watch;
                auto const batch = call();
                first.push_back(static_cast<double>(watch.ns()) * 1e-3);
                base::stopwatch const second;
                auto const twice = call();
                again.push_back(static_cast<double>(second.ns()) * 1e-3);
                if (std::string_view{cache} == "full" && round == 0 && !copied) {
                    std::vector<want> what;
                    for (auto const& u : units) what.push_back(want::static_unit(u));
                    (void)plan{"fill", what, how}.ensure_warm(5min);
                    e.flush_sync();
                    continue;
                }
                batch.cancel();
                twice.cancel();
            }
            std::printf("   cache %-5s  %-14s  first call %6.1f %6.1f   second call %6.1f %6.1f\n", cache,
                        copied ? "units copied" : "static units", median(first), *std::ranges::max_element(first),
                        median(again), *std::ranges::max_element(again));
        }
    }
}

// ---- 2 -------------------------------------------------------------------------------------------------------------

void bench_everything(base::temporary_directory const& scratch) {
    double wall = 0, busy = 0;
    {
        engine e{options(scratch.path() / "cold", {{"KILN_RECACHE", "1"}})};
        base::stopwatch const watch;
        auto const report = plan{"everything", everything(), {.targets = {here()}, .engine = &e}}.ensure_warm(10min);
        wall = watch.ms();
        if (!report) std::printf("   %s\n", report.text().c_str());
        e.flush_sync();
        for (auto const& w : e.internals().pool->workers()) busy += static_cast<double>(w.busy_ns) * 1e-6;
    }
    std::printf(
        "2. all %zu names from source, %d compile processes: %.0f ms; the processes were busy for %.0f ms "
        "together, / %d = %.0f ms, ratio %.2f\n",
        everything().size(), cores, wall, busy, cores, busy / cores, wall / (busy / cores));

    // The same texts by threads of one process: NVRTC serialises them.
    engine e{options(scratch.path() / "none")};
    std::vector<compile::job> jobs;
    for (auto const& r : prims::named_requests()) {
        auto u = prims::device_unit(r.what, prims::part::whole, prims::header_source::pinned);
        u.options.push_back("--no-cache");
        jobs.push_back({e.internals().tools(), compile::compile_job{std::move(u), here()}});
    }
    for (auto u : engine_detail::find_pack("tropical")->units()) {
        u.options.push_back("--no-cache");
        jobs.push_back({e.internals().tools(), compile::compile_job{std::move(u), here()}});
    }
    std::atomic<std::size_t> next{0}, bad{0};
    base::stopwatch const watch;
    {
        std::vector<std::jthread> threads;
        for (int n = 0; n < cores; ++n)
            threads.emplace_back([&] {
                for (auto i = next++; i < jobs.size(); i = next++) bad += compile::run_job(jobs[i]) ? 0 : 1;
            });
    }
    std::printf("   the same by %d threads of one process: %.0f ms (%zu failed); %.1f times as long\n", cores,
                watch.ms(), bad.load(), watch.ms() / wall);
}

// ---- 3 -------------------------------------------------------------------------------------------------------------

void bench_load(base::temporary_directory const& scratch) {
    if (!has_gpu()) return void(std::puts("3. needs a GPU"));
    (void)stream::make().value();  // the context exists from here on
    for (auto const& [title, settings] :
         std::vector<std::pair<char const*, std::vector<std::pair<std::string, std::string>>>>{
             {"as shipped in the library", {}}, {"from the disk cache", {{"KILN_JIT", "forbid"}}}}) {
        std::vector<double> ms;
        for (int round = 0; round < 5; ++round) {
            engine e{options(scratch.path() / "cold", settings)};
            base::stopwatch const watch;
            auto const report = plan{"load", everything(), {.engine = &e}}.ensure_warm(1min);
            ms.push_back(watch.ms());
            if (!report) std::printf("   %s\n", report.text().c_str());
        }
        std::printf("3. all %zu names %s: loaded and launchable after %.1f ms (median of 5)\n", everything().size(),
                    title, median(ms));
    }
    // Plain units cannot come from the library.
    std::vector<want> units;
    for (int i = 0; i < 24; ++i)
        units.emplace_back(
            unit{.name = fmt::format("plain_{}", i),
                 .source = fmt::format("extern \"C\" __global__ void k(float* x) {{ x[threadIdx.x] *= {}.0f; }}", i),
                 .kernels = {"k"}});
    std::vector<double> ms;
    for (int round = 0; round < 6; ++round) {
        engine e{options(scratch.path() / "plain")};
        base::stopwatch const watch;
        (void)plan{"load", units, {.engine = &e}}.ensure_warm(1min);
        if (round > 0) ms.push_back(watch.ms());
        e.flush_sync();
    }
    std::printf("   24 plain units from the disk cache: %.1f ms (median of 5)\n", median(ms));
}

// ---- 4 -------------------------------------------------------------------------------------------------------------

struct child_run {
    double ms = 0;
    bool right = false;
};

child_run run_child(std::vector<std::string> arguments, std::vector<std::string> const& settings) {
    std::vector<char*> argv, env;
    for (auto& a : arguments) argv.push_back(a.data());
    argv.push_back(nullptr);
    std::vector<std::string> kept = settings;
    for (auto** e = environ; *e != nullptr; ++e) {
        if (!std::string_view{*e}.starts_with("KILN_PROFILE=") && !std::string_view{*e}.starts_with("KILN_CACHE_DIR="))
            kept.emplace_back(*e);
    }
    for (auto& k : kept) env.push_back(k.data());
    env.push_back(nullptr);
    pid_t pid = 0;
    base::stopwatch const watch;
    if (::posix_spawn(&pid, argv.front(), nullptr, nullptr, argv.data(), env.data()) != 0) return {};
    int status = 1;
    ::waitpid(pid, &status, 0);
    return {watch.ms(), status == 0};
}

void report_runs(char const* title, std::vector<std::string> const& arguments, std::vector<std::string> const& settings,
                 int rounds, std::filesystem::path const& empty_each_time = {}) {
    std::vector<double> ms;
    for (int round = 0; round < rounds; ++round) {
        auto all = settings;
        if (!empty_each_time.empty())
            all.push_back("KILN_CACHE_DIR=" + (empty_each_time / std::to_string(round)).native());
        auto const r = run_child(arguments, all);
        if (!r.right) return void(std::printf("   %-66s failed\n", title));
        ms.push_back(r.ms);
    }
    std::printf("   %-66s %8.1f ms (median of %d, least %.1f)\n", title, median(ms), rounds,
                *std::ranges::min_element(ms));
}

void bench_start(base::temporary_directory const& scratch) {
    if (!has_gpu()) return void(std::puts("4. needs a GPU"));
    auto const self = std::filesystem::read_symlink("/proc/self/exe");
    auto const cub = self.parent_path() / "bench_warm_cub";
    auto const cache = "KILN_CACHE_DIR=" + (scratch.path() / "start").native();
    std::puts("4. process start to the end of a process with one correct result of scan, sort and reduce");
    (void)run_child({self, "--child", "named"}, {cache});
    report_runs("Kiln, warm", {self, "--child", "named"}, {cache}, 9);
    if (std::filesystem::exists(cub)) report_runs("CUB compiled by nvcc", {cub}, {}, 9);
    else std::puts("   no bench_warm_cub: nvcc was not found when this was built");
    report_runs("an empty program that makes a context", {self, "--child", "context"}, {}, 9);
    auto const profile = "KILN_PROFILE=" + (scratch.path() / "app.profile").native();
    auto const recorded =
        run_child({self, "--child", "own"}, {profile, "KILN_CACHE_DIR=" + (scratch.path() / "recorded").native()});
    std::printf("   own operators, cold, while recording: %.1f ms%s\n", recorded.ms, recorded.right ? "" : " (failed)");
    report_runs("own operators, with the profile, empty cache", {self, "--child", "own"}, {profile}, 3,
                scratch.path() / "p");
    report_runs("own operators, no profile, empty cache", {self, "--child", "own"}, {}, 3, scratch.path() / "n");
    report_runs("own operators, NVRTC in the program, no cache", {self, "--child", "plain"},
                {"KILN_WORKERS=0", "KILN_DISABLE=1"}, 2);
}

// ---- 5 -------------------------------------------------------------------------------------------------------------

// Units of work that all cores together do in a second and a half.
double work_done() {
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> done{0};
    base::stopwatch const watch;
    std::vector<std::jthread> threads;
    for (int n = 0; n < cores; ++n)
        threads.emplace_back([&] {
            double x = 1;
            for (std::uint64_t mine = 0;; ++mine) {
                for (int i = 0; i < 20'000; ++i) x = std::sqrt(x + i);
                done.fetch_add(1, std::memory_order_relaxed);
                if (stop.load(std::memory_order_relaxed)) break;
            }
            if (x < 0) std::puts("");
        });
    std::this_thread::sleep_for(1500ms);
    auto const out = static_cast<double>(done.load()) / watch.ms();
    stop = true;
    return out;
}

void bench_foreground(base::temporary_directory const& scratch) {
    std::vector<double> alone, together;
    for (int round = 0; round < 3; ++round) {
        alone.push_back(work_done());
        engine e{options(scratch.path() / "foreground", {{"KILN_RECACHE", "1"}})};
        demand(everything(), {.targets = {here()}, .engine = &e});
        while (status(e).compiling == 0) std::this_thread::sleep_for(1ms);
        together.push_back(work_done());
    }
    std::printf("5. a program on all %d cores while its warm-up compiles: %.1f %% slower (median of 3)\n", cores,
                (1 - median(together) / median(alone)) * 100);
}

}  // namespace

int main(int count, char** arguments) try {
    std::vector<std::string> const all(arguments + 1, arguments + count);
    if (all.size() == 2 && all[0] == "--child") return kiln::bench_warm::run_child(all[1]);
    cores = compile::fitting_workers(compile::host_resources::read());
    std::set<std::string> parts;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i] == "--cores" && i + 1 < all.size()) cores = std::atoi(all[++i].c_str());
        else parts.insert(all[i]);
    }
    auto const wanted = [&](char const* part) { return parts.empty() || parts.contains(part); };
    auto const scratch = base::temporary_directory::make("kiln-bench").value();
    if (wanted("1")) bench_demand();
    if (wanted("2")) bench_everything(scratch);
    if (wanted("3")) bench_load(scratch);
    if (wanted("4")) bench_start(scratch);
    if (wanted("5")) bench_foreground(scratch);
    return 0;
} catch (kiln::error const& e) {
    std::fprintf(stderr, "bench_warm: %s\n%s", e.what(), e.log().c_str());
    return 1;
}
