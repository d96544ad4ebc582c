// SPDX-License-Identifier: Apache-2.0
// Ed25519 keys in PEM files, as openssl genpkey and openssl pkey -pubout write them.
#pragma once

#include "base/bytes.hpp"
#include "base/check.hpp"

#include <array>
#include <filesystem>
#include <memory>

namespace kiln::store {

using signature = std::array<std::uint8_t, 64>;
using key_id = std::array<std::uint8_t, 8>;  // first bytes of the SHA-256 of the raw public key

class public_key {
public:
    [[nodiscard]] static result<public_key> from_pem(std::string_view pem);
    // Reads a public key, or the public half of a private one.
    [[nodiscard]] static result<public_key> load(std::filesystem::path const& file);
    [[nodiscard]] bool verifies(base::byte_span message, signature const& s) const;
    [[nodiscard]] key_id const& id() const noexcept { return id_; }
    [[nodiscard]] std::string pem() const;

private:
    friend class private_key;
    explicit public_key(std::shared_ptr<void> key);
    std::shared_ptr<void> key_;
    key_id id_{};
};

class private_key {
public:
    [[nodiscard]] static result<private_key> generate();
    [[nodiscard]] static result<private_key> from_pem(std::string_view pem);
    [[nodiscard]] static result<private_key> load(std::filesystem::path const& file);
    // Mode 0600; errc::invalid_argument if the file exists: a key is never overwritten.
    [[nodiscard]] result<void> save(std::filesystem::path const& file) const;
    [[nodiscard]] signature sign(base::byte_span message) const;
    [[nodiscard]] public_key public_half() const;
    [[nodiscard]] std::string pem() const;

private:
    explicit private_key(std::shared_ptr<void> key) : key_{std::move(key)} {}
    std::shared_ptr<void> key_;
};

[[nodiscard]] std::string to_hex(key_id const& id);

}  // namespace kiln::store
