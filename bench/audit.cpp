// SPDX-License-Identifier: Apache-2.0
//
// What `kiln audit` costs the program it watches, and what a report costs afterwards. With a GPU, the program bare and audited in
// turn, and the median of what each pair differs by:
//   1. a launch of an empty kernel;
//   2. a training step in PyTorch, where there is one: of small kernels, and of large ones;
//   3. the beginning: a process that only makes a context;
//   4. how many bytes a launch leaves.
// Without one only this: how long recordings of so many launches are read and judged, and in how much memory.
// Usage: bench_audit [--rounds N] [--launches N] [--quick] [--only gpu|report]
#include "audit/long_recording.hpp"

#include "audit/recording.hpp"
#include "base/clock.hpp"
#include "base/files.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern char** environ;

namespace {

using namespace kiln;
using words = std::vector<std::string>;

[[noreturn]] void give_up(std::string const& why, int status = 1) {
    std::fprintf(stderr, "bench_audit: %s\n", why.c_str());
    std::exit(status);
}

// ---- the programs that are measured: each prints microseconds, one number per line

constexpr char const* empty_kernel =
    ".version 6.3\n.target sm_60\n.address_size 64\n.visible .entry nothing() { ret; }\n";

// A driver without a header of CUDA's: what is called has plain types.
class driver {
public:
    driver() : library_{::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)} {}
    [[nodiscard]] bool is_there() const { return library_ != nullptr; }
    template <class Function>
    [[nodiscard]] Function find(char const* name) const {
        return reinterpret_cast<Function>(::dlsym(library_, name));
    }
    template <class... Arguments>
    void call(char const* name, Arguments... arguments) const {
        auto* const function = find<int (*)(Arguments...)>(name);
        if (int const status = function == nullptr ? -1 : function(arguments...); status != 0)
            give_up(fmt::format("{}: {}", name, status), name == std::string_view{"cuInit"} ? 77 : 1);
    }

private:
    void* library_;
};

int launch_and_tell(int times) {
    driver const cuda;
    if (!cuda.is_there()) return 77;
    void *context = nullptr, *module = nullptr, *kernel = nullptr;
    cuda.call("cuInit", 0u);
    cuda.call("cuDevicePrimaryCtxRetain", &context, 0);
    cuda.call("cuCtxSetCurrent", context);
    if (times == 0) return 0;
    cuda.call("cuModuleLoadData", &module, empty_kernel);
    cuda.call("cuModuleGetFunction", &kernel, module, "nothing");
    using launch_call =
        int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
    auto* const launch = cuda.find<launch_call>("cuLaunchKernel");
    auto const many = [&](int n) {
        for (int i = 0; i < n; ++i)
            if (launch(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr) != 0) give_up("a launch failed");
        cuda.call("cuCtxSynchronize");
    };
    many(200);
    double best = 1e18;
    for (int round = 0; round < 5; ++round) {
        base::stopwatch const watch;
        many(times);
        best = std::min(best, static_cast<double>(watch.ns()) / 1000 / times);
    }
    std::printf("%.4f\n", best);
    return 0;
}

// Steps of small kernels, then of large ones.
constexpr char const* training = R"(
import time, torch
def step_of(width, batch, layers, kind, steps):
    net = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(layers)]).to("cuda", kind)
    best = torch.optim.SGD(net.parameters(), lr=1e-3)
    data = torch.randn(batch, width, device="cuda", dtype=kind)
    def step():
        best.zero_grad()
        net(data).square().mean().backward()
        best.step()
    for _ in range(5): step()
    least = 1e9
    for _ in range(5):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(steps): step()
        torch.cuda.synchronize()
        least = min(least, (time.perf_counter() - begin) / steps)
    print(least * 1e6)
step_of(64, 32, 16, torch.float32, 60)
step_of(8192, 8192, 4, torch.bfloat16, 5)
)";

// ---- processes

struct ended {
    double ms = 0, cpu_s = 0, peak_mib = 0;
    int status = 0;
    std::vector<double> told;
};

ended run(words const& command) {
    base::file_descriptor const output{::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)};
    std::vector<char*> arguments;
    for (auto const& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_adddup2(&files, output.get(), STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    base::stopwatch const watch;
    pid_t pid = 0;
    int const why = ::posix_spawnp(&pid, arguments.front(), &files, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&files);
    if (why != 0) give_up(fmt::format("{} cannot be started", command.front()));
    ended out;
    ::rusage used{};
    ::wait4(pid, &out.status, 0, &used);
    out.ms = watch.ms();
    auto const seconds = [](::timeval t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    out.cpu_s = seconds(used.ru_utime) + seconds(used.ru_stime);
    out.peak_mib = static_cast<double>(used.ru_maxrss) / 1024;
    std::string text(1 << 16, '\0');
    auto const size = ::pread(output.get(), text.data(), text.size(), 0);
    text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    for (char const* at = text.c_str(); *at != '\0';) {
        char* end = nullptr;
        auto const number = std::strtod(at, &end);
        if (end == at) break;
        out.told.push_back(number);
        at = end + 1;
    }
    return out;
}

struct settings {
    int rounds = 9;
    int launches = 20000;
    std::uint64_t most = 10'000'000;
    std::string kiln, own;
    std::filesystem::path scratch;
};

words audited(settings const& s, words const& program, std::string const& keep = {}) {
    words out{s.kiln, "audit"};
    if (!keep.empty()) out.insert(out.end(), {"--keep", keep});
    out.push_back("--");
    out.insert(out.end(), program.begin(), program.end());
    return out;
}

double median(std::vector<double> all) {
    if (all.empty()) return std::nan("");
    std::ranges::sort(all);
    return all[all.size() / 2];
}

void show(std::string const& what, double bare, double with, double differ, char const* unit) {
    std::printf("%-52s %10.3f %10.3f %+10.3f %s (%+.1f %%)\n", what.c_str(), bare, with, differ, unit,
                100 * differ / bare);
    std::fflush(stdout);
}

// One row for each number that the program prints.
bool measure_pairs(settings const& s, words const& program, int rounds, words const& rows) {
    std::vector<std::vector<double>> bare(rows.size()), with(rows.size()), differ(rows.size());
    for (int i = 0; i < rounds; ++i) {
        auto const a = run(program), b = run(audited(s, program));
        if (a.told.size() != rows.size() || b.told.size() != rows.size()) return false;
        for (std::size_t k = 0; k < rows.size(); ++k) {
            bare[k].push_back(a.told[k]);
            with[k].push_back(b.told[k]);
            differ[k].push_back(b.told[k] - a.told[k]);
        }
    }
    for (std::size_t k = 0; k < rows.size(); ++k)
        show(rows[k], median(bare[k]), median(with[k]), median(differ[k]), "us");
    return true;
}

void measure_beginning(settings const& s) {
    words const program{s.own, "--child", "0"};
    std::vector<double> bare, with, differ;
    for (int i = 0; i < s.rounds; ++i) {
        bare.push_back(run(program).ms);
        with.push_back(run(audited(s, program)).ms);
        differ.push_back(with.back() - bare.back());
    }
    show("a process that only makes a context, with the report", median(bare), median(with), median(differ), "ms");
}

void measure_bytes(settings const& s) {
    auto const keep = s.scratch / "kept";
    (void)run(audited(s, {s.own, "--child", std::to_string(s.launches)}, keep.native()));
    auto const read = audit::read_recording(keep);
    if (!read) return;
    std::uint64_t bytes = 0, kernels = 0, set_up = 0;
    for (auto const& p : read.value().processes) {
        kernels += p.kernels.size();
        set_up = std::max(set_up, p.about.set_up);
    }
    for (auto const& entry : std::filesystem::directory_iterator{keep}) bytes += entry.file_size();
    std::printf("%-52s %10.1f of %llu launches\n", "bytes in the recording for each launch",
                static_cast<double>(bytes) / static_cast<double>(std::max<std::uint64_t>(1, kernels)),
                static_cast<unsigned long long>(kernels));
    std::printf("%-52s %10.1f ms\n", "the recorder's own beginning, as it says", static_cast<double>(set_up) * 1e-6);
    std::fflush(stdout);
}

void measure_reports(settings const& s) {
    std::printf("%-52s %10s %10s %10s %10s\n", "read, judged, reported", "s", "CPU s", "MiB", "page MiB");
    for (std::uint64_t launches : {100'000ull, 1'000'000ull, 10'000'000ull}) {
        if (launches > s.most) break;
        auto const place = s.scratch / "long";
        auto const page = s.scratch / "page.html";
        auto const made = bench::write_long_recording(place, launches);
        auto const done = run({s.kiln, "audit", "report", place.native(), "-o", page.native()});
        std::error_code none;
        std::printf("%-52s %10.2f %10.2f %10.0f %10.2f\n",
                    fmt::format("{} launches, {} records, {} MiB", launches, made.records, made.bytes >> 20).c_str(),
                    done.ms / 1000, done.cpu_s, done.peak_mib,
                    static_cast<double>(std::filesystem::file_size(page, none)) / (1 << 20));
        std::fflush(stdout);
        std::filesystem::remove_all(place, none);
        if (done.status != 0) give_up(fmt::format("kiln audit report ended with {}", done.status));
    }
}

}  // namespace

int main(int argc, char** argv) {
    words arguments{argv + 1, argv + argc};
    if (arguments.size() == 2 && arguments.front() == "--child") return launch_and_tell(std::stoi(arguments.back()));
    settings s;
    std::string only;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        bool const has_value = i + 1 < arguments.size();
        if (arguments[i] == "--rounds" && has_value) s.rounds = std::stoi(arguments[++i]);
        else if (arguments[i] == "--launches" && has_value) s.launches = std::stoi(arguments[++i]);
        else if (arguments[i] == "--only" && has_value) only = arguments[++i];
        else if (arguments[i] == "--quick") s.rounds = 3, s.launches = 5000, s.most = 1'000'000;
        else give_up("usage: bench_audit [--rounds N] [--launches N] [--quick] [--only gpu|report]", 2);
    }
    std::error_code failed;
    auto const own = std::filesystem::read_symlink("/proc/self/exe", failed);
    auto const beside = own.parent_path() / "kiln",
               installed = own.parent_path().parent_path().parent_path() / "bin" / "kiln";
    s.own = own.native();
    s.kiln = (::access(beside.c_str(), X_OK) == 0 ? beside : installed).native();
    auto const scratch = base::temporary_directory::make("kiln-bench-audit").value();
    s.scratch = scratch.path();
    if (only != "report") {
        words const launches{s.own, "--child", std::to_string(s.launches)};
        if (WEXITSTATUS(run({s.own, "--child", "0"}).status) == 77) {
            std::printf("no GPU here: what a program pays is not measured\n");
        } else {
            std::printf("%-52s %10s %10s %10s\n", "median", "bare", "audited", "more");
            measure_pairs(s, launches, s.rounds, {"an empty launch"});
            measure_beginning(s);
            measure_bytes(s);
            if (!measure_pairs(
                    s, {"python3", "-c", training}, std::max(3, s.rounds / 3),
                    {"PyTorch, a training step of small kernels", "PyTorch, a training step of large kernels"}))
                std::printf("PyTorch: not here\n");
        }
    }
    if (only != "gpu") measure_reports(s);
    return 0;
}
