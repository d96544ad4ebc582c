// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include "base/files.hpp"
#include "warmup/profile_file.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <spawn.h>
#include <sys/wait.h>

extern char** environ;

namespace kiln::cli {

namespace {

// As a shell says it.
constexpr int not_startable = 126, not_there = 127;

struct record_arguments {
    std::string output;
    std::vector<std::string> program;
    bool append = false;
};

// The program's own exit status, 128 + signal if it was killed.
result<int> run_program(std::vector<std::string> const& program) {
    std::vector<char*> arguments;
    for (auto const& a : program) arguments.push_back(const_cast<char*>(a.c_str()));
    arguments.push_back(nullptr);
    pid_t pid = 0;
    if (int const why = ::posix_spawnp(&pid, arguments.front(), nullptr, nullptr, arguments.data(), environ); why != 0)
        return fail(errc::not_found, "{}: {}", program.front(), std::strerror(why)).with_status(why);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) return io_error("waitpid", errno);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run(record_arguments const& a) {
    check_output(a.output).value();
    std::filesystem::path const output = std::filesystem::absolute(a.output);
    warmup::profile all;
    if (auto before = warmup::read_profile(output)) {
        if (a.append) all = *std::move(before);
    } else if (before.error().code() != errc::not_found) {
        complain(before.error());
        complain(fmt::format("{} is left as it is: name another file, or remove it", a.output));
        return failed;
    }
    // Beside the output, so that nothing is lost if this command itself is killed: 'kiln profile merge' reads it.
    auto const folder = std::filesystem::path{output.native() + ".recording"};
    base::make_directories(folder, 0755).value();
    ::setenv("KILN_PROFILE", (folder / "p").c_str(), 1);
    auto const ran = run_program(a.program);
    if (!ran) {
        std::error_code ignored;
        std::filesystem::remove_all(folder, ignored);
        complain(ran.error());
        return ran.error().status() == ENOENT ? not_there : not_startable;
    }
    auto const status = *ran;
    std::size_t processes = 0;
    bool unread = false;
    for (auto const& file : warmup::recordings_of(folder / "p")) {
        auto one = warmup::read_profile(file);
        if (one) all.merge(*one), ++processes;
        else complain(one.error()), unread = true;
    }
    if (unread) complain(fmt::format("what was recorded is left in {}", folder.native()));
    auto const tidy = [&] {
        std::error_code ignored;
        if (!unread) std::filesystem::remove_all(folder, ignored);
    };
    if (all.uses.empty()) {
        tidy();
        complain(fmt::format(
            "{}: nothing was recorded, and no profile written. What a program asks for is recorded, "
            "not what it only demands; does it use libkiln? One that calls NVRTC itself is for 'kiln run --record'",
            a.program.front()));
        return status;
    }
    warmup::write_profile(output, all).value();
    tidy();
    complain(fmt::format("{}: {} of {}", a.output, count_of(all.recipes.size(), "recipe"),
                         count_of(processes, "process", "processes")));
    return status;
}

}  // namespace

void add_record(CLI::App& root, std::vector<command>& commands) {
    auto arguments = std::make_shared<record_arguments>();
    auto* const app = add_command(root, "record");
    app->add_option("-o,--output", arguments->output, "profile to write")->required();
    app->add_flag("--append", arguments->append, "add to the profile");
    app->add_option("COMMAND", arguments->program, "program and its arguments")->required();
    app->prefix_command(false);
    app->positionals_at_end();
    commands.push_back({app, [arguments] { return run(*arguments); }});
}

}  // namespace kiln::cli
