// SPDX-License-Identifier: Apache-2.0
//
// The store's speed table: a hit on disk and in a bundle in a process that has just started, at 10 and at 10,000
// entries, and the cost of opening a bundle. A plain program: each sample is a process of its own.
//
//     bench_store [SAMPLES]          scratch files go to TMPDIR
#include "store/store.hpp"
#include "store/maintenance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <malloc.h>
#include <random>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace {

using namespace kiln;
namespace fs = std::filesystem;

constexpr std::size_t artifact_bytes = 50'000;

store::address address_of(unsigned n) {
    return {.family = base::sha256_of(fmt::format("f{}", n)),
            .request = base::sha256_of(fmt::format("r{}", n)),
            .key = base::sha256_of(fmt::format("k{}", n))};
}

// About as compressible as a cubin: to a half.
store::entry entry_of(unsigned n, std::size_t size) {
    store::entry e;
    e.about = {.at = address_of(n),
               .name = fmt::format("unit_{}", n),
               .target = "sm_90",
               .kind = "cubin",
               .toolchain = "nvrtc 13.0 31b78904841e6706",
               .producer = "kiln bench",
               .licence = {}};
    e.payload.resize(size);
    std::minstd_rand random{n + 1};
    for (std::size_t i = 0; i < size; ++i)
        e.payload[i] = static_cast<std::byte>(i % 64 < 28 ? random() >> 8 : i / 64 % 16);
    return e;
}

double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v.empty() ? 0 : v[v.size() / 2];
}

// In the child: everything from making the store to holding the checked bytes.
int sample(std::string const& kind, fs::path const& where, unsigned n) {
    event_log log;
    base::stopwatch const watch;
    store::store_options o;
    if (kind == "disk") o.disk = store::disk_options{.root = where};
    else o.bundles = {where};
    store::store store{o, log};
    auto const found = store.find(address_of(n), {.target = "sm_90", .kind = "cubin", .toolchain = {}});
    auto const us = static_cast<double>(watch.ns()) * 1e-3;
    if (!found || found.hit->payload.size() != artifact_bytes) return 1;
    // The second one, of another key: what a hit costs once everything is open.
    base::stopwatch const again;
    auto const second = store.find(address_of(n + 1), {.target = "sm_90", .kind = "cubin", .toolchain = {}});
    fmt::print("{} {}\n", us, static_cast<double>(again.ns()) * 1e-3);
    std::fflush(stdout);
    ::_exit(second ? 0 : 1);  // the end of the process is not measured
}

std::pair<double, double> run_child(char const* program, std::string kind, std::string where, unsigned n) {
    int out[2];
    if (::pipe(out) != 0) std::abort();
    auto number = std::to_string(n);
    std::string self = program, flag = "--sample";
    char* argv[] = {self.data(), flag.data(), kind.data(), where.data(), number.data(), nullptr};
    ::posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    ::pid_t pid = 0;
    if (::posix_spawn(&pid, program, &actions, nullptr, argv, environ) != 0) std::abort();
    ::close(out[1]);
    char text[128] = {};
    auto const size = ::read(out[0], text, sizeof text - 1);
    ::close(out[0]);
    int status = 0;
    ::waitpid(pid, &status, 0);
    double first = 0, second = 0;
    if (size <= 0 || status != 0 || std::sscanf(text, "%lf %lf", &first, &second) != 2) {
        fmt::print(stderr, "a sample failed: {} {}\n", kind, where);
        std::exit(1);
    }
    return {first, second};
}

void row(std::string_view what, double value, std::string_view unit, std::string_view limit) {
    fmt::print("{:<58} {:>10.1f} {:<4} {}\n", what, value, unit, limit);
}

void fill_disk(fs::path const& root, unsigned count) {
    store::disk_tier tier{{.root = root}, std::make_shared<store::event_outlet>(nullptr)};
    for (unsigned i = 0; i < count; ++i) {
        tier.put(std::make_shared<store::entry>(entry_of(i, i < 200 ? artifact_bytes : 2000))).value();
    }
}

void fill_bundle(fs::path const& file, unsigned count) {
    store::bundle_writer writer;
    for (unsigned i = 0; i < count; ++i) writer.add(entry_of(i, i < 200 ? artifact_bytes : 2000)).value();
    writer.write(file).value();
}

void open_cost(fs::path const& file, std::string_view what) {
    std::vector<double> times;
    for (int i = 0; i < 200; ++i) {
        base::stopwatch const watch;
        auto const bundle = store::bundle_tier::open(file).value();
        times.push_back(static_cast<double>(watch.ns()) * 1e-3);
    }
    auto const before = ::mallinfo2().uordblks;
    auto const bundle = store::bundle_tier::open(file).value();
    auto const opened = ::mallinfo2().uordblks;
    for (unsigned i = 0; i < bundle->info().entries; ++i) (void)bundle->list(address_of(i).family, {});
    auto const used = ::mallinfo2().uordblks;
    row(fmt::format("open a bundle of {}: time", what), median(times), "us", "limit 1000");
    row(fmt::format("open a bundle of {}: memory", what), static_cast<double>(opened - before) / 1024, "KiB",
        "limit 1024");
    row(fmt::format("  after every entry was looked up"), static_cast<double>(used - before) / 1024, "KiB",
        "limit 1024");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 5 && std::string_view{argv[1]} == "--sample") {
        return sample(argv[2], argv[3], static_cast<unsigned>(std::atoi(argv[4])));
    }
    auto const samples = argc > 1 ? std::max(1, std::atoi(argv[1])) : 101;
    auto const scratch = base::temporary_directory::make("kiln-bench").value();
    for (std::string const kind : {"disk", "bundle"}) {
        std::vector<double> at_ten;
        for (unsigned const count : {10u, 10'000u}) {
            auto const where = scratch.path() / fmt::format("{}-{}{}", kind, count, kind == "bundle" ? ".kiln" : "");
            kind == "disk" ? fill_disk(where, count) : fill_bundle(where, count);
            std::vector<double> first, second;
            for (int i = 0; i < samples; ++i) {
                auto const [a, b] = run_child("/proc/self/exe", kind, where, static_cast<unsigned>(i) % 8);
                first.push_back(a);
                second.push_back(b);
            }
            auto const limit = kind == "disk" ? "limit 500" : "limit 100";
            row(fmt::format("{} hit, 50 KB, {} entries: first, store made and opened", kind, count), median(first),
                "us", limit);
            row(fmt::format("{} hit, 50 KB, {} entries: second", kind, count), median(second), "us", limit);
            if (at_ten.empty()) at_ten = {median(first), median(second)};
            else
                row(fmt::format("  growth from 10 to 10,000: first"), 100 * (median(first) / at_ten[0] - 1), "%",
                    "limit 25");
        }
    }
    auto const thousand = scratch.path() / "thousand.kiln";
    fill_bundle(thousand, 1000);
    open_cost(scratch.path() / "bundle-10.kiln", "10");
    open_cost(thousand, "1,000");
    open_cost(scratch.path() / "bundle-10000.kiln", "10,000");
    return 0;
}
