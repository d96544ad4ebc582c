// SPDX-License-Identifier: Apache-2.0
#include "audit_run.hpp"

#include "base/config.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "cuda/library_search.hpp"
#include "engine/shipped_folders.hpp"
#include "message.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <ctime>
#include <map>
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

std::map<std::string, std::string> environment_now() {
    std::map<std::string, std::string> out;
    for (char** at = environ; *at != nullptr; ++at) {
        std::string_view const entry{*at};
        if (auto const equals = entry.find('='); equals != entry.npos)
            out.emplace(entry.substr(0, equals), entry.substr(equals + 1));
    }
    return out;
}

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

// Why nothing can be recorded; empty when it can.
std::string put_around(audit_run const& what, std::filesystem::path const& to,
                       std::map<std::string, std::string>& environment) {
    auto const folder = audit_folder();
    auto const recorder = folder / "libkiln-recorder.so";
    if (folder.empty() || ::access(recorder.c_str(), R_OK) != 0) return "this build has no recorder";
    if (auto const taken = environment.find("CUDA_INJECTION64_PATH"); taken != environment.end())
        return fmt::format("CUDA_INJECTION64_PATH is taken by {}; audit without it", taken->second);
    environment["CUDA_INJECTION64_PATH"] = recorder.native();
    environment.emplace("NVTX_INJECTION64_PATH", recorder.native());  // where somebody else listens, ranges are theirs
    environment["KILN_AUDIT_DIR"] = to.native();
    environment["KILN_AUDIT_LEVEL"] = std::to_string(what.level);
    environment["KILN_AUDIT_KEY"] = std::to_string(std::strtoull(base::random_name().c_str(), nullptr, 16));
    if (auto const cupti = found_cupti(); !cupti.empty()) environment["KILN_AUDIT_CUPTI"] = cupti;
    auto const companion = folder / "libkiln-companion.so";
    if (what.hook == "none" || !can_be_named(companion)) return {};
    auto& hooks = environment["LD_AUDIT"];
    hooks = hooks.empty() ? companion.native() : hooks + ":" + companion.native();
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
};

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
        {"environment", settings}};
    if (!run.not_recorded.empty()) about["not_recorded"] = run.not_recorded;
    if (auto const written =
            base::write_output(to / "run.json", base::as_bytes(base::json_text(about, 1) + "\n"), 0600);
        !written)
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
        KILN_TRY(auto temporary, base::temporary_directory::make("kiln-audit"));
        recording_place out{temporary.path()};
        out.temporary_.emplace(std::move(temporary));
        return out;
    }
    auto const path = std::filesystem::absolute(keep);
    KILN_CHECK(base::make_directories(path, 0700));
    std::error_code ignored;
    if (!std::filesystem::is_empty(path, ignored))
        return fail(errc::invalid_argument, "{}: it is not empty: a recording gets a directory of its own",
                    path.native());
    ::chmod(path.c_str(), 0700);
    return recording_place{path};
}

result<int> run_audited(audit_run const& what, std::filesystem::path const& to) {
    auto environment = environment_now();
    run_facts run{.date = date_now(), .not_recorded = put_around(what, to, environment)};
    if (!run.not_recorded.empty()) complain("audit: nothing is recorded: " + run.not_recorded);
    std::vector<std::string> variables;
    for (auto const& [name, value] : environment) variables.push_back(name + "=" + value);
    auto const begin = std::chrono::steady_clock::now();
    KILN_TRY(run.status, run_alone(what.program, variables));
    run.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    write_about(what, to, run);
    return run.status;
}

}  // namespace kiln::cli
