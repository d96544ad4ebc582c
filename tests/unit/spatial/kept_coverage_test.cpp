// SPDX-License-Identifier: Apache-2.0
// Areas that share borders with fewer vertices, by the device's text run on the host.
#include "counting_queue.hpp"
#include "geos.hpp"
#include "overlay_samples.hpp"
#include "samples.hpp"
#include "spatial/overlay/coverage.hpp"
#include "spatial/overlay/overlay.hpp"

#include <kiln/runtime/execution.hpp>
#include <kiln/spatial/measures.hpp>
#include <kiln/spatial/relate.hpp>
#include <kiln/spatial/validate.hpp>
#include <kiln/spatial/wkt.hpp>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace kiln::spatial_tests {

namespace {

using namespace spatial;
using testing::ElementsAre;
using testing::SizeIs;

using place = std::pair<double, double>;
using edge = std::pair<place, place>;  // the lesser end first

// ---- What is looked at ----

struct plain_ring {
    std::size_t row;
    std::vector<place> at;  // closed
};
std::vector<plain_ring> rings_of(geometries const& g) {
    std::vector<plain_ring> out;
    auto const& p = g.parts();
    for (std::size_t row = 0; row < g.rows(); ++row)
        for (auto polygon = p.offsets[0].data()[row]; polygon < p.offsets[0].data()[row + 1]; ++polygon)
            for (auto ring = p.offsets[1].data()[polygon]; ring < p.offsets[1].data()[polygon + 1]; ++ring) {
                out.push_back({row, {}});
                for (auto v = p.offsets[2].data()[ring]; v < p.offsets[2].data()[ring + 1]; ++v)
                    out.back().at.emplace_back(p.x.data()[v], p.y.data()[v]);
            }
    return out;
}
std::map<edge, std::vector<std::size_t>> owners_of(geometries const& g) {
    std::map<edge, std::vector<std::size_t>> out;
    for (auto const& r : rings_of(g))
        for (std::size_t k = 0; k + 1 < r.at.size(); ++k)
            out[{std::min(r.at[k], r.at[k + 1]), std::max(r.at[k], r.at[k + 1])}].push_back(r.row);
    return out;
}
std::set<std::vector<std::size_t>> neighbours_in(geometries const& g) {
    std::set<std::vector<std::size_t>> out;
    for (auto const& [e, rows] : owners_of(g))
        if (rows.size() > 1) out.insert(rows);
    return out;
}
// By row, holes of its polygons.
std::vector<std::multiset<int>> parts_of_rows(geometries const& g) {
    std::vector<std::multiset<int>> out(g.rows());
    auto const& p = g.parts();
    for (std::size_t row = 0; row < g.rows(); ++row)
        for (auto polygon = p.offsets[0].data()[row]; polygon < p.offsets[0].data()[row + 1]; ++polygon)
            out[row].insert(p.offsets[1].data()[polygon + 1] - p.offsets[1].data()[polygon] - 1);
    return out;
}
std::vector<std::string> relations_in(geometries const& g) {
    std::vector<std::string> out;
    for (auto const& pair : cpu::relate_join(g, g).value())
        if (pair.left < pair.right) out.push_back(fmt::format("{} {} {}", pair.left, pair.right, pair.how.text()));
    return out;
}
double distance_from(place p, place a, place b) {
    double const dx = b.first - a.first, dy = b.second - a.second, length = dx * dx + dy * dy;
    double const along =
        std::clamp(((p.first - a.first) * dx + (p.second - a.second) * dy) / (length > 0 ? length : 1), 0.0, 1.0);
    return std::hypot(p.first - a.first - along * dx, p.second - a.second - along * dy);
}
double total_area(geometries const& g) {
    auto const areas = cpu::area(g).value();
    return std::accumulate(areas.begin(), areas.end(), 0.0, [](double sum, auto a) { return sum + a.value_or(0); });
}

geometries simplified_once(geometries const& g, double tolerance, int most_splits = most_splits_of_spans) {
    host_queue on{item_order::scrambled};
    return simplified_coverage(on, g, tolerance, most_splits).value();
}
std::vector<std::string> simplified_text(std::vector<std::string> const& rows, double tolerance) {
    return to_wkt(simplified_once(from_wkt(rows).value(), tolerance)).value();
}

// As areas are drawn, so that what is the same has the same text.
geometries drawn(geometries const& g) {
    host_queue on;
    return areas_mended(on, g).value();
}

enum class rows_are : std::uint8_t { apart, any };

// Everything that is promised, of rows that are drawn.
void check(geometries const& before, double tolerance, rows_are what = rows_are::apart,
           int most_splits = most_splits_of_spans) {
    auto const after = simplified_once(before, tolerance, most_splits);
    host_queue in_order;
    EXPECT_EQ(to_wkt(simplified_coverage(in_order, before, tolerance, most_splits).value()).value(),
              to_wkt(after).value());
    EXPECT_THAT(validate(after).value(), SizeIs(0));
    EXPECT_THAT(validate_rings(after).value(), SizeIs(0));
    EXPECT_EQ(parts_of_rows(after), parts_of_rows(before));
    EXPECT_EQ(relations_in(after), relations_in(before));
#ifdef KILN_TEST_GEOS
    geos by;
    for (auto const* g : by.read(after)) EXPECT_TRUE(g == nullptr || by.is_valid(g));
#endif
    auto const rings = rings_of(after);
    auto const was = rings_of(before);
    for (auto const& r : was)
        for (auto const& p : r.at) {
            double nearest = 1e300;
            for (auto const& s : rings)
                for (std::size_t k = 0; s.row == r.row && k + 1 < s.at.size(); ++k)
                    nearest = std::min(nearest, distance_from(p, s.at[k], s.at[k + 1]));
            ASSERT_LE(nearest, tolerance * (1 + 1e-12) + 1e-15);
        }
    if (what == rows_are::any) return;
    // A coverage: each edge has one owner or two, those of two have the same two neighbours as before, and nothing lies twice.
    for (auto const& [e, rows] : owners_of(after)) EXPECT_LE(rows.size(), 2U);
    EXPECT_EQ(neighbours_in(after), neighbours_in(before));
    std::set<place> known;
    for (auto const& r : was) known.insert(r.at.begin(), r.at.end());
    for (auto const& r : rings)
        for (auto const& p : r.at) EXPECT_EQ(known.count(p), 1U);
    EXPECT_NEAR(total_area(united_rows(in_order, after).value()), total_area(after), 1e-9);
}

// ---- What is tried ----

// A ring of ways between places that jump aside: those of two neighbours are the same.
class tiling {
public:
    tiling(int size, int steps, double aside, unsigned seed)
        : size_{size}, steps_{steps}, aside_{aside}, random_{seed} {
        for (int i = 0; i <= size; ++i)
            for (int k = 0; k <= size; ++k) corners_[{i, k}] = {i + real(-0.2, 0.2), k + real(-0.2, 0.2)};
    }
    // Cells with one of so many keys are a row: parts, holes, islands in them, corners that touch.
    geometries rows(int keys) {
        geometry_builder to;
        std::vector<std::int32_t> key;
        for (int i = 0; i < size_; ++i)
            for (int k = 0; k < size_; ++k) {
                to.begin(family::polygon), to.begin_ring();
                auto const ring = ring_around(i, k);
                for (auto const& [x, y] : ring) to.vertex(x, y);
                to.end(), key.push_back(static_cast<std::int32_t>(random_() % static_cast<unsigned>(keys)));
            }
        auto const cells = to.finish(family::polygon).value();
        host_queue on;
        return dissolved_rows(on, cells, buffer<std::int32_t>::copy_of(key), static_cast<std::size_t>(keys)).value();
    }

private:
    using corner = std::pair<int, int>;
    double real(double from, double to) { return from + (to - from) * static_cast<double>(random_()) * 0x1p-64; }
    std::vector<place> const& way(corner from, corner to) {
        auto& out = ways_[{from, to}];
        if (!out.empty()) return out;
        auto const a = corners_[from], b = corners_[to];
        double const dx = b.first - a.first, dy = b.second - a.second;
        out.push_back(a);
        for (int s = 1; s <= steps_; ++s) {
            // Less near the ends, so that ways meet nowhere else.
            double const t = static_cast<double>(s) / (steps_ + 1), far = std::min(t, 1 - t) * real(-aside_, aside_);
            out.emplace_back(a.first + t * dx - far * dy, a.second + t * dy + far * dx);
        }
        out.push_back(b);
        return out;
    }
    std::vector<place> ring_around(int i, int k) {
        std::vector<place> out;
        auto const put = [&](std::vector<place> some, bool backwards) {
            if (backwards) std::ranges::reverse(some);
            out.insert(out.end(), some.begin(), some.end() - 1);
        };
        put(way({i, k}, {i + 1, k}), false), put(way({i + 1, k}, {i + 1, k + 1}), false);
        put(way({i, k + 1}, {i + 1, k + 1}), true), put(way({i, k}, {i, k + 1}), true);
        out.push_back(out.front());
        return out;
    }

    int size_, steps_;
    double aside_;
    std::mt19937_64 random_;
    std::map<corner, place> corners_;
    std::map<std::pair<corner, corner>, std::vector<place>> ways_;
};

}  // namespace

TEST(simplify_coverage, a_border_is_one_border) {
    EXPECT_THAT(simplified_text({"POLYGON ((0 0, 2 0, 2.1 1, 2 2, 0 2, 0 0))", "NULL", "POLYGON EMPTY",
                                 "POLYGON ((2 0, 4 0, 4 2, 2 2, 2.1 1, 2 0))"},
                                0.5),
                ElementsAre("MULTIPOLYGON (((0 0, 2 0, 2 2, 0 2, 0 0)))", "NULL", "MULTIPOLYGON EMPTY",
                            "MULTIPOLYGON (((2 0, 4 0, 4 2, 2 2, 2 0)))"));
    EXPECT_THAT(simplified_text({}, 1), SizeIs(0));
    EXPECT_THAT(simplified_text({"NULL"}, 1), ElementsAre("NULL"));
    // What is on a straight line goes without a tolerance, and nothing else.
    EXPECT_THAT(simplified_text({"POLYGON ((0 0, 1 0, 2 0, 2 1, 2 2, 0 2.25, 0 0))"}, 0),
                ElementsAre("MULTIPOLYGON (((0 0, 2 0, 2 2, 0 2.25, 0 0)))"));
}

// However their rings begin and run, and whichever row comes first.
TEST(simplify_coverage, the_same_whatever_rings_begin_with) {
    std::vector<std::string> west{"0 0", "5 0", "5.2 1", "4.6 2", "5.2 3", "5 4", "4.9 5", "0 5"},
        east{"5 0", "9 0", "9 5", "4.9 5", "5 4", "5.2 3", "4.6 2", "5.2 1"};
    auto const text = [](std::vector<std::string> const& ring) {
        return fmt::format("POLYGON (({}, {}))", fmt::join(ring, ", "), ring.front());
    };
    for (double const tolerance : {0.0, 0.25, 0.5, 10.0}) {
        auto const expected = simplified_text({text(west), text(east)}, tolerance);
        check(drawn(from_wkt(std::vector<std::string>{text(west), text(east)}).value()), tolerance);
        for (int turned = 0; turned < 4; ++turned)
            for (std::size_t a = 0; a < west.size(); ++a)
                for (std::size_t b = 0; b < east.size(); ++b) {
                    auto left = west, right = east;
                    std::ranges::rotate(left, left.begin() + static_cast<std::ptrdiff_t>(a));
                    std::ranges::rotate(right, right.begin() + static_cast<std::ptrdiff_t>(b));
                    if ((turned & 1) != 0) std::ranges::reverse(left);
                    if ((turned & 2) != 0) std::ranges::reverse(right);
                    ASSERT_EQ(simplified_text({text(left), text(right)}, tolerance), expected);
                    auto const other_way = simplified_text({text(right), text(left)}, tolerance);
                    ASSERT_THAT(other_way, ElementsAre(expected[1], expected[0]));
                }
    }
}

TEST(simplify_coverage, what_would_cross_or_change_sides_keeps_vertices) {
    std::vector<std::vector<std::string>> const layers{
        // A corridor that is bent: either side, straight, would run through the other.
        {"POLYGON ((0 0, 10 0, 10 10, 5 1, 0 10, 0 0))", "POLYGON ((0 10, 5 1, 10 10, 10 11, 5 2, 0 11, 0 10))"},
        // A lens between two rows: both its sides would be the same segment.
        {"POLYGON ((0 0, 10 0, 10 5, 5 4.9, 0 5, 0 0))", "POLYGON ((0 5, 5 4.9, 10 5, 5 5.1, 0 5))",
         "POLYGON ((0 5, 5 5.1, 10 5, 10 9, 0 9, 0 5))"},
        // An island in a bay that would be closed, and one in front of it, in another row.
        {"POLYGON ((0 0, 10 0, 10 10, 6 10, 5.5 4, 4.5 4, 4 10, 0 10, 0 0))", "POLYGON ((4.8 5, 5.2 5, 5 5.4, 4.8 5))",
         "POLYGON ((4.8 10.5, 5.2 10.5, 5 10.9, 4.8 10.5))"},
        // An island in a lake in an island in a lake, each its own row or the hole of one: no border meets another.
        {"POLYGON ((0 0, 20 0, 20 20, 10 20.5, 0 20, 0 0), (2 2, 2 18, 10 18.5, 18 18, 18 2, 2 2))",
         "POLYGON ((2 2, 18 2, 18 18, 10 18.5, 2 18, 2 2), (4 4, 4 16, 16 16, 16 4, 10 3.5, 4 4))",
         "POLYGON ((6 6, 14 6, 14 14, 10 14.5, 6 14, 6 6))"},
        // An enclave that touches its row's edge in a point; a row that touches itself.
        {"POLYGON ((0 0, 4.9 0.1, 10 0, 10 10, 0 10, 0 0), (4.9 0.1, 4 3, 5 3.1, 6 3, 4.9 0.1))",
         "POLYGON ((4.9 0.1, 6 3, 5 3.1, 4 3, 4.9 0.1))",
         "MULTIPOLYGON (((10 10, 12 10.1, 14 10, 14 14, 10 10)), ((10 0, 13 0, 14 10, 11 5.1, 10 0)))"},
        // Once an island keeps the farthest vertex, the next is far from what is left.
        {"POLYGON ((0 0, 0 -10, 10 -10, 10 0, 2 1, 8 -1.05, 0 0))",
         "POLYGON ((4.9 -0.35, 5.1 -0.35, 5 -0.25, 4.9 -0.35))"},
        // A spiral around a row, whose turns would all be one segment.
        {"POLYGON ((0 0, 9 0, 9 9, 1 9, 1 2, 7 2, 7 7, 3 7, 3 4, 5 4, 5 5, 4 5, 4 6, 6 6, 6 3, 2 3, 2 8, 8 8, 8 1, 0 "
         "1, "
         "0 0))",
         "POLYGON ((4.4 5.4, 4.6 5.4, 4.5 5.6, 4.4 5.4))", "POLYGON ((2.4 5.4, 2.6 5.4, 2.5 5.6, 2.4 5.4))"}};
    for (auto const& rows : layers)
        for (double const tolerance : {0.0, 0.2, 0.6, 1.1, 2.0, 12.0, 1000.0})
            for (int const most_splits : {most_splits_of_spans, 0, 1}) {
                SCOPED_TRACE(fmt::format("{} with {}, {} splits", rows[0], tolerance, most_splits));
                check(drawn(from_wkt(rows).value()), tolerance, rows_are::apart, most_splits);
            }
}

// What there is besides one ring decides what it may become.
TEST(simplify_coverage, more_vertices_stay_only_where_they_must) {
    std::string const bay{"POLYGON ((0 0, 10 0, 10 10, 6 10, 5 9, 4 10, 0 10, 0 0))"};
    EXPECT_THAT(simplified_text({bay}, 1.5), ElementsAre("MULTIPOLYGON (((0 0, 10 0, 10 10, 0 10, 0 0)))"));
    EXPECT_THAT(simplified_text({bay, "POLYGON ((4.9 9.5, 5.1 9.5, 5 9.7, 4.9 9.5))"}, 1.5),
                ElementsAre("MULTIPOLYGON (((0 0, 10 0, 10 10, 5 9, 0 10, 0 0)))",
                            "MULTIPOLYGON (((4.9 9.5, 5.1 9.5, 5 9.7, 4.9 9.5)))"));
    // No ring is less than a triangle.
    EXPECT_THAT(simplified_text({"POLYGON ((0 0, 4 0, 4 1, 0 1, 0 0))", "POLYGON ((8 0, 9 0, 9 1, 8 0))"}, 100),
                ElementsAre(testing::HasSubstr("((("), "MULTIPOLYGON (((8 0, 9 0, 9 1, 8 0)))"));
}

TEST(simplify_coverage, tilings) {
    for (unsigned seed = 0; seed < 30; ++seed) {
        int const size = 2 + static_cast<int>(seed % 4);
        auto const rows = tiling{size, 3 + static_cast<int>(seed % 7), seed % 3 == 0 ? 0.1 : 0.5, seed}.rows(
            2 + static_cast<int>(seed % 5));
        for (double const tolerance : {0.0, 0.05, 0.3, 50.0}) {
            SCOPED_TRACE(fmt::format("seed {} with {}", seed, tolerance));
            check(rows, tolerance, rows_are::apart, seed % 4 == 0 ? 0 : most_splits_of_spans);
        }
    }
}

// An island keeps the border around it, whose bend keeps the next one, and so on: far fewer rounds than borders.
TEST(simplify_coverage, borders_that_keep_one_another) {
    constexpr int count = 300;
    for (double const bend : {1.5, 1.0, 7.25}) {  // into the next, just up to it, beyond it
        SCOPED_TRACE(bend);
        std::vector<std::string> rows;
        for (int k = 0; k < count; ++k)
            rows.push_back(fmt::format("POLYGON ((-1 {0}, 0 {2}, 1 {0}, 1 {1}, 0 {3}, -1 {1}, -1 {0}))", k, k + 1,
                                       k + bend, k + 1 + bend));
        rows.push_back(
            fmt::format("POLYGON ((-1 0, 0 {}, 1 0, 0 -1, -1 0), (-0.01 0.5, 0.01 0.5, 0 0.51, -0.01 0.5))", bend));
        rows.emplace_back("POLYGON ((-0.01 0.5, 0.01 0.5, 0 0.51, -0.01 0.5))");
        auto const before = drawn(from_wkt(rows).value());
        counting_queue on;
        auto const after = simplified_coverage(on, before, 50).value();
        EXPECT_LE(on.runs_of("coverage_contacts"), 30U);
        EXPECT_THAT(validate_rings(after).value(), SizeIs(0));
        EXPECT_EQ(neighbours_in(after), neighbours_in(before));
        EXPECT_EQ(parts_of_rows(after), parts_of_rows(before));
    }
}

// Rows that overlap do so afterwards, in the same way; and borders are divided where a vertex of another row lies on them.
TEST(simplify_coverage, rows_that_are_no_coverage) {
    for (unsigned seed = 1; seed < 4; ++seed) {
        auto const rows = drawn(stars({.rows = 8, .seed = seed}));
        auto const nearby = simplified_once(rows, 0.05);
        EXPECT_EQ(relations_in(nearby), relations_in(rows));
        EXPECT_EQ(parts_of_rows(nearby), parts_of_rows(rows));
        EXPECT_THAT(validate_rings(nearby).value(), SizeIs(0));
    }
    EXPECT_THAT(simplified_text({"POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))", "POLYGON ((4 1, 6 1, 6 2, 4 2, 4 1))"}, 0.1),
                ElementsAre("MULTIPOLYGON (((0 0, 4 0, 4 1, 4 2, 4 4, 0 4, 0 0)))",
                            "MULTIPOLYGON (((4 1, 6 1, 6 2, 4 2, 4 1)))"));
    // A bow tie is two triangles, as everywhere.
    EXPECT_THAT(simplified_text({"POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))"}, 0.1),
                ElementsAre("MULTIPOLYGON (((0 0, 1 1, 0 2, 0 0)), ((1 1, 2 0, 2 2, 1 1)))"));
}

TEST(simplify_coverage, refuses_what_it_cannot_do) {
    scoped_execution_mode const cpu{execution_mode::cpu};
    auto const areas = from_wkt(std::vector<std::string>{"POLYGON ((0 0, 2 0, 2 2, 0 0))"}).value();
    EXPECT_EQ(simplify_coverage({}, areas, -1).error().code(), errc::invalid_argument);
    EXPECT_EQ(simplify_coverage({}, areas, std::nan("")).error().code(), errc::invalid_argument);
    EXPECT_EQ(simplify_coverage({}, areas, 1).value().vertices(), 4U);
    auto const mixed = from_wkt(std::vector<std::string>{"POLYGON ((0 0, 2 0, 2 2, 0 0))", "POINT (1 1)"}).value();
    auto const refused = simplify_coverage({}, mixed, 1);
    EXPECT_EQ(refused.error().code(), errc::unsupported);
    EXPECT_THAT(refused.error().message(),
                testing::HasSubstr("simplify_coverage: polygons and multipolygons are needed; row 1 is a point"));
}

// Polygons and multipolygons in one array.
TEST(simplify_coverage, mixed_rows) {
    scoped_execution_mode const cpu{execution_mode::cpu};
    auto const rows = from_wkt(std::vector<std::string>{"POLYGON ((0 0, 2 0, 2.1 1, 2 2, 0 2, 0 0))",
                                                        "MULTIPOLYGON (((2 0, 4 0, 4 2, 2 2, 2.1 1, 2 0)))"})
                          .value();
    EXPECT_THAT(
        to_wkt(simplify_coverage({}, rows, 0.5).value()).value(),
        ElementsAre("MULTIPOLYGON (((0 0, 2 0, 2 2, 0 2, 0 0)))", "MULTIPOLYGON (((2 0, 4 0, 4 2, 2 2, 2 0)))"));
}

}  // namespace kiln::spatial_tests
