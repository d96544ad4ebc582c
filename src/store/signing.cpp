// SPDX-License-Identifier: Apache-2.0
#include "store/signing.hpp"

#include "base/digest.hpp"
#include "base/exit_gate.hpp"
#include "base/files.hpp"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>

namespace kiln::store {

namespace {

constexpr std::size_t most_key_file = 16 << 10;

EVP_PKEY* native(std::shared_ptr<void> const& key) noexcept { return static_cast<EVP_PKEY*>(key.get()); }

struct bio_deleter {
    void operator()(BIO* b) const noexcept { BIO_free(b); }
};
using bio_ptr = std::unique_ptr<BIO, bio_deleter>;

struct context_deleter {
    void operator()(EVP_MD_CTX* c) const noexcept { EVP_MD_CTX_free(c); }
};
using context_ptr = std::unique_ptr<EVP_MD_CTX, context_deleter>;

bio_ptr reader_of(std::string_view pem) {
    base::keep_openssl();
    return bio_ptr{BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))};
}

std::string text_of(BIO* bio) {
    char* data = nullptr;
    auto const size = BIO_get_mem_data(bio, &data);
    return {data, static_cast<std::size_t>(size)};
}

// Takes the key over; null unless it is Ed25519.
std::shared_ptr<void> checked(EVP_PKEY* key) {
    std::shared_ptr<void> out{key, [](void* k) {
                                  base::library_use const openssl;
                                  if (openssl) EVP_PKEY_free(static_cast<EVP_PKEY*>(k));
                              }};
    return key != nullptr && EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 ? out : nullptr;
}

unsigned char const* as_unsigned(base::byte_span data) noexcept {
    return reinterpret_cast<unsigned char const*>(data.data());
}

// A prompt for a pass phrase would block a program: encrypted keys are refused.
int no_pass_phrase(char*, int, int, void*) { return -1; }

error the_program_ends() { return fail(errc::cancelled, "the program ends, and OpenSSL with it"); }

result<std::string> read_pem(std::filesystem::path const& file) {
    KILN_TRY(auto const data, base::read_file(file, most_key_file));
    if (!data) return fail(errc::not_found, "{}: no such key file", file.native());
    return std::string{base::as_text(*data)};
}

}  // namespace

public_key::public_key(std::shared_ptr<void> key) : key_{std::move(key)} {
    std::array<unsigned char, 32> raw{};
    std::size_t size = raw.size();
    KILN_ASSERT(EVP_PKEY_get_raw_public_key(native(key_), raw.data(), &size) == 1);
    auto const hash = base::sha256_of(std::as_bytes(std::span{raw}));
    std::copy_n(hash.bytes.begin(), id_.size(), id_.begin());
}

result<public_key> public_key::from_pem(std::string_view pem) {
    base::library_use const openssl;
    if (!openssl) return the_program_ends();
    if (auto key = checked(PEM_read_bio_PUBKEY(reader_of(pem).get(), nullptr, no_pass_phrase, nullptr)))
        return public_key{std::move(key)};
    if (auto key = checked(PEM_read_bio_PrivateKey(reader_of(pem).get(), nullptr, no_pass_phrase, nullptr))) {
        return public_key{std::move(key)};
    }
    return fail(errc::invalid_argument, "not an Ed25519 public key in PEM form");
}

result<public_key> public_key::load(std::filesystem::path const& file) {
    KILN_TRY(auto const pem, read_pem(file));
    auto key = from_pem(pem);
    if (!key) return std::move(key).error().within(file.native());
    return key;
}

bool public_key::verifies(base::byte_span message, signature const& s) const {
    base::library_use const openssl;
    if (!openssl) return false;
    context_ptr const context{EVP_MD_CTX_new()};
    return context != nullptr && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, native(key_)) == 1 &&
           EVP_DigestVerify(context.get(), s.data(), s.size(), as_unsigned(message), message.size()) == 1;
}

std::string public_key::pem() const {
    bio_ptr const bio{BIO_new(BIO_s_mem())};
    KILN_ASSERT(PEM_write_bio_PUBKEY(bio.get(), native(key_)) == 1);
    return text_of(bio.get());
}

result<private_key> private_key::generate() {
    base::library_use const openssl;
    if (!openssl) return the_program_ends();
    base::keep_openssl();
    if (auto key = checked(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"))) return private_key{std::move(key)};
    return fail(errc::unsupported, "OpenSSL cannot make an Ed25519 key");
}

result<private_key> private_key::from_pem(std::string_view pem) {
    base::library_use const openssl;
    if (!openssl) return the_program_ends();
    if (auto key = checked(PEM_read_bio_PrivateKey(reader_of(pem).get(), nullptr, no_pass_phrase, nullptr))) {
        return private_key{std::move(key)};
    }
    return fail(errc::invalid_argument, "not an Ed25519 private key in PEM form without a pass phrase");
}

result<private_key> private_key::load(std::filesystem::path const& file) {
    KILN_TRY(auto const pem, read_pem(file));
    auto key = from_pem(pem);
    if (!key) return std::move(key).error().within(file.native());
    return key;
}

result<void> private_key::save(std::filesystem::path const& file) const {
    auto fd = base::open_file(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (!fd && fd.error().status() == EEXIST) {
        return fail(errc::invalid_argument, "{}: exists already; a key is never overwritten", file.native());
    }
    if (!fd) return std::move(fd).error();
    KILN_CHECK(base::write_all(fd->get(), base::as_bytes(pem())));
    return fd->close();
}

signature private_key::sign(base::byte_span message) const {
    base::library_use const openssl;
    signature out{};
    std::size_t size = out.size();
    context_ptr const context{EVP_MD_CTX_new()};
    KILN_ASSERT(context != nullptr && EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, native(key_)) == 1 &&
                EVP_DigestSign(context.get(), out.data(), &size, as_unsigned(message), message.size()) == 1 &&
                size == out.size());
    return out;
}

public_key private_key::public_half() const { return public_key{key_}; }

std::string private_key::pem() const {
    bio_ptr const bio{BIO_new(BIO_s_mem())};
    KILN_ASSERT(PEM_write_bio_PrivateKey(bio.get(), native(key_), nullptr, nullptr, 0, nullptr, nullptr) == 1);
    return text_of(bio.get());
}

std::string to_hex(key_id const& id) {
    std::string out;
    for (auto const b : id) out += fmt::format("{:02x}", b);
    return out;
}

}  // namespace kiln::store
