// SPDX-License-Identifier: Apache-2.0
#include "remote/packet.hpp"

#include "base/exit_gate.hpp"

#include <algorithm>
#include <cstring>

namespace kiln::remote {

namespace {

using base::byte_reader;
using base::byte_span;
using base::byte_writer;

constexpr std::string_view message_schema = "kiln remote v1";

template <std::size_t N>
std::array<std::uint8_t, N> get_array(byte_reader& r) noexcept {
    std::array<std::uint8_t, N> out{};
    auto const raw = r.get_raw(N);
    if (raw.size() == N) std::memcpy(out.data(), raw.data(), N);
    return out;
}

// The check of store::mismatch, where not all of the address need be known.
std::optional<miss> not_asked_for(store::label const& about, wanted const& asked_for) noexcept {
    auto const differs = [](std::string const& should, std::string const& has) {
        return !should.empty() && should != has;
    };
    if (about.at.family != asked_for.family) return miss::wrong_key;
    if (asked_for.request && about.at.request != *asked_for.request) return miss::wrong_key;
    if (asked_for.key && about.at.key != *asked_for.key) return miss::wrong_key;
    if (differs(asked_for.expected.target, about.target)) return miss::wrong_target;
    if (differs(asked_for.expected.kind, about.kind)) return miss::wrong_kind;
    if (differs(asked_for.expected.toolchain, about.toolchain)) return miss::wrong_toolchain;
    return std::nullopt;
}

// Of two reasons the one that says more of whoever made the packet.
int weight(miss why) noexcept {
    switch (why) {
        case miss::disabled: return 4;  // the program ends: nobody can tell
        case miss::bad_signature: return 3;
        case miss::old_epoch: return 2;
        case miss::unknown_key: return 1;
        default: return 0;
    }
}

miss check_signature(trust const& rule, packet_signature const& s, signed_facts facts) {
    auto const key = std::ranges::find(rule.keys, s.by, &store::public_key::id);
    if (key == rule.keys.end()) return miss::unknown_key;
    facts.epoch = s.epoch;
    base::library_use const openssl;
    if (!openssl) return miss::disabled;
    if (!key->verifies(message_of(facts), s.value)) return miss::bad_signature;
    return s.epoch < rule.least_epoch ? miss::old_epoch : miss::absent;
}

}  // namespace

base::bytes message_of(signed_facts const& facts) {
    byte_writer w;
    w.put_text(message_schema);
    w.put_text(facts.space);
    w.put_u32(facts.epoch);
    w.put_raw(std::as_bytes(std::span{facts.entry.bytes}));
    w.put_u64(facts.entry_bytes);
    return std::move(w).take();
}

packet_signature sign_entry(signer const& by, std::string_view space, byte_span entry) {
    auto const message =
        message_of({.space = space, .epoch = by.epoch, .entry = base::sha256_of(entry), .entry_bytes = entry.size()});
    return {.by = by.key.public_half().id(), .epoch = by.epoch, .value = by.key.sign(message)};
}

base::bytes encode_packet(std::span<packet_signature const> signatures, byte_span entry) {
    KILN_ASSERT(signatures.size() <= most_signatures);
    byte_writer w;
    w.put_raw(base::as_bytes(packet_magic));
    w.put_u32(packet_version);
    w.put_u32(static_cast<std::uint32_t>(signatures.size()));
    for (auto const& s : signatures) {
        w.put_raw(std::as_bytes(std::span{s.by}));
        w.put_u32(s.epoch);
        w.put_raw(std::as_bytes(std::span{s.value}));
    }
    w.put_raw(entry);
    return std::move(w).take();
}

packet_outcome decode_packet(byte_span packet) {
    auto const no = [](miss why) { return packet_outcome{.parts = std::nullopt, .why = why}; };
    auto const seen = std::min(packet.size(), packet_magic.size());
    if (base::as_text(packet.first(seen)) != packet_magic.substr(0, seen)) return no(miss::bad_magic);
    if (packet.size() < packet_front_bytes) return no(miss::truncated);
    byte_reader r{packet};
    (void)r.get_raw(packet_magic.size());
    auto const version = r.get_u32();
    if (version > packet_version) return no(miss::newer_format);
    if (version != packet_version) return no(miss::bad_header);
    auto const count = r.get_u32();
    if (count > most_signatures) return no(miss::bad_header);
    if (r.left() < count * signature_bytes) return no(miss::truncated);
    packet_parts out;
    for (std::uint32_t i = 0; i < count; ++i) {
        auto& s = out.signatures.emplace_back();
        s.by = get_array<8>(r);
        s.epoch = r.get_u32();
        s.value = get_array<64>(r);
    }
    out.front = packet.size() - r.left();
    return {.parts = std::move(out), .why = miss::absent};
}

std::optional<miss> mistrusted(trust const& rule, std::span<packet_signature const> signatures, byte_span entry) {
    if (rule.in == belief::server) return std::nullopt;
    if (signatures.empty()) return miss::not_signed;
    // The digest is the dear part: only where somebody we know claims to have signed.
    bool const known = std::ranges::any_of(signatures, [&](packet_signature const& s) {
        return std::ranges::find(rule.keys, s.by, &store::public_key::id) != rule.keys.end();
    });
    if (!known) return miss::unknown_key;
    signed_facts const facts{.space = rule.space, .entry = base::sha256_of(entry), .entry_bytes = entry.size()};
    auto worst = miss::unknown_key;
    for (auto const& s : signatures) {
        auto const why = check_signature(rule, s, facts);
        if (why == miss::absent) return std::nullopt;
        if (weight(why) > weight(worst)) worst = why;
    }
    return worst;
}

opened open_entry(base::bytes entry, std::span<packet_signature const> signatures, trust const& rule,
                  wanted const& asked_for, std::uint64_t most_payload) {
    auto const no = [](miss why) { return opened{.what = nullptr, .why = why}; };
    if (auto const why = mistrusted(rule, signatures, entry)) return no(*why);
    auto decoded = store::decode_entry(std::move(entry), most_payload);
    if (!decoded.what) return no(decoded.why);
    auto const payload = decoded.header->payload;
    if (auto const why = not_asked_for(decoded.what->about, asked_for))
        return {.what = nullptr, .why = *why, .payload = payload};
    return {.what = std::move(decoded.what), .why = miss::absent, .payload = payload};
}

opened open_packet(base::bytes packet, trust const& rule, wanted const& asked_for, std::uint64_t most_payload) {
    auto const outer = decode_packet(packet);
    if (!outer.parts) return {.what = nullptr, .why = outer.why};
    packet.erase(packet.begin(), packet.begin() + static_cast<std::ptrdiff_t>(outer.parts->front));
    return open_entry(std::move(packet), outer.parts->signatures, rule, asked_for, most_payload);
}

}  // namespace kiln::remote
