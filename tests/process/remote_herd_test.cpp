// SPDX-License-Identifier: Apache-2.0
// Many machines that start together with empty disks and one server: each client has a cache directory of its own.
#include "remote/curl.hpp"
#include "support/told_redis.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <random>

namespace kiln::test {

namespace {

using nlohmann::json;

struct sums {
    std::uint64_t compiled = 0, fleet = 0, wrong = 0, late = 0, leases = 0;
    double slowest_ms = 0;
    std::size_t answered = 0;
};

class herd_machines {
public:
    actor machine(std::vector<std::string> what, std::string const& remote, std::vector<std::string> variables = {}) {
        what.insert(what.begin(), (scratch_.path() / std::to_string(made_++)).native());
        variables.push_back("KILN_REMOTE=" + remote);
        return actor{std::move(what), std::move(variables), KILN_TEST_BIN_DIR "/kiln-test-herd"};
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

protected:
    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-herd").value();
    int made_ = 0;
};

class herd : public ::testing::Test, public herd_machines {
protected:
    void SetUp() override {
        if (auto const what = redis_process::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
    }
};

bool curl_is_here() { return remote::load_curl().has_value(); }

constexpr int keys = 50;
constexpr int processes = 200;
constexpr double slow_machine_ms = 700;
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

// Patience with it is over after two seconds; the only worker is busy for longer than the holder takes.
TEST_F(herd, R14_a_holder_that_is_slow_comes_first_where_no_worker_is_free) {
    redis_process server;
    auto const remote = server.url() + " trust=server patience=1s timeout=30s connect-timeout=10s";
    std::vector<actor> both;
    both.push_back(machine({"1", "4000"}, remote));
    both.push_back(machine({"2", "6000"}, remote));
    for (auto& a : both) ASSERT_EQ(a.line(), "ready");
    both[0].go();
    while (server.say("DBSIZE") == ":0\r\n") ::usleep(1'000);  // until it has the lease
    both[1].go();
    auto const s = collect(both);
    tell("a slow holder", s);
    EXPECT_EQ(s.wrong, 0u);
    EXPECT_EQ(s.late, 1u);
    EXPECT_EQ(s.compiled, 2u);
    EXPECT_EQ(s.fleet, 1u);
}

// Late for the first answer, asked for once more when it comes, and then held by another who never ends: each wait has its bound, and a
// start is held up by their sum at most, once for all its units.
TEST_F(herd, R1_who_was_late_and_then_waits_for_a_lease_waits_no_longer_than_for_both) {
    constexpr int answer_ms = 800, compile_ms = 1'500, units = 2;  // a longer one is no way for a lease
    std::atomic<std::int64_t> first_asked{0};
    told_redis const server{[&](told_redis::words const& w) -> std::string {
        if (w[0] == "SET") return nothing;
        if (is_about_leases(w)) return to_all(w, bulk("somebody"));
        std::int64_t none = 0;
        (void)first_asked.compare_exchange_strong(none, base::now_ns());
        // A slow server, once.
        while (base::now_ns() < first_asked + answer_ms * 1'000'000LL) ::usleep(1'000);
        return to_all(w, nothing);
    }};
    std::vector<actor> one;
    one.push_back(machine({std::to_string(units), std::to_string(compile_ms)}, server.url() + " trust=server"));
    begin(one);
    auto const s = collect(one);
    tell("late, then a holder that never ends", s);
    EXPECT_EQ(s.compiled, std::uint64_t{units});
    // The first unit is begun when its 250 ms are over, and the other is recalled from the line when the server answers.
    constexpr double later_answer_ms = 500, lease_ms = 2'000, pause_ms = 625;
    auto const most = answer_ms + later_answer_ms + lease_ms + pause_ms + compile_ms;
    EXPECT_LE(s.slowest_ms, most + slow_machine_ms);
    EXPECT_GE(s.slowest_ms, answer_ms + lease_ms + compile_ms) << "nobody was recalled: this shows nothing";
}

TEST_F(herd, R9_a_holder_that_cannot_publish_sends_everybody_to_work_at_once) {
    redis_process server;
    auto const twenty = [&](std::string const& remote) {
        std::vector<actor> all;
        for (int i = 0; i < 20; ++i) all.push_back(machine({"1", "200", "grow=3000000"}, remote));
        begin(all);
        return collect(all);
    };
    // In a queue each of the twenty has the lease, and the last waits for 4 s, every time. Where a machine stops for a moment, a holder
    // gets no core for as long as its lease lives, and others take longer: not every time.
    bool at_once = false;
    for (int round = 0; round < 3 && !at_once; ++round) {
        // As many, and nobody to ask: what one compile takes at this load.
        auto const alone = twenty("off");
        // Without the mark of the round before, which says that it cannot be published.
        (void)server.say("FLUSHALL");
        auto const s = twenty(server.url() + patient + " max-entry=1M");
        tell(fmt::format("cannot publish (alone {:.0f} ms)", alone.slowest_ms), s);
        EXPECT_EQ(s.wrong, 0u);
        EXPECT_EQ(s.compiled, 20u);
        at_once = s.leases <= 5 && s.slowest_ms <= 2 * alone.slowest_ms + slow_machine_ms;
    }
    EXPECT_TRUE(at_once) << "more than five leases, or longer than two compiles, three times";
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

TEST_F(herd, R10_the_server_is_restarted_in_the_middle) {
    auto const port = free_port();
    auto server = std::make_unique<redis_process>(std::vector<std::string>{}, port);
    std::vector<actor> all;
    for (int i = 0; i < 20; ++i) all.push_back(machine({std::to_string(keys), "20"}, server->url() + patient));
    begin(all);
    while (server->say("DBSIZE").find(":0\r") != std::string::npos) {
    }
    server.reset();
    server = std::make_unique<redis_process>(std::vector<std::string>{}, port);
    auto const s = collect(all);
    tell("restarted, empty", s);
    EXPECT_EQ(s.answered, 20u);
    EXPECT_EQ(s.wrong, 0u);
}

// One machine by itself: what all the others are held against.
double alone_ms(herd_machines& m, std::string const& remote, int ms) {
    std::vector<actor> one;
    one.push_back(m.machine({std::to_string(keys), std::to_string(ms)}, remote));
    herd_machines::begin(one);
    return herd_machines::collect(one).slowest_ms;
}

TEST_F(herd, R14_the_byte_server_is_killed_half_way) {
    if (auto const what = nginx_process::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
    redis_process leases;
    nginx_process bytes;
    // As many, and nobody to ask: the same load.
    std::vector<actor> others, all;
    for (int i = 0; i < 10; ++i) others.push_back(machine({std::to_string(keys), "50"}, "off"));
    begin(others);
    auto const alone = collect(others).slowest_ms;
    for (int i = 0; i < 10; ++i)
        all.push_back(machine({std::to_string(keys), "50"}, bytes.url() + " trust=server lease=" + leases.url()));
    begin(all);
    auto const there = [&] {
        std::error_code why;
        auto n = 0;
        for (std::filesystem::recursive_directory_iterator at{bytes.files(), why}, end; !why && at != end;
             at.increment(why))
            n += at->is_regular_file(why) ? 1 : 0;
        return n;
    };
    while (there() < keys) ::usleep(2'000);  // each lies under two names; not a core of those who are measured
    bytes.kill();
    auto const s = collect(all);
    tell(fmt::format("byte server killed half-way (alone {:.0f} ms)", alone), s);
    EXPECT_EQ(s.answered, 10u);
    EXPECT_EQ(s.wrong, 0u);
    EXPECT_LE(s.slowest_ms, 1.25 * alone + slow_machine_ms);
}

TEST_F(herd, R1_a_server_that_never_answers_does_not_slow_a_start) {
    fault_proxy const silent{0};
    auto const alone = alone_ms(*this, "off", 50);
    auto const with = alone_ms(*this, silent.redis() + " trust=server", 50);
    fmt::print("50 units: {:.0f} ms without a remote, {:.0f} ms with one that is silent\n", alone, with);
    EXPECT_LE(with, 1.1 * alone + slow_machine_ms);
}

// Leases are taken ahead: before, each worker stood still for some round trips between one compile and the next.
TEST_F(herd, R1_a_server_that_is_far_away_does_not_slow_a_start) {
    redis_process server;
    fault_proxy far{server.port()};
    far.set([](std::string&) { return ::usleep(20'000) == 0; });
    auto const alone = alone_ms(*this, "off", 50);
    auto const with = alone_ms(*this, far.redis() + " trust=server", 50);
    fmt::print("50 units: {:.0f} ms without a remote, {:.0f} ms with one 20 ms away\n", alone, with);
    EXPECT_LE(with, 1.2 * alone + slow_machine_ms);
}

TEST_F(herd, R1_a_byte_in_a_second_does_not_slow_a_start) {
    if (!curl_is_here()) GTEST_SKIP() << "libcurl is not here";
    std::atomic<bool> end{false};
    told_http const slow{[&](told_http::connection& c) {
        (void)c.request();
        c.say("HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n");
        for (int n = 0; !end && (n % 100 != 0 || c.say("x")); ++n) ::usleep(10'000);
    }};
    auto const alone = alone_ms(*this, "off", 50);
    auto const with = alone_ms(*this, slow.url() + " trust=server", 50);
    end = true;
    fmt::print("50 units: {:.0f} ms without a remote, {:.0f} ms with one of a byte in a second\n", alone, with);
    EXPECT_LE(with, 1.1 * alone + slow_machine_ms);
}

TEST_F(herd, S3_claims_let_one_machine_compile_each) {
    if (auto const what = moto_process::missing(); !what.empty()) GTEST_SKIP() << what << " is not here";
    if (!curl_is_here()) GTEST_SKIP() << "libcurl is not here";
    moto_process const server;
    std::vector<actor> all;
    for (int i = 0; i < 4; ++i)
        all.push_back(machine({"4", "200"}, server.url() + patient + " " + server.attributes()));
    begin(all);
    auto const s = collect(all);
    tell("claims on S3", s);
    EXPECT_EQ(s.answered, 4u);
    EXPECT_EQ(s.wrong, 0u);
    EXPECT_EQ(s.compiled, 4u);
}

// KILN_TEST_R20="200 60": so many processes for so many seconds; a short one runs always.
TEST_F(herd, R20_random_kills_cost_next_to_nothing) {
    int machines = 40, seconds = 10;
    if (auto const* const how = std::getenv("KILN_TEST_R20")) {
        ASSERT_EQ(std::sscanf(how, "%d %d", &machines, &seconds), 2);
    }
    redis_process server{{"--maxclients", "2000"}};
    auto const counted = scratch_.path() / "compiles";
    std::minstd_rand random{4711};
    int rounds = 0, kills = 0;
    std::uint64_t wrong = 0;
    auto const end = base::clock::now() + std::chrono::seconds{seconds};
    while (base::clock::now() < end) {
        std::vector<std::string> const what{std::to_string(keys), "30", fmt::format("salt={}", rounds),
                                            "count=" + counted.native()};
        std::vector<std::unique_ptr<actor>> all;
        auto const fresh = [&] {
            auto out = std::make_unique<actor>(machine(what, server.url() + patient));
            EXPECT_EQ(out->line(), "ready");
            out->go();
            return out;
        };
        // Every eighth is killed while the others come, whatever it is doing, and another comes in its place.
        for (int i = 0; i < machines; ++i) {
            all.push_back(fresh());
            if (random() % 8 != 0) continue;
            ++kills;
            auto const which = random() % all.size();
            all[which]->signal(SIGKILL);
            all[which] = fresh();
        }
        for (auto& a : all) {
            auto const j = json::parse(a->line(), nullptr, false);
            (void)a->wait();
            if (j.is_object()) wrong += j.at("wrong").get<std::uint64_t>();
        }
        ++rounds;
    }
    auto const compiles = std::filesystem::file_size(counted);
    auto const per_key = static_cast<double>(compiles) / (static_cast<double>(rounds) * keys);
    fmt::print("R20: {} rounds of {} machines and {} keys, {} kills, {:.3f} compiles per key\n", rounds, machines, keys,
               kills, per_key);
    EXPECT_EQ(wrong, 0u);
    EXPECT_GT(kills, 0);
    EXPECT_LE(per_key, 1.1);
}

std::string preload_file(char const* name) { return std::string{KILN_TEST_BIN_DIR "/kiln-test-"} + name + ".so"; }
std::string preloaded(char const* name) { return "LD_PRELOAD=" + preload_file(name); }
// Sanitizers want to be first: their builds have none of these.
bool can_preload(char const* name) { return ::access(preload_file(name).c_str(), R_OK) == 0; }

TEST_F(herd, R12_no_wall_clock_decides_anything) {
    if (!can_preload("shifted_clock")) GTEST_SKIP() << "nothing can be preloaded in this build";
    // Ten years back, ten years ahead, and a server that is an hour off either way.
    for (char const* const server_off : {"-3600", "3600"}) {
        redis_process server{
            {}, free_port(), {preloaded("shifted_clock"), std::string{"KILN_TEST_CLOCK_SHIFT="} + server_off}};
        std::vector<actor> all;
        for (char const* const off : {"-315576000", "0", "315576000"}) {
            for (int i = 0; i < 3; ++i)
                all.push_back(machine({"10", "30", fmt::format("salt={}", server_off)}, server.url() + patient,
                                      {preloaded("shifted_clock"), std::string{"KILN_TEST_CLOCK_SHIFT="} + off}));
        }
        begin(all);
        auto const s = collect(all);
        tell("clocks of their own", s);
        EXPECT_EQ(s.answered, 9u);
        EXPECT_EQ(s.wrong, 0u);
        EXPECT_EQ(s.compiled, 10u);
    }
}

// Without a resolver that answers: what a start, an end, and an end that waits for what was made to be sent take.
struct unresolved {
    double start_ms = 0, end_ms = 0;
    std::uint64_t compiled = 0;
};

TEST_F(herd, R16_a_resolver_that_hangs_keeps_nobody_waiting) {
    if (!can_preload("hanging_resolver")) GTEST_SKIP() << "nothing can be preloaded in this build";
    auto const alone = alone_ms(*this, "off", 20);
    auto const run = [&](std::string const& remote, std::vector<std::string> more) {
        std::vector<std::string> what{std::to_string(keys), "20"};
        what.insert(what.end(), more.begin(), more.end());
        std::vector<actor> one;
        one.push_back(machine(what, remote, {preloaded("hanging_resolver")}));
        begin(one);
        base::stopwatch const watch;
        auto const j = json::parse(one[0].line());
        unresolved out{.start_ms = j.at("wall_ms"), .compiled = j.at("compiled")};
        // With `leave` its line comes before the end, else after all was sent or given up.
        base::stopwatch const leaving;
        (void)one[0].wait();
        out.end_ms = more.empty() ? watch.ms() - out.start_ms : leaving.ms();
        return out;
    };
    for (std::string const remote :
         {"redis://cache.example:6379 trust=server", "http://cache.example/k trust=server"}) {
        // Who waits for a resolver waits each time; who has lost his processor to others does not.
        auto left = run(remote, {"leave"});
        for (int more = 0; more < 2 && left.start_ms > alone + 50; ++more) {
            auto const again = run(remote, {"leave"});
            if (again.start_ms < left.start_ms) left = again;
        }
        auto const stayed = run(remote, {});
        fmt::print("{}: {:.0f} ms, {:.0f} without; its end {:.0f} ms, {:.0f} where it waits for what it sends\n",
                   remote, left.start_ms, alone, left.end_ms, stayed.end_ms);
        EXPECT_EQ(left.compiled, std::uint64_t{keys});
        EXPECT_LE(left.start_ms, alone + 50 + slow_machine_ms) << remote;
        EXPECT_LE(left.end_ms, 200 + slow_machine_ms) << remote;
        EXPECT_LE(stayed.end_ms, 1'000 + 200 + slow_machine_ms) << "one connection that is given up: " << remote;
    }
}

}  // namespace

}  // namespace kiln::test
