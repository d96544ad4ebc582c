// SPDX-License-Identifier: Apache-2.0
// What the operations declare is what they launch, no more and no less: their algorithms run on a queue that writes it down.
#include "samples.hpp"
#include "spatial/apart.hpp"
#include "spatial/area_index.hpp"
#include "spatial/choose.hpp"
#include "spatial/kept_rings.hpp"
#include "spatial/meeting.hpp"
#include "spatial/near.hpp"
#include "spatial/nearest_many.hpp"
#include "spatial/operations.hpp"
#include "spatial/outlines.hpp"
#include "spatial/overlay/buffers.hpp"
#include "spatial/overlay/clip.hpp"
#include "spatial/overlay/coverage.hpp"
#include "spatial/overlay/overlay.hpp"
#include "spatial/overlay/simplified.hpp"
#include "spatial/overlay/table.hpp"
#include "spatial/pairs.hpp"
#include "spatial/rectangles.hpp"
#include "spatial/relations.hpp"
#include "spatial/row_distances.hpp"
#include "spatial/row_measures.hpp"
#include "spatial/segments.hpp"
#include "spatial/shapes.hpp"
#include "spatial/units.hpp"
#include "spatial/warm.hpp"
#include "spatial/wkb_rows.hpp"

#include <kiln/spatial/wkt.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fmt/format.h>
#include <numbers>
#include <numeric>
#include <set>

namespace kiln::spatial_tests {

namespace {

using namespace spatial;

// A host queue that knows which units and primitives a device would have needed.
class noting_queue final : public queue {
public:
    result<void> sort(buffer<std::uint64_t>& keys, buffer<std::int32_t>& values, int bits) override {
        if (!keys.empty()) used_.insert("radix_sort_u64_i32");
        return inner_.sort(keys, values, bits);
    }
    result<void> sort(buffer<std::int32_t>& keys, buffer<std::int32_t>& values) override {
        if (!keys.empty()) used_.insert("radix_sort_i32_i32");
        return inner_.sort(keys, values);
    }
    result<void> read_sync(std::initializer_list<wish> wishes) override { return inner_.read_sync(wishes); }
    [[nodiscard]] residency where() const noexcept override { return residency::host; }
    [[nodiscard]] int device() const noexcept override { return 0; }
    [[nodiscard]] std::size_t threads() const noexcept override { return 64; }
    [[nodiscard]] std::set<std::string> const& used() const noexcept { return used_; }

private:
    result<storage> allocate(std::size_t bytes) override { return storage::on_host(std::max<std::size_t>(bytes, 16)); }
    result<void> run(task const& what, std::size_t items) override {
        used_.insert(unit_with(name_of(what.number)).name);
        for (std::size_t i = 0; i < items; ++i) what.item(what.what, i);
        return {};
    }
    result<void> scan(buffer<std::int64_t> const& values) override {
        used_.insert("exclusive_scan_i64");
        return inner_.sum(values);
    }

    host_queue inner_;
    std::set<std::string> used_;
};

geometries of_every_family(unsigned seed) {
    std::vector<std::string> rows;
    for (int kind = 1; kind <= 6; ++kind)
        for (auto const& row :
             to_wkt(lattice(static_cast<family>(kind), {.rows = 12, .size = 6, .seed = seed})).value())
            rows.push_back(row);
    return from_wkt(rows).value();
}

// Enough short lines in a ring of many edges to be worth an index; few are looked up edge by edge.
geometries crowd() {
    std::vector<std::string> rows;
    for (int i = 0; i < 2000; ++i)
        rows.push_back(fmt::format("LINESTRING ({0} {1}, {0}.5 {1}.5)", i % 50 - 25, i / 50 - 20));
    return from_wkt(rows).value();
}
geometries large_ring() {
    constexpr int edges = 1000;
    std::string text = "POLYGON ((";
    for (int i = 0; i <= edges; ++i) {
        double const turn = 2 * std::numbers::pi * (i % edges) / edges;
        text += fmt::format("{}{} {}", i == 0 ? "" : ", ", 100 * std::cos(turn), 100 * std::sin(turn));
    }
    return from_wkt(std::vector{text + "))"}).value();
}

std::set<std::string> declared_by(operation const& what) {
    std::set<std::string> out;
    for (auto const& v : what.variants())
        for (auto const& name : needs_of(v, scalar::f64)) out.insert(name);
    return out;
}

}  // namespace

TEST(spatial_declarations, are_what_is_launched) {
    auto const left = of_every_family(1), right = of_every_family(2);
    auto const areas = lattice(family::polygon, {.rows = 30, .size = 9, .seed = 3});
    auto const points = lattice(family::point, {.rows = 90, .size = 9, .seed = 4});
    auto const many = crowd(), ring = large_ring();
    auto const square = from_wkt(std::vector<std::string>{"POLYGON ((0 0, 1 0, 1 1, 0 1, 0 0))"}).value();
    auto const several = from_wkt(std::vector<std::string>{"POLYGON ((0 0, 1 0, 1 1, 0 1, 0 0))",
                                                           "LINESTRING (0 0, 2 2, 3 0)", "POINT (1 1)"})
                             .value();
    auto const check = [](operation const& what, auto const& run) {
        noting_queue on;
        run(on);
        EXPECT_EQ(on.used(), declared_by(what)) << what.name();
    };
    check(locate_operation, [&](queue& on) {
        auto const index = build_index(on, areas).value();
        point_locator find{on, points, *index, kiln_spatial::wanted_inside};
        auto const pairs = find.pairs().value();
        (void)find.first().value(), (void)find.count().value(), (void)find.any().value(),
            (void)find.histogram().value();
        (void)sorted_pairs(on, {pairs.right, pairs.left}, areas.rows(), points.rows()).value();
        (void)any_of(on, find.histogram().value()).value();
    });
    check(meet_operation, [&](queue& on) {
        auto met = rows_met::make(on, left, right).value();
        (void)met.pairs().value(), (void)met.first().value(), (void)met.any().value(), (void)met.histogram().value();
        (void)rows_met::make(on, many, ring).value().pairs().value();
        (void)rectangle_rows::make(on, square, square).value()->pairs(predicate::touches).value();
    });
    check(join_operation, [&](queue& on) {
        (void)require_borders(on, {}, {left, right}).value();
        rows_holding held{on, relate_rows(on, left, right, relating::all).value(), predicate::touches, left.rows(),
                          right.rows()};
        (void)held.pairs().value(), (void)held.first().value(), (void)held.any().value(),
            (void)held.histogram().value();
        (void)rectangle_rows::make(on, square, square).value()->pairs(predicate::touches).value();
    });
    check(disjoint_operation, [&](queue& on) {
        (void)rows_apart::make(on, left, right).value().pairs().value();
        (void)rows_apart::make(on, many, ring).value().pairs().value();
    });
    check(segments_operation, [&](queue& on) { (void)meeting_segments(on, left, right).value(); });
    check(nearest_operation, [&](queue& on) {
        (void)nearest_rows_of(on, left, right, {}).value();
        (void)nearest_rows_of(on, many, ring, {}).value();
    });
    check(nearest_many_operation, [&](queue& on) { (void)nearest_many_of(on, left, right, {.count = 3}).value(); });
    check(distance_operation, [&](queue& on) { (void)distances_of_rows(on, left, right).value(); });
    check(within_operation, [&](queue& on) {
        (void)rows_within::make(on, right, 1).value().of(left).value();
        (void)rows_within::make(on, right, 1, 0).value().of(left).value();
    });
    check(measures_operation, [&](queue& on) {
        auto const of = row_measures::make(on, left).value();
        (void)of.area().value(), (void)of.centroid().value();
    });
    check(bounds_operation, [&](queue& on) {
        (void)row_measures::make(on, left)
            .value()
            .bounds_by_key(buffer<std::int32_t>::copy_of(std::vector<std::int32_t>(left.rows(), 0)), 1)
            .value();
    });
    check(shapes_operation, [&](queue& on) { (void)circles_around(on, points, 1, {}).value(); });
    check(wkb_operation, [&](queue& on) { (void)read_wkb(on, write_wkb(on, left).value()).value(); });
    // Holes of several shells, so that they are looked for.
    auto const nested = from_wkt(std::vector<std::string>{
                                     "MULTIPOLYGON (((0 0, 20 0, 20 20, 0 20, 0 0), (2 2, 18 2, 18 18, 2 18, 2 2)), "
                                     "((4 4, 16 4, 16 16, 4 16, 4 4), (6 6, 14 6, 14 14, 6 14, 6 6)))"})
                            .value();
    check(overlay_operation, [&](queue& on) {
        (void)areas_in_common(on, areas, areas).value(), (void)areas_in_common(on, nested, ring).value();
        (void)overlaps_row_by_row(on, areas, areas).value();
        (void)overlaid_rows(on, nested, areas, overlay_kind::update).value();
        (void)rows_in_areas(on, many, areas).value(), (void)rows_in_areas(on, points, areas).value();
        (void)rows_in_areas(on, several, areas).value();
    });
    check(dissolve_operation, [&](queue& on) {
        (void)rows_mended(on, nested).value(), (void)united_rows(on, areas).value();
        (void)areas_mended(on, several).value();
    });
    check(buffer_operation, [&](queue& on) { (void)buffered_rows(on, left, 100, {}).value(); });
    check(outlines_operation, [&](queue& on) {
        (void)hulls_of_rows(on, left).value(), (void)boxes_around_rows(on, left).value();
        (void)points_on_rows(on, left).value(), (void)boundaries_of_rows(on, areas).value();
        (void)boundaries_of_rows(on, many).value(), (void)boundaries_of_rows(on, several).value();
    });
    check(simplify_operation, [&](queue& on) {
        (void)simplified_rows(on, nested, 1).value(), (void)simplified_rows(on, areas, 1).value();
        (void)simplified_rows(on, many, 1).value(), (void)simplified_rows(on, several, 1).value();
    });
    // A bay that an island keeps open, so that something is troubled.
    auto const bay = from_wkt(std::vector<std::string>{"POLYGON ((0 0, 10 0, 10 10, 6 10, 5 9, 4 10, 0 10, 0 0))",
                                                       "POLYGON ((4.9 9.5, 5.1 9.5, 5 9.7, 4.9 9.5))"})
                         .value();
    check(coverage_operation, [&](queue& on) {
        (void)simplified_coverage(on, nested, 1).value(), (void)simplified_coverage(on, areas, 1).value();
        (void)simplified_coverage(on, bay, 1.5).value();
    });
    check(choose_operation, [&](queue& on) {
        auto keep = buffer<std::uint8_t>::on_host(left.rows());
        std::fill_n(keep.data(), keep.size(), std::uint8_t{1});
        (void)rows_kept(on, left, keep).value();
    });
}

// By operation, exactly; by family, everything that such rows may need.
TEST(spatial_declarations, by_operation_and_by_family) {
    auto const names = [](std::vector<want> const& wants) {
        std::set<std::string> out;
        for (auto const& w : wants) out.insert(w.name());
        return out;
    };
    auto both = declared_by(locate_operation);
    both.merge(declared_by(distance_operation));
    EXPECT_EQ(names(wants_of({"spatial_locate", "spatial_distance"}).value()), both);
    EXPECT_EQ(wants_of({"spatial_underlay"}).error().code(), errc::not_found);

    std::set<std::string> by_family;
    for (auto const* r : family_requirements()) by_family.merge(names(r->wants()));
    std::set<std::string> by_operation;
    auto const* const pack = engine_detail::find_pack("spatial");
    for (auto const* const o : pack->operations()) by_operation.merge(declared_by(*o));
    EXPECT_EQ(by_family, by_operation);
    EXPECT_THAT(families_of(of_every_family(1)),
                testing::UnorderedElementsAre("point", "linestring", "polygon", "multipoint", "multilinestring",
                                              "multipolygon"));
    EXPECT_THAT(families_of(lattice(family::point, {.rows = 3})), testing::ElementsAre("point"));
    // Points bring no segments along.
    for (auto const* r : family_requirements()) {
        bool const for_points = std::ranges::find(r->more().when, "point") != r->more().when.end();
        EXPECT_EQ(for_points, r->consumer() == "spatial_rows");
    }
}

}  // namespace kiln::spatial_tests
