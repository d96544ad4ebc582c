// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file of measured crossovers.
#include "fuzz/fuzz.hpp"
#include "runtime/calibration.hpp"

using namespace kiln;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const read = runtime::parse_calibration(base::as_text(fuzz::bytes_of(data, size)), "fuzz");
    if (!read) return 0;
    for (auto const& [of, items] : read->crossovers) fuzz::must(read->find(of.first, of.second) == items);
    auto const again = runtime::parse_calibration(runtime::text_of(*read), "again");
    fuzz::must(again && again->device == read->device && again->driver == read->driver &&
               again->crossovers == read->crossovers);
    return 0;
}
