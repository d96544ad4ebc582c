// SPDX-License-Identifier: Apache-2.0
//
// What worker processes are worth and what they cost:
//   1. N distinct CUB units at once: threads of one process against workers, with the workers started for it and with
//      workers that run already;
//   2. a blocked compile of a small unit through a running worker, against NVRTC called directly;
//   3. resident memory of the host and of the workers with 200 small artifacts ready.
// NVRTC's own cache is off (--no-cache) throughout. Usage: bench_workers [--most N] [--rounds N]
#include "base/clock.hpp"
#include "compile/host_resources.hpp"
#include "compile/toolchain.hpp"
#include "compile/worker_pool.hpp"

#include <kiln/event.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <future>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace kiln;
using namespace kiln::compile;

struct settings {
    int most = 16;
    int rounds = 60;
    toolchain_paths tools;
};

[[noreturn]] void give_up(std::string const& why) {
    std::fprintf(stderr, "bench_workers: %s\n", why.c_str());
    std::exit(1);
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

// ---- jobs ----------------------------------------------------------------------------------------------------------

job make_job(settings const& s, std::string name, std::string source) {
    unit u{.name = std::move(name),
           .source = std::move(source),
           .kernels = {"k"},
           .options = {"--no-cache", "--std=c++17"}};
    return {s.tools, compile_job{std::move(u), target::parse("sm_90").value()}};
}

job cub_job(settings const& s, int seed) {
    return make_job(s, fmt::format("cub_{}", seed),
                    fmt::format("#define SEED {}\n", seed) +
                        "#include <cub/agent/agent_scan.cuh>\n"
                        "extern \"C\" __global__ void k(int* data) {\n"
                        "    using scan = cub::BlockScan<int, 128>;\n"
                        "    __shared__ typename scan::TempStorage scratch;\n"
                        "    int item = data[threadIdx.x] + SEED;\n"
                        "    scan(scratch).ExclusiveSum(item, item);\n"
                        "    data[threadIdx.x] = item;\n"
                        "}\n");
}

job small_job(settings const& s, int seed) {
    return make_job(s, fmt::format("small_{}", seed),
                    fmt::format("extern \"C\" __global__ void k(float* x) {{ x[threadIdx.x] *= {}.0f; }}\n", seed));
}

// ---- running them --------------------------------------------------------------------------------------------------

product compile(worker_pool& pool, job work) {
    std::promise<result<product>> promise;
    pool.submit(std::move(work), priority::blocking, [&](result<product> o) { promise.set_value(std::move(o)); });
    auto outcome = promise.get_future().get();
    if (!outcome) give_up(outcome.error().message() + "\n" + outcome.error().log());
    return *std::move(outcome);
}

// Wall time of all at once, in ms.
template <class Run>
double all_at_once(std::vector<job> jobs, Run run) {
    base::stopwatch const watch;
    std::vector<std::thread> threads;
    for (auto& work : jobs) threads.emplace_back([&run, &work] { run(std::move(work)); });
    for (auto& t : threads) t.join();
    return watch.ms();
}

std::vector<job> cub_jobs(settings const& s, int count) {
    static int seed = 0;
    std::vector<job> out;
    for (int i = 0; i < count; ++i) out.push_back(cub_job(s, ++seed));
    return out;
}

worker_pool make_pool(int workers) {
    return worker_pool{{.workers = workers, .idle_timeout = std::chrono::minutes{10}}, event_log::process()};
}

double in_workers(worker_pool& pool, std::vector<job> jobs) {
    return all_at_once(std::move(jobs), [&](job work) { compile(pool, std::move(work)); });
}

double in_threads(std::vector<job> jobs) {
    return all_at_once(std::move(jobs), [](job work) {
        if (auto made = run_job(work); !made) give_up(made.error().message());
    });
}

// ---- memory --------------------------------------------------------------------------------------------------------

struct memory {
    double resident = 0, own = 0, peak = 0;  // MiB
};

memory memory_of(int pid) {
    std::ifstream file{pid == 0 ? "/proc/self/status" : fmt::format("/proc/{}/status", pid)};
    memory out;
    for (std::string line; std::getline(file, line);) {
        auto const mib = [&] { return std::strtod(line.c_str() + line.find(':') + 1, nullptr) / 1024; };
        if (line.starts_with("VmRSS:")) out.resident = mib();
        if (line.starts_with("RssAnon:")) out.own = mib();
        if (line.starts_with("VmHWM:")) out.peak = mib();
    }
    return out;
}

void show_workers(worker_pool const& pool, char const* when) {
    for (auto const& w : pool.workers()) {
        auto const m = memory_of(w.pid);
        std::printf("worker %-8d %-26s resident %6.1f MiB, of that private %6.1f, peak %6.1f\n", w.pid, when,
                    m.resident, m.own, m.peak);
    }
}

void measure_memory(settings const& s) {
    std::printf("3. Memory with 200 small artifacts ready\n\n");
    auto const before = memory_of(0);
    auto pool = make_pool(2);
    std::vector<product> kept;
    std::size_t bytes = 0;
    for (int i = 0; i < 200; i += 2) {
        auto other = std::async(std::launch::async, [&] { return compile(pool, small_job(s, i + 1)); });
        kept.push_back(compile(pool, small_job(s, i)));
        kept.push_back(other.get());
    }
    for (auto const& p : kept) bytes += p.image.size();
    auto const after = memory_of(0);
    std::printf("host: resident %.1f MiB before, %.1f after: %.1f MiB more, with %.1f MiB of images\n", before.resident,
                after.resident, after.resident - before.resident, static_cast<double>(bytes) / 1048576.0);
    show_workers(pool, "after 100 small units");
    in_workers(pool, cub_jobs(s, 2));
    show_workers(pool, "after a CUB unit");
    std::this_thread::sleep_for(std::chrono::milliseconds{600});  // an idle worker gives its heap back
    show_workers(pool, "idle again");
}

// ---- speed ---------------------------------------------------------------------------------------------------------

struct row {
    int count;
    double started, running, threads;
};

void measure_parallel(settings const& s) {
    std::printf("\n1. N distinct CUB units at once (ms, and times one unit in a running worker)\n\n");
    std::vector<row> rows;
    double one = 0;
    for (int count = 1; count <= s.most; count *= 2) {
        row r{count, 0, 0, 0};
        auto pool = make_pool(count);
        r.started = in_workers(pool, cub_jobs(s, count));
        std::vector<double> runs;
        for (int i = 0; i < 3; ++i) runs.push_back(in_workers(pool, cub_jobs(s, count)));
        r.running = median(runs);
        if (count == 1) one = r.running;
        rows.push_back(r);
    }
    in_threads({small_job(s, 0)});  // loads NVRTC, as a running worker has
    for (auto& r : rows) r.threads = in_threads(cub_jobs(s, r.count));
    std::printf("| N | threads of one process | workers, started for it | running workers |\n|---|---|---|---|\n");
    for (auto const& r : rows) {
        std::printf("| %d | %.0f (%.2f) | %.0f (%.2f) | %.0f (%.2f) |\n", r.count, r.threads, r.threads / one,
                    r.started, r.started / one, r.running, r.running / one);
    }
}

// The same unit with nothing around it: what NVRTC itself costs.
double nvrtc_alone(cuda::nvrtc_api const& api, job const& work) {
    auto const& u = std::get<compile_job>(work.task).unit;
    base::stopwatch const watch;
    nvrtcProgram program = nullptr;
    char const* options[] = {"--gpu-architecture=sm_90", "--no-cache", "--std=c++17"};
    std::size_t size = 0;
    bool ok = api.create_program(&program, u.source.c_str(), "small.cu", 0, nullptr, nullptr) == NVRTC_SUCCESS;
    ok = ok && api.add_name_expression(program, "k") == NVRTC_SUCCESS;
    ok = ok && api.compile_program(program, 3, options) == NVRTC_SUCCESS;
    ok = ok && api.get_cubin_size(program, &size) == NVRTC_SUCCESS;
    std::vector<char> image(size);
    ok = ok && api.get_cubin(program, image.data()) == NVRTC_SUCCESS;
    api.destroy_program(&program);
    if (!ok) give_up("NVRTC refused the small unit");
    return watch.ms();
}

void measure_blocked(settings const& s) {
    std::printf("\n2. A blocked compile of a small unit (median of %d, taken in turns)\n\n", s.rounds);
    auto const api = cuda::load_nvrtc(s.tools.nvrtc);
    if (!api) give_up(api.error().message());
    auto pool = make_pool(1);
    std::vector<double> through_worker, in_process, alone;
    for (int i = -5; i < s.rounds; ++i) {
        auto const work = small_job(s, 5000 + i);
        auto const direct = nvrtc_alone(**api, work);
        base::stopwatch const here;
        if (auto made = run_job(work); !made) give_up(made.error().message());
        auto const here_ms = here.ms();
        base::stopwatch const there;
        compile(pool, work);
        auto const there_ms = there.ms();
        if (i < 0) continue;  // warming up
        alone.push_back(direct);
        in_process.push_back(here_ms);
        through_worker.push_back(there_ms);
    }
    std::printf("NVRTC alone                %8.2f ms\n", median(alone));
    std::printf("run_job in this process    %8.2f ms\n", median(in_process));
    std::printf("through a running worker   %8.2f ms\n", median(through_worker));
    std::printf("the worker costs           %8.2f ms more than NVRTC alone\n", median(through_worker) - median(alone));
}

settings read_settings(int argc, char** argv) {
    settings out;
    out.most = std::min(out.most, fitting_workers(host_resources::read()));
    for (int i = 1; i + 1 < argc; i += 2) {
        std::string_view const name = argv[i];
        if (name == "--most") out.most = std::atoi(argv[i + 1]);
        else if (name == "--rounds") out.rounds = std::atoi(argv[i + 1]);
        else give_up("usage: bench_workers [--most N] [--rounds N]");
    }
    out.tools = find_toolchain(cuda::library_search{cuda::search_environment::process(base::config::load())});
    if (out.tools.nvrtc.empty()) give_up("NVRTC was not found; see 'kiln doctor'");
    return out;
}

}  // namespace

int main(int argc, char** argv) {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    auto const s = read_settings(argc, argv);
    auto const host = host_resources::read();
    std::printf("%d cores, %.1f GiB of memory free, NVRTC %s\n\n", host.cores,
                static_cast<double>(host.free_memory) / (1 << 30), s.tools.nvrtc.c_str());
    // Memory comes first: after that this process has NVRTC in it.
    measure_memory(s);
    measure_parallel(s);
    measure_blocked(s);
}
