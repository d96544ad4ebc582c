// SPDX-License-Identifier: Apache-2.0
//
// The primitives beside plain CUB compiled by nvcc, in one process, on the same data; host time per call; from a call to its
// first result in a new process; everything from source. `kiln bench prims --help` tells the rest. Without
// libkiln_bench_cub.so (no nvcc at build time) CUB's columns are empty.
#include "base/clock.hpp"
#include "prims/contenders.hpp"
#include "prims/cub_reference.hpp"
#include "prims/first_call.hpp"
#include "support/device_time.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fmt/format.h>
#include <future>

namespace {

using namespace kiln;
using namespace kiln::bench;

constexpr char usage[] =
    "usage: bench_prims [--quick] [--only PART]... [--name TEXT] [--rounds N] [--json FILE] [--plot FILE.svg]\n"
    "  --quick       sizes up to 2^20\n"
    "  --only PART   source, first, device, types, shapes, host; may be repeated\n"
    "  --name TEXT   of device, types and host, only what has this in its name\n"
    "  --rounds N    processes per first call (3)\n"
    "  --json FILE   all numbers and goals\n"
    "  --plot FILE   throughput by CUB's, as SVG; a plot in text comes last anyway\n"
    "'source' needs no GPU. NVRTC's and the driver's own caches are off. Exit status 77: it cannot run here.\n";

struct options {
    bool quick = false;
    std::vector<std::string> only = {};
    std::string name = {};
    int rounds = 3;
    std::string json = {};
    std::string plot = {};
    [[nodiscard]] bool wants(std::string_view part) const {
        return only.empty() || std::ranges::find(only, part) != only.end();
    }
};

using cub_function = int (*)(int, cub_call const*);
cub_function load_cub() {
    auto const file = std::filesystem::canonical("/proc/self/exe").parent_path() / "libkiln_bench_cub.so";
    void* const library = ::dlopen(file.c_str(), RTLD_NOW);
    if (library == nullptr) std::printf("no CUB beside it: %s\n", ::dlerror());
    return library == nullptr ? nullptr : reinterpret_cast<cub_function>(::dlsym(library, "cub_run"));
}

// A few milliseconds each: there are many rows.
constexpr batches short_batches{.length_ms = 3, .most_calls = 200, .count = 7};

// Microseconds the caller is busy for.
double host_us(stream const& on, std::function<void()> const& call) {
    for (int i = 0; i < 50; ++i) call();
    on.wait_sync().value();
    double best = 1e9;
    for (int round = 0; round < 20; ++round) {
        base::stopwatch const watch;
        for (int i = 0; i < 100; ++i) call();
        best = std::min(best, watch.ms() * 10);
        on.wait_sync().value();
    }
    return best;
}

cub_call cub_arguments(arena& a, contender const& c, std::size_t n) {
    return {a.keys.get(),
            c.second(a),
            a.keys_out.get(),
            a.values_out.get(),
            a.count.get(),
            n,
            c.segment > 0 ? n / c.segment : 0,
            a.scratch.get(),
            a.scratch.size(),
            a.on.get()};
}

void compare(report& to, char const* what, arena& a, cub_function cub, contender const& c, std::size_t n) {
    c.prepare(a, n);
    auto const theirs = cub_arguments(a, c, n);
    auto const run_cub = [&] {
        if (int const status = cub(c.cub, &theirs); status != 0)
            throw std::runtime_error{c.name + ": CUB says " + std::to_string(status)};
    };
    // In turns, and the better of each: clocks drift.
    double ours = 1e9;
    double other = cub != nullptr ? 1e9 : 0;
    for (int round = 0; round < 3; ++round) {
        ours = std::min(ours, device_ms(
                                  a.on, [&] { c.run(a, n); }, short_batches));
        if (cub != nullptr) other = std::min(other, device_ms(a.on, run_cub, short_batches));
    }
    to.add({what, c.name, n, ours, other, "ms"});
}

void compare_on_host(report& to, arena& a, cub_function cub, contender const& c) {
    c.prepare(a, 2048);
    std::size_t const n = c.segment > 0 ? 2048 : 1000;
    auto const theirs = cub_arguments(a, c, n);
    double const ours = host_us(a.on, [&] { c.run(a, n); });
    double const other = cub != nullptr ? host_us(a.on, [&] { cub(c.cub, &theirs); }) : 0;
    to.add({"host", c.name, n, ours, other, "us"});
}

// Compiled side by side, then timed one after the other.
void compare_types(report& to, arena& a, cub_function cub, std::vector<planned> const& all) {
    std::vector<std::future<contender>> made;
    for (auto const& p : all) made.push_back(std::async(std::launch::async, p.make));
    for (auto& m : made) {
        auto const c = m.get();
        for (int const log : {20, 24, 26}) {
            // Structs are twice as wide as what the arena counts in.
            if ((std::size_t{2} << log) <= a.most) compare(to, "types", a, cub, c, std::size_t{1} << log);
        }
    }
}

template <class Named>
void keep_those_with(std::string const& name, std::vector<Named>& all) {
    std::erase_if(all, [&](Named const& c) { return c.name.find(name) == std::string::npos; });
}

void run_on_device(report& to, options const& how) {
    auto const cub = load_cub();
    arena a{std::size_t{1} << (how.quick ? 21 : 28)};
    auto all = how.wants("device") || how.wants("host") ? specs() : std::vector<contender>{};
    auto types = how.wants("types") ? every_type() : std::vector<planned>{};
    keep_those_with(how.name, all);
    keep_those_with(how.name, types);
    if (all.empty() && types.empty() && !how.name.empty())
        throw std::runtime_error{"nothing has '" + how.name + "' in its name"};
    for (auto const& c : all) {
        if (!how.wants("device")) break;
        for (int const log : {20, 24, 26, 28}) {
            if ((std::size_t{1} << log) <= a.most) compare(to, "device", a, cub, c, std::size_t{1} << log);
        }
    }
    compare_types(to, a, cub, types);
    std::size_t const middle = std::min(a.most / 2, std::size_t{1} << 26);
    if (how.wants("shapes")) {
        for (auto const& c : special_shapes()) compare(to, "shape", a, cub, c, middle);
    }
    if (how.wants("host")) {
        for (auto const& c : all) compare_on_host(to, a, cub, c);
    }
}

int run(options const& how) {
    auto const devices = kiln::devices();
    bool const source_alone = how.only == std::vector<std::string>{"source"};
    if (!devices && !source_alone) return std::printf("skipped: %s\n", devices.error().what()), 77;
    auto const target =
        devices ? arch::of_device(devices->front().major, devices->front().minor) : arch::of_device(9, 0);
    report to{devices ? fmt::format("{}, driver for CUDA {}.{}", devices->front().name,
                                    devices->front().driver_version / 1000, devices->front().driver_version % 1000 / 10)
                      : "no GPU"};
    if (how.wants("source")) measure_sources(to, target);
    if (how.wants("first")) measure_first_calls(to, how.rounds);
    bool const on_device = how.wants("device") || how.wants("types") || how.wants("shapes") || how.wants("host");
    if (on_device) run_on_device(to, how);
    if (how.wants("device")) to.print_plot();
    to.print_goals();
    if (!how.json.empty()) to.write_json(how.json);
    if (!how.plot.empty()) to.write_plot(how.plot);
    return 0;
}

}  // namespace

int main(int count, char** arguments) try {
    ::setenv("CUDA_CACHE_DISABLE", "1", 1);
    options how;
    for (int i = 1; i < count; ++i) {
        std::string_view const word{arguments[i]};
        bool const more = i + 1 < count;
        if (word == "--quick") how.quick = true;
        else if (word == "--only" && more) how.only.emplace_back(arguments[++i]);
        else if (word == "--name" && more) how.name = arguments[++i];
        else if (word == "--rounds" && more) how.rounds = std::max(1, std::atoi(arguments[++i]));
        else if (word == "--json" && more) how.json = arguments[++i];
        else if (word == "--plot" && more) how.plot = arguments[++i];
        else if (word == "--first" && i + 2 < count) return first_call(arguments[i + 1], std::atoi(arguments[i + 2]));
        else if (word == "--help" || word == "-h") return std::printf("%s", usage), 0;
        else return std::fprintf(stderr, "%s", usage), 2;
    }
    return run(how);
} catch (kiln::error const& e) {
    std::fprintf(stderr, "bench_prims: %s\n%s\n", e.what(), e.log().c_str());
    return 1;
} catch (std::exception const& e) {
    std::fprintf(stderr, "bench_prims: %s\n", e.what());
    return 1;
}
