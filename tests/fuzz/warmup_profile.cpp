// SPDX-License-Identifier: Apache-2.0
// Any bytes as a profile: as they are, and as the body of a record whose check is right, so that the fields are reached.
#include "warmup/profile_file.hpp"

#include <cstdint>
#include <cstdlib>

using namespace kiln;

namespace {

void decode(base::byte_span data) {
    auto const read = warmup::decode_profile(data, "fuzz");
    if (!read) return;
    // What is accepted can be written and read again, and every use has its recipe.
    auto const again = warmup::decode_profile(warmup::encode(*read), "again");
    if (!again || again->uses.size() != read->uses.size() || again->torn_bytes != 0) std::abort();
    for (auto const& u : read->uses) (void)engine_detail::unit_of(read->recipes.at(u.recipe));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    base::byte_span const input{reinterpret_cast<std::byte const*>(data), size};
    decode(input);
    base::byte_writer w;
    w.put_raw(warmup::encode_header());
    w.put_u32(static_cast<std::uint32_t>(size));
    w.put_u64(base::sha256_of(input).prefix());
    w.put_raw(input);
    decode(w.view());
    return 0;
}
