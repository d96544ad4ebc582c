// SPDX-License-Identifier: Apache-2.0
// C: bytes that are not what was written. Every byte and every length is tried in tests/format.
#include "support/store_faults.hpp"

#include "store/entry_format.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <zstd.h>

namespace kiln::test {

using namespace store;

TEST_F(store_faults, C1_a_flipped_byte_is_rejected_and_heals) {
    auto const e = entry_of(1, 600);
    auto const tier = disk();
    ASSERT_TRUE(tier->put(e));
    auto const good = bytes_of(path_of(*e));
    for (std::size_t i = 0; i < good.size(); i += 7) {
        auto bad = good;
        bad[i] ^= std::byte{0x40};
        overwrite(path_of(*e), bad);
        auto const found = tier->find(e->about.at, expected_of(*e)).value();
        ASSERT_FALSE(found.hit) << "byte " << i;
        ASSERT_TRUE(is_rejection(found.why));
        ASSERT_FALSE(std::filesystem::exists(path_of(*e))) << "byte " << i;
        ASSERT_TRUE(tier->put(e));
        ASSERT_TRUE(tier->find(e->about.at, expected_of(*e)).value().hit) << "byte " << i;
    }
    EXPECT_EQ(counted().entries, 1u);
}

TEST_F(store_faults, C1_a_put_replaces_an_invalid_file_that_nobody_has_read_yet) {
    auto const e = entry_of(1);
    auto const tier = disk();
    ASSERT_TRUE(tier->put(e));
    auto bad = bytes_of(path_of(*e));
    bad.back() ^= std::byte{1};
    overwrite(path_of(*e), bad);
    ASSERT_TRUE(tier->put(e));
    EXPECT_TRUE(tier->find(e->about.at, {}).value().hit);
    EXPECT_EQ(usage_account{disk_layout{root()}}.read()->bytes, counted().bytes);
}

TEST_F(store_faults, C2_truncated_extended_and_swapped_files_are_rejected) {
    auto const a = entry_of(1), b = entry_of(2);
    auto const tier = disk();
    ASSERT_TRUE(tier->put(a));
    ASSERT_TRUE(tier->put(b));
    auto const good_a = bytes_of(path_of(*a)), good_b = bytes_of(path_of(*b));

    for (std::size_t const size :
         {std::size_t{0}, std::size_t{1}, std::size_t{15}, std::size_t{16}, std::size_t{200}, good_a.size() - 1}) {
        overwrite(path_of(*a), base::byte_span{good_a}.first(size));
        EXPECT_EQ(tier->find(a->about.at, {}).value().why, miss::truncated) << size;
    }
    auto longer = good_a;
    longer.push_back(std::byte{0});
    overwrite(path_of(*a), longer);
    EXPECT_EQ(tier->find(a->about.at, {}).value().why, miss::trailing);

    overwrite(path_of(*a), good_b);
    overwrite(path_of(*b), good_a);
    EXPECT_EQ(tier->find(a->about.at, {}).value().why, miss::wrong_key);
    EXPECT_EQ(tier->find(b->about.at, {}).value().why, miss::wrong_key);
    expect_heals(a);
    expect_heals(b);
}

TEST_F(store_faults, C3_a_valid_entry_under_another_name_is_rejected) {
    auto const e = entry_of(1);
    auto const tier = disk();
    ASSERT_TRUE(tier->put(e));
    auto const other = entry_of(9);
    std::filesystem::create_directories(path_of(*other).parent_path());
    std::filesystem::rename(path_of(*e), path_of(*other));
    EXPECT_EQ(tier->find(other->about.at, {}).value().why, miss::wrong_key);
    EXPECT_FALSE(std::filesystem::exists(path_of(*other)));
    expect_heals(other);
}

TEST_F(store_faults, C4_an_entry_for_another_target_or_toolchain_never_gets_through) {
    auto const wanted = entry_of(1);
    for (auto const& [field, why] :
         {std::pair{&label::target, miss::wrong_target}, std::pair{&label::kind, miss::wrong_kind},
          std::pair{&label::toolchain, miss::wrong_toolchain}}) {
        std::filesystem::remove_all(root());
        auto const store = make();
        auto planted = std::make_shared<entry>(*wanted);
        planted->about.*field = "something else";
        ASSERT_TRUE(disk()->put(planted));
        auto const found = store->find(wanted->about.at, expected_of(*wanted));
        EXPECT_FALSE(found);
        EXPECT_EQ(found.why, why);
        EXPECT_EQ(store->counts().rejected.at(std::string{name_of(why)}), 1u);
        store->put(wanted);
        EXPECT_TRUE(store->flush(base::clock::now() + std::chrono::seconds{5}));
        EXPECT_TRUE(disk()->find(wanted->about.at, expected_of(*wanted)).value().hit) << "healed";
    }
}

namespace {

// An entry whose header is valid but says what it likes.
base::bytes forged(entry const& e, codec stored_as, std::uint64_t raw, std::uint64_t stored, base::byte_span payload) {
    base::byte_writer fields;
    for (auto const* d : {&e.about.at.family, &e.about.at.request, &e.about.at.key})
        fields.put_raw(std::as_bytes(std::span{d->bytes}));
    for (auto const* t :
         {&e.about.name, &e.about.target, &e.about.kind, &e.about.toolchain, &e.about.producer, &e.about.licence}) {
        fields.put_text(*t);
    }
    fields.put_u8(static_cast<std::uint8_t>(stored_as));
    fields.put_u64(raw);
    fields.put_u64(stored);
    auto const hash = base::sha256_of(e.payload);
    fields.put_raw(std::as_bytes(std::span{hash.bytes}));
    base::byte_writer w;
    w.put_raw(base::as_bytes("KILNENT\n"));
    w.put_u32(entry_format_version);
    w.put_u32(static_cast<std::uint32_t>(fields.size()));
    w.put_raw(fields.view());
    auto const check = base::sha256_of(w.view());
    w.put_raw(std::as_bytes(std::span{check.bytes}));
    w.put_raw(payload);
    return std::move(w).take();
}

base::bytes frame_of(std::size_t zeros) {
    base::bytes raw(zeros), out(ZSTD_compressBound(zeros));
    out.resize(ZSTD_compress(out.data(), out.size(), raw.data(), raw.size(), 19));
    return out;
}

}  // namespace

TEST_F(store_faults, C5_absurd_sizes_are_rejected_before_anything_is_allocated) {
    auto const e = entry_of(1);
    auto const tier = disk();
    ASSERT_TRUE(tier->put(e));
    for (auto const huge : {std::uint64_t{1} << 63, ~std::uint64_t{0}, std::uint64_t{1} << 40}) {
        overwrite(path_of(*e), forged(*e, codec::none, huge, huge, e->payload));
        EXPECT_EQ(tier->find(e->about.at, {}).value().why, miss::too_large);
        overwrite(path_of(*e), forged(*e, codec::zstd, huge, 10, base::byte_span{e->payload}.first(10)));
        EXPECT_EQ(tier->find(e->about.at, {}).value().why, miss::too_large);
    }
    expect_heals(e);
}

TEST_F(store_faults, C5_a_frame_that_unpacks_to_more_than_it_says_is_stopped) {
    auto const e = entry_of(1);
    auto const bomb = frame_of(64 << 20);
    EXPECT_LT(bomb.size(), 100'000u);
    auto const says_little = forged(*e, codec::zstd, 1000, bomb.size(), bomb);
    EXPECT_EQ(decode_entry(says_little).why, miss::bad_digest);
    // The frame, too, can say little: a small frame followed by a large one.
    auto two = frame_of(1000);
    two.insert(two.end(), bomb.begin(), bomb.end());
    EXPECT_EQ(decode_entry(forged(*e, codec::zstd, 1000, two.size(), two)).why, miss::bad_digest);
    // And one that says the truth is too large for this tier.
    auto o = options();
    o.max_entry_bytes = 1 << 20;
    auto const tier = disk(o);
    ASSERT_TRUE(tier->put(e));
    overwrite(path_of(*e), forged(*e, codec::zstd, 64 << 20, bomb.size(), bomb));
    EXPECT_EQ(tier->find(e->about.at, {}).value().why, miss::too_large);
}

TEST_F(store_faults, C5_a_file_far_too_long_is_not_read) {
    auto const e = entry_of(1);
    auto o = options();
    o.max_entry_bytes = 1 << 20;
    auto const tier = disk(o);
    ASSERT_TRUE(tier->put(e));
    std::filesystem::resize_file(path_of(*e), std::uintmax_t{1} << 40);  // a hole
    EXPECT_EQ(tier->find(e->about.at, {}).value().why, miss::too_large);
    expect_heals(e);
}

TEST_F(store_faults, C7_a_bad_entry_in_a_read_only_layer_is_skipped_for_this_process) {
    auto const e = entry_of(1);
    auto const shared_root = scratch_.path() / "shared";
    ASSERT_TRUE(disk({.root = shared_root})->put(e));
    auto const path = disk_layout{shared_root}.entry(e->about.at);
    auto bad = bytes_of(path);
    bad[bad.size() / 2] ^= std::byte{1};
    overwrite(path, bad);

    store_options o;
    o.disk = options();
    o.read_only_roots = {shared_root};
    o.memory.max_bytes = 0;
    auto const store = make(o);
    EXPECT_EQ(store->find(e->about.at, {}).why, miss::bad_digest);
    EXPECT_EQ(store->find(e->about.at, {}).why, miss::absent) << "skipped from now on";
    EXPECT_EQ(store->counts().rejected.at("bad-digest"), 1u);
    store->put(e);
    EXPECT_TRUE(store->flush(base::clock::now() + std::chrono::seconds{5}));
    EXPECT_EQ(store->find(e->about.at, {}).tier, "disk") << "the layer above wins";
    EXPECT_EQ(bytes_of(path), bad) << "the layer is not written to";
}

TEST_F(store_faults, C9_what_is_not_a_regular_file_is_invalid_and_never_blocks) {
    auto const e = entry_of(1);
    auto const path = path_of(*e);
    ASSERT_TRUE(disk()->put(e));
    auto const target = scratch_.path() / "elsewhere";
    std::filesystem::copy_file(path, target);

    auto const expect_invalid = [&](std::string_view what) {
        SCOPED_TRACE(what);
        auto const tier = disk();
        EXPECT_EQ(tier->find(e->about.at, {}).value().why, miss::not_regular);
        if (std::filesystem::is_directory(std::filesystem::symlink_status(path))) return;
        EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(path))) << "removed";
        expect_heals(e);
    };
    std::filesystem::remove(path);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    expect_invalid("FIFO");

    std::filesystem::remove(path);
    std::filesystem::create_symlink(target, path);
    expect_invalid("symbolic link to a valid entry");
    EXPECT_TRUE(std::filesystem::exists(target)) << "only the link was removed";

    std::filesystem::remove(path);
    std::filesystem::create_symlink("/nonexistent/file", path);
    expect_invalid("dangling link");

    std::filesystem::remove(path);
    if (::mknod(path.c_str(), S_IFCHR | 0600, makedev(1, 5)) == 0) expect_invalid("device");

    std::filesystem::remove(path);
    base::file_descriptor const listener{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    auto const link = scratch_.path() / "s";  // socket paths are short
    std::filesystem::create_directory_symlink(path.parent_path(), link);
    std::filesystem::current_path(link);
    ::sockaddr_un name{.sun_family = AF_UNIX, .sun_path = "x"};
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<::sockaddr const*>(&name), sizeof name), 0);
    std::filesystem::rename("x", path);
    std::filesystem::current_path("/");
    expect_invalid("socket");

    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    expect_invalid("directory");
    std::ofstream{path / "inside"} << "x";
    EXPECT_FALSE(disk()->put(e)) << "a directory cannot be replaced by a file";
    auto const store = make();
    store->put(e);
    EXPECT_EQ(store->find(e->about.at, {}).tier, "memory");
    EXPECT_TRUE(std::filesystem::exists(path / "inside")) << "and is not emptied";
}

}  // namespace kiln::test
