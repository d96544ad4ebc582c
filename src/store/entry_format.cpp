// SPDX-License-Identifier: Apache-2.0
#include "store/entry_format.hpp"

#include <zstd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace kiln::store {

namespace {

using base::byte_reader;
using base::byte_span;
using base::byte_writer;

constexpr std::string_view magic = "KILNENT\n";
constexpr std::size_t digest_bytes = 32;
constexpr std::size_t worth_packing = 512;
constexpr int packing_level = 3;

void put_digest(byte_writer& w, digest const& d) { w.put_raw(std::as_bytes(std::span{d.bytes})); }

digest get_digest(byte_reader& r) noexcept {
    digest out;
    auto const raw = r.get_raw(out.bytes.size());
    if (raw.size() == out.bytes.size()) std::memcpy(out.bytes.data(), raw.data(), raw.size());
    return out;
}

std::string get_short_text(byte_reader& r) {
    auto const raw = r.get_blob();
    if (raw.size() > most_label_text) {
        r.spoil();
        return {};
    }
    return std::string{base::as_text(raw)};
}

// Empty when it does not pay: less than an eighth saved.
base::bytes packed(byte_span payload) {
    if (payload.size() < worth_packing) return {};
    base::bytes out(ZSTD_compressBound(payload.size()));
    auto const size = ZSTD_compress(out.data(), out.size(), payload.data(), payload.size(), packing_level);
    if (ZSTD_isError(size) != 0 || size > payload.size() - payload.size() / 8) return {};
    out.resize(size);
    return out;
}

// zstd's room for unpacking, 160 KiB, which would otherwise be asked of the system, touched and given back for every hit. One is kept.
class unpacker {
public:
    unpacker() : room_{spare().exchange(nullptr)} {
        if (room_ == nullptr) room_ = ZSTD_createDCtx();
    }
    unpacker(unpacker const&) = delete;
    unpacker& operator=(unpacker const&) = delete;
    ~unpacker() { ZSTD_freeDCtx(spare().exchange(room_)); }

    // Whether `packed` fills `out`.
    bool unpack(base::bytes& out, byte_span packed) const noexcept {
        if (room_ == nullptr) return false;
        return ZSTD_decompressDCtx(room_, out.data(), out.size(), packed.data(), packed.size()) == out.size();
    }

private:
    static std::atomic<ZSTD_DCtx*>& spare() noexcept {
        static std::atomic<ZSTD_DCtx*> kept{nullptr};
        return kept;
    }

    ZSTD_DCtx* room_;
};

std::optional<base::bytes> unpacked(byte_span stored, entry_header const& h) {
    // The frame must agree with the header before anything is allocated; the buffer caps what comes out.
    if (ZSTD_getFrameContentSize(stored.data(), stored.size()) != h.raw_bytes) return std::nullopt;
    base::bytes out(static_cast<std::size_t>(h.raw_bytes));
    if (!unpacker{}.unpack(out, stored)) return std::nullopt;
    return out;
}

// nullopt: does not unpack, or is not what the digest says.
std::optional<base::bytes> checked_payload(base::bytes file, entry_header const& h) {
    auto const stored = byte_span{file}.subspan(h.bytes);
    if (h.stored_as == codec::none) {
        if (base::sha256_of(stored) != h.payload) return std::nullopt;
        file.erase(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(h.bytes));
        return file;
    }
    auto out = unpacked(stored, h);
    if (out && base::sha256_of(*out) != h.payload) return std::nullopt;
    return out;
}

std::optional<entry_header> parse_fields(byte_span fields) {
    byte_reader r{fields};
    entry_header h;
    h.about.at.family = get_digest(r);
    h.about.at.request = get_digest(r);
    h.about.at.key = get_digest(r);
    for (auto* text :
         {&h.about.name, &h.about.target, &h.about.kind, &h.about.toolchain, &h.about.producer, &h.about.licence}) {
        *text = get_short_text(r);
    }
    auto const stored_as = r.get_u8();
    h.stored_as = static_cast<codec>(stored_as);
    h.raw_bytes = r.get_u64();
    h.stored_bytes = r.get_u64();
    h.payload = get_digest(r);
    if (!r.done() || stored_as > static_cast<std::uint8_t>(codec::zstd)) return std::nullopt;
    if (h.stored_as == codec::none && h.raw_bytes != h.stored_bytes) return std::nullopt;
    return h;
}

struct prefix {
    bool magic_ok = false;
    std::uint32_t version = 0;
    std::uint32_t header_bytes = 0;
};

prefix parse_prefix(byte_span front) noexcept {
    byte_reader r{front};
    prefix out;
    out.magic_ok = base::as_text(r.get_raw(magic.size())) == magic;
    out.version = r.get_u32();
    out.header_bytes = r.get_u32();
    return out;
}

}  // namespace

result<base::bytes> encode_entry(entry const& what, packing how) {
    auto const& a = what.about;
    for (auto const* text : {&a.name, &a.target, &a.kind, &a.toolchain, &a.producer, &a.licence}) {
        if (text->size() > most_label_text) {
            return fail(errc::invalid_argument, "{}: a label text of {} bytes; {} are allowed", a.name.substr(0, 64),
                        text->size(), most_label_text);
        }
    }
    if (what.payload.size() > most_payload_bytes) {
        return fail(errc::invalid_argument, "{}: a payload of {} bytes; {} are allowed", a.name, what.payload.size(),
                    most_payload_bytes);
    }
    auto const small = how == packing::never ? base::bytes{} : packed(what.payload);
    byte_span const stored = small.empty() ? byte_span{what.payload} : byte_span{small};

    byte_writer fields;
    put_digest(fields, a.at.family);
    put_digest(fields, a.at.request);
    put_digest(fields, a.at.key);
    for (auto const* text : {&a.name, &a.target, &a.kind, &a.toolchain, &a.producer, &a.licence})
        fields.put_text(*text);
    fields.put_u8(static_cast<std::uint8_t>(small.empty() ? codec::none : codec::zstd));
    fields.put_u64(what.payload.size());
    fields.put_u64(stored.size());
    put_digest(fields, base::sha256_of(what.payload));

    byte_writer w;
    w.put_raw(base::as_bytes(magic));
    w.put_u32(entry_format_version);
    w.put_u32(static_cast<std::uint32_t>(fields.size()));
    w.put_raw(fields.view());
    put_digest(w, base::sha256_of(w.view()));
    w.put_raw(stored);
    return std::move(w).take();
}

std::size_t entry_front_bytes(byte_span front) noexcept {
    if (front.size() < entry_prefix_bytes) return entry_prefix_bytes;
    return entry_prefix_bytes + std::min<std::size_t>(parse_prefix(front).header_bytes, most_header_bytes) +
           digest_bytes;
}

bool is_newer_format(byte_span front) noexcept {
    if (front.size() < entry_prefix_bytes) return false;
    auto const p = parse_prefix(front);
    return p.magic_ok && p.version > entry_format_version;
}

// The envelope (magic, version, header length, header, digest of all that) is the same in every version, so a
// damaged version number is told from a newer format.
header_outcome decode_header(byte_span front, std::uint64_t file_bytes, std::uint64_t most_payload) {
    auto const no = [](miss why) { return header_outcome{.header = std::nullopt, .why = why}; };
    if (base::as_text(front.first(std::min(front.size(), magic.size()))) != magic.substr(0, front.size()))
        return no(miss::bad_magic);
    if (front.size() < entry_prefix_bytes) return no(miss::truncated);
    auto const p = parse_prefix(front);
    if (p.header_bytes > most_header_bytes) return no(miss::bad_header);
    auto const covered = entry_prefix_bytes + p.header_bytes;
    if (file_bytes < covered + digest_bytes || front.size() < covered + digest_bytes) return no(miss::truncated);

    byte_reader check{front.subspan(covered, digest_bytes)};
    auto const expected = get_digest(check);
    if (base::sha256_of(front.first(covered)) != expected) return no(miss::bad_header);
    if (p.version > entry_format_version) return no(miss::newer_format);
    if (p.version != entry_format_version) return no(miss::bad_header);

    auto h = parse_fields(front.subspan(entry_prefix_bytes, p.header_bytes));
    if (!h) return no(miss::bad_header);
    h->check = expected;
    h->bytes = covered + digest_bytes;
    if (h->raw_bytes > most_payload || h->stored_bytes > most_payload) return no(miss::too_large);
    if (file_bytes - h->bytes < h->stored_bytes) return no(miss::truncated);
    if (file_bytes - h->bytes > h->stored_bytes) return no(miss::trailing);
    return {.header = std::move(h), .why = miss::absent};
}

entry_outcome decode_entry(base::bytes file, std::uint64_t most_payload) {
    auto outcome = decode_header(file, file.size(), most_payload);
    if (!outcome.header) return {.what = nullptr, .header = std::nullopt, .why = outcome.why};
    auto payload = checked_payload(std::move(file), *outcome.header);
    if (!payload) return {.what = nullptr, .header = std::move(outcome.header), .why = miss::bad_digest};
    auto what = std::make_shared<entry>();
    what->about = outcome.header->about;
    what->payload = *std::move(payload);
    return {.what = std::move(what), .header = std::move(outcome.header), .why = miss::absent};
}

}  // namespace kiln::store
