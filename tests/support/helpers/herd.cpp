// SPDX-License-Identifier: Apache-2.0
//
// One machine of many: demands KEYS kernels, waits for one after the other, and says what came of it. Its compiler is none and takes MS milliseconds.
//
//     herd CACHE KEYS MS [hold] [leave] [salt=TEXT] [grow=BYTES] [count=FILE]
//
// "ready" is its first line; it begins when it is sent a line. Then one of JSON: requests, compiled, fleet, wall_ms, wrong. With
// `hold` the compiler never ends, and "begun" is printed when it has something. With `leave` it ends when it has all, as programs do,
// and does not wait until what it made was sent. FILE grows by a byte with every compile, also of those
// that are killed later.
#include "support/pretended_compiler.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <thread>
#include <unistd.h>

namespace {

using namespace kiln;
using test::order_of;

struct herd_options {
    int keys = 0;
    int ms = 0;
    bool hold = false;
    bool leave = false;
    std::string salt = {};
    std::size_t grow = 0;
    std::string count = {};
};

void count_one(std::string const& file) {
    if (file.empty()) return;
    base::file_descriptor const fd{::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)};
    (void)!::write(fd.get(), "x", 1);
}

// Whoever makes it, the same bytes.
std::string image_of(std::string const& source, std::size_t grow) {
    auto out = base::sha256_of(source).hex();
    while (out.size() < grow) out += base::sha256_of(out.substr(out.size() - 64)).hex();
    return out;
}

result<compile::product> make(compile::job const& j, herd_options const& o) {
    if (o.hold) {
        std::puts("begun");
        std::fflush(stdout);
        for (;;) ::pause();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{o.ms});
    count_one(o.count);
    auto const& c = std::get<compile::compile_job>(j.task);
    return test::product_of(j, image_of(c.unit.source, o.grow), std::max(20, o.ms));
}

int run(engine& e, herd_options const& o) {
    auto& s = e.internals();
    auto const t = target::parse("sm_90").value();
    base::stopwatch const watch;
    std::vector<unit> all;
    for (int i = 0; i < o.keys; ++i) {
        all.push_back(
            {.name = fmt::format("k{}", i), .source = fmt::format("__global__ void k{}() {{}} // {}", i, o.salt)});
        (void)s.requests->ask(order_of(all.back(), t), priority::declared);
    }
    int wrong = 0;
    for (auto const& u : all) {
        auto const got = s.requests->ask(order_of(u, t), priority::blocking).answer.wait_sync();
        if (!got || base::as_text(got->what->image) != image_of(u.source, o.grow)) ++wrong;
    }
    auto const wall = watch.ms();
    auto const n = s.requests->status();
    if (!o.leave) (void)s.store->flush(base::clock::now() + std::chrono::seconds{20});
    auto const counts = s.store->counts();
    nlohmann::json line{{"requests", n.requests}, {"compiled", n.compiled}, {"fleet", n.from_fleet},
                        {"disk", n.from_disk},    {"wall_ms", wall},        {"wrong", wrong}};
    for (auto const& [name, value] : counts.fleet) line["of_fleet"][name] = value;
    for (auto const& [name, value] : counts.errors) line["errors"][name] = value;
    std::puts(line.dump().c_str());
    std::fflush(stdout);
    return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 4) return 2;
    herd_options o{.keys = std::atoi(arguments[2]), .ms = std::atoi(arguments[3])};
    for (int i = 4; i < count; ++i) {
        std::string const word = arguments[i];
        if (word == "hold") o.hold = true;
        if (word == "leave") o.leave = true;
        if (word.starts_with("salt=")) o.salt = word.substr(5);
        if (word.starts_with("count=")) o.count = word.substr(6);
        if (word.starts_with("grow=")) o.grow = static_cast<std::size_t>(std::atoll(word.c_str() + 5));
    }
    std::puts("ready");
    std::fflush(stdout);
    char go = 0;
    if (::read(0, &go, 1) != 1) return 3;
    event_log events;
    if (auto const* const file = std::getenv("KILN_EVENTS")) events.write_to(file);
    engine e{{.settings = {{"KILN_CACHE_DIR", arguments[1]}}, .events = &events}};
    test::compile_by(e, events, [o](compile::job const& j) { return make(j, o); });
    return run(e, o);
}
