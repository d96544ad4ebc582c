// SPDX-License-Identifier: Apache-2.0
// SHA-256, and the labelled, length-prefixed builder every key is made with.
#pragma once

#include "base/bytes.hpp"

#include <array>
#include <compare>
#include <memory>
#include <optional>

namespace kiln::base {

struct digest {
    std::array<std::uint8_t, 32> bytes{};

    auto operator<=>(digest const&) const = default;
    // 64 lower-case hexadecimal digits.
    [[nodiscard]] std::string hex() const;
    [[nodiscard]] static std::optional<digest> from_hex(std::string_view text);
    // First eight bytes as a number: for events and hash maps, not for equality.
    [[nodiscard]] std::uint64_t prefix() const noexcept;
};

struct digest_hash {
    std::size_t operator()(digest const& d) const noexcept { return d.prefix(); }
};

class sha256 {
public:
    sha256();
    ~sha256();
    sha256(sha256&&) noexcept;
    sha256& operator=(sha256&&) noexcept;

    sha256& update(byte_span data);
    [[nodiscard]] digest finish();

private:
    struct state;
    std::unique_ptr<state> state_;
};

[[nodiscard]] digest sha256_of(byte_span data);
[[nodiscard]] inline digest sha256_of(std::string_view text) { return sha256_of(as_bytes(text)); }

// Every field goes in as label length, label, value length, value: {"-DA=1 2"} and {"-DA=1","2"} differ.
class key_builder {
public:
    // `schema` names what is keyed and its version: "kiln.request.v1".
    explicit key_builder(std::string_view schema) { add("schema", schema); }

    key_builder& add(std::string_view label, std::string_view value) { return add(label, as_bytes(value)); }
    key_builder& add(std::string_view label, byte_span value);
    key_builder& add(std::string_view label, digest const& value);
    key_builder& add(std::string_view label, std::uint64_t value);
    [[nodiscard]] digest finish() { return hash_.finish(); }

private:
    sha256 hash_;
};

}  // namespace kiln::base
