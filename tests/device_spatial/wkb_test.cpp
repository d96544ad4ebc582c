// SPDX-License-Identifier: Apache-2.0
// Well-known binary on a device: the host's bytes, and back.
#include "spatial_fixture.hpp"

#include <kiln/spatial/choose.hpp>
#include <kiln/spatial/wkb.hpp>

namespace kiln::device_tests {

namespace {

class spatial_wkb : public on_spatial_device {};

}  // namespace

TEST_F(spatial_wkb, is_that_of_the_host) {
    std::size_t const rows = quick() ? 20 : 2000;
    std::vector<geometries> all{of_every_family(111, rows / 6), scrambled(of_every_family(112, rows / 6))};
    for (int k = 1; k <= 6; ++k)
        all.push_back(lattice(static_cast<family>(k),
                              {.rows = rows, .size = 9, .seed = 113, .empty_per_mille = 50, .null_per_mille = 50}));
    if (auto const real = real_layer("county2016"); real && !quick()) all.push_back(*real);
    for (auto const& g : all) {
        auto const expected = to_wkb(g).value();
        auto const written = take(to_wkb_sync(on(), there(g)));
        auto const bytes = values_of(written.values());
        ASSERT_EQ(bytes.size(), expected.values().size());
        EXPECT_TRUE(std::ranges::equal(bytes, expected.values().host_span())) << name_of(g.kind());
        auto const read = take(from_wkb_sync(on(), written));
        EXPECT_EQ(read.where(), residency::device);
        EXPECT_EQ(to_wkt(read.to_host_sync(on()).value()).value(), to_wkt(from_wkb(expected).value()).value())
            << name_of(g.kind());
    }
    auto cut = to_wkb(all.back()).value();
    auto const short_of =
        column<std::uint8_t>::lists(cut.values().first(cut.values().size() - 5), *cut.offsets(), cut.validity());
    auto const refused = from_wkb_sync(on(), take(short_of.to_device(on())));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), errc::corrupt);
}

}  // namespace kiln::device_tests
