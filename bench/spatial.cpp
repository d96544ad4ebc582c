// SPDX-License-Identifier: Apache-2.0
//
// The spatial pack on this GPU, beside what a prototype of its algorithms reached on an H200. `bench_spatial [--quick]
// [--data FOLDER] [--json FILE] [--only TEXT]`: FOLDER has layers as tests/unit/spatial/unpack_layer.py writes them. The output of
// every variant is checked before its time counts: memory is given back between variants, so none can pass with another's.
#include "spatial/generators.hpp"

#include <kiln/runtime/execution.hpp>
#include <kiln/spatial/join.hpp>
#include <kiln/spatial/locate.hpp>
#include <kiln/spatial/nearest.hpp>
#include <kiln/spatial/query.hpp>
#include <kiln/spatial/segments.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
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
    rows.push_back(
        {{"name", f.name}, {"value", f.value}, {"unit", f.unit}, {"prototype", f.prototype}, {"right", f.right}});
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
    for (auto at = located.rbegin(); at != located.rend(); ++at)
        expected[static_cast<std::size_t>(at->point)] = at->area;
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
        auto const hits =
            static_cast<std::int64_t>(std::count_if(ids.begin(), ids.end(), [](auto id) { return id >= 0; }));
        auto bins = made(join_histogram(on, questions, *index, predicate::intersects));
        auto const sums = host_values(on, bins);
        double const histogram =
            device_ms(on, [&] { bins = made(join_histogram(on, questions, *index, predicate::intersects)); });
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
    for (auto const& t :
         {tiles{"tiling 100 x 8192", 10, 10, 11, 0, 70.7}, tiles{"tiling 10,000 x 16", 100, 100, 2, 0, 33.6},
          tiles{"tiling 10,000 x 128", 100, 100, 5, 1.8, 30.6}, tiles{"tiling 10,000 x 1024", 100, 100, 8, 16.4, 31.7},
          tiles{"tiling 100,000 x 128", 400, 250, 5, 0, 17.3}}) {
        if (!wanted(t.name) || (how.quick && t.halvings > 5)) continue;
        measure_points(on, how,
                       {t.name, tiling({t.columns, t.lines, t.halvings}), t.build, point_set{"uniform", t.points}, {}});
    }
    if (wanted("stars") && !how.quick)
        measure_points(on, how, {"stars 100,000 x 64", stars(100'000, 64, 1.5, 5), 0, point_set{"uniform", 11.2}, {}});
}

// ---- Boxes, segments, nearest, relations ----

geometries short_lines(std::size_t n, double length, std::uint64_t seed) {
    geometry_parts out;
    out.kind = family::linestring;
    out.x = buffer<double>::on_host(2 * n), out.y = buffer<double>::on_host(2 * n);
    out.offsets[0] = buffer<std::int32_t>::on_host(n + 1);
    for (std::size_t i = 0; i <= n; ++i) out.offsets[0].data()[i] = static_cast<std::int32_t>(2 * i);
    for (std::size_t i = 0; i < n; ++i) {
        double const x = unit_number(seed + i * 4), y = unit_number(seed + i * 4 + 1),
                     turn = unit_number(seed * 3 + i * 2) * 3.14159265;
        double const l = length * (0.5 + unit_number(seed * 5 + i * 2 + 1));
        out.x.data()[2 * i] = x - l * std::cos(turn) / 2, out.x.data()[2 * i + 1] = x + l * std::cos(turn) / 2;
        out.y.data()[2 * i] = y - l * std::sin(turn) / 2, out.y.data()[2 * i + 1] = y + l * std::sin(turn) / 2;
    }
    return made(geometries::make(std::move(out)));
}
// About ten neighbours each; a few large ones where asked. Diagonals of the boxes.
geometries box_lines(std::size_t n, double large_share) {
    geometry_parts out;
    out.kind = family::linestring;
    out.x = buffer<double>::on_host(2 * n), out.y = buffer<double>::on_host(2 * n);
    out.offsets[0] = buffer<std::int32_t>::on_host(n + 1);
    for (std::size_t i = 0; i <= n; ++i) out.offsets[0].data()[i] = static_cast<std::int32_t>(2 * i);
    double const side = std::sqrt(10.0 / static_cast<double>(n)) / 2;
    for (std::size_t i = 0; i < n; ++i) {
        double const x = unit_number(42 + i * 4), y = unit_number(43 + i * 4);
        double const w = unit_number(44 + i * 4) < large_share ? 0.1 : side * (0.5 + unit_number(45 + i * 4));
        out.x.data()[2 * i] = x, out.x.data()[2 * i + 1] = x + w, out.y.data()[2 * i] = y,
                         out.y.data()[2 * i + 1] = y + w;
    }
    return made(geometries::make(std::move(out)));
}

std::string count_text(std::size_t n) {
    return n % 1'000'000 == 0 ? std::to_string(n / 1'000'000) + " M" : std::to_string(n);
}

void boxes(stream const& on, options const& how) {
    struct size {
        std::size_t n;
        double large, prototype;
    };
    for (auto const& s : {size{1'000'000, 0, 1.25}, size{10'000'000, 0, 15.2}, size{1'000'000, 0.001, 42}}) {
        if (how.quick && s.n > 1'000'000) continue;
        auto const there = made(box_lines(s.n, s.large).to_device(on));
        auto out = made(query(on, there, there));
        // Every box meets itself, and pairs come both ways round.
        auto const left = host_values(on, out.left), right = host_values(on, out.right);
        std::size_t own = 0;
        bool in_order = true;
        for (std::size_t i = 0; i < left.size(); ++i) {
            own += left[i] == right[i] ? 1 : 0;
            in_order &= i == 0 || left[i - 1] < left[i] || (left[i - 1] == left[i] && right[i - 1] < right[i]);
        }
        double const ms = device_ms(on, [&] { out = made(query(on, there, there)); });
        row({"boxes " + count_text(s.n) + (s.large > 0 ? ", 0.1 % large" : "") + ", self-join, all in", ms, "ms",
             s.prototype, better::lower, own == s.n && in_order && left.size() % 2 == s.n % 2});
        std::printf("    %zu pairs\n", left.size());
    }
}

void segments(stream const& on, options const& how) {
    for (auto const& [n, prototype] :
         {std::pair{std::size_t{1'000'000}, 0.79}, std::pair{std::size_t{10'000'000}, 6.6}}) {
        if (how.quick && n > 1'000'000) continue;
        double const length = std::sqrt(3.0 / static_cast<double>(n));
        auto const a = made(short_lines(n, length, 31).to_device(on)),
                   c = made(short_lines(n, length, 1'000'034).to_device(on));
        auto out = made(segment_intersections(on, a, c));
        auto const turned = made(segment_intersections(on, c, a));
        auto const x = host_values(on, out.x), other = host_values(on, turned.x);
        double sum = 0, sum_other = 0;
        for (auto const v : x) sum += v == v ? v : 0;
        for (auto const v : other) sum_other += v == v ? v : 0;
        bool const right = x.size() == other.size() && std::fabs(sum - sum_other) <= 1e-9 * std::fabs(sum);
        double const ms = device_ms(on, [&] { out = made(segment_intersections(on, a, c)); });
        row({"segments " + count_text(n) + " x " + count_text(n) + ", with points, all in", ms, "ms", prototype,
             better::lower, right});
        std::printf("    %zu meetings\n", x.size());
    }
}

void nearest_of(stream const& on, options const& how) {
    auto const n = std::size_t{1} << (how.quick ? 20 : 24);
    auto const questions = uniform_points(n, {0, 0, 1, 1});
    auto const there = made(questions.to_device(on));
    auto const lines = short_lines(1'000'000, 0.002, 3);
    auto const points = made(geometries::points(lines.parts().x.first(1'000'000), lines.parts().y.first(1'000'000)));
    for (auto const& [name, of, prototype] :
         {std::tuple{"segments", &lines, 2980.0}, std::tuple{"points", &points, 3540.0}}) {
        auto const targets = made(of->to_device(on));
        nearest_options const one{.equal = ties::by_row};
        auto out = made(nearest(on, there, targets, one));
        // Of some, by the CPU.
        std::size_t const some = 2000;
        auto const first = made(geometries::points(questions.parts().x.first(some), questions.parts().y.first(some)));
        auto const expected = made(cpu::nearest(first, *of, one));
        auto const right = host_values(on, out.right);
        auto const distance = host_values(on, out.distance);
        bool agrees = right.size() == n && expected.size() == some;
        for (std::size_t i = 0; agrees && i < some; ++i)
            agrees = right[i] == expected[i].right && distance[i] == expected[i].distance;
        double const ms = device_ms(on, [&] { out = made(nearest(on, there, targets, one)); });
        row({std::string{"nearest of 1 M "} + name + ", index and sorting in", static_cast<double>(n) / ms / 1e3,
             "Mq/s", prototype, better::higher, agrees});
    }
}

void relations(stream const& on, options const& how) {
    auto const measure = [&](std::string const& name, geometries const& a, geometries const& c, double intersects,
                             double relates) {
        auto const left = made(a.to_device(on)), right = made(c.to_device(on));
        auto pairs = made(join(on, left, right, predicate::intersects));
        auto matrices = made(relate_join(on, left, right));
        bool const same = pairs.size() == matrices.size();
        double const ms = device_ms(on, [&] { pairs = made(join(on, left, right, predicate::intersects)); });
        row({name + ", intersects, all in", ms, "ms", intersects, better::lower, same});
        double const matrix_ms = device_ms(on, [&] { matrices = made(relate_join(on, left, right)); });
        row({name + ", DE-9IM, all in", matrix_ms, "ms", relates, better::lower, same});
        std::printf("    %zu pairs\n", pairs.size());
    };
    auto const before = read_layer(how.data + "/county2010.layer"), after = read_layer(how.data + "/county2016.layer");
    if (before && after) measure("counties 2010 x 2016", *before, *after, 4.2, 5.9);
    if (how.quick) return;
    extent const moved{world.x0 + 0.5, world.y0 + 0.5, world.x1, world.y1};
    measure("tilings 100,000 x 96,000", tiling({400, 250, 5, 3, world}), tiling({300, 320, 5, 8, moved}), 9.2, 9.7);
    measure("tilings 10,000 x 10,800 of 1024", tiling({100, 100, 8, 3, world}), tiling({90, 120, 8, 8, moved}), 6.8, 0);
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
        else
            return std::fprintf(stderr, "usage: bench_spatial [--quick] [--data FOLDER] [--json FILE] [--only TEXT]\n"),
                   2;
    }
    auto const all = devices();
    if (!all) return std::fprintf(stderr, "%s\n", all.error().what()), 1;
    std::printf("%s, driver %d\n", all->front().name.c_str(), all->front().driver_version);
    auto const on = stream::make().value();
    auto const wanted = [&](std::string_view name) { return how.only.empty() || how.only == name; };
    if (wanted("boxes")) boxes(on, how);
    if (wanted("segments")) segments(on, how);
    if (wanted("nearest")) nearest_of(on, how);
    if (wanted("relations")) relations(on, how);
    if (how.only.empty() || !(wanted("boxes") || wanted("segments") || wanted("nearest") || wanted("relations")))
        points_in_polygons(on, how);
    if (!how.json.empty()) std::ofstream{how.json} << rows.dump(1) << "\n";
    return failures == 0 ? 0 : 1;
}
