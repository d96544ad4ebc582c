// SPDX-License-Identifier: Apache-2.0
#include "remote/packet.hpp"
#include "remote/names.hpp"
#include "support/store_entries.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace kiln::remote {

namespace {

using test::entry_of;
using test::expected_of;

struct packets : ::testing::Test {
    signer ours{store::private_key::generate().value(), 3};
    signer theirs{store::private_key::generate().value(), 3};
    trust rule{.in = belief::signatures, .space = "nodes", .keys = {ours.key.public_half()}, .least_epoch = 2};
    store::entry_ptr entry = entry_of(1, 5'000);
    base::bytes stored = store::encode_entry(*entry).value();

    [[nodiscard]] base::bytes packet_by(signer const& who, std::string_view space = "nodes") const {
        std::array const signatures{sign_entry(who, space, stored)};
        return encode_packet(signatures, stored);
    }
    [[nodiscard]] wanted asked() const {
        auto const& at = entry->about.at;
        return {.family = at.family, .request = at.request, .key = at.key, .expected = expected_of(*entry)};
    }
    [[nodiscard]] miss why(base::bytes packet) const {
        auto const o = open_packet(std::move(packet), rule, asked());
        EXPECT_FALSE(o.what);
        return o.why;
    }
};

TEST_F(packets, the_entry_is_inside_byte_for_byte) {
    auto const packet = packet_by(ours);
    auto const parts = decode_packet(packet).parts.value();
    ASSERT_EQ(parts.signatures.size(), 1u);
    EXPECT_EQ(parts.signatures[0].epoch, 3u);
    EXPECT_TRUE(std::ranges::equal(base::byte_span{packet}.subspan(parts.front), stored));
}

TEST_F(packets, what_a_trusted_key_signed_is_opened) {
    auto const o = open_packet(packet_by(ours), rule, asked());
    ASSERT_TRUE(o.what);
    EXPECT_EQ(o.what->payload, entry->payload);
}

TEST_F(packets, each_reason_not_to_believe_has_its_name) {
    EXPECT_EQ(why(encode_packet({}, stored)), miss::not_signed);
    EXPECT_EQ(why(packet_by(theirs)), miss::unknown_key);
    EXPECT_EQ(why(packet_by(ours, "another namespace")), miss::bad_signature);
    signer old{ours.key, 1};
    EXPECT_EQ(why(packet_by(old)), miss::old_epoch);
    auto raised = packet_by(old);
    raised[packet_front_bytes + 8] = std::byte{9};  // the epoch of the signature
    EXPECT_EQ(why(std::move(raised)), miss::bad_signature);
}

TEST_F(packets, one_good_signature_of_several_is_enough) {
    std::array const signatures{sign_entry(theirs, "nodes", stored), sign_entry(ours, "nodes", stored)};
    EXPECT_TRUE(open_packet(encode_packet(signatures, stored), rule, asked()).what);
}

TEST_F(packets, any_flipped_byte_is_noticed) {
    auto const good = packet_by(ours);
    for (std::size_t i = 0; i < good.size(); i += i < 400 ? 1 : 37) {
        auto bad = good;
        bad[i] ^= std::byte{0x40};
        EXPECT_FALSE(open_packet(std::move(bad), rule, asked()).what) << i;
    }
}

TEST_F(packets, any_cut_is_noticed) {
    auto const good = packet_by(ours);
    for (std::size_t n = 0; n < good.size(); n += n < 400 ? 1 : 53) {
        EXPECT_FALSE(open_packet({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n)}, rule, asked()).what)
            << n;
    }
}

TEST_F(packets, a_server_that_is_believed_still_cannot_swap_entries) {
    rule = {.in = belief::server, .space = "nodes"};
    auto const other = store::encode_entry(*entry_of(9)).value();
    EXPECT_EQ(why(encode_packet({}, other)), miss::wrong_key);
    EXPECT_TRUE(open_packet(encode_packet({}, stored), rule, asked()).what);
    auto elsewhere = asked();
    elsewhere.expected.target = "sm_100";
    EXPECT_EQ(open_packet(encode_packet({}, stored), rule, elsewhere).why, miss::wrong_target);
}

TEST_F(packets, a_newer_version_is_left_alone) {
    auto newer = packet_by(ours);
    newer[8] = std::byte{2};
    EXPECT_EQ(why(std::move(newer)), miss::newer_format);
}

TEST(names, everything_counts) {
    auto const request = base::sha256_of("r");
    std::set<digest> const all{object_name("a", request, 0),
                               object_name("b", request, 0),
                               object_name("a", request, 1),
                               lease_name("a", request),
                               family_name("a", request, "sm_90", "cubin"),
                               family_name("a", request, "sm_90c", "ubin")};
    EXPECT_EQ(all.size(), 6u);
}

}  // namespace

}  // namespace kiln::remote
