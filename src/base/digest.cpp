// SPDX-License-Identifier: Apache-2.0
#include "base/digest.hpp"

#include "base/check.hpp"

#include <openssl/sha.h>

// OpenSSL's own SHA-256 without its provider machinery: looking an algorithm up through EVP costs 1.5 ms at the first use in
// a process, three times what a whole disk hit may take. The functions are marked deprecated in favour of EVP.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace kiln::base {

namespace {

int digit_of(char c) noexcept {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

}  // namespace

std::string digest::hex() const {
    static constexpr char digits[] = "0123456789abcdef";
    std::string out(64, '0');
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    return out;
}

std::optional<digest> digest::from_hex(std::string_view text) {
    if (text.size() != 64) return std::nullopt;
    digest out;
    for (std::size_t i = 0; i < 32; ++i) {
        int const high = digit_of(text[2 * i]);
        int const low = digit_of(text[2 * i + 1]);
        if (high < 0 || low < 0) return std::nullopt;
        out.bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
    }
    return out;
}

std::uint64_t digest::prefix() const noexcept {
    std::uint64_t v = 0;
    for (std::size_t i = 0; i < 8; ++i) v = v << 8 | bytes[i];
    return v;
}

struct sha256::state {
    SHA256_CTX context{};
    state() { KILN_ASSERT(SHA256_Init(&context) == 1); }
};

sha256::sha256() : state_{std::make_unique<state>()} {}
sha256::~sha256() = default;
sha256::sha256(sha256&&) noexcept = default;
sha256& sha256::operator=(sha256&&) noexcept = default;

sha256& sha256::update(byte_span data) {
    KILN_ASSERT(SHA256_Update(&state_->context, data.data(), data.size()) == 1);
    return *this;
}

digest sha256::finish() {
    digest out;
    KILN_ASSERT(SHA256_Final(out.bytes.data(), &state_->context) == 1);
    return out;
}

digest sha256_of(byte_span data) { return sha256{}.update(data).finish(); }

key_builder& key_builder::add(std::string_view label, byte_span value) {
    byte_writer sizes;
    sizes.put_text(label);
    sizes.put_u64(value.size());
    hash_.update(sizes.view()).update(value);
    return *this;
}

key_builder& key_builder::add(std::string_view label, digest const& value) {
    return add(label, std::as_bytes(std::span{value.bytes}));
}

key_builder& key_builder::add(std::string_view label, std::uint64_t value) {
    byte_writer number;
    number.put_u64(value);
    return add(label, number.view());
}

}  // namespace kiln::base
