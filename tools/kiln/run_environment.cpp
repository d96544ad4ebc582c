// SPDX-License-Identifier: Apache-2.0
#include "run_environment.hpp"

#include "base/quick_replace.hpp"
#include "engine/shipped_folders.hpp"
#include "intercept/run_log.hpp"
#include "intercept/shut_in.hpp"
#include "run_child.hpp"
#include "store/store.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

extern char** environ;

namespace kiln::cli {

namespace {

// A folder of ours alone. Made where it is missing; another's, or one that others can write, is not used.
bool is_private(std::filesystem::path const& folder) {
    if (!base::make_directories(folder, 0700)) return false;
    struct ::stat about {};
    return ::lstat(folder.c_str(), &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == ::geteuid() &&
           (about.st_mode & 0077) == 0;
}

// Whoever can rename what is in a folder decides what lies in it.
bool is_closed_to_others(std::filesystem::path const& folder) {
    struct ::stat name {
    }, about{};
    auto const is_trusted = [](struct ::stat const& what) { return what.st_uid == ::geteuid() || what.st_uid == 0; };
    return ::lstat(folder.c_str(), &name) == 0 && ::stat(folder.c_str(), &about) == 0 && is_trusted(name) &&
           is_trusted(about) && (about.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Asked before every program, so not by trying: whoever puts a stand-in there does try.
bool may_execute_in(std::filesystem::path const& folder) {
    struct ::statvfs about {};
    return ::statvfs(folder.c_str(), &about) == 0 && (about.f_flag & (ST_NOEXEC | ST_RDONLY)) == 0 &&
           ::access(folder.c_str(), W_OK | X_OK) == 0;
}

// For the stand-ins and what they say. On a disk that is full nothing would be answered, and nobody would be told.
bool has_room(std::filesystem::path const& folder) {
    constexpr std::uint64_t enough = std::uint64_t{4} << 20;
    struct ::statvfs about {};
    return ::statvfs(folder.c_str(), &about) == 0 && std::uint64_t{about.f_bavail} * about.f_frsize >= enough;
}

// Folders of our own that programs may be run from, best first.
std::vector<std::filesystem::path> private_folders(base::config const& settings) {
    std::vector<std::filesystem::path> places;
    // In the cache, unless that is to be made yet for others to read, too.
    if (auto const kept = store::options_from(settings); kept.disk) {
        auto const& root = kept.disk->root;
        if (kept.disk->readers == store::audience::owner) (void)base::make_directories(root, 0700);
        if (is_closed_to_others(root)) places.push_back(root / "run");
    }
    std::error_code ignored;
    auto const temporary = std::filesystem::temp_directory_path(ignored);
    for (auto const& place : {temporary, std::filesystem::path{"/tmp"}, std::filesystem::path{"/dev/shm"}})
        places.push_back(place / fmt::format("kiln-run-{}", ::geteuid()));
    if (auto const* const runtime = ::getenv("XDG_RUNTIME_DIR"); runtime != nullptr && *runtime == '/')
        places.push_back(std::filesystem::path{runtime} / "kiln-run");
    std::vector<std::filesystem::path> out;
    for (auto& place : places) {
        if (!is_private(place) || !may_execute_in(place)) continue;
        bool const is_last = has_room(place);
        out.push_back(std::move(place));
        if (is_last) break;
    }
    return out;
}

// What runs that were killed have left behind. By age: who is alive in another container cannot be told from here. Once a day:
// where many run at a time there is much to look at.
void sweep(std::filesystem::path const& folder) {
    constexpr auto day = std::chrono::hours{24};
    constexpr auto old = 7 * day;
    auto const now = std::filesystem::file_time_type::clock::now();
    std::error_code failed;
    auto const swept = folder / "swept";
    if (auto const last = std::filesystem::last_write_time(swept, failed); !failed && now - last < day) return;
    (void)base::replace_quickly(swept, {});
    failed.clear();
    for (std::filesystem::directory_iterator at{folder, failed}, end; !failed && at != end; at.increment(failed)) {
        auto const name = at->path().filename().native();
        bool const is_of_a_run = std::ranges::any_of(std::array{"log-", "door-", "known-", "headers-"},
                                                     [&](char const* prefix) { return name.starts_with(prefix); });
        std::error_code ignored;
        if (is_of_a_run && now - at->last_write_time(ignored) > old && !ignored)
            std::filesystem::remove(at->path(), ignored);
    }
    // Stand-ins that were not written to the end.
    failed.clear();
    for (std::filesystem::directory_iterator at{folder / "standins", failed}, end; !failed && at != end;
         at.increment(failed)) {
        std::error_code ignored;
        if (at->path().filename().native().ends_with(".part") && now - at->last_write_time(ignored) > day && !ignored)
            std::filesystem::remove(at->path(), ignored);
    }
    // Capsules that were not unpacked to the end, and those that no run has used for long.
    constexpr auto unused = 30 * day;
    failed.clear();
    for (std::filesystem::directory_iterator at{folder / "capsules", failed}, end; !failed && at != end;
         at.increment(failed)) {
        bool const is_whole = !at->path().filename().native().starts_with("part-");
        std::error_code ignored;
        if (now - at->last_write_time(ignored) > (is_whole ? unused : day) && !ignored)
            std::filesystem::remove_all(at->path(), ignored);
    }
}

// Colons and spaces separate the names in LD_AUDIT and cannot be quoted; what begins with '$' the loader replaces.
bool can_be_named(std::filesystem::path const& file) { return file.native().find_first_of(": $") == std::string::npos; }

// For what the loader must find by name, wherever Kiln and its cache are.
std::filesystem::path nameable_folder() {
    for (auto const* const place : {"/tmp", "/dev/shm"}) {
        auto folder = std::filesystem::path{place} / fmt::format("kiln-run-{}", ::geteuid());
        if (is_private(folder) && may_execute_in(folder) && has_room(folder)) return folder;
    }
    return {};
}

// The hook itself, or a copy of it; empty where there is no place for one.
std::string nameable_hook(std::filesystem::path const& hook, std::filesystem::path const& own) {
    if (can_be_named(hook)) return hook.native();
    auto const folder = can_be_named(own) ? own : nameable_folder();
    struct ::stat about {};
    auto const data = base::read_file(hook);
    if (folder.empty() || !data || !*data || ::stat(hook.c_str(), &about) != 0) return {};
    auto const copy = folder / fmt::format("hook-{:x}-{:x}.so", about.st_mtim.tv_sec, about.st_mtim.tv_nsec);
    auto const there = base::read_file(copy);
    bool const is_there = there && *there && **there == **data;
    return is_there || base::replace_quickly(copy, **data) ? copy.native() : std::string{};
}

std::map<std::string, std::string> current_environment() {
    std::map<std::string, std::string> out;
    for (char** at = environ; *at != nullptr; ++at) {
        std::string_view const entry{*at};
        auto const equals = entry.find('=');
        if (equals != entry.npos) out.emplace(entry.substr(0, equals), entry.substr(equals + 1));
    }
    return out;
}

}  // namespace

std::filesystem::path standin_folder() {
    for (auto const& folder : engine_detail::shipped_folders()) {
        auto const place = folder / "intercept";
        if (::access((place / "hook.so").c_str(), R_OK) == 0) return place;
    }
    return {};
}

run_environment::run_environment(base::config const& settings) : variables_{current_environment()} {
    make_absolute();
    if (auto const folders = private_folders(settings); !folders.empty()) {
        first_ = folders.front();
        private_ = has_room(folders.back()) ? folders.back() : folders.front();
    }
    auto const standins = standin_folder();
    if (standins.empty()) why_not_ = "this build has no stand-ins";
    else if (private_.empty()) why_not_ = "no folder of your own that programs may be run from";
    else put_hook_in(standins);
}

run_environment::~run_environment() {
    std::error_code ignored;
    if (!log_.empty()) std::filesystem::remove(log_, ignored);
    if (!private_.empty()) sweep(private_);
    if (first_ != private_) sweep(first_);
}

// The program may change its directory before it uses them, and its children be in others.
void run_environment::make_absolute() {
    for (auto const* name : {"KILN_CACHE_DIR", "KILN_CACHE_PATH_RO", "KILN_BUNDLES", "KILN_BUNDLE_KEY", "KILN_CONFIG",
                             "KILN_WORKER", "KILN_CUDA_PATH", "KILN_NVRTC", "KILN_EVENTS", "KILN_PROFILE"}) {
        auto const at = variables_.find(name);
        if (at == variables_.end()) continue;
        bool const is_list = name == std::string_view{"KILN_CACHE_PATH_RO"} || name == std::string_view{"KILN_BUNDLES"};
        std::string out;
        for (std::string_view rest = at->second;;) {
            auto const one = rest.substr(0, is_list ? rest.find(':') : rest.npos);
            std::error_code nowhere;
            auto const whole = one.empty() ? std::filesystem::path{} : std::filesystem::absolute(one, nowhere);
            out += nowhere ? one : std::string_view{whole.native()};
            if (one.size() == rest.size()) break;
            out += ':';
            rest.remove_prefix(one.size() + 1);
        }
        at->second = std::move(out);
    }
}

void run_environment::put_hook_in(std::filesystem::path const& standins) {
    auto copies = private_ / "standins";
    if (copies.native().find('$') != std::string::npos) copies = nameable_folder() / "standins";
    hook_ = nameable_hook(standins / "hook.so", private_);
    if (hook_.empty() || !is_private(copies)) {
        why_not_ = hook_.empty() ? "Kiln, its cache and /tmp are where the loader cannot find them"
                                 : "stand-ins cannot be kept";
        return;
    }
    auto& audit = variables_["LD_AUDIT"];
    if ((":" + audit + ":").find(":" + hook_ + ":") == std::string::npos)
        audit = audit.empty() ? hook_ : audit + ":" + hook_;
    auto& tunables = variables_["GLIBC_TUNABLES"];
    tunables = with_room_for_threads(tunables);
    set("KILN_RUN_STANDINS", standins.native());
    set("KILN_RUN_COPIES", copies.native());
    if (auto const filters = intercept::filters_of_this_thread()) set("KILN_RUN_FILTERS", std::to_string(*filters));
    set("KILN_RUN_RECENT", (private_ / "recent-headers").native());
}

void run_environment::take_hook_out() {
    auto const at = variables_.find("LD_AUDIT");
    if (hook_.empty() || at == variables_.end()) return;
    auto& audit = at->second;
    auto const begin = audit.rfind(hook_);  // the last: where there was one before us, it is the same
    if (begin == audit.npos) return;
    audit.erase(begin == 0 ? 0 : begin - 1, hook_.size() + 1);
    if (audit.empty()) variables_.erase(at);
}

void run_environment::keep_log_at(std::filesystem::path const& door) {
    if (private_.empty()) return;
    if (!door.empty()) log_ = intercept::log_at(door);
    else {
        log_ = private_ / fmt::format("log-{}-{}", ::getpid(), base::random_name());
        if (!base::open_file(log_, O_WRONLY | O_CREAT | O_EXCL, 0600)) log_.clear();
    }
    set("KILN_RUN_LOG", log_.native());
}

void run_environment::set(std::string const& variable, std::string value) { variables_[variable] = std::move(value); }

void run_environment::set_where_unset(std::string const& variable, std::string value) {
    variables_.try_emplace(variable, std::move(value));
}

void run_environment::use_capsule(std::filesystem::path const& cache) { set("KILN_RUN_CAPSULE", cache.native()); }

// Each framework has a variable of its own. What a cache holds does not depend on where it is, except as capsule.cpp mends it.
std::vector<std::string> run_environment::use_framework_caches(std::filesystem::path const& folder, framework_use how) {
    std::vector<std::string> used;
    (void)base::make_directories(folder, 0700);
    struct {
        char const* variable;
        char const* place;
    } const places[] = {{"CUPY_CACHE_DIR", "cupy"},
                        {"TRITON_CACHE_DIR", "triton"},
                        {"TORCHINDUCTOR_CACHE_DIR", "inductor"},
                        {"PYTORCH_KERNEL_CACHE_PATH", "torch-kernels"},
                        {"NUMBA_CACHE_DIR", "numba"},
                        {"CUDA_CACHE_PATH", "driver"},
                        {"JAX_COMPILATION_CACHE_DIR", "jax"}};
    for (auto const& one : places) {
        if (how == framework_use::filled && !std::filesystem::exists(folder / one.place)) continue;
        (void)base::make_directories(folder / one.place, 0700);
        auto const ours = (folder / one.place).native();
        set_where_unset(one.variable, ours);
        if (variables_[one.variable] == ours) used.emplace_back(one.place);
    }
    // What belongs to a cache is set for ours alone: in JAX's keys are some of these, and a cache of the user's would be cold.
    auto const is_ours = [&](char const* place) { return std::ranges::find(used, place) != used.end(); };
    if (is_ours("driver")) set_where_unset("CUDA_CACHE_MAXSIZE", "4294967296");
    if (is_ours("jax")) {
        // Everything, however short it took; and no directory of this machine in the keys.
        set_where_unset("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0");
        set_where_unset("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1");
        set_where_unset("JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES", "none");
    }
    // It replaces the __pycache__ folders: only where Python keeps no bytecode itself.
    bool const python_keeps_none = variables_.contains("PYTHONDONTWRITEBYTECODE");
    bool const has_some = std::filesystem::exists(folder / "bytecode");
    if (python_keeps_none && (how == framework_use::recording || has_some) &&
        !variables_.contains("PYTHONPYCACHEPREFIX")) {
        (void)base::make_directories(folder / "bytecode", 0700);
        set("PYTHONPYCACHEPREFIX", (folder / "bytecode").native());
        if (how == framework_use::recording) variables_.erase("PYTHONDONTWRITEBYTECODE");
        used.emplace_back("bytecode");
    }
    return used;
}

std::vector<std::string> run_environment::variables() const {
    std::vector<std::string> out;
    for (auto const& [name, value] : variables_) out.push_back(name + "=" + value);
    return out;
}

}  // namespace kiln::cli
