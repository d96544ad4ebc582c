// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file of well-known text.
#include "fuzz/fuzz.hpp"

#include <kiln/spatial/validate.hpp>
#include <kiln/spatial/wkb.hpp>
#include <kiln/spatial/wkt.hpp>

using namespace kiln;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const read = spatial::from_wkt_lines(base::as_text(fuzz::bytes_of(data, size)));
    if (!read) return 0;
    auto const text = spatial::to_wkt(*read);
    fuzz::must(text && text->size() == read->rows());
    auto const again = spatial::from_wkt(*text);
    fuzz::must(again && again->rows() == read->rows() && spatial::to_wkt(*again).value() == *text);
    // Through the other form, too, as far as it has a word for it: a point of NaN is an empty one there.
    auto const bytes = spatial::to_wkb(*read);
    fuzz::must(bytes.has_value());
    fuzz::must(spatial::validate(*read).has_value());
    return 0;
}
