// SPDX-License-Identifier: Apache-2.0
#include "remote/settings.hpp"

#include "base/files.hpp"

#include <gmock/gmock.h>

#include <sys/stat.h>

namespace kiln::remote {

namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string why_off(std::string_view text, circumstances const& around = {}) {
    auto const list = parse_remotes(text, around);
    EXPECT_TRUE(list.usable.empty()) << text;
    return list.off.size() == 1 ? list.off[0].why + " | " + list.off[0].remedy : "not one remote";
}

TEST(remote_settings, a_url_and_what_follows_it) {
    auto const list = parse_remotes(
        "https://cache.example/kiln/ layout=bazel namespace=release keys=release.pub read-only\n"
        "  s3://bucket/kiln namespace=nodes keys=a.pub,b.pub sign=nodes.key epoch=4 lease=redis://leases:6380",
        {});
    ASSERT_EQ(list.usable.size(), 2u) << (list.off.empty() ? "" : list.off[0].why);
    auto const& first = list.usable[0];
    EXPECT_EQ(first.at.text(), "https://cache.example/kiln");
    EXPECT_EQ(first.layout, layout::bazel);
    EXPECT_EQ(first.writes, writing::never);
    auto const& second = list.usable[1];
    EXPECT_EQ(second.at.host, "bucket");
    EXPECT_EQ(second.keys.size(), 2u);
    EXPECT_EQ(second.epoch, 4u);
    EXPECT_EQ(second.leases, leasing::elsewhere);
    EXPECT_EQ(second.lease_at->port, 6380);
}

TEST(remote_settings, nothing_and_off_are_none) {
    EXPECT_TRUE(parse_remotes("", {}).usable.empty());
    EXPECT_TRUE(parse_remotes("off", {}).off.empty());
}

TEST(remote_settings, what_is_not_understood_takes_it_out_of_use) {
    EXPECT_THAT(why_off("redis://h trust=server readonly"), HasSubstr("did you mean 'read-only'"));
    EXPECT_THAT(why_off("redis://h trust=server read-only=1"), HasSubstr("takes no value"));
    EXPECT_THAT(why_off("redis://h trust=sever"), HasSubstr("signed or server"));
    EXPECT_THAT(why_off("redis://h trust=server timeout=fast"), HasSubstr("not a time"));
    EXPECT_THAT(why_off("redis://h trust=server timeout=0s"), HasSubstr("a millisecond or more"));
    EXPECT_THAT(why_off("redis://h trust=server connect-timeout=0ms"), HasSubstr("a millisecond or more"));
    for (std::string const name : {"timeout", "connect-timeout", "patience"})
        EXPECT_THAT(why_off("redis://h trust=server " + name + "=200000d"), HasSubstr("up to 1d"))
            << "no clock holds it";
    EXPECT_THAT(why_off("redis://h trust=server ttl=99999999d"), HasSubstr("up to 36500d"));
    EXPECT_THAT(why_off("redis://h trust=server max-entry=1T"), HasSubstr("256M"));
    EXPECT_THAT(why_off("redis://h:x trust=server"), HasSubstr("port"));
    EXPECT_THAT(why_off("ftp://h trust=server"), HasSubstr("spoken"));
    EXPECT_THAT(why_off("trust=server"), HasSubstr("begins with its URL"));
}

TEST(remote_settings, who_is_believed_must_be_said) {
    EXPECT_THAT(why_off("redis://h"), HasSubstr("who is believed"));
    EXPECT_THAT(why_off("redis://h keys=a.pub"), HasSubstr("nothing signs"));
    EXPECT_EQ(parse_remotes("redis://h keys=a.pub read-only", {}).usable.size(), 1u);
    EXPECT_EQ(parse_remotes("redis://h keys=a.pub", {.is_read_only = true}).usable.size(), 1u);
}

// Before, the last word counted: keys= after trust=server was checked, and before it was not.
TEST(remote_settings, who_looks_after_a_server_signs_nothing) {
    auto const* const keeper = "redis://cache keys=/k.pub";
    EXPECT_EQ(parse_remotes(keeper, {}).usable.size(), 0u);
    auto const kept = parse_remotes(keeper, {.what_for = purpose::upkeep}).usable;
    ASSERT_EQ(kept.size(), 1u);
    EXPECT_EQ(kept[0].writes, writing::allowed) << "he removes";
    EXPECT_EQ(parse_remotes("redis://cache", {.what_for = purpose::upkeep}).usable.size(), 0u);
}

TEST(remote_settings, what_does_not_go_together_is_not_guessed_at) {
    EXPECT_THAT(why_off("redis://h keys=a.pub trust=server"), HasSubstr("nobody looks at keys="));
    EXPECT_THAT(why_off("redis://h trust=server keys=a.pub"), HasSubstr("nobody looks at keys="));
    EXPECT_THAT(why_off("redis://h trust=server min-epoch=2"), HasSubstr("nobody looks at min-epoch="));
    EXPECT_THAT(why_off("redis://h keys=a.pub keys=b.pub read-only"), HasSubstr("keys=A.pub,B.pub"));
    EXPECT_THAT(why_off("rediss://h trust=server token-file=a token-file=b"), HasSubstr("said twice"));
    EXPECT_THAT(why_off("redis://h keys=a.pub sign=a.key min-epoch=3"), HasSubstr("add epoch=3"));
    EXPECT_EQ(parse_remotes("redis://h keys=a.pub sign=a.key min-epoch=3 epoch=3", {}).usable.size(), 1u);
    EXPECT_EQ(parse_remotes("redis://h keys=a.pub min-epoch=3 read-only", {}).usable.size(), 1u);
    EXPECT_EQ(parse_remotes("redis://h trust=signed keys=a.pub read-only", {}).usable.size(), 1u);
    EXPECT_EQ(parse_remotes("redis://h trust=server sign=a.key", {}).usable.size(), 1u) << "others may look at it";
    EXPECT_EQ(parse_remotes("redis://g trust=server redis://h trust=server", {}).usable.size(), 2u) << "once each";
}

TEST(remote_settings, a_layout_is_of_files) {
    for (auto const* url : {"redis://h", "s3://bucket/kiln"})
        EXPECT_THAT(why_off(fmt::format("{} trust=server layout=bazel", url)), HasSubstr("servers over HTTP"));
    EXPECT_EQ(parse_remotes("http://127.0.0.1 trust=server layout=bazel", {}).usable.size(), 1u);
}

TEST(remote_settings, an_address_in_brackets_is_all_there_is) {
    for (char const* const bad : {"redis://[::1", "redis://[::1]x", "redis://[::1]6379", "http://[::1].example.org"})
        EXPECT_THAT(why_off(fmt::format("{} trust=server", bad)), HasSubstr("in brackets")) << bad;
    EXPECT_EQ(parse_remotes("redis://[::1]:6380 trust=server", {}).usable.at(0).at.port, 6380);
    EXPECT_EQ(parse_remotes("redis://[::1]/2 trust=server", {}).usable.at(0).at.host, "::1");
}

TEST(remote_settings, secrets_are_neither_taken_nor_repeated) {
    auto const why = why_off("redis://ann:hunter2@h trust=server");
    EXPECT_THAT(why, HasSubstr("token-file"));
    EXPECT_THAT(why, Not(HasSubstr("hunter2")));
    EXPECT_THAT(why_off("https://h/k?sig=hunter2 trust=server"), Not(HasSubstr("hunter2")));
    EXPECT_THAT(why_off("redis://h trust=server", {.has_token = true}), HasSubstr("clear text"));
    EXPECT_EQ(parse_remotes("redis://127.0.0.1 trust=server", {.has_token = true}).usable.size(), 1u);
    EXPECT_EQ(parse_remotes("rediss://h trust=server", {.has_token = true}).usable.size(), 1u);
    EXPECT_THAT(why_off("http://127.example.org trust=server", {.has_token = true}), HasSubstr("clear text"))
        << "a name that looks like this machine is another's";
}

// Passwords have all kinds of letters, and whoever writes one into a URL does not escape them.
TEST(remote_settings, no_part_of_a_password_is_repeated) {
    for (std::string const url : {"redis://ann:hun@ter2@h", "redis://ann:hun?ter2@h", "redis://ann:hun/ter2@h:6379",
                                  "https://ann:hun#ter2@h/k", "https://h/k?sig=hun@ter2", "ann:hunter2@h",
                                  "redis//ann:hun=ter2@h:6379", "redis://ann hun:ter2@h", "redis://ann hun=ter2@h"}) {
        auto const list = parse_remotes(url + " trust=server", {});
        ASSERT_EQ(list.off.size(), 1u) << url;
        auto const said = list.off[0].url + list.off[0].why + list.off[0].remedy + shown_remotes(url);
        EXPECT_THAT(said, Not(HasSubstr("hun"))) << url;
        EXPECT_THAT(said, Not(HasSubstr("ter2"))) << url;
    }
    EXPECT_EQ(shown_url("oci://h/team/app@sha256:00ff"), "oci://h/team/app@sha256:00ff") << "no secret, but a name";
    EXPECT_EQ(shown_url("oci://ann:hunter2@h/app@sha256:00ff"), "oci://...@h/app@sha256:00ff");
}

TEST(remote_settings, the_setting_is_shown_without_what_may_be_a_secret) {
    EXPECT_EQ(shown_remotes("redis://ann:hunter2@h trust=server\n lease=redis://:hunter2@l password=hunter2 read-only"),
              "redis://...@h trust=server lease=redis://...@l password=... read-only");
    EXPECT_EQ(shown_remotes("s3://b/k keys=a.pub endpoint=https://m:9000"),
              "s3://b/k keys=a.pub endpoint=https://m:9000");
}

TEST(remote_settings, a_token_for_leases_is_one_of_its_own) {
    EXPECT_EQ(parse_remotes("https://h trust=server token-file=t lease=redis://l", {}).usable.size(), 1u);
    EXPECT_THAT(why_off("https://h trust=server lease=redis://l lease-token-file=t"), HasSubstr("clear text"));
    EXPECT_THAT(why_off("https://h trust=server lease-token-file=t"), HasSubstr("without lease="));
    auto const list = parse_remotes("https://h trust=server lease=rediss://l lease-token-file=t", {});
    ASSERT_EQ(list.usable.size(), 1u);
    EXPECT_EQ(list.usable[0].lease_token_file, "t");
}

TEST(remote_settings, an_endpoint_is_a_url_and_a_database_a_number) {
    EXPECT_THAT(why_off("s3://b trust=server endpoint=minio:9000"), HasSubstr("speaks HTTP"));
    EXPECT_THAT(why_off("s3://b trust=server endpoint=ftp://minio"), HasSubstr("speaks HTTP"));
    auto const why = why_off("s3://b trust=server endpoint=http://ann:hunter2@minio");
    EXPECT_THAT(why, HasSubstr("secret"));
    EXPECT_THAT(why, Not(HasSubstr("hunter2")));
    EXPECT_EQ(parse_remotes("s3://b trust=server endpoint=http://minio:9000/", {}).usable.size(), 1u);
    EXPECT_THAT(why_off("redis://h/cache trust=server"), HasSubstr("number of a database"));
    EXPECT_EQ(parse_remotes("redis://h/2 trust=server", {}).usable.size(), 1u);
}

TEST(remote_settings, four_at_most) {
    std::string text;
    for (int i = 0; i < 5; ++i) text += fmt::format("redis://h{} trust=server ", i);
    auto const list = parse_remotes(text, {});
    EXPECT_EQ(list.usable.size(), 4u);
    EXPECT_EQ(list.off.size(), 1u);
}

TEST(remote_settings, a_file_that_others_can_write_does_not_count) {
    auto const scratch = base::temporary_directory::make("kiln-remote").value();
    auto const file = (scratch.path() / "kiln.conf").native();
    base::replace_file(file, base::as_bytes("remote = redis://h trust=server\n"), 0600).value();
    auto config = base::config::presets();
    config.read_lines("remote = redis://h trust=server\n", file);
    EXPECT_EQ(remotes_of(config).usable.size(), 1u);
    ASSERT_EQ(::chmod(file.c_str(), 0666), 0);
    EXPECT_TRUE(remotes_of(config).usable.empty());
    EXPECT_THAT(remotes_of(config).off.at(0).remedy, HasSubstr("chmod"));
}

}  // namespace

}  // namespace kiln::remote
