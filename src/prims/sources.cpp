// SPDX-License-Identifier: Apache-2.0
#include "prims/sources.hpp"

#include "embedded/prims_kernels.hpp"
#include "embedded/prims_products.hpp"

#include <algorithm>
#include <cstring>
#include <zstd.h>

namespace kiln::prims {

namespace {

constexpr std::uint32_t pack_version = 2;
constexpr std::size_t most_unpacked = std::size_t{64} << 20;

struct pack_front {
    std::uint64_t raw_size = 0;
    base::digest digest;
};

// What the build packed; empty where nothing ships: in the program that makes it, in unit tests.
base::byte_span embedded_headers() {
    return base::as_bytes(embedded::find_file(embedded::prims_products(), "headers.zst"));
}

// Everything before the blob.
result<pack_front> read_front(base::byte_reader& in) {
    if (base::as_text(in.get_raw(8)) != "KILNHDRS") return fail(errc::corrupt, "packed headers: not a pack of headers");
    if (auto const version = in.get_u32(); version != pack_version) {
        return fail(errc::unsupported, "packed headers: version {}, this Kiln reads {}", version, pack_version);
    }
    pack_front out;
    out.raw_size = in.get_u64();
    auto const digest = in.get_raw(out.digest.bytes.size());
    if (!in.ok() || out.raw_size > most_unpacked) return fail(errc::corrupt, "packed headers: truncated or damaged");
    std::memcpy(out.digest.bytes.data(), digest.data(), digest.size());
    return out;
}

}  // namespace

std::vector<header> const& kernel_headers() {
    static std::vector<header> const files = [] {
        std::vector<header> out;
        for (auto const& f : embedded::prims_kernels())
            out.push_back({"kiln/prims/" + std::string{f.name}, std::string{f.data}});
        std::ranges::sort(out, {}, &header::name);
        return out;
    }();
    return files;
}

std::vector<header> kernel_headers_of(std::string_view name) {
    std::vector<header> out;
    for (auto const& h : kernel_headers()) {
        bool const shared = h.name.ends_with(".cuh");
        bool const own = h.name == fmt::format("kiln/prims/{}.cu", name);
        bool const part =
            name == "reductions" && (h.name == "kiln/prims/reduce.cu" || h.name == "kiln/prims/segmented_reduce.cu");
        if (shared || own || part) out.push_back(h);
    }
    return out;
}

base::digest digest_of(std::span<header const> files) {
    base::key_builder key{"kiln.prims.texts.v1"};
    for (auto const& f : files) key.add("name", f.name).add("text", f.text);
    return key.finish();
}

std::shared_ptr<pinned_headers const> pinned() {
    static std::shared_ptr<pinned_headers const> const carried = [] {
        auto const packed = embedded_headers();
        if (packed.empty()) return std::shared_ptr<pinned_headers const>{};
        auto files = unpack(packed);
        KILN_ASSERT(files.has_value());  // linked into this very library
        return std::make_shared<pinned_headers const>(*std::move(files));
    }();
    return carried;
}

std::optional<base::digest> const& pinned_digest() {
    static std::optional<base::digest> const carried = [] {
        auto const packed = embedded_headers();
        return packed.empty() ? std::nullopt : std::optional{packed_digest(packed).value()};
    }();
    return carried;
}

base::bytes pack(std::span<header const> files) {
    std::vector<header> sorted{files.begin(), files.end()};
    std::ranges::sort(sorted, {}, &header::name);
    base::byte_writer raw;
    raw.put_u32(static_cast<std::uint32_t>(sorted.size()));
    for (auto const& f : sorted) {
        raw.put_text(f.name);
        raw.put_text(f.text);
    }
    base::bytes packed(ZSTD_compressBound(raw.size()));
    auto const size = ZSTD_compress(packed.data(), packed.size(), raw.view().data(), raw.size(), 19);
    KILN_ASSERT(ZSTD_isError(size) == 0);
    packed.resize(size);
    base::byte_writer out;
    out.put_raw(base::as_bytes("KILNHDRS"));
    out.put_u32(pack_version);
    out.put_u64(raw.size());
    auto const digest = digest_of(sorted);
    out.put_raw(std::as_bytes(std::span{digest.bytes}));
    out.put_blob(packed);
    return std::move(out).take();
}

result<pinned_headers> unpack(base::byte_span packed) {
    base::byte_reader in{packed};
    KILN_TRY(auto const front, read_front(in));
    auto const raw_size = front.raw_size;
    auto const blob = in.get_blob();
    if (!in.done()) return fail(errc::corrupt, "packed headers: truncated or damaged");
    base::bytes raw(raw_size);
    auto const size = ZSTD_decompress(raw.data(), raw.size(), blob.data(), blob.size());
    if (ZSTD_isError(size) != 0 || size != raw_size) return fail(errc::corrupt, "packed headers: damaged");
    base::byte_reader files{raw};
    pinned_headers out;
    auto const count = files.get_count(8);
    for (std::uint32_t i = 0; i < count && files.ok(); ++i) {
        auto name = files.get_text();
        out.files.push_back({std::move(name), files.get_text()});
    }
    if (!files.done()) return fail(errc::corrupt, "packed headers: damaged");
    out.digest = digest_of(out.files);
    if (out.digest != front.digest) return fail(errc::corrupt, "packed headers: damaged");
    return out;
}

result<base::digest> packed_digest(base::byte_span packed) {
    base::byte_reader in{packed};
    KILN_TRY(auto const front, read_front(in));
    return front.digest;
}

}  // namespace kiln::prims
