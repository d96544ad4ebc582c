// SPDX-License-Identifier: Apache-2.0
//
// What a remote costs, held against the same bytes and protocol without Kiln, in one run: a hit of 50 KB, a batch of 200, a server that
// is not there, no remote at all. And the times that bench/remote/model.py is fed with.
//
//     bench_remote REDIS_URL [FILE]     e.g. redis://127.0.0.1:6379; FILE receives the model's times as JSON
#include "remote/redis_server.hpp"
#include "remote/remote_tier.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <future>
#include <random>

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
double median_us(int times, Work work) {
    std::vector<double> all;
    for (int i = 0; i < times; ++i) {
        base::stopwatch const watch;
        work(i);
        all.push_back(static_cast<double>(watch.ns()) * 1e-3);
    }
    std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2));
    return all[all.size() / 2];
}

// The protocol and nothing else, on the same kind of thread.
class raw_redis {
public:
    explicit raw_redis(remote::remote_options const& o) : server_{loop_, o} {}
    ~raw_redis() {
        loop_.stop([this] { server_.close(); });
    }
    void get(std::vector<base::digest> names) {
        std::promise<void> done;
        std::atomic<std::size_t> left{names.size()};
        (void)loop_.post([&, names = std::move(names)] {
            server_.get(names, [&](std::size_t, remote::got) {
                if (--left == 0) done.set_value();
            });
        });
        done.get_future().get();
    }
    void lease(int i) {
        std::promise<void> done;
        (void)loop_.post([&] {
            server_.take(base::sha256_of(fmt::format("lease {} {}", i, base::random_name())), "t",
                         [&](remote::lease_look) { done.set_value(); });
        });
        done.get_future().get();
    }

private:
    remote::reactor loop_;
    remote::redis_server server_;
};

store::question question_of(store::entry const& e) {
    return {.family = e.about.at.family,
            .request = e.about.at.request,
            .key = e.about.at.key,
            .how = store::urgency::nothing_else_will_do};
}

double batch_us(remote::remote_tier& tier, std::vector<store::entry_ptr> const& all) {
    return median_us(10, [&](int) {
        std::promise<void> done;
        std::atomic<std::size_t> left{all.size()};
        for (auto const& e : all) {
            tier.ask(question_of(*e), [&](store::answer) {
                if (--left == 0) done.set_value();
            });
        }
        done.get_future().get();
    });
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 2) {
        std::fputs("usage: bench_remote REDIS_URL [FILE]\n", stderr);
        return 2;
    }
    auto const scratch = base::temporary_directory::make("kiln-bench").value();
    auto const key = (scratch.path() / "k").native();
    auto const signer = store::private_key::generate().value();
    signer.save(key).value();
    base::replace_file(key + ".pub", base::as_bytes(signer.public_half().pem())).value();
    auto const text =
        fmt::format("{} keys={}.pub sign={} namespace=bench{}", arguments[1], key, key, base::random_name());
    auto const list = remote::parse_remotes(text, {});
    if (list.usable.empty()) {
        std::fputs((list.off.at(0).why + "\n").c_str(), stderr);
        return 1;
    }
    auto const& options = list.usable[0];
    auto const quiet = std::make_shared<store::event_outlet>(nullptr);
    remote::remote_tier tier{options, quiet};
    std::vector<store::entry_ptr> all;
    std::vector<base::digest> names;
    for (unsigned n = 0; n < many; ++n) {
        all.push_back(entry_of(n));
        names.push_back(remote::object_name(options.space, all.back()->about.at.request, 0));
        if (!tier.put(all.back()).value().kept) return 1;
    }
    raw_redis raw{options};
    raw.get({names[0]});

    auto const raw_us = median_us(rounds, [&](int i) { raw.get({names[static_cast<unsigned>(i) % many]}); });
    auto const hit_us =
        median_us(rounds, [&](int i) { (void)tier.ask_sync(question_of(*all[static_cast<unsigned>(i) % many])); });
    auto const stored = store::encode_entry(*all[0]).value();
    auto const packet =
        remote::encode_packet(std::array{remote::sign_entry({signer, 0}, options.space, stored)}, stored);
    remote::trust const rule{.in = remote::belief::signatures, .space = options.space, .keys = {signer.public_half()}};
    auto const& at = all[0]->about.at;
    auto const check_us = median_us(rounds, [&](int) {
        (void)remote::open_packet(packet, rule,
                                  {.family = at.family, .request = at.request, .key = at.key, .expected = {}});
    });
    auto const raw_batch = median_us(10, [&](int) { raw.get(names); });
    auto const batch = batch_us(tier, all);
    std::vector<base::digest> absent;
    for (int i = 0; i < 50; ++i) absent.push_back(base::sha256_of(fmt::format("absent {}", i)));
    auto const absent_us = median_us(rounds, [&](int) { raw.get(absent); });
    auto const lease_us = median_us(rounds, [&](int i) { raw.lease(i); });

    auto dead = remote::parse_remotes("redis://127.0.0.1:1 trust=server", {}).usable.at(0);
    remote::remote_tier nobody{dead, quiet};
    base::stopwatch const first;
    (void)nobody.ask_sync(question_of(*all[0]));
    auto const dead_us = static_cast<double>(first.ns()) * 1e-3;
    auto question = question_of(*all[0]);
    question.how = store::urgency::somebody_waits;
    auto const later_us = median_us(rounds, [&](int) { nobody.ask(question, [](store::answer) {}); });

    fmt::print("raw GET of 50 KB                      {:9.1f} us\n", raw_us);
    fmt::print("checks alone                          {:9.1f} us\n", check_us);
    fmt::print("hit, every check passed               {:9.1f} us   {:.2f} x (raw + checks)\n", hit_us,
               hit_us / (raw_us + check_us));
    fmt::print("raw batch of 200                      {:9.1f} us\n", raw_batch);
    fmt::print("batch of 200, every check passed      {:9.1f} us   {:.2f} x (raw + checks)\n", batch,
               batch / (raw_batch + many * check_us));
    fmt::print("closed port, the first look-up        {:9.1f} us\n", dead_us);
    fmt::print("closed port, later look-ups           {:9.2f} us\n", later_us);
    fmt::print("batch of 50 names that are absent     {:9.1f} us, there and back\n", absent_us);
    fmt::print("lease taken                           {:9.1f} us, there and back\n", lease_us);
    if (count > 2)
        std::ofstream{arguments[2]} << nlohmann::json{{"fetch_us", raw_us}, {"batch_us", absent_us}}.dump() << "\n";
    return 0;
}
