// SPDX-License-Identifier: Apache-2.0
// Matrices, joins, boxes and nearest rows on a device, equal to the CPU variants'.
#include "spatial_fixture.hpp"

#include <kiln/spatial/measures.hpp>
#include <kiln/spatial/nearest.hpp>
#include <kiln/spatial/query.hpp>
#include <kiln/spatial/validate.hpp>

#include <algorithm>
#include <cmath>
#include <random>

namespace kiln::device_tests {

namespace {

class spatial_relate : public on_spatial_device {
protected:
    // By rows, with matrices as text: bits differ where evidence does.
    void check_matrices(geometries const& left, geometries const& right, std::string const& name) {
        auto const expected = cpu::relate_join(left, right).value();
        auto const got = take(relate_join(on(), there(left), there(right)));
        auto const a = values_of(got.left), b = values_of(got.right);
        auto const bits = values_of(got.bits);
        ASSERT_EQ(a.size(), expected.size()) << name;
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < expected.size(); ++i) {
            auto const& e = expected[i];
            matrix const made{bits[i], e.how.left_dimension(), e.how.right_dimension()};
            if (a[i] != e.left || b[i] != e.right || made.text() != e.how.text()) ++wrong;
        }
        EXPECT_EQ(wrong, 0U) << name << ", of " << expected.size();
    }
};

geometries some(int kind, unsigned seed, std::size_t rows) {
    if (kind == 7) return of_every_family(seed, rows / 6);
    return lattice(static_cast<family>(kind),
                   {.rows = rows, .size = 6, .seed = seed, .empty_per_mille = 50, .null_per_mille = 50});
}

}  // namespace

TEST_F(spatial_relate, every_family_with_every_other) {
    std::size_t const rows = quick() ? 12 : 150;
    for (int k = 1; k <= 7; ++k) {
        for (int m = 1; m <= 7; ++m) {
            if (!takes(k, m)) continue;
            auto const name = std::to_string(k) + " with " + std::to_string(m);
            check_matrices(some(k, 41, rows), some(m, 42, rows), name);
            check_matrices(scrambled(some(k, 43, rows)), some(m, 44, rows), name + " as a view");
        }
    }
}

TEST_F(spatial_relate, every_predicate_of_every_family) {
    std::size_t const rows = quick() ? 12 : 120;
    for (int k = 1; k <= 7; ++k) {
        for (int m = 1; m <= 7; ++m) {
            if (!takes(k, m)) continue;
            auto const left = some(k, 51, rows), right = some(m, 52, rows);
            auto const all = cpu::relate_join(left, right).value();
            auto const left_there = there(left), right_there = there(right);
            for (int p = 0; p <= static_cast<int>(predicate::equals); ++p) {
                auto const what = static_cast<predicate>(p);
                if (what == predicate::disjoint || (quickest() && what != predicate::touches)) continue;
                plain_pairs expected;
                for (auto const& e : all)
                    if (holds(what, e.how)) expected.left.push_back(e.left), expected.right.push_back(e.right);
                EXPECT_EQ(values_of(take(join(on(), left_there, right_there, what))), expected)
                    << name_of(what) << " " << k << " with " << m;
            }
        }
    }
}

TEST_F(spatial_relate, row_by_row) {
    for (int k = 1; k <= 7; ++k) {
        if (quickest() && k != 3) continue;
        auto const left = some(k, 61, 100), right = some(8 - k, 62, 100);
        auto const expected = cpu::relate(left, right).value();
        auto const bits = values_of(take(relate(on(), there(left), there(right))));
        ASSERT_EQ(bits.size(), expected.size());
        for (std::size_t i = 0; i < bits.size(); ++i) {
            if (!expected[i]) EXPECT_EQ(bits[i], 0U);
            else
                EXPECT_EQ((matrix{bits[i], expected[i]->left_dimension(), expected[i]->right_dimension()}.text()),
                          expected[i]->text());
        }
    }
}

TEST_F(spatial_relate, a_part_without_length_is_a_point) {
    auto const left = from_wkt(std::vector<std::string>{"LINESTRING (0 0, 4 0)", "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))",
                                                        "MULTILINESTRING ((1 1, 2 2), (9 9, 9 9), (8 8, 7 7))"})
                          .value();
    auto const right = from_wkt(std::vector<std::string>{"MULTILINESTRING ((0 0, 2 0), (9 9, 9 9))",
                                                         "MULTILINESTRING ((1 1, 2 2), (9 9, 9 9))",
                                                         "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"})
                           .value();
    auto const expected = cpu::relate(left, right).value();
    auto const bits = values_of(take(relate(on(), there(left), there(right))));
    for (std::size_t i = 0; i < expected.size(); ++i) {
        matrix const made{bits[i], expected[i]->left_dimension(), expected[i]->right_dimension()};
        EXPECT_EQ(made.text(), expected[i]->text()) << i;
    }
    auto const shell = row_of("POLYGON (EMPTY, (0 0, 4 0, 0 4, 0 0))");
    auto const refused = relate(on(), there(shell), there(row_of("LINESTRING (0 0, 1 1)")));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message(), require_valid(shell).error().message());
}

// Rows that are no borders, or not even rings: on a device as on the host, in its words, with rows numbered from the first of all.
TEST_F(spatial_relate, refuses_what_the_host_refuses) {
    auto const square = from_wkt(std::vector<std::string>(2, "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))")).value();
    auto const points = from_wkt(std::vector<std::string>(2, "POINT (1 1)")).value();
    auto const check = [&](geometries const& left, geometries const& right, std::string const& name) {
        auto const a = there(left), b = there(right);
        auto const here = [&] {
            scoped_execution_mode const cpu{execution_mode::cpu};
            return relate(on(), left, right);
        }();
        auto const got = relate(on(), a, b);
        ASSERT_EQ(got.has_value(), here.has_value()) << name;
        EXPECT_EQ(relate_join(on(), a, b).has_value(), here.has_value()) << name;
        EXPECT_EQ(join(on(), a, b, predicate::overlaps).has_value(), here.has_value()) << name;
        EXPECT_TRUE(join(on(), a, b, predicate::intersects)) << name;
        if (here) return;
        EXPECT_EQ(got.error().message(), here.error().message()) << name;
    };
    for (auto const& [area, why] : areas_without_borders()) {
        auto const areas = from_wkt(std::vector<std::string>{"POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))", area}).value();
        check(areas, square, area), check(square, areas, area), check(areas, points, area);
        if (quickest()) break;
    }
    for (auto const& area : areas_that_touch_themselves()) check(row_of(area), row_of(area), area);
    auto const any = rings_of_any_kind(quick() ? 20 : 2000, 3);
    for (std::size_t first = 0; first < any.rows(); first += 10) {
        auto some = buffer<std::int32_t>::on_host(10);
        for (std::size_t i = 0; i < 10; ++i) some.data()[i] = static_cast<std::int32_t>(first + i);
        auto const rows = any.view(some).value();
        check(rows, rows, "row " + std::to_string(first));
    }

    auto const last = from_wkt([] {
                          std::vector<std::string> rows(100, "POLYGON ((0 0, 4 0, 4 4, 0 3, 0 0))");
                          rows.back() = areas_without_borders()[0].area;
                          return rows;
                      }())
                          .value();
    auto const chunks = join_in_chunks(on(), there(last), there(square), predicate::overlaps, {.most_bytes = 256 << 20},
                                       [](pair_list const&) { return result<void>{}; });
    ASSERT_FALSE(chunks);
    EXPECT_NE(chunks.error().message().find("on the left, row 99: rings cross"), std::string::npos)
        << chunks.error().message();
}

// Memory that is not there is not read: offsets that leave it, on the device and on the way there.
TEST_F(spatial_relate, refuses_offsets_that_leave_the_memory) {
    auto const lines = [](std::vector<std::int32_t> const& offsets) {
        geometry_parts parts;
        parts.kind = family::linestring;
        parts.x = parts.y = buffer<double>::copy_of({0, 1, 2, 3});
        parts.offsets[0] = buffer<std::int32_t>::copy_of(offsets);
        return geometries::make(std::move(parts)).value();
    };
    auto const square = row_of("POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))");
    for (auto const& offsets :
         std::vector<std::vector<std::int32_t>>{{0, 2, 1, 4}, {0, 2, 2'000'000'000}, {0, -2, 4}}) {
        auto const left = lines(offsets);
        auto const expected = require_valid(left).error().message();
        auto const refused = relate_join(on(), there(left), there(square));
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().message(), expected);
        auto const chunks = join_in_chunks(on(), there(square), there(left), predicate::crosses, {},
                                           [](pair_list const&) { return result<void>{}; });
        ASSERT_FALSE(chunks);
        EXPECT_EQ(chunks.error().message(), expected);
        scoped_execution_mode const gpu{execution_mode::gpu};
        auto const moved = join(on(), left, square, predicate::intersects);
        ASSERT_FALSE(moved) << "from the host";
        EXPECT_EQ(moved.error().message(), expected);
    }
    EXPECT_TRUE(relate_join(on(), there(lines({0, 2, 4})), there(square)));
}

// The second call finds nothing to check: it waits less often.
TEST_F(spatial_relate, looks_at_rings_once) {
    auto const left = there(lattice(family::multipolygon, {.rows = 50, .seed = 5})),
               right = there(lattice(family::polygon, {.rows = 50, .seed = 6}));
    auto const waits = [&] {
        auto const before = activity_so_far();
        (void)take(relate_join(on(), left, right));
        return activity_so_far().since(before).synchronisations;
    };
    auto const first = waits(), second = waits();
    EXPECT_LE(second + 8, first);
    EXPECT_EQ(waits(), second);
}

TEST_F(spatial_relate, real_layers) {
    if (quick()) GTEST_SKIP() << "too much for a checker";
    auto const world = real_layer("ne110"), before = real_layer("county2010"), after = real_layer("county2016");
    if (!world || !before || !after) GTEST_SKIP() << "KILN_SPATIAL_DATA has no ne110, county2010 and county2016";
    check_matrices(*world, *world, "countries with themselves");
    check_matrices(*before, *after, "counties");
}

TEST_F(spatial_relate, boxes_and_large_ones) {
    std::mt19937_64 random{4};
    auto const number = [&](double to) { return static_cast<double>(random() % 4096) / 4096 * to; };
    std::size_t const n = quick() ? 300 : 8000;
    for (double const large : {0.0, 0.002}) {
        geometry_builder to;
        for (std::size_t i = 0; i < n; ++i) {
            double const x = number(300), y = number(300), size = number(1) < large ? 200 : 2;
            to.begin(family::linestring), to.vertex(x, y), to.vertex(x + number(size), y + number(size)), to.end();
            if (i % 500 == 0) to.null();
        }
        auto const lines = to.finish().value();
        auto const boxes = cpu::bounds(lines).value();
        for (double const distance : {0.0, 0.5}) {
            plain_pairs expected;
            for (std::size_t i = 0; i < boxes.size(); ++i) {
                for (std::size_t j = 0; j < boxes.size(); ++j) {
                    if (!boxes[i] || !boxes[j]) continue;
                    double const x =
                        std::max({0.0, boxes[i]->min_x - boxes[j]->max_x, boxes[j]->min_x - boxes[i]->max_x});
                    double const y =
                        std::max({0.0, boxes[i]->min_y - boxes[j]->max_y, boxes[j]->min_y - boxes[i]->max_y});
                    if (x * x + y * y > distance * distance) continue;
                    expected.left.push_back(static_cast<std::int32_t>(i)),
                        expected.right.push_back(static_cast<std::int32_t>(j));
                }
            }
            EXPECT_EQ(values_of(take(query(on(), there(lines), there(lines), {.distance = distance}))), expected)
                << large;
        }
    }
}

TEST_F(spatial_relate, nearest_rows_of_every_family) {
    std::size_t const rows = quick() ? 12 : 100;
    for (int k = 1; k <= 7; ++k) {
        for (int m = 1; m <= 7; ++m) {
            if (!takes(k, m)) continue;
            auto const left = some(k, 71, rows), right = some(m, 72, rows / 4 + 2);
            for (auto const equal : {ties::kept, ties::by_row}) {
                nearest_options const how{.count = 1, .most = m == 3 ? 1.5 : INFINITY, .equal = equal};
                auto const expected = cpu::nearest(left, right, how).value();
                auto const got = take(nearest(on(), there(left), there(right), how));
                auto const a = values_of(got.left), b = values_of(got.right);
                auto const d = values_of(got.distance);
                ASSERT_EQ(a.size(), expected.size()) << k << " with " << m;
                for (std::size_t i = 0; i < a.size(); ++i) {
                    EXPECT_EQ(a[i], expected[i].left);
                    EXPECT_EQ(b[i], expected[i].right);
                    EXPECT_EQ(d[i], expected[i].distance);
                }
            }
        }
    }
}

}  // namespace kiln::device_tests
