// SPDX-License-Identifier: Apache-2.0
// The bytes of one disk entry: see docs/formats/disk-entry.md. Pure functions; a bundle holds the same bytes as blobs.
#pragma once

#include "store/tier.hpp"

namespace kiln::store {

inline constexpr std::uint32_t entry_format_version = 1;
inline constexpr std::size_t entry_prefix_bytes = 16;  // magic, version, header length
inline constexpr std::size_t most_header_bytes = std::size_t{64} << 10;
inline constexpr std::size_t most_label_text = 4096;
inline constexpr std::uint64_t most_payload_bytes = std::uint64_t{256} << 20;  // a worker sends no more

enum class codec : std::uint8_t { none = 0, zstd = 1 };

struct entry_header {
    label about;
    codec stored_as = codec::none;
    std::uint64_t raw_bytes = 0;
    std::uint64_t stored_bytes = 0;
    digest payload;         // SHA-256 of the raw payload
    digest check;           // the header digest
    std::size_t bytes = 0;  // everything before the stored payload
};

enum class packing { never, where_it_pays };

// invalid_argument: a label text or the payload is larger than the format allows.
[[nodiscard]] result<base::bytes> encode_entry(entry const& what, packing how = packing::where_it_pays);

struct header_outcome {
    std::optional<entry_header> header;
    miss why = miss::absent;  // meaningful without a header
};
// `front` is the beginning of a file of `file_bytes` bytes, at least entry_front_bytes() of it.
[[nodiscard]] header_outcome decode_header(base::byte_span front, std::uint64_t file_bytes,
                                           std::uint64_t most_payload = most_payload_bytes);
// How much of the file decode_header() needs, told by its first bytes; at most most_header_bytes + 48.
[[nodiscard]] std::size_t entry_front_bytes(base::byte_span prefix) noexcept;
// Magic right and version newer than ours, whatever else is wrong with it.
[[nodiscard]] bool is_newer_format(base::byte_span prefix) noexcept;

struct entry_outcome {
    std::shared_ptr<entry> what;
    std::optional<entry_header> header;
    miss why = miss::absent;  // meaningful without an entry
};
// Takes the file's bytes over: a payload stored as it is stays where it is, without a second copy.
[[nodiscard]] entry_outcome decode_entry(base::bytes file, std::uint64_t most_payload = most_payload_bytes);

}  // namespace kiln::store
