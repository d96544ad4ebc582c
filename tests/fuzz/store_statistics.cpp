// SPDX-License-Identifier: Apache-2.0
// Any bytes as the file of counters: as they are, and with the check made right. And as a key in a PEM file.
#include "base/digest.hpp"
#include "fuzz/fuzz.hpp"
#include "store/signing.hpp"
#include "store/statistics.hpp"

using namespace kiln;

namespace {

void decode(base::byte_span data) {
    auto const read = store::decode_statistics(data);
    if (!read) return;
    auto const again = store::decode_statistics(store::encode_statistics(*read));
    fuzz::must(again && *again == *read);
    auto sum = *read;
    sum.add(*read);
    fuzz::must(store::decode_statistics(store::encode_statistics(sum)).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const input = fuzz::bytes_of(data, size);
    decode(input);
    base::byte_writer w;
    w.put_raw(input);
    auto const check = base::sha256_of(input);
    w.put_raw(std::as_bytes(std::span{check.bytes}));
    decode(w.view());
    if (base::as_text(input).find("-----BEGIN ") == std::string_view::npos)
        return 0;  // what reads PEM takes its time to say no
    if (auto const key = store::public_key::from_pem(base::as_text(input)))
        fuzz::must(store::public_key::from_pem(key->pem()).value().id() == key->id());
    if (auto const key = store::private_key::from_pem(base::as_text(input)))
        fuzz::must(key->public_half().verifies(input, key->sign(input)));
    return 0;
}
