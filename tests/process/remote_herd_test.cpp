// SPDX-License-Identifier: Apache-2.0
// Many machines that start together with empty disks and one server: each client has a cache directory of its own.
#include "support/servers.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace kiln::test {

namespace {

using nlohmann::json;

struct sums {
    std::uint64_t compiled = 0, fleet = 0, wrong = 0, late = 0, leases = 0;
    double slowest_ms = 0;
    std::size_t answered = 0;
};

class herd : public ::testing::Test {
protected:
    void SetUp() override {
        if (auto const what = redis_process::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
    }
    actor machine(std::vector<std::string> what, std::string const& remote) {
        what.insert(what.begin(), (scratch_.path() / std::to_string(made_++)).native());
        return actor{std::move(what), {"KILN_REMOTE=" + remote}, KILN_TEST_BIN_DIR "/kiln-test-herd"};
    }
    // All at once, as soon as all are there.
    static void begin(std::vector<actor>& all) {
        for (auto& a : all) ASSERT_EQ(a.line(), "ready");
        for (auto& a : all) a.go();
    }
    static sums collect(std::vector<actor>& all) {
        sums out;
        for (auto& a : all) {
            auto const line = a.line();
            (void)a.wait();
            auto const j = json::parse(line, nullptr, false);
            if (!j.is_object()) continue;
            ++out.answered;
            out.compiled += j.at("compiled").get<std::uint64_t>();
            out.fleet += j.at("fleet").get<std::uint64_t>();
            out.wrong += j.at("wrong").get<std::uint64_t>();
            out.slowest_ms = std::max(out.slowest_ms, j.at("wall_ms").get<double>());
            auto const fleet = j.value("of_fleet", json::object());
            out.late += fleet.value("late", std::uint64_t{0});
            out.leases += fleet.value("leases", std::uint64_t{0});
        }
        return out;
    }
    static void tell(std::string_view what, sums const& s) {
        ::testing::Test::RecordProperty(std::string{what},
                                        fmt::format("{} compiles, {:.0f} ms", s.compiled, s.slowest_ms));
        fmt::print("{}: {} compiled, {} from the fleet, {} leases, {} late, slowest {:.0f} ms\n", what, s.compiled,
                   s.fleet, s.leases, s.late, s.slowest_ms);
    }

    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-herd").value();
    int made_ = 0;
};

constexpr int keys = 50;
constexpr int processes = 200;
// Two cores play two hundred machines: nobody is called late because his neighbour had the core.
constexpr char const* patient = " trust=server patience=10s timeout=30s connect-timeout=10s";

TEST_F(herd, R5_two_hundred_processes_compile_each_key_once) {
    redis_process server{{"--maxclients", "1000"}};
    std::vector<actor> all;
    for (int i = 0; i < processes; ++i) all.push_back(machine({std::to_string(keys), "50"}, server.url() + patient));
    begin(all);
    auto const s = collect(all);
    tell("cold", s);
    EXPECT_EQ(s.answered, std::size_t{processes});
    EXPECT_EQ(s.wrong, 0u);
    EXPECT_EQ(s.compiled, std::uint64_t{keys});

    std::vector<actor> warm;
    for (int i = 0; i < processes / 4; ++i)
        warm.push_back(machine({std::to_string(keys), "50"}, server.url() + patient));
    begin(warm);
    auto const w = collect(warm);
    tell("warm", w);
    EXPECT_EQ(w.compiled, 0u);
    EXPECT_EQ(w.fleet, std::uint64_t{keys} * processes / 4);
}

TEST_F(herd, R14_a_holder_that_is_killed_costs_its_lease_and_one_compile) {
    redis_process server;
    auto holder = machine({"1", "10", "hold"}, server.url() + patient);
    ASSERT_EQ(holder.line(), "ready");
    holder.go();
    ASSERT_EQ(holder.line(), "begun");
    holder.signal(SIGKILL);
    std::vector<actor> all;
    for (int i = 0; i < 10; ++i) all.push_back(machine({"1", "50"}, server.url() + patient));
    begin(all);
    auto const s = collect(all);
    tell("holder killed", s);
    EXPECT_EQ(s.wrong, 0u);
    EXPECT_EQ(s.compiled, 1u);
    EXPECT_LE(s.slowest_ms, 2'000 + 50 + 500 + 1'500) << "lease, compile, pause, and a slow machine";
}

TEST_F(herd, R14_a_holder_that_is_stopped_is_waited_for_no_longer_than_its_lease) {
    redis_process server;
    auto holder = machine({"1", "10", "hold"}, server.url() + patient);
    ASSERT_EQ(holder.line(), "ready");
    holder.go();
    ASSERT_EQ(holder.line(), "begun");
    holder.signal(SIGSTOP);
    std::vector<actor> all;
    for (int i = 0; i < 5; ++i) all.push_back(machine({"1", "50"}, server.url() + patient));
    begin(all);
    auto const s = collect(all);
    EXPECT_EQ(s.compiled, 1u);
    EXPECT_EQ(s.answered, 5u);
}

TEST_F(herd, R9_a_holder_that_cannot_publish_sends_everybody_to_work_at_once) {
    redis_process server;
    std::vector<actor> all;
    for (int i = 0; i < 20; ++i)
        all.push_back(machine({"1", "200", "grow=3000000"}, server.url() + patient + " max-entry=1M"));
    begin(all);
    auto const s = collect(all);
    tell("cannot publish", s);
    EXPECT_EQ(s.wrong, 0u);
    EXPECT_EQ(s.compiled, 20u);
    EXPECT_LE(s.slowest_ms, 2 * 200 + 2'500) << "two compiles, and a slow machine; in a queue it would take 4 s";
}

TEST_F(herd, R10_the_server_is_emptied_in_the_middle) {
    redis_process server;
    std::vector<actor> all;
    for (int i = 0; i < 20; ++i) all.push_back(machine({std::to_string(keys), "20"}, server.url() + patient));
    begin(all);
    for (int i = 0; i < 5; ++i) (void)server.say("FLUSHALL");
    auto const s = collect(all);
    tell("emptied", s);
    EXPECT_EQ(s.answered, 20u);
    EXPECT_EQ(s.wrong, 0u);
}

TEST_F(herd, R10_the_server_is_killed_in_the_middle) {
    auto server = std::make_unique<redis_process>();
    std::vector<actor> all;
    for (int i = 0; i < 20; ++i) all.push_back(machine({std::to_string(keys), "5"}, server->url() + patient));
    begin(all);
    while (server->say("DBSIZE").find(":0\r") != std::string::npos) {
    }
    server.reset();
    auto const s = collect(all);
    tell("killed", s);
    EXPECT_EQ(s.answered, 20u);
    EXPECT_EQ(s.wrong, 0u);
}

TEST_F(herd, R13_leases_that_are_evicted_cost_duplicates_at_most) {
    redis_process server{{"--maxmemory", "3mb", "--maxmemory-policy", "allkeys-lru"}};
    std::vector<actor> all;
    for (int i = 0; i < 10; ++i)
        all.push_back(machine({std::to_string(keys), "5", "grow=60000"}, server.url() + patient));
    begin(all);
    auto const s = collect(all);
    tell("evicted", s);
    EXPECT_EQ(s.answered, 10u);
    EXPECT_EQ(s.wrong, 0u);
}

TEST_F(herd, R13_too_many_clients) {
    redis_process server{{"--maxclients", "5"}};
    std::vector<actor> all;
    for (int i = 0; i < 20; ++i) all.push_back(machine({"10", "5"}, server.url() + " trust=server"));
    begin(all);
    auto const s = collect(all);
    tell("too many clients", s);
    EXPECT_EQ(s.answered, 20u);
    EXPECT_EQ(s.wrong, 0u);
}

}  // namespace

}  // namespace kiln::test
