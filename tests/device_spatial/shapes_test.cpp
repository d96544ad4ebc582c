// SPDX-License-Identifier: Apache-2.0
// Circles and clipped rows on a device: the host's bits.
#include "spatial_fixture.hpp"
#include "unit/spatial/overlay_samples.hpp"

#include <kiln/spatial/buffers.hpp>
#include <kiln/spatial/outlines.hpp>
#include <kiln/spatial/overlay.hpp>
#include <kiln/spatial/shapes.hpp>
#include <kiln/spatial/simplify.hpp>

namespace kiln::device_tests {

namespace {

class spatial_shapes : public on_spatial_device {
protected:
    void check(result<geometries> made, result<geometries> const& expected, std::string const& name) {
        auto const there = take(std::move(made));
        EXPECT_EQ(there.where(), residency::device);
        EXPECT_EQ(to_wkt(there.to_host_sync(on()).value()).value(), to_wkt(expected.value()).value()) << name;
    }
};

}  // namespace

TEST_F(spatial_shapes, are_those_of_the_host) {
    std::size_t const rows = quick() ? 30 : 3000;
    for (auto const kind : {family::point, family::multipoint, family::linestring, family::multilinestring}) {
        auto const g =
            lattice(kind, {.rows = rows, .size = 12, .seed = 121, .empty_per_mille = 50, .null_per_mille = 50});
        bounding_box const r{2.5, 3, 8, 9.25};
        auto const here = [&](auto const& call) {
            scoped_execution_mode const cpu{execution_mode::cpu};
            return call();
        };
        auto const name = std::string{name_of(kind)};
        check(clip_by_rect(on(), there(g), r), here([&] { return clip_by_rect({}, g, r); }), name);
        check(clip_by_rect(on(), there(scrambled(g)), r), here([&] { return clip_by_rect({}, scrambled(g), r); }),
              name);
        if (kind == family::point)
            check(point_buffer(on(), there(g), 0.75, {.quarter = 5}),
                  here([&] { return point_buffer({}, g, 0.75, {.quarter = 5}); }), "circles");
    }
}

TEST_F(spatial_shapes, around_rows_are_those_of_the_host) {
    std::size_t const rows = quick() ? 30 : 2000;
    auto const here = [&](auto const& call) {
        scoped_execution_mode const cpu{execution_mode::cpu};
        return call();
    };
    for (int k = 1; k <= 6; ++k) {
        auto const kind = static_cast<family>(k);
        auto const g =
            lattice(kind, {.rows = rows, .size = 12, .seed = 131, .empty_per_mille = 50, .null_per_mille = 50});
        auto const name = std::string{name_of(kind)};
        for (auto const call : {convex_hull, envelope, boundary, point_on_surface}) {
            check(call(on(), there(g)), here([&] { return call({}, g); }), name);
            check(call(on(), there(scrambled(g))), here([&] { return call({}, scrambled(g)); }), name);
        }
    }
    check(convex_hull(on(), there(of_every_family(7))), here([&] { return convex_hull({}, of_every_family(7)); }),
          "mixed");
}

TEST_F(spatial_shapes, clipped_and_simplified_are_those_of_the_host) {
    std::size_t const rows = quick() ? 20 : 500;
    auto const here = [&](auto const& call) {
        scoped_execution_mode const cpu{execution_mode::cpu};
        return call();
    };
    auto const areas = lattice(family::multipolygon, {.rows = 12, .size = 20, .seed = 151});
    for (int k = 1; k <= 6; ++k) {
        auto const kind = static_cast<family>(k);
        auto const g =
            lattice(kind, {.rows = rows, .size = 20, .seed = 152, .empty_per_mille = 50, .null_per_mille = 50});
        auto const name = std::string{name_of(kind)};
        check(clip(on(), there(g), there(areas)), here([&] { return clip({}, g, areas); }), name);
        check(simplify(on(), there(g), 1.5), here([&] { return simplify({}, g, 1.5); }), name);
    }
}

// Areas that overlap and cross all over, and the parts that they divide the plane into, which share borders.
TEST_F(spatial_shapes, simplified_coverages_are_those_of_the_host) {
    using spatial_tests::stars;
    auto const here = [&](auto const& call) {
        scoped_execution_mode const cpu{execution_mode::cpu};
        return call();
    };
    auto const stars_here = stars({.rows = std::size_t{quick() ? 8U : 200U}, .seed = 171, .size = 0.2});
    auto const parts =
        here([&] { return overlay({}, stars_here, stars({.rows = 4, .seed = 172}), overlay_kind::identity); });
    auto const shared = lattice(family::polygon, {.rows = std::size_t{quick() ? 20U : 500U},
                                                  .size = 20,
                                                  .seed = 173,
                                                  .empty_per_mille = 50,
                                                  .null_per_mille = 50});
    for (auto const& g : {stars_here, parts.value().rows, shared})
        for (double const tolerance : {0.0, 0.01, 0.1, 2.0, 100.0}) {
            auto const expected = here([&] { return simplify_coverage({}, g, tolerance); });
            check(simplify_coverage(on(), there(g), tolerance), expected, "coverage");
            check(simplify_coverage(on(), there(scrambled(g)), tolerance),
                  here([&] { return simplify_coverage({}, scrambled(g), tolerance); }), "in another order");
        }
}

TEST_F(spatial_shapes, rows_of_several_families_are_those_of_the_host) {
    auto const here = [&](auto const& call) {
        scoped_execution_mode const cpu{execution_mode::cpu};
        return call();
    };
    auto const areas = lattice(family::multipolygon, {.rows = 3, .size = 9, .seed = 151});
    auto const all = of_every_family(161, quick() ? 4 : 200);
    auto texts = to_wkt(lattice(family::polygon, {.rows = 20, .size = 7, .seed = 162, .null_per_mille = 100})).value();
    texts.push_back("MULTIPOLYGON (((0 0, 2 2, 2 0, 0 2, 0 0)), ((5 5, 6 5, 6 6, 5 5)))");
    for (auto const& g : {all, scrambled(all), from_wkt(texts).value()}) {
        check(clip(on(), there(g), there(areas)), here([&] { return clip({}, g, areas); }), "clip");
        check(simplify(on(), there(g), 1.5), here([&] { return simplify({}, g, 1.5); }), "simplify");
        check(boundary(on(), there(g)), here([&] { return boundary({}, g); }), "boundary");
        check(make_valid(on(), there(g)), here([&] { return make_valid({}, g); }), "make_valid");
    }
}

TEST_F(spatial_shapes, buffers_are_those_of_the_host) {
    std::size_t const rows = quick() ? 12 : 300;
    auto const here = [&](auto const& call) {
        scoped_execution_mode const cpu{execution_mode::cpu};
        return call();
    };
    buffer_options const styles[] = {{},
                                     {.quarter = 3, .caps = cap_style::flat, .joins = join_style::bevel},
                                     {.caps = cap_style::square, .joins = join_style::mitre, .mitre_limit = 2}};
    for (int k = 1; k <= 6; ++k) {
        auto const kind = static_cast<family>(k);
        auto const g =
            lattice(kind, {.rows = rows, .size = 12, .seed = 141, .empty_per_mille = 50, .null_per_mille = 50});
        for (auto const& how : styles)
            for (double const distance : {0.4, -0.4, 0.0})
                check(buffer_of(on(), there(g), distance, how), here([&] { return buffer_of({}, g, distance, how); }),
                      std::string{name_of(kind)});
    }
}

}  // namespace kiln::device_tests
