// SPDX-License-Identifier: Apache-2.0
// Shared by the spatial pack's tests on a device: the CPU variants are what results are compared with.
#pragma once

#include "device/device_fixture.hpp"
#include "unit/spatial/samples.hpp"

#include <kiln/runtime/execution.hpp>
#include <kiln/spatial/join.hpp>
#include <kiln/spatial/wkt.hpp>

#include <cstdlib>

namespace kiln::device_tests {

using namespace spatial;
using spatial_tests::anew;
using spatial_tests::areas_that_touch_themselves;
using spatial_tests::areas_without_borders;
using spatial_tests::lattice;
using spatial_tests::lattice_options;
using spatial_tests::plain_pairs;
using spatial_tests::real_layer;
using spatial_tests::rings_of_any_kind;
using spatial_tests::row_of;

// KILN_TEST_QUICK=1: sizes that memcheck can go through.
inline bool quick() {
    char const* const text = std::getenv("KILN_TEST_QUICK");
    return text != nullptr && *text != '0' && *text != 0;
}
// KILN_TEST_QUICK=2: every kernel a few times, for racecheck, which takes about a second for a launch.
inline bool quickest() { return quick() && *std::getenv("KILN_TEST_QUICK") == '2'; }
// Areas to build an index of. However few there are, it has a million cells, and in each the areas that cover it.
inline std::size_t covering(std::size_t areas) { return quickest() ? 3 : areas; }
// Which pairs of families a loop over all of them takes; 7 has rows of every family.
inline bool takes(int k, int m) { return !quick() || (quickest() ? k == 7 && m == 7 : (k + m) % 7 == 0); }

class on_spatial_device : public on_device {
protected:
    void SetUp() override {
        on_device::SetUp();
        if (!IsSkipped()) stream_.emplace(stream::make().value());
    }
    stream const& on() const { return *stream_; }

    template <class T>
    std::vector<T> values_of(buffer<T> const& b) {
        EXPECT_TRUE(b.empty() || b.where() == residency::device);
        auto const host = b.to_host_sync(on()).value();
        return {host.host_span().begin(), host.host_span().end()};
    }
    plain_pairs values_of(pair_list const& p) { return {values_of(p.left), values_of(p.right)}; }
    // Without what the host has found out about it: the device is to look for itself.
    geometries there(geometries const& g) { return anew(g).to_device(on()).value(); }

private:
    std::optional<stream> stream_;
};

template <class T>
T take(result<T> made) {
    if (!made) throw std::runtime_error{std::string{made.error().message()} + "\n" + std::string{made.error().log()}};
    return *std::move(made);
}

// A mixed array with rows of every family, null and empty ones.
inline geometries of_every_family(unsigned seed, std::size_t rows_each = 20) {
    std::vector<std::string> rows;
    for (auto const kind : {family::point, family::multipolygon, family::linestring, family::polygon,
                            family::multipoint, family::multilinestring}) {
        auto const some =
            lattice(kind, {.rows = rows_each, .size = 7, .seed = seed, .empty_per_mille = 100, .null_per_mille = 100});
        for (auto const& text : to_wkt(some).value()) rows.push_back(text);
    }
    return from_wkt(rows).value();
}

// Everything backwards, and every third row twice.
inline geometries scrambled(geometries const& g) {
    std::vector<std::int32_t> rows;
    for (std::size_t i = g.rows(); i-- > 0;)
        for (std::size_t k = 0; k < (i % 3 == 0 ? 2U : 1U); ++k) rows.push_back(static_cast<std::int32_t>(i));
    return g.view(buffer<std::int32_t>::copy_of(rows)).value();
}

}  // namespace kiln::device_tests
