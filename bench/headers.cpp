// SPDX-License-Identifier: Apache-2.0
//
// What precompiled headers in the workers are worth: units that share headers and differ in their kernels, cold, one after another
//   - by NVRTC itself, and by NVRTC with --pch (which misses edits of headers: docs/decisions/0016);
//   - by one worker without and with precompiled headers;
//   - and by all workers, all asked for at once.
// The process, NVRTC and the workers are started anew for each line, and that is in the time. NVRTC's own cache is off.
// Usage: bench_headers [--units N] [--rounds N] [--header NAME] [--json]
#include "base/clock.hpp"
#include "compile/host_resources.hpp"
#include "compile/toolchain.hpp"
#include "compile/worker_pool.hpp"

#include <kiln/event.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

using namespace kiln;
using namespace kiln::compile;

struct settings {
    int units = 20;
    int rounds = 3;
    std::string header = "cuda/std/tuple";
    std::string way;  // in a child: which one
    bool json = false;
    toolchain_paths tools;
};

[[noreturn]] void give_up(std::string const& why) {
    std::fprintf(stderr, "bench_headers: %s\n", why.c_str());
    std::exit(1);
}

std::string source_of(settings const& s, int i) {
    return fmt::format("#include <{}>\nextern \"C\" __global__ void k{}(int* p) {{ p[threadIdx.x] += {}; }}\n",
                       s.header, i, i);
}

job job_of(settings const& s, int i) {
    auto const name = fmt::format("k{}", i);
    unit u{.name = name, .source = source_of(s, i), .kernels = {name}, .options = {"--no-cache"}};
    return {s.tools, compile_job{std::move(u), target::parse("sm_90").value()}};
}

// A loop as everybody writes it.
void compile_plainly(settings const& s, bool precompiled) {
    auto const api = cuda::load_nvrtc(s.tools.nvrtc);
    if (!api) give_up(api.error().message());
    auto const& nvrtc = **api;
    for (int i = 0; i < s.units; ++i) {
        nvrtcProgram p = nullptr;
        nvrtc.create_program(&p, source_of(s, i).c_str(), fmt::format("k{}.cu", i).c_str(), 0, nullptr, nullptr);
        std::vector<std::string> options{"--no-cache", "--gpu-architecture=sm_90"};
        for (auto const& directory : s.tools.toolkit_includes) options.push_back("-I" + directory);
        if (precompiled) options.emplace_back("--pch");
        std::vector<char const*> raw;
        for (auto const& o : options) raw.push_back(o.c_str());
        if (nvrtc.compile_program(p, static_cast<int>(raw.size()), raw.data()) != NVRTC_SUCCESS)
            give_up("it does not compile");
        std::size_t size = 0;
        nvrtc.get_cubin_size(p, &size);
        std::vector<char> image(size);
        nvrtc.get_cubin(p, image.data());
        nvrtc.destroy_program(&p);
    }
}

enum class asking { one_by_one, at_once };

void compile_in_workers(settings const& s, int workers, bool precompiled, asking how) {
    event_log events;
    pool_options options;
    options.workers = workers;
    if (!precompiled) options.precompiled = 0;
    worker_pool pool{options, events};
    std::vector<std::future<result<product>>> answers;
    for (int i = 0; i < s.units; ++i) {
        auto promise = std::make_shared<std::promise<result<product>>>();
        answers.push_back(promise->get_future());
        pool.submit(job_of(s, i), priority::blocking,
                    [promise](result<product> made) { promise->set_value(std::move(made)); });
        if (how == asking::one_by_one) answers.back().wait();
    }
    for (auto& answer : answers) {
        if (auto const made = answer.get(); !made) give_up(made.error().message());
    }
}

void run_way(settings const& s) {
    if (s.way == "nvrtc") compile_plainly(s, false);
    else if (s.way == "nvrtc-pch") compile_plainly(s, true);
    else if (s.way == "worker") compile_in_workers(s, 1, false, asking::one_by_one);
    else if (s.way == "worker-pch") compile_in_workers(s, 1, true, asking::one_by_one);
    else if (s.way == "workers") compile_in_workers(s, -1, false, asking::at_once);
    else compile_in_workers(s, -1, true, asking::at_once);
}

// In a process of its own, of which nothing is warm but the page cache.
double seconds_of(settings const& s, char const* way) {
    base::stopwatch const watch;
    auto const pid = ::fork();
    if (pid == 0) {
        auto const units = std::to_string(s.units);
        ::execl("/proc/self/exe", "bench_headers", "--way", way, "--units", units.c_str(), "--header", s.header.c_str(),
                nullptr);
        ::_exit(127);
    }
    int status = 0;
    if (pid < 0 || ::waitpid(pid, &status, 0) != pid || status != 0) give_up(fmt::format("'{}' failed", way));
    return watch.ms() / 1e3;
}

void print_table(settings const& s) {
    struct line {
        char const* way;
        char const* words;
        std::vector<double> seconds = {};
    };
    std::vector<line> lines{
        {"nvrtc", "NVRTC"},           {"nvrtc-pch", "NVRTC with --pch"},      {"worker", "one worker, KILN_PCH=0"},
        {"worker-pch", "one worker"}, {"workers", "all workers, KILN_PCH=0"}, {"workers-pch", "all workers"}};
    // Round by round, so that what else the machine does falls on all alike.
    for (int round = 0; round < s.rounds; ++round) {
        for (auto& l : lines) l.seconds.push_back(seconds_of(s, l.way));
    }
    for (auto& l : lines) std::ranges::sort(l.seconds);
    auto const median = [](line const& l) { return l.seconds[l.seconds.size() / 2]; };
    double const against = median(lines[1]);
    if (!s.json)
        std::printf("%d units with <%s>, %d cores, median of %d rounds\n", s.units, s.header.c_str(),
                    host_resources::read().cores, s.rounds);
    for (auto const& l : lines) {
        if (s.json)
            std::printf("{\"way\": \"%s\", \"seconds\": %.3f, \"best\": %.3f}\n", l.way, median(l), l.seconds.front());
        else
            std::printf("%-26s %7.2f s   best %7.2f s   %5.2f of NVRTC with --pch\n", l.words, median(l),
                        l.seconds.front(), median(l) / against);
    }
}

int number_in(std::string_view text) {
    int out = 0;
    std::from_chars(text.data(), text.data() + text.size(), out);
    return std::max(1, out);
}

}  // namespace

int main(int argc, char** argv) {
    settings s;
    for (int i = 1; i < argc; ++i) {
        std::string_view const option = argv[i];
        if (option == "--json") s.json = true;
        else if (i + 1 >= argc) give_up(fmt::format("{} needs a value", option));
        else if (option == "--units") s.units = number_in(argv[++i]);
        else if (option == "--rounds") s.rounds = number_in(argv[++i]);
        else if (option == "--header") s.header = argv[++i];
        else if (option == "--way") s.way = argv[++i];
        else give_up(fmt::format("'{}' is not an option", option));
    }
    s.tools = find_toolchain(cuda::library_search{cuda::search_environment::process(base::config::load())});
    if (s.tools.nvrtc.empty()) give_up("NVRTC is not installed");
    if (s.way.empty()) print_table(s);
    else run_way(s);
}
