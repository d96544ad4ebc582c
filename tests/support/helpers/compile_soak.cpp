// SPDX-License-Identifier: Apache-2.0
//
// Many programs that compile, on one small cache directory, while their headers are edited and they are killed.
//
//     kiln-test-compile_soak --root DIR [--seconds 20] [--processes 64] [--max-bytes 1048576] [--units 4] [--poison 1]
//
// A few units are asked for with several include directories, whose header `q.h` is changed all the time. The content of the
// n-th edit can be computed from its number, and what the compiler makes of each value was compiled at the start, without any
// cache: that is the model. An answer is right if the header it says it was made from was there between question and answer,
// and if its image is, byte for byte, what the compiler makes of that header. Programs have two threads and a worker, or
// compile in their own process; they and their workers are killed, stopped and started; entries are damaged and the directory
// is cleared under them. One wrong answer: status 1. An error is none: a header may be empty for a moment.
//
// --poison puts entries into the directory that are valid and wrong: the check must see them.
#include "base/digest.hpp"
#include "base/files.hpp"
#include "compile/job.hpp"
#include "store/entry_format.hpp"
#include "store/maintenance.hpp"
#include "support/crowd.hpp"

#include <kiln/engine.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <mutex>
#include <random>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace kiln;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr unsigned most_processes = 256, most_units = 16, folders = 4, values = 6;
constexpr std::size_t table_bytes = 8192;  // hardly to be packed: a hundred entries fill a megabyte
constexpr auto no_progress_limit = 300s;   // 64 programs may share two cores with others
constexpr int status_wrong = 3, status_gave_up = 4;

// Shared by all processes through a mapped file. Zeros are the right start for every member.
struct board {
    std::atomic<std::uint64_t> operations, memory_hits, disk_hits, compiles, errors, evictions, wrong, worker_kills;
    std::atomic<std::uint64_t> begun[folders], done[folders];  // edits of each folder's header
    std::atomic<std::uint64_t> progress[most_processes];
    unsigned char images[most_units][values][32];  // what the compiler makes of them
};

struct options {
    fs::path root;
    unsigned seconds = 20, processes = 64, units = 4, child = 0;
    std::uint64_t max_bytes = std::uint64_t{1} << 20;
    bool is_child = false, poison = false;

    [[nodiscard]] fs::path cache() const { return root / "cache"; }
    [[nodiscard]] fs::path folder(unsigned i) const { return root / ("include" + std::to_string(i)); }
};

options parse(int argc, char** argv) {
    options out;
    for (int i = 1; i + 1 < argc; i += 2) {
        std::string const name = argv[i];
        auto const value = static_cast<unsigned>(std::strtoul(argv[i + 1], nullptr, 10));
        if (name == "--root") out.root = argv[i + 1];
        else if (name == "--seconds") out.seconds = value;
        else if (name == "--processes") out.processes = std::min(value, most_processes);
        else if (name == "--units") out.units = std::clamp(value, 1u, most_units);
        else if (name == "--max-bytes") out.max_bytes = value;
        else if (name == "--poison") out.poison = value != 0;
        else if (name == "--child") out.child = value, out.is_child = true;
    }
    return out;
}

// ---- the model

unsigned value_of(unsigned folder, std::uint64_t edit) {
    return 1 + static_cast<unsigned>((edit * 7 + folder * 3) % values);
}

// Contents come back after a while, so that there is something to find.
std::string content_of(unsigned folder, std::uint64_t edit) {
    return "#define V " + std::to_string(value_of(folder, edit)) + "\n// " + std::to_string(edit / values % 32) + "\n";
}

// Reads its header twice, as headers that are lists are read.
unit unit_of(unsigned number, fs::path const& folder) {
    std::minstd_rand random{number + 1};
    std::string table;
    for (std::size_t i = 0; i < table_bytes; ++i) table += std::to_string(random() >> 8 & 255) + ",";
    return {.name = "soak" + std::to_string(number),
            .source =
                "#include <q.h>\nenum { first = V };\n#undef V\n#include <q.h>\n"
                "__constant__ unsigned char table[] = {" +
                table +
                "};\nextern \"C\" __global__ void k(int* x) {\n    __shared__ int s[first * 64];\n"
                "    s[threadIdx.x] = table[x[0] & 8191];\n    __syncthreads();\n"
                "    x[threadIdx.x] = s[63 - threadIdx.x] * V;\n}\n",
            .kernels = {"k"},
            .include_dirs = {folder.native()}};
}

target sm90() { return target::parse("sm_90").value(); }

engine_options settings(options const& o, std::string workers, event_log& log) {
    return {.settings = {{"KILN_CACHE_DIR", o.cache()},
                         {"KILN_MAX_SIZE", std::to_string(o.max_bytes)},
                         {"KILN_WORKERS", std::move(workers)}},
            .events = &log};
}

// ---- one program

class program {
public:
    program(options const& o, board& shared)
        : options_{o}, shared_{shared}, engine_{settings(o, o.child % 4 == 0 ? "0" : "1", log_)} {
        watch_ = log_.subscribe([this](event const& e) {
            if (e.kind == event_kind::evicted) ++shared_.evictions;
            if (e.kind == event_kind::worker_started) worker_ = static_cast<::pid_t>(e.value);
            if (e.kind == event_kind::worker_ended) worker_ = 0;
        });
    }

    int run() {
        auto const until = base::clock::now() + std::chrono::seconds{options_.seconds};
        std::thread other{[&] { work(until, 1); }};
        std::thread saboteur{[&] { kill_workers(until); }};
        work(until, 0);
        other.join();
        saboteur.join();
        return status_;
    }

private:
    void work(base::time_point until, unsigned thread) {
        std::minstd_rand random{static_cast<unsigned>(::getpid()) * 7919u + thread};
        int bad_in_a_row = 0;
        while (base::clock::now() < until && status_ == 0) {
            auto const number = static_cast<unsigned>(random() % options_.units);
            auto const folder = static_cast<unsigned>(random() % folders);
            // Two at once that differ in where their header is.
            auto const second = static_cast<unsigned>(random() % folders);
            bool const one = ask(number, folder, second);
            bad_in_a_row = one ? 0 : bad_in_a_row + 1;
            ++shared_.progress[options_.child];
            if (bad_in_a_row > 200) status_ = status_gave_up;
            if (!one) std::this_thread::sleep_for(20ms);  // failures are remembered for a moment: let it pass
        }
    }

    // False: no answer.
    bool ask(unsigned number, unsigned folder, unsigned second) {
        std::array const where{folder, second};
        std::array<std::uint64_t, 2> before{};
        std::vector<pending<obtained>> asked;
        for (std::size_t i = 0; i < 2; ++i) {
            before[i] = shared_.done[where[i]];
            asked.push_back(engine_.artifact(unit_of(number, options_.folder(where[i])), sm90()));
        }
        bool all = true;
        for (std::size_t i = 0; i < 2; ++i) {
            auto const got = asked[i].wait_sync(5min);
            ++shared_.operations;
            if (!got) {
                ++shared_.errors;
                explain(got.error());
                all = false;
                continue;
            }
            if (got->from == provenance::compiled) ++shared_.compiles;
            else if (got->from == provenance::memory) ++shared_.memory_hits;
            else ++shared_.disk_hits;
            check(*got, number, where[i], before[i], shared_.begun[where[i]]);
        }
        return all;
    }

    void check(obtained const& got, unsigned number, unsigned folder, std::uint64_t from, std::uint64_t to) {
        auto const& a = *got.what;
        std::string_view read;
        for (auto const& d : a.dependencies) {
            if (!d.path.ends_with("q.h") || d.content.empty()) continue;
            if (!read.empty() && d.content != read) return wrong(got, number, folder, "one header with two contents");
            read = d.content;
        }
        auto const image = base::sha256_of(a.image);
        for (auto edit = from; edit <= to; ++edit) {
            if (base::sha256_of(base::as_bytes(content_of(folder, edit))).hex() != read) continue;
            auto const& right = shared_.images[number][value_of(folder, edit) - 1];
            if (std::memcmp(right, image.bytes.data(), image.bytes.size()) == 0) return;
            return wrong(got, number, folder, "another image than the compiler makes of its header");
        }
        wrong(got, number, folder, "made from a header that was not there");
        std::fprintf(stderr, "  edits %lu to %lu\n", static_cast<unsigned long>(from), static_cast<unsigned long>(to));
    }

    void wrong(obtained const& got, unsigned number, unsigned folder, char const* why) {
        ++shared_.wrong;
        status_ = status_wrong;
        std::fprintf(stderr, "wrong: unit %u, folder %u, from %s, key %.16s: %s\n", number, folder,
                     std::string{name_of(got.from)}.c_str(), got.what->key.c_str(), why);
    }

    // A header that is empty for a moment may be the reason. A unit whose compile processes were killed again and again is left
    // alone by this program from then on: another one takes its place.
    void explain(error const& e) {
        if (e.code() == errc::compile_failed) return;
        int fine = 0;
        if (status_.compare_exchange_strong(fine, status_gave_up))
            std::fprintf(stderr, "error: %s\n", e.message().c_str());
    }

    void kill_workers(base::time_point until) {
        std::minstd_rand random{static_cast<unsigned>(::getpid())};
        auto const mean = std::clamp(options_.seconds, 40u, 900u) * 1000 / 10;
        auto next = base::clock::now();
        while (status_ == 0) {
            next += std::chrono::milliseconds{random() % (2 * mean)};
            while (base::clock::now() < std::min(next, until) && status_ == 0) std::this_thread::sleep_for(50ms);
            if (base::clock::now() >= until) return;
            auto const pid = worker_.load();
            if (pid <= 0 || !is_child_of_ours(pid)) continue;
            ::kill(pid, SIGKILL);
            ++shared_.worker_kills;
        }
    }
    static bool is_child_of_ours(::pid_t pid) {
        std::ifstream in{"/proc/" + std::to_string(pid) + "/stat"};
        std::string number, name, state;
        ::pid_t parent = 0;
        in >> number >> name >> state >> parent;
        return name == "(kiln-worker)" && parent == ::getpid();
    }

    options const& options_;
    board& shared_;
    event_log log_;
    event_log::subscription watch_;
    std::atomic<::pid_t> worker_{0};
    std::atomic<int> status_{0};
    engine engine_;
};

// ---- everything that happens to them

class parent {
public:
    parent(options o, char const* program, board& shared)
        : options_{std::move(o)}, shared_{shared}, crowd_{plan_of(program)} {}

    int run() {
        for (unsigned f = 0; f < folders; ++f) edit(f);
        if (!learn()) return 1;
        crowd_.begin();
        auto next_look = base::clock::now();
        while (crowd_.goes_on()) {
            std::this_thread::sleep_for(std::chrono::milliseconds{20 + crowd_.random()() % 200});
            edit(static_cast<unsigned>(crowd_.random()() % folders));
            if (crowd_.random()() % 3 == 0) crowd_.disturb();
            crowd_.reap();
            if (options_.poison) poison();
            else if (crowd_.random()() % 40 == 0) damage();
            if (crowd_.random()() % 400 == 0) (void)store::maintenance{options_.cache()}.clear();
            if (base::clock::now() >= next_look) {
                look();
                next_look = base::clock::now() + 1s;
            }
        }
        crowd_.stop_all();
        finish();
        return crowd_.failed() ? 1 : 0;
    }

private:
    test::crowd::plan plan_of(char const* program) {
        return {.program = program,
                .processes = options_.processes,
                .length = std::chrono::seconds{options_.seconds},
                .no_progress_limit = no_progress_limit,
                .arguments =
                    [this](unsigned i, long seconds) {
                        return std::vector<std::string>{"--root",      options_.root,
                                                        "--seconds",   std::to_string(seconds),
                                                        "--units",     std::to_string(options_.units),
                                                        "--max-bytes", std::to_string(options_.max_bytes),
                                                        "--child",     std::to_string(i)};
                    },
                .progress = [this](unsigned i) { return shared_.progress[i].load(); },
                .complaint = [this](int status) { return judge(status); }};
    }

    char const* judge(int status) {
        if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) return "a program crashed";
        if (WIFEXITED(status) && WEXITSTATUS(status) == status_wrong) return "a program was given a wrong kernel";
        if (WIFEXITED(status) && WEXITSTATUS(status) == status_gave_up) ++gave_up_;
        return nullptr;
    }

    // What the compiler makes of every unit and value, without a cache.
    bool learn() {
        event_log log;
        auto how = settings(options_, "2", log);
        how.settings.emplace_back("KILN_DISABLE", "1");
        engine with{how};
        auto const folder = options_.root / "model";
        for (unsigned v = 0; v < values; ++v) {
            fs::create_directories(folder / std::to_string(v));
            std::ofstream{folder / std::to_string(v) / "q.h"} << "#define V " << v + 1 << "\n";
        }
        std::vector<pending<obtained>> all;
        for (unsigned u = 0; u < options_.units; ++u) {
            for (unsigned v = 0; v < values; ++v)
                all.push_back(with.artifact(unit_of(u, folder / std::to_string(v)), sm90()));
        }
        for (std::size_t i = 0; i < all.size(); ++i) {
            auto const made = all[i].wait_sync();
            if (!made) {
                std::printf("failed: %s\n", made.error().message().c_str());
                return false;
            }
            auto const image = base::sha256_of(made->what->image);
            std::memcpy(shared_.images[i / values][i % values], image.bytes.data(), image.bytes.size());
        }
        return true;
    }

    void edit(unsigned folder) {
        auto const number = shared_.begun[folder] + 1;
        auto const text = content_of(folder, number);
        auto const file = options_.folder(folder) / "q.h";
        fs::create_directories(options_.folder(folder));
        shared_.begun[folder] = number;
        if (crowd_.random()() % 4 != 0) {  // as editors do it
            auto const beside = options_.folder(folder) / "q.h.new";
            std::ofstream{beside} << text;
            fs::rename(beside, file);
        } else {  // as shells do it: empty for a moment
            int const fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
            [[maybe_unused]] auto const written = ::write(fd, text.data(), text.size());
            ::close(fd);
        }
        shared_.done[folder] = number;
        ++edits_;
    }

    // One byte of one entry, where it lies.
    void damage() {
        auto const all = store::maintenance{options_.cache()}.scan();
        if (!all || all->files.empty()) return;
        auto const& one = all->files[crowd_.random()() % all->files.size()];
        int const fd = ::open(one.path.c_str(), O_RDWR | O_CLOEXEC);
        if (fd < 0) return;
        auto const at = static_cast<::off_t>(crowd_.random()() % std::max<std::uint64_t>(one.bytes, 1));
        unsigned char byte = 0;
        if (::pread(fd, &byte, 1, at) == 1) {
            byte ^= 0x10;
            damaged_ += ::pwrite(fd, &byte, 1, at) == 1 ? 1 : 0;
        }
        ::close(fd);
    }

    // Every check of the store passes, and the image is another.
    void poison() {
        auto const all = store::maintenance{options_.cache()}.scan();
        if (!all) return;
        for (auto const& one : all->files) {
            auto file = base::read_file(one.path);
            if (!file || !*file) continue;
            auto const entry = store::decode_entry(**std::move(file)).what;
            if (!entry) continue;
            auto made = compile::decode_artifact(entry->payload);
            if (!made || made->image.empty() || made->log == "poisoned") continue;
            made->image.back() ^= std::byte{1};
            made->log = "poisoned";
            entry->payload = compile::encode(*made);
            (void)base::replace_file(one.path, store::encode_entry(*entry).value());
        }
    }

    void look() {
        if (auto const now = store::maintenance{options_.cache()}.count()) most_ = std::max(most_, now->bytes);
        if (shared_.wrong != 0) crowd_.fail("wrong answers");
        crowd_.look();
    }

    void finish() {
        look();
        auto const checked = store::maintenance{options_.cache()}.verify(store::maintenance::bad_entries::report);
        if (!checked || checked->bad.size() > damaged_) crowd_.fail("more bad entries than were damaged");
        // Bound, the eighth that others may add while one evicts, and one entry in flight per thread.
        auto const slack = options_.max_bytes / 8 + options_.processes * 2 * (table_bytes + 8192);
        if (most_ > options_.max_bytes + slack) crowd_.fail("the directory grew beyond its bound");
        auto const number = [](std::atomic<std::uint64_t> const& n) { return static_cast<unsigned long>(n.load()); };
        std::printf(
            "operations %lu  kills %lu (and %lu of workers)  stops %lu  edits %lu  compiles %lu  hits %lu (memory %lu, "
            "disk %lu)  evictions %lu  damaged %lu  errors %lu (%lu programs gave up)  wrong "
            "%lu\n",
            number(shared_.operations), crowd_.kills(), number(shared_.worker_kills), crowd_.stops(), edits_,
            number(shared_.compiles), number(shared_.memory_hits) + number(shared_.disk_hits),
            number(shared_.memory_hits), number(shared_.disk_hits), number(shared_.evictions), damaged_,
            number(shared_.errors), gave_up_, number(shared_.wrong));
        std::printf("seconds %u  processes %u  largest size %lu of %lu allowed + %lu slack  entries at the end %lu\n",
                    options_.seconds, options_.processes, static_cast<unsigned long>(most_),
                    static_cast<unsigned long>(options_.max_bytes), static_cast<unsigned long>(slack),
                    checked ? static_cast<unsigned long>(checked->checked) : 0ul);
        if (shared_.compiles == 0 || shared_.disk_hits == 0) crowd_.fail("nothing happened");
        if (gave_up_ > crowd_.kills() + shared_.worker_kills) crowd_.fail("programs get no answer any more");
        if (shared_.errors * 2 > shared_.operations) crowd_.fail("more errors than answers");
        std::printf("%s\n", crowd_.failed() ? "FAILED" : "passed");
    }

    options options_;
    board& shared_;
    unsigned long edits_ = 0, damaged_ = 0, gave_up_ = 0;
    test::crowd crowd_;
    std::uint64_t most_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    auto const o = parse(argc, argv);
    if (o.root.empty()) {
        std::fprintf(
            stderr,
            "usage: %s --root DIR [--seconds 20] [--processes 64] [--max-bytes 1048576] [--units 4] [--poison 1]\n",
            argv[0]);
        return 64;
    }
    if (!o.is_child) {
        fs::remove_all(o.root);
        fs::create_directories(o.root);
    }
    auto* const shared = test::map_board<board>(o.root / "board");
    if (shared == nullptr) return 65;
    if (!o.is_child) return parent{o, argv[0], *shared}.run();
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    return program{o, *shared}.run();
}
