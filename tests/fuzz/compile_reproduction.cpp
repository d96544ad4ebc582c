// SPDX-License-Identifier: Apache-2.0
// Any bytes as a reproduction file: as they are, and as the job behind a right beginning and length.
#include "compile/reproduction.hpp"
#include "fuzz/fuzz.hpp"

#include <fmt/format.h>

using namespace kiln;

namespace {

void decode(base::byte_span data) {
    auto const work = compile::decode_reproduction(data, "fuzz");
    if (!work) return;
    auto const written = compile::encode(compile::reproduction{*work, "ended\njob: 3\n", "words\njob: 4\n"});
    auto const again = compile::decode_reproduction(written, "again");
    fuzz::must(again && compile::encode(*again) == compile::encode(*work));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const input = fuzz::bytes_of(data, size);
    decode(input);
    base::byte_writer w;
    w.put_raw(base::as_bytes(fmt::format("kiln reproduction 1\njob: {}\n", size)));
    w.put_raw(input);
    decode(w.view());
    return 0;
}
