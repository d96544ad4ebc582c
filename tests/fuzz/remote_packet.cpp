// SPDX-License-Identifier: Apache-2.0
// Any bytes as a packet, believed and not.
#include "fuzz/fuzz.hpp"

#include "remote/packet.hpp"

using namespace kiln;
using fuzz::must;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const input = fuzz::bytes_of(data, size);
    constexpr std::uint64_t most = 1 << 20;
    auto const outer = remote::decode_packet(input);
    if (outer.parts) {
        must(outer.parts->front <= input.size() && outer.parts->signatures.size() <= remote::most_signatures);
        // What is accepted is written the same again.
        auto const again = remote::encode_packet(outer.parts->signatures, input.subspan(outer.parts->front));
        must(base::as_text(again) == base::as_text(input));
    }
    base::bytes const copy{input.begin(), input.end()};
    remote::trust const nobody{.in = remote::belief::signatures};
    must(!remote::open_packet(copy, nobody, {}, most).what);
    remote::trust const server{.in = remote::belief::server};
    auto const opened = remote::open_packet(copy, server, {}, most);
    if (opened.what) must(opened.what->payload.size() <= most && opened.what->about.at.family == base::digest{});
    return 0;
}
