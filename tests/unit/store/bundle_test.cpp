// SPDX-License-Identifier: Apache-2.0
#include "store/bundle.hpp"
#include "support/faulty_calls.hpp"
#include "support/store_entries.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>

namespace kiln::test {

using namespace store;

namespace {

bundle_writer writer_of(unsigned first, unsigned count, std::size_t size = 300) {
    bundle_writer out;
    out.set("title", "test");
    for (unsigned i = first; i < first + count; ++i) out.add(*entry_of(i, size)).value();
    return out;
}

}  // namespace

TEST(bundle, same_entries_give_the_same_bytes_in_any_order) {
    bundle_writer forwards, backwards;
    for (unsigned i = 0; i < 100; ++i) forwards.add(*entry_of(i)).value();
    for (unsigned i = 100; i-- > 0;) backwards.add(*entry_of(i)).value();
    backwards.add(*entry_of(7)).value();  // twice is once
    EXPECT_EQ(forwards.encode().value(), backwards.encode().value());
    auto const key = private_key::generate().value();
    EXPECT_EQ(forwards.encode(&key).value(), backwards.encode(&key).value());
}

TEST(bundle, packed_as_a_whole_it_serves_as_ever_and_damage_is_noticed) {
    auto const scratch = base::temporary_directory::make("kiln-packed").value();
    auto const writer = writer_of(0, 60, 2000);
    auto const key = private_key::generate().value();
    writer.write(scratch.path() / "plain.kiln", &key).value();
    writer.write(scratch.path() / "packed.kiln", &key, bundle_form::packed).value();
    auto const plain = base::read_file(scratch.path() / "plain.kiln").value().value();
    auto const packed = base::read_file(scratch.path() / "packed.kiln").value().value();
    EXPECT_LT(packed.size(), plain.size());

    signature_policy const trusted{.what = signature_policy::need::trusted, .keys = {key.public_half()}};
    auto const tier = bundle_tier::open(scratch.path() / "packed.kiln", trusted).value();
    EXPECT_EQ(tier->info().entries, 60u);
    EXPECT_EQ(tier->info().file_bytes, packed.size());
    EXPECT_TRUE(tier->verify().value().empty());
    auto const embedded = bundle_tier::from_memory(packed).value();
    for (unsigned i = 0; i < 60; ++i) {
        auto const found = embedded->find(address_of(i), {}).value();
        ASSERT_TRUE(found.hit) << i;
        EXPECT_EQ(found.hit->payload, entry_of(i, 2000)->payload) << i;
    }
    // Cut or flipped anywhere: not opened, or found out where it is read, never another answer.
    for (std::size_t n = 0; n < packed.size(); n += 1 + packed.size() / 97) {
        EXPECT_FALSE(bundle_tier::from_memory(base::byte_span{packed}.first(n))) << n;
        auto flipped = packed;
        flipped[n] ^= std::byte{0x10};
        auto const opened = bundle_tier::from_memory(flipped);
        if (!opened) continue;
        for (unsigned i = 0; i < 60; ++i) {
            auto const found = (*opened)->find(address_of(i), {});
            if (!found || !found->hit) continue;
            EXPECT_EQ(found->hit->payload, entry_of(i, 2000)->payload) << n;
        }
    }
}

TEST(bundle, the_same_address_with_other_bytes_is_refused) {
    auto writer = writer_of(0, 3);
    auto other = *entry_of(1, 300);
    other.payload[0] ^= std::byte{1};
    EXPECT_EQ(writer.add(other).error().code(), errc::invalid_argument);
    EXPECT_EQ(writer.size(), 3u);
}

TEST(bundle, every_size_of_index_finds_everything_and_nothing_else) {
    for (unsigned const count : {0u, 1u, 24u, 25u, 26u, 799u, 800u, 801u, 1601u}) {
        SCOPED_TRACE(count);
        auto const data = writer_of(0, count, 16).encode().value();
        auto const tier = bundle_tier::from_memory(data).value();
        EXPECT_EQ(tier->info().entries, count);
        for (unsigned i = 0; i < count; ++i) ASSERT_TRUE(tier->find(address_of(i), {}).value().hit) << i;
        for (unsigned i = count; i < count + 50; ++i) ASSERT_FALSE(tier->find(address_of(i), {}).value().hit) << i;
        std::size_t seen = 0;
        ASSERT_TRUE(tier->for_each([&](summary const&) { ++seen; }));
        EXPECT_EQ(seen, count);
        EXPECT_TRUE(tier->verify().value().empty());
        digest low{}, high{};
        high.bytes.fill(0xFF);
        EXPECT_TRUE(tier->list(low, {}).value().empty());
        EXPECT_TRUE(tier->list(high, {}).value().empty());
    }
}

TEST(bundle, opening_reads_the_header_and_the_footer_only) {
    auto const scratch = base::temporary_directory::make().value();
    int calls_for_ten = 0;
    for (unsigned const count : {10u, 3000u}) {
        auto const file = scratch.path() / (std::to_string(count) + ".kiln");
        writer_of(0, count, 16).write(file).value();
        faulty_calls const watch;
        auto const tier = bundle_tier::open(file).value();
        if (count == 10) calls_for_ten = watch.calls();
        EXPECT_EQ(watch.calls(), calls_for_ten);
        EXPECT_LE(watch.calls(), 4);
    }
}

TEST(bundle, the_manifest_tells_what_is_inside) {
    auto writer = writer_of(0, 5);
    auto e = *entry_of(10);
    e.about.target = "sm_100";
    e.about.licence = "MIT";
    writer.add(e).value();
    auto const data = writer.encode().value();
    auto const m = bundle_tier::from_memory(data).value()->read_manifest().value();
    EXPECT_EQ(m.entries, 6u);
    EXPECT_EQ(m.facts.at("title"), "test");
    EXPECT_EQ(m.targets, (std::vector<std::string>{"sm_100", "sm_90"}));
    EXPECT_EQ(m.licences, (std::vector<std::string>{"Apache-2.0", "MIT"}));
    EXPECT_EQ(m.names.size(), 6u);
    EXPECT_EQ(m.raw_bytes, 5 * 300u + 2000u);
}

TEST(bundle, signatures) {
    auto const key = private_key::generate().value(), other = private_key::generate().value();
    auto const writer = writer_of(0, 30);
    auto const with = writer.encode(&key).value(), without = writer.encode().value();
    signature_policy const open_policy,
        trusts_key{.what = signature_policy::need::trusted, .keys = {key.public_half()}},
        trusts_other{.what = signature_policy::need::trusted, .keys = {other.public_half()}};

    EXPECT_EQ(bundle_tier::from_memory(with, "x", open_policy).value()->info().signed_by, signature_state::unchecked);
    EXPECT_EQ(bundle_tier::from_memory(without, "x", open_policy).value()->info().signed_by, signature_state::none);
    auto const good = bundle_tier::from_memory(with, "x", trusts_key).value();
    EXPECT_EQ(good->info().signed_by, signature_state::good);
    EXPECT_EQ(good->info().key, to_hex(key.public_half().id()));
    EXPECT_EQ(bundle_tier::from_memory(without, "x", trusts_key).error().code(), errc::forbidden);
    EXPECT_EQ(bundle_tier::from_memory(with, "x", trusts_other).error().code(), errc::forbidden);
}

// B1: every byte is flipped in tests/format; here the reasons.
TEST(store_faults_bundle, B1_a_wrong_signature_ends_the_whole_bundle) {
    auto const key = private_key::generate().value();
    auto const data = writer_of(0, 3).encode(&key).value();
    auto footer = decode_footer(base::byte_span{data}.last(bundle_footer_bytes), data.size()).value();
    signature_policy const policy{.what = signature_policy::need::trusted, .keys = {key.public_half()}};
    // An attacker changes the index and makes every checksum right again; only the signature cannot be made.
    footer.index_root.bytes[0] ^= 1;
    auto forged = data;
    auto const tail = encode_footer(footer);
    std::copy(tail.begin(), tail.end(), forged.end() - static_cast<long>(tail.size()));
    auto const refused = bundle_tier::from_memory(forged, "x.kiln", policy);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), errc::forbidden);
    EXPECT_NE(refused.error().message().find("x.kiln"), std::string::npos);
    EXPECT_NE(refused.error().message().find("signature"), std::string::npos);
    footer.index_root.bytes[0] ^= 1;
    footer.sig[5] ^= 1;
    auto const tail2 = encode_footer(footer);
    std::copy(tail2.begin(), tail2.end(), forged.end() - static_cast<long>(tail2.size()));
    EXPECT_EQ(bundle_tier::from_memory(forged, "x.kiln", policy).error().code(), errc::forbidden);
}

TEST(store_faults_bundle, B1_a_blob_replaced_by_another_valid_entry_is_not_covered_by_the_signature) {
    auto const key = private_key::generate().value();
    auto const data = writer_of(0, 1, 300).encode(&key).value();
    auto evil = *entry_of(0, 300);
    evil.payload[5] ^= std::byte{1};
    bundle_writer other;
    other.set("title", "test");
    other.add(evil).value();
    auto const evil_data = other.encode().value();
    ASSERT_EQ(evil_data.size(), data.size());
    auto forged = data;
    auto const footer = decode_footer(base::byte_span{data}.last(bundle_footer_bytes), data.size()).value();
    std::copy(evil_data.begin(), evil_data.begin() + static_cast<long>(footer.index_offset), forged.begin());
    auto const tier =
        bundle_tier::from_memory(forged, "x", {.what = signature_policy::need::trusted, .keys = {key.public_half()}})
            .value();
    EXPECT_EQ(tier->find(address_of(0), {}).value().why, miss::bad_header);
}

TEST(store_faults_bundle, B1_a_damaged_index_ends_the_bundle_and_a_damaged_blob_only_itself) {
    auto const good = writer_of(0, 60, 300).encode().value();
    auto const footer = decode_footer(base::byte_span{good}.last(bundle_footer_bytes), good.size()).value();
    auto data = good;
    data[static_cast<std::size_t>(footer.index_offset) + 100] ^= std::byte{1};  // first leaf
    auto tier = bundle_tier::from_memory(data).value();
    int faults = 0, disabled = 0, hits = 0;
    for (unsigned i = 0; i < 60; ++i) {
        auto const found = tier->find(address_of(i), {});
        if (!found) ++faults;
        else if (found->hit) ++hits;
        else if (found->why == miss::disabled) ++disabled;
    }
    EXPECT_EQ(faults, 1) << "said once";
    EXPECT_EQ(faults + disabled + hits, 60);
    EXPECT_FALSE(tier->verify());

    data = good;
    data[bundle_header_bytes + 400] ^= std::byte{1};  // in the first blob
    tier = bundle_tier::from_memory(data).value();
    hits = 0;
    int rejected = 0;
    for (unsigned i = 0; i < 60; ++i) {
        auto const found = tier->find(address_of(i), {}).value();
        hits += found.hit ? 1 : 0;
        rejected += is_rejection(found.why) ? 1 : 0;
    }
    EXPECT_EQ(hits, 59);
    EXPECT_EQ(rejected, 1);
    EXPECT_EQ(tier->verify().value().size(), 1u);
}

TEST(store_faults_bundle, B1_a_newer_format_is_told_apart_from_damage) {
    auto data = writer_of(0, 1).encode().value();
    base::byte_writer head;
    head.put_raw(base::as_bytes("KILNBNDL"));
    head.put_u32(2);
    head.put_u32(4096);
    auto const check = base::sha256_of(head.view());
    head.put_raw(std::as_bytes(std::span{check.bytes}));
    std::copy(head.view().begin(), head.view().end(), data.begin());
    auto const newer = bundle_tier::from_memory(data);
    ASSERT_FALSE(newer);
    EXPECT_EQ(newer.error().code(), errc::unsupported);
    data[8] = std::byte{3};
    EXPECT_EQ(bundle_tier::from_memory(data).error().code(), errc::corrupt);
}

TEST(store_faults_bundle, B2_a_bundle_for_other_targets_loads_and_says_that_nothing_is_usable) {
    auto const data = writer_of(0, 8).encode().value();
    auto const tier = bundle_tier::from_memory(data).value();
    auto const none = tier->count_usable([](label const& l) { return l.target == "sm_100"; }).value();
    EXPECT_EQ(none.usable, 0u);
    EXPECT_EQ(none.total, 8u);
    EXPECT_EQ(tier->count_usable([](label const& l) { return l.target == "sm_90"; }).value().usable, 8u);
    EXPECT_EQ(tier->find(address_of(1), {.target = "sm_100", .kind = {}, .toolchain = {}}).value().why,
              miss::wrong_target);
    EXPECT_TRUE(tier->find(address_of(1), {.target = "sm_90", .kind = {}, .toolchain = {}}).value().hit)
        << "not held against it";
}

TEST(store_faults_bundle, B3_a_bundle_replaced_while_open_stays_as_it_was) {
    auto const scratch = base::temporary_directory::make().value();
    auto const file = scratch.path() / "x.kiln";
    writer_of(0, 20).write(file).value();
    auto const old = bundle_tier::open(file).value();
    writer_of(100, 5).write(file).value();
    for (unsigned i = 0; i < 20; ++i) EXPECT_TRUE(old->find(address_of(i), {}).value().hit);
    EXPECT_FALSE(old->find(address_of(100), {}).value().hit);
    EXPECT_TRUE(bundle_tier::open(file).value()->find(address_of(100), {}).value().hit);
}

TEST(store_faults_bundle, B3_a_bundle_cut_while_open_is_a_miss_and_not_a_crash) {
    auto const scratch = base::temporary_directory::make().value();
    auto const file = scratch.path() / "x.kiln";
    writer_of(0, 20).write(file).value();
    auto const tier = bundle_tier::open(file).value();
    std::filesystem::resize_file(file, 100);
    for (unsigned i = 0; i < 20; ++i) EXPECT_FALSE(tier->find(address_of(i), {}).value_or(lookup{}).hit);
}

TEST(store_faults_bundle, C5_C7_a_lying_index_is_bounded) {
    // Built by hand: a record that points beyond the blobs, one that claims 2^63 bytes.
    auto const good = writer_of(0, 1).encode().value();
    auto footer = decode_footer(base::byte_span{good}.last(bundle_footer_bytes), good.size()).value();
    auto const page = base::byte_span{good}.subspan(static_cast<std::size_t>(footer.index_offset), index_page_bytes);
    for (auto const& [offset, bytes] :
         {std::pair{std::uint64_t{64}, std::uint64_t{1} << 63}, std::pair{~std::uint64_t{0}, std::uint64_t{100}},
          std::pair{footer.index_offset, std::uint64_t{100}}, std::pair{std::uint64_t{0}, std::uint64_t{100}}}) {
        auto r = read_record(page, 0);
        r.offset = offset;
        r.bytes = bytes;
        auto const index = encode_index({r});
        auto lying = good;
        std::copy(index.pages.begin(), index.pages.end(), lying.begin() + static_cast<long>(footer.index_offset));
        footer.index_root = index.root;
        auto const tail = encode_footer(footer);
        std::copy(tail.begin(), tail.end(), lying.end() - static_cast<long>(tail.size()));
        auto const tier = bundle_tier::from_memory(lying).value();
        EXPECT_TRUE(is_rejection(tier->find(address_of(0), {}).value().why));
        EXPECT_EQ(tier->find(address_of(0), {}).value().why, miss::absent) << "C7: skipped from now on";
        EXPECT_TRUE(tier->list(address_of(0).family, {}).value().empty());
    }
}

TEST(store_faults_bundle, C5_sizes_are_bounded_before_memory_is_taken) {
    // A small blob that says it unpacks to 1 GiB, with every digest right.
    auto const good = entry_of(0, 4000);
    auto blob = encode_entry(*good).value();
    auto const header = *decode_header(blob, blob.size()).header;
    ASSERT_EQ(header.stored_as, codec::zstd);
    auto const fields_end = header.bytes - 32;
    base::byte_writer raw;
    raw.put_u64(std::uint64_t{1} << 30);
    std::copy(raw.view().begin(), raw.view().end(), blob.begin() + static_cast<long>(fields_end - 32 - 16));
    auto const check = base::sha256_of(base::byte_span{blob}.first(fields_end));
    std::memcpy(blob.data() + fields_end, check.bytes.data(), check.bytes.size());
    EXPECT_EQ(decode_entry(blob).why, miss::too_large);
    EXPECT_LE(most_payload_bytes, std::uint64_t{256} << 20);
}

TEST(store_faults_bundle, rejecting_reads_the_header_alone) {
    auto const scratch = base::temporary_directory::make().value();
    auto const file = scratch.path() / "x.kiln";
    auto const large = entry_of(0, 1 << 20);
    bundle_writer w;
    w.add(*large).value();
    w.write(file).value();
    auto const tier = bundle_tier::open(file).value();
    ASSERT_TRUE(tier->find(large->about.at, {}).value().hit);
    std::size_t most = 0;
    base::system_calls calls = base::real_system_calls();
    static std::size_t* largest = nullptr;
    largest = &most;
    calls.pread = [](int fd, void* data, std::size_t size, long offset) {
        *largest = std::max(*largest, size);
        return base::real_system_calls().pread(fd, data, size, offset);
    };
    base::install_system_calls(&calls);
    tier->reject(large->about.at);
    base::install_system_calls(nullptr);
    EXPECT_LT(most, std::size_t{100'000});
    EXPECT_EQ(tier->find(large->about.at, {}).value().why, miss::refused);
}

TEST(store_faults_bundle, W2_a_bundle_that_cannot_be_written_leaves_the_old_one) {
    auto const scratch = base::temporary_directory::make().value();
    auto const file = scratch.path() / "x.kiln";
    writer_of(0, 3).write(file).value();
    for (auto const& r : {rule{.which = call::write, .error = ENOSPC}, rule{.which = call::fsync, .error = EIO},
                          rule{.which = call::rename, .error = EACCES}}) {
        faulty_calls const faults{{{.which = call::write, .how = answer::short_count, .times = 1}, r}};
        EXPECT_FALSE(writer_of(0, 50).write(file));
    }
    EXPECT_EQ(bundle_tier::open(file).value()->info().entries, 3u);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator{scratch.path()}, {}), 1) << "no temporary is left";
}

TEST(signing, keys_travel_as_pem) {
    auto const scratch = base::temporary_directory::make().value();
    auto const file = scratch.path() / "key.pem";
    auto const key = private_key::generate().value();
    key.save(file).value();
    EXPECT_EQ(std::filesystem::status(file).permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    EXPECT_EQ(key.save(file).error().code(), errc::invalid_argument) << "never overwritten";
    auto const again = private_key::load(file).value();
    auto const message = base::as_bytes("message");
    auto const signed_by = again.sign(message);
    EXPECT_TRUE(key.public_half().verifies(message, signed_by));
    EXPECT_FALSE(key.public_half().verifies(base::as_bytes("massage"), signed_by));
    auto const half = public_key::from_pem(key.public_half().pem()).value();
    EXPECT_TRUE(half.verifies(message, signed_by));
    EXPECT_EQ(half.id(), key.public_half().id());
    EXPECT_EQ(public_key::load(file).value().id(), half.id()) << "from the private key's file";
    EXPECT_FALSE(private_key::from_pem(half.pem()));
    EXPECT_FALSE(public_key::from_pem("nonsense"));
    EXPECT_EQ(private_key::load(scratch.path() / "none").error().code(), errc::not_found);
}

}  // namespace kiln::test
