// SPDX-License-Identifier: Apache-2.0
#include "prims/first_call.hpp"

#include "base/clock.hpp"
#include "base/files.hpp"
#include "prims/catalogue.hpp"
#include "prims/routes.hpp"
#include "prims/tally.hpp"

#include <kiln/prims/handles.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace kiln::bench {

namespace {

constexpr std::size_t items = 1 << 16;

struct call_data {
    stream on = stream::make().value();
    device_memory a = device_memory::make(items * 16).value();
    device_memory b = device_memory::make(items * 16).value();
    device_memory c = device_memory::make(items * 16).value();
    device_memory d = device_memory::make(items * 16).value();

    device_span<int const> in() const { return {a.as<int>(), items}; }
    device_span<int> out() const { return {b.as<int>(), items}; }
    device_span<tally const> tallies() const { return {a.as<tally>(), items}; }
    device_span<tally> tallies_out() const { return {b.as<tally>(), items}; }
    sort_arguments<tally, int> tallies_with_values() const {
        return {.keys_in = tallies(), .keys_out = b.as<tally>(), .values_in = c.as<int>(), .values_out = d.as<int>()};
    }
};

using first = std::function<void(call_data&, int)>;

std::string number(int seed) { return std::to_string(seed); }
op combining(int seed) { return op{"a < b ? a : b + " + number(seed)}; }
op ordering(int seed) { return op{"a - " + number(seed) + " < b - " + number(seed)}; }

void sorted(call_data& d, merge_sort_handle<int, int> const& h) {
    h(d.on, {.keys_in = d.in(), .keys_out = d.b.as<int>(), .values_in = d.c.as<int>(), .values_out = d.d.as<int>()})
        .value();
}

// Operators that no cache can have seen: the seed is in their text.
std::map<std::string, first> const& user_calls() {
    static std::map<std::string, first> const all{
        {"scan",
         [](call_data& d, int seed) { exclusive_scan<int>(combining(seed)).value()(d.on, d.in(), d.out()).value(); }},
        {"reduce",
         [](call_data& d, int seed) { reduce<int>(combining(seed)).value()(d.on, d.in(), d.b.as<int>()).value(); }},
        {"segmented reduce",
         [](call_data& d, int seed) {
             segmented_reduce<int>(combining(seed))
                 .value()(d.on, d.in(), device_span<int>{d.c.as<int>(), 65}, d.out())
                 .value();
         }},
        {"select if",
         [](call_data& d, int seed) {
             select_if<int>(op{"a % " + number(seed + 7) + " == 0"})
                 .value()(d.on, d.in(), d.b.as<int>(), d.c.as<std::uint64_t>())
                 .value();
         }},
        {"lower bound",
         [](call_data& d, int seed) {
             lower_bound<int>(ordering(seed))
                 .value()(d.on, d.in(), d.in(), device_span<std::uint32_t>{d.b.as<std::uint32_t>(), items})
                 .value();
         }},
        {"merge sort", [](call_data& d, int seed) { sorted(d, merge_sort<int, int>(ordering(seed)).value()); }},
        {"unique by key",
         [](call_data& d, int seed) {
             unique_by_key<int, int>(op{"a + " + number(seed) + " == b + " + number(seed)})
                 .value()(d.on,
                          {.keys_in = d.in(),
                           .keys_out = d.b.as<int>(),
                           .values_in = d.c.as<int>(),
                           .values_out = d.d.as<int>()},
                          d.c.as<std::uint64_t>())
                 .value();
         }},
        {"scan, struct",
         [](call_data& d, int seed) {
             exclusive_scan<tally>(tally_sum(seed)).value()(d.on, d.tallies(), d.tallies_out()).value();
         }},
        {"reduce, struct",
         [](call_data& d, int seed) {
             reduce<tally>(tally_sum(seed)).value()(d.on, d.tallies(), d.b.as<tally>()).value();
         }},
        {"segmented reduce, struct",
         [](call_data& d, int seed) {
             segmented_reduce<tally>(tally_sum(seed))
                 .value()(d.on, d.tallies(), device_span<int>{d.c.as<int>(), 65}, d.tallies_out())
                 .value();
         }},
        {"select if, struct",
         [](call_data& d, int seed) {
             select_if<tally>(even(seed)).value()(d.on, d.tallies(), d.b.as<tally>(), d.c.as<std::uint64_t>()).value();
         }},
        {"lower bound, struct",
         [](call_data& d, int seed) {
             lower_bound<tally>(fewer(seed))
                 .value()(d.on, d.tallies(), d.tallies(), device_span<std::uint32_t>{d.b.as<std::uint32_t>(), items})
                 .value();
         }},
        {"merge sort, struct",
         [](call_data& d, int seed) {
             merge_sort<tally, int>(fewer(seed)).value()(d.on, d.tallies_with_values()).value();
         }},
        {"unique by key, struct",
         [](call_data& d, int seed) {
             unique_by_key<tally, int>(as_many(seed))
                 .value()(d.on, d.tallies_with_values(), d.c.as<std::uint64_t>())
                 .value();
         }},
    };
    return all;
}

template <class Key>
void sorted_alone(call_data& d) {
    radix_sort<Key>().value()(d.on, {.keys_in = {d.a.as<Key>(), items}, .keys_out = d.b.as<Key>()}).value();
}

std::map<std::string, first> const& shipped_calls() {
    static std::map<std::string, first> const all{
        {"exclusive_scan_i32",
         [](call_data& d, int) { exclusive_scan<int>(plus).value()(d.on, d.in(), d.out()).value(); }},
        {"reduce_sum_i32", [](call_data& d, int) { reduce<int>(plus).value()(d.on, d.in(), d.b.as<int>()).value(); }},
        {"select_i32",
         [](call_data& d, int) {
             select_indices<int>()
                 .value()(d.on, {d.a.as<std::uint8_t>(), items}, d.b.as<int>(), d.c.as<std::uint64_t>())
                 .value();
         }},
        {"radix_sort_f32", [](call_data& d, int) { sorted_alone<float>(d); }},
        {"radix_sort_u16", [](call_data& d, int) { sorted_alone<std::uint16_t>(d); }},
        {"radix_sort_i64", [](call_data& d, int) { sorted_alone<std::int64_t>(d); }},
        {"radix_sort_i32_i32",
         [](call_data& d, int) {
             radix_sort<int, int>()
                 .value()(d.on, {.keys_in = d.in(),
                                 .keys_out = d.b.as<int>(),
                                 .values_in = d.c.as<int>(),
                                 .values_out = d.d.as<int>()})
                 .value();
         }},
    };
    return all;
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

double in_new_process(std::string const& name, int seed, std::filesystem::path const& cache) {
    auto const self = std::filesystem::canonical("/proc/self/exe").native();
    auto const command = fmt::format("KILN_CACHE_DIR='{}' '{}' --first '{}' {}", cache.native(), self, name, seed);
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    double ms = -1;
    int const read = pipe == nullptr ? 0 : std::fscanf(pipe, "%lf", &ms);
    if (pipe == nullptr || ::pclose(pipe) != 0 || read != 1) throw std::runtime_error{"failed: " + command};
    return ms;
}

}  // namespace

int first_call(std::string const& name, int seed) {
    auto const& all = user_calls().contains(name) ? user_calls() : shipped_calls();
    auto const at = all.find(name);
    if (at == all.end()) return std::fprintf(stderr, "bench_prims: no first call '%s'\n", name.c_str()), 2;
    call_data data;
    for (auto* const m : {&data.a, &data.b, &data.c, &data.d}) m->fill(data.on, 0).value();
    data.on.wait_sync().value();
    base::stopwatch const watch;
    at->second(data, seed);
    double const queued = watch.ms();
    data.on.wait_sync().value();
    std::printf("%.4f\n", watch.ms());
    // Where the time went, for whoever looks at the second column.
    base::stopwatch const next;
    at->second(data, seed);
    data.on.wait_sync().value();
    std::fprintf(stderr, "first '%s': queued after %.2f ms, again %.3f ms;", name.c_str(), queued, next.ms());
    for (auto const& e : event_log::process().recent()) {
        std::fprintf(stderr, " %s %s %.2f,", std::string{name_of(e.kind)}.c_str(), std::string{e.reason.view()}.c_str(),
                     static_cast<double>(e.duration_ns) * 1e-6);
    }
    std::fprintf(stderr, "\n");
    engine::process().flush_sync();
    return 0;
}

void measure_first_calls(report& to, int rounds) {
    auto const folder = base::temporary_directory::make("kiln-bench").value();
    int seed = 100;
    for (auto const& [name, call] : user_calls()) {
        std::vector<double> cold;
        std::vector<double> disk;
        for (int round = 0; round < rounds; ++round) {
            auto const cache = folder.path() / std::to_string(++seed);
            cold.push_back(in_new_process(name, seed, cache));
            disk.push_back(in_new_process(name, seed, cache));
        }
        to.add({"cold", name, 0, median(cold), 0, "ms"});
        to.add({"disk", name, 0, median(disk), 0, "ms"});
    }
    for (auto const& [name, call] : shipped_calls()) {
        std::vector<double> times;
        for (int round = 0; round < rounds; ++round)
            times.push_back(in_new_process(name, 0, folder.path() / std::to_string(++seed)));
        to.add({"shipped", name, 0, median(times), 0, "ms"});
    }
}

void measure_sources(report& to, kiln::arch for_arch) {
    auto const folder = base::temporary_directory::make("kiln-bench").value();
    engine fresh{{.settings = {{"KILN_CACHE_DIR", folder.path().native()}}}};
    auto const& all = prims::named_requests();
    std::mutex mutex;
    std::optional<error> failed;
    base::stopwatch const watch;
    {
        std::vector<std::jthread> threads;
        for (auto const& r : all) {
            threads.emplace_back([&] {
                auto made = prims::obtain(fresh, r.what, {for_arch, artifact_kind::cubin}, prims::closeness::exact,
                                          prim_route::full, {});
                std::scoped_lock const lock{mutex};
                if (!made && !failed) failed = std::move(made).error();
            });
        }
    }
    if (failed) throw error{*failed};
    to.add({"source",
            fmt::format("{} specs for {}, {} cores", all.size(), for_arch.name(), std::thread::hardware_concurrency()),
            0, watch.ms(), 0, "ms"});
}

}  // namespace kiln::bench
