// SPDX-License-Identifier: Apache-2.0
// Any bytes as a pack of headers: as they are, and as its compressed part behind a right front.
#include "fuzz/fuzz.hpp"
#include "prims/sources.hpp"

using namespace kiln;

namespace {

void decode(base::byte_span data) {
    (void)prims::packed_digest(data);
    auto const read = prims::unpack(data);
    if (!read) return;
    auto const again = prims::unpack(prims::pack(read->files));
    fuzz::must(again && again->files.size() == read->files.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const input = fuzz::bytes_of(data, size);
    decode(input);
    if (size < 2) return 0;
    base::byte_writer w;
    w.put_raw(base::as_bytes("KILNHDRS"));
    w.put_u32(2);
    w.put_u64(base::byte_reader{input}.get_u16());
    w.put_raw(base::bytes(32));
    w.put_blob(input.subspan(2));
    decode(w.view());
    return 0;
}
