// SPDX-License-Identifier: Apache-2.0
#include "samples.hpp"

#include <kiln/spatial/wkt.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <set>

namespace kiln::spatial_tests {

namespace {

using namespace spatial;

using cell = std::pair<int, int>;
struct corner {
    int x, y;
    bool operator==(corner const&) const = default;
};
using ring = std::vector<corner>;

long cross(corner a, corner b, corner c) { return long{b.x - a.x} * (c.y - a.y) - long{b.y - a.y} * (c.x - a.x); }
bool meet(corner a, corner b, corner c, corner d) {
    auto const sign = [](long v) { return (v > 0) - (v < 0); };
    auto const in_box = [](corner p, corner q, corner x) {
        return x.x >= std::min(p.x, q.x) && x.x <= std::max(p.x, q.x) && x.y >= std::min(p.y, q.y) &&
               x.y <= std::max(p.y, q.y);
    };
    int const o1 = sign(cross(a, b, c)), o2 = sign(cross(a, b, d)), o3 = sign(cross(c, d, a)),
              o4 = sign(cross(c, d, b));
    if (o1 != o2 && o3 != o4) return true;
    return (o1 == 0 && in_box(a, b, c)) || (o2 == 0 && in_box(a, b, d)) || (o3 == 0 && in_box(c, d, a)) ||
           (o4 == 0 && in_box(c, d, b));
}

bool is_simple(ring const& r) {
    auto const n = r.size();
    for (std::size_t i = 0; i < n; ++i) {
        auto const &a = r[i], &b = r[(i + 1) % n], &c = r[(i + 2) % n];
        if (a == b || (cross(a, b, c) == 0 && (long{b.x - a.x} * (c.x - b.x) + long{b.y - a.y} * (c.y - b.y)) < 0))
            return false;
        for (std::size_t j = i + 2; j < n; ++j)
            if ((j + 1) % n != i && meet(a, b, r[j], r[(j + 1) % n])) return false;
    }
    return true;
}

class maker {
public:
    maker(lattice_options const& how, family kind) : how_{how}, kind_{kind}, random_{how.seed} {}

    geometries make() {
        for (std::size_t i = 0; i < how_.rows; ++i) {
            int const luck = below(1000);
            if (luck < how_.null_per_mille) {
                to_.null();
                continue;
            }
            to_.begin(kind_);
            if (luck >= how_.null_per_mille + how_.empty_per_mille) row();
            to_.end();
        }
        return to_.finish(kind_).value();
    }

private:
    int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
    corner any() { return {below(how_.size + 1), below(how_.size + 1)}; }
    void put(corner c) { to_.vertex(c.x, c.y); }

    void row() {
        switch (kind_) {
            case family::point: return put(any());
            case family::multipoint:
                for (int n = 1 + below(4); n > 0; --n) put(any());
                return;
            case family::linestring: return line();
            case family::multilinestring:
                for (int n = 1 + below(3); n > 0; --n) to_.begin_line(), line();
                return;
            case family::polygon:
            case family::multipolygon: return area();
            case family::mixed: return;
        }
    }
    void line() {
        auto last = any();
        put(last);
        for (int n = 1 + below(4), done = 0; done < n;) {
            auto const next = any();
            if (next == last && (done == 0 || below(4) != 0)) continue;  // repeated points, sometimes
            put(next);
            last = next, ++done;
        }
    }

    // Half of all areas are random simple rings; the others are unions of unit squares, which touch themselves, have holes and
    // share corners.
    void area() {
        if (below(2) == 0) return squares();
        ring r;
        do {
            r.clear();
            for (int n = 3 + below(4); n > 0; --n) r.push_back(any());
        } while (!is_simple(r));
        if (kind_ == family::multipolygon) to_.begin_polygon();
        write(r);
    }
    void write(ring const& r) {
        to_.begin_ring();
        for (auto const& c : r) {
            put(c);
            if (below(12) == 0) put(c);
        }
        put(r.front());
    }

    // A connected set of squares without its boundary touching itself more than OGC allows is traced: shell, then holes. The
    // boundary turns so that squares that share only a corner stay apart.
    void squares() {
        int const groups = kind_ == family::multipolygon ? 1 + below(2) : 1;
        std::set<cell> all;
        for (int g = 0; g < groups; ++g) {
            std::set<cell> own;
            auto grow = [&](cell c) {
                if (c.first < 0 || c.second < 0 || c.first >= how_.size || c.second >= how_.size) return;
                for (int dx = -1; dx <= 1; ++dx)
                    for (int dy = -1; dy <= 1; ++dy)
                        if ((dx == 0 || dy == 0) && all.contains({c.first + dx, c.second + dy}))
                            return;  // share no side
                own.insert(c);
            };
            for (int tries = 0; own.empty() && tries < 50; ++tries) grow({below(how_.size), below(how_.size)});
            if (own.empty()) break;
            for (int n = 1 + below(14); n > 0; --n) {
                auto at = std::next(own.begin(), below(static_cast<int>(own.size())));
                static constexpr std::array<cell, 4> steps{{{1, 0}, {-1, 0}, {0, 1}, {0, -1}}};
                auto const step = steps[static_cast<std::size_t>(below(4))];
                grow({at->first + step.first, at->second + step.second});
            }
            if (kind_ == family::multipolygon) to_.begin_polygon();
            trace(own);
            all.insert(own.begin(), own.end());
        }
    }
    void trace(std::set<cell> const& own) {
        struct edge {
            corner from, to;
            bool operator<(edge const& o) const {
                return std::tie(from.x, from.y, to.x, to.y) < std::tie(o.from.x, o.from.y, o.to.x, o.to.y);
            }
        };
        std::set<edge> edges;  // the squares are on the left
        for (auto const& [x, y] : own) {
            if (!own.contains({x, y - 1})) edges.insert(edge{{x, y}, {x + 1, y}});
            if (!own.contains({x + 1, y})) edges.insert(edge{{x + 1, y}, {x + 1, y + 1}});
            if (!own.contains({x, y + 1})) edges.insert(edge{{x + 1, y + 1}, {x, y + 1}});
            if (!own.contains({x - 1, y})) edges.insert(edge{{x, y + 1}, {x, y}});
        }
        std::vector<ring> rings;
        while (!edges.empty()) {
            ring r;
            auto now = *edges.begin();
            edges.erase(edges.begin());
            for (;;) {
                r.push_back(now.from);
                // Rings are as small as can be: where two ways lead on, the one to the right for shells is also the one that closes.
                if (now.to == r.front()) break;
                std::optional<edge> next;
                for (auto const& e : edges) {
                    if (!(e.from == now.to)) continue;
                    if (!next || cross(now.from, now.to, e.to) > cross(now.from, now.to, next->to)) next = e;
                }
                edges.erase(*next);
                now = *next;
                // A ring that comes back to a corner it has seen is cut off there.
                auto const seen = std::find(r.begin(), r.end(), now.from);
                if (seen != r.end()) {
                    rings.emplace_back(seen, r.end());
                    r.erase(seen, r.end());
                }
            }
            rings.push_back(r);
        }
        auto const twice_area = [](ring const& r) {
            long out = 0;
            for (std::size_t i = 0; i < r.size(); ++i) {
                auto const &a = r[i], &b = r[(i + 1) % r.size()];
                out += long{a.x} * b.y - long{a.y} * b.x;
            }
            return out;
        };
        // Left turns keep squares that share a corner in one ring only if they are one polygon: several shells are joined by
        // the fact that they touch in a corner, and are then no valid polygon. The largest is kept.
        std::vector<ring> shells, holes;
        for (auto& r : rings) (twice_area(r) > 0 ? shells : holes).push_back(thinned(r));
        auto const largest = std::max_element(
            shells.begin(), shells.end(), [&](ring const& a, ring const& b) { return twice_area(a) < twice_area(b); });
        write(*largest);
        if (shells.size() == 1)
            for (auto const& h : holes) write(h);
    }
    // Corners on straight pieces are left out half of the time.
    ring thinned(ring const& r) {
        ring out;
        for (std::size_t i = 0; i < r.size(); ++i) {
            auto const &a = r[(i + r.size() - 1) % r.size()], &b = r[i], &c = r[(i + 1) % r.size()];
            if (cross(a, b, c) != 0 || below(2) == 0) out.push_back(b);
        }
        if (below(2) == 0) std::reverse(out.begin(), out.end());  // either orientation
        return out;
    }

    lattice_options how_;
    family kind_;
    std::mt19937 random_;
    geometry_builder to_;
};

template <class T>
std::vector<T> take(std::ifstream& from, std::size_t n) {
    std::vector<T> out(n);
    from.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(n * sizeof(T)));
    return out;
}

}  // namespace

geometries lattice(family kind, lattice_options const& how) { return maker{how, kind}.make(); }

std::vector<refused_area> const& areas_without_borders() {
    static std::vector<refused_area> const all = {
        {"POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))", "rings cross: (0 0, 2 2) and (2 0, 0 2)"},
        {"POLYGON ((0 0, 1 1, 2 2, 2 0, 1 1, 0 2, 0 0))", "rings cross in (1, 1)"},
        {"POLYGON ((0 0, 8 0, 8 8, 0 8, 0 0), (6 6, 9 6, 9 9, 6 9, 6 6))", "rings cross: "},
        {"MULTIPOLYGON (((0 0, 4 0, 4 4, 0 4, 0 0)), ((2 2, 6 2, 6 6, 2 6, 2 2)))", "rings cross: "},
        {"MULTIPOLYGON (((0 0, 4 0, 4 4, 0 4, 0 0)), ((4 0, 8 0, 8 4, 4 4, 4 0)))", "run twice over one piece"},
        {"MULTIPOLYGON (((0 0, 4 0, 4 4, 0 4, 0 0)), ((4 1, 8 1, 8 2, 4 2, 4 1)))", "run twice over one piece"},
        {"MULTIPOLYGON (((0 0, 4 0, 4 4, 0 4, 0 0)), ((0 0, 4 0, 4 4, 0 4, 0 0)))", "run twice over one piece"},
        {"POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (0 0, 4 0, 4 4, 0 4, 0 0))", "run twice over one piece"},
        {"POLYGON ((0 0, 4 0, 4 4, 6 6, 4 4, 0 4, 0 0))", "or back, from (4, 4)"},
        {"POLYGON ((0 0, 2 2, 0 0, 0 0))", "or back, from (0, 0)"},
        {"POLYGON ((1 1, 1 1, 1 1, 1 1))", "a ring has no area: all its vertices are (1, 1)"},
        {"POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (6 1, 7 1, 7 2, 6 1))", "the ring at (6, 1) is a hole outside"},
        {"POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (4 1, 7 1, 7 2, 4 1))", "in each other where they must not"},
        {"POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 8 1, 8 8, 1 8, 1 1), (3 3, 4 3, 4 4, 3 3))",
         "the ring at (3, 3) is a hole outside"},
        {"MULTIPOLYGON (((0 0, 4 0, 4 4, 0 4, 0 0)), ((1 1, 2 1, 2 2, 1 1)))",
         "the ring at (1, 1) is a polygon inside"},
        {"MULTIPOLYGON (((0 0, 4 0, 4 4, 0 4, 0 0)), ((0 1, 2 1, 2 2, 0 1)))", "in each other where they must not"},
    };
    return all;
}

std::vector<std::string> const& areas_that_touch_themselves() {
    static std::vector<std::string> const all = {
        "POLYGON ((0 0, 4 0, 2 2, 4 4, 0 4, 2 2, 0 0))",                   // in one point
        "POLYGON ((0 0, 8 0, 8 8, 4 0, 0 8, 0 0))",                        // a vertex on its own segment
        "POLYGON ((0 0, 8 0, 8 8, 0 8, 0 0), (0 4, 4 1, 8 4, 4 7, 0 4))",  // a hole that divides it
        "POLYGON ((0 0, 8 0, 8 8, 0 8, 0 0), (0 0, 4 1, 1 4, 0 0), (4 1, 6 2, 4 3, 4 1))",
        "MULTIPOLYGON (((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 8 1, 8 8, 1 8, 1 1)), ((1 4, 4 1, 8 4, 4 8, 1 4)))",
        "MULTIPOLYGON (((0 0, 4 0, 4 4, 0 0)), ((4 4, 8 4, 8 8, 4 4)), ((4 0, 6 1, 6 -1, 4 0)))"};
    return all;
}

spatial::geometries anew(spatial::geometries const& g) {
    using spatial::geometries;
    bool const mixed = g.kind() == spatial::family::mixed;
    auto const memory = mixed ? geometries::make(g.mixed()).value() : geometries::make(g.parts()).value();
    return g.chosen() ? memory.view(*g.chosen()).value() : memory;
}

geometries row_of(std::string const& text) { return from_wkt(std::vector{text}).value(); }

geometries rings_of_any_kind(std::size_t rows, unsigned seed) {
    std::mt19937 random{seed};
    auto const below = [&](unsigned n) { return random() % n; };
    geometry_builder to;
    for (std::size_t row = 0; row < rows; ++row) {
        to.begin(family::multipolygon);
        for (auto polygons = 1 + below(2); polygons > 0; --polygons) {
            to.begin_polygon();
            for (auto rings = 1 + below(2); rings > 0; --rings) {
                to.begin_ring();
                std::vector<std::pair<double, double>> ring;
                for (auto corners = 3 + below(2); corners > 0; --corners) ring.emplace_back(below(6), below(6));
                ring.push_back(ring.front());
                for (auto const& [x, y] : ring) to.vertex(x, y);
            }
        }
        to.end();
    }
    return to.finish().value();
}

spatial::geometries spirals(std::size_t rows, int points, double at) {
    geometry_builder to;
    for (std::size_t r = 0; r < rows; ++r) {
        to.begin(family::linestring);
        for (int i = 0; i < points; ++i) {
            double const angle = i * 0.05, radius = 1 + i * 0.001;
            to.vertex(at + static_cast<double>(r) + radius * std::cos(angle), radius * std::sin(angle));
        }
        to.end();
    }
    return to.finish().value();
}

std::optional<geometries> real_layer(std::string const& name) {
    std::ifstream file{KILN_TEST_LAYERS "/" + name + ".layer", std::ios::binary};
    if (!file) return {};
    auto const sizes = take<std::int64_t>(file, 3);
    auto const rows = static_cast<std::size_t>(sizes[0]), rings = static_cast<std::size_t>(sizes[1]),
               vertices = static_cast<std::size_t>(sizes[2]);
    auto const row_first = take<std::int32_t>(file, rows + 1);
    auto const ring_first = take<std::int32_t>(file, rings + 1);
    auto const shell = take<std::uint8_t>(file, rings);
    auto const x = take<double>(file, vertices), y = take<double>(file, vertices);
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

}  // namespace kiln::spatial_tests
