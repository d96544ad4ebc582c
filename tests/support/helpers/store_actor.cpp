// SPDX-License-Identifier: Apache-2.0
//
// One process of the store's process tests: does one thing to a cache directory and can be made to kill itself at its
// n-th system call.
//
//     kiln-test-store_actor COMMAND ROOT [ARGUMENT...]
//
// KILL_AT=n      SIGKILL before the n-th call made through base::sys()
// TERM_AT=n      SIGTERM there, with the default action
// NAMED=1        no unnamed temporary files
#include "store/maintenance.hpp"
#include "store/store.hpp"
#include "support/faulty_calls.hpp"
#include "support/store_entries.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace {

using namespace kiln;
using namespace kiln::store;
using namespace kiln::test;

int number_from(char const* variable) {
    auto const* const text = std::getenv(variable);
    return text != nullptr ? std::atoi(text) : 0;
}

std::shared_ptr<disk_tier> disk_at(char const* root, std::uint64_t max_bytes = std::uint64_t{1} << 30) {
    return std::make_shared<disk_tier>(disk_options{.root = root, .max_bytes = max_bytes},
                                       std::make_shared<event_outlet>(nullptr));
}

void say(char const* what) {
    std::puts(what);
    std::fflush(stdout);
}

void wait_for_line() {
    char line[16];
    (void)!std::fgets(line, sizeof line, stdin);
}

int put(char const* root, unsigned number) { return disk_at(root)->put(entry_of(number)) ? 0 : 1; }

// Many puts into a small directory: each evicts.
int evict(char const* root, unsigned first) {
    auto const tier = disk_at(root, 20'000);
    for (unsigned i = first; i < first + 8; ++i) (void)tier->put(entry_of(i));
    return 0;
}

int count(char const* root, unsigned times) {
    auto const tier = disk_at(root);
    unsigned lost = 0;
    statistics const one{.requests = 1, .hits = {{"disk", 1}}};
    statistics waiting;
    for (unsigned i = 0; i < times; ++i) {
        waiting.add(one);
        if (tier->add_to_directory(waiting) == store::adding::done) waiting = {};
    }
    for (auto const until = base::clock::now() + std::chrono::seconds{60};
         !waiting.empty() && base::clock::now() < until;) {
        if (tier->add_to_directory(waiting) == store::adding::done) waiting = {};
    }
    lost = static_cast<unsigned>(waiting.requests);
    std::printf("%u\n", lost);
    return 0;
}

int bundle(char const* file, unsigned entries) {
    bundle_writer writer;
    for (unsigned i = 0; i < entries; ++i) writer.add(*entry_of(i)).value();
    return writer.write(file) ? 0 : 1;
}

// Leads the flight of a request until told to go on.
int hold(char const* root, unsigned number) {
    auto const tier = disk_at(root);
    auto const leading = tier->try_lead(address_of(number).request, base::clock::now());
    say(leading.leads() ? "leads" : "does not lead");
    wait_for_line();
    return 0;
}

// Waits for the flight of a request and says what came of it and after how many milliseconds.
int follow(char const* root, unsigned number) {
    auto const tier = disk_at(root);
    say("ready");
    base::stopwatch const watch;
    auto flight = tier->try_lead(address_of(number).request, base::clock::now() + std::chrono::seconds{30});
    if (flight.outcome() == flight_outcome::finished) {
        flight = tier->try_lead(address_of(number).request, base::clock::now() + std::chrono::seconds{30});
    }
    std::printf("%s %.0f\n", std::string{name_of(flight.outcome())}.c_str(), watch.ms());
    return 0;
}

// Rounds of putting the same key as another process; a line from the parent starts each.
int race(char const* root, unsigned rounds) {
    auto const tier = disk_at(root);
    for (unsigned i = 0; i < rounds; ++i) {
        auto const e = entry_of(i, 200);
        if (!tier->put(e)) return 1;
        auto const found = tier->find(e->about.at, {});
        if (!found || !found->hit || found->hit->payload != e->payload) return 2;
    }
    return 0;
}

// Cold start: find or lead or wait, for `keys` keys; prints how many it compiled itself.
int cold(char const* root, unsigned keys) {
    event_log log;
    store_options o;
    o.disk = disk_options{.root = root};
    store::store store{o, log};
    wait_for_line();
    unsigned compiled = 0;
    for (unsigned i = 0; i < keys; ++i) {
        auto const e = entry_of((i * 13 + static_cast<unsigned>(::getpid())) % keys);
        for (;;) {
            if (store.find(e->about.at, expected_of(*e))) break;
            auto leading = store.try_lead(e->about.at.request, base::clock::now() + std::chrono::seconds{30});
            if (leading.outcome() == flight_outcome::finished) continue;
            if (leading.leads() && store.find(e->about.at, expected_of(*e))) break;
            ::usleep(5000);  // the compiler
            ++compiled;
            store.put(e, std::move(leading));
            break;
        }
    }
    std::printf("%u\n", compiled);
    return 0;
}

// Ends normally with a full queue.
int leave(char const* root, unsigned entries) {
    static event_log log;
    static std::unique_ptr<store::store> store;
    store_options o;
    o.disk = disk_options{.root = root};
    store = std::make_unique<store::store>(o, log);
    for (unsigned i = 0; i < entries; ++i) store->put(entry_of(i, 20'000));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) return 64;
    std::vector<rule> rules;
    if (number_from("NAMED") != 0) rules.push_back(no_unnamed_files());
    faulty_calls faults{rules};
    faults.hook = [kill_at = number_from("KILL_AT"), term_at = number_from("TERM_AT")](call, char const*, int number) {
        if (number == kill_at) ::raise(SIGKILL);
        if (number == term_at) ::raise(SIGTERM);
    };
    std::string const command = argv[1];
    auto const number = static_cast<unsigned>(std::atoi(argv[3]));
    int status = 64;
    for (auto const& [name, work] :
         {std::pair{"put", &put}, std::pair{"evict", &evict}, std::pair{"count", &count}, std::pair{"bundle", &bundle},
          std::pair{"hold", &hold}, std::pair{"follow", &follow}, std::pair{"race", &race}, std::pair{"cold", &cold},
          std::pair{"leave", &leave}}) {
        if (command == name) status = work(argv[2], number);
    }
    // Statics end while the table is still ours.
    if (command == "leave") std::exit(status);
    return status;
}
