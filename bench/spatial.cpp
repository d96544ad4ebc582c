// SPDX-License-Identifier: Apache-2.0
//
// The spatial pack on this GPU, beside what a prototype of its algorithms reached on an H200. `bench_spatial [--quick]
// [--data FOLDER] [--json FILE] [--only TEXT]`: FOLDER has layers as tests/unit/spatial/unpack_layer.py writes them. The output of
// every variant is checked before its time counts: memory is given back between variants, so none can pass with another's.
#include "spatial/generators.hpp"

#include <kiln/runtime/execution.hpp>
#include <kiln/spatial/join.hpp>
#include <kiln/spatial/locate.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>

namespace {

using namespace kiln;
using namespace kiln::spatial;
using namespace kiln::spatial_bench;

nlohmann::json rows = nlohmann::json::array();
int failures = 0;

struct options {
    bool quick = false;
    std::string data, json, only;
};

template <class T>
T made(result<T> got) {
    if (!got) {
        std::fprintf(stderr, "%s\n%s\n", got.error().what(), std::string{got.error().log()}.c_str());
        std::exit(1);
    }
    return *std::move(got);
}

// Milliseconds per call: the median of several batches of calls that are queued back to back.
double device_ms(stream const& on, std::function<void()> const& call) {
    auto begin = device_event::make().value(), end = device_event::make().value();
    auto const batch = [&](int calls) {
        begin.record(on).value();
        for (int i = 0; i < calls; ++i) call();
        end.record(on).value();
        end.wait_sync().value();
        return elapsed_ms(begin, end).value() / calls;
    };
    batch(1);
    int const calls = std::clamp(static_cast<int>(10 / std::max(batch(2), 1e-3)), 1, 100);
    std::vector<double> times;
    for (int i = 0; i < 5; ++i) times.push_back(batch(calls));
    std::sort(times.begin(), times.end());
    return times[2];
}

enum class better : std::uint8_t { lower, higher };
struct figure {
    std::string name;
    double value;
    std::string unit;
    double prototype;  // 0: none
    better is = better::lower;
    bool right = true;
};
void row(figure const& f) {
    double const ratio = f.prototype == 0 ? 0 : f.is == better::higher ? f.value / f.prototype : f.prototype / f.value;
    std::printf("%-58s %10.3f %-6s", f.name.c_str(), f.value, f.unit.c_str());
    if (f.prototype > 0) std::printf("  prototype %8.2f  %5.2fx", f.prototype, ratio);
    std::printf("%s\n", f.right ? "" : "  WRONG");
    std::fflush(stdout);
    if (!f.right) ++failures;
    rows.push_back({{"name", f.name}, {"value", f.value}, {"unit", f.unit}, {"prototype", f.prototype}, {"right", f.right}});
}

template <class T>
std::vector<T> host_values(stream const& on, buffer<T> const& b) {
    auto const host = made(b.to_host_sync(on));
    return {host.host_span().begin(), host.host_span().end()};
}

// ---- Points in polygons ----

struct point_set {
    char const* name;
    double prototype;  // Gpt/s at 2^26
};
struct layer_case {
    std::string name;
    geometries areas;
    double build_prototype;  // ms
    std::optional<point_set> uniform, near;
};

// Of the first points, by the CPU's index.
bool agrees(stream const& on, geometries const& areas, geometries const& points, buffer<std::int32_t> const& got) {
    std::size_t const n = std::min<std::size_t>(points.rows(), 1 << 16);
    auto const some = made(geometries::points(points.parts().x.first(n), points.parts().y.first(n)));
    std::vector<std::int32_t> expected(n, -1);
    auto const located = made(made(cpu::area_index::make(areas)).locate(some));
    for (auto at = located.rbegin(); at != located.rend(); ++at) expected[static_cast<std::size_t>(at->point)] = at->area;
    auto const first = host_values(on, got.first(n));
    return std::equal(first.begin(), first.end(), expected.begin());
}

void measure_points(stream const& on, options const& how, layer_case const& with) {
    auto const there = made(with.areas.to_device(on));
    auto index = std::optional<area_index>{made(area_index::make(on, there))};
    double const build = device_ms(on, [&] {
        index.reset();
        index.emplace(made(area_index::make(on, there)));
    });
    double const edges = static_cast<double>(with.areas.vertices());
    row({with.name + ", index", build, "ms", with.build_prototype});
    std::printf("    %.0f vertices, %.0f Mvertex/s, %.1f MB, %.1f B a vertex\n", edges, edges / build / 1e3,
                static_cast<double>(index->bytes()) / 1e6, static_cast<double>(index->bytes()) / edges);
    auto const n = std::size_t{1} << (how.quick ? 20 : 26);
    auto const ask = [&](point_set const& set, geometries const& points) {
        auto const questions = made(points.to_device(on));
        auto const name = with.name + ", " + set.name;
        auto out = made(join_first(on, questions, *index, predicate::intersects));
        bool const right = agrees(on, with.areas, points, out);
        double const ms = device_ms(on, [&] { out = made(join_first(on, questions, *index, predicate::intersects)); });
        auto const rate = [&](double t) { return static_cast<double>(n) / t / 1e6; };
        row({name + ", id", rate(ms), "Gpt/s", set.prototype, better::higher, right});
        // The other forms, each with what the ids say of it.
        auto const ids = host_values(on, out);
        auto const hits = static_cast<std::int64_t>(std::count_if(ids.begin(), ids.end(), [](auto id) { return id >= 0; }));
        auto bins = made(join_histogram(on, questions, *index, predicate::intersects));
        auto const sums = host_values(on, bins);
        double const histogram = device_ms(on, [&] { bins = made(join_histogram(on, questions, *index, predicate::intersects)); });
        std::int64_t sum = 0;
        for (auto const b : sums) sum += b;
        row({name + ", histogram", rate(histogram), "Gpt/s", 0, better::higher, sum >= hits});
        auto pairs = made(join(on, questions, *index, predicate::intersects));
        bool const as_many = static_cast<std::int64_t>(pairs.size()) == sum;
        double const listed = device_ms(on, [&] { pairs = made(join(on, questions, *index, predicate::intersects)); });
        row({name + ", pairs", rate(listed), "Gpt/s", 0, better::higher, as_many});
    };
    if (with.uniform) ask(*with.uniform, uniform_points(n, extent_of(with.areas)));
    if (with.near) ask(*with.near, points_near_vertices(n, with.areas));
}

void points_in_polygons(stream const& on, options const& how) {
    auto const wanted = [&](std::string const& name) { return name.find(how.only) != std::string::npos; };
    for (auto const& [name, build, uniform, near] :
         {std::tuple{"ne110", 0.0, 74.4, 29.3}, std::tuple{"county2016", 3.9, 79.2, 19.3}}) {
        if (!wanted(name)) continue;
        auto const areas = read_layer(how.data + "/" + name + ".layer");
        if (!areas) {
            std::printf("%s: not in '%s', left out\n", name, how.data.c_str());
            continue;
        }
        measure_points(on, how, {name, *areas, build, point_set{"uniform", uniform}, point_set{"near vertices", near}});
    }
    struct tiles {
        char const* name;
        int columns, lines, halvings;
        double build, points;
    };
    for (auto const& t : {tiles{"tiling 100 x 8192", 10, 10, 11, 0, 70.7}, tiles{"tiling 10,000 x 16", 100, 100, 2, 0, 33.6},
                          tiles{"tiling 10,000 x 128", 100, 100, 5, 1.8, 30.6},
                          tiles{"tiling 10,000 x 1024", 100, 100, 8, 16.4, 31.7},
                          tiles{"tiling 100,000 x 128", 400, 250, 5, 0, 17.3}}) {
        if (!wanted(t.name) || (how.quick && t.halvings > 5)) continue;
        measure_points(on, how, {t.name, tiling({t.columns, t.lines, t.halvings}), t.build, point_set{"uniform", t.points}, {}});
    }
    if (wanted("stars") && !how.quick)
        measure_points(on, how, {"stars 100,000 x 64", stars(100'000, 64, 1.5, 5), 0, point_set{"uniform", 11.2}, {}});
}

}  // namespace

int main(int argc, char** argv) {
    options how;
    for (int i = 1; i < argc; ++i) {
        std::string const flag = argv[i];
        bool const more = i + 1 < argc;
        if (flag == "--quick") how.quick = true;
        else if (flag == "--data" && more) how.data = argv[++i];
        else if (flag == "--json" && more) how.json = argv[++i];
        else if (flag == "--only" && more) how.only = argv[++i];
        else return std::fprintf(stderr, "usage: bench_spatial [--quick] [--data FOLDER] [--json FILE] [--only TEXT]\n"), 2;
    }
    auto const all = devices();
    if (!all) return std::fprintf(stderr, "%s\n", all.error().what()), 1;
    std::printf("%s, driver %d\n", all->front().name.c_str(), all->front().driver_version);
    auto const on = stream::make().value();
    points_in_polygons(on, how);
    if (!how.json.empty()) std::ofstream{how.json} << rows.dump(1) << "\n";
    return failures == 0 ? 0 : 1;
}
