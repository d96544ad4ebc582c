// SPDX-License-Identifier: Apache-2.0
#include "spatial/generators.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numbers>
#include <thread>
#include <vector>

namespace kiln::spatial_bench {

using namespace spatial;

namespace {

struct place {
    double x, y;
};

template <class Each>
void in_parallel(std::size_t n, Each const& each) {
    auto const threads = std::max(1U, std::thread::hardware_concurrency());
    std::vector<std::jthread> all;
    for (unsigned t = 0; t < threads; ++t)
        all.emplace_back([&, t] {
            for (std::size_t i = n * t / threads; i < n * (t + 1) / threads; ++i) each(i);
        });
}

geometries polygons(std::vector<double> const& x, std::vector<double> const& y, std::vector<std::int32_t> const& rings,
                    std::vector<std::int32_t> const& vertices) {
    geometry_parts out;
    out.kind = family::polygon;
    out.x = buffer<double>::copy_of(x), out.y = buffer<double>::copy_of(y);
    out.offsets[0] = buffer<std::int32_t>::copy_of(rings), out.offsets[1] = buffer<std::int32_t>::copy_of(vertices);
    return geometries::make(std::move(out)).value();
}

}  // namespace

std::uint64_t mixed(std::uint64_t k) noexcept {
    k += 0x9e3779b97f4a7c15U;
    k = (k ^ (k >> 30)) * 0xbf58476d1ce4e5b9U;
    k = (k ^ (k >> 27)) * 0x94d049bb133111ebU;
    return k ^ (k >> 31);
}
double unit_number(std::uint64_t k) noexcept { return static_cast<double>(mixed(k) >> 11) * 0x1p-53; }

geometries houses(std::size_t n, std::uint64_t seed, double moved) {
    std::vector<double> x, y;
    std::vector<std::int32_t> rings{0}, vertices{0};
    auto const side = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(n))));
    for (std::size_t k = 0; k < n; ++k) {
        auto const chance = [&](std::uint64_t i) { return unit_number(seed + k * 8 + i); };
        double const cx = 500'000 + 30.0 * static_cast<double>(k % side) + (chance(0) - 0.5) * moved;
        double const cy = 4.5e6 + 30.0 * static_cast<double>(k / side) + (chance(1) - 0.5) * moved;
        double const turn = chance(2) * 6.28, w = 5 + 6 * chance(3), h = 4 + 6 * chance(4);
        auto const first = x.size();
        auto const corner = [&](double px, double py) {
            x.push_back(cx + px * std::cos(turn) - py * std::sin(turn));
            y.push_back(cy + px * std::sin(turn) + py * std::cos(turn));
        };
        auto const kind = mixed(seed + k) % 3;
        if (kind == 2)
            for (int i = 0; i < 13; ++i) corner(w * std::cos(6.283185307 * i / 13), w * std::sin(6.283185307 * i / 13));
        else {
            corner(-w, -h), corner(w, -h);
            if (kind == 0) corner(w, h);
            else corner(w, 0), corner(0, 0), corner(0, h);
            corner(-w, h);
        }
        x.push_back(x[first]), y.push_back(y[first]);
        vertices.push_back(static_cast<std::int32_t>(x.size())), rings.push_back(static_cast<std::int32_t>(k + 1));
    }
    return polygons(x, y, rings, vertices);
}

geometries tiling(tiling_options const& how) {
    auto const columns = static_cast<std::size_t>(how.columns), lines = static_cast<std::size_t>(how.rows);
    auto const pieces = std::size_t{1} << how.halvings;
    auto const& e = how.over;
    auto const node = [&](std::size_t i, std::size_t j) {
        double fx = static_cast<double>(i), fy = static_cast<double>(j);
        auto const k = how.seed + (i * 100'003 + j) * 2;
        if (i > 0 && i < columns) fx += (unit_number(k) * 2 - 1) * 0.15;
        if (j > 0 && j < lines) fy += (unit_number(k + 1) * 2 - 1) * 0.15;
        return place{e.x0 + fx / how.columns * (e.x1 - e.x0), e.y0 + fy / how.rows * (e.y1 - e.y0)};
    };
    std::size_t const level = columns * (lines + 1), upright = (columns + 1) * lines;
    std::vector<place> borders((level + upright) * (pieces + 1));
    double const aspect = ((e.x1 - e.x0) / how.columns) / ((e.y1 - e.y0) / how.rows);
    in_parallel(level + upright, [&](std::size_t b) {
        place* const p = borders.data() + b * (pieces + 1);
        bool const is_level = b < level;
        std::size_t const k = is_level ? b : b - level, width = is_level ? columns : columns + 1;
        std::size_t const i = k % width, j = k / width;
        p[0] = node(i, j), p[pieces] = is_level ? node(i + 1, j) : node(i, j + 1);
        double height = 0.1;
        for (auto step = pieces; step > 1; step /= 2, height *= 0.6) {
            for (std::size_t t = 0; t < pieces; t += step) {
                place const from = p[t], to = p[t + step];
                double const dx = to.x - from.x, dy = (to.y - from.y) * aspect;
                double const aside = (unit_number(how.seed * 7 + b * 65'537 + t + step / 2 + 1) * 2 - 1) * height;
                p[t + step / 2] = {(from.x + to.x) / 2 - dy * aside, (from.y + to.y) / 2 + dx * aside / aspect};
            }
        }
    });
    std::size_t const zones = columns * lines, each = 4 * pieces + 1;
    std::vector<double> x(zones * each), y(zones * each);
    std::vector<std::int32_t> rings(zones + 1), vertices(zones + 1);
    in_parallel(zones, [&](std::size_t zone) {
        auto const i = zone % columns, j = zone / columns;
        auto at = zone * each;
        auto const border = [&](std::size_t b) { return borders.data() + b * (pieces + 1); };
        auto const put = [&](place const& p) { x[at] = p.x, y[at++] = p.y; };
        place const *const bottom = border(j * columns + i), *const top = border((j + 1) * columns + i);
        place const *const left = border(level + j * (columns + 1) + i), *const right = left + pieces + 1;
        for (std::size_t t = 0; t < pieces; ++t) put(bottom[t]);
        for (std::size_t t = 0; t < pieces; ++t) put(right[t]);
        for (std::size_t t = pieces; t > 0; --t) put(top[t]);
        for (std::size_t t = pieces + 1; t-- > 0;) put(left[t]);
    });
    for (std::size_t k = 0; k <= zones; ++k)
        rings[k] = static_cast<std::int32_t>(k), vertices[k] = static_cast<std::int32_t>(k * each);
    return polygons(x, y, rings, vertices);
}

geometries stars(int count, int corners, double radius, std::uint64_t seed) {
    std::vector<double> x, y;
    std::vector<std::int32_t> rings{0}, vertices{0};
    for (int k = 0; k < count; ++k) {
        auto const id = static_cast<std::uint64_t>(k);
        double const cx = world.x0 + unit_number(seed + id * 3) * (world.x1 - world.x0);
        double const cy = world.y0 + unit_number(seed + id * 3 + 1) * (world.y1 - world.y0);
        double const turn = unit_number(seed + id * 3 + 2) * 6.28, r = radius * (0.3 + unit_number(seed * 5 + id));
        for (int hole = 0; hole < (k % 3 == 0 ? 2 : 1); ++hole) {
            int const n = hole != 0 ? std::max(4, corners / 4) : corners;
            auto const first = x.size();
            for (int i = 0; i < n; ++i) {
                double const angle = turn + 2 * std::numbers::pi * (hole != 0 ? n - i : i) / n;
                double const reach =
                    r *
                    (hole != 0 ? 0.25 : 0.6 + 0.4 * unit_number(seed * 11 + id * 100'003 + static_cast<unsigned>(i)));
                x.push_back(cx + reach * std::cos(angle)), y.push_back(cy + reach * std::sin(angle));
            }
            x.push_back(x[first]), y.push_back(y[first]);
            vertices.push_back(static_cast<std::int32_t>(x.size()));
        }
        rings.push_back(static_cast<std::int32_t>(vertices.size() - 1));
    }
    return polygons(x, y, rings, vertices);
}

namespace {

template <class T>
std::vector<T> take(std::ifstream& from, std::size_t n) {
    std::vector<T> out(n);
    from.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(n * sizeof(T)));
    return out;
}

}  // namespace

std::optional<geometries> read_layer(std::string const& file) {
    std::ifstream in{file, std::ios::binary};
    if (!in) return {};
    auto const sizes = take<std::int64_t>(in, 3);
    auto const rows = static_cast<std::size_t>(sizes[0]), rings = static_cast<std::size_t>(sizes[1]),
               vertices = static_cast<std::size_t>(sizes[2]);
    auto const row_first = take<std::int32_t>(in, rows + 1), ring_first = take<std::int32_t>(in, rings + 1);
    auto const shell = take<std::uint8_t>(in, rings);
    auto const x = take<double>(in, vertices), y = take<double>(in, vertices);
    geometry_builder to;
    for (std::size_t i = 0; i < rows; ++i) {
        to.begin(family::multipolygon);
        for (auto r = static_cast<std::size_t>(row_first[i]); r < static_cast<std::size_t>(row_first[i + 1]); ++r) {
            if (shell[r] != 0) to.begin_polygon();
            to.begin_ring();
            for (auto v = static_cast<std::size_t>(ring_first[r]); v < static_cast<std::size_t>(ring_first[r + 1]); ++v)
                to.vertex(x[v], y[v]);
        }
        to.end();
    }
    return to.finish().value();
}

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
    return geometries::make(std::move(out)).value();
}
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
    return geometries::make(std::move(out)).value();
}

geometries walks(std::size_t count, std::size_t steps, std::uint64_t seed) {
    geometry_parts out;
    out.kind = family::linestring;
    auto const each = steps + 1;
    out.x = buffer<double>::on_host(count * each), out.y = buffer<double>::on_host(count * each);
    out.offsets[0] = buffer<std::int32_t>::on_host(count + 1);
    for (std::size_t i = 0; i <= count; ++i) out.offsets[0].data()[i] = static_cast<std::int32_t>(i * each);
    double const step = 0.5 / std::sqrt(static_cast<double>(count * steps));
    in_parallel(count, [&](std::size_t l) {
        double x = unit_number(seed + l * 2), y = unit_number(seed + l * 2 + 1),
               turn = unit_number(l + seed * 3) * 6.28;
        for (std::size_t i = 0; i < each; ++i) {
            out.x.data()[l * each + i] = x, out.y.data()[l * each + i] = y;
            turn += unit_number(l * 64 + i + seed) - 0.5;
            x += step * std::cos(turn), y += step * std::sin(turn);
        }
    });
    return geometries::make(std::move(out)).value();
}

geometries slanted_zones(int columns, int lines) {
    std::vector<double> x, y;
    std::vector<std::int32_t> rings, vertices;
    for (int j = 0; j < lines; ++j)
        for (int i = 0; i < columns; ++i) {
            rings.push_back(i + j * columns), vertices.push_back(static_cast<std::int32_t>(x.size()));
            for (auto const& [di, dj] :
                 {std::pair{0, 0}, std::pair{1, 0}, std::pair{1, 1}, std::pair{0, 1}, std::pair{0, 0}})
                x.push_back(4 * (i + di) - 2 * (j + dj)), y.push_back(2 * (i + di) + 4 * (j + dj));
        }
    rings.push_back(columns * lines), vertices.push_back(static_cast<std::int32_t>(x.size()));
    return polygons(x, y, rings, vertices);
}

geometries middles_of_edges(std::size_t n, geometries const& of) {
    auto const& p = of.parts();
    auto x = buffer<double>::on_host(n), y = buffer<double>::on_host(n);
    in_parallel(n, [&](std::size_t i) {
        auto const v = mixed(i + 5) % (p.x.size() / 5) * 5 + mixed(i + 6) % 4;
        x.data()[i] = (p.x.data()[v] + p.x.data()[v + 1]) / 2, y.data()[i] = (p.y.data()[v] + p.y.data()[v + 1]) / 2;
    });
    return geometries::points(x, y).value();
}

extent extent_of(geometries const& g) {
    auto const& p = g.parts();
    auto const [x0, x1] = std::minmax_element(p.x.data(), p.x.data() + p.x.size());
    auto const [y0, y1] = std::minmax_element(p.y.data(), p.y.data() + p.y.size());
    return {*x0, *y0, *x1, *y1};
}

geometries uniform_points(std::size_t n, extent const& over) {
    auto x = buffer<double>::on_host(n), y = buffer<double>::on_host(n);
    in_parallel(n, [&](std::size_t i) {
        x.data()[i] = over.x0 + unit_number(77 + i * 4) * (over.x1 - over.x0);
        y.data()[i] = over.y0 + unit_number(78 + i * 4) * (over.y1 - over.y0);
    });
    return geometries::points(x, y).value();
}

geometries points_near_vertices(std::size_t n, geometries const& of) {
    auto const& p = of.parts();
    auto x = buffer<double>::on_host(n), y = buffer<double>::on_host(n);
    in_parallel(n, [&](std::size_t i) {
        auto const v = mixed(i + 5) % p.x.size();
        x.data()[i] = p.x.data()[v] + (unit_number(i * 2 + 1) - 0.5) * 0.6;
        y.data()[i] = p.y.data()[v] + (unit_number(i * 2 + 2) - 0.5) * 0.6;
    });
    return geometries::points(x, y).value();
}

}  // namespace kiln::spatial_bench
