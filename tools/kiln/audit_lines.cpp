// SPDX-License-Identifier: Apache-2.0
#include "audit_lines.hpp"

#include "base/replace_name.hpp"
#include "message.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace kiln::cli {

namespace {

constexpr std::size_t most_offsets = 2000;  // of one object at a time
constexpr std::size_t most_output = std::size_t{64} << 20;

// What a command wrote; empty where it could not be run.
std::string output_of(std::vector<std::string> const& command) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return {};
    base::file_descriptor const from{ends[0]};
    base::file_descriptor to{ends[1]};
    ::posix_spawn_file_actions_t files;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files, to.get(), STDOUT_FILENO);
    ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    std::vector<char*> arguments;
    for (auto const& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    pid_t pid = 0;
    int const why = ::posix_spawnp(&pid, arguments.front(), &files, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&files);
    to.reset();
    if (why != 0) return {};
    auto const said = base::read_all(from.get(), most_output);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return said ? std::string{base::as_text(said.value())} : std::string{};
}

void ask(std::string const& object, std::vector<std::string> const& offsets, audit::native_lines& to) {
    for (auto const* const program : {"addr2line", "llvm-addr2line"}) {
        std::vector<std::string> command{program, "-afCi", "-e", object};
        command.insert(command.end(), offsets.begin(), offsets.end());
        auto const said = output_of(command);
        if (said.empty()) continue;
        return audit::take_addr2line(said, object, to);
    }
}

// A file of the recording's own.
void keep(std::filesystem::path const& file, std::string const& text) {
    if (auto const kept = base::replace_name(file, base::as_bytes(text)); !kept) complain(kept.error());
}

}  // namespace

void look_up_lines(std::filesystem::path const& directory, audit::recording& to) {
    auto lines = audit::native_frames_of(to);
    if (lines.empty()) return;
    std::map<std::string, std::vector<std::string>> by_object;
    for (auto const& [frame, known] : lines) {
        auto& offsets = by_object[frame.object];
        if (offsets.size() < most_offsets) offsets.push_back(fmt::format("0x{:x}", frame.offset));
    }
    for (auto const& [object, offsets] : by_object)
        if (object.starts_with('/')) ask(object, offsets, lines);  // no option, and no name to be looked up
    keep(directory / "lines.txt", audit::to_text(lines));
    audit::put_lines(lines, to);
}

void keep_sources(std::filesystem::path const& directory, audit::recording& to) {
    to.sources = audit::read_sources(to);
    if (!to.sources.empty()) keep(directory / "sources.txt", audit::to_text(to.sources));
}

}  // namespace kiln::cli
