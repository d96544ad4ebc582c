// SPDX-License-Identifier: Apache-2.0
// V9 to V12 and P10: entries that differ in what they are for, and versions that share a directory.
#include "support/store_faults.hpp"

#include "store/entry_format.hpp"

namespace kiln::test {

using namespace store;

namespace {

// As the engine makes them: the target is part of the request, the request part of the key.
entry_ptr entry_for(std::string const& target, std::string const& options, std::string_view content) {
    auto out = std::make_shared<entry>();
    auto const family = base::key_builder{"family"}.add("source", "x").add("options", options).finish();
    auto const request = base::key_builder{"request"}.add("family", family).add("target", target).finish();
    auto const key = base::key_builder{"key"}.add("request", request).finish();
    out->about = {.at = {.family = family, .request = request, .key = key},
                  .name = "x",
                  .target = target,
                  .kind = "cubin",
                  .toolchain = "nvrtc 13.0",
                  .producer = "kiln test",
                  .licence = {}};
    out->payload = {base::as_bytes(content).begin(), base::as_bytes(content).end()};
    return out;
}

// As a version of Kiln to come would write it: the envelope is the same, the fields are not ours to know.
base::bytes newer_entry() {
    base::byte_writer w;
    w.put_raw(base::as_bytes("KILNENT\n"));
    w.put_u32(entry_format_version + 1);
    w.put_u32(5);
    w.put_raw(base::as_bytes("hello"));
    auto const check = base::sha256_of(w.view());
    w.put_raw(std::as_bytes(std::span{check.bytes}));
    w.put_raw(base::as_bytes("whatever follows"));
    return std::move(w).take();
}

}  // namespace

TEST_F(store_faults, V9_targets_that_share_a_directory_have_entries_of_their_own) {
    auto const store = make();
    std::vector<entry_ptr> all;
    for (auto const* target : {"sm_70", "sm_75", "sm_90", "sm_90a"}) all.push_back(entry_for(target, "", target));
    for (auto const& e : all) store->put(e);
    EXPECT_TRUE(store->flush(base::clock::now() + std::chrono::seconds{5}));
    auto const fresh = make();
    for (auto const& e : all) {
        auto const found = fresh->find(e->about.at, expected_of(*e));
        ASSERT_TRUE(found);
        EXPECT_EQ(found.hit->payload, e->payload);
    }
    EXPECT_EQ(fresh->list(all[0]->about.at.family).size(), 4u) << "one family, four requests";
}

TEST_F(store_faults, V10_nothing_of_the_device_or_host_is_in_an_entry) {
    // The same content gives the same bytes wherever and whenever it is written: nothing else is in there.
    auto const e = entry_of(1);
    auto const first = encode_entry(*e).value();
    ::setenv("HOSTNAME", "elsewhere", 1);
    EXPECT_EQ(encode_entry(*e).value(), first);
    ASSERT_TRUE(disk()->put(e));
    EXPECT_EQ(bytes_of(path_of(*e)), first);
}

TEST_F(store_faults, V11_options_make_another_entry) {
    auto const debug = entry_for("sm_90", "-G", "debug"), release = entry_for("sm_90", "", "release");
    auto const store = make();
    store->put(debug);
    EXPECT_FALSE(store->find(release->about.at, expected_of(*release)));
    EXPECT_TRUE(store->find(debug->about.at, expected_of(*debug)));
}

TEST_F(store_faults, V12_the_first_of_two_different_results_stays_and_the_second_is_counted) {
    auto const first = entry_of(1);
    auto second = std::make_shared<entry>(*first);
    second->payload[10] ^= std::byte{1};
    for (bool const named : {false, true}) {
        std::filesystem::remove_all(root());
        std::vector<rule> rules;
        if (named) rules.push_back(no_unnamed_files());
        faulty_calls const faults{rules};
        auto const a = disk(), b = disk();
        ASSERT_TRUE(a->put(first));
        ASSERT_TRUE(b->put(second));
        EXPECT_EQ(disk()->find(first->about.at, {}).value().hit->payload, first->payload);
        EXPECT_EQ(b->take_counts().divergent, 1u);
        EXPECT_EQ(last_reason(event_kind::note), "divergent");
        EXPECT_EQ(usage_account{disk_layout{root()}}.read()->bytes, counted().bytes);
    }
}

TEST_F(store_faults, V12_recache_replaces) {
    auto const first = entry_of(1);
    auto second = std::make_shared<entry>(*first);
    second->payload[10] ^= std::byte{1};
    ASSERT_TRUE(disk()->put(first));
    store_options o;
    o.disk = options();
    o.mode = reuse::recache;
    auto const store = make(o);
    EXPECT_EQ(store->find(first->about.at, {}).why, miss::recache);
    EXPECT_TRUE(store->list(first->about.at.family).empty());
    store->put(second);
    EXPECT_TRUE(store->find(first->about.at, {})) << "what this process made is used";
    EXPECT_TRUE(store->flush(base::clock::now() + std::chrono::seconds{5}));
    EXPECT_EQ(disk()->find(first->about.at, {}).value().hit->payload, second->payload);
    EXPECT_EQ(usage_account{disk_layout{root()}}.read()->bytes, counted().bytes);
}

TEST_F(store_faults, P10_what_a_newer_version_wrote_is_left_alone) {
    auto const e = entry_of(1), other = entry_of(2);
    auto o = options();
    o.max_bytes = 40'000;
    auto const tier = disk(o);
    ASSERT_TRUE(tier->put(e));
    auto const newer = newer_entry();
    overwrite(path_of(*e), newer);
    std::filesystem::create_directories(root() / "v2" / "00");
    std::ofstream{root() / "v2" / "00" / "x.kiln"} << "another layout";

    EXPECT_EQ(tier->find(e->about.at, {}).value().why, miss::newer_format);
    ASSERT_TRUE(tier->put(e)) << "not kept, and no error";
    ASSERT_TRUE(tier->put(other));
    EXPECT_TRUE(tier->find(other->about.at, {}).value().hit);
    for (unsigned i = 10; i < 60; ++i) ASSERT_TRUE(tier->put(entry_of(i)));
    EXPECT_GT(tier->take_counts().evicted, 0u);
    EXPECT_EQ(bytes_of(path_of(*e)), newer);
    EXPECT_GT(maintenance{root()}.clear().value().removed, 0u);
    EXPECT_EQ(bytes_of(path_of(*e)), newer);
    EXPECT_TRUE(std::filesystem::exists(root() / "v2" / "00" / "x.kiln"));
    EXPECT_EQ(maintenance{root()}.verify(maintenance::bad_entries::remove).value().newer, 1u);
}

TEST_F(store_faults, P10_a_damaged_version_number_is_not_taken_for_a_newer_format) {
    auto const e = entry_of(1);
    auto const tier = disk();
    ASSERT_TRUE(tier->put(e));
    auto bad = bytes_of(path_of(*e));
    bad[8] = std::byte{9};
    overwrite(path_of(*e), bad);
    EXPECT_EQ(tier->find(e->about.at, {}).value().why, miss::bad_header);
    expect_heals(e);
}

TEST_F(store_faults, P10_unknown_files_are_ignored) {
    auto const e = entry_of(1);
    auto const tier = disk();
    ASSERT_TRUE(tier->put(e));
    auto const shard = path_of(*e).parent_path();
    for (auto const* name : {"readme.txt", ".nfs000000000000abcd00000001", "core"}) std::ofstream{shard / name} << "x";
    std::ofstream{shard / (path_of(*e).filename().native() + ".old")} << "x";
    EXPECT_EQ(tier->list(e->about.at.family, {}).value().size(), 1u);
    EXPECT_EQ(maintenance{root()}.clear().value().removed, 1u);
    EXPECT_TRUE(std::filesystem::exists(shard / "readme.txt"));
    EXPECT_TRUE(std::filesystem::exists(shard / ".nfs000000000000abcd00000001"));
}

}  // namespace kiln::test
