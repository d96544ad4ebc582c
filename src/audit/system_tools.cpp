// SPDX-License-Identifier: Apache-2.0
#include "audit/system_tools.hpp"

#include <algorithm>
#include <array>

namespace kiln::audit {

namespace {

// What no test is called, wherever it lies.
constexpr auto known_anywhere = std::to_array<std::string_view>(
    {"sh", "bash", "dash", "zsh", "env", "git", "gmake", "make", "ninja", "xargs", "kiln-worker", "nvidia-smi"});
constexpr auto tools_that_start_others = std::to_array<std::string_view>(
    {"awk", "bwrap", "chrt", "find", "flock", "ionice", "nice", "nohup", "nsenter", "numactl", "setarch", "setsid",
     "stdbuf", "taskset", "time", "timeout", "unshare"});
// What scripts do by the way. (No 'test': programs of people's own are called so.)
constexpr auto tools_of_scripts =
    std::to_array<std::string_view>({"chmod", "chown", "cmp", "cp", "echo", "false", "kill", "mkfifo", "nproc",
                                     "printf", "pwd", "rmdir", "seq", "stat", "tee", "touch", "true", "whoami"});
constexpr auto small_tools = std::to_array<std::string_view>(
    {"basename", "cat",   "cut",         "date",       "dirname", "expr",     "file",     "getconf", "grep",  "head",
     "hostname", "id",    "kiln-worker", "ldconfig",   "ln",      "locale",   "ls",       "lscpu",   "lspci", "mkdir",
     "mktemp",   "mount", "mv",          "nvidia-smi", "ping",    "readlink", "realpath", "rm",      "sed",   "sleep",
     "sort",     "stty",  "tail",        "tr",         "tty",     "umount",   "uname",    "wc",      "which"});

// Debian's ldconfig is a script that becomes ldconfig.real.
std::string_view tool_name(std::string_view program) noexcept {
    if (program.ends_with(".real")) program.remove_suffix(5);
    return program;
}

template <class Names>
bool is_among(Names const& names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
}

constexpr auto folders_of_the_system =
    std::to_array<std::string_view>({"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"});
// With folders of their own below.
constexpr auto trees_of_the_system = std::to_array<std::string_view>(
    {"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/", "/usr/libexec/", "/usr/local/cuda", "/nix/store/", "/gnu/store/"});

}  // namespace

bool is_small_tool(std::string_view program) noexcept { return is_among(small_tools, tool_name(program)); }

bool is_of_the_system(std::string_view path) noexcept {
    auto const slash = path.rfind('/');
    if (slash == path.npos || is_among(folders_of_the_system, path.substr(0, slash))) return true;
    return std::ranges::any_of(trees_of_the_system, [&](std::string_view tree) { return path.starts_with(tree); });
}

bool is_system_tool(std::string_view path) noexcept {
    auto const name = tool_name(path.substr(path.rfind('/') + 1));
    if (is_among(known_anywhere, name)) return true;
    return is_of_the_system(path) &&
           (is_small_tool(name) || is_among(tools_that_start_others, name) || is_among(tools_of_scripts, name));
}

}  // namespace kiln::audit
