// SPDX-License-Identifier: Apache-2.0
// Whole bundles to and from a registry, a server of files and a bucket.
#include "remote/shipping.hpp"

#include "remote/registry.hpp"
#include "store/bundle.hpp"
#include "support/told_http.hpp"
#include "unit/store/tier_contract.hpp"

#include <gmock/gmock.h>

namespace kiln::test {

namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string registry_missing() { return remote::load_curl() ? registry_process::missing() : "libcurl"; }
registry_process& one_registry() {
    static registry_process server;
    return server;
}

// What every tier must do, after a journey.
struct registry_fixture {
    inline static int made = 0;
    std::vector<std::unique_ptr<base::bytes>> kept;
    static std::string missing() { return registry_missing(); }
    std::shared_ptr<store::tier> fill(std::vector<store::entry_ptr> const& some) {
        store::bundle_writer writer;
        for (auto const& e : some) writer.add(*e).value();
        auto const url = one_registry().url(fmt::format("team/app:v{}", made++));
        (void)remote::ship_bundle(url, writer.encode().value(), "app.kiln").value();
        kept.push_back(std::make_unique<base::bytes>(remote::fetch_bundle(url).value()));
        return store::bundle_tier::from_memory(*kept.back()).value();
    }
};

base::bytes some_bundle(unsigned number = 1) {
    store::bundle_writer writer;
    writer.add(*entry_of(number, 30'000)).value();
    return writer.encode().value();
}

struct shipping : ::testing::Test {
    void SetUp() override {
        if (!remote::load_curl()) GTEST_SKIP() << "libcurl is not here";
    }
    std::string file(char const* name, std::string_view text) {
        auto out = (scratch.path() / name).native();
        base::replace_file(out, base::as_bytes(text)).value();
        return out;
    }
    base::temporary_directory scratch = base::temporary_directory::make("kiln-ship").value();
};

TEST(registry_place, what_is_written_and_what_is_meant) {
    auto const of = [](std::string_view url) { return remote::parse_registry(url).value(); };
    EXPECT_EQ(of("oci://r.example/team/app:1.0").origin, "https://r.example");
    EXPECT_EQ(of("oci://r.example/team/app:1.0").text(), "oci://r.example/team/app:1.0") << "as people write it";
    EXPECT_EQ(of("oci://r.example:5000/app").text(), "oci://r.example:5000/app:latest");
    EXPECT_EQ(of("oci://127.0.0.1:5000/app:x").origin, "http://127.0.0.1:5000");
    auto const exact = "sha256:" + base::sha256_of("x").hex();
    EXPECT_EQ(of("oci://r.example/app@" + exact).reference, exact);
    EXPECT_EQ(of("oci://r.example/app@" + exact).text(), "oci://r.example/app@" + exact);
    for (auto const* const bad :
         {"oci://r.example", "oci://r.example/App", "oci://r.example/../x", "oci://r.example/a:-x",
          "oci://r.example/a@sha256:12", "oci://u:p@r.example/a", "https://r.example/a"})
        EXPECT_FALSE(remote::parse_registry(bad)) << bad;
}

TEST_F(shipping, a_registry_keeps_the_same_bytes_and_takes_them_once) {
    if (auto const what = registry_missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
    auto const bundle = some_bundle(7);
    auto const& server = one_registry();
    auto const first = remote::ship_bundle(server.url("twice:a"), bundle, "app.kiln").value();
    EXPECT_FALSE(first.was_there);
    EXPECT_TRUE(remote::ship_bundle(server.url("twice:b"), bundle, "app.kiln").value().was_there);
    EXPECT_EQ(remote::fetch_bundle(first.for_ever).value(), bundle) << "by the name it will always have";
    EXPECT_EQ(remote::fetch_bundle(server.url("twice:a")).value(), bundle);
    EXPECT_EQ(remote::fetch_bundle(server.url("twice:none")).error().code(), errc::not_found);
}

TEST_F(shipping, R17_bytes_that_are_not_those_of_the_manifest_are_refused) {
    if (auto const what = registry_missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
    auto& server = one_registry();
    auto const shipped = remote::ship_bundle(server.url("bad:a"), some_bundle(8), "app.kiln").value();
    auto const hex = shipped.of.hex();
    auto const blob = server.files() / "docker/registry/v2/blobs/sha256" / hex.substr(0, 2) / hex / "data";
    auto data = base::read_file(blob).value().value();
    data[100] ^= std::byte{1};
    base::replace_file(blob, data).value();
    auto const got = remote::fetch_bundle(server.url("bad:a"));
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code(), errc::corrupt);
}

// A registry that wants a token of another server, and gets the name and the password only there.
TEST_F(shipping, a_challenge_is_answered_and_secrets_are_not_repeated) {
    std::mutex mutex;
    std::vector<std::string> seen;
    std::string place;
    told_http server{[&](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) {
            std::lock_guard const lock{mutex};
            seen.push_back(r);
            bool const token = r.starts_with("GET /token?service=reg&scope=repository%3Aapp%3Apull ");
            if (token) c.answer(200, R"({"token":"t0k"})");
            else if (r.find("Authorization: Bearer t0k") == r.npos)
                c.answer(401, "",
                         "WWW-Authenticate: Bearer realm=\"http://" + place +
                             "/token\",service=\"reg\",scope=\"repository:app:pull\"\r\n");
            else c.answer(404);
        }
    }};
    place = server.place();
    auto const got = remote::fetch_bundle("oci://" + place + "/app:x", {.token_file = file("t", "ann:hunter2\n")});
    EXPECT_EQ(got.error().code(), errc::not_found) << got.error().message();
    ASSERT_EQ(seen.size(), 3u);
    EXPECT_THAT(seen[0], Not(HasSubstr("Authorization")));
    EXPECT_THAT(seen[1], HasSubstr("Authorization: Basic YW5uOmh1bnRlcjI="));
    EXPECT_THAT(std::string{got.error().message()}, Not(HasSubstr("hunter2")));
}

TEST_F(shipping, a_name_and_a_password_are_not_told_to_who_can_be_overheard) {
    int asked = 0;
    told_http server{[&](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) {
            ++asked;
            c.answer(401, "", "WWW-Authenticate: Bearer realm=\"http://token.example/token\",service=\"s\"\r\n");
        }
    }};
    auto const got =
        remote::fetch_bundle("oci://" + server.place() + "/app:x", {.token_file = file("t", "ann:hunter2")});
    ASSERT_FALSE(got);
    EXPECT_THAT(std::string{got.error().message()}, HasSubstr("--token-file"));
    EXPECT_EQ(asked, 1);
}

TEST_F(shipping, a_registry_that_sends_uploads_elsewhere_is_not_followed) {
    told_http server{[](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) {
            if (r.starts_with("POST")) c.answer(202, "", "Location: https://elsewhere.example/up?secret=1\r\n");
            else c.answer(404);
        }
    }};
    auto const got = remote::ship_bundle("oci://" + server.place() + "/app:x", some_bundle(), "app.kiln");
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code(), errc::forbidden);
    EXPECT_THAT(std::string{got.error().message()}, Not(HasSubstr("secret=1")));
}

TEST_F(shipping, R17_a_manifest_that_is_none_or_too_large_is_refused) {
    std::string const blob = R"({"layers":[{"mediaType":"application/vnd.kiln.bundle.v1","digest":"sha256:)" +
                             base::sha256_of("x").hex() + R"(","size":)";
    for (auto const& [text, code] : std::vector<std::pair<std::string, errc>>{
             {"", errc::corrupt},
             {"<html>", errc::corrupt},
             {"{}", errc::corrupt},
             {R"({"layers":[{"mediaType":"x"}]})", errc::not_found},
             {R"({"layers":[{"mediaType":"application/vnd.kiln.bundle.v1"}]})", errc::corrupt},
             {blob + "99999999999999}]}", errc::out_of_memory},
             {blob + "-1}]}", errc::corrupt},
             {std::string(2 << 20, '['), errc::io}}) {
        told_http server{[&](told_http::connection& c) {
            for (auto r = c.request(); !r.empty(); r = c.request()) c.answer(200, text);
        }};
        auto const got = remote::fetch_bundle("oci://" + server.place() + "/app:x");
        ASSERT_FALSE(got) << text.substr(0, 60);
        EXPECT_EQ(got.error().code(), code) << text.substr(0, 60) << ": " << got.error().message();
    }
}

TEST_F(shipping, who_names_a_token_that_is_not_there_asks_nobody_without_it) {
    told_http const server{[](told_http::connection& c) {
        for (auto r = c.request(); !r.empty(); r = c.request()) c.answer(404);
    }};
    auto const got = remote::fetch_bundle("oci://" + server.place() + "/app:x",
                                          {.token_file = (scratch.path() / "nosuch").native()});
    EXPECT_THAT(std::string{got.error().message()}, HasSubstr("no such token file"));
    EXPECT_EQ(server.connections(), 0);
}

TEST_F(shipping, R17_bytes_one_by_one_are_given_up) {
    told_http const server{[](told_http::connection& c) {
        (void)c.request();
        bool listens = c.say("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
        while (listens) {
            listens = c.say("x");
            std::this_thread::sleep_for(std::chrono::milliseconds{20});  // what such a server does
        }
    }};
    base::stopwatch const watch;
    auto const got = remote::fetch_bundle(server.url() + "/app.kiln",
                                          {.timeout = std::chrono::seconds{30}, .stall = std::chrono::seconds{1}});
    ASSERT_FALSE(got);
    EXPECT_THAT(std::string{got.error().message()}, HasSubstr("timeout"));
    EXPECT_LE(watch.ms(), 15'000) << "a second without much, and a slow machine; 30 s would be the whole time-out";
}

TEST_F(shipping, to_a_server_of_files_and_back) {
    if (auto const what = nginx_process::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
    nginx_process const server;
    auto const bundle = some_bundle();
    (void)remote::ship_bundle(server.url() + "/app.kiln", bundle, "app.kiln").value();
    EXPECT_EQ(remote::fetch_bundle(server.url() + "/app.kiln").value(), bundle);
    EXPECT_EQ(remote::fetch_bundle(server.url() + "/other.kiln").error().code(), errc::not_found);
}

TEST_F(shipping, to_a_bucket_and_back) {
    if (auto const what = moto_process::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
    moto_process const server;
    auto const bundle = some_bundle();
    remote::shipping_options const how{.endpoint = server.place().substr(9), .credentials_file = server.credentials()};
    (void)remote::ship_bundle("s3://bucket/releases/app.kiln", bundle, "app.kiln", how).value();
    EXPECT_EQ(remote::fetch_bundle("s3://bucket/releases/app.kiln", how).value(), bundle);
}

TEST_F(shipping, what_a_presigned_url_permits_is_not_repeated_and_stands_alone) {
    std::string asked;
    told_http server{[&](told_http::connection& c) {
        asked = c.request();
        c.answer(403);
    }};
    auto const got =
        remote::fetch_bundle(server.url() + "/app.kiln?X-Amz-Signature=hunter2", {.token_file = file("t", "token")});
    ASSERT_FALSE(got);
    EXPECT_THAT(asked, HasSubstr("GET /app.kiln?X-Amz-Signature=hunter2 "));
    EXPECT_THAT(asked, Not(HasSubstr("Authorization")));
    EXPECT_THAT(std::string{got.error().message()}, Not(HasSubstr("hunter2")));
}

}  // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(registry, tier_contract, registry_fixture);

}  // namespace kiln::test
