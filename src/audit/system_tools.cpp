// SPDX-License-Identifier: Apache-2.0
#include "audit/system_tools.hpp"

#include <algorithm>
#include <array>

namespace kiln::audit {

namespace {

constexpr auto tools_that_start_others = std::to_array<std::string_view>(
    {"sh", "bash", "dash", "zsh", "awk", "env", "find", "git", "make", "ninja", "xargs"});
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

}  // namespace

bool is_small_tool(std::string_view program) noexcept {
    return std::ranges::find(small_tools, tool_name(program)) != small_tools.end();
}

bool is_system_tool(std::string_view program) noexcept {
    return is_small_tool(program) ||
           std::ranges::find(tools_that_start_others, tool_name(program)) != tools_that_start_others.end() ||
           std::ranges::find(tools_of_scripts, tool_name(program)) != tools_of_scripts.end();
}

}  // namespace kiln::audit
