// SPDX-License-Identifier: Apache-2.0
//
// The spatial pack on this GPU, beside what a prototype of its algorithms reached on an H200. `bench_spatial [--quick]
// [--data FOLDER] [--json FILE] [--only TEXT]`: FOLDER has layers as tests/unit/spatial/unpack_layer.py writes them. The output of
// every variant is checked before its time counts: memory is given back between variants, so none can pass with another's.
#include "spatial/figures.hpp"
#include "spatial/generators.hpp"
#include "spatial/kept_elements.hpp"
#include "spatial/limits.hpp"
#include "spatial/near.hpp"
#include "spatial/overlays.hpp"
#include "spatial/pipeline.hpp"
#include "spatial/rows.hpp"

#include <kiln/spatial/join.hpp>
#include <kiln/spatial/locate.hpp>
#include <kiln/spatial/nearest.hpp>
#include <kiln/spatial/query.hpp>
#include <kiln/spatial/segments.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

namespace {

using namespace kiln;
using namespace kiln::spatial;
using namespace kiln::spatial_bench;

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
        row({"segments " + count_text(n) + " x " + count_text(n) + ", with points, in order, all in", ms, "ms", 0,
             better::lower, right});
        std::printf("    %zu meetings\n", x.size());

        // What the prototype's figure has: segments that lie there as such and in an order to ask in; the tree of the one side, and
        // which meet, in any order and without points.
        device_queue there{on, 0};
        auto const left = made(kept_layer::plain(there, a)), to = made(kept_layer::plain(there, c));
        auto const order = made(asking_order::of(there, left, made(kept_elements::make(there, to))));
        std::size_t found = 0;
        double const bare = device_ms(on, [&] {
            auto const elements = made(kept_elements::make(there, to));
            found = made(find_contacts(there, left, to, elements, kiln_spatial::rows_wanted::all, order)).size();
        });
        row({"segments " + count_text(n) + " x " + count_text(n) + ", tree and meetings alone", bare, "ms", prototype,
             better::lower, found >= x.size()});
    }
}

void nearest_of(stream const& on, options const& how) {
    auto const n = std::size_t{1} << (how.quick ? 20 : 24);
    auto const questions = uniform_points(n, {0, 0, 1, 1});
    auto const there = made(questions.to_device(on));
    auto const lines = short_lines(1'000'000, 0.002, 3), ways = walks(50'000, 20, 3);
    auto const points = made(geometries::points(lines.parts().x.first(1'000'000), lines.parts().y.first(1'000'000)));
    auto const places = made(geometries::points(ways.parts().x, ways.parts().y));
    for (auto const& [name, of, prototype] :
         {std::tuple{"segments", &lines, 0.0}, std::tuple{"points", &points, 0.0},
          std::tuple{"segments of walks", &ways, 2980.0}, std::tuple{"points of walks", &places, 3540.0}}) {
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
        auto const rate = [&](double t) { return static_cast<double>(n) / t / 1e3; };
        row({std::string{"nearest of 1 M "} + name + ", index and sorting in", rate(ms), "Mq/s", prototype,
             better::higher, agrees});
        device_queue here{on, 0};
        auto const target = made(near_target::make(here, targets));
        double const asked = device_ms(on, [&] { out = made(nearest_rows_of(here, there, targets, target, one)); });
        row({std::string{"nearest of 1 M "} + name + ", index built, sorting in", rate(asked), "Mq/s", prototype,
             better::higher, host_values(on, out.right) == right});
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
        // The same memory as arrays that nobody has looked at yet: what a first call costs beyond the others.
        auto const anew = [](geometries const& g) { return made(geometries::make(g.parts())); };
        double const first_ms = device_ms(on, [&] { matrices = made(relate_join(on, anew(left), anew(right))); });
        row({name + ", DE-9IM, all in, rows to be checked", first_ms, "ms", 0, better::lower,
             matrices.size() == pairs.size()});
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
    struct part {
        std::string_view name;
        void (*measure)(stream const& on, options const& how);
    };
    bool named = false;
    for (auto const& p :
         {part{"boxes", boxes}, part{"segments", segments}, part{"nearest", nearest_of}, part{"relations", relations},
          part{"orientations", orientations}, part{"growth", growth}, part{"undecided", all_undecided},
          part{"calls", calls}, part{"overlays", overlays}, part{"rows", rows}, part{"pipeline", pipeline}}) {
        named |= how.only == p.name;
        if (how.only.empty() || how.only == p.name) p.measure(on, how);
    }
    if (!named) points_in_polygons(on, how);
    return finish(how);
}
