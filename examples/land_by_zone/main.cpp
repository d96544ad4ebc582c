// SPDX-License-Identifier: Apache-2.0
//
// Seven steps from a file to bytes: read countries, make them valid, overlay them with zones of some degrees, measure the parts, leave
// the small ones out, dissolve the rest by zone, write well-known binary. On a GPU nothing comes back in between but sizes; on the CPU
// (KILN_EXECUTION_MODE=cpu, or no GPU) the bytes are the same. With KILN_EVENTS=FILE, `kiln events --summary FILE` tells what ran, moved and waited.
//
//     example_land_by_zone [degrees]
#include <kiln/device.hpp>
#include <kiln/prims/once.hpp>
#include <kiln/runtime/execution.hpp>
#include <kiln/spatial/choose.hpp>
#include <kiln/spatial/files.hpp>
#include <kiln/spatial/measures.hpp>
#include <kiln/spatial/overlay.hpp>
#include <kiln/spatial/wkb.hpp>
#include <kiln/spatial/wkt.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace kiln;
namespace spatial = kiln::spatial;

constexpr double least_area = 0.01;  // square degrees

spatial::geometries zones_of(int degrees) {
    std::vector<std::string> rows;
    for (int x = -180; x < 180; x += degrees) {
        auto const from = std::to_string(x), to = std::to_string(std::min(x + degrees, 180));
        rows.push_back("POLYGON ((" + from + " -90, " + to + " -90, " + to + " 90, " + from + " 90, " + from +
                       " -90))");
    }
    return spatial::from_wkt(rows).value();
}

struct outcome {
    std::size_t parts = 0, kept = 0;
    column<std::uint8_t> wkb;
};

outcome on_gpu(spatial::geometries const& countries, spatial::geometries const& zones) {
    auto const on = stream::make().value();
    auto const valid = spatial::make_valid(on, countries.to_device(on).value()).value();
    auto const parts =
        spatial::overlay(on, valid, zones.to_device(on).value(), spatial::overlay_kind::intersection).value();
    auto const n = parts.size();
    auto const areas = spatial::area(on, parts.rows).value();
    auto const keep = buffer<std::uint8_t>::on_device(on, n).value();
    auto const keys = buffer<std::int32_t>::on_device(on, n).value();
    auto const count = buffer<std::uint64_t>::on_device(on, 1).value();
    once::transform<double, std::uint8_t>(on, {areas.data(), n}, {keep.data(), n}, op{"a >= s"}.with(least_area))
        .value();
    once::select<std::int32_t>(on, {parts.right.data(), n}, keep.data(), keys.data(), count.data()).value();
    auto const large = spatial::filter_sync(on, parts.rows, keep).value();
    buffer<std::int32_t> const own{storage::borrow(keys.data(), large.rows() * sizeof(std::int32_t), residency::device),
                                   large.rows()};
    auto const land = spatial::dissolve(on, large, own, zones.rows()).value();
    return {n, large.rows(), spatial::to_wkb_sync(on, land).value().to_host_sync(on).value()};
}

outcome on_cpu(spatial::geometries const& countries, spatial::geometries const& zones) {
    auto const valid = spatial::make_valid({}, countries).value();
    auto const parts = spatial::overlay({}, valid, zones, spatial::overlay_kind::intersection).value();
    auto const areas = spatial::area({}, parts.rows).value();
    auto const keep = buffer<std::uint8_t>::on_host(parts.size());
    std::vector<std::int32_t> keys;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        keep.data()[i] = areas.data()[i] >= least_area ? 1 : 0;
        if (keep.data()[i] != 0) keys.push_back(parts.right.data()[i]);
    }
    auto const large = spatial::filter_sync({}, parts.rows, keep).value();
    auto const land = spatial::dissolve({}, large, buffer<std::int32_t>::copy_of(keys), zones.rows()).value();
    return {parts.size(), large.rows(), spatial::to_wkb(land).value()};
}

bool has_gpu() {
    auto const all = devices();
    return all && !all->empty() && requested_mode() != execution_mode::cpu;
}

}  // namespace

int main(int argc, char** argv) {
    int const degrees = argc > 1 ? std::atoi(argv[1]) : 15;
    if (degrees < 1 || degrees > 360) {
        std::fputs("example_land_by_zone [degrees]: zones of 1 to 360 degrees\n", stderr);
        return 2;
    }
    auto const countries = spatial::read_file(KILN_EXAMPLE_DIR "/../data/countries.geojson").value().rows;
    auto const zones = zones_of(degrees);
    bool const there = has_gpu();
    scoped_execution_mode const mode{there ? execution_mode::gpu : execution_mode::cpu};
    auto const out = there ? on_gpu(countries, zones) : on_cpu(countries, zones);
    std::uint64_t sum = 0;
    for (auto const byte : out.wkb.values().host_span()) sum = sum * 31 + byte;
    std::printf(
        "%zu countries, %zu zones: %zu parts, %zu of at least %g square degrees; %zu rows, %zu bytes, %016llx\n",
        countries.rows(), zones.rows(), out.parts, out.kept, least_area, out.wkb.rows(), out.wkb.values().size(),
        static_cast<unsigned long long>(sum));
}
