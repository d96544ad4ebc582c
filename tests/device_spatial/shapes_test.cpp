// SPDX-License-Identifier: Apache-2.0
// Circles and clipped rows on a device: the host's bits.
#include "spatial_fixture.hpp"

#include <kiln/spatial/shapes.hpp>

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

}  // namespace kiln::device_tests
