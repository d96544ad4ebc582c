// SPDX-License-Identifier: Apache-2.0
// The contract of every tier, over a real redis-server.
#include "remote/curl.hpp"
#include "remote/remote_tier.hpp"
#include "support/servers.hpp"
#include "unit/store/tier_contract.hpp"

namespace kiln::test {

namespace {

remote::remote_options options_at(std::string const& url, std::string const& more) {
    auto list = remote::parse_remotes(url + " " + more, {});
    return list.usable.at(0);
}

std::shared_ptr<remote::remote_tier> tier_at(std::string const& url, std::string const& more) {
    return std::make_shared<remote::remote_tier>(options_at(url, more), std::make_shared<store::event_outlet>(nullptr));
}

struct redis_fixture {
    std::unique_ptr<redis_process> server = missing().empty() ? std::make_unique<redis_process>() : nullptr;
    int made = 0;
    static std::string missing() { return redis_process::missing(); }
    std::shared_ptr<store::tier> fill(std::vector<store::entry_ptr> const& some) {
        auto const space = fmt::format("trust=server namespace=n{}", made++);
        auto const writer = tier_at(server->url(), space);
        for (auto const& e : some) {
            auto const done = writer->put(e).value();
            EXPECT_TRUE(done.kept) << done.why << ": " << done.detail;
        }
        return tier_at(server->url(), space);
    }
};

// Filled by one machine, read by another that may not write, and by who signed it.
struct signed_redis_fixture {
    std::unique_ptr<redis_process> server = missing().empty() ? std::make_unique<redis_process>() : nullptr;
    base::temporary_directory scratch = base::temporary_directory::make("kiln-keys").value();
    int made = 0;
    static std::string missing() { return redis_process::missing(); }
    std::shared_ptr<store::tier> fill(std::vector<store::entry_ptr> const& some) {
        auto const number = made++;
        auto const key = (scratch.path() / fmt::format("{}.key", number)).native();
        auto const made_key = store::private_key::generate().value();
        made_key.save(key).value();
        base::replace_file(key + ".pub", base::as_bytes(made_key.public_half().pem())).value();
        auto const space = fmt::format("namespace=n{} keys={}.pub", number, key);
        auto const writer = tier_at(server->url(), space + " sign=" + key);
        for (auto const& e : some) {
            auto const done = writer->put(e).value();
            EXPECT_TRUE(done.kept) << done.why << ": " << done.detail;
        }
        return tier_at(server->url(), space + " read-only");
    }
};

// Over TLS, with a certificate that only ca= knows.
struct tls_redis_fixture {
    std::uint16_t tls_port = free_port();
    base::temporary_directory scratch = base::temporary_directory::make("kiln-tls").value();
    std::unique_ptr<redis_process> server = missing().empty() ? make() : nullptr;
    int made = 0;
    static std::string missing() {
        if (!redis_process::missing().empty()) return redis_process::missing();
        if (!program_named("openssl")) return "openssl";
        return remote::load_curl() ? "" : "libcurl";
    }
    [[nodiscard]] std::string file(char const* name) const { return (scratch.path() / name).native(); }
    std::unique_ptr<redis_process> make() {
        actor openssl{{"req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", file("key"), "-out", file("cert"),
                       "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:::1", "-days", "2"},
                      {},
                      *program_named("openssl")};
        EXPECT_EQ(openssl.wait(), 0);
        auto const port = std::to_string(tls_port);
        return std::make_unique<redis_process>(std::vector<std::string>{
            "--tls-port", port, "--tls-cert-file", file("cert"), "--tls-key-file", file("key"), "--tls-ca-cert-file",
            file("cert"), "--tls-auth-clients", "no", "--bind", "127.0.0.1", "-::1"});
    }
    std::shared_ptr<store::tier> fill(std::vector<store::entry_ptr> const& some) {
        auto const url = fmt::format("rediss://localhost:{}", tls_port);
        auto const space = fmt::format("trust=server connect-timeout=5s namespace=n{} ca={}", made++, file("cert"));
        auto const writer = tier_at(url, space);
        for (auto const& e : some) {
            auto const done = writer->put(e).value();
            EXPECT_TRUE(done.kept) << done.why << ": " << done.detail;
        }
        return tier_at(url, space);
    }
};

}  // namespace

TEST(redis_tls, a_certificate_that_nobody_vouches_for_is_refused) {
    if (auto const what = tls_redis_fixture::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
    tls_redis_fixture f;
    auto const stranger = tier_at(fmt::format("rediss://localhost:{}", f.tls_port), "trust=server connect-timeout=5s");
    EXPECT_EQ(stranger->examine().why.what, remote::trouble::tls);
}

TEST(redis_tls, a_certificate_of_another_name_is_refused) {
    if (auto const what = tls_redis_fixture::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
    tls_redis_fixture f;
    auto const how = fmt::format("trust=server connect-timeout=5s ca={}", f.file("cert"));
    EXPECT_EQ(tier_at(fmt::format("rediss://127.0.0.1:{}", f.tls_port), how)->examine().why.what, remote::trouble::tls);
    EXPECT_FALSE(tier_at(fmt::format("rediss://localhost:{}", f.tls_port), how)->examine().why);
    // The same over HTTP: hands are shaken before anybody finds out that this is no server of it.
    EXPECT_EQ(tier_at(fmt::format("https://127.0.0.1:{}", f.tls_port), how)->examine().why.what, remote::trouble::tls);
    auto const https = tier_at(fmt::format("https://localhost:{}", f.tls_port), how)->examine();
    EXPECT_NE(https.why.what, remote::trouble::tls) << https.why.detail;
    EXPECT_GT(https.certificate_days, 0);
}

TEST(redis_tls, an_address_with_colons_is_written_in_brackets) {
    if (auto const what = tls_redis_fixture::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
    tls_redis_fixture f;
    auto const how = fmt::format("trust=server connect-timeout=5s ca={}", f.file("cert"));
    auto const seen = tier_at(fmt::format("rediss://[::1]:{}", f.tls_port), how)->examine();
    if (seen.why.what == remote::trouble::connect) GTEST_SKIP() << "there is no IPv6 here: " << seen.why.detail;
    EXPECT_FALSE(seen.why) << seen.why.detail;
}

TEST(redis, a_database_that_is_not_there_is_no_question_of_who_we_are) {
    if (auto const what = redis_process::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
    redis_process const server;
    EXPECT_EQ(tier_at(server.url() + "/99", "trust=server")->examine().why.what, remote::trouble::server);
    EXPECT_FALSE(tier_at(server.url() + "/3", "trust=server")->examine().why);
    redis_process const locked{{"--requirepass", "secret"}};
    EXPECT_EQ(tier_at(locked.url() + "/3", "trust=server")->examine().why.what, remote::trouble::denied);
}

// Who has no compiler asks by family, and cannot put what he finds unsound anew.
TEST(redis_signed, what_a_key_signed_that_was_taken_back_is_replaced_by_family_too) {
    if (auto const what = redis_process::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
    redis_process const server;
    auto const scratch = base::temporary_directory::make("kiln-keys").value();
    auto const file = [&](char const* name) { return (scratch.path() / name).native(); };
    auto const e = entry_of(1);
    for (auto const* name : {"old", "new"}) {
        auto const key = store::private_key::generate().value();
        key.save(file(name)).value();
        base::replace_file(file(name) + ".pub", base::as_bytes(key.public_half().pem())).value();
    }
    auto const writer = [&](char const* key) {
        return tier_at(server.url(), fmt::format("keys={0}.pub sign={0}", file(key)));
    };
    auto const by_family = [&](char const* key) {
        auto const reader = tier_at(server.url(), fmt::format("keys={}.pub read-only", file(key)));
        return reader->ask_sync({.family = e->about.at.family,
                                 .expected = {.target = e->about.target, .kind = e->about.kind, .toolchain = {}},
                                 .how = store::urgency::nothing_else_will_do});
    };
    auto const found_soon = [&](char const* key) {
        auto const end = base::clock::now() + std::chrono::seconds{10};
        while (base::clock::now() < end) {
            if (by_family(key).hit) return true;
        }
        return false;
    };
    auto const first = writer("old");
    ASSERT_TRUE(first->put(e).value().kept);
    ASSERT_TRUE(found_soon("old"));
    auto const second = writer("new");
    ASSERT_TRUE(second->put(e).value().kept);
    EXPECT_TRUE(found_soon("new"));
}

TEST(redis_signed, what_is_signed_by_whom_nobody_believes_is_not_written) {
    auto const scratch = base::temporary_directory::make("kiln-keys").value();
    auto const file = [&](char const* name) { return (scratch.path() / name).native(); };
    for (auto const* name : {"ours", "others"}) {
        auto const key = store::private_key::generate().value();
        key.save(file(name)).value();
        base::replace_file(file(name) + ".pub", base::as_bytes(key.public_half().pem())).value();
    }
    auto const url = fmt::format("redis://127.0.0.1:{}", free_port());
    auto const why = [&](char const* keys) {
        return tier_at(url, fmt::format("keys={}.pub sign={}", file(keys), file("ours")))->trouble_with_keys();
    };
    EXPECT_EQ(why("ours"), "");
    EXPECT_NE(why("others").find("not among keys="), std::string::npos) << why("others");
}

TEST(redis_tls, a_diagnosis_knows_how_long_the_certificate_is_good) {
    if (auto const what = tls_redis_fixture::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
    tls_redis_fixture f;
    auto const how = fmt::format("trust=server connect-timeout=5s ca={}", f.file("cert"));
    auto const days = tier_at(fmt::format("rediss://localhost:{}", f.tls_port), how)->examine().certificate_days;
    EXPECT_TRUE(days == 1 || days == 2) << "two days, less a moment";
    EXPECT_EQ(tier_at(f.server->url(), "trust=server")->examine().certificate_days, std::nullopt) << "in clear text";
}

using every_redis = ::testing::Types<redis_fixture, signed_redis_fixture, tls_redis_fixture>;
INSTANTIATE_TYPED_TEST_SUITE_P(redis, tier_contract, every_redis);

}  // namespace kiln::test
