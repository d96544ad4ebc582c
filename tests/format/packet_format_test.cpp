// SPDX-License-Identifier: Apache-2.0
// The packet and the names of objects against what earlier versions wrote: a server keeps both for years.
#include "remote/names.hpp"
#include "remote/packet.hpp"
#include "support/golden.hpp"
#include "support/store_entries.hpp"

#include <gtest/gtest.h>

namespace kiln::test {

using namespace remote;

namespace {

// Of these tests only: it signs nothing else.
constexpr std::string_view packet_key =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEILCL8njwkEofpxwBdOGElNYk6kYHy4Zwg2K3K33kJfW+\n"
    "-----END PRIVATE KEY-----\n";

signer test_signer() { return {store::private_key::from_pem(packet_key).value(), 7}; }

base::bytes test_packet() {
    auto const stored = store::encode_entry(*entry_of(1, 100)).value();
    std::array const signatures{sign_entry(test_signer(), "golden", stored)};
    return encode_packet(signatures, stored);
}

}  // namespace

TEST(packet_format, golden_v1_is_written_and_read) {
    auto const golden = golden_file("packet-v1.bin", test_packet());
    EXPECT_EQ(test_packet(), golden);
    trust const rule{
        .in = belief::signatures, .space = "golden", .keys = {test_signer().key.public_half()}, .least_epoch = 7};
    auto const at = address_of(1);
    auto const opened =
        open_packet(golden, rule, {.family = at.family, .request = at.request, .key = at.key, .expected = {}});
    ASSERT_TRUE(opened.what);
    EXPECT_EQ(opened.what->payload, entry_of(1, 100)->payload);
}

TEST(packet_format, names_stay_what_they_are) {
    auto const request = base::sha256_of("request");
    EXPECT_EQ(object_name("default", request, 0).hex(),
              "38f027af1594364ddc6a8898e64b4dc2665799bdf4b0b0a167dbda05db8eb4ab");
    EXPECT_EQ(object_name("nodes", request, 7).hex(),
              "370dc98f0e543f105de0ceddee932d81c223e623f2cc3f549d7c9b7d3324e4f2");
    EXPECT_EQ(lease_name("default", request).hex(), "506f6382c33b1270d10542fdda347ee441219cef987aa0738c871b193d98499b");
    EXPECT_EQ(family_name("default", request, "sm_90", "cubin").hex(),
              "c8e7b7c5d5e6c45500e8f6cb1fae47c0772a3cbc4f6f26e3e965e15893a5efbd");
}

}  // namespace kiln::test
