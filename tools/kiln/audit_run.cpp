// SPDX-License-Identifier: Apache-2.0
#include "audit_run.hpp"

#include "audit/event_links.hpp"
#include "audit/raised_rights.hpp"
#include "base/config.hpp"
#include "base/replace_name.hpp"
#include "base/text.hpp"
#include "cuda/library_search.hpp"
#include "cuda/loader.hpp"
#include "engine/shipped_folders.hpp"
#include "message.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <set>
#include <sstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

extern char** environ;

namespace kiln::cli {

namespace {

// What may go into a recording of the environment: settings that change what is measured, no secrets.
constexpr std::array told{"CUDA_LAUNCH_BLOCKING",
                          "CUDA_CACHE_DISABLE",
                          "CUDA_CACHE_PATH",
                          "CUDA_MODULE_LOADING",
                          "CUDA_VISIBLE_DEVICES",
                          "CUDA_DEVICE_MAX_CONNECTIONS",
                          "PYTORCH_NO_CUDA_MEMORY_CACHING",
                          "PYTORCH_CUDA_ALLOC_CONF",
                          "XLA_PYTHON_CLIENT_PREALLOCATE",
                          "XLA_FLAGS",
                          "TRITON_CACHE_DIR",
                          "CUPY_CACHE_DIR",
                          "KILN_EXECUTION_MODE",
                          "KILN_JIT"};

// The program's variables: ours and, of the rest, all that we got, as we got it, in its order. Programs see entries without a '=' and names
// that come twice.
class variables {
public:
    variables() {
        for (char** at = environ; *at != nullptr; ++at) all_.emplace_back(*at);
    }
    // Of the first of that name, as getenv has it.
    [[nodiscard]] std::optional<std::string> find(std::string_view name) const {
        auto const at = std::ranges::find_if(all_, [&](auto const& e) { return is_of(e, name); });
        return at == all_.end() ? std::nullopt : std::optional{at->substr(name.size() + 1)};
    }
    void set(std::string_view name, std::string const& value) {
        auto entry = std::string{name} + "=" + value;
        auto const at = std::ranges::find_if(all_, [&](auto const& e) { return is_of(e, name); });
        if (at != all_.end()) *at = std::move(entry);
        else all_.push_back(std::move(entry));
    }
    [[nodiscard]] std::vector<std::string> const& all() const { return all_; }

private:
    static bool is_of(std::string_view entry, std::string_view name) {
        return entry.starts_with(name) && entry.substr(name.size()).starts_with('=');
    }
    std::vector<std::string> all_;
};

std::string found_cupti() {
    constexpr std::array<std::string_view, 2> names{"libcupti.so.13", "libcupti.so.12"};
    std::string out;
    cuda::library_search{cuda::search_environment::process(base::config::load())}.visit_candidates(
        names, [&](cuda::candidate const& c) {
            out = c.file.native();
            return true;
        });
    return out;
}

// Colons and spaces separate the names in LD_AUDIT and cannot be quoted.
std::string why_no_companion(audit_run const& what, std::filesystem::path const& file) {
    if (what.hook == "none") return "--hook none was asked for; record without it";
    if (::access(file.c_str(), R_OK) != 0) return file.native() + " cannot be read; install Kiln again";
    if (file.native().find_first_of(": ") != std::string::npos)
        return fmt::format(
            "the loader cannot be told a path with a blank or a colon, {}; install Kiln in another folder",
            file.native());
    if (why_out_of_reach(what.program.front()).is_harmed)
        return "the program cannot be started with it (ThreadSanitizer, or another loader); start it from a shell";
    return {};
}

// The loader and the recorder keep out of a program that has more rights than who starts it.
bool has_raised_rights(std::string const& program) {
    auto const* const path = std::getenv("PATH");
    std::string_view rest = program.find('/') != program.npos ? "" : path == nullptr ? "/usr/bin:/bin" : path;
    for (;;) {
        auto const colon = rest.find(':');
        auto const file =
            rest.empty() ? std::filesystem::path{program} : std::filesystem::path{rest.substr(0, colon)} / program;
        if (std::error_code none; ::access(file.c_str(), X_OK) == 0 && !std::filesystem::is_directory(file, none))
            return audit::raises_rights(file.c_str());
        if (colon == rest.npos) return false;
        rest.remove_prefix(colon + 1);
    }
}

struct put_around_it {
    std::string why_not = {};       // nothing can be recorded; empty: it can
    std::string why_unhooked = {};  // there is no companion, and what to do; empty: there is
    bool has_cupti = false;
};

put_around_it put_around(audit_run const& what, std::filesystem::path const& to, variables& environment) {
    if (has_raised_rights(what.program.front())) return {.why_not = "the program runs with raised privileges"};
    auto const folder = audit_folder();
    auto const recorder = folder / "libkiln-recorder.so";
    if (folder.empty() || ::access(recorder.c_str(), R_OK) != 0) return {.why_not = "this build has no recorder"};
    if (auto const taken = environment.find("CUDA_INJECTION64_PATH"))
        return {.why_not = fmt::format("CUDA_INJECTION64_PATH is taken by {}; audit without it", *taken)};
    put_around_it out;
    environment.set("CUDA_INJECTION64_PATH", recorder.native());
    if (!environment.find("NVTX_INJECTION64_PATH"))  // where somebody else listens, ranges are theirs
        environment.set("NVTX_INJECTION64_PATH", recorder.native());
    environment.set("KILN_AUDIT_DIR", to.native());
    environment.set("KILN_AUDIT_LEVEL", std::to_string(what.level));
    environment.set("KILN_AUDIT_KEY", std::to_string(std::strtoull(base::random_name().c_str(), nullptr, 16)));
    if (auto const cupti = found_cupti(); !cupti.empty()) {
        environment.set("KILN_AUDIT_CUPTI", cupti);
        out.has_cupti = true;
    }
    auto const companion = folder / "libkiln-companion.so";
    out.why_unhooked = why_no_companion(what, companion);
    if (!out.why_unhooked.empty()) return out;
    auto const hooks = environment.find("LD_AUDIT").value_or("");
    environment.set("LD_AUDIT", hooks.empty() ? companion.native() : hooks + ":" + companion.native());
    environment.set("GLIBC_TUNABLES", with_room_for_threads(environment.find("GLIBC_TUNABLES").value_or("")));
    return out;
}

std::string date_now() {
    auto const now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::tm utc{};
    ::gmtime_r(&now, &utc);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return text;
}

double seconds(::timeval const& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; }

struct run_facts {
    std::string date = {}, not_recorded = {}, why_unhooked = {};
    bool has_cupti = false;
    int status = 0;
    double wall_s = 0;
    std::uint64_t begun_ns = 0, ended_ns = 0;  // of CLOCK_BOOTTIME, of CLOCK_MONOTONIC
};

std::uint64_t clock_ns(::clockid_t which) {
    ::timespec t{};
    ::clock_gettime(which, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

// When a process began, of CLOCK_BOOTTIME; nullopt: it is not there (any more).
std::optional<std::uint64_t> beginning_of(std::string const& pid) {
    auto const read = base::read_file("/proc/" + pid + "/stat");
    if (!read || !*read) return std::nullopt;
    auto const text = base::as_text(**read);
    auto const name_ends = text.rfind(')');
    if (name_ends == text.npos || name_ends + 2 >= text.size() || text[name_ends + 2] == 'Z') return std::nullopt;
    std::istringstream rest{std::string{text.substr(name_ends + 2)}};
    std::string field;
    for (int i = 3; i <= 22 && rest; ++i) rest >> field;
    auto const ticks_per_s = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
    return std::strtoull(field.c_str(), nullptr, 10) * (1'000'000'000u / ticks_per_s);
}

// Processes that left something in the recording and outlived the program: what they do from now on is not in it. When they began tells them
// from others who got their numbers since.
void put_still_running(nlohmann::ordered_json& about, std::filesystem::path const& in, std::uint64_t begun_ns) {
    constexpr std::uint64_t tick_ns = 20'000'000;  // and a bit: they begin at one
    std::set<std::string> pids;
    std::error_code ignored;
    for (auto const& entry : std::filesystem::directory_iterator{in, ignored}) {
        auto const name = entry.path().filename().native();
        if (name.starts_with('p') || name.starts_with('c')) pids.insert(name.substr(1, name.find('.') - 1));
    }
    auto const slept_ns = clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC);
    for (auto const& pid : pids) {
        if (pid.empty() || pid.find_first_not_of("0123456789") != pid.npos) continue;
        auto const began_ns = beginning_of(pid);
        if (!began_ns || *began_ns + tick_ns < begun_ns) continue;
        about["still_running"].push_back(std::strtoull(pid.c_str(), nullptr, 10));
        about["still_running_began_ns"].push_back(*began_ns - std::min(*began_ns, slept_ns));
    }
}

nlohmann::ordered_json facts_of(audit_run const& what, run_facts const& run) {
    ::rusage used{};
    ::getrusage(RUSAGE_CHILDREN, &used);
    nlohmann::ordered_json settings = nlohmann::ordered_json::object();
    for (auto const* name : told)
        if (auto const* const value = std::getenv(name)) settings[name] = value;
    nlohmann::ordered_json about{
        {"format", "kiln-recording"},
        {"version", 1},
        {"command", what.program},
        {"label", what.label},
        {"scale", what.scale},
        {"date", run.date},
        {"level", what.level},
        {"wall_s", run.wall_s},
        {"cpu_s", seconds(used.ru_utime) + seconds(used.ru_stime)},
        {"exit_status", WIFEXITED(run.status) ? WEXITSTATUS(run.status) : 128 + WTERMSIG(run.status)},
        {"runner", ::getpid()},
        {"ended_ns", run.ended_ns},
        {"environment", settings}};
    if (!run.not_recorded.empty()) about["not_recorded"] = run.not_recorded;
    else if (!run.why_unhooked.empty()) {
        about["hook"] = "none";
        about["why_no_hook"] = run.why_unhooked;
    }
    return about;
}

bool has_driver() {
    return std::ranges::any_of(cuda::loader_options{}.driver_names, [](std::string const& name) {
        auto* const found = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
        if (found != nullptr) ::dlclose(found);
        return found != nullptr;
    });
}

// What a GPU needs and this machine has not; asked where nothing used one.
void put_missing(nlohmann::ordered_json& about, std::filesystem::path const& in, run_facts const& run) {
    std::error_code ignored;
    for (auto const& entry : std::filesystem::directory_iterator{in, ignored})
        if (entry.path().filename().native().starts_with('p')) return;
    if (!has_driver()) about["missing"].push_back("libcuda.so.1");
    if (!run.has_cupti) about["missing"].push_back("libcupti");
}

std::string text_of(nlohmann::ordered_json const& about) { return base::json_text(about, 1) + "\n"; }

// What it says. Where it cannot be written, that as well: who reads it from us alone knows why.
std::string write_about(nlohmann::ordered_json about, std::filesystem::path const& to, run_facts const& run) {
    put_still_running(about, to, run.begun_ns);
    if (run.not_recorded.empty()) put_missing(about, to, run);
    auto const text = text_of(about);
    auto const written = base::replace_name(to / "run.json", base::as_bytes(text));
    if (written) return text;
    if (::access(to.c_str(), F_OK) == 0) complain(written.error());  // who took it away is told so when it is read
    about["cut_short"] = written.error().message();
    return text_of(about);
}

// While the program runs, so that events never are many names: each may take an inode of a disk that is the program's, too.
class gathering {
public:
    explicit gathering(recording_place const& to) : to_{to} {}
    void until(int end) {
        unbroken_by_writing const guard;
        auto wait = least_wait;
        while (end >= 0 && !is_readable_within(end, wait)) {
            auto const begun_ns = clock_ns(CLOCK_MONOTONIC);
            auto const names = is_changed() ? round(audit::gathering::under_way) : 0;
            // A tenth of the time at most, unless there is more than can wait.
            auto const tenth = static_cast<int>((clock_ns(CLOCK_MONOTONIC) - begun_ns) / 100'000u);
            wait = names > many ? least_wait : std::max(least_wait, tenth);
        }
    }
    void last() { round(audit::gathering::last); }

private:
    static constexpr int least_wait = 100;  // ms
    static constexpr std::size_t many = 300;

    std::size_t round(audit::gathering when) { return audit::gather_event_links(to_.path(), when, stuck_); }
    // Signals come meanwhile: of children that are none of ours where we are the first process of a container.
    static bool is_readable_within(int fd, int ms) {
        auto const until_ns = clock_ns(CLOCK_MONOTONIC) + static_cast<std::uint64_t>(ms) * 1'000'000u;
        for (;;) {
            auto const now_ns = clock_ns(CLOCK_MONOTONIC);
            ::pollfd asked{fd, POLLIN, 0};
            int const left = now_ns < until_ns ? static_cast<int>((until_ns - now_ns) / 1'000'000u) : 0;
            int const said = ::poll(&asked, 1, left);
            if (said >= 0 || errno != EINTR) return said != 0;
        }
    }
    bool is_changed() {
        struct ::stat about {};
        if (::stat(to_.path().c_str(), &about) != 0 || to_.was_replaced()) return false;
        auto const before = std::exchange(seen_, {about.st_mtim.tv_sec, about.st_mtim.tv_nsec});
        return before != seen_;
    }
    recording_place const& to_;
    std::pair<std::int64_t, std::int64_t> seen_{};
    std::set<std::filesystem::path> stuck_;
};

// What processes that outlive the program do is no longer told once run.json is there: of what came before that nothing is left behind.
std::string write_end(audit_run const& what, recording_place const& to, gathering& events, run_facts const& run) {
    unbroken_by_writing const guard;
    auto about = facts_of(what, run);
    if (to.path().empty() || to.was_replaced()) return text_of(about);
    events.last();
    auto out = write_about(std::move(about), to.path(), run);
    events.last();
    return out;
}

}  // namespace

std::filesystem::path audit_folder() {
    for (auto const& folder : engine_detail::shipped_folders()) {
        auto const place = folder / "audit";
        if (::access(place.c_str(), R_OK) == 0) return place;
    }
    return {};
}

result<recording_place> recording_place::make(std::string const& keep) {
    if (keep.empty()) {
        auto made = temporary_recording::make();
        recording_place out{made ? std::filesystem::path{made->path()} : std::filesystem::path{}};
        out.remember();
        if (made) out.temporary_ = std::make_unique<temporary_recording>(*std::move(made));
        else out.why_none_ = made.error().message();
        return out;
    }
    auto const path = std::filesystem::absolute(keep);
    struct ::stat about {};
    if (::stat(path.c_str(), &about) == 0 && about.st_uid != ::geteuid())
        return fail(errc::invalid_argument,
                    "{}: it belongs to another user ({}), who could put anything into it: name a directory that is not "
                    "there yet, or one of your own",
                    path.native(), about.st_uid);
    bool const was_there = ::access(path.c_str(), F_OK) == 0;
    KILN_CHECK(base::make_directories(path, 0700));
    std::error_code ignored;
    bool const was_empty = std::filesystem::is_empty(path, ignored);
    if (was_empty) ::chmod(path.c_str(), 0700);
    if (!was_empty || !std::filesystem::is_empty(path, ignored))  // until then others may have put something into it
        return fail(errc::invalid_argument, "{}: it is not empty: a recording gets a directory of its own",
                    path.native());
    recording_place out{path};
    out.was_made_ = !was_there;
    out.remember();
    return out;
}

void recording_place::take_back() const {
    if (was_made_ && !was_replaced()) ::rmdir(path_.c_str());
}

recording_place::~recording_place() {
    int const why = temporary_ ? temporary_->remove() : 0;
    removal_.reset();
    if (why == 0) return;
    unbroken_by_writing const guard;
    complain(fmt::format("audit: the temporary recording stays in {}, remove it yourself: {}", temporary_->left_at(),
                         std::strerror(why)));
}

void recording_place::remove_on_signals() {
    if (temporary_) removal_ = std::make_unique<removal_by_signals>(*temporary_);
}

// By what it is, whatever a link on the way to it says.
void recording_place::remember() {
    struct ::stat about {};
    if (::stat(path_.c_str(), &about) == 0) is_ = {about.st_dev, about.st_ino};
}
bool recording_place::was_replaced() const {
    struct ::stat about {};
    return ::stat(path_.c_str(), &about) == 0 && is_ != std::pair{about.st_dev, about.st_ino};
}

unbroken_by_writing::unbroken_by_writing() {
    struct ::sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &ignore, &pipe_);
    ::sigaction(SIGXFSZ, &ignore, &size_);
}
unbroken_by_writing::~unbroken_by_writing() {
    ::sigaction(SIGPIPE, &pipe_, nullptr);
    ::sigaction(SIGXFSZ, &size_, nullptr);
}

result<audited_run> run_audited(audit_run const& what, recording_place const& to) {
    variables const bare;
    auto environment = bare;
    run_facts run{.date = date_now(), .not_recorded = to.why_none(), .begun_ns = clock_ns(CLOCK_BOOTTIME)};
    if (run.not_recorded.empty()) {
        auto const around = put_around(what, to.path(), environment);
        run.not_recorded = around.why_not;
        run.why_unhooked = around.why_unhooked;
        run.has_cupti = around.has_cupti;
    }
    if (!run.not_recorded.empty()) {
        unbroken_by_writing const guard;
        complain("audit: nothing is recorded: " + run.not_recorded);
    }
    auto const begin = std::chrono::steady_clock::now();
    gathering events{to};
    beside_program beside;
    std::string about;
    if (run.not_recorded.empty()) beside.meanwhile = [&](int end) { events.until(end); };
    beside.afterwards = [&](int status) {
        run.status = status;
        run.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        run.ended_ns = clock_ns(CLOCK_MONOTONIC);
        about = write_end(what, to, events, run);
    };
    auto ran = run_alone(what.program, environment.all(), beside);
    if (!ran && ran.error().status() == E2BIG && run.not_recorded.empty()) {
        run.not_recorded = "there is no room for it beside the program's arguments and environment";
        ran = run_alone(what.program, bare.all(), beside);
        if (ran) {
            unbroken_by_writing const guard;
            complain("audit: nothing is recorded: " + run.not_recorded);
        }
    }
    if (!ran) return ran.error();
    return audited_run{*ran, std::move(about)};
}

}  // namespace kiln::cli
