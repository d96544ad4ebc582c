// SPDX-License-Identifier: Apache-2.0
#include "base/config.hpp"

#include "base/bytes.hpp"
#include "base/files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln::base {

namespace {

std::string_view trimmed(std::string_view text) {
    auto const from = text.find_first_not_of(" \t\r");
    if (from == text.npos) return {};
    return text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

std::string variable_of(std::string_view key) {
    std::string out = "KILN_";
    for (char const c : key) out += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c == '-' ? '_' : c);
    return out;
}

std::string config_path() {
    if (auto const* path = ::secure_getenv("KILN_CONFIG")) return path;
    if (auto const* xdg = ::secure_getenv("XDG_CONFIG_HOME"); xdg != nullptr && *xdg == '/')
        return fmt::format("{}/kiln/kiln.conf", xdg);
    if (auto const* home = ::secure_getenv("HOME"); home != nullptr && *home == '/')
        return fmt::format("{}/.config/kiln/kiln.conf", home);
    return {};
}

// Whoever can write the settings decides which programs and libraries are loaded. A group that is the owner's alone, as many systems make
// one, is nobody else. Of a file that was named it is for who named it to know whose it is. Empty: fine.
std::string objection_to(std::string const& path, struct ::stat const& about, bool is_named) {
    bool const by_group = (about.st_mode & S_IWGRP) != 0 && about.st_gid != about.st_uid;
    if (by_group || (about.st_mode & S_IWOTH) != 0)
        return fmt::format("{}: others can write it, so that nothing in it counts; chmod go-w {}", path, path);
    if (is_named || about.st_uid == ::geteuid() || about.st_uid == 0) return {};
    return fmt::format(
        "{}: it belongs to user {}, so that nothing in it counts; make it yours, or name it in KILN_CONFIG", path,
        about.st_uid);
}

// nullopt: there is none.
result<std::optional<bytes>> read_settings(std::string const& path, bool is_named) {
    auto const file = open_file(path, O_RDONLY | O_NONBLOCK);
    if (!file && (file.error().status() == ENOENT || file.error().status() == ENOTDIR)) return std::optional<bytes>{};
    if (!file) return file.error();
    struct ::stat about {};
    if (sys().fstat(file->get(), &about) != 0) return io_error(path, errno);
    if (!S_ISREG(about.st_mode)) return fail(errc::invalid_argument, "{}: not a regular file", path);
    if (auto const why = objection_to(path, about, is_named); !why.empty()) return fail(errc::forbidden, "{}", why);
    auto text = read_all(file->get(), std::size_t{1} << 20);
    if (!text) return std::move(text).error().within(path);
    return std::optional{*std::move(text)};
}

// A misspelt value must not become another one in silence.
constexpr std::array switches{"KILN_READONLY",
                              "KILN_DISABLE",
                              "KILN_RECACHE",
                              "KILN_DETERMINISM",
                              "KILN_STRICT",
                              "KILN_REWRITES",
                              "KILN_GPU_OOM_SAFETY",
                              "KILN_GPU_MANAGED_MEMORY",
                              "KILN_TRACE_LAUNCHES",
                              "KILN_NVTX",
                              "KILN_PCH"};

// Read before there is an engine, straight from the environment.
constexpr std::array environment_only{"KILN_EVENTS", "KILN_PROFILE", "KILN_TRACE_LAUNCHES", "KILN_NVTX"};

bool is_switch(std::string_view text) {
    constexpr std::array known{"", "0", "1", "true", "false", "yes", "no", "on", "off"};
    return std::ranges::find(known, text) != known.end();
}

bool is_number(std::string_view text, int least) {
    int number = 0;
    auto const [end, why] = std::from_chars(text.data(), text.data() + text.size(), number);
    return why == std::errc{} && end == text.data() + text.size() && number >= least;
}

std::string preset_of(std::string_view variable) {
    auto const at = std::ranges::find(knobs(), variable, &knob::variable);
    return std::string{at->preset};
}

bool is_known(std::string_view variable) {
    return std::ranges::any_of(knobs(), [&](knob const& k) { return k.variable == variable; });
}

}  // namespace

std::string_view name_of(origin o) noexcept {
    switch (o) {
        case origin::preset: return "default";
        case origin::file: return "file";
        case origin::environment: return "environment";
        case origin::flag: return "flag";
        case origin::call: return "call";
    }
    return "unknown";
}

std::span<knob const> knobs() noexcept {
    static constexpr knob all[] = {
        {"KILN_CACHE_DIR", "",
         "where compiled artifacts are kept (else $XDG_CACHE_HOME/kiln, else ~/.cache/kiln); in /tmp and its like, "
         "kiln-UID there"},
        {"KILN_CACHE_PATH_RO", "", "further cache directories, read only, separated by colons"},
        {"KILN_CACHE_MODE", "private", "private, or shared: others may read the cache as far as the umask lets them"},
        {"KILN_MAX_SIZE", "5G", "bound of the cache directory"},
        {"KILN_READONLY", "", "1: read the cache, write nothing"},
        {"KILN_DISABLE", "", "1: no cache on disk at all"},
        {"KILN_RECACHE", "", "1: compile again and replace what the cache has"},
        {"KILN_BUNDLES", "", "bundle files or directories of them, separated by colons"},
        {"KILN_BUNDLE_KEY", "",
         "public key file: of bundle files only those signed by it are used; what a program carries is part of it"},
        {"KILN_REMOTE", "",
         "servers that many machines share, each a URL and its attributes, separated by spaces; off: none"},
        {"KILN_JIT", "allow", "allow, warn or forbid compiling at run time"},
        {"KILN_WORKERS", "",
         "number of compile processes (default: by cores and free memory; 0: compile in the process)"},
        {"KILN_WORKER", "", "path of the kiln-worker program"},
        {"KILN_WORKER_MEMORY", "4G", "memory bound of one compile process"},
        {"KILN_COMPILE_TIMEOUT", "120",
         "CPU seconds a compile may use; it hangs if it uses none for so long, and ends after ten times as long"},
        {"KILN_PCH", "1", "0: compile processes keep no precompiled headers; what is compiled is the same"},
        {"KILN_TOOLKIT_TRUST", "0",
         "seconds for which a toolkit's headers are taken to say what they said; 0: each is looked at at every "
         "request"},
        {"KILN_CUDA_PATH", "", "CUDA toolkit to use, exclusively"},
        {"KILN_NVRTC", "", "NVRTC library to compile with, a file; its toolkit's headers are those beside it"},
        {"KILN_EVENTS", "", "file that receives every event as a line of JSON"},
        {"KILN_EXECUTION_MODE", "auto", "where operations run: auto, cpu or gpu"},
        {"KILN_DETERMINISM", "", "1: same input, same device, same bits, or an error"},
        {"KILN_STRICT", "", "1: a fallback or an undeclared transfer is an error"},
        {"KILN_REWRITES", "1", "0: operations are never rewritten into cheaper ones"},
        {"KILN_GPU_POOL_LIMIT", "", "most device memory Kiln's pool may hold (default: all of it)"},
        {"KILN_GPU_OOM_SAFETY", "", "1: when device memory runs out, trim, release caches and try again, three times"},
        {"KILN_GPU_MANAGED_MEMORY", "", "1: managed memory instead of a pool, for data larger than the device"},
        {"KILN_NVTX", "", "1: lookups, waits, compiles and loads are ranges for profilers (NVTX, domain \"kiln\")"},
        {"KILN_TRACE_LAUNCHES", "", "1: every launch is an event, for 'kiln trace'; costs a microsecond each"},
        {"KILN_PROFILE", "", "file of what the program needs: read at its start, written as it runs"},
    };
    return all;
}

config config::presets() {
    config out;
    for (auto const& k : knobs()) out.values_[std::string{k.variable}] = {std::string{k.preset}, origin::preset, {}};
    return out;
}

config config::load() {
    auto out = presets();
    out.secure_ = ::getauxval(AT_SECURE) != 0;
    if (out.secure_) return out;

    if (auto const path = config_path(); !path.empty()) {
        bool const is_named = ::secure_getenv("KILN_CONFIG") != nullptr;
        auto text = read_settings(path, is_named);
        if (!text) out.problems_.push_back(text.error().message());
        else if (*text) out.read_lines(as_text(**text), path);
        else if (is_named) out.problems_.push_back(fmt::format("KILN_CONFIG: {}: no such file", path));
    }
    for (auto const& k : knobs()) {
        if (auto const* value = ::secure_getenv(std::string{k.variable}.c_str()))
            out.set(k.variable, value, origin::environment);
    }
    out.check();
    return out;
}

void config::read_lines(std::string_view text, std::string const& path) {
    for (int line = 1; !text.empty(); ++line) {
        auto const end = std::min(text.find('\n'), text.size());
        auto const row = trimmed(text.substr(0, end));
        text.remove_prefix(std::min(text.size(), end + 1));
        if (row.empty() || row.front() == '#') continue;
        auto const equals = row.find('=');
        auto const variable = variable_of(trimmed(row.substr(0, equals)));
        if (equals == row.npos)
            problems_.push_back(fmt::format("{}:{}: '{}' has no '='; write NAME = VALUE", path, line, row));
        else if (!is_known(variable))
            problems_.push_back(
                fmt::format("{}:{}: '{}' is not a known setting; 'kiln config' lists them", path, line, row));
        else if (std::ranges::find(environment_only, variable) != environment_only.end())
            problems_.push_back(
                fmt::format("{}:{}: {} counts only in the environment of a program", path, line, variable));
        else values_[variable] = {std::string{trimmed(row.substr(equals + 1))}, origin::file, path};
    }
}

void config::check() {
    // With the file that says it, where one does.
    auto const whose = [this](std::string_view variable) {
        auto const& of = get(variable);
        return of.from == origin::file ? fmt::format("{}: {}", of.file, variable) : std::string{variable};
    };
    if (auto const& size = text("KILN_MAX_SIZE"); !size.empty() && !parse_size(size)) {
        problems_.push_back(fmt::format("{}: '{}' is not a size; write for example 5G or 512M; 5G is used",
                                        whose("KILN_MAX_SIZE"), size));
        set("KILN_MAX_SIZE", "5G", origin::preset);
    }
    if (auto const& jit = text("KILN_JIT"); jit != "allow" && jit != "warn" && jit != "forbid") {
        problems_.push_back(
            fmt::format("{}: '{}' is not one of allow, warn, forbid; forbid is used", whose("KILN_JIT"), jit));
        values_["KILN_JIT"].value = "forbid";  // who wrote it wanted something else than to allow it
    }
    for (auto const variable : {"KILN_GPU_POOL_LIMIT"}) {
        if (auto const& size = text(variable); !size.empty() && !parse_size(size)) {
            problems_.push_back(fmt::format("{}: '{}' is not a size; write for example 5G or 512M; it is ignored",
                                            whose(variable), size));
            set(variable, "", origin::preset);
        }
    }
    if (auto const& mode = text("KILN_EXECUTION_MODE"); mode != "auto" && mode != "cpu" && mode != "gpu") {
        problems_.push_back(
            fmt::format("{}: '{}' is not one of auto, cpu, gpu; auto is used", whose("KILN_EXECUTION_MODE"), mode));
        set("KILN_EXECUTION_MODE", "auto", origin::preset);
    }
    auto const reject = [&](std::string_view variable, std::string_view what) {
        auto preset = preset_of(variable);
        problems_.push_back(fmt::format("{}: '{}' is not {}; {} is used", whose(variable), text(variable), what,
                                        preset.empty() ? "the default" : preset));
        set(variable, std::move(preset), origin::preset);
    };
    if (auto const& mode = text("KILN_CACHE_MODE"); mode != "private" && mode != "shared")
        reject("KILN_CACHE_MODE", "one of private, shared");
    auto const is_set = [this](std::string_view variable) { return !text(variable).empty(); };
    if (is_set("KILN_WORKERS") && !is_number(text("KILN_WORKERS"), 0)) reject("KILN_WORKERS", "a number from 0");
    if (is_set("KILN_COMPILE_TIMEOUT") && !is_number(text("KILN_COMPILE_TIMEOUT"), 1))
        reject("KILN_COMPILE_TIMEOUT", "a number of seconds from 1");
    if (is_set("KILN_TOOLKIT_TRUST") && !is_number(text("KILN_TOOLKIT_TRUST"), 0))
        reject("KILN_TOOLKIT_TRUST", "a number of seconds from 0");
    if (is_set("KILN_WORKER_MEMORY") && !parse_size(text("KILN_WORKER_MEMORY")))
        reject("KILN_WORKER_MEMORY", "a size such as 4G");
    for (auto const* variable : switches) {
        if (!is_switch(text(variable))) reject(variable, "0 or 1");
    }
}

setting const& config::get(std::string_view variable) const {
    auto const at = values_.find(variable);
    KILN_ASSERT(at != values_.end());
    return at->second;
}

bool config::flag(std::string_view variable) const {
    auto const& value = text(variable);
    return value == "1" || value == "true" || value == "yes" || value == "on";
}

std::optional<std::uint64_t> config::size(std::string_view variable) const { return parse_size(text(variable)); }

std::vector<std::string> config::list(std::string_view variable) const {
    std::vector<std::string> out;
    std::string_view rest = text(variable);
    while (!rest.empty()) {
        auto const colon = std::min(rest.find(':'), rest.size());
        if (colon > 0) out.emplace_back(rest.substr(0, colon));
        rest.remove_prefix(std::min(rest.size(), colon + 1));
    }
    return out;
}

void config::set(std::string_view variable, std::string value, origin from) {
    // From a program's own settings, where a typing error is as likely as in a file.
    if (!is_known(variable)) {
        problems_.push_back(
            fmt::format("'{}' is not a known setting; 'kiln doctor' lists them; it is ignored", variable));
        return;
    }
    values_[std::string{variable}] = {std::move(value), from, {}};
}

void config::try_set(std::string_view variable, std::string value, origin from) {
    if (is_known(variable)) return set(variable, std::move(value), from);
    problems_.push_back(fmt::format("'{}' is not a known setting; it is ignored; see 'kiln doctor'", variable));
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
    std::uint64_t number = 0;
    auto const [end, why] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (why != std::errc{}) return std::nullopt;
    std::string_view suffix{end, static_cast<std::size_t>(text.data() + text.size() - end)};
    int shift = 0;
    if (!suffix.empty() && suffix.front() != 'B') {
        auto const unit = std::string_view{"KMGT"}.find(static_cast<char>(suffix.front() & ~0x20));
        if (unit == std::string_view::npos) return std::nullopt;
        shift = 10 * (static_cast<int>(unit) + 1);
        suffix.remove_prefix(1);
    }
    if (suffix != "" && suffix != "B" && suffix != "iB") return std::nullopt;
    if (number > (~std::uint64_t{0} >> shift)) return std::nullopt;
    return number << shift;
}

}  // namespace kiln::base
