// SPDX-License-Identifier: Apache-2.0
//
// The primitives beside plain CUB compiled by nvcc, in one process, on the same data; then host time per call and the cost
// of an operator nobody has seen. Needs a GPU. `bench_prims [--quick] [--json FILE]`; without libkiln_bench_cub.so (no nvcc at
// build time) CUB's columns are empty.
#include "base/clock.hpp"
#include "base/files.hpp"
#include "prims/cub_reference.hpp"
#include "prims/specialisation.hpp"

#include <kiln/prims.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <functional>
#include <numeric>
#include <unistd.h>

namespace {

using namespace kiln;
using clock_watch = base::stopwatch;

struct options {
    bool quick = false;
    std::string json;
};

nlohmann::json rows = nlohmann::json::array();

std::filesystem::path own_folder() { return std::filesystem::canonical("/proc/self/exe").parent_path(); }

using cub_function = int (*)(int, cub_call const*);
cub_function load_cub() {
    auto const file = own_folder() / "libkiln_bench_cub.so";
    void* const library = ::dlopen(file.c_str(), RTLD_NOW);
    if (library == nullptr) std::printf("no CUB beside it: %s\n", ::dlerror());
    return library == nullptr ? nullptr : reinterpret_cast<cub_function>(::dlsym(library, "cub_run"));
}

// Everything both sides read and write, at the largest size.
struct arena {
    std::size_t most;
    stream on;
    device_memory keys, values, keys_out, values_out, mask, offsets, count, scratch;

    explicit arena(std::size_t n)
        : most{n},
          on{stream::make().value()},
          keys{device_memory::make(n * 8).value()},
          values{device_memory::make(n * 8).value()},
          keys_out{device_memory::make(n * 8).value()},
          values_out{device_memory::make(n * 8).value()},
          mask{device_memory::make(n).value()},
          offsets{device_memory::make((n + 1) * 4).value()},
          count{device_memory::make(256).value()},
          scratch{device_memory::make(n * 16 + (std::size_t{64} << 20)).value()} {}

    template <class T, class Make>
    void fill(device_memory& to, std::size_t n, Make make) {
        std::vector<T> host(n);
        for (std::size_t i = 0; i < n; ++i) host[i] = static_cast<T>(make(i));
        to.upload_sync(on, host).value();
    }
};

std::uint64_t mixed(std::uint64_t i) {
    i = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9U;
    i = (i ^ (i >> 27)) * 0x94d049bb133111ebU;
    return i ^ (i >> 31);
}

// Milliseconds per call, queued back to back: the best of several batches of at least 2 ms.
double device_ms(stream const& on, std::function<void()> const& call) {
    auto begin = device_event::make().value();
    auto end = device_event::make().value();
    auto const batch = [&](int calls) {
        begin.record(on).value();
        for (int i = 0; i < calls; ++i) call();
        end.record(on).value();
        end.wait_sync().value();
        return elapsed_ms(begin, end).value();
    };
    batch(3);
    int const calls = std::clamp(static_cast<int>(6.0 / std::max(batch(3), 1e-3)), 1, 200);
    std::vector<double> times;
    for (int i = 0; i < 9; ++i) times.push_back(batch(calls) / calls);
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

// Microseconds the caller is busy for.
double host_us(stream const& on, std::function<void()> const& call) {
    for (int i = 0; i < 50; ++i) call();
    on.wait_sync().value();
    double best = 1e9;
    for (int round = 0; round < 20; ++round) {
        clock_watch const watch;
        for (int i = 0; i < 100; ++i) call();
        best = std::min(best, watch.ms() * 10);
        on.wait_sync().value();
    }
    return best;
}

struct contender {
    std::string name;
    int cub;
    std::function<void(arena&, std::size_t)> prepare;
    std::function<void(arena&, std::size_t)> run;  // ours
    void const* (*second)(arena&) = [](arena& a) -> void const* { return a.values.get(); };
    std::size_t segment = 0;
};

void row(std::string const& what, std::string const& name, std::size_t n, double ours, double cub, char const* unit) {
    std::printf("%-8s %-34s %11zu %12.4f %12.4f %s", what.c_str(), name.c_str(), n, ours, cub, unit);
    if (cub > 0) std::printf("  %5.2fx", cub / ours);
    std::printf("\n");
    std::fflush(stdout);
    rows.push_back({{"what", what}, {"name", name}, {"n", n}, {"kiln", ours}, {"cub", cub}, {"unit", unit}});
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

void compare(arena& a, cub_function cub, contender const& c, std::size_t n) {
    c.prepare(a, n);
    auto const theirs = cub_arguments(a, c, n);
    auto const run_cub = [&] {
        if (int const status = cub(c.cub, &theirs); status != 0)
            throw std::runtime_error{c.name + ": CUB says " + std::to_string(status)};
    };
    double const ours = device_ms(a.on, [&] { c.run(a, n); });
    double const other = cub != nullptr ? device_ms(a.on, run_cub) : 0;
    // Once more in the other order, and the better of each: clocks drift.
    double const other_again = cub != nullptr ? device_ms(a.on, run_cub) : 0;
    double const ours_again = device_ms(a.on, [&] { c.run(a, n); });
    row("device", c.name, n, std::min(ours, ours_again), std::min(other, other_again), "ms");
}

void random_i32(arena& a, std::size_t n) {
    a.fill<std::int32_t>(a.keys, n, mixed);
    a.fill<std::int32_t>(a.values, n, [](std::size_t i) { return i; });
}
void random_u64(arena& a, std::size_t n) {
    a.fill<std::uint64_t>(a.keys, n, mixed);
    a.fill<std::int32_t>(a.values, n, [](std::size_t i) { return i; });
}
void random_f64(arena& a, std::size_t n) {
    a.fill<double>(a.keys, n, [](std::size_t i) { return static_cast<double>(mixed(i) % 1000); });
}
void half_mask(arena& a, std::size_t n) {
    a.fill<std::uint8_t>(a.mask, n, [](std::size_t i) { return mixed(i) & 1; });
}
template <class K>
void runs_of_4(arena& a, std::size_t n) {
    a.fill<K>(a.keys, n, [](std::size_t i) { return i / 4; });
    a.fill<std::int32_t>(a.values, n, [](std::size_t i) { return i; });
}
template <class K>
void sorted_and_queries(arena& a, std::size_t n) {
    a.fill<K>(a.keys, n, [](std::size_t i) { return i * 7; });
    a.fill<K>(a.values, n, [n](std::size_t i) { return mixed(i) % (n * 7); });
}
template <class K>
void sorted_and_sorted_queries(arena& a, std::size_t n) {
    a.fill<K>(a.keys, n, [](std::size_t i) { return i * 7; });
    a.fill<K>(a.values, n, [](std::size_t i) { return i * 7 + 3; });
}
auto segments_of(std::size_t length) {
    return [length](arena& a, std::size_t n) {
        random_f64(a, n);
        a.fill<std::int32_t>(a.offsets, n / length + 1, [length](std::size_t i) { return i * length; });
    };
}

template <class T>
contender scan(std::string name, int cub, op const& by) {
    return {std::move(name), cub, sizeof(T) == 4 ? random_i32 : random_u64,
            [h = exclusive_scan<T>(by).value()](arena& a, std::size_t n) {
                h(a.on, {a.keys.as<T>(), n}, {a.keys_out.as<T>(), n}).value();
            }};
}
template <class T>
contender reduction(std::string name, int cub, op const& by) {
    return {std::move(name), cub, std::is_same_v<T, double> ? random_f64 : random_i32,
            [h = reduce<T>(by).value()](arena& a, std::size_t n) {
                h(a.on, {a.keys.as<T>(), n}, a.keys_out.as<T>()).value();
            }};
}
template <class Index>
contender compaction(std::string name, int cub) {
    return {std::move(name), cub, half_mask,
            [h = select_indices<Index>().value()](arena& a, std::size_t n) {
                h(a.on, {a.mask.as<std::uint8_t>(), n}, a.keys_out.as<Index>(), a.count.as<std::uint64_t>()).value();
            },
            [](arena& a) -> void const* { return a.mask.get(); }};
}
contender segmented(std::string name, int cub, op const& by, std::size_t length) {
    return {std::move(name),
            cub,
            segments_of(length),
            [h = segmented_reduce<double>(by).value(), length](arena& a, std::size_t n) {
                h(a.on, {a.keys.as<double>(), n},
                  device_span<std::int32_t>{a.offsets.as<std::int32_t>(), n / length + 1},
                  {a.keys_out.as<double>(), n / length})
                    .value();
            },
            [](arena& a) -> void const* { return a.offsets.get(); },
            length};
}
template <class K>
contender bound(std::string name, int cub, result<bounds_handle<K>> made,
                std::function<void(arena&, std::size_t)> prepare) {
    return {std::move(name), cub, std::move(prepare), [h = std::move(made).value()](arena& a, std::size_t n) {
                h(a.on, {a.keys.as<K>(), n}, {a.values.as<K>(), n},
                  device_span<std::uint32_t>{a.keys_out.as<std::uint32_t>(), n})
                    .value();
            }};
}
template <class K, class Handle>
contender pairs(std::string name, int cub, Handle h) {
    return {std::move(name), cub, sizeof(K) == 4 ? random_i32 : random_u64, [h](arena& a, std::size_t n) {
                h(a.on, {.keys_in = {a.keys.as<K>(), n},
                         .keys_out = a.keys_out.as<K>(),
                         .values_in = a.values.as<std::int32_t>(),
                         .values_out = a.values_out.as<std::int32_t>()})
                    .value();
            }};
}
template <class K>
contender unique(std::string name, int cub) {
    return {std::move(name), cub, runs_of_4<K>,
            [h = unique_by_key<K, std::int32_t>().value()](arena& a, std::size_t n) {
                h(a.on,
                  {.keys_in = {a.keys.as<K>(), n},
                   .keys_out = a.keys_out.as<K>(),
                   .values_in = a.values.as<std::int32_t>(),
                   .values_out = a.values_out.as<std::int32_t>()},
                  a.count.as<std::uint64_t>())
                    .value();
            }};
}

std::vector<contender> specs() {
    using i32 = std::int32_t;
    using i64 = std::int64_t;
    using u64 = std::uint64_t;
    std::vector<contender> out;
    out.push_back(scan<i32>("exclusive_scan_i32", cub_exclusive_scan_i32, plus));
    out.push_back(scan<i64>("exclusive_scan_i64", cub_exclusive_scan_i64, plus));
    out.push_back(compaction<i32>("select_i32", cub_select_i32));
    out.push_back(compaction<i64>("select_i64", cub_select_i64));
    out.push_back(reduction<double>("reduce_sum_f64", cub_reduce_sum_f64, plus));
    out.push_back(reduction<i32>("reduce_sum_i32", cub_reduce_sum_i32, plus));
    out.push_back(segmented("segmented_reduce_sum_f64", cub_segmented_reduce_sum_f64, plus, 1024));
    out.push_back(segmented("segmented_reduce_min_f64", cub_segmented_reduce_min_f64, kiln::min, 1024));
    out.push_back(segmented("segmented_reduce_max_f64", cub_segmented_reduce_max_f64, kiln::max, 1024));
    out.push_back(bound<i32>("lower_bound_i32", cub_lower_bound_i32, lower_bound<i32>(), sorted_and_queries<i32>));
    out.push_back(bound<u64>("lower_bound_u64", cub_lower_bound_u64, lower_bound<u64>(), sorted_and_queries<u64>));
    out.push_back(bound<i32>("upper_bound_i32", cub_upper_bound_i32, upper_bound<i32>(), sorted_and_queries<i32>));
    out.push_back(bound<u64>("upper_bound_u64", cub_upper_bound_u64, upper_bound<u64>(), sorted_and_queries<u64>));
    out.push_back(pairs<i32>("radix_sort_i32_i32", cub_radix_sort_i32_i32, radix_sort<i32, i32>().value()));
    out.push_back(pairs<u64>("radix_sort_u64_i32", cub_radix_sort_u64_i32, radix_sort<u64, i32>().value()));
    out.push_back(pairs<u64>("merge_sort_u64_i32", cub_merge_sort_u64_i32, merge_sort<u64, i32>().value()));
    out.push_back(unique<i32>("unique_by_key_i32_i32", cub_unique_by_key_i32_i32));
    out.push_back(unique<u64>("unique_by_key_u64_i32", cub_unique_by_key_u64_i32));
    op const saturating{"a + b > 1000000 ? 1000000 : a + b"};
    out.push_back(scan<i32>("exclusive_scan_i32, user operator", cub_scan_i32_functor, saturating));
    out.push_back(reduction<i32>("reduce_i32, user operator", cub_reduce_i32_functor, saturating));
    contender chosen{"select_if_i32, user operator", cub_select_if_i32, random_i32,
                     [h = select_if<i32>(op{"a % 3 == 0"}).value()](arena& a, std::size_t n) {
                         h(a.on, {a.keys.as<i32>(), n}, a.keys_out.as<i32>(), a.count.as<std::uint64_t>()).value();
                     }};
    out.push_back(std::move(chosen));
    return out;
}

std::vector<contender> special_shapes() {
    std::vector<contender> out;
    for (std::size_t const length : {8, 16, 32, 64, 256, 4096}) {
        out.push_back(
            segmented("segmented sum, of " + std::to_string(length), cub_segmented_reduce_sum_f64, plus, length));
    }
    out.push_back(bound<std::int32_t>("lower_bound_i32, sorted queries", cub_lower_bound_i32,
                                      lower_bound<std::int32_t>(), sorted_and_sorted_queries<std::int32_t>));
    return out;
}

// A new engine with an empty cache, as in a new process: from the call to a handle that can be launched.
void cold_operators() {
    auto const folder = base::temporary_directory::make("kiln-bench").value();
    int number = 0;
    auto const measure = [&](std::string const& name, auto make) {
        op const by = op{"a < b ? a : b + " + std::to_string(++number)};
        op const condition{"a % " + std::to_string(number + 7) + " == 0"};
        op const order{"a - " + std::to_string(number) + " < b - " + std::to_string(number)};
        for (auto const* const state : {"cold", "disk"}) {
            engine fresh{{.settings = {{"KILN_CACHE_DIR", (folder.path() / name).native()}}}};
            clock_watch const watch;
            auto const made = make(fresh, by, condition, order);
            double const ms = watch.ms();
            if (!made) throw error{made.error()};
            fresh.flush_sync();
            row(state, name, 0, ms, 0, "ms");
        }
    };
    auto const with = [](engine& e) { return prim_options{.engine = &e}; };
    measure("scan", [&](engine& e, op const& by, op const&, op const&) { return exclusive_scan<int>(by, with(e)); });
    measure("reduce", [&](engine& e, op const& by, op const&, op const&) { return reduce<int>(by, with(e)); });
    measure("segmented reduce",
            [&](engine& e, op const& by, op const&, op const&) { return segmented_reduce<int>(by, with(e)); });
    measure("select if", [&](engine& e, op const&, op const& c, op const&) { return select_if<int>(c, with(e)); });
    measure("lower bound", [&](engine& e, op const&, op const&, op const& o) { return lower_bound<int>(o, with(e)); });
    measure("merge sort",
            [&](engine& e, op const&, op const&, op const& o) { return merge_sort<int, int>(o, with(e)); });
    measure("unique by key",
            [&](engine& e, op const&, op const&, op const& o) { return unique_by_key<int, int>(o, with(e)); });
    measure("built in: scan i32",
            [&](engine& e, op const&, op const&, op const&) { return exclusive_scan<int>(plus, with(e)); });
    measure("built in: radix sort", [&](engine& e, op const&, op const&, op const&) {
        return radix_sort<int, int>(sort_order::ascending, with(e));
    });
}

int run(options const& how) {
    auto const info = device(0).value();
    std::printf("%s, driver %d, %d multiprocessors\n", info.name.c_str(), info.driver_version, info.multiprocessors);
    std::printf("%-8s %-34s %11s %12s %12s\n", "what", "name", "n", "Kiln", "CUB");
    cold_operators();
    auto const cub = load_cub();
    arena a{std::size_t{1} << (how.quick ? 20 : 28)};
    auto const all = specs();
    for (auto const& c : all) {
        for (int const log : {20, 24, 26, 28}) {
            if ((std::size_t{1} << log) <= a.most) compare(a, cub, c, std::size_t{1} << log);
        }
    }
    std::size_t const middle = std::min(a.most, std::size_t{1} << 26);
    for (auto const& c : special_shapes()) compare(a, cub, c, middle);
    for (auto const& c : all) {
        c.prepare(a, 2048);
        std::size_t const n = c.segment > 0 ? 2048 : 1000;
        auto const theirs = cub_arguments(a, c, n);
        double const ours = host_us(a.on, [&] { c.run(a, n); });
        row("host", c.name, n, ours, cub != nullptr ? host_us(a.on, [&] { cub(c.cub, &theirs); }) : 0, "us");
    }
    if (!how.json.empty()) std::ofstream{how.json} << rows.dump(1) << "\n";
    return 0;
}

}  // namespace

int main(int count, char** arguments) try {
    ::setenv("CUDA_CACHE_DISABLE", "1", 1);  // NVRTC and the driver keep caches of their own
    options how;
    for (int i = 1; i < count; ++i) {
        std::string_view const word{arguments[i]};
        if (word == "--quick") how.quick = true;
        else if (word == "--json" && i + 1 < count) how.json = arguments[++i];
        else return std::fprintf(stderr, "usage: bench_prims [--quick] [--json FILE]\n"), 2;
    }
    if (auto const all = kiln::devices(); !all) return std::printf("skipped: %s\n", all.error().what()), 77;
    return run(how);
} catch (kiln::error const& e) {
    std::fprintf(stderr, "bench_prims: %s\n%s\n", e.what(), e.log().c_str());
    return 1;
} catch (std::exception const& e) {
    std::fprintf(stderr, "bench_prims: %s\n", e.what());
    return 1;
}
