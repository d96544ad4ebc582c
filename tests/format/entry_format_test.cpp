// SPDX-License-Identifier: Apache-2.0
// The disk entry against its golden files, at every length and with every byte flipped.
#include "store/entry_format.hpp"
#include "support/golden.hpp"
#include "support/store_entries.hpp"

#include <gtest/gtest.h>

namespace kiln::test {

using namespace store;

namespace {

// Too small to be packed: the bytes depend on nothing but the format.
entry plain_entry() { return *entry_of(1, 100); }
entry packed_entry() { return *entry_of(2, 4000); }

void expect_same(entry const& a, entry const& b) {
    EXPECT_EQ(a.about.at, b.about.at);
    EXPECT_EQ(a.about.name, b.about.name);
    EXPECT_EQ(a.about.target, b.about.target);
    EXPECT_EQ(a.about.kind, b.about.kind);
    EXPECT_EQ(a.about.toolchain, b.about.toolchain);
    EXPECT_EQ(a.about.producer, b.about.producer);
    EXPECT_EQ(a.about.licence, b.about.licence);
    EXPECT_EQ(a.payload, b.payload);
}

}  // namespace

TEST(entry_format, golden_v1_plain_is_written_and_read) {
    auto const golden = golden_file("entry-v1-plain.bin", encode_entry(plain_entry()).value());
    EXPECT_EQ(encode_entry(plain_entry()).value(), golden);
    auto const read = decode_entry(golden);
    ASSERT_TRUE(read.what);
    expect_same(*read.what, plain_entry());
    EXPECT_EQ(read.header->stored_as, codec::none);
}

TEST(entry_format, golden_v1_packed_is_read) {
    // Written by one version of zstd, which others need not reproduce.
    auto const golden = golden_file("entry-v1-zstd.bin", encode_entry(packed_entry()).value());
    auto const read = decode_entry(golden);
    ASSERT_TRUE(read.what);
    expect_same(*read.what, packed_entry());
    EXPECT_EQ(read.header->stored_as, codec::zstd);
    EXPECT_LT(golden.size(), 4000u);
}

TEST(entry_format, C2_every_length_but_the_right_one_is_rejected) {
    for (auto const& e : {plain_entry(), packed_entry()}) {
        auto const good = encode_entry(e).value();
        for (std::size_t size = 0; size < good.size(); ++size) {
            base::bytes const cut{good.begin(),
                                  good.begin() + static_cast<long>(size)};  // its own block: over-reads are seen
            auto const read = decode_entry(cut);
            ASSERT_FALSE(read.what) << size;
            ASSERT_EQ(read.why, miss::truncated) << size;
        }
        for (std::size_t more = 1; more < 40; ++more) {
            auto longer = good;
            longer.resize(good.size() + more);
            ASSERT_EQ(decode_entry(longer).why, miss::trailing);
        }
    }
}

TEST(entry_format, C1_every_flipped_byte_is_rejected_or_changes_nothing) {
    for (auto const& e : {plain_entry(), packed_entry()}) {
        auto const good = encode_entry(e).value();
        for (std::size_t i = 0; i < good.size(); ++i) {
            for (auto const bits : {0x01, 0x80, 0xFF}) {
                auto bad = good;
                bad[i] ^= static_cast<std::byte>(bits);
                auto const read = decode_entry(bad);
                // A zstd frame has a few bits that mean nothing: then the content is the very same.
                if (read.what && read.header->stored_as == codec::zstd && read.what->payload == e.payload) continue;
                ASSERT_FALSE(read.what) << i;
                ASSERT_TRUE(is_rejection(read.why)) << i;
                ASSERT_NE(read.why, miss::newer_format) << i << ": damage is not a newer format";
            }
        }
    }
}

TEST(entry_format, the_header_can_be_read_alone) {
    auto const data = encode_entry(packed_entry()).value();
    auto const need = entry_front_bytes(base::byte_span{data}.first(entry_prefix_bytes));
    EXPECT_LT(need, data.size());
    auto const outcome = decode_header(base::byte_span{data}.first(need), data.size());
    ASSERT_TRUE(outcome.header);
    EXPECT_EQ(outcome.header->about.name, "unit_2");
    EXPECT_EQ(outcome.header->bytes, need);
    EXPECT_EQ(outcome.header->raw_bytes, 4000u);
    EXPECT_EQ(decode_header(base::byte_span{data}.first(need - 1), data.size()).why, miss::truncated);
    EXPECT_EQ(decode_header(base::byte_span{data}.first(need), data.size() - 1).why, miss::truncated);
    EXPECT_EQ(decode_header(base::byte_span{data}.first(need), data.size() + 1).why, miss::trailing);
}

TEST(entry_format, payloads_are_packed_only_where_it_pays) {
    auto noise = *entry_of(3, 50'000);
    std::minstd_rand random{7};
    for (auto& b : noise.payload) b = static_cast<std::byte>(random() >> 8);
    EXPECT_EQ(decode_entry(encode_entry(noise).value()).header->stored_as, codec::none);
    auto zeros = noise;
    std::fill(zeros.payload.begin(), zeros.payload.end(), std::byte{0});
    auto const small = encode_entry(zeros).value();
    EXPECT_LT(small.size(), 1000u);
    EXPECT_EQ(decode_entry(small).what->payload, zeros.payload);
}

TEST(entry_format, what_the_format_cannot_hold_is_refused_when_written) {
    auto e = plain_entry();
    e.about.name = std::string(most_label_text + 1, 'x');
    EXPECT_EQ(encode_entry(e).error().code(), errc::invalid_argument);
    e.about.name = std::string(most_label_text, 'x');
    EXPECT_TRUE(decode_entry(encode_entry(e).value()).what);
}

}  // namespace kiln::test
