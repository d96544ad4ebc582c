// SPDX-License-Identifier: Apache-2.0
//
// The tropical pack on this GPU, beside what its peer's kernels reached on an H200 (docs/tropical.md): products by type and
// size, batches, gradients, products that count, then compiling everything from nothing, then first calls. `bench_tropical [--quick]
// [--only counting] [--json FILE] [--first-call]`; with --first-call only the time of one first call in this process is printed, as the outer run does in
// fresh processes. The caches of NVRTC and the driver are off.
#include "base/clock.hpp"
#include "engine/engine_state.hpp"
#include "support/device_time.hpp"
#include "tropical/units.hpp"

#include <kiln/plan.hpp>
#include <kiln/tropical/counting.hpp>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <unistd.h>

namespace {

using namespace kiln;
using namespace kiln::tropical;

nlohmann::json rows = nlohmann::json::array();

constexpr bench::batches long_batches{.length_ms = 15, .most_calls = 500};

struct options {
    bool quick = false, first_call = false, only_counting = false;
    std::string json;
};

template <class T>
void fill(device_memory& to, stream const& on, std::size_t n, unsigned seed) {
    std::vector<T> host(n);
    std::uint64_t s = seed * 2654435761U + 88172645463325252U;
    for (auto& x : host) {
        s ^= s << 13, s ^= s >> 7, s ^= s << 17;
        x = static_cast<T>(static_cast<std::int64_t>(s % 200001) - 100000) /
            (std::is_floating_point_v<T> ? T(128) : T(1));
    }
    to.upload_sync(on, host).value();
}

// What a row is held against; 0: nothing.
struct marks {
    double peer = 0;   // Gop/s
    double floor = 0;  // times the peer
    double goal = 0;   // Gop/s
};

char const* verdict(bool reached) { return reached ? "reached" : "missed"; }

void row(std::string const& name, double ms, double gops, marks const& by) {
    std::printf("%-34s %10.4f ms %9.0f Gop/s", name.c_str(), ms, gops);
    if (by.peer > 0) std::printf("   peer %7.0f  %5.2fx", by.peer, gops / by.peer);
    if (by.floor > 0) std::printf("   floor %.1fx %s", by.floor, verdict(gops >= by.floor * by.peer));
    if (by.goal > 0) std::printf("   goal %7.0f %s", by.goal, verdict(gops >= by.goal));
    std::printf("\n");
    std::fflush(stdout);
    rows.push_back(
        {{"name", name}, {"ms", ms}, {"gops", gops}, {"peer", by.peer}, {"floor", by.floor}, {"goal", by.goal}});
}

template <class T>
void product_row(stream const& on, semiring s, with_winners arg, std::int64_t n, std::int64_t batch,
                 marks const& held_to, order layout = order::column_major, transposed a_as = transposed::no,
                 char const* note = "") {
    auto const elements = static_cast<std::size_t>(n * n * batch);
    auto a = device_memory::make(elements * sizeof(T)).value(), b = device_memory::make(elements * sizeof(T)).value();
    auto const c = device_memory::make(elements * sizeof(T)).value(), k = device_memory::make(elements * 4).value();
    fill<T>(a, on, elements, 1);
    fill<T>(b, on, elements, 2);
    auto const by = product<T>(s, {.arg = arg}).value();
    by.wait_tuned_sync();
    shape const size{.m = n, .n = n, .k = n, .batch = batch, .layout = layout};
    winners const out{.data = arg == with_winners::yes ? k.get() : nullptr};
    double const ms = bench::device_ms(
        on,
        [&] {
            by(on, size, {.data = a.as<T const>(), .as = a_as}, {.data = b.as<T const>()}, {.data = c.as<T>()},
               {.arg = out})
                .value();
        },
        long_batches);
    auto name = std::string{kiln::name_of(scalar_of<T>())} + " " + std::string{tropical::name_of(s)};
    if (arg == with_winners::yes) name += " argmax";
    name += batch > 1 ? " " + std::to_string(batch) + " x " + std::to_string(n) : " " + std::to_string(n);
    row(name + note, ms, 2e-6 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n * batch) / ms,
        held_to);
}

void backward_row(stream const& on, std::int64_t n) {
    auto const elements = static_cast<std::size_t>(n * n);
    auto g = device_memory::make(elements * 4).value(), k = device_memory::make(elements * 4).value();
    auto const da = device_memory::make(elements * 4).value(), db = device_memory::make(elements * 4).value();
    fill<float>(g, on, elements, 1);
    std::vector<std::int32_t> host(elements);
    std::uint64_t s = 88172645463325252U;
    for (auto& x : host)
        s ^= s << 13, s ^= s >> 7, s ^= s << 17, x = static_cast<std::int32_t>(s % static_cast<std::uint64_t>(n));
    k.upload_sync(on, host).value();
    auto const by = backward<float>(gradient_rule::plus).value();
    double const ms = bench::device_ms(
        on,
        [&] {
            by(on, {.m = n, .n = n, .k = n}, {g.as<float const>()}, {k.get()}, {da.as<float>()}, {db.as<float>()})
                .value();
        },
        long_batches);
    std::printf("%-34s %10.4f ms   peer 0.779 ms  %.2fx   floor 0.35 ms %s   goal 0.25 ms %s\n",
                ("f32 backward A + B " + std::to_string(n)).c_str(), ms, 0.779 / ms, verdict(ms <= 0.35),
                verdict(ms <= 0.25));
    rows.push_back({{"name", "f32 backward " + std::to_string(n)}, {"ms", ms}});
}

// Beside the plain product, which is two operations a step and tuned: what counting costs.
template <class T>
void counting_rows(stream const& on, std::int64_t n) {
    auto const elements = static_cast<std::size_t>(n * n);
    auto a = device_memory::make(elements * sizeof(T)).value(), b = device_memory::make(elements * sizeof(T)).value();
    auto const c = device_memory::make(elements * sizeof(T)).value(), ways = device_memory::make(elements * 8).value();
    auto ones = device_memory::make(elements * 8).value();
    fill<T>(a, on, elements, 1);
    fill<T>(b, on, elements, 2);
    ones.upload_sync(on, std::vector<std::int64_t>(elements, 1)).value();
    shape const size{.m = n, .n = n, .k = n};
    auto const plain = product<T>(semiring::max_plus).value();
    plain.wait_tuned_sync();
    auto const by = counting<T>(semiring::max_plus).value();
    double const least = bench::device_ms(
        on, [&] { plain(on, size, {a.as<T const>()}, {b.as<T const>()}, {c.as<T>()}).value(); }, long_batches);
    for (auto const* const counts : {static_cast<std::int64_t const*>(nullptr), ones.as<std::int64_t const>()}) {
        double const ms = bench::device_ms(
            on,
            [&] {
                by(on, size, {a.as<T const>(), counts}, {b.as<T const>(), counts}, {c.as<T>(), ways.as<std::int64_t>()})
                    .value();
            },
            long_batches);
        auto const name = fmt::format("{} maxplus counting{} {}", kiln::name_of(scalar_of<T>()),
                                      counts != nullptr ? " weighted" : "", n);
        std::printf("%-34s %10.4f ms   plain %.4f ms  %.2f of its time\n", name.c_str(), ms, least, ms / least);
        rows.push_back({{"name", name}, {"ms", ms}, {"plain_ms", least}});
    }
}

// In this process, beside creating the context: from nothing to a result on the device.
int first_call() {
    auto const on = stream::make().value();
    auto const memory = device_memory::make(64 * 64 * 4 * 3).value();
    auto* const p = memory.as<float>();
    base::stopwatch const watch;
    auto const by = product<float>(semiring::max_plus).value();
    double const made = watch.ms();
    by(on, {.m = 64, .n = 64, .k = 64}, {p}, {p + 4096}, {p + 8192}).value();
    on.wait_sync().value();
    auto const status = engine::process().status();
    std::printf("%.3f %.3f %s %s\n", made, watch.ms(), by.tuned() ? "tuned" : "generic",
                status.compiled > 0 || status.in_progress > 0 ? "compiling" : "found");
    return 0;
}

// Every unit of the pack from its text, with no cache and no bundle, into `cache`.
void compile_everything(std::string const& cache) {
    engine fresh{{.settings = {{"KILN_CACHE_DIR", cache}, {"KILN_RECACHE", "1"}}}};
    std::vector<want> all;
    for (auto const& s : engine_detail::find_pack("tropical")->specs()) all.emplace_back(s.name);
    base::stopwatch const watch;
    auto const report =
        plan{"everything", all, {.targets = {target::parse(device(0).value().target()).value()}, .engine = &fresh}}
            .ensure_warm(std::chrono::minutes{10});
    double const seconds = watch.ms() / 1000;
    fresh.flush_sync();
    double busy = 0;
    auto const workers = fresh.internals().pool->workers();
    for (auto const& w : workers) busy += static_cast<double>(w.busy_ns) * 1e-9;
    std::printf("\n%llu units from source: %.2f s   goal 2 s on 16 cores %s   %zu processes, busy for %.2f s each\n",
                static_cast<unsigned long long>(fresh.status().compiled), seconds, verdict(seconds <= 2),
                workers.size(), busy / static_cast<double>(std::max<std::size_t>(workers.size(), 1)));
    if (!report) std::printf("%s\n", report.text().c_str());
    rows.push_back({{"name", "all from source"}, {"ms", seconds * 1000}});
}

void first_calls() {
    std::fflush(stdout);
    auto const self = "/proc/" + std::to_string(::getpid()) + "/exe";
    auto const folder = std::filesystem::temp_directory_path() / ("kiln-bench-tropical-" + std::to_string(::getpid()));
    auto const once = [&](char const* name, std::string const& settings) {
        std::printf("  %-28s ", name);
        std::fflush(stdout);
        if (std::system((settings + " " + self + " --first-call").c_str()) != 0) std::printf("failed\n");
    };
    auto const cache = "KILN_CACHE_DIR=" + folder.string();
    compile_everything(folder / "full");
    std::printf("\nfirst call in a fresh process, beside creating the context (ms: handle made, result there):\n");
    for (int i = 0; i < 3; ++i) once("shipped bundle, goal 5", cache + "/none-" + std::to_string(i));
    for (int i = 0; i < 3; ++i) once("disk cache, goal 5", cache + "/full");
    for (int i = 0; i < 3; ++i) once("neither, goal 400", cache + "/new-" + std::to_string(i) + " KILN_RECACHE=1");
    std::filesystem::remove_all(folder);
}

int run(options const& o) {
    if (!devices()) {
        std::printf("no GPU: nothing to measure\n");
        return 77;
    }
    auto const on = stream::make().value();
    std::printf("%s; peer: its published kernels on an H200, 2026-11-15\n", device(0).value().name.c_str());
    counting_rows<float>(on, 4096);
    counting_rows<double>(on, 4096);
    if (o.only_counting) return 0;
    constexpr auto no = with_winners::no, yes = with_winners::yes;
    constexpr auto max_plus = semiring::max_plus;
    product_row<float>(on, max_plus, no, 256, 1, {.peer = 1768, .floor = 2.0, .goal = 8000});
    product_row<float>(on, max_plus, no, 512, 1, {.goal = 22000});
    product_row<float>(on, max_plus, no, 1024, 1, {.peer = 18021, .goal = 30000});
    product_row<float>(on, max_plus, no, 2048, 1, {.goal = 34000});
    product_row<float>(on, max_plus, no, 4096, 1, {.peer = 20400, .floor = 1.5, .goal = 36000});
    if (!o.quick) product_row<float>(on, max_plus, no, 8192, 1, {.peer = 20400, .goal = 36000});
    product_row<float>(on, semiring::min_plus, no, 4096, 1, {});
    product_row<float>(on, semiring::max_mul, no, 4096, 1, {});
    product_row<float>(on, max_plus, no, 4096, 1, {}, order::column_major, transposed::yes, " tn");
    product_row<float>(on, max_plus, yes, 4096, 1, {.peer = 9393, .floor = 1.9, .goal = 22000});
    product_row<std::int32_t>(on, max_plus, no, 4096, 1, {.peer = 8720, .floor = 3.6, .goal = 34000});
    product_row<std::int32_t>(on, max_plus, yes, 4096, 1, {.peer = 4927, .goal = 20000});
    product_row<double>(on, max_plus, no, 4096, 1, {.peer = 5800, .floor = 1.6, .goal = 11500});
    product_row<double>(on, max_plus, yes, 4096, 1, {.peer = 7196});
    product_row<std::int64_t>(on, max_plus, no, 4096, 1, {.peer = 2762, .goal = 5000});
    product_row<float>(on, max_plus, no, 256, 64, {.peer = 7979, .floor = 3.4, .goal = 30000});
    product_row<float>(on, max_plus, no, 64, 1024, {.peer = 6087, .goal = 22000});
    product_row<float>(on, max_plus, yes, 256, 64, {.peer = 7979});
    product_row<float>(on, max_plus, yes, 64, 1024, {.peer = 6087});
    backward_row(on, 4096);
    first_calls();
    if (!o.json.empty()) std::ofstream{o.json} << rows.dump(1) << "\n";
    return 0;
}

}  // namespace

int main(int count, char** arguments) {
    ::setenv("CUDA_CACHE_DISABLE", "1", 1);
    options o;
    for (int i = 1; i < count; ++i) {
        std::string const word = arguments[i];
        if (word == "--quick") o.quick = true;
        else if (word == "--first-call") o.first_call = true;
        else if (word == "--only" && i + 1 < count && std::string_view{arguments[i + 1]} == "counting")
            o.only_counting = true, ++i;
        else if (word == "--json" && i + 1 < count) o.json = arguments[++i];
        else {
            std::fprintf(stderr, "usage: bench_tropical [--quick] [--only counting] [--json FILE]\n");
            return 2;
        }
    }
    return o.first_call ? first_call() : run(o);
}
