// SPDX-License-Identifier: Apache-2.0
// What 'kiln remote verify' calls sound is what a reader would take, and nothing else.
#include "remote/upkeep.hpp"

#include "remote/curl.hpp"
#include "remote/rules.hpp"
#include "support/remote_tiers.hpp"
#include "support/servers.hpp"
#include "support/store_entries.hpp"
#include "support/told_redis.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace kiln::remote {

namespace {

using test::entry_of;
using test::tier_at;

remote_options options_of(std::string const& text) { return parse_remotes(text, {}).usable.at(0); }

std::vector<std::optional<miss>> verdicts(upkeep of) {
    std::vector<std::optional<miss>> out;
    for (auto const& o : of.list().value()) out.push_back(of.check(o).value().why);
    return out;
}

std::size_t count_of(std::vector<std::optional<miss>> const& all, std::optional<miss> what) {
    return static_cast<std::size_t>(std::ranges::count(all, what));
}

TEST(remote_upkeep, what_lies_under_the_name_of_another_is_not_sound) {
    if (auto const what = test::redis_process::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
    test::redis_process server;
    auto const mine = server.url() + " trust=server";
    ASSERT_TRUE(tier_at(mine)->put(entry_of(1)).value().kept);
    auto const from = object_name("default", entry_of(1)->about.at.request, 0).hex();
    auto const to = object_name("default", entry_of(2)->about.at.request, 0).hex();
    auto const before = verdicts(upkeep::open(options_of(mine)).value());
    EXPECT_EQ(count_of(before, std::nullopt), before.size());
    ASSERT_EQ(server.say("COPY kiln:1:" + from + " kiln:1:" + to), ":1\r\n");
    EXPECT_EQ(count_of(verdicts(upkeep::open(options_of(mine)).value()), miss::wrong_key), 1u);
    auto const others = verdicts(upkeep::open(options_of(mine + " namespace=others")).value());
    EXPECT_EQ(count_of(others, miss::wrong_key), others.size()) << "of another namespace, and said to be";
}

TEST(remote_upkeep, who_signed_is_told) {
    if (auto const what = test::redis_process::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
    test::redis_process server;
    auto const scratch = base::temporary_directory::make("kiln-upkeep").value();
    auto const key = store::private_key::generate().value();
    key.save(scratch.path() / "k").value();
    base::replace_file(scratch.path() / "k.pub", base::as_bytes(key.public_half().pem()), 0644).value();
    auto const mine =
        fmt::format("{} keys={}/k.pub sign={}/k", server.url(), scratch.path().native(), scratch.path().native());
    ASSERT_TRUE(tier_at(mine)->put(entry_of(1)).value().kept);
    auto all = upkeep::open(options_of(mine)).value();
    auto const first = all.list().value().at(0);
    auto const seen = all.check(first).value();
    EXPECT_FALSE(seen.why);
    EXPECT_EQ(seen.signers, std::vector{key.public_half().id()});
}

TEST(remote_upkeep, a_packet_names_its_signer_once_and_nobody_who_did_not_sign) {
    auto const scratch = base::temporary_directory::make("kiln-upkeep").value();
    signer const by{.key = store::private_key::generate().value(), .epoch = 0};
    auto const half = by.key.public_half();
    base::replace_file(scratch.path() / "k.pub", base::as_bytes(half.pem()), 0644).value();
    auto const about = entry_of(1)->about;
    auto const entry = store::encode_entry(*entry_of(1)).value();
    auto const his = sign_entry(by, "default", entry);
    auto another = his;
    another.by[0] ^= 1;
    auto const name = object_name("default", about.at.request, 0).hex();
    base::make_directories(scratch.path() / name.substr(0, 2)).value();
    base::replace_file(scratch.path() / name.substr(0, 2) / name.substr(2),
                       encode_packet(std::vector{another, his, his}, entry), 0644)
        .value();
    auto const rule = fmt::format("http://127.0.0.1:1 keys={}/k.pub read-only", scratch.path().native());
    auto all = upkeep::of_folder(scratch.path(), options_of(rule));
    auto const seen = all.check(all.list().value().at(0)).value();
    EXPECT_FALSE(seen.why);
    EXPECT_EQ(seen.signers, std::vector{half.id()});
}

TEST(remote_upkeep, a_key_of_another_type_is_told_and_the_others_are_checked) {
    if (auto const what = test::redis_process::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
    test::redis_process server;
    auto const mine = server.url() + " trust=server";
    ASSERT_TRUE(tier_at(mine)->put(entry_of(1)).value().kept);
    auto const name = "kiln:1:" + base::sha256_of("anybody's").hex();
    ASSERT_EQ(server.say("RPUSH " + name + " a b"), ":2\r\n");
    auto const all = verdicts(upkeep::open(options_of(mine)).value());
    EXPECT_EQ(count_of(all, miss::bad_magic), 1u);
    EXPECT_EQ(count_of(all, std::nullopt), all.size() - 1);
    auto keeper = upkeep::open(options_of(mine)).value();
    for (auto const& o : keeper.list().value()) keeper.remove(o).value();
    EXPECT_EQ(server.say("DBSIZE"), ":0\r\n");
}

// The list comes in pages of three, and has claims in it, too.
TEST(remote_upkeep, a_bucket_is_looked_through_page_by_page) {
    if (auto const what = test::moto_process::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
    if (!load_curl()) GTEST_SKIP() << "libcurl is not here";
    test::moto_process const server{{"MOTO_S3_DEFAULT_MAX_KEYS=3"}};
    for (std::string const bucket : {"s3://bucket/some%20where/k", "s3://bucket"}) {
        auto const mine = fmt::format("{} trust=server {}", bucket, server.attributes());
        auto const writer = tier_at(mine);
        for (unsigned i = 1; i <= 8; ++i) ASSERT_TRUE(writer->put(entry_of(i)).value().kept);
        EXPECT_EQ(writer->try_lease(), "");
        auto keeper = upkeep::open(options_of(mine)).value();
        auto const all = keeper.list().value();
        EXPECT_GE(all.size(), 8u);
        for (auto const& o : all) {
            EXPECT_EQ(keeper.check(o).value().why, std::nullopt) << o.key;
            ASSERT_TRUE(o.age) << o.key;
            EXPECT_LE(*o.age, 60);
            EXPECT_GE(*o.age, 0);
            EXPECT_GT(o.bytes, 0u);
        }
        auto const others = verdicts(upkeep::open(options_of(mine + " namespace=others")).value());
        EXPECT_EQ(count_of(others, miss::wrong_key), others.size());
        for (auto const& o : all) keeper.remove(o).value();
        EXPECT_EQ(keeper.list().value().size(), 0u);
        EXPECT_FALSE(tier_at(mine)->find(entry_of(1)->about.at, {}).value().hit);
    }
    auto const stranger = fmt::format("s3://bucket trust=server {} credentials-file={}", server.place(),
                                      server.wrong_credentials().native());
    auto const refused = upkeep::open(options_of(stranger)).value().list();
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message().find("s3:ListBucket"), std::string::npos) << refused.error().message();
}

// What a bucket says is a page after the other, without an end.
class endless_bucket {
public:
    using script = std::function<std::string(int page)>;
    explicit endless_bucket(script what)
        : server_{[what](test::told_http::connection& c) {
              int page = 0;
              for (auto r = c.request(); !r.empty(); r = c.request()) c.answer(200, what(page++));
          }} {}
    [[nodiscard]] result<std::vector<kept_object>> list() const {
        auto const scratch = base::temporary_directory::make("kiln-s3").value();
        auto const file = scratch.path() / "credentials";
        base::replace_file(file, base::as_bytes("aws_access_key_id = a\naws_secret_access_key = b\n")).value();
        auto const text =
            fmt::format("s3://bucket trust=server endpoint={} credentials-file={}", server_.url(), file.native());
        return upkeep::open(options_of(text)).value().list();
    }

private:
    test::told_http server_;
};

std::string page_of(std::string const& token, std::string const& objects) {
    return fmt::format(
        "<ListBucketResult><IsTruncated>true</IsTruncated>{}<NextContinuationToken>{}"
        "</NextContinuationToken></ListBucketResult>",
        objects, token);
}

TEST(remote_upkeep, R17_a_bucket_without_an_end_is_left) {
    if (!load_curl()) GTEST_SKIP() << "libcurl is not here";
    auto const object = "<Contents><Key>ab/" + std::string(62, 'c') + "</Key></Contents>";
    endless_bucket::script const all[] = {
        [](int) { return page_of("same", ""); },
        [](int n) { return page_of(std::to_string(n), ""); },
        [&](int n) { return page_of(std::to_string(n), object); },
        [](int) { return std::string{"<html>hello</html>"}; },
    };
    for (auto const& one : all) EXPECT_FALSE(endless_bucket{one}.list());
}

TEST(remote_upkeep, R17_a_redis_without_an_end_is_left) {
    auto const key = "kiln:1:" + std::string(64, 'd');
    for (bool const same : {true, false}) {
        std::atomic<int> page{6};
        test::told_redis const server{[&](test::told_redis::words const& asked) -> std::string {
            if (asked[0] == "SCAN")
                return "*2\r\n" + test::bulk(std::to_string(same ? 7 : ++page)) + "*1\r\n" + test::bulk(key);
            return asked[0] == "OBJECT" ? ":999\r\n" : "+OK\r\n";
        }};
        auto const got = upkeep::open(options_of(server.url() + " trust=server")).value().list();
        ASSERT_FALSE(got);
        EXPECT_NE(got.error().message().find("come to an end"), std::string::npos) << got.error().message();
        EXPECT_LT(server.asked("SCAN"), 100);
    }
}

// Redis may give a key twice while it grows or shrinks.
TEST(remote_upkeep, what_a_server_names_twice_counts_once) {
    auto const key = "kiln:1:" + std::string(64, 'd');
    test::told_redis const server{[&](test::told_redis::words const& asked) -> std::string {
        if (asked[0] == "SCAN")
            return "*2\r\n" + test::bulk(asked[1] == "0" ? "7" : "0") + "*2\r\n" + test::bulk(key) + test::bulk(key);
        return asked[0] == "OBJECT" ? ":999\r\n" : "+OK\r\n";
    }};
    EXPECT_EQ(upkeep::open(options_of(server.url() + " trust=server")).value().list().value().size(), 1u);
    EXPECT_EQ(server.asked("OBJECT"), 1);
}

TEST(remote_trust, nobody_is_believed_by_his_private_key) {
    auto const scratch = base::temporary_directory::make("kiln-trust").value();
    auto const file = scratch.path() / "k";
    store::private_key::generate().value().save(file).value();
    auto const believed = trust_of(options_of(fmt::format("redis://h keys={} read-only", file.native())));
    ASSERT_FALSE(believed);
    EXPECT_NE(believed.error().message().find("its public half"), std::string::npos) << believed.error().message();
}

// Where nobody may remove, what doctor tried the server with stays; before, 'kiln remote verify' failed from then on.
TEST(remote_upkeep, what_doctor_leaves_behind_is_sound) {
    if (auto const what = test::nginx_process::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
    if (!load_curl()) GTEST_SKIP() << "libcurl is not here";
    test::nginx_process server{"limit_except GET PUT { deny all; }"};
    EXPECT_EQ(tier_at(server.url() + " trust=server")->try_writing(), "");
    auto const scratch = base::temporary_directory::make("kiln-upkeep").value();
    auto const key = (scratch.path() / "k.pub").native();
    base::replace_file(key, base::as_bytes(store::private_key::generate().value().public_half().pem()), 0644).value();
    auto const mine = fmt::format("{} keys={} read-only", server.url(), key);
    auto folder = upkeep::of_folder(server.files(), options_of(mine));
    auto const all = folder.list().value();
    ASSERT_EQ(all.size(), 1u);
    auto const seen = folder.check(all[0]).value();
    EXPECT_EQ(seen.why, std::nullopt);
    EXPECT_TRUE(seen.is_probe);
}

// `<2 digits>/<62 digits>` is also what git calls its objects.
TEST(remote_upkeep, in_a_folder_only_packets_are_removed) {
    auto const scratch = base::temporary_directory::make("kiln-upkeep").value();
    auto const name = std::string(62, 'b');
    auto const file = [&](std::string_view below, base::byte_span data) {
        auto const path = scratch.path() / below / "ab" / name;
        std::filesystem::create_directories(path.parent_path());
        base::replace_file(path, data, 0644).value();
        return path;
    };
    auto const ours = file("", probe_packet());
    auto const deeper = file("objects", probe_packet());
    auto const theirs = scratch.path() / "cd" / name;
    std::filesystem::create_directories(theirs.parent_path());
    base::replace_file(theirs, base::as_bytes("precious"), 0644).value();
    std::filesystem::create_symlink(ours, scratch.path() / "cd" / std::string(62, 'c'));

    auto all = upkeep::of_folder(scratch.path(), {.at = {}, .in = belief::server, .space = {}});
    auto const listed = all.list().value();
    ASSERT_EQ(listed.size(), 2u) << "neither the link nor what lies further down";
    for (auto const& o : listed) EXPECT_EQ(all.remove(o).has_value(), o.key == ours.native()) << o.key;
    EXPECT_FALSE(std::filesystem::exists(ours));
    EXPECT_TRUE(std::filesystem::exists(theirs));
    EXPECT_TRUE(std::filesystem::exists(deeper));
}

}  // namespace

}  // namespace kiln::remote
