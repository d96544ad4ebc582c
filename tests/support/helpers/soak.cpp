// SPDX-License-Identifier: Apache-2.0
//
// Many processes on one small cache directory, killed at random, against a reference model.
//
//     kiln-test-soak --root DIR [--seconds 10] [--processes 64] [--keys 500] [--max-bytes 400000]
//
// A key's right bytes can be computed from its number: that is the model. A "compile" is a short sleep. Every process
// finds, leads, waits, compiles and puts; the parent kills and stops some, starts others, and measures the directory.
// Wrong bytes, a process that makes no progress, a directory beyond bound and slack, or a bad entry at the end: status 1.
#include "store/maintenance.hpp"
#include "store/store.hpp"
#include "support/crowd.hpp"
#include "support/store_entries.hpp"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace kiln;
using namespace std::chrono_literals;

constexpr std::size_t most_processes = 256, most_keys = 4096, largest_payload = 6000;
constexpr auto lead_deadline = 500ms;

// Shared by all processes through a mapped file.
struct board {
    std::atomic<std::uint64_t> requests, hits, compiles, duplicates, wrong, timed_out;
    std::atomic<std::uint64_t> progress[most_processes];
    std::atomic<std::int32_t> compiling[most_keys];  // who compiles this key; 0: nobody
};

struct options {
    std::filesystem::path root;
    unsigned seconds = 10, processes = 64, keys = 500, child = 0;
    std::uint64_t max_bytes = 400'000;
    bool is_child = false;
};

options parse(int argc, char** argv) {
    options out;
    for (int i = 1; i + 1 < argc; i += 2) {
        std::string const name = argv[i];
        auto const value = static_cast<unsigned>(std::strtoul(argv[i + 1], nullptr, 10));
        if (name == "--root") out.root = argv[i + 1];
        else if (name == "--seconds") out.seconds = value;
        else if (name == "--processes") out.processes = std::min<unsigned>(value, most_processes);
        else if (name == "--keys") out.keys = std::min<unsigned>(value, most_keys);
        else if (name == "--max-bytes") out.max_bytes = value;
        else if (name == "--child") out.child = value, out.is_child = true;
    }
    return out;
}

store::entry_ptr model(unsigned key) { return test::entry_of(key, 200 + key * 37 % (largest_payload - 200)); }

store::entry_ptr compile(unsigned key, board& shared, std::minstd_rand& random) {
    auto const self = static_cast<std::int32_t>(::getpid());
    std::int32_t other = 0;
    if (!shared.compiling[key].compare_exchange_strong(other, self)) {
        if (::kill(other, 0) == 0) ++shared.duplicates;
        shared.compiling[key] = self;
    }
    std::this_thread::sleep_for(std::chrono::microseconds{500 + random() % 3000});
    ++shared.compiles;
    return model(key);
}

// One request, as the engine makes it. False: wrong bytes.
bool request(store::store& store, unsigned key, board& shared, std::minstd_rand& random) {
    auto const right = model(key);
    auto const deadline = base::clock::now() + lead_deadline;
    ++shared.requests;
    for (;;) {
        if (auto const found = store.find(right->about.at, test::expected_of(*right))) {
            ++shared.hits;
            return found.hit->payload == right->payload && found.hit->about.at == right->about.at;
        }
        auto leading = store.try_lead(right->about.at.request, deadline);
        if (leading.outcome() == store::flight_outcome::finished) continue;
        if (leading.outcome() == store::flight_outcome::timed_out) ++shared.timed_out;
        if (leading.leads() && store.find(right->about.at, test::expected_of(*right))) continue;
        auto made = compile(key, shared, random);
        store.put(std::move(made), std::move(leading));
        shared.compiling[key] = 0;
        return true;
    }
}

int run_child(options const& o, board& shared) {
    std::minstd_rand random{static_cast<unsigned>(::getpid()) * 7919u};
    event_log log;
    store::store_options so;
    so.disk = store::disk_options{.root = o.root, .max_bytes = o.max_bytes};
    so.memory.max_bytes = 0;  // everything goes through the directory
    for (auto const until = base::clock::now() + std::chrono::seconds{o.seconds}; base::clock::now() < until;) {
        store::store store{so, log};
        for (int i = 0; i < 40; ++i) {
            // Low keys are popular.
            auto const key = static_cast<unsigned>(random() % o.keys) * static_cast<unsigned>(random() % 100) / 100;
            if (!request(store, key, shared, random)) {
                std::fprintf(stderr, "wrong bytes for key %u\n", key);
                ++shared.wrong;
                return 3;
            }
            ++shared.progress[o.child];
        }
    }
    return 0;
}

class parent {
public:
    parent(options o, char const* program, board& shared)
        : options_{std::move(o)}, shared_{shared}, crowd_{plan_of(options_, program, shared)} {}

    int run() {
        crowd_.begin();
        auto next_look = base::clock::now();
        while (crowd_.goes_on()) {
            std::this_thread::sleep_for(std::chrono::milliseconds{5 + crowd_.random()() % 30});
            crowd_.disturb();
            if (base::clock::now() >= next_look) {
                look();
                next_look = base::clock::now() + 200ms;
            }
        }
        crowd_.stop_all();
        finish();
        return crowd_.failed() ? 1 : 0;
    }

private:
    static test::crowd::plan plan_of(options const& o, char const* program, board const& shared) {
        return {.program = program,
                .processes = o.processes,
                .length = std::chrono::seconds{o.seconds},
                .no_progress_limit = 30s,
                .arguments =
                    [&o](unsigned i, long seconds) {
                        return std::vector<std::string>{"--root",      o.root,
                                                        "--seconds",   std::to_string(seconds),
                                                        "--keys",      std::to_string(o.keys),
                                                        "--max-bytes", std::to_string(o.max_bytes),
                                                        "--child",     std::to_string(i)};
                    },
                .progress = [&shared](unsigned i) { return shared.progress[i].load(); },
                .complaint =
                    [](int status) {
                        if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) return "a process crashed";
                        return WIFEXITED(status) && WEXITSTATUS(status) != 0 ? "a process saw wrong bytes" : nullptr;
                    }};
    }

    void look() {
        if (auto const now = store::maintenance{options_.root}.count()) most_ = std::max(most_, now->bytes);
        if (shared_.wrong != 0) crowd_.fail("wrong bytes");
        crowd_.look();
    }

    void finish() {
        store::maintenance care{options_.root};
        look();
        auto const checked = care.verify(store::maintenance::bad_entries::report);
        if (!checked || !checked->bad.empty()) crowd_.fail("bad entries at the end");
        // Bound, the eighth that others may add while one evicts, and one entry in flight per process.
        auto const slack = options_.max_bytes / 8 + options_.processes * (largest_payload + 600);
        if (most_ > options_.max_bytes + slack) crowd_.fail("the directory grew beyond its bound");
        auto const compiles = shared_.compiles.load();
        std::printf(
            "requests %lu  hits %lu  compiles %lu  concurrent duplicates %lu (%.2f %%)  waits timed out %lu\n",
            static_cast<unsigned long>(shared_.requests), static_cast<unsigned long>(shared_.hits),
            static_cast<unsigned long>(compiles), static_cast<unsigned long>(shared_.duplicates),
            compiles != 0 ? 100.0 * static_cast<double>(shared_.duplicates) / static_cast<double>(compiles) : 0.0,
            static_cast<unsigned long>(shared_.timed_out));
        std::printf(
            "kills %lu  wrong %lu  largest size %lu of %lu allowed + %lu slack  entries at the end %lu, bad %zu\n",
            crowd_.kills(), static_cast<unsigned long>(shared_.wrong), static_cast<unsigned long>(most_),
            static_cast<unsigned long>(options_.max_bytes), static_cast<unsigned long>(slack),
            checked ? static_cast<unsigned long>(checked->checked) : 0ul, checked ? checked->bad.size() : 0);
        if (shared_.requests == 0 || shared_.hits == 0 || compiles == 0) crowd_.fail("nothing happened");
        if (compiles > 100 && shared_.duplicates * 4 > compiles) crowd_.fail("too many duplicate compiles");
        std::printf("%s\n", crowd_.failed() ? "FAILED" : "passed");
    }

    options options_;
    board& shared_;
    test::crowd crowd_;
    std::uint64_t most_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    auto const o = parse(argc, argv);
    if (o.root.empty()) {
        std::fprintf(stderr, "usage: %s --root DIR [--seconds 10] [--processes 64] [--keys 500] [--max-bytes 400000]\n",
                     argv[0]);
        return 64;
    }
    auto board_file = o.root;
    board_file += ".soak";
    if (!o.is_child) std::filesystem::remove(board_file);
    auto* const shared = test::map_board<board>(board_file);
    if (shared == nullptr) return 65;
    if (o.is_child) return run_child(o, *shared);
    return parent{o, argv[0], *shared}.run();
}
