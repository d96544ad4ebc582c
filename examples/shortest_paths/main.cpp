// SPDX-License-Identifier: Apache-2.0
//
// All shortest paths of a road network by squaring its matrix of distances over (min, +): after t squarings D holds the
// shortest paths of up to 2^t roads, and the winners of each squaring say where to break a path in two, so that every route
// can be read back. `auto` decides where it runs, and the program says where that was.
//
//     example_shortest_paths [towns] [picture.svg]      KILN_EXECUTION_MODE=auto|cpu|gpu
#include <kiln/runtime/operation.hpp>
#include <kiln/tropical/product.hpp>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace {

using namespace kiln;
namespace tropical = kiln::tropical;
using metres = std::int32_t;

constexpr std::array variants{
    variant{.name = "gpu", .where = place::gpu, .needs = "tropical_minplus_i32_nn_with_argmax"},
    variant{.name = "cpu", .where = place::cpu}};
constinit operation const all_paths{"all_shortest_paths", "example", {.pairwise = 128 * 128}, variants};

constexpr metres no_road = tropical::zero_of<metres>(tropical::semiring::min_plus);

struct town {
    double x, y;
};
struct network {
    std::vector<town> towns;
    std::vector<std::pair<int, int>> roads;
    std::vector<metres> distance;  // towns x towns
};

// Towns on a jittered grid, roads to near ones, a river with three bridges: a map, not a random graph.
network make_network(int wanted) {
    network out;
    std::uint64_t state = 88172645463325252U;
    auto const random = [&] {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        return static_cast<double>(state % 1000003) / 1000003;
    };
    int const side = std::max(2, static_cast<int>(std::sqrt(wanted)));
    int const count = side * side;
    for (int i = 0; i < count; ++i)
        out.towns.push_back({(i % side + 0.75 * random()) / side, (i / side + 0.75 * random()) / side});
    out.distance.assign(static_cast<std::size_t>(count) * static_cast<std::size_t>(count), no_road);
    auto const at = [&](int i, int j) -> metres& {
        return out
            .distance[static_cast<std::size_t>(i) * static_cast<std::size_t>(count) + static_cast<std::size_t>(j)];
    };
    auto const bank = [](town const& t) { return t.y > 0.5 + 0.08 * std::sin(9 * t.x); };
    for (int i = 0; i < count; ++i) {
        at(i, i) = 0;
        for (int const j : {i + 1, i + side, i + side + 1, i + side - 1}) {
            if (j >= count || std::abs(j % side - i % side) > 1) continue;
            auto const &a = out.towns[static_cast<std::size_t>(i)], &b = out.towns[static_cast<std::size_t>(j)];
            int const column = i % side;
            bool const bridge = column == side / 6 || column == side / 2 || column == side - 3;
            if (bank(a) != bank(b) && !bridge) continue;
            if (random() < 0.18) continue;
            at(i, j) = at(j, i) = static_cast<metres>(100000 * std::hypot(a.x - b.x, a.y - b.y) * (1 + 0.3 * random()));
            out.roads.emplace_back(i, j);
        }
    }
    return out;
}

struct solution {
    std::vector<metres> distance;
    std::vector<std::int32_t> via;  // towns x towns of each squaring, one after the other
    int squarings = 0;
    std::string where;
    double ms = 0;
};

int squarings(std::int64_t towns) {
    int out = 0;
    while ((std::int64_t{1} << out) < towns) ++out;
    return out;
}

solution on_cpu(std::vector<metres> d, std::int64_t n) {
    solution out;
    out.squarings = squarings(n);
    out.via.resize(d.size() * static_cast<std::size_t>(out.squarings));
    std::vector<metres> next(d.size());
    for (int t = 0; t < out.squarings; ++t) {
        tropical::cpu::product<metres>(tropical::semiring::min_plus, {.m = n, .n = n, .k = n}, {d.data()}, {d.data()},
                                       {next.data()}, {.data = out.via.data() + d.size() * static_cast<std::size_t>(t)})
            .value();
        d.swap(next);
    }
    out.distance = std::move(d);
    out.where = "CPU";
    return out;
}

solution on_gpu(std::vector<metres> const& start, std::int64_t n) {
    solution out;
    auto const square =
        tropical::product<metres>(tropical::semiring::min_plus, {.arg = tropical::with_winners::yes}).value();
    auto const on = stream::make().value();
    std::size_t const bytes = start.size() * sizeof(metres);
    auto d = device_memory::make(bytes).value(), next = device_memory::make(bytes).value();
    d.upload_sync(on, start).value();
    // The winners of all squarings lie together: one allocation before the loop, one wait after it.
    out.squarings = squarings(n);
    out.via.resize(start.size() * static_cast<std::size_t>(out.squarings));
    auto const via = device_memory::make(out.via.size() * sizeof out.via[0]).value();
    for (int t = 0; t < out.squarings; ++t) {
        square(on, {.m = n, .n = n, .k = n}, {d.as<metres const>()}, {d.as<metres const>()}, {next.as<metres>()},
               {.arg = {.data = via.as<std::int32_t>() + start.size() * static_cast<std::size_t>(t)}})
            .value();
        std::swap(d, next);
    }
    out.distance.resize(start.size());
    d.download_sync(on, out.distance).value();
    via.download_sync(on, out.via).value();
    out.where = "GPU (" + device(0).value().name + ")";
    return out;
}

solution solve(network const& map) {
    auto const n = static_cast<std::int64_t>(map.towns.size());
    auto const how = decide(all_paths, {.items = map.distance.size(), .type = scalar::i32}).value();
    auto const begin = std::chrono::steady_clock::now();
    auto out = how.selected == place::gpu ? on_gpu(map.distance, n) : on_cpu(map.distance, n);
    out.ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    out.where += ", because: " + std::string{how.reason};
    return out;
}

// The towns after `from` on the way to `to`: every winner breaks the way in two.
void walk(solution const& s, std::size_t n, int level, int from, int to, std::vector<int>& way) {
    if (from == to) return;
    if (level < 0) {
        way.push_back(to);
        return;
    }
    auto const row = static_cast<std::size_t>(level) * n + static_cast<std::size_t>(from);
    int const k = s.via[row * n + static_cast<std::size_t>(to)];
    walk(s, n, level - 1, from, k, way);
    walk(s, n, level - 1, k, to, way);
}

std::vector<int> route(solution const& s, std::size_t n, int from, int to) {
    std::vector<int> way{from};
    if (s.distance[static_cast<std::size_t>(from) * n + static_cast<std::size_t>(to)] < no_road)
        walk(s, n, s.squarings - 1, from, to, way);
    return way;
}

// Roads in grey, towns by their distance from the first one, the longest shortest route in red.
void draw(std::string const& file, network const& map, solution const& s, std::vector<int> const& way,
          metres farthest) {
    std::ofstream out{file};
    constexpr double size = 760, margin = 20;
    auto const x = [&](int i) { return margin + size * map.towns[static_cast<std::size_t>(i)].x; };
    auto const y = [&](int i) { return margin + size * map.towns[static_cast<std::size_t>(i)].y; };
    out << "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 800 800' width='800' height='800'>\n"
        << "<rect width='800' height='800' fill='#fbfaf7'/>\n<path d='M";
    for (int i = 0; i <= 100; ++i)
        out << (i == 0 ? "" : " L") << margin + size * i / 100.0 << " "
            << margin + size * (0.5 + 0.08 * std::sin(0.09 * i));
    out << "' fill='none' stroke='#bcd6ea' stroke-width='9'/>\n<g stroke='#b9b4aa' stroke-width='1.2'>\n";
    for (auto const& [i, j] : map.roads)
        out << "<line x1='" << x(i) << "' y1='" << y(i) << "' x2='" << x(j) << "' y2='" << y(j) << "'/>\n";
    out << "</g>\n";
    for (std::size_t i = 0; i < map.towns.size(); ++i) {
        auto const d = s.distance[static_cast<std::size_t>(way.front()) * map.towns.size() + i];
        double const share = d < no_road ? static_cast<double>(d) / std::max(1, farthest) : 1;
        out << "<circle cx='" << x(static_cast<int>(i)) << "' cy='" << y(static_cast<int>(i)) << "' r='3.4' fill='"
            << (d < no_road ? "hsl(" + std::to_string(static_cast<int>(220 - 190 * share)) + ",70%,45%)" : "#ffffff")
            << "'/>\n";
    }
    out << "<polyline fill='none' stroke='#c8102e' stroke-width='3.2' points='";
    for (int const t : way) out << x(t) << "," << y(t) << " ";
    out << "'/>\n</svg>\n";
}

}  // namespace

int main(int count, char** arguments) try {
    int const wanted = count > 1 ? std::atoi(arguments[1]) : 576;
    auto const map = make_network(std::max(4, wanted));
    auto const n = map.towns.size();
    auto const s = solve(map);
    std::size_t pairs = 0;
    std::int64_t sum = 0;
    metres farthest = 0;
    int from = 0, to = 0;
    for (std::size_t i = 0; i < n * n; ++i) {
        if (s.distance[i] >= no_road) continue;
        ++pairs;
        sum += s.distance[i];
        if (s.distance[i] > farthest)
            farthest = s.distance[i], from = static_cast<int>(i / n), to = static_cast<int>(i % n);
    }
    auto const way = route(s, n, from, to);
    // The route must be made of roads and as long as the matrix says.
    std::int64_t length = 0;
    for (std::size_t i = 1; i < way.size(); ++i)
        length += map.distance[static_cast<std::size_t>(way[i - 1]) * n + static_cast<std::size_t>(way[i])];
    std::printf("%zu towns, %zu roads, %d squarings on the %s\n", n, map.roads.size(), s.squarings, s.where.c_str());
    std::printf("%zu of %zu pairs connected, mean %.1f km, checksum %lld, %.1f ms\n", pairs, n * n,
                pairs > 0 ? static_cast<double>(sum) / static_cast<double>(pairs) / 1000 : 0,
                static_cast<long long>(sum), s.ms);
    std::printf("longest shortest route: %d to %d, %.1f km over %zu roads; the roads add up to %.1f km\n", from, to,
                farthest / 1000.0, way.size() - 1, static_cast<double>(length) / 1000);
    if (count > 2) draw(arguments[2], map, s, way, farthest);
    return length == farthest ? 0 : 1;
} catch (kiln::error const& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
