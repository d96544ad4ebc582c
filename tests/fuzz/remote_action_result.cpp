// SPDX-License-Identifier: Apache-2.0
// Any bytes as the record of a server with bazel-remote's layout.
#include "fuzz/fuzz.hpp"

#include "remote/action_result.hpp"

using namespace kiln;
using fuzz::must;

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const record = remote::decode_action_result(fuzz::bytes_of(data, size));
    if (!record) return 0;
    must(record->signatures.size() <= remote::most_signatures);
    // What is accepted can be written and read again, and means the same.
    auto const again = remote::decode_action_result(remote::encode_action_result(*record));
    must(again.operator bool() && again->entry == record->entry && again->entry_bytes == record->entry_bytes &&
         again->signatures.size() == record->signatures.size());
    return 0;
}
