// SPDX-License-Identifier: Apache-2.0
//
// What lies on a server: a disk entry, byte for byte, behind up to four signatures. docs/formats/packet.md. Nothing a server
// sent is used before open_packet() has passed it: form, signature by a trusted key, epoch, everything a disk entry is checked
// for, and that it is what was asked for. Pure functions, safe from any thread.
#pragma once

#include "store/entry_format.hpp"
#include "store/signing.hpp"

namespace kiln::remote {

using base::digest;
using store::miss;

inline constexpr std::string_view packet_magic = "KILNPKT\n";
inline constexpr std::uint32_t packet_version = 1;
inline constexpr std::size_t most_signatures = 4;
inline constexpr std::size_t signature_bytes = 8 + 4 + 64;
inline constexpr std::size_t packet_front_bytes = 8 + 4 + 4;

struct packet_signature {
    store::key_id by{};
    std::uint32_t epoch = 0;
    store::signature value{};
};

// What is signed: the namespace, the epoch, and digest and length of the entry, which itself holds request and key.
struct signed_facts {
    std::string_view space;
    std::uint32_t epoch = 0;
    digest entry;
    std::uint64_t entry_bytes = 0;
};
[[nodiscard]] base::bytes message_of(signed_facts const& facts);

// Who signs what this machine sends.
struct signer {
    store::private_key key;
    std::uint32_t epoch = 0;
};
[[nodiscard]] packet_signature sign_entry(signer const& by, std::string_view space, base::byte_span entry);

[[nodiscard]] base::bytes encode_packet(std::span<packet_signature const> signatures, base::byte_span entry);

struct packet_parts {
    std::vector<packet_signature> signatures;
    std::size_t front = 0;  // bytes before the entry
};
struct packet_outcome {
    std::optional<packet_parts> parts;
    miss why = miss::absent;  // meaningful without parts
};
[[nodiscard]] packet_outcome decode_packet(base::byte_span packet);

// Who is believed.
enum class belief { signatures, server };
struct trust {
    belief in = belief::signatures;
    std::string space = "default";
    std::vector<store::public_key> keys{};
    std::uint32_t least_epoch = 0;
};
// nullopt: to be believed. Else the most telling of unsigned, unknown-key, old-epoch, bad-signature.
[[nodiscard]] std::optional<miss> mistrusted(trust const& rule, std::span<packet_signature const> signatures,
                                             base::byte_span entry);

// What must be true of an entry that was asked for.
struct wanted {
    digest family;
    std::optional<digest> request{};  // nullopt: asked for by family
    std::optional<digest> key{};      // where it is known in advance
    store::expectation expected{};
};

struct opened {
    std::shared_ptr<store::entry> what;  // null: see why
    miss why = miss::absent;
    digest payload{};  // of a sound entry, also where it is not the one asked for
};
[[nodiscard]] opened open_packet(base::bytes packet, trust const& rule, wanted const& asked_for,
                                 std::uint64_t most_payload = store::most_payload_bytes);
// The same for an entry that came without its packet.
[[nodiscard]] opened open_entry(base::bytes entry, std::span<packet_signature const> signatures, trust const& rule,
                                wanted const& asked_for, std::uint64_t most_payload = store::most_payload_bytes);

}  // namespace kiln::remote
