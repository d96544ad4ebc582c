// SPDX-License-Identifier: Apache-2.0
// The bundle against its golden files, cut at every length and with every byte flipped.
#include "store/bundle.hpp"
#include "support/golden.hpp"
#include "support/store_entries.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace kiln::test {

using namespace store;

namespace {

constexpr unsigned count = 6;

// Made for these files and worth nothing.
constexpr std::string_view test_key =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\n"
    "-----END PRIVATE KEY-----\n";

bundle_writer small_bundle() {
    bundle_writer out;
    out.set("title", "golden");
    for (unsigned i = 0; i < count; ++i) out.add(*entry_of(i, 100)).value();
    return out;
}

void expect_all(base::byte_span data, signature_policy const& policy) {
    auto const tier = bundle_tier::from_memory(data, "golden", policy).value();
    for (unsigned i = 0; i < count; ++i) {
        auto const found = tier->find(address_of(i), {}).value();
        ASSERT_TRUE(found.hit);
        EXPECT_EQ(found.hit->payload, entry_of(i, 100)->payload);
    }
    EXPECT_EQ(tier->read_manifest().value().facts.at("title"), "golden");
    EXPECT_TRUE(tier->verify().value().empty());
}

// Either right or refused, wherever it is noticed.
bool is_harmless(base::byte_span data, bool* noticed) {
    auto const tier = bundle_tier::from_memory(data);
    *noticed = !tier;
    if (!tier) return true;
    for (unsigned i = 0; i < count; ++i) {
        auto const found = (*tier)->find(address_of(i), {});
        if (found && found->hit && found->hit->payload != entry_of(i, 100)->payload) return false;
    }
    auto const checked = (*bundle_tier::from_memory(data))->verify();
    *noticed = !checked || !checked->empty();
    return true;
}

}  // namespace

TEST(bundle_format, golden_v1_is_written_and_read) {
    auto const golden = golden_file("bundle-v1.kiln", small_bundle().encode().value());
    EXPECT_EQ(small_bundle().encode().value(), golden);
    expect_all(golden, {});
}

TEST(bundle_format, golden_v1_signed_is_written_and_read) {
    auto const key = private_key::from_pem(test_key).value();
    auto const golden = golden_file("bundle-v1-signed.kiln", small_bundle().encode(&key).value());
    EXPECT_EQ(small_bundle().encode(&key).value(), golden);
    expect_all(golden, {.what = signature_policy::need::trusted, .keys = {key.public_half()}});
}

TEST(bundle_format, B1_every_length_but_the_right_one_is_refused) {
    auto const good = small_bundle().encode().value();
    for (std::size_t size = 0; size < good.size(); ++size) {
        base::bytes const cut{good.begin(), good.begin() + static_cast<long>(size)};
        auto const tier = bundle_tier::from_memory(cut);
        ASSERT_FALSE(tier) << size;
        ASSERT_EQ(tier.error().code(), errc::corrupt) << size;
    }
    auto longer = good;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(bundle_tier::from_memory(longer));
}

TEST(bundle_format, B1_every_flipped_byte_is_noticed_and_does_no_harm) {
    auto const good = small_bundle().encode().value();
    bool noticed = true;
    ASSERT_TRUE(is_harmless(good, &noticed));
    ASSERT_FALSE(noticed);
    for (std::size_t i = 0; i < good.size(); ++i) {
        auto bad = good;
        bad[i] ^= std::byte{0x10};
        ASSERT_TRUE(is_harmless(bad, &noticed)) << i;
        ASSERT_TRUE(noticed) << "byte " << i << " is not covered by any check";
    }
}

TEST(bundle_format, B1_with_a_trusted_key_no_flipped_byte_of_index_or_footer_opens) {
    auto const key = private_key::from_pem(test_key).value();
    auto const good = small_bundle().encode(&key).value();
    signature_policy const policy{.what = signature_policy::need::trusted, .keys = {key.public_half()}};
    for (std::size_t i = good.size() - bundle_footer_bytes; i < good.size(); ++i) {
        auto bad = good;
        bad[i] ^= std::byte{0x10};
        ASSERT_FALSE(bundle_tier::from_memory(bad, "x", policy)) << i;
    }
}

TEST(bundle_format, bytes_of_the_footer_that_mean_nothing_are_zero) {
    auto const key = private_key::generate().value();
    for (auto const* signer : {&key, static_cast<private_key const*>(nullptr)}) {
        bundle_writer w;
        w.add(*entry_of(1)).value();
        auto const good = w.encode(signer).value();
        auto const tail = base::byte_span{good}.last(bundle_footer_bytes);
        ASSERT_TRUE(decode_footer(tail, good.size()));
        for (std::size_t at = signer != nullptr ? 193 : 121; at < 288; ++at) {
            base::bytes other{tail.begin(), tail.end()};
            other[at] = std::byte{1};
            auto const check = base::sha256_of(base::byte_span{other}.first(288));
            std::memcpy(other.data() + 288, check.bytes.data(), check.bytes.size());
            EXPECT_FALSE(decode_footer(other, good.size())) << at;
        }
    }
}

}  // namespace kiln::test
