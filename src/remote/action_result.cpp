// SPDX-License-Identifier: Apache-2.0
#include "remote/action_result.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace kiln::remote {

namespace {

using base::byte_span;

constexpr std::string_view path_prefix = "kiln-1/";
constexpr std::string_view no_signature = "unsigned";
constexpr std::string_view url_letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// The few forms of a protocol buffer that are needed.
enum class wire { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_varint(base::byte_writer& w, std::uint64_t v) {
    for (; v >= 0x80; v >>= 7) w.put_u8(static_cast<std::uint8_t>(v | 0x80));
    w.put_u8(static_cast<std::uint8_t>(v));
}
void put_field(base::byte_writer& w, unsigned number, std::uint64_t v) {
    put_varint(w, number << 3);
    put_varint(w, v);
}
void put_field(base::byte_writer& w, unsigned number, byte_span data) {
    put_varint(w, (number << 3) | 2);
    put_varint(w, data.size());
    w.put_raw(data);
}

struct field {
    unsigned number = 0;
    std::uint64_t value = 0;
    byte_span data{};
};

std::uint64_t get_varint(base::byte_reader& r) noexcept {
    std::uint64_t out = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        auto const b = r.get_u8();
        out |= std::uint64_t{b & 0x7fu} << shift;
        if ((b & 0x80) == 0) return out;
    }
    r.spoil();
    return 0;
}

field get_field(base::byte_reader& r) noexcept {
    auto const tag = get_varint(r);
    field out{.number = static_cast<unsigned>(tag >> 3)};
    switch (static_cast<wire>(tag & 7)) {
        case wire::varint: out.value = get_varint(r); break;
        case wire::fixed64: out.value = r.get_u64(); break;
        case wire::fixed32: out.value = r.get_u32(); break;
        case wire::bytes: {
            auto const size = get_varint(r);
            if (size > r.left()) r.spoil();
            else out.data = r.get_raw(static_cast<std::size_t>(size));
            break;
        }
        default: r.spoil();
    }
    return out;
}

std::string base64url(byte_span data) {
    std::string out;
    for (std::size_t i = 0; i < data.size(); i += 3) {
        unsigned group = 0;
        auto const n = std::min<std::size_t>(3, data.size() - i);
        for (std::size_t k = 0; k < 3; ++k) group = group << 8 | (k < n ? std::to_integer<unsigned>(data[i + k]) : 0);
        for (std::size_t k = 0; k <= n; ++k) out += url_letters[group >> (18 - 6 * k) & 63];
    }
    return out;
}

std::optional<base::bytes> from_base64url(std::string_view text) {
    base::bytes out;
    unsigned group = 0, bits = 0;
    for (char const c : text) {
        auto const at = url_letters.find(c);
        if (at == url_letters.npos) return std::nullopt;
        group = (group << 6 | static_cast<unsigned>(at)) & 0xffffff;
        bits += 6;
        if (bits < 8) continue;
        bits -= 8;
        out.push_back(static_cast<std::byte>(group >> bits));
    }
    return out;
}

std::string path_of(std::vector<packet_signature> const& signatures) {
    std::string out{path_prefix};
    if (signatures.empty()) return out + std::string{no_signature};
    for (auto const& s : signatures) {
        if (&s != signatures.data()) out += ',';
        out += fmt::format("{}.{}.{}", store::to_hex(s.by), s.epoch, base64url(std::as_bytes(std::span{s.value})));
    }
    return out;
}

std::optional<packet_signature> signature_in(std::string_view text) {
    auto const first = text.find('.');
    auto const second = first == text.npos ? text.npos : text.find('.', first + 1);
    if (first != 16 || second == text.npos) return std::nullopt;
    packet_signature out;
    for (std::size_t i = 0; i < out.by.size(); ++i) {
        auto const [end, why] = std::from_chars(text.data() + 2 * i, text.data() + 2 * i + 2, out.by[i], 16);
        if (why != std::errc{} || end != text.data() + 2 * i + 2) return std::nullopt;
    }
    auto const [end, why] = std::from_chars(text.data() + first + 1, text.data() + second, out.epoch);
    if (why != std::errc{} || end != text.data() + second) return std::nullopt;
    auto const value = from_base64url(text.substr(second + 1));
    if (!value || value->size() != out.value.size()) return std::nullopt;
    std::memcpy(out.value.data(), value->data(), value->size());
    return out;
}

std::optional<std::vector<packet_signature>> signatures_in(std::string_view path) {
    std::vector<packet_signature> out;
    if (!path.starts_with(path_prefix)) return std::nullopt;
    path.remove_prefix(path_prefix.size());
    if (path == no_signature) return out;
    for (;;) {
        auto const comma = std::min(path.find(','), path.size());
        auto const one = signature_in(path.substr(0, comma));
        if (!one || out.size() == most_signatures) return std::nullopt;
        out.push_back(*one);
        if (comma == path.size()) return out;
        path.remove_prefix(comma + 1);
    }
}

}  // namespace

base::bytes encode_action_result(action_record const& what) {
    base::byte_writer id, file, meta, out;
    put_field(id, 1, base::as_bytes(what.entry.hex()));
    put_field(id, 2, what.entry_bytes);
    put_field(file, 1, base::as_bytes(path_of(what.signatures)));
    put_field(file, 2, id.view());
    put_field(meta, 1, base::as_bytes("kiln"));
    put_field(out, 2, file.view());
    put_field(out, 9, meta.view());
    return std::move(out).take();
}

result<action_record> decode_action_result(byte_span data) {
    auto const bad = [] { return fail(errc::corrupt, "not an ActionResult of Kiln's"); };
    if (data.size() > most_action_result) return bad();
    base::byte_reader all{data};
    std::optional<byte_span> file;
    while (all.ok() && all.left() > 0) {
        auto const f = get_field(all);
        if (f.number != 2) continue;
        if (file) return bad();
        file = f.data;
    }
    if (!all.ok() || !file) return bad();
    base::byte_reader in_file{*file};
    std::string path;
    byte_span id;
    while (in_file.ok() && in_file.left() > 0) {
        auto const f = get_field(in_file);
        if (f.number == 1) path = base::as_text(f.data);
        if (f.number == 2) id = f.data;
    }
    base::byte_reader in_id{id};
    action_record out;
    std::optional<digest> entry;
    while (in_id.ok() && in_id.left() > 0) {
        auto const f = get_field(in_id);
        if (f.number == 1) entry = digest::from_hex(base::as_text(f.data));
        if (f.number == 2) out.entry_bytes = f.value;
    }
    auto signatures = signatures_in(path);
    if (!in_file.ok() || !in_id.ok() || !entry || !signatures) return bad();
    out.entry = *entry;
    out.signatures = *std::move(signatures);
    return out;
}

}  // namespace kiln::remote
