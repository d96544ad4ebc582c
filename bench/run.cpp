// SPDX-License-Identifier: Apache-2.0
//
// What `kiln run` costs a program that knows nothing of Kiln, and what it saves it. Each number is the least of a few processes,
// with and without `kiln run` in turn:
//   1. a process that never compiles: /bin/true, and Python with its largest import;
//   2. an answer from the cache: a kernel without headers, one with CUB's headers, with and without what is read ahead;
//   3. a miss, against the library alone;
//   4. many processes that start at once with an empty cache, against one.
// Needs NVRTC and no GPU. Usage: bench_run [--rounds N] [--ranks N] [--quick] [starts|hits|misses|ranks]...
#include "base/clock.hpp"
#include "base/files.hpp"
#include "compile/toolchain.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <optional>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

extern char** environ;

namespace {

using namespace kiln;
using words = std::vector<std::string>;

[[noreturn]] void give_up(std::string const& why, int status = 1) {
    std::fprintf(stderr, "bench_run: %s\n", why.c_str());
    std::exit(status);
}

// ---- the program that is measured: opens an NVRTC by path, compiles, prints how long each compile took in microseconds

constexpr char const* small_source = "extern \"C\" __global__ void k(float* x) { x[threadIdx.x] *= 2.0f; }\n";
constexpr char const* cub_source =
    "#include <cub/block/block_reduce.cuh>\n#include <cub/block/block_scan.cuh>\n#include <cuda/std/complex>\n"
    "extern \"C\" __global__ void k(int* data) {\n"
    "    using scan = cub::BlockScan<int, 128>;\n"
    "    __shared__ typename scan::TempStorage scratch;\n"
    "    int item = data[threadIdx.x];\n"
    "    scan(scratch).ExclusiveSum(item, item);\n"
    "    data[threadIdx.x] = item;\n"
    "}\n";

// arguments: library, "small" or "cub", how often, milliseconds it takes to start, include directories
int compile_and_tell(words const& a) {
    auto* const library = ::dlopen(a[0].c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) give_up(::dlerror());
    auto* const create = reinterpret_cast<int (*)(void**, char const*, char const*, int, void*, void*)>(
        ::dlsym(library, "nvrtcCreateProgram"));
    auto* const compile = reinterpret_cast<int (*)(void*, int, char const**)>(::dlsym(library, "nvrtcCompileProgram"));
    auto* const size = reinterpret_cast<int (*)(void*, std::size_t*)>(::dlsym(library, "nvrtcGetCUBINSize"));
    std::vector<char const*> options{"-arch=sm_90", "--std=c++17"};
    std::vector<std::string> includes;
    for (auto i = a.begin() + 4; i != a.end(); ++i) includes.push_back("-I" + *i);
    for (auto const& one : includes) options.push_back(one.c_str());
    // As in every program that uses a GPU: the driver has threads, and libc's streams then take locks.
    std::thread{[] {}}.join();
    ::usleep(static_cast<unsigned>(std::stoi(a[3]) * 1000));
    for (int i = 0; i < std::stoi(a[2]); ++i) {
        void* program = nullptr;
        std::size_t bytes = 0;
        base::stopwatch const watch;
        int const status = create(&program, a[1] == "cub" ? cub_source : small_source, "k.cu", 0, nullptr, nullptr) |
                           compile(program, static_cast<int>(options.size()), options.data()) | size(program, &bytes);
        std::printf("%lld\n", static_cast<long long>(watch.ns() / 1000));
        if (status != 0 || bytes == 0) return 1;
    }
    return 0;
}

// ---- processes

struct ended {
    double ms = 0;
    std::vector<double> told;  // milliseconds that the program printed
};

pid_t start(words const& command, int output) {
    std::vector<char*> arguments;
    for (auto const& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t pid = 0;
    int const why = ::posix_spawnp(&pid, arguments.front(), &files, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&files);
    if (why != 0) give_up(fmt::format("{} cannot be started", command.front()));
    return pid;
}

ended run(words const& command) {
    base::file_descriptor const output{::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)};
    base::stopwatch const watch;
    auto const pid = start(command, output.get());
    int status = 0;
    ::waitpid(pid, &status, 0);
    ended out{.ms = watch.ms(), .told = {}};
    if (status != 0) give_up(fmt::format("{} ended with {}", command.back(), status));
    std::string text(1 << 16, '\0');
    auto const size = ::pread(output.get(), text.data(), text.size(), 0);
    text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    for (char const* at = text.c_str(); *at != '\0';) {
        char* end = nullptr;
        auto const us = std::strtod(at, &end);
        if (end == at) break;
        out.told.push_back(us / 1000);
        at = end + 1;
    }
    return out;
}

words under_kiln(words const& program) {
    std::error_code failed;
    auto const own = std::filesystem::read_symlink("/proc/self/exe", failed).parent_path();
    auto const beside = own / "kiln", installed = own.parent_path().parent_path() / "bin" / "kiln";
    words out{(::access(beside.c_str(), X_OK) == 0 ? beside : installed).native(), "run", "-q", "--"};
    out.insert(out.end(), program.begin(), program.end());
    return out;
}

// ---- what is measured

struct settings {
    int rounds = 15;
    int ranks = 64;
    words program;  // this one, as the program that compiles
    words includes;
    std::filesystem::path cache;
};

words compiling(settings const& s, char const* what, int times, int start_ms) {
    auto out = s.program;
    out.insert(out.end(), {what, std::to_string(times), std::to_string(start_ms)});
    if (std::string_view{what} == "cub") out.insert(out.end(), s.includes.begin(), s.includes.end());
    return out;
}

void empty(settings const& s) {
    std::error_code ignored;
    std::filesystem::remove_all(s.cache, ignored);
}

struct pair_of_times {
    double without = 1e9, with = 1e9;
    void show(char const* what) const {
        std::printf("%-58s %10.3f %10.3f %9.3f\n", what, without, with, with / without);
        std::fflush(stdout);
    }
};

template <class Measure>
pair_of_times least(int rounds, words const& program, Measure measure) {
    pair_of_times out;
    auto const under = under_kiln(program);
    for (int i = 0; i < rounds; ++i) {
        out.without = std::min(out.without, measure(run(program)));
        out.with = std::min(out.with, measure(run(under)));
    }
    return out;
}

double wall(ended const& e) { return e.ms; }
double first(ended const& e) { return e.told.front(); }
double later(ended const& e) { return *std::min_element(e.told.begin() + 1, e.told.end()); }

// The largest module that is there.
words large_import() {
    for (auto const* module :
         {"torch", "cupy", "jax", "numpy", "asyncio, ctypes, email, http.client, sqlite3, unittest, xml.dom"}) {
        words out{"python3", "-c", fmt::format("import {}", module)};
        auto probe = out;
        base::file_descriptor const nowhere{::open("/dev/null", O_WRONLY | O_CLOEXEC)};
        int status = 0;
        ::waitpid(start(probe, nowhere.get()), &status, 0);
        if (status == 0) return out;
    }
    return {};
}

void measure_starts(settings const& s) {
    least(4 * s.rounds, {"/bin/true"}, wall).show("/bin/true: the whole of it");
    auto const many = words{"sh", "-c", "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done"};
    least(3, many, wall).show("200 times /bin/true in one shell");
    if (auto const import = large_import(); !import.empty())
        least(s.rounds / 2 + 1, import, wall).show(("python3 -c '" + import.back() + "'").c_str());
}

void measure_hits(settings const& s) {
    least(s.rounds, compiling(s, "small", 1, 0), first).show("hit without headers: the first in its process");
    least(3, compiling(s, "small", 20, 0), later).show("hit without headers: later ones");
    auto const cub = compiling(s, "cub", 1, 100);
    auto const plain = run(cub).told.front();
    (void)run(under_kiln(cub));
    pair_of_times alone{.without = plain}, ahead{.without = plain};
    for (int i = 0; i < s.rounds; ++i) {
        std::error_code ignored;
        std::filesystem::remove_all(s.cache / "run" / "memory", ignored);
        alone.with = std::min(alone.with, first(run(under_kiln(cub))));
        ahead.with = std::min(ahead.with, first(run(under_kiln(cub))));
    }
    alone.show("hit with CUB's headers: the first in its process");
    ahead.show("the same, read ahead while the program started (0.1 s)");
}

void measure_misses(settings const& s) {
    for (auto const* what : {"small", "cub"}) {
        auto const program = compiling(s, what, 1, 0);
        pair_of_times out;
        for (int i = 0; i < std::max(std::min(3, s.rounds), s.rounds / 3); ++i) {
            out.without = std::min(out.without, run(program).ms);
            empty(s);
            out.with = std::min(out.with, run(under_kiln(program)).ms);
        }
        out.show(fmt::format("miss, the whole process: {}", what).c_str());
    }
}

void measure_ranks(settings const& s) {
    auto const program = under_kiln(compiling(s, "cub", 1, 0));
    pair_of_times out;
    for (int i = 0; i < std::min(3, s.rounds); ++i) {
        empty(s);
        out.without = std::min(out.without, run(program).ms);
        empty(s);
        base::file_descriptor const nowhere{::open("/dev/null", O_WRONLY | O_CLOEXEC)};
        base::stopwatch const watch;
        std::vector<pid_t> all;
        for (int r = 0; r < s.ranks; ++r) all.push_back(start(program, nowhere.get()));
        for (auto const pid : all) ::waitpid(pid, nullptr, 0);
        out.with = std::min(out.with, watch.ms());
    }
    out.show(fmt::format("empty cache, under kiln run: one process, {} at once", s.ranks).c_str());
}

}  // namespace

int main(int argc, char** argv) {
    words arguments{argv + 1, argv + argc};
    if (!arguments.empty() && arguments.front() == "--child")
        return compile_and_tell({arguments.begin() + 1, arguments.end()});
    settings s;
    std::vector<std::pair<std::string_view, void (*)(settings const&)>> const parts{
        {"starts", measure_starts}, {"hits", measure_hits}, {"misses", measure_misses}, {"ranks", measure_ranks}};
    auto const is_part = [&](std::string_view word) {
        return std::ranges::any_of(parts, [&](auto const& part) { return part.first == word; });
    };
    words chosen;  // none: all
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        bool const has_value = i + 1 < arguments.size();
        if (arguments[i] == "--rounds" && has_value) s.rounds = std::stoi(arguments[++i]);
        else if (arguments[i] == "--ranks" && has_value) s.ranks = std::stoi(arguments[++i]);
        else if (arguments[i] == "--quick") s.rounds = 3, s.ranks = 8;
        else if (is_part(arguments[i])) chosen.push_back(arguments[i]);
        else give_up("usage: bench_run [--rounds N] [--ranks N] [--quick] [starts|hits|misses|ranks]...", 2);
    }
    auto const tools =
        compile::find_toolchain(cuda::library_search{cuda::search_environment::process(base::config::load())});
    if (tools.nvrtc.empty()) give_up("there is no NVRTC here", 77);
    auto const scratch = base::temporary_directory::make("kiln-bench-run").value();
    s.cache = scratch.path() / "cache";
    ::setenv("KILN_CACHE_DIR", s.cache.c_str(), 1);
    ::setenv("CUDA_CACHE_DISABLE", "1", 1);  // NVRTC's own cache is off throughout
    std::error_code failed;
    s.program = {std::filesystem::read_symlink("/proc/self/exe", failed).native(), "--child", tools.nvrtc};
    s.includes = tools.toolkit_includes;
    std::printf("%-58s %10s %10s %9s\n", "ms, the least", "without", "kiln run", "ratio");
    for (auto const& [name, measure] : parts) {
        if (chosen.empty() || std::ranges::find(chosen, name) != chosen.end()) measure(s);
    }
    return 0;
}
