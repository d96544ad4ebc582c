// SPDX-License-Identifier: Apache-2.0
// The record that bazel-remote wants for a name: a valid ActionResult of the remote execution protocol with one output file, the
// entry, whose path holds the signature. Servers re-encode the record, but keep a path. docs/formats/packet.md.
#pragma once

#include "remote/packet.hpp"

namespace kiln::remote {

inline constexpr std::size_t most_action_result = std::size_t{64} << 10;

struct action_record {
    digest entry;
    std::uint64_t entry_bytes = 0;
    std::vector<packet_signature> signatures{};
};

[[nodiscard]] base::bytes encode_action_result(action_record const& what);
// errc::corrupt for what is no such record of ours.
[[nodiscard]] result<action_record> decode_action_result(base::byte_span data);

}  // namespace kiln::remote
