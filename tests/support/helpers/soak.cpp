// SPDX-License-Identifier: Apache-2.0
//
// Many processes on one small cache directory, killed at random, against a reference model.
//
//     kiln-test-soak --root DIR [--seconds 10] [--processes 64] [--keys 500] [--max-bytes 400000]
//
// A key's right bytes can be computed from its number: that is the model. A "compile" is a short sleep. Every process
// finds, leads, waits, compiles and puts; the parent kills and stops some, starts others, and measures the directory.
// Wrong bytes, a process that makes no progress, a directory beyond bound and slack, or a bad entry at the end: status 1.
#include "base/clock.hpp"
#include "store/maintenance.hpp"
#include "store/store.hpp"
#include "support/store_entries.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <new>
#include <random>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

extern char** environ;

namespace {

using namespace kiln;
using namespace std::chrono_literals;

constexpr std::size_t most_processes = 256, most_keys = 4096, largest_payload = 6000;
constexpr auto lead_deadline = 500ms;
constexpr auto no_progress_limit = 30s;

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

board* map_board(std::filesystem::path const& file) {
    int const fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ::ftruncate(fd, sizeof(board)) != 0) return nullptr;
    auto* const at = ::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    return at == MAP_FAILED ? nullptr : static_cast<board*>(at);  // zeros are the right start for every member
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
    parent(options o, char* program, board& shared)
        : options_{std::move(o)}, program_{program}, shared_{shared}, pids_(options_.processes) {
        seen_.resize(options_.processes, {0, base::clock::now()});
    }

    int run() {
        end_ = base::clock::now() + std::chrono::seconds{options_.seconds};
        for (unsigned i = 0; i < options_.processes; ++i) start(i);
        auto next_look = base::clock::now();
        while (base::clock::now() < end_ && !failed_) {
            std::this_thread::sleep_for(std::chrono::milliseconds{5 + random_() % 30});
            disturb();
            if (base::clock::now() >= next_look) {
                look();
                next_look = base::clock::now() + 200ms;
            }
        }
        stop_all();
        finish();
        return failed_ ? 1 : 0;
    }

private:
    void start(unsigned i) {
        auto const left = std::chrono::duration_cast<std::chrono::seconds>(end_ - base::clock::now()).count() + 1;
        std::vector<std::string> text{program_,
                                      "--root",
                                      options_.root,
                                      "--seconds",
                                      std::to_string(std::max<long>(left, 1)),
                                      "--keys",
                                      std::to_string(options_.keys),
                                      "--max-bytes",
                                      std::to_string(options_.max_bytes),
                                      "--child",
                                      std::to_string(i)};
        std::vector<char*> argv;
        for (auto& t : text) argv.push_back(t.data());
        argv.push_back(nullptr);
        if (::posix_spawn(&pids_[i], program_, nullptr, nullptr, argv.data(), environ) != 0)
            fail("cannot start a process");
        seen_[i] = {shared_.progress[i], base::clock::now()};
    }

    void disturb() {
        auto const i = static_cast<unsigned>(random_() % options_.processes);
        if (random_() % 8 == 0) {
            ::kill(pids_[i], SIGSTOP);
            stopped_.push_back(i);
        } else {
            ::kill(pids_[i], SIGKILL);
            int status = 0;
            ::waitpid(pids_[i], &status, 0);
            if (WIFEXITED(status) && WEXITSTATUS(status) == 3) fail("a process saw wrong bytes");
            ++kills_;
            start(i);
        }
        if (stopped_.size() > 4 || random_() % 16 == 0) resume();
    }

    void resume() {
        for (auto const s : stopped_) {
            ::kill(pids_[s], SIGCONT);
            seen_[s].second = base::clock::now();
        }
        stopped_.clear();
    }

    void look() {
        if (auto const now = store::maintenance{options_.root}.count()) most_ = std::max(most_, now->bytes);
        if (shared_.wrong != 0) fail("wrong bytes");
        for (unsigned i = 0; i < options_.processes; ++i) {
            auto const progress = shared_.progress[i].load();
            bool const stopped = std::find(stopped_.begin(), stopped_.end(), i) != stopped_.end();
            if (progress != seen_[i].first || stopped) seen_[i] = {progress, base::clock::now()};
            else if (base::clock::now() - seen_[i].second > no_progress_limit) fail("a process makes no progress");
        }
    }

    void stop_all() {
        resume();
        auto const until = base::clock::now() + 30s;
        for (auto& pid : pids_) {
            int status = 0;
            while (::waitpid(pid, &status, WNOHANG) == 0) {
                if (base::clock::now() > until) {
                    fail("a process does not end");
                    ::kill(pid, SIGKILL);
                    ::waitpid(pid, &status, 0);
                    break;
                }
                std::this_thread::sleep_for(5ms);
            }
            if (WIFEXITED(status) && WEXITSTATUS(status) != 0) fail("a process ended with an error");
        }
    }

    void finish() {
        store::maintenance care{options_.root};
        look();
        auto const checked = care.verify(store::maintenance::bad_entries::report);
        if (!checked || !checked->bad.empty()) fail("bad entries at the end");
        // Bound, the eighth that others may add while one evicts, and one entry in flight per process.
        auto const slack = options_.max_bytes / 8 + options_.processes * (largest_payload + 600);
        if (most_ > options_.max_bytes + slack) fail("the directory grew beyond its bound");
        auto const compiles = shared_.compiles.load();
        std::printf(
            "requests %lu  hits %lu  compiles %lu  concurrent duplicates %lu (%.2f %%)  waits timed out %lu\n",
            static_cast<unsigned long>(shared_.requests), static_cast<unsigned long>(shared_.hits),
            static_cast<unsigned long>(compiles), static_cast<unsigned long>(shared_.duplicates),
            compiles != 0 ? 100.0 * static_cast<double>(shared_.duplicates) / static_cast<double>(compiles) : 0.0,
            static_cast<unsigned long>(shared_.timed_out));
        std::printf(
            "kills %lu  wrong %lu  largest size %lu of %lu allowed + %lu slack  entries at the end %lu, bad %zu\n",
            kills_, static_cast<unsigned long>(shared_.wrong), static_cast<unsigned long>(most_),
            static_cast<unsigned long>(options_.max_bytes), static_cast<unsigned long>(slack),
            checked ? static_cast<unsigned long>(checked->checked) : 0ul, checked ? checked->bad.size() : 0);
        if (shared_.requests == 0 || shared_.hits == 0 || compiles == 0) fail("nothing happened");
        if (compiles > 100 && shared_.duplicates * 4 > compiles) fail("too many duplicate compiles");
        std::printf("%s\n", failed_ ? "FAILED" : "passed");
    }

    void fail(char const* why) {
        std::printf("failed: %s\n", why);
        failed_ = true;
    }

    options options_;
    char* program_;
    board& shared_;
    std::vector<::pid_t> pids_;
    std::vector<std::pair<std::uint64_t, base::time_point>> seen_;
    std::vector<unsigned> stopped_;
    std::minstd_rand random_{12345};
    base::time_point end_{};
    std::uint64_t most_ = 0;
    unsigned long kills_ = 0;
    bool failed_ = false;
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
    auto* const shared = map_board(board_file);
    if (shared == nullptr) return 65;
    if (o.is_child) return run_child(o, *shared);
    return parent{o, argv[0], *shared}.run();
}
