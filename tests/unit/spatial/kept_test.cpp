// SPDX-License-Identifier: Apache-2.0
// The algorithms of the device, run on the host by the same text: with their items in order, and scrambled over memory that
// holds rubbish at first. What they give is what the CPU variants give.
#include <kiln/event.hpp>
#include <kiln/runtime/execution.hpp>
#include <kiln/runtime/rewrite.hpp>
#include <kiln/spatial/join.hpp>
#include <kiln/spatial/locate.hpp>
#include <kiln/spatial/measures.hpp>
#include <kiln/spatial/wkt.hpp>

#include "samples.hpp"
#include "spatial/area_index.hpp"
#include "spatial/kept_tree.hpp"
#include "spatial/layer.hpp"
#include "spatial/meeting.hpp"
#include "spatial/near.hpp"
#include "spatial/pairs.hpp"
#include "spatial/path_points.hpp"
#include "spatial/rectangles.hpp"
#include "spatial/relations.hpp"
#include "spatial/segments.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kiln::spatial_tests {

namespace {

using namespace spatial;

// Whole and half coordinates: vertices, edges and cells' corners are all met.
geometries some_points(std::size_t n, double from, double to, unsigned seed) {
    std::mt19937_64 random{seed};
    auto x = buffer<double>::on_host(n), y = buffer<double>::on_host(n);
    auto const steps = static_cast<std::uint64_t>((to - from) * 4);
    auto const next = [&] {
        return from + static_cast<double>(random() % (steps + 1)) / 4 +
               (random() % 8 == 0 ? static_cast<double>(random()) * 0x1p-64 : 0);
    };
    for (std::size_t i = 0; i < n; ++i) x.data()[i] = next(), y.data()[i] = next();
    x.data()[n / 2] = y.data()[n / 2] = NAN;  // an empty one
    return geometries::points(x, y).value();
}

plain_pairs expected_pairs(geometries const& points, geometries const& areas, std::uint32_t wanted) {
    plain_pairs out;
    auto const index = cpu::area_index::make(areas).value();
    for (auto const& p : index.locate(points).value()) {
        auto const bit = p.how == standing::on_boundary ? kiln_spatial::wanted_on : kiln_spatial::wanted_inside;
        if ((wanted & bit) != 0) out.left.push_back(p.point), out.right.push_back(p.area);
    }
    return out;
}

void check_points(geometries const& points, geometries const& areas) {
    for (auto const order : {item_order::ascending, item_order::scrambled}) {
        host_queue on{order};
        auto const index = build_index(on, areas).value();
        for (std::uint32_t const wanted : {1U, 2U, 3U}) {
            auto const expected = expected_pairs(points, areas, wanted);
            point_locator find{on, points, *index, wanted};
            EXPECT_EQ(values_of(find.pairs().value()), expected) << "wanted " << wanted;
            std::vector<std::int32_t> first(points.rows(), -1);
            std::vector<std::int64_t> count(points.rows(), 0), histogram(areas.rows(), 0);
            std::vector<std::uint8_t> any(points.rows(), 0);
            for (std::size_t i = expected.left.size(); i-- > 0;) {
                auto const l = static_cast<std::size_t>(expected.left[i]);
                first[l] = expected.right[i], ++count[l], any[l] = 1;
                ++histogram[static_cast<std::size_t>(expected.right[i])];
            }
            EXPECT_EQ(values_of(find.first().value()), first);
            EXPECT_EQ(values_of(find.count().value()), count);
            EXPECT_EQ(values_of(find.any().value()), any);
            EXPECT_EQ(values_of(find.histogram().value()), histogram);
        }
    }
}

geometries of_every_family(unsigned seed) {
    std::vector<std::string> rows;
    for (auto const kind : {family::point, family::multipolygon, family::linestring, family::polygon,
                            family::multipoint, family::multilinestring}) {
        auto const some =
            lattice(kind, {.rows = 9, .size = 7, .seed = seed, .empty_per_mille = 100, .null_per_mille = 100});
        auto const text = to_wkt(some).value();
        for (std::size_t i = 0; i < some.rows(); ++i) rows.push_back(text[i]);
    }
    return from_wkt(rows).value();
}

// What is counted without a list is what the list says.
struct row_counts {
    std::size_t left, right;
};
template <class Found>
void expect_forms_of_list(Found& found, queue& on, row_counts rows) {
    auto const pairs = found.pairs().value();
    EXPECT_EQ(values_of(found.first().value()), values_of(firsts_of(on, pairs, rows.left).value()));
    EXPECT_EQ(values_of(found.count().value()), values_of(counts_of(on, pairs, rows.left).value()));
    EXPECT_EQ(values_of(found.any().value()), values_of(any_of(on, pairs, rows.left).value()));
    EXPECT_EQ(values_of(found.histogram().value()), values_of(histogram_of(on, pairs, rows.right).value()));
}

class kept : public testing::Test {};

}  // namespace

TEST_F(kept, layers_are_those_of_the_host) {
    std::vector<geometries> all{of_every_family(3)};
    for (int kind = 1; kind <= 6; ++kind)
        all.push_back(lattice(static_cast<family>(kind),
                              {.rows = 40, .size = 6, .seed = 5, .empty_per_mille = 150, .null_per_mille = 150}));
    for (std::size_t k = 0, n = all.size(); k < n; ++k) {
        std::vector<std::int32_t> rows;
        for (std::size_t i = 0; i < all[k].rows(); ++i)
            rows.push_back(static_cast<std::int32_t>(i * 7 % all[k].rows()));
        all.push_back(all[k].view(buffer<std::int32_t>::copy_of(rows)).value());
    }
    for (auto const& g : all) {
        host_queue on{item_order::scrambled};
        auto const made = kept_layer::plain(on, g).value();
        auto const a = made.view();
        auto const host = host_layer::plain(g).value();
        auto const b = host.view();
        ASSERT_EQ(a.rows, b.rows);
        for (int row = 0; row < a.rows; ++row) {
            auto const r = static_cast<std::size_t>(row);
            EXPECT_EQ(made.states().data()[r], static_cast<std::uint8_t>(host.state(r)));
            EXPECT_EQ(made.dimensions().data()[r], host.dimension(r));
            // The host leaves out paths that are not there.
            int q = b.row_first[row];
            for (int p = a.row_first[row]; p < a.row_first[row + 1]; ++p) {
                EXPECT_EQ(a.row_of[p], row);
                for (int v = a.path_first[p]; v < a.path_first[p + 1]; ++v) EXPECT_EQ(a.path_of[v], p);
                if (a.kind[p] == kiln_spatial::no_path) continue;
                ASSERT_LT(q, b.row_first[row + 1]);
                EXPECT_EQ(a.kind[p], b.kind[q]);
                int const n = b.path_first[q + 1] - b.path_first[q];
                ASSERT_EQ(a.path_first[p + 1] - a.path_first[p], n);
                for (int v = 0; v < n; ++v) EXPECT_TRUE(a.at[a.path_first[p] + v] == b.at[b.path_first[q] + v]);
                ++q;
            }
            EXPECT_EQ(q, b.row_first[row + 1]);
        }
    }
}

TEST_F(kept, points_are_located_as_on_the_host) {
    auto const points = some_points(3000, -1, 8, 7);
    check_points(points, lattice(family::polygon,
                                 {.rows = 60, .size = 7, .seed = 2, .empty_per_mille = 50, .null_per_mille = 50}));
    check_points(points, lattice(family::multipolygon, {.rows = 60, .size = 7, .seed = 3}));
    check_points(points, of_every_family(4));
    check_points(points, from_wkt(std::vector<std::string>{}).value());
    // Many edges in few cells: three levels.
    std::string star = "POLYGON ((";
    for (int i = 0; i < 1000; ++i) {
        double const angle = i * 2 * 3.14159265358979 / 1000, r = i % 2 == 0 ? 3 : 0.0625;
        star += std::to_string(4 + r * std::cos(angle)) + " " + std::to_string(4 + r * std::sin(angle)) + ", ";
    }
    check_points(points,
                 from_wkt(std::vector<std::string>{star + "7.000000 4.000000))", "POLYGON ((0 0, 8 0, 8 8, 0 8, 0 0))"})
                     .value());
}

TEST_F(kept, views_and_nulls_of_points_are_kept) {
    auto const areas = lattice(family::polygon, {.rows = 30, .size = 6, .seed = 8});
    auto const points =
        lattice(family::point, {.rows = 400, .size = 6, .seed = 9, .empty_per_mille = 100, .null_per_mille = 100});
    check_points(points, areas);
    std::vector<std::int32_t> rows;
    for (int i = 0; i < 500; ++i) rows.push_back(i * 37 % 400);
    check_points(points.view(buffer<std::int32_t>::copy_of(rows)).value(), areas);
}

TEST_F(kept, real_areas) {
    auto const areas = real_layer("ne110");
    if (!areas) GTEST_SKIP() << "KILN_SPATIAL_DATA has no ne110";
    auto const& p = areas->parts();
    auto x = buffer<double>::on_host(4000), y = buffer<double>::on_host(4000);
    std::mt19937_64 random{1};
    for (std::size_t i = 0; i < 4000; ++i) {
        auto const v = random() % p.x.size();
        bool const free = i % 2 == 0;
        x.data()[i] = free ? -180 + static_cast<double>(random() % 3600) / 10 : p.x.data()[v];
        y.data()[i] = free ? -90 + static_cast<double>(random() % 1800) / 10 : p.y.data()[v];
    }
    check_points(geometries::points(x, y).value(), *areas);
}

TEST_F(kept, joins_of_points_and_areas_are_those_of_their_matrices) {
    auto const areas = lattice(family::polygon, {.rows = 40, .size = 6, .seed = 11, .null_per_mille = 50});
    auto const points =
        lattice(family::point, {.rows = 150, .size = 6, .seed = 12, .empty_per_mille = 50, .null_per_mille = 50});
    scoped_execution_mode const mode{execution_mode::cpu};
    for (int k = 0; k <= static_cast<int>(predicate::equals); ++k) {
        auto const what = static_cast<predicate>(k);
        for (bool const turned : {false, true}) {
            auto const& left = turned ? areas : points;
            auto const& right = turned ? points : areas;
            auto const all = cpu::relate_join(left, right).value();
            plain_pairs expected;
            std::vector<std::int32_t> first(left.rows(), -1);
            std::vector<std::int64_t> count(left.rows(), 0), histogram(right.rows(), 0);
            std::vector<std::uint8_t> any(left.rows(), 0);
            auto next = all.begin();
            for (std::size_t i = 0; i < left.rows(); ++i) {
                for (std::size_t j = 0; j < right.rows(); ++j) {
                    bool const there = next != all.end() && static_cast<std::size_t>(next->left) == i &&
                                       static_cast<std::size_t>(next->right) == j;
                    bool const wanted = !left.is_null(i) && !right.is_null(j) &&
                                        (there ? holds(what, next->how) : what == predicate::disjoint);
                    if (there) ++next;
                    if (!wanted) continue;
                    expected.left.push_back(static_cast<std::int32_t>(i)),
                        expected.right.push_back(static_cast<std::int32_t>(j));
                    if (first[i] < 0) first[i] = static_cast<std::int32_t>(j);
                    ++count[i], ++histogram[j], any[i] = 1;
                }
            }
            EXPECT_EQ(values_of(join({}, left, right, what).value()), expected) << name_of(what);
            EXPECT_EQ(values_of(join_first({}, left, right, what).value()), first) << name_of(what);
            EXPECT_EQ(values_of(join_count({}, left, right, what).value()), count) << name_of(what);
            EXPECT_EQ(values_of(join_any({}, left, right, what).value()), any) << name_of(what);
            EXPECT_EQ(values_of(join_histogram({}, left, right, what).value()), histogram) << name_of(what);
        }
    }
}

TEST_F(kept, boxes_are_found_and_large_ones_by_many_threads) {
    std::mt19937_64 random{4};
    auto const number = [&](double to) { return static_cast<double>(random() % 4096) / 4096 * to; };
    // Few hits each, more than are kept of a query, and some with very many.
    struct sizes {
        double small, large_share;
    };
    for (auto const& [small, large] : {sizes{2, 0}, sizes{12, 0}, sizes{2, 0.02}, sizes{11, 0.02}}) {
        std::vector<kiln_spatial::box> boxes;
        for (int i = 0; i < 3000; ++i) {
            double const x = number(100), y = number(100), size = number(1) < large ? 80 : small;
            boxes.push_back({x, y, x + number(size), y + number(size)});
            if (i % 50 == 0) boxes.push_back({1, 1, -1, -1});
        }
        auto const all = buffer<kiln_spatial::box>::copy_of(boxes);
        for (double const distance : {0.0, 0.5}) {
            plain_pairs expected;
            for (std::size_t i = 0; i < boxes.size(); ++i) {
                for (std::size_t j = 0; j < boxes.size(); ++j) {
                    auto const &a = boxes[i], &b = boxes[j];
                    if (a.min_x > a.max_x || b.min_x > b.max_x) continue;
                    double const x = std::max({0.0, a.min_x - b.max_x, b.min_x - a.max_x});
                    double const y = std::max({0.0, a.min_y - b.max_y, b.min_y - a.max_y});
                    if (x * x + y * y > distance * distance) continue;
                    expected.left.push_back(static_cast<std::int32_t>(i)),
                        expected.right.push_back(static_cast<std::int32_t>(j));
                }
            }
            for (auto const order : {item_order::ascending, item_order::scrambled}) {
                host_queue on{order};
                auto const tree = kept_tree::make(on, all).value();
                EXPECT_EQ(values_of(query_boxes(on, tree, all, distance).value()), expected)
                    << large << " " << distance;
                auto const n = expected.left.size();
                // Large ones searched for in the tree, none held against all.
                EXPECT_EQ(values_of(*query_boxes(on, tree, all, distance, n, 0).value()), expected)
                    << large << " " << distance;
                EXPECT_TRUE(query_boxes(on, tree, all, distance, n).value().has_value());
                EXPECT_FALSE(query_boxes(on, tree, all, distance, n - 1).value().has_value());
            }
        }
    }
}

TEST_F(kept, boxes_of_rows_need_no_layer) {
    std::vector<geometries> all{of_every_family(3), spirals(5, 1000, 0), spirals(3, 129, 2), spirals(3, 128, 2)};
    for (int k = 1; k <= 6; ++k)
        all.push_back(
            lattice(static_cast<family>(k), {.rows = 60, .seed = 5, .empty_per_mille = 100, .null_per_mille = 100}));
    for (std::size_t i = 0, n = all.size(); i < n; ++i)
        all.push_back(all[i].view(buffer<std::int32_t>::copy_of(std::vector{2, 0, 2, 1})).value());
    for (auto const& g : all) {
        for (auto const order : {item_order::ascending, item_order::scrambled}) {
            host_queue on{order};
            auto const got = values_of(boxes_of_rows(on, g).value());
            auto const expected = values_of(kept_layer::plain(on, g).value().row_boxes(on).value());
            ASSERT_EQ(got.size(), expected.size());
            for (std::size_t i = 0; i < got.size(); ++i) {
                auto const &a = got[i], &b = expected[i];
                EXPECT_TRUE(a.min_x == b.min_x && a.min_y == b.min_y && a.max_x == b.max_x && a.max_y == b.max_y)
                    << name_of(g.kind()) << " " << i;
            }
        }
    }
}

// Few questions are held against the edges of rows, many go through an index.
TEST_F(kept, few_points_of_paths_are_located_as_many_are) {
    auto const pairs_of = [](pair_list const& p) {
        std::vector<std::pair<std::int32_t, std::int32_t>> out;
        for (std::size_t i = 0; i < p.size(); ++i) out.emplace_back(p.left.data()[i], p.right.data()[i]);
        std::sort(out.begin(), out.end());
        return out;
    };
    for (auto const kind : {family::polygon, family::multipolygon, family::mixed}) {
        lattice_options const some{.rows = 60, .size = 7, .seed = 2, .empty_per_mille = 50, .null_per_mille = 50};
        auto const areas = kind == family::mixed ? of_every_family(6) : lattice(kind, some);
        for (auto const& asking :
             {lattice(family::linestring, {.rows = 40, .size = 7, .seed = 71}),
              lattice(family::polygon, {.rows = 40, .size = 7, .seed = 72}),
              lattice(family::point, {.rows = 60, .size = 7, .seed = 73, .empty_per_mille = 90})}) {
            for (auto const order : {item_order::ascending, item_order::scrambled}) {
                host_queue on{order};
                auto const of = kept_layer::plain(on, asking).value(), in = kept_layer::plain(on, areas).value();
                ASSERT_LT(of.paths(), in.vertices());
                auto const index = build_brief_index(on, in).value();
                for (std::uint32_t const wanted : {1U, 2U, 3U})
                    EXPECT_EQ(pairs_of(questions_in(on, of, in, wanted, line_ends::no).value()),
                              pairs_of(questions_in(on, of, *index, wanted, line_ends::no).value()))
                        << "wanted " << wanted;
            }
        }
    }
}

// Many short lines are asked one by one along a curve, few as they come: the same meetings in the same order. Long ones among them
// have much to look at, and are put off.
TEST_F(kept, meetings_of_many_segments_are_those_of_parts_of_them) {
    std::size_t const rows = 9000, part = 3000;
    for (std::size_t const long_each : {rows, std::size_t{500}}) {
        std::mt19937_64 random{14};
        auto const lines = [&] {
            geometry_parts out;
            out.kind = family::linestring;
            out.x = buffer<double>::on_host(2 * rows), out.y = buffer<double>::on_host(2 * rows);
            out.offsets[0] = buffer<std::int32_t>::on_host(rows + 1);
            for (std::size_t i = 0; i <= rows; ++i) out.offsets[0].data()[i] = static_cast<std::int32_t>(2 * i);
            for (std::size_t i = 0; i < rows; ++i) {
                for (auto* const at : {out.x.data(), out.y.data()}) {
                    auto const from = random() % 300, to = from + random() % 7;
                    at[2 * i] = static_cast<double>(from) / 4, at[2 * i + 1] = static_cast<double>(to) / 4;
                }
                if (i % long_each == long_each - 1) out.x.data()[2 * i] = out.y.data()[2 * i] = 0;
            }
            return geometries::make(std::move(out)).value();
        };
        auto const left = lines(), right = lines();
        plain_pairs expected;
        std::vector<double> expected_x;
        for (std::size_t first = 0; first < rows; first += part) {
            std::vector<std::int32_t> some(part);
            std::iota(some.begin(), some.end(), static_cast<std::int32_t>(first));
            host_queue on;
            auto const met =
                meeting_segments(on, left.view(buffer<std::int32_t>::copy_of(some)).value(), right).value();
            for (std::size_t i = 0; i < met.size(); ++i) {
                expected.left.push_back(met.left.data()[i] + static_cast<std::int32_t>(first));
                expected.right.push_back(met.right.data()[i]);
                expected_x.push_back(met.x.data()[i]);
            }
        }
        EXPECT_GT(expected.left.size(), rows);
        // Of some, one by one.
        auto const ends = [](geometries const& of, std::size_t i) {
            auto const &x = of.parts().x, &y = of.parts().y;
            return kiln_spatial::segment{{x.data()[2 * i], y.data()[2 * i]},
                                         {x.data()[2 * i + 1], y.data()[2 * i + 1]}};
        };
        for (std::size_t i = 499; i < rows; i += 500) {
            std::vector<std::int32_t> met, listed;
            auto const s = ends(left, i);
            for (std::size_t j = 0; j < rows; ++j) {
                auto const t = ends(right, j);
                if (kiln_spatial::contact_of(s.a, s.b, t.a, t.b) != kiln_spatial::apart)
                    met.push_back(static_cast<std::int32_t>(j));
            }
            for (std::size_t k = 0; k < expected.left.size(); ++k)
                if (expected.left[k] == static_cast<std::int32_t>(i)) listed.push_back(expected.right[k]);
            EXPECT_EQ(listed, met) << i;
        }
        for (auto const order : {item_order::ascending, item_order::scrambled}) {
            host_queue on{order};
            auto const met = meeting_segments(on, left, right).value();
            EXPECT_EQ((plain_pairs{values_of(met.left), values_of(met.right)}), expected);
            auto const x = values_of(met.x);
            ASSERT_EQ(x.size(), expected_x.size());
            for (std::size_t i = 0; i < x.size(); ++i)
                EXPECT_TRUE(x[i] == expected_x[i] || (std::isnan(x[i]) && std::isnan(expected_x[i])));
        }
    }
}

// Rows are noded only where they touch something. Here a row's own vertex lies inside its own edge at a place where an edge of the
// other row passes through both: a crossing of two edges that is none of the areas.
TEST_F(kept, rows_that_touch_are_noded_and_others_need_not_be) {
    std::vector<std::string> const left{
        "POLYGON ((0 0, 8 0, 8 8, 0 8, 0 0), (4 0, 3 3, 5 3, 4 0))",           // its hole touches its shell
        "POLYGON ((20 0, 28 0, 28 8, 20 8, 20 0), (24 0, 23 3, 25 3, 24 0))",  // as that, crossed elsewhere
        "POLYGON ((40 0, 48 0, 48 8, 44 0.5, 40 8, 40 0))",
        "MULTIPOLYGON (((60 0, 64 0, 64 4, 60 4, 60 0)), ((64 2, 68 1, 68 6, 64 2)))"};
    std::vector<std::string> const right{"POLYGON ((4 -4, 4 2, 4.125 -4.5, 3.75 -4.5, 4 -4))",
                                         "POLYGON ((4 -2, 4 2, 4.25 2, 4 -2))",
                                         "POLYGON ((3 -3, 5 3, 5 -3, 3 -3))",
                                         "POLYGON ((21 -2, 22 2, 23 -2, 21 -2))",
                                         "POLYGON ((42 2, 46 2, 46 4, 42 4, 42 2))",
                                         "POLYGON ((62 1, 66 3, 62 5, 62 1))",
                                         "POLYGON ((64 0, 64 4, 66 4, 66 0, 64 0))"};
    auto const a = from_wkt(left).value(), b = from_wkt(right).value();
    for (bool const turned : {false, true}) {
        auto const& l = turned ? b : a;
        auto const& r = turned ? a : b;
        auto const expected = cpu::relate_join(l, r).value();
        for (auto const order : {item_order::ascending, item_order::scrambled}) {
            host_queue on{order};
            auto const got = relate_rows(on, l, r, relating::all).value();
            ASSERT_EQ(got.pairs.size(), expected.size());
            for (std::size_t i = 0; i < expected.size(); ++i) {
                EXPECT_EQ(got.pairs.left.data()[i], expected[i].left);
                EXPECT_EQ(got.pairs.right.data()[i], expected[i].right);
                EXPECT_EQ((matrix{got.bits.data()[i], 2, 2}.text()), expected[i].how.text())
                    << expected[i].left << " and " << expected[i].right;
            }
        }
    }
}

TEST_F(kept, rows_that_meet_are_those_with_a_matrix) {
    for (int k = 1; k <= 7; ++k) {
        for (int m = 1; m <= 7; ++m) {
            auto const some = [](int kind, unsigned seed) {
                if (kind == 7) return of_every_family(seed);
                return lattice(static_cast<family>(kind),
                               {.rows = 40, .size = 6, .seed = seed, .empty_per_mille = 50, .null_per_mille = 50});
            };
            auto const left = some(k, 21), right = some(m, 22);
            plain_pairs expected;
            for (auto const& p : cpu::relate_join(left, right).value())
                expected.left.push_back(p.left), expected.right.push_back(p.right);
            for (auto const order : {item_order::ascending, item_order::scrambled}) {
                host_queue on{order};
                auto met = rows_met::make(on, left, right).value();
                EXPECT_EQ(values_of(met.pairs().value()), expected) << k << " with " << m;
                expect_forms_of_list(met, on, {left.rows(), right.rows()});
                auto const lasting = meeting_target::make_lasting(on, right).value();
                EXPECT_EQ(values_of(rows_met::make(on, left, lasting).value().pairs().value()), expected)
                    << k << " with a lasting " << m;
            }
        }
    }
}

TEST_F(kept, nearest_rows_are_those_of_the_host) {
    for (int k = 1; k <= 7; ++k) {
        for (int m = 1; m <= 7; ++m) {
            auto const some = [](int kind, unsigned seed) {
                if (kind == 7) return of_every_family(seed);
                return lattice(static_cast<family>(kind),
                               {.rows = 30, .size = 12, .seed = seed, .empty_per_mille = 50, .null_per_mille = 50});
            };
            auto const left = some(k, 31), right = some(m, 32);
            for (auto const equal : {ties::kept, ties::by_row}) {
                for (double const most : {double{INFINITY}, 1.0}) {
                    nearest_options const how{.count = 1, .most = most, .equal = equal};
                    auto const expected = cpu::nearest(left, right, how).value();
                    host_queue on{item_order::scrambled};
                    auto const got = nearest_rows_of(on, left, right, how).value();
                    ASSERT_EQ(got.size(), expected.size()) << k << " with " << m;
                    for (std::size_t i = 0; i < expected.size(); ++i) {
                        EXPECT_EQ(got.left.data()[i], expected[i].left);
                        EXPECT_EQ(got.right.data()[i], expected[i].right);
                        EXPECT_EQ(got.distance.data()[i], expected[i].distance);
                    }
                }
            }
        }
    }
}

// Every family with every other, and mixed arrays: matrices and what follows from them.
TEST_F(kept, matrices_are_those_of_the_host) {
    for (int k = 1; k <= 7; ++k) {
        for (int m = 1; m <= 7; ++m) {
            auto const some = [](int kind, unsigned seed) {
                if (kind == 7) return of_every_family(seed);
                return lattice(static_cast<family>(kind),
                               {.rows = 50, .size = 5, .seed = seed, .empty_per_mille = 50, .null_per_mille = 50});
            };
            auto const left = some(k, 41), right = some(m, 42);
            auto const expected = cpu::relate_join(left, right).value();
            auto const by_row = cpu::relate(left, right).value();
            for (auto const order : {item_order::ascending, item_order::scrambled}) {
                host_queue on{order};
                auto const got = relate_rows(on, left, right, relating::all).value();
                ASSERT_EQ(got.pairs.size(), expected.size()) << k << " with " << m;
                for (std::size_t i = 0; i < expected.size(); ++i) {
                    EXPECT_EQ(got.pairs.left.data()[i], expected[i].left);
                    EXPECT_EQ(got.pairs.right.data()[i], expected[i].right);
                    matrix const made{got.bits.data()[i], expected[i].how.left_dimension(),
                                      expected[i].how.right_dimension()};
                    EXPECT_EQ(made.text(), expected[i].how.text())
                        << k << " with " << m << ": "
                        << to_wkt(left).value()[static_cast<std::size_t>(expected[i].left)] << " and "
                        << to_wkt(right).value()[static_cast<std::size_t>(expected[i].right)];
                }
                for (int p = 0; p <= static_cast<int>(predicate::equals); ++p) {
                    auto const what = static_cast<predicate>(p);
                    plain_pairs holding_pairs;
                    for (auto const& e : expected)
                        if (holds(what, e.how))
                            holding_pairs.left.push_back(e.left), holding_pairs.right.push_back(e.right);
                    rows_holding held{on, got, what, left.rows(), right.rows()};
                    EXPECT_EQ(values_of(held.pairs().value()), holding_pairs) << name_of(what);
                    expect_forms_of_list(held, on, {left.rows(), right.rows()});
                }
                // The right side made once for many that ask: the same matrices.
                auto const again = relate_rows(on, left, relate_target::make(on, right).value()).value();
                EXPECT_EQ(values_of(again.pairs), values_of(got.pairs)) << k << " with a lasting " << m;
                EXPECT_EQ(values_of(again.bits), values_of(got.bits)) << k << " with a lasting " << m;
                auto const rows = relate_rows(on, left, right, relating::row_by_row).value();
                ASSERT_EQ(rows.bits.size(), by_row.size());
                for (std::size_t i = 0; i < by_row.size(); ++i) {
                    if (!by_row[i]) EXPECT_EQ(rows.bits.data()[i], 0U);
                    else
                        EXPECT_EQ(
                            (matrix{rows.bits.data()[i], by_row[i]->left_dimension(), by_row[i]->right_dimension()}
                                 .text()),
                            by_row[i]->text());
                }
            }
        }
    }
}

TEST_F(kept, rows_within_a_distance_are_those_whose_distance_is_no_more) {
    scoped_execution_mode const mode{execution_mode::cpu};
    for (int k = 1; k <= 6; ++k) {
        auto const left = lattice(static_cast<family>(k), {.rows = 15, .size = 9, .seed = 81, .null_per_mille = 80});
        auto const right =
            lattice(static_cast<family>(7 - k), {.rows = 15, .size = 9, .seed = 82, .empty_per_mille = 80});
        for (double const most : {0.0, 1.0, 2.5}) {
            plain_pairs expected;
            for (std::size_t i = 0; i < left.rows(); ++i) {
                std::vector<std::int32_t> const same(right.rows(), static_cast<std::int32_t>(i));
                auto const repeated = left.view(buffer<std::int32_t>::copy_of(same)).value();
                auto const apart = distance({}, repeated, right).value();
                for (std::size_t j = 0; j < apart.size(); ++j) {
                    if (!(apart.data()[j] <= most)) continue;
                    expected.left.push_back(static_cast<std::int32_t>(i));
                    expected.right.push_back(static_cast<std::int32_t>(j));
                }
            }
            EXPECT_EQ(values_of(join_within({}, left, right, most).value()), expected) << k << " within " << most;
        }
    }
}

namespace {

// Rectangles that have sides, corners and all in common, some null or empty.
geometries upright_rectangles(std::size_t rows, int size, unsigned seed) {
    std::mt19937_64 random{seed};
    auto const number = [&](int below) { return static_cast<double>(random() % static_cast<unsigned>(below)); };
    geometry_builder to;
    for (std::size_t i = 0; i < rows; ++i) {
        if (i % 17 == 5) {
            to.null();
            continue;
        }
        double const x = number(size), y = number(size), w = 1 + number(3), h = 1 + number(3);
        bool const turned = random() % 2 == 0;
        to.begin(family::polygon);
        if (i % 13 != 7) {
            to.begin_ring();
            to.vertex(x, y);
            if (turned) to.vertex(x, y + h), to.vertex(x + w, y + h), to.vertex(x + w, y);
            else to.vertex(x + w, y), to.vertex(x + w, y + h), to.vertex(x, y + h);
            to.vertex(x, y);
        }
        to.end();
    }
    return to.finish().value();
}

}  // namespace

// The rewrite: told by an event, off where rewrites are, and both sides agree.
TEST_F(kept, rectangles_are_joined_by_their_boxes) {
    scoped_execution_mode const mode{execution_mode::cpu};
    auto const left = upright_rectangles(120, 8, 1), right = upright_rectangles(140, 8, 2);
    for (int p = 0; p <= static_cast<int>(predicate::equals); ++p) {
        auto const what = static_cast<predicate>(p);
        auto const before = event_log::process().count(event_kind::rewritten);
        auto const told = [&] { return event_log::process().count(event_kind::rewritten) - before; };
        set_rewrites(true);
        auto const by_boxes = values_of(join({}, left, right, what).value());
        bool const is_rewritten = what != predicate::disjoint;
        EXPECT_EQ(told(), is_rewritten ? 1U : 0U) << name_of(what);
        auto const count = values_of(join_count({}, left, right, what).value());  // which is not listed, too
        EXPECT_EQ(told(), is_rewritten ? 3U : 1U) << name_of(what);
        set_rewrites(false);
        EXPECT_EQ(values_of(join({}, left, right, what).value()), by_boxes) << name_of(what);
        EXPECT_EQ(values_of(join_count({}, left, right, what).value()), count) << name_of(what);
        EXPECT_EQ(told(), is_rewritten ? 3U : 1U) << name_of(what);
        set_rewrites(std::nullopt);
        EXPECT_EQ(by_boxes.left.empty(), what == predicate::crosses) << name_of(what);
        auto const all = cpu::join(left, right, what).value();
        EXPECT_EQ(by_boxes, values_of(all)) << name_of(what);
        for (auto const order : {item_order::ascending, item_order::scrambled}) {
            host_queue on{order};
            auto const boxes = rectangle_rows::make(on, left, right).value();
            ASSERT_TRUE(boxes.has_value());
            if (!is_rewritten) continue;
            EXPECT_EQ(values_of(boxes->pairs(what).value()), by_boxes) << name_of(what);
        }
    }
}

TEST_F(kept, what_is_no_upright_rectangle_is_not_taken_for_one) {
    host_queue on;
    auto const rectangle = from_wkt(std::vector<std::string>{"POLYGON ((0 0, 2 0, 2 1, 0 1, 0 0))"}).value();
    EXPECT_TRUE(rectangle_rows::make(on, rectangle, rectangle).value().has_value());
    for (char const* const text :
         {"POLYGON ((0 0, 2 0, 2 1, 0 1.5, 0 0))", "POLYGON ((0 0, 1 1, 0 2, -1 1, 0 0))",
          "POLYGON ((0 0, 2 0, 0 0, 2 0, 0 0))", "POLYGON ((0 0, 2 2, 2 0, 0 2, 0 0))",
          "POLYGON ((0 0, 3 0, 3 1, 1 3, 0 0))", "POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 1 2, 2 2, 2 1, 1 1))",
          "MULTIPOLYGON (((0 0, 2 0, 2 1, 0 1, 0 0)))", "LINESTRING (0 0, 2 0, 2 1, 0 1, 0 0)"}) {
        auto const other = from_wkt(std::vector<std::string>{text}).value();
        EXPECT_FALSE(rectangle_rows::make(on, rectangle, other).value().has_value()) << text;
        EXPECT_FALSE(rectangle_rows::make(on, other, rectangle).value().has_value()) << text;
    }
}

}  // namespace kiln::spatial_tests
