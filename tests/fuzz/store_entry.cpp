// SPDX-License-Identifier: Apache-2.0
// Any bytes as a disk entry: as they are, and with the header digest made right so that the fields are reached.
#include "base/digest.hpp"
#include "store/entry_format.hpp"

#include <cstdint>
#include <cstdlib>
#include <cstring>

using namespace kiln;

namespace {

void decode(base::byte_span data) {
    constexpr std::uint64_t most = 1 << 20;
    auto const header = store::decode_header(data, data.size(), most);
    auto const whole = store::decode_entry({data.begin(), data.end()}, most);
    if (!whole.what) return;
    // What is accepted agrees with its header and can be written and read again.
    if (!header.header || whole.what->payload.size() != header.header->raw_bytes || whole.what->payload.size() > most)
        std::abort();
    auto const again = store::encode_entry(*whole.what);
    if (!again || !store::decode_entry(*again, most).what) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    base::byte_span const input{reinterpret_cast<std::byte const*>(data), size};
    decode(input);
    base::bytes mended{input.begin(), input.end()};
    auto const need = store::entry_front_bytes(mended);
    if (mended.size() >= need && need > 48) {
        auto const check = base::sha256_of(base::byte_span{mended}.first(need - 32));
        std::memcpy(mended.data() + need - 32, check.bytes.data(), check.bytes.size());
        decode(mended);
    }
    return 0;
}
