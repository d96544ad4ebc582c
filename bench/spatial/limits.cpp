// SPDX-License-Identifier: Apache-2.0
#include "spatial/limits.hpp"

#include "spatial/area_index.hpp"
#include "spatial/generators.hpp"
#include "spatial/units.hpp"

#include <kiln/engine.hpp>
#include <kiln/spatial/join.hpp>
#include <kiln/spatial/nearest.hpp>
#include <kiln/spatial/segments.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace kiln::spatial_bench {

using namespace spatial;

namespace {

// ---- Orientations alone ----

constexpr char const* orientation_text = R"(
#include "exact.cuh"
using namespace kiln_spatial;
struct edge { point a, b; };
extern "C" __global__ void orient_shared(edge const* edges, point const* points, int* sums) {
    __shared__ edge kept[256];
    kept[threadIdx.x] = edges[threadIdx.x];
    __syncthreads();
    u64 const i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    point const p = points[i];
    int sum = 0;
    for (int k = 0; k < 256; ++k) sum += orient(kept[k].a, kept[k].b, p);
    sums[i] = sum;
}
extern "C" __global__ void orient_stream(double const* const* from, signed char* side, u64 count) {
    u64 const i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= count) return;
    side[i] = static_cast<signed char>(orient({from[0][i], from[1][i]}, {from[2][i], from[3][i]}, {from[4][i], from[5][i]}));
}
)";

unit orientation_unit() {
    unit out;
    out.name = "orientation_bench";
    out.source = orientation_text;
    out.headers = all_units().front().headers;
    out.kernels = {"orient_shared", "orient_stream"};
    out.options = {"-std=c++17"};
    return out;
}

using kiln_spatial::point;

// A third point near the line of the other two, off it by no more than rounding.
std::array<point, 3> nearly_on_a_line(std::uint64_t i) {
    auto const r = [&](std::uint64_t k) { return unit_number(i * 16 + k); };
    point const a{r(0) * 360 - 180, r(1) * 180 - 90}, b{r(2) * 360 - 180, r(3) * 180 - 90};
    double const t = r(4) * 1.5 - 0.25;
    return {a, b, {a.x + t * (b.x - a.x), a.y + t * (b.y - a.y)}};
}
std::array<point, 3> anywhere(std::uint64_t i) {
    auto const r = [&](std::uint64_t k) { return unit_number(i * 16 + k); };
    return {point{r(0) * 360 - 180, r(1) * 180 - 90}, point{r(2) * 360 - 180, r(3) * 180 - 90},
            point{r(4) * 360 - 180, r(5) * 180 - 90}};
}

// All edges lie on one line, as near as doubles do, and so do the points.
void shared_orientations(stream const& on, ready_unit const& ready, bool degenerate) {
    std::size_t const n = 1 << 20;
    std::vector<std::array<point, 2>> edges(256);
    std::vector<point> points(n);
    auto const line = [](double x) { return point{x, 3.7 + x / 3}; };
    for (std::size_t i = 0; i < 256; ++i) {
        auto const t = anywhere(i);
        edges[i] = {t[0], t[1]};
        if (degenerate) edges[i] = {line(unit_number(i * 4 + 1) * 50 - 90), line(unit_number(i * 4 + 2) * 50 + 40)};
    }
    for (std::size_t i = 0; i < n; ++i)
        points[i] = degenerate ? line(unit_number(i + 9000) * 70 - 35) : anywhere(i + 300)[2];
    auto const e = made(buffer<std::array<point, 2>>::copy_of(edges).to_device(on));
    auto const p = made(buffer<point>::copy_of(points).to_device(on));
    auto const sums = made(buffer<std::int32_t>::copy_of(std::vector<std::int32_t>(n)).to_device(on));
    auto const kernel = made(ready.kernel("orient_shared"));
    auto const* edges_at = e.data();
    auto const* points_at = p.data();
    auto* sums_at = sums.data();
    void* arguments[] = {&edges_at, &points_at, &sums_at};
    double const ms = device_ms(on, [&] { kernel.launch(on, {{n / 256}, {256}}, arguments).value(); });
    auto const got = host_values(on, sums);
    bool right = true;
    for (std::size_t i = 0; i < n; i += 4099) {
        int sum = 0;
        for (auto const& s : edges) sum += kiln_spatial::orient(s[0], s[1], points[i]);
        right &= sum == got[i];
    }
    row({std::string{"orientations, edges in shared memory, "} + (degenerate ? "all nearly on a line" : "anywhere"),
         static_cast<double>(n) * 256 / ms / 1e6, "Gorient/s", degenerate ? 54.6 : 889, better::higher, right});
}

void streamed_orientations(stream const& on, ready_unit const& ready, double share, double prototype) {
    std::size_t const n = 1 << 25;
    std::array<std::vector<double>, 6> of;
    for (auto& v : of) v.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
        auto const t = unit_number(i * 31 + 5) < share ? nearly_on_a_line(i) : anywhere(i);
        for (std::size_t k = 0; k < 3; ++k) of[2 * k][i] = t[k].x, of[2 * k + 1][i] = t[k].y;
    }
    std::vector<buffer<double>> there;
    std::vector<double const*> pointers;
    for (auto const& v : of) {
        there.push_back(made(buffer<double>::copy_of(v).to_device(on)));
        pointers.push_back(there.back().data());
    }
    auto const from = made(buffer<double const*>::copy_of(pointers).to_device(on));
    auto const sides = made(buffer<std::int8_t>::copy_of(std::vector<std::int8_t>(n)).to_device(on));
    auto const kernel = made(ready.kernel("orient_stream"));
    auto const* from_at = from.data();
    auto* sides_at = sides.data();
    std::uint64_t count = n;
    void* arguments[] = {&from_at, &sides_at, &count};
    double const ms = device_ms(on, [&] { kernel.launch(on, {{n / 256}, {256}}, arguments).value(); });
    auto const got = host_values(on, sides);
    bool right = true;
    for (std::size_t i = 0; i < n; i += 997) {
        point const a{of[0][i], of[1][i]}, b{of[2][i], of[3][i]}, c{of[4][i], of[5][i]};
        right &= kiln_spatial::orient(a, b, c) == got[i];
    }
    row({"orientations, streamed, " + std::to_string(static_cast<int>(share * 100)) + " % nearly on a line",
         static_cast<double>(n) / ms / 1e6, "Gorient/s", prototype, better::higher, right});
}

std::string in_powers(std::size_t n) {
    int log = 0;
    while ((std::size_t{1} << log) < n) ++log;
    return "2^" + std::to_string(log);
}

}  // namespace

void orientations(stream const& on, options const& how) {
    auto const ready = made(engine::process().get_sync(orientation_unit(), 0));
    shared_orientations(on, ready, false);
    shared_orientations(on, ready, true);
    if (how.quick) return;
    streamed_orientations(on, ready, 0, 87);
    streamed_orientations(on, ready, 0.01, 87);
    streamed_orientations(on, ready, 1, 50);
}

// ---- Growth ----

void growth(stream const& on, options const& how) {
    auto const areas = tiling({100, 100, 5});
    auto const index = made(area_index::make(on, made(areas.to_device(on))));
    for (int log = 20; log <= (how.quick ? 22 : 28); log += 2) {
        auto const n = std::size_t{1} << log;
        auto const points = made(uniform_points(n, extent_of(areas)).to_device(on));
        auto out = made(join_first(on, points, index, predicate::intersects));
        double const ms = device_ms(on, [&] { out = made(join_first(on, points, index, predicate::intersects)); });
        row({"growth: " + in_powers(n) + " points in 10,000 x 128", ms * 1e9 / static_cast<double>(n), "ps/point", 0});
    }
    struct size {
        int columns, halvings;
    };
    for (auto const& s : {size{28, 5}, size{89, 5}, size{100, 8}, size{313, 8}}) {
        if (how.quick && s.columns > 50) continue;
        auto const there = made(tiling({s.columns, s.columns, s.halvings}).to_device(on));
        auto const edges = static_cast<double>(there.vertices());
        auto made_index = std::optional<area_index>{};
        double const ms = device_ms(on, [&] {
            made_index.reset();
            made_index.emplace(made(area_index::make(on, there)));
        });
        row({"growth: index of " + std::to_string(there.vertices()) + " vertices", ms * 1e6 / edges, "ns/vertex", 0});
    }
}

// ---- Input that no filter decides ----

namespace {

void beside(std::string const& name, double generic, double undecided, bool right) {
    row({name + ", generic", generic, "ms", 0});
    row({name + ", all undecided", undecided, "ms", 0, better::lower, right});
    std::printf("    %.2f of the generic speed; at least 0.20 is wanted\n", generic / undecided);
}

}  // namespace

void all_undecided(stream const& on, options const& how) {
    auto const zones = slanted_zones(300, 300);
    auto const there = made(zones.to_device(on));
    auto const index = made(area_index::make(on, there));
    auto const n = std::size_t{1} << (how.quick ? 18 : 24);
    auto const on_edges = made(middles_of_edges(n, zones).to_device(on)),
               anywhere_there = made(uniform_points(n, extent_of(zones)).to_device(on));
    {
        buffer<std::int32_t> out;
        double const generic =
            device_ms(on, [&] { out = made(join_first(on, anywhere_there, index, predicate::intersects)); });
        double const undecided =
            device_ms(on, [&] { out = made(join_first(on, on_edges, index, predicate::touches)); });
        auto const ids = host_values(on, out);
        bool right = true;
        for (auto const id : ids) right &= id >= 0;
        beside("points in 90,000 slanted squares, id", generic, undecided, right);
        pair_list pairs;
        double const listed =
            device_ms(on, [&] { pairs = made(join(on, anywhere_there, index, predicate::intersects)); });
        double const undecided_list =
            device_ms(on, [&] { pairs = made(join(on, on_edges, index, predicate::touches)); });
        beside("points in 90,000 slanted squares, pairs", listed, undecided_list, pairs.size() >= n);
    }
    {
        // Rings as lines: their middles lie on them, at no distance.
        geometry_parts rings;
        rings.kind = family::linestring;
        rings.x = zones.parts().x, rings.y = zones.parts().y, rings.offsets[0] = zones.parts().offsets[1];
        auto const lines = made(made(geometries::make(std::move(rings))).to_device(on));
        nearest_options const one{.equal = ties::by_row};
        near_list out;
        double const generic = device_ms(on, [&] { out = made(nearest(on, anywhere_there, lines, one)); });
        double const undecided = device_ms(on, [&] { out = made(nearest(on, on_edges, lines, one)); });
        auto const distance = host_values(on, out.distance);
        bool right = distance.size() == n;
        for (auto const d : distance) right &= d == 0;
        beside("nearest of 90,000 rings", generic, undecided, right);
        segment_list met;
        double const with_itself = device_ms(on, [&] { met = made(segment_intersections(on, lines, lines)); });
        auto const kinds = host_values(on, met.how);
        bool const none_crosses = std::find(kinds.begin(), kinds.end(), meeting::crossing) == kinds.end();
        row({"segments of 90,000 rings with themselves, all undecided",
             with_itself * 1e6 / static_cast<double>(met.size()), "ns/met", 0, better::lower, none_crosses});
        std::size_t const k = 360'000;
        double const length = std::sqrt(9.0 / static_cast<double>(k));
        auto const a = made(short_lines(k, length, 31).to_device(on)),
                   b = made(short_lines(k, length, 1'000'034).to_device(on));
        double const generic_met = device_ms(on, [&] { met = made(segment_intersections(on, a, b)); });
        row({"segments 360,000 x 360,000, generic", generic_met * 1e6 / static_cast<double>(met.size()), "ns/met", 0});
    }
}

// ---- What a call costs beyond its kernels ----

void calls(stream const& on, options const&) {
    auto const areas = tiling({100, 100, 5});
    auto const there = made(areas.to_device(on));
    auto const index = made(area_index::make(on, there));
    for (int const log : {16, 20, 24}) {
        auto const n = std::size_t{1} << log;
        auto const points = made(uniform_points(n, extent_of(areas)).to_device(on));
        device_queue here{on, 0};
        buffer<std::int32_t> out;
        double const bare = device_ms(on, [&] {
            out = made(
                point_locator{here, points, index.internals(), kiln_spatial::wanted_inside | kiln_spatial::wanted_on}
                    .first());
        });
        double const whole = device_ms(on, [&] { out = made(join_first(on, points, index, predicate::intersects)); });
        bool const right = whole - bare <= std::max(0.03 * bare, 0.020);
        row({"a call, " + in_powers(n) + " points: kernels alone", bare * 1e3, "us", 0});
        row({"a call, " + in_powers(n) + " points: through the operation", whole * 1e3, "us", 0, better::lower, right});
    }
}

}  // namespace kiln::spatial_bench
