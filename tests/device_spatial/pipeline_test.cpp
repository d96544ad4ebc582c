// SPDX-License-Identifier: Apache-2.0
// From files to an answer on a device: what moves and what waits is what the calls declare; in chunks, and on the CPU, the result is
// the same.
#include "spatial_fixture.hpp"

#include <kiln/activity.hpp>
#include <kiln/event.hpp>
#include <kiln/spatial/choose.hpp>
#include <kiln/spatial/measures.hpp>
#include <kiln/spatial/nearest.hpp>
#include <kiln/spatial/wkb.hpp>

#include <cmath>

namespace kiln::device_tests {

namespace {

class spatial_pipeline : public on_spatial_device {
protected:
    void SetUp() override {
        on_spatial_device::SetUp();
        if (IsSkipped()) return;
        std::size_t const n = quick() ? 1500 : 20'000;
        // As a file would have them.
        auto const read = [](geometries const& g) { return from_wkb(to_wkb(g).value()).value(); };
        zones_ = read(apart(lattice(family::polygon, {.rows = n / 50, .size = 4, .seed = 101, .null_per_mille = 30})));
        places_ = read(
            lattice(family::point, {.rows = n, .size = 40, .seed = 102, .empty_per_mille = 20, .null_per_mille = 20}));
        roads_ = read(lattice(family::linestring, {.rows = n / 20, .size = 40, .seed = 103, .null_per_mille = 30}));
    }

    // Row by row on a square of their own, as zones are.
    static geometries apart(geometries const& zones) {
        auto parts = zones.parts();
        auto x = buffer<double>::copy_of(parts.x.host_span()), y = buffer<double>::copy_of(parts.y.host_span());
        auto const* const rings = parts.offsets[0].data();
        auto const* const vertices = parts.offsets[1].data();
        for (std::size_t row = 0; row < zones.rows(); ++row)
            for (auto v = vertices[rings[row]]; v < vertices[rings[row + 1]]; ++v)
                x.data()[v] += static_cast<double>(row % 20) * 2, y.data()[v] += static_cast<double>(row / 20) * 2;
        parts.x = x, parts.y = y;
        return geometries::make(std::move(parts)).value();
    }

    struct answer {
        plain_pairs in_zone;
        std::vector<std::int32_t> place, road;
        std::vector<double> near, again, area;
        bool operator==(answer const&) const = default;
    };
    // Places in zones; those of them that are near a road, and how near; how large the zones are.
    struct found {
        pair_list in_zone;
        near_list road;
        buffer<double> again, area;
    };
    found find(geometries const& zones, geometries const& places, geometries const& roads) {
        found out;
        auto const index = take(area_index::make(on(), zones));
        out.in_zone = take(join(on(), places, index, predicate::within));
        return rest(std::move(out), zones, places, roads);
    }
    found rest(found out, geometries const& zones, geometries const& places, geometries const& roads) {
        auto const any = take(join_any(on(), places, zones, predicate::within));
        auto const inside = take(filter_sync(on(), places, any));
        out.road = take(nearest(on(), inside, roads, {.most = 5, .equal = ties::by_row}));
        out.again =
            take(distance(on(), take(gather(on(), inside, out.road.left)), take(gather(on(), roads, out.road.right))));
        out.area = take(area(on(), zones));
        return out;
    }
    template <class T>
    std::vector<T> back(buffer<T> const& b) {
        auto const host = b.to_host_sync(on()).value();
        return {host.host_span().begin(), host.host_span().end()};
    }
    answer back(found const& f) {
        auto area = back(f.area);
        for (double& v : area) v = std::isnan(v) ? -1 : v;
        return {{back(f.in_zone.left), back(f.in_zone.right)},
                back(f.road.left),
                back(f.road.right),
                back(f.road.distance),
                back(f.again),
                area};
    }

    geometries zones_, places_, roads_;
};

}  // namespace

TEST_F(spatial_pipeline, nothing_moves_between_there_and_back) {
    auto const zones = there(zones_), places = there(places_), roads = there(roads_);
    auto const warm = back(find(zones, places, roads));  // kernels are loaded
    found out;
    // The one thing that may move or be waited for is a size, which is what a fence is for.
    std::vector<std::string> others;
    auto const watch = event_log::process().subscribe([&](event const& e) {
        bool const counts =
            e.kind == event_kind::synchronised || (e.kind == event_kind::transferred && e.target.view() != "on-device");
        if (counts && e.reason.view() != "fence") others.push_back(to_json(e));
    });
    auto const before = activity_so_far();
    out = find(zones, places, roads);
    auto const did = activity_so_far().since(before);
    EXPECT_THAT(others, testing::IsEmpty());
    EXPECT_EQ(did.transfers_to_device, 0U);
    EXPECT_LE(did.bytes_to_host, 8 * 4 * did.synchronisations);
    EXPECT_EQ(did.dispatched_to_cpu, 0U);
    EXPECT_EQ(did.fallbacks, 0U);
    // Sizes: of layers, indexes and lists, each of which a header names.
    EXPECT_LE(did.synchronisations, 40U);
    auto const there_and_back = back(out);
    EXPECT_EQ(there_and_back, warm);
    EXPECT_EQ(there_and_back.near, there_and_back.again);
    EXPECT_GT(there_and_back.near.size(), 10U);

    scoped_execution_mode const cpu{execution_mode::cpu};
    EXPECT_EQ(back(find(zones_, places_, roads_)), there_and_back);
}

// Forms that list nothing wait for nothing once there is an index.
TEST_F(spatial_pipeline, asking_an_index_waits_for_nothing) {
    auto const places = there(places_);
    auto const index = take(area_index::make(on(), there(zones_)));
    auto const ask = [&] {
        return std::tuple{take(join_first(on(), places, index, predicate::within)),
                          take(join_count(on(), places, index, predicate::intersects)),
                          take(join_any(on(), places, index, predicate::touches)),
                          take(join_histogram(on(), places, index, predicate::within))};
    };
    (void)ask();
    no_transfers const still;
    no_sync const unbroken;
    (void)ask();
    EXPECT_TRUE(still.check()) << still.check().error().log();
    EXPECT_TRUE(unbroken.check()) << unbroken.check().error().log();
}

TEST_F(spatial_pipeline, in_chunks_it_is_the_same) {
    auto const zones = there(zones_), places = there(places_), roads = there(roads_);
    auto const expected = back(find(zones, places, roads));
    plain_pairs in_zone;
    std::size_t chunks = 0;
    std::size_t const most = take(area_index::make(on(), zones)).bytes() + area_index::estimate(zones) + (24 << 20);
    auto const taken =
        join_in_chunks(on(), places, zones, predicate::within, {.most_bytes = most}, [&](pair_list const& p) {
            auto const left = back(p.left), right = back(p.right);
            in_zone.left.insert(in_zone.left.end(), left.begin(), left.end());
            in_zone.right.insert(in_zone.right.end(), right.begin(), right.end());
            ++chunks;
            return result<void>{};
        });
    ASSERT_TRUE(taken) << taken.error().message();
    EXPECT_EQ(in_zone, expected.in_zone);
    EXPECT_GT(chunks, 1U);
}

}  // namespace kiln::device_tests
