// SPDX-License-Identifier: Apache-2.0
#include <kiln/spatial/locate.hpp>
#include <kiln/spatial/measures.hpp>
#include <kiln/spatial/nearest.hpp>
#include <kiln/spatial/wkt.hpp>

#include "geos.hpp"
#include "samples.hpp"
#include "spatial/cells.hpp"
#include "spatial/tree.hpp"
#include "superaccumulator.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::spatial_tests {

namespace {

using namespace spatial;
using testing::ElementsAre;

geometries read(std::vector<std::string> const& rows) { return from_wkt(rows).value(); }

struct plain_point {
    double x, y;
};

// Every edge of every row, by the truth about signs.
standing const* full_scan(kiln_spatial::layer const& l, int row, plain_point p) {
    static standing const inside = standing::inside, on = standing::on_boundary;
    bool odd = false;
    for (int v = l.path_first[l.row_first[row]]; v < l.path_first[l.row_first[row + 1]]; ++v) {
        if (!kiln_spatial::is_segment(l, v)) continue;
        plain_point const a{l.at[v].x, l.at[v].y}, b{l.at[v + 1].x, l.at[v + 1].y};
        if (truly_on(a, b, p)) return &on;
        if ((a.y > p.y) == (b.y > p.y)) continue;
        odd ^= true_side(a.y < b.y ? a : b, a.y < b.y ? b : a, p) < 0;
    }
    return odd ? &inside : nullptr;
}

std::vector<plain_point> points_for(kiln_spatial::layer const& l, unsigned seed, int n) {
    std::mt19937_64 random{seed};
    auto const real = [&](double from, double to) { return std::uniform_real_distribution<double>{from, to}(random); };
    double x0 = 1e300, y0 = 1e300, x1 = -1e300, y1 = -1e300;
    for (int v = 0; v < l.vertices; ++v) {
        x0 = std::min(x0, l.at[v].x), y0 = std::min(y0, l.at[v].y), x1 = std::max(x1, l.at[v].x),
        y1 = std::max(y1, l.at[v].y);
    }
    std::vector<plain_point> out;
    for (int i = 0; i < n; ++i) {
        int const v = static_cast<int>(random() % static_cast<unsigned>(l.vertices)),
                  w = std::min(v + 1, l.vertices - 1);
        auto const a = l.at[v], b = l.at[w];
        switch (i % 6) {
            case 0: out.push_back({real(x0 - 1, x1 + 1), real(y0 - 1, y1 + 1)}); break;
            case 1: out.push_back({a.x, a.y}); break;
            case 2: out.push_back({(a.x + b.x) / 2, (a.y + b.y) / 2}); break;
            case 3: out.push_back({std::nextafter(a.x, 1e9), a.y}); break;
            case 4: out.push_back({a.x, real(y0, y1)}); break;
            default: out.push_back({std::floor(real(x0, x1)), std::floor(real(y0, y1))}); break;
        }
    }
    return out;
}

std::size_t wrong_places(geometries const& areas, cell_options const& how, unsigned seed, int n) {
    auto const layer = host_layer::plain(areas).value();
    host_cells const cells{layer, how};
    auto const l = layer.view();
    std::size_t wrong = 0;
    for (auto const& p : points_for(l, seed, n)) {
        std::vector<std::pair<int, bool>> got;
        cells.locate({p.x, p.y}, [&](int row, kiln_spatial::place where) {
            got.emplace_back(row, where == kiln_spatial::place::on);
            return false;
        });
        std::vector<std::pair<int, bool>> expected;
        for (int row = 0; row < l.rows; ++row)
            if (auto const* at = full_scan(l, row, p)) expected.emplace_back(row, *at == standing::on_boundary);
        wrong += got == expected ? 0 : 1;
    }
    return wrong;
}

}  // namespace

TEST(location, is_that_of_a_full_scan_with_exact_signs) {
    for (unsigned seed = 1; seed <= 6; ++seed) {
        lattice_options how;
        how.rows = 40, how.size = 4 + static_cast<int>(seed), how.seed = seed, how.null_per_mille = 50,
        how.empty_per_mille = 50;
        auto const areas = lattice(seed % 2 == 0 ? family::polygon : family::multipolygon, how);
        cell_options coarse;  // nothing but divided cells
        coarse.least_cells = 4, coarse.most_cells = 8, coarse.split_above = 2;
        cell_options whole;
        whole.split_above = ~0U;
        for (auto const& o : {cell_options{}, coarse, whole}) EXPECT_EQ(wrong_places(areas, o, seed, 600), 0U) << seed;
    }
}

// Strips, much longer than they are high: no edge lies in more cells than a few thousand, however many there are at least.
TEST(location, in_flat_layers_takes_no_more_than_in_others) {
    for (bool const upright : {false, true}) {
        for (auto const& [strips, high] : {std::pair{10, 1e-9}, {100, 1e-9}, {200, 1e-6}, {100, 1.0}}) {
            std::vector<std::string> rows;
            for (int i = 0; i < strips; ++i) {
                double const from = i * high, to = (i + 1) * high;
                rows.push_back(upright
                                   ? fmt::format("POLYGON (({0} 0, {1} 0, {1} 1, {0} 1, {0} 0))", from, to)
                                   : fmt::format("POLYGON ((0 {0}, 1 {0}, 1 {1}, 0.5 {1}, 0 {1}, 0 {0}))", from, to));
            }
            auto const areas = read(rows);
            auto const layer = host_layer::plain(areas).value();
            cell_options how;
            how.least_cells = 1 << 20;
            host_cells const cells{layer, how};
            EXPECT_LT(cells.bytes(), (std::size_t{16} << 20) + areas.vertices() * (std::size_t{64} << 10))
                << strips << " of " << high << (upright ? " upright" : "");
            EXPECT_EQ(wrong_places(areas, cell_options{}, 7, 300), 0U) << strips << " of " << high;
        }
    }
}

TEST(location, in_natural_earth_is_that_of_a_full_scan) {
    auto const layer = real_layer("ne110");
    if (!layer) GTEST_SKIP() << "Natural Earth is not in KILN_SPATIAL_DATA";
    EXPECT_EQ(wrong_places(*layer, {}, 9, 240), 0U);
}

// Half-integers moved by (2^-20, 2^-45): far less than any distance between them, so the moved point is where the rule says.
TEST(location, with_ties_up_or_down_is_the_limit_of_moved_points) {
    lattice_options how;
    how.rows = 30, how.size = 7;
    auto const layer = host_layer::plain(lattice(family::polygon, how)).value();
    host_cells const cells{layer};
    using namespace kiln_spatial;
    auto const rows = [&]<tie Mode>(point p) {
        std::vector<int> out;
        kiln_spatial::locate<Mode, certainty::exact>(cells.view(), p, [&](int row, place where) {
            EXPECT_TRUE(Mode == tie::on || where == place::inside);
            out.push_back(row);
            return false;
        });
        return out;
    };
    for (int i = 0; i <= 14; ++i) {
        for (int j = 0; j <= 14; ++j) {
            point const p{i / 2.0, j / 2.0}, up{p.x + 0x1p-20, p.y + 0x1p-45}, down{p.x - 0x1p-20, p.y - 0x1p-45};
            EXPECT_EQ(rows.operator()<tie::up>(p), rows.operator()<tie::on>(up)) << p.x << " " << p.y;
            EXPECT_EQ(rows.operator()<tie::down>(p), rows.operator()<tie::on>(down)) << p.x << " " << p.y;
        }
    }
}

TEST(location, answers_by_point_and_area) {
    auto const index = cpu::area_index::make(read({"POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))", "NULL",
                                                   "POLYGON ((2 0, 6 0, 6 4, 2 4, 2 0))", "POLYGON EMPTY"}))
                           .value();
    auto const got = index.locate(read({"POINT (1 1)", "NULL", "POINT (4 2)", "POINT EMPTY", "POINT (9 9)"})).value();
    EXPECT_THAT(got, ElementsAre(located_point{0, 0, standing::inside}, located_point{2, 0, standing::on_boundary},
                                 located_point{2, 2, standing::inside}));
    EXPECT_FALSE(index.locate(read({"LINESTRING (0 0, 1 1)"})));
}

// ---- Distances

// Distances that are reported as one are a tie, though their squares differ.
// Floats at four million are a quarter apart: nodes have their boxes from the corner of everything on.
TEST(tree, tells_boxes_apart_wherever_they_lie) {
    auto const visits = [](double at, double size) {
        std::mt19937_64 random{11};
        std::uniform_real_distribution<double> place{0, 1};
        std::vector<kiln_spatial::box> boxes;
        for (int i = 0; i < 2000; ++i) {
            double const x = at + size * place(random), y = at + size * place(random), to = size / 200;
            boxes.push_back({x, y, x + to, y + to});
        }
        host_tree const tree{boxes};
        auto const view = tree.view();
        std::size_t met = 0, really = 0;
        for (auto const& b : boxes) {
            query_tree(view, view.rough(b), [&](kiln_spatial::u32) { ++met; });
            for (auto const& c : boxes)
                really += b.min_x <= c.max_x && c.min_x <= b.max_x && b.min_y <= c.max_y && c.min_y <= b.max_y ? 1 : 0;
        }
        EXPECT_GE(met, really) << at;
        return met;
    };
    auto const here = visits(0, 1);
    for (double const at : {4e6, -4e6, 1e9}) EXPECT_LT(visits(at, 1), here * 11 / 10) << at;
}

TEST(nearest, ties_are_of_distances_as_they_are_reported) {
    auto const here = read({"POINT (0 0)"}), there = read({"POINT (2.128 0.299)", "POINT (1.916 0.973)"});
    auto const rows = [&](nearest_options const& how) {
        std::vector<int> out;
        for (auto const& p : cpu::nearest(here, there, how).value()) out.push_back(p.right);
        return out;
    };
    EXPECT_THAT(rows({}), ElementsAre(0, 1));
    EXPECT_THAT(rows({.equal = ties::by_row}), ElementsAre(0));
    EXPECT_THAT(rows({.count = 2}), ElementsAre(0, 1));
}

TEST(nearest, keeps_ties_and_the_limit) {
    auto const targets = read({"POINT (0 0)", "POINT (2 0)", "NULL", "POINT (0 0)", "POINT EMPTY", "POINT (5 0)"});
    auto const from = read({"POINT (1 0)", "POINT EMPTY", "POINT (0 0)"});
    auto const rows = [&](nearest_options const& how) {
        std::vector<std::tuple<int, int, double>> out;
        for (auto const& p : cpu::nearest(from, targets, how).value()) out.emplace_back(p.left, p.right, p.distance);
        return out;
    };
    using t = std::tuple<int, int, double>;
    EXPECT_THAT(rows({}), ElementsAre(t{0, 0, 1}, t{0, 1, 1}, t{0, 3, 1}, t{2, 0, 0}, t{2, 3, 0}));
    nearest_options one;
    one.equal = ties::by_row;
    EXPECT_THAT(rows(one), ElementsAre(t{0, 0, 1}, t{2, 0, 0}));
    nearest_options four;
    four.count = 4, four.most = 4;
    EXPECT_THAT(rows(four),
                ElementsAre(t{0, 0, 1}, t{0, 1, 1}, t{0, 3, 1}, t{0, 5, 4}, t{2, 0, 0}, t{2, 3, 0}, t{2, 1, 2}));
}

#ifdef KILN_TEST_GEOS

TEST(distances, between_all_families_are_those_of_geos) {
    for (int ka = 1; ka <= 6; ++ka) {
        for (int kb = 1; kb <= 6; ++kb) {
            lattice_options how;
            how.rows = 80, how.size = 9, how.seed = static_cast<unsigned>(ka * 10 + kb), how.empty_per_mille = 20;
            auto const a = lattice(static_cast<family>(ka), how);
            how.seed += 1000;
            auto const b = lattice(static_cast<family>(kb), how);
            geos g;
            auto const ga = g.read(a), gb = g.read(b);
            auto const got = cpu::distance(a, b).value();
            for (std::size_t i = 0; i < got.size(); ++i) {
                double expected = 0;
                if (a.is_empty(i) || b.is_empty(i)) {
                    EXPECT_FALSE(got[i]);
                    continue;
                }
                GEOSDistance_r(g.handle(), ga[i], gb[i], &expected);
                EXPECT_NEAR(*got[i], expected, 1e-14 * (1 + expected))
                    << to_wkt(a).value()[i] << " " << to_wkt(b).value()[i];
                EXPECT_EQ(*got[i] == 0, expected == 0);
            }
        }
    }
}

TEST(nearest, is_the_least_distance_of_geos) {
    for (int ka = 1; ka <= 6; ++ka) {
        lattice_options how;
        how.rows = 40, how.size = 30, how.seed = static_cast<unsigned>(ka);
        auto const a = lattice(static_cast<family>(ka), how);
        how.seed += 77, how.size = 12;
        auto const b = lattice(static_cast<family>(7 - ka), how);
        geos g;
        auto const ga = g.read(a), gb = g.read(b);
        nearest_options three;
        three.count = 3, three.equal = ties::by_row;
        auto const got = cpu::nearest(a, b, three).value();
        ASSERT_EQ(got.size(), 3 * ga.size());
        for (std::size_t i = 0; i < ga.size(); ++i) {
            std::vector<double> all(gb.size());
            for (std::size_t j = 0; j < gb.size(); ++j) GEOSDistance_r(g.handle(), ga[i], gb[j], &all[j]);
            std::sort(all.begin(), all.end());
            for (std::size_t k = 0; k < 3; ++k)
                EXPECT_NEAR(got[3 * i + k].distance, all[k], 1e-13 * (1 + all[k])) << ka << " " << i;
        }
    }
}

TEST(measures, are_those_of_geos) {
    for (int kind = 1; kind <= 6; ++kind) {
        lattice_options how;
        how.rows = 200, how.size = 9, how.seed = static_cast<unsigned>(kind), how.empty_per_mille = 50,
        how.null_per_mille = 50;
        auto const a = lattice(static_cast<family>(kind), how);
        geos g;
        auto const ga = g.read(a);
        auto const area = cpu::area(a).value(), length = cpu::length(a).value();
        auto const boxes = cpu::bounds(a).value();
        auto const centres = cpu::centroid(a).value();
        for (std::size_t i = 0; i < ga.size(); ++i) {
            EXPECT_EQ(area[i].has_value(), ga[i] != nullptr);
            if (ga[i] == nullptr) continue;
            double expected = 0;
            GEOSArea_r(g.handle(), ga[i], &expected);
            EXPECT_NEAR(*area[i], expected, 1e-12);
            GEOSLength_r(g.handle(), ga[i], &expected);
            EXPECT_NEAR(*length[i], expected, 1e-12);
            EXPECT_EQ(boxes[i].has_value(), !a.is_empty(i));
            EXPECT_EQ(centres[i].has_value(), !a.is_empty(i));
            if (a.is_empty(i)) continue;
            bounding_box b;
            GEOSGeom_getXMin_r(g.handle(), ga[i], &b.min_x), GEOSGeom_getYMin_r(g.handle(), ga[i], &b.min_y);
            GEOSGeom_getXMax_r(g.handle(), ga[i], &b.max_x), GEOSGeom_getYMax_r(g.handle(), ga[i], &b.max_y);
            EXPECT_EQ(*boxes[i], b);
            auto* const c = GEOSGetCentroid_r(g.handle(), ga[i]);
            double x = 0, y = 0;
            GEOSGeomGetX_r(g.handle(), c, &x), GEOSGeomGetY_r(g.handle(), c, &y);
            GEOSGeom_destroy_r(g.handle(), c);
            EXPECT_NEAR(centres[i]->x, x, 1e-12);
            EXPECT_NEAR(centres[i]->y, y, 1e-12);
        }
    }
}

#endif

}  // namespace kiln::spatial_tests
