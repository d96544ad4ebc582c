// SPDX-License-Identifier: Apache-2.0
// The bytes of a bundle: see docs/formats/bundle.md. Encoding and decoding of its parts, no files.
#pragma once

#include "base/files.hpp"
#include "store/signing.hpp"
#include "store/tier.hpp"

#include <array>
#include <map>

namespace kiln::store {

inline constexpr std::uint32_t bundle_format_version = 1;
inline constexpr std::size_t bundle_header_bytes = 64;
inline constexpr std::size_t bundle_footer_bytes = 320;
inline constexpr std::size_t index_page_bytes = 4096;
inline constexpr std::size_t index_record_bytes = 160;
inline constexpr std::size_t index_node_bytes = 128;
inline constexpr std::size_t records_per_page = index_page_bytes / index_record_bytes;  // 25
inline constexpr std::size_t nodes_per_page = index_page_bytes / index_node_bytes;      // 32
inline constexpr std::uint64_t most_bundle_entries = std::uint64_t{1} << 28;

// Where one entry is. The blob is a disk entry; its header digest is repeated here, under the signature.
struct index_record {
    std::array<digest, 3> at;  // family, request, key: the order of the index
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    digest header;
};

// The index is a tree of pages: leaves of records, above them nodes of {first address, digest of the page below}.
// Level 0 are the leaves. Levels follow one another in the file, each an array of whole pages.
struct index_shape {
    std::vector<std::uint64_t> pages;  // per level; the last has one page. Empty for an empty bundle.
    [[nodiscard]] static index_shape of(std::uint64_t records);
    [[nodiscard]] std::uint64_t total_pages() const noexcept;
    // Number of a page counted from the start of the index.
    [[nodiscard]] std::uint64_t position(std::size_t level, std::uint64_t number) const noexcept;
};

struct bundle_footer {
    std::uint64_t entries = 0;
    std::uint64_t index_offset = 0;
    std::uint64_t manifest_offset = 0;
    std::uint64_t manifest_bytes = 0;
    std::uint64_t file_bytes = 0;
    digest index_root;  // digest of the topmost page
    digest manifest_digest;
    bool is_signed = false;
    key_id key{};
    signature sig{};
};

// What the bundle says about itself as a whole. No times, no host names: the same input gives the same bytes.
struct manifest {
    std::map<std::string, std::string> facts;
    std::vector<std::string> names, targets, kinds, toolchains, producers, licences;  // sorted, each once
    std::uint64_t entries = 0;
    std::uint64_t raw_bytes = 0;
    std::uint64_t stored_bytes = 0;
};

[[nodiscard]] base::bytes encode_bundle_header();
// corrupt, or unsupported for a newer format.
[[nodiscard]] result<void> check_bundle_header(base::byte_span data);
[[nodiscard]] base::bytes encode_footer(bundle_footer const& f);
[[nodiscard]] result<bundle_footer> decode_footer(base::byte_span data, std::uint64_t file_bytes);
// What the signature is made over.
[[nodiscard]] base::bytes signed_message(bundle_footer const& f);

[[nodiscard]] base::bytes encode_manifest(manifest const& m);
[[nodiscard]] result<manifest> decode_manifest(base::byte_span data);

// All pages in file order, and the digest of the topmost.
struct encoded_index {
    base::bytes pages;
    digest root;
};
[[nodiscard]] encoded_index encode_index(std::vector<index_record> const& sorted);
[[nodiscard]] index_record read_record(base::byte_span page, std::size_t slot);
struct index_node {
    std::array<digest, 3> first;
    digest page;
};
[[nodiscard]] index_node read_node(base::byte_span page, std::size_t slot);

// Bytes at a place: a file that stays open, or memory.
class byte_source {
public:
    virtual ~byte_source() = default;
    [[nodiscard]] virtual std::uint64_t size() const noexcept = 0;
    // Exactly `count` bytes; errc::corrupt if there are fewer.
    [[nodiscard]] virtual result<base::bytes> read(std::uint64_t offset, std::size_t count) const = 0;
};
[[nodiscard]] result<std::unique_ptr<byte_source>> open_source(std::filesystem::path const& file);
[[nodiscard]] std::unique_ptr<byte_source> memory_source(base::byte_span data);

}  // namespace kiln::store
