// SPDX-License-Identifier: Apache-2.0
#include "audit_run.hpp"

#include "audit/event_links.hpp"
#include "audit/raised_rights.hpp"
#include "base/config.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "cuda/library_search.hpp"
#include "engine/shipped_folders.hpp"
#include "message.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
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
bool can_be_named(std::filesystem::path const& file) {
    return file.native().find_first_of(": ") == std::string::npos && ::access(file.c_str(), R_OK) == 0;
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

// Why nothing can be recorded; empty when it can.
std::string put_around(audit_run const& what, std::filesystem::path const& to, variables& environment) {
    if (has_raised_rights(what.program.front())) return "the program runs with raised privileges";
    auto const folder = audit_folder();
    auto const recorder = folder / "libkiln-recorder.so";
    if (folder.empty() || ::access(recorder.c_str(), R_OK) != 0) return "this build has no recorder";
    if (auto const taken = environment.find("CUDA_INJECTION64_PATH"))
        return fmt::format("CUDA_INJECTION64_PATH is taken by {}; audit without it", *taken);
    environment.set("CUDA_INJECTION64_PATH", recorder.native());
    if (!environment.find("NVTX_INJECTION64_PATH"))  // where somebody else listens, ranges are theirs
        environment.set("NVTX_INJECTION64_PATH", recorder.native());
    environment.set("KILN_AUDIT_DIR", to.native());
    environment.set("KILN_AUDIT_LEVEL", std::to_string(what.level));
    environment.set("KILN_AUDIT_KEY", std::to_string(std::strtoull(base::random_name().c_str(), nullptr, 16)));
    if (auto const cupti = found_cupti(); !cupti.empty()) environment.set("KILN_AUDIT_CUPTI", cupti);
    auto const companion = folder / "libkiln-companion.so";
    if (what.hook == "none" || !can_be_named(companion) || why_out_of_reach(what.program.front()).is_harmed) return {};
    auto const hooks = environment.find("LD_AUDIT").value_or("");
    environment.set("LD_AUDIT", hooks.empty() ? companion.native() : hooks + ":" + companion.native());
    environment.set("GLIBC_TUNABLES", with_room_for_threads(environment.find("GLIBC_TUNABLES").value_or("")));
    return {};
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
    std::string date, not_recorded;
    int status = 0;
    double wall_s = 0;
    std::uint64_t begun_ns = 0, ended_ns = 0;  // of CLOCK_BOOTTIME, of CLOCK_MONOTONIC
};

std::uint64_t clock_ns(::clockid_t which) {
    ::timespec t{};
    ::clock_gettime(which, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(t.tv_nsec);
}

// Whether a process that began after that time is still there.
bool is_running(std::string const& pid, std::uint64_t begun_ns) {
    auto const read = base::read_file("/proc/" + pid + "/stat");
    if (!read || !*read) return false;
    auto const text = base::as_text(**read);
    auto const name_ends = text.rfind(')');
    if (name_ends == text.npos || name_ends + 2 >= text.size() || text[name_ends + 2] == 'Z') return false;
    std::istringstream rest{std::string{text.substr(name_ends + 2)}};
    std::string field;
    for (int i = 3; i <= 22 && rest; ++i) rest >> field;
    auto const ticks_per_s = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
    auto const began_s = std::strtoull(field.c_str(), nullptr, 10) / ticks_per_s;
    return began_s + 1 >= begun_ns / 1'000'000'000u;  // a number that came twice is another process
}

// Processes that left something in the recording and outlived the program: what they do from now on is not in it.
nlohmann::ordered_json still_running(std::filesystem::path const& in, std::uint64_t begun_ns) {
    std::set<std::string> pids;
    std::error_code ignored;
    for (auto const& entry : std::filesystem::directory_iterator{in, ignored}) {
        auto const name = entry.path().filename().native();
        if (name.starts_with('p') || name.starts_with('c')) pids.insert(name.substr(1, name.find('.') - 1));
    }
    auto out = nlohmann::ordered_json::array();
    for (auto const& pid : pids)
        if (!pid.empty() && pid.find_first_not_of("0123456789") == pid.npos && is_running(pid, begun_ns))
            out.push_back(std::strtoull(pid.c_str(), nullptr, 10));
    return out;
}

void write_about(audit_run const& what, std::filesystem::path const& to, run_facts const& run) {
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
    if (auto const left = still_running(to, run.begun_ns); !left.empty()) about["still_running"] = left;
    if (!run.not_recorded.empty()) about["not_recorded"] = run.not_recorded;
    if (auto const written =
            base::write_output(to / "run.json", base::as_bytes(base::json_text(about, 1) + "\n"), 0600);
        !written && ::access(to.c_str(), F_OK) == 0)  // who took the folder away is told so when it is read
        complain(written.error());
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
        auto temporary = base::temporary_directory::make("kiln-audit");
        recording_place out{temporary ? temporary->path() : std::filesystem::path{}};
        out.remember();
        if (temporary) out.temporary_.emplace(*std::move(temporary));
        else {
            auto const* const named = std::getenv("TMPDIR");
            out.why_none_ = fmt::format("no temporary folder can be made in {} (TMPDIR): {}",
                                        named != nullptr ? named : "/tmp", temporary.error().message());
        }
        return out;
    }
    auto const path = std::filesystem::absolute(keep);
    KILN_CHECK(base::make_directories(path, 0700));
    std::error_code ignored;
    if (!std::filesystem::is_empty(path, ignored))
        return fail(errc::invalid_argument, "{}: it is not empty: a recording gets a directory of its own",
                    path.native());
    ::chmod(path.c_str(), 0700);
    recording_place out{path};
    out.remember();
    return out;
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

result<int> run_audited(audit_run const& what, recording_place const& to) {
    variables const bare;
    auto environment = bare;
    run_facts run{.date = date_now(), .not_recorded = to.why_none(), .begun_ns = clock_ns(CLOCK_BOOTTIME)};
    if (run.not_recorded.empty()) run.not_recorded = put_around(what, to.path(), environment);
    if (!run.not_recorded.empty()) {
        unbroken_by_writing const guard;
        complain("audit: nothing is recorded: " + run.not_recorded);
    }
    auto const begin = std::chrono::steady_clock::now();
    auto ran = run_alone(what.program, environment.all());
    if (!ran && ran.error().status() == E2BIG && run.not_recorded.empty()) {
        ran = run_alone(what.program, bare.all());
        if (ran) {
            unbroken_by_writing const guard;
            run.not_recorded = "there is no room for it beside the program's arguments and environment";
            complain("audit: nothing is recorded: " + run.not_recorded);
        }
    }
    KILN_TRY(run.status, std::move(ran));
    run.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    run.ended_ns = clock_ns(CLOCK_MONOTONIC);
    unbroken_by_writing const guard;
    if (!to.path().empty() && !to.was_replaced()) {
        audit::gather_event_links(to.path());
        write_about(what, to.path(), run);
    }
    return run.status;
}

}  // namespace kiln::cli
