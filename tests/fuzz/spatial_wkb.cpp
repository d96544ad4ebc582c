// SPDX-License-Identifier: Apache-2.0
// Any bytes as well-known binary: one row, and a column of rows whose lengths are the fuzzer's.
#include "fuzz/fuzz.hpp"

#include <kiln/spatial/measures.hpp>
#include <kiln/spatial/validate.hpp>
#include <kiln/spatial/wkb.hpp>
#include <kiln/spatial/wkt.hpp>

using namespace kiln;

namespace {

std::vector<std::uint8_t> written(spatial::geometries const& what) {
    auto const out = spatial::to_wkb(what);
    fuzz::must(out.has_value());
    auto const* const values = out->values().data();
    return {values, values + out->values().size()};
}

void use(result<spatial::geometries> const& read) {
    if (!read) return;
    auto const bytes = spatial::to_wkb(*read);
    fuzz::must(bytes.has_value());
    auto const again = spatial::from_wkb(*bytes);
    fuzz::must(again && again->rows() == read->rows() && written(*again) == written(*read));
    auto const text = spatial::to_wkt(*read);
    fuzz::must(text && text->size() == read->rows());
    auto const flaws = spatial::validate(*read);
    fuzz::must(flaws.has_value());
    if (!flaws->empty()) return;
    (void)spatial::cpu::total_bounds(*read);
    (void)spatial::cpu::area(*read);
    (void)spatial::cpu::centroid(*read);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::span const input{data, size};
    std::span<std::uint8_t const> const one[] = {input};
    use(spatial::from_wkb(one));
    // [length, bytes]...
    std::vector<std::span<std::uint8_t const>> rows;
    for (auto rest = input; !rest.empty();) {
        auto const length = std::min<std::size_t>(rest[0], rest.size() - 1);
        rows.push_back(rest.subspan(1, length));
        rest = rest.subspan(1 + length);
    }
    use(spatial::from_wkb(rows));
    return 0;
}
