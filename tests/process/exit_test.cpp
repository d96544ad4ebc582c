// SPDX-License-Identifier: Apache-2.0
// Programs that end while threads of Kiln are at work with libraries that end with the program, too.
#include "store/maintenance.hpp"
#include "store/signing.hpp"
#include "support/told_redis.hpp"

#include <gtest/gtest.h>

namespace kiln::test {

namespace {

using std::chrono::milliseconds;

// Has nothing, and takes its time to keep what it is sent: more than all of it fit into the end of a program.
std::string slow_to_keep(told_redis::words const& asked) {
    if (asked[0] != "SET") return to_all(asked, nothing);
    std::this_thread::sleep_for(milliseconds{10});
    return "+OK\r\n";
}

struct parting {
    std::string engine, with;
};

class ends_while_it_signs : public ::testing::TestWithParam<parting> {
protected:
    void SetUp() override {
        auto const key = store::private_key::generate().value();
        key.save(file("key")).value();
        base::replace_file(file("pub"), base::as_bytes(key.public_half().pem())).value();
    }
    [[nodiscard]] std::string file(std::string const& name) const { return scratch_.path() / name; }
    // As waitpid gives it.
    int run(told_redis const& remote, int nth) {
        std::vector<std::string> words{GetParam().engine};
        if (!GetParam().with.empty()) words.push_back(GetParam().with);
        actor program{words,
                      {"KILN_REMOTE=" + remote.url() + " lease=none sign=" + file("key") + " keys=" + file("pub"),
                       "KILN_CACHE_DIR=" + file("cache" + std::to_string(nth))},
                      KILN_TEST_BIN_DIR "/kiln-test-parting"};
        EXPECT_EQ(program.line(), "0 wrong");
        EXPECT_TRUE(remote.wait_until_asked("SET"));
        program.go();
        return program.wait();
    }

    [[nodiscard]] std::size_t kept(int nth) const {
        return store::maintenance{file("cache" + std::to_string(nth))}.count().value().entries;
    }

    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-exit").value();
};

TEST_P(ends_while_it_signs, R15_as_programs_do) {
    for (int n = 0; n < 3; ++n) {
        told_redis const server{slow_to_keep};
        EXPECT_EQ(run(server, n), 0) << "ended by a signal, if it is below 256";
        EXPECT_EQ(kept(n), 40u) << "on disk is what it made, also by a child";
    }
}

INSTANTIATE_TEST_SUITE_P(all, ends_while_it_signs,
                         ::testing::Values(parting{"process", ""}, parting{"process", "first"},
                                           parting{"process", "later"}, parting{"static", ""},
                                           parting{"static", "first"}, parting{"late", ""}, parting{"late", "first"},
                                           parting{"process", "asks"}, parting{"process", "forks"}),
                         [](auto const& of) {
                             auto const& p = of.param;
                             bool const is_openssls = p.with == "first" || p.with == "later";
                             return p.engine + (p.with.empty() ? "" : (is_openssls ? "_openssl_" : "_") + p.with);
                         });

}  // namespace

}  // namespace kiln::test
