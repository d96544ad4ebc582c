// SPDX-License-Identifier: Apache-2.0
//
// The `kiln` that people start. It stands in front of programs that others wait for, so it is small and linked statically: the
// plain `kiln run` is done here, in less time than the loader needs for the command line. For everything else it becomes the
// command line, kiln-cli, as soon as it knows.
#include "base/own_file.hpp"
#include "message.hpp"
#include "run_session.hpp"

#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <unistd.h>

namespace {

using namespace kiln;

std::optional<std::string> policy_in(std::string_view word) {
    if (word == "allow" || word == "warn" || word == "forbid") return std::string{word};
    return std::nullopt;
}

// nullopt: more than the plain options, or something that makes no sense. The command line knows.
std::optional<cli::run_session> plain_run(std::span<char* const> words) {
    if (words.size() < 2 || std::string_view{words[1]} != "run") return std::nullopt;
    cli::run_session out;
    for (std::size_t i = 2; i < words.size(); ++i) {
        std::string_view const word = words[i];
        bool const has_next = i + 1 < words.size();
        if (word == "-q" || word == "--quiet") out.talk.quiet = true;
        else if (word == "-v" || word == "--verbose") out.talk.verbose = true;
        else if (word == "--verify") out.verify = true;
        else if (word == "--eager") out.eager = true;
        else if (word == "--jit" && has_next && policy_in(words[i + 1])) out.jit = *policy_in(words[++i]);
        else if (word.starts_with("--jit=") && policy_in(word.substr(6))) out.jit = *policy_in(word.substr(6));
        else if (word == "--") {
            out.program.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
            break;
        } else return std::nullopt;
    }
    out.talk.warns = out.jit == "warn";
    if (out.program.empty()) return std::nullopt;
    return out;
}

cli::run_outcome run_and_tell(cli::run_session const& what) {
    auto const settings = base::config::load();
    cli::run_environment surroundings{settings};
    auto out = cli::run_in(surroundings, settings, what);
    if (out.is_started) cli::tell(out.talk, out.log.happenings);
    return out;
}

// Beside this program, as in a build; in libexec, as installed.
int become_command_line(char** words) {
    auto const own = base::file_with(reinterpret_cast<void const*>(&become_command_line)).parent_path();
    std::string looked;
    for (auto const& place : {own / "kiln-cli", own.parent_path() / KILN_INSTALL_LIBEXECDIR / "kiln" / "kiln-cli"}) {
        ::execv(place.c_str(), words);
        looked += fmt::format("{}{} ({})", looked.empty() ? "" : ", ", place.native(), std::strerror(errno));
    }
    cli::complain(fmt::format("the command line was not found: {}", looked));
    return cli::failed;
}

}  // namespace

int main(int count, char** words) {
    auto const session = plain_run({words, static_cast<std::size_t>(count)});
    if (!session) return become_command_line(words);
    try {
        return cli::end_of(run_and_tell(*session));
    } catch (std::exception const& e) {
        cli::complain(e.what());
        return cli::failed;
    }
}
