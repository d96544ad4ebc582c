// SPDX-License-Identifier: Apache-2.0
//
// What a remote costs, held against the same bytes and protocol without Kiln, in one run: a hit of 50 KB, near and a millisecond away,
// a batch of 200, an upload in its caller, a server that is not there. And what servers are occupied with, which bench/remote/model.py is fed with.
//
//     bench_remote REDIS_URL[#PID] [HTTP_URL[#PID]] [FILE]     e.g. redis://127.0.0.1:6379#812 http://127.0.0.1:8080/k#815 times.json
//
// PID is the server's process on this machine: what it is occupied with is then the time that the machine gave it, however busy it was.
#include "remote/delay_proxy.hpp"
#include "remote/remote_tier.hpp"
#include "store/store.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <future>
#include <random>
#include <thread>

namespace {

using namespace kiln;

constexpr std::size_t artifact_bytes = 50'000;
constexpr int rounds = 400;
constexpr unsigned many = 200;

store::entry_ptr entry_of(unsigned n) {
    auto e = std::make_shared<store::entry>();
    e->about = {.at = {base::sha256_of("family"), base::sha256_of(fmt::format("r{}", n)),
                       base::sha256_of(fmt::format("k{}", n))},
                .name = fmt::format("unit_{}", n),
                .target = "sm_90",
                .kind = "cubin",
                .toolchain = "bench",
                .producer = "bench",
                .licence = {}};
    e->payload.resize(artifact_bytes);
    std::minstd_rand random{n + 1};
    for (auto& b : e->payload) b = static_cast<std::byte>(random() >> 8);
    return e;
}

template <class Work>
double once_us(Work work) {
    base::stopwatch const watch;
    work();
    return static_cast<double>(watch.ns()) * 1e-3;
}

// What all threads of this process took of the processors.
template <class Work>
double process_us(Work work) {
    auto const taken = [] {
        ::timespec t{};
        ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
    };
    auto const before = taken();
    work();
    return taken() - before;
}

double middle(std::vector<double>& all) {
    std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2));
    return all[all.size() / 2];
}

// Of what `measure` says so many times.
template <class Measure>
double median_of(int times, Measure measure) {
    std::vector<double> all;
    for (int i = 0; i < times; ++i) all.push_back(measure());
    return middle(all);
}

template <class Work>
double median_us(int times, Work work) {
    std::vector<double> all;
    for (int i = 0; i < times; ++i) all.push_back(once_us([&] { work(i); }));
    return middle(all);
}

// What a server is occupied with: the time of its process, or where that is not told what has passed meanwhile.
class occupation {
public:
    explicit occupation(std::string pid) : pid_{std::move(pid)} {}
    template <class Work>
    double us(Work work) const {
        base::stopwatch const watch;
        auto const before = given_ns();
        work();
        return static_cast<double>(pid_.empty() ? watch.ns() : given_ns() - before) * 1e-3;
    }

private:
    [[nodiscard]] std::int64_t given_ns() const {
        std::int64_t out = 0;
        if (!pid_.empty() && !(std::ifstream{"/proc/" + pid_ + "/schedstat"} >> out))
            throw fail(errc::not_found, "there is no process {}", pid_);
        return out;
    }
    std::string pid_;
};

// The protocol and nothing else, on the same kind of thread.
class raw_server {
public:
    explicit raw_server(remote::remote_options const& o) : made_of_{remote::make_servers(loop_, o)} {}
    ~raw_server() {
        loop_.stop([this] { made_of_.bytes->close(); });
    }
    void get(std::vector<base::digest> const& names) {
        wait_for(names.size(),
                 [&](auto each) { made_of_.bytes->get(names, [each](std::size_t, remote::got) { each(); }); });
    }
    // And `look` at each, on the thread that received it.
    template <class Look>
    void get_and(std::vector<base::digest> const& names, Look look) {
        wait_for(names.size(), [&](auto each) {
            made_of_.bytes->get(names, [each, look](std::size_t, remote::got g) {
                look(std::move(g.packet));
                each();
            });
        });
    }
    // Several questions at once: what is left of each is what the server is occupied with.
    void get_often(std::vector<base::digest> const& names, std::size_t times) {
        wait_for(names.size() * times, [&](auto each) {
            for (std::size_t i = 0; i < times; ++i)
                made_of_.bytes->get(names, [each](std::size_t, remote::got) { each(); });
        });
    }
    void take_leases(std::size_t count) {
        wait_for(count, [&](auto each) {
            for (std::size_t i = 0; i < count; ++i)
                made_of_.leases->take(base::sha256_of(base::random_name()), "t",
                                      [each](remote::lease_look) { each(); });
        });
    }
    // A connection, one word each way, and its end.
    void connect_once() {
        wait_for(1, [&](auto each) { made_of_.bytes->ping([each](remote::failure) { each(); }); });
        std::promise<void> closed;
        (void)loop_.post([&] {
            made_of_.bytes->close();
            closed.set_value();
        });
        closed.get_future().get();
    }

private:
    template <class Ask>
    void wait_for(std::size_t count, Ask ask) {
        std::promise<void> done;
        std::atomic<std::size_t> left{count};
        (void)loop_.post([&] {
            ask([&] {
                if (--left == 0) done.set_value();
            });
        });
        done.get_future().get();
    }
    remote::reactor loop_;
    remote::servers made_of_;
};

store::question question_of(store::entry const& e) {
    return {.family = e.about.at.family,
            .request = e.about.at.request,
            .key = e.about.at.key,
            .how = store::urgency::nothing_else_will_do};
}

void ask_for_all(remote::remote_tier& tier, std::vector<store::entry_ptr> const& all) {
    std::promise<void> done;
    std::atomic<std::size_t> left{all.size()};
    for (auto const& e : all) {
        tier.ask(question_of(*e), [&](store::answer) {
            if (--left == 0) done.set_value();
        });
    }
    done.get_future().get();
}

struct ratio {
    double raw_us, checks_us, with_us;
    double together_us = 0;  // received and checked by one thread, without Kiln; 0: not measured
};
void say(std::string_view what, ratio r) {
    fmt::print("{:<44} {:9.1f} us raw {:9.1f} us checks {:9.1f} us   {:.2f} x{}\n", what, r.raw_us, r.checks_us,
               r.with_us, r.with_us / (r.raw_us + r.checks_us),
               r.together_us > 0 ? fmt::format("   ({:.1f} us without Kiln, in one)", r.together_us) : "");
}

// Everything is signed and checked, as among machines that do not believe their server.
class bench {
public:
    bench() {
        signer_.save(key_).value();
        base::replace_file(key_ + ".pub", base::as_bytes(signer_.public_half().pem())).value();
        for (unsigned n = 0; n < many; ++n) all_.push_back(entry_of(n));
        auto const stored = store::encode_entry(*all_[0]).value();
        packet_ = remote::encode_packet(std::array{remote::sign_entry({signer_, 0}, space_, stored)}, stored);
        rule_ = {.in = remote::belief::signatures, .space = space_, .keys = {signer_.public_half()}};
        checks_us_ = median_us(rounds, [&](int) { check_one(); });
    }

    // The times of the model are told of `url`.
    void measure(std::string const& word) {
        auto const sharp = std::min(word.find('#'), word.size());
        auto const url = word.substr(0, sharp);
        occupation const server{word.substr(std::min(word.size(), sharp + 1))};
        auto const options = options_at(url);
        remote::remote_tier tier{options, quiet_};
        std::vector<base::digest> names;
        for (auto const& e : all_) {
            names.push_back(remote::object_name(space_, e->about.at.request, 0));
            if (!tier.put(e).value().kept) throw fail(errc::io, "{} keeps nothing", url);
        }
        raw_server raw{options};
        raw.get(names);
        ask_for_all(tier, all_);
        say(url + ": a hit", hit(raw, tier, names));
        {
            delay_proxy const far{options.at.port, std::chrono::microseconds{500}};
            auto away = options;
            away.at.port = far.port();
            raw_server raw_away{away};
            remote::remote_tier tier_away{away, quiet_};
            auto r = hit(raw_away, tier_away, names);
            r.checks_us = 0;
            say("  a millisecond away, against the raw GET alone", r);
        }
        batch(raw, tier, names, server);
        if (options.at.is_redis()) occupy_redis(raw, options, server);
        else times_["fetch_us"] = median_of(9, [&] { return server.us([&] { raw.get(names); }); }) / many;
    }

    // What a caller pays for an upload: he hands it over, and no more.
    void measure_upload(std::string const& word) {
        auto const url = word.substr(0, word.find('#'));
        auto const alone = handing_over_us({});
        auto const with = handing_over_us({std::make_shared<remote::remote_tier>(options_at(url), quiet_)});
        fmt::print("{}: handed over by the caller {:.1f} us, without a remote {:.1f} us\n", url, with, alone);
    }

    void measure_nobody() {
        auto const nowhere = remote::parse_remotes("redis://127.0.0.1:1 trust=server", {}).usable.at(0);
        remote::remote_tier nobody{nowhere, quiet_};
        base::stopwatch const first;
        (void)nobody.ask_sync(question_of(*all_[0]));
        fmt::print("closed port, the first look-up        {:9.1f} us\n", static_cast<double>(first.ns()) * 1e-3);
        auto question = question_of(*all_[0]);
        question.how = store::urgency::somebody_waits;
        fmt::print("closed port, later look-ups           {:9.2f} us\n",
                   median_us(rounds, [&](int) { nobody.ask(question, [](store::answer) {}); }));
    }

    [[nodiscard]] nlohmann::json const& times() const { return times_; }

private:
    [[nodiscard]] remote::remote_options options_at(std::string const& url) const {
        auto const list =
            remote::parse_remotes(fmt::format("{} keys={}.pub sign={} namespace={}", url, key_, key_, space_), {});
        if (list.usable.empty()) throw fail(errc::invalid_argument, "{}: {}", url, list.off.at(0).why);
        return list.usable[0];
    }
    [[nodiscard]] double handing_over_us(std::vector<std::shared_ptr<store::tier>> const& more) {
        event_log log;
        store::store_options o;
        o.disk = store::disk_options{.root = scratch_.path() / base::random_name()};
        store::store all{o, log};
        for (auto const& t : more) all.add_tier(t);
        auto const out = median_us(100, [&](int i) { all.put(all_[static_cast<std::size_t>(i)]); });
        (void)all.flush(base::clock::now() + std::chrono::seconds{30});
        return out;
    }
    void check_one() const {
        auto const& at = all_[0]->about.at;
        (void)remote::open_packet(packet_, rule_,
                                  {.family = at.family, .request = at.request, .key = at.key, .expected = {}});
    }
    // One of each in turn: what disturbs one disturbs all.
    ratio hit(raw_server& raw, remote::remote_tier& tier, std::vector<base::digest> const& names) {
        std::vector<double> raws, checks, together, withs;
        for (int i = 0; i < rounds; ++i) {
            auto const n = static_cast<unsigned>(i) % many;
            auto const& at = all_[n]->about.at;
            raws.push_back(once_us([&] { raw.get({names[n]}); }));
            checks.push_back(once_us([&] { check_one(); }));
            together.push_back(once_us([&] {
                raw.get_and({names[n]}, [&](base::bytes packet) {
                    (void)remote::open_packet(
                        std::move(packet), rule_,
                        {.family = at.family, .request = at.request, .key = at.key, .expected = {}});
                });
            }));
            withs.push_back(once_us([&] { (void)tier.ask_sync(question_of(*all_[n])); }));
        }
        return {middle(raws), middle(checks), middle(withs), middle(together)};
    }
    // Each followed by the other: what disturbs one disturbs both. And what each took of the processors, which says where the rest of
    // its time went: to those who wait for one another, or for a processor.
    void batch(raw_server& raw, remote::remote_tier& tier, std::vector<base::digest> const& names,
               occupation const& server) {
        auto const threads = std::clamp(std::thread::hardware_concurrency(), 1u, 4u);
        std::vector<double> raws, withs, checks, raw_cpu, with_cpu, check_cpu, raw_server_cpu, with_server_cpu;
        for (int i = 0; i < 31; ++i) {
            raw_server_cpu.push_back(server.us(
                [&] { raw_cpu.push_back(process_us([&] { raws.push_back(once_us([&] { raw.get(names); })); })); }));
            with_server_cpu.push_back(server.us([&] {
                with_cpu.push_back(process_us([&] { withs.push_back(once_us([&] { ask_for_all(tier, all_); })); }));
            }));
            check_cpu.push_back(process_us([&] { checks.push_back(once_us([&] { check_all(threads); })); }));
        }
        say(fmt::format("  a batch of {}, checks on {} threads", many, threads),
            {middle(raws), many * checks_us_ / threads, middle(withs)});
        fmt::print(
            "    of the processors: raw {:.1f} ms here, {:.1f} there; with Kiln {:.1f} here, {:.1f} there; "
            "the checks alone, on {} threads at once, {:.1f} in {:.1f} ms\n",
            middle(raw_cpu) * 1e-3, middle(raw_server_cpu) * 1e-3, middle(with_cpu) * 1e-3,
            middle(with_server_cpu) * 1e-3, threads, middle(check_cpu) * 1e-3, middle(checks) * 1e-3);
    }
    void check_all(unsigned threads) const {
        std::vector<std::thread> all;
        for (unsigned t = 0; t < threads; ++t) {
            all.emplace_back([this, n = many / threads] {
                for (unsigned i = 0; i < n; ++i) check_one();
            });
        }
        for (auto& t : all) t.join();
    }
    void occupy_redis(raw_server& raw, remote::remote_options const& options, occupation const& server) {
        std::vector<base::digest> absent;
        for (int i = 0; i < 50; ++i) absent.push_back(base::sha256_of(fmt::format("absent {}", i)));
        constexpr std::size_t at_once = 200;
        auto const of = [&](auto work) { return median_of(9, [&] { return server.us(work); }) / at_once; };
        times_["batch_us"] = of([&] { raw.get_often(absent, at_once); });
        times_["lease_us"] = of([&] { raw.take_leases(at_once); });
        raw_server fresh{options};
        times_["connect_us"] = of([&] {
            for (std::size_t i = 0; i < at_once; ++i) fresh.connect_once();
        });
    }

    base::temporary_directory scratch_ = base::temporary_directory::make("kiln-bench").value();
    std::string key_ = (scratch_.path() / "k").native();
    std::string space_ = "bench" + base::random_name();
    store::private_key signer_ = store::private_key::generate().value();
    std::shared_ptr<store::event_outlet> quiet_ = std::make_shared<store::event_outlet>(nullptr);
    std::vector<store::entry_ptr> all_;
    base::bytes packet_;
    remote::trust rule_;
    double checks_us_ = 0;
    nlohmann::json times_;
};

}  // namespace

int main(int count, char** arguments) {
    if (count < 2) {
        std::fputs("usage: bench_remote REDIS_URL[#PID] [HTTP_URL[#PID]] [FILE]\n", stderr);
        return 2;
    }
    try {
        bench b;
        std::string file;
        for (int i = 1; i < count; ++i) {
            std::string const word = arguments[i];
            if (word.find("://") == word.npos) file = word;
            else {
                b.measure(word);
                b.measure_upload(word);
            }
        }
        b.measure_nobody();
        fmt::print("occupied: {}\n", b.times().dump());
        if (!file.empty()) std::ofstream{file} << b.times().dump() << "\n";
    } catch (std::exception const& why) {
        std::fputs((std::string{why.what()} + "\n").c_str(), stderr);
        return 1;
    }
    return 0;
}
