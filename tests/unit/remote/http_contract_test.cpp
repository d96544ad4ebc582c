// SPDX-License-Identifier: Apache-2.0
// The contract of every tier, over HTTP: nginx with DAV, a server with bazel-remote's rules, moto's S3 with signatures checked.
#include "remote/curl.hpp"
#include "remote/remote_tier.hpp"
#include "support/servers.hpp"
#include "unit/store/tier_contract.hpp"

namespace kiln::test {

namespace {

std::shared_ptr<remote::remote_tier> http_tier(std::string const& url, std::string const& more) {
    auto list = remote::parse_remotes(url + " " + more, {});
    return std::make_shared<remote::remote_tier>(list.usable.at(0), std::make_shared<store::event_outlet>(nullptr));
}

template <class Server>
struct http_fixture {
    // One for all tests of the kind: starting one takes longer than a test.
    static Server* one() {
        static auto const server = missing().empty() ? std::make_unique<Server>() : nullptr;
        return server.get();
    }
    Server* server = one();
    static unsigned many() { return Server::many; }
    inline static int made = 0;
    static std::string missing() { return remote::load_curl() ? Server::missing() : "libcurl"; }
    std::shared_ptr<store::tier> fill(std::vector<store::entry_ptr> const& some) {
        auto const space = fmt::format("trust=server namespace=n{} {}", made++, server->attributes());
        auto const writer = http_tier(server->url(), space);
        for (auto const& e : some) {
            auto const done = writer->put(e).value();
            EXPECT_TRUE(done.kept) << done.why << ": " << done.detail;
        }
        return http_tier(server->url(), space);
    }
};

struct nginx_server : nginx_process {
    static constexpr unsigned many = 1000;
    [[nodiscard]] static std::string attributes() { return {}; }
};

}  // namespace

TEST(s3, who_signs_with_a_wrong_secret_is_refused) {
    if (auto const what = http_fixture<moto_process>::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
    auto const& server = *http_fixture<moto_process>::one();
    auto const stranger = http_tier(
        server.url(), "trust=server " + server.place() + " credentials-file=" + server.wrong_credentials().native());
    EXPECT_EQ(stranger->examine().why.what, remote::trouble::denied);
    auto const known = http_tier(server.url(), "trust=server " + server.attributes());
    EXPECT_FALSE(known->examine().why) << known->examine().why.detail;
}

TEST(s3, a_bucket_that_is_not_there_is_no_store_to_a_diagnosis) {
    if (auto const what = http_fixture<moto_process>::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
    auto const& server = *http_fixture<moto_process>::one();
    auto const misspelt = http_tier("s3://bukket/kiln", "trust=server read-only " + server.attributes());
    EXPECT_EQ(misspelt->examine().why.detail, "there is no such bucket");
}

// nginx takes a megabyte if nobody says otherwise. Before, the server was called full, and nothing was written for half a minute.
TEST(nginx, R8_what_is_too_large_for_the_server_does_not_keep_the_others_from_it) {
    if (auto const what = http_fixture<nginx_process>::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
    nginx_process const server{"client_max_body_size 1m;"};
    auto const t = http_tier(server.url(), "trust=server");
    EXPECT_EQ(t->put(entry_of(1, 3 << 20)).value().why, "too-large");
    EXPECT_TRUE(t->put(entry_of(2)).value().kept);
    auto const counted = t->take_counts();
    EXPECT_EQ(counted.errors.count("fleet-too-large"), 1u);
    EXPECT_EQ(counted.fleet.count("breaker_opened"), 0u);
}

TEST(s3, R11_credentials_that_were_written_anew_are_used) {
    if (auto const what = http_fixture<moto_process>::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
    auto const& server = *http_fixture<moto_process>::one();
    auto const scratch = base::temporary_directory::make("kiln-s3").value();
    auto const file = scratch.path() / "credentials";
    auto const become = [&](std::filesystem::path const& whose) {
        base::replace_file(file, *base::read_file(whose).value()).value();
    };
    become(server.wrong_credentials());
    auto const t = http_tier(
        server.url(), fmt::format("trust=server namespace=lent {} credentials-file={}", server.place(), file.native()));
    auto const e = entry_of(1);
    EXPECT_EQ(t->find(e->about.at, {}).value().why, store::miss::disabled);
    EXPECT_FALSE(t->put(e).value().kept);
    become(server.credentials());
    auto const end = base::clock::now() + std::chrono::seconds{20};
    bool kept = false;
    while (!kept && base::clock::now() < end) {
        (void)t->find(entry_of(2)->about.at, {});
        kept = t->put(e).value().kept;
    }
    EXPECT_TRUE(kept);
}

// What 'kiln doctor' does.
template <class Server>
void diagnose() {
    using fixture = http_fixture<Server>;
    if (auto const what = fixture::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
    auto const& server = *fixture::one();
    auto const t = http_tier(server.url(), "trust=server " + server.attributes());
    auto const seen = t->examine();
    EXPECT_FALSE(seen.why) << seen.why.detail;
    EXPECT_EQ(t->try_writing(), "");
    EXPECT_EQ(t->try_lease(), "");
}
TEST(http_diagnosis, nginx) { diagnose<nginx_server>(); }
TEST(http_diagnosis, bazel_remote) { diagnose<bazel_like>(); }
TEST(http_diagnosis, s3) { diagnose<moto_process>(); }

using every_http = ::testing::Types<http_fixture<nginx_server>, http_fixture<bazel_like>, http_fixture<moto_process>>;
INSTANTIATE_TYPED_TEST_SUITE_P(http, tier_contract, every_http);

}  // namespace kiln::test
