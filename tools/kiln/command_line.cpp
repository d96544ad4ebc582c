// SPDX-License-Identifier: Apache-2.0
#include "command_line.hpp"

#include "base/standard_streams.hpp"
#include "misuse.hpp"

#include <kiln/version.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <utility>

namespace {

using adding = void (*)(CLI::App&, std::vector<kiln::cli::command>&);

constexpr std::pair<std::string_view, adding> all[] = {
    {"demo", kiln::cli::add_demo},
    {"doctor", kiln::cli::add_doctor},
    {"compile", kiln::cli::add_compile},
    {"build", kiln::cli::add_build},
    {"merge", kiln::cli::add_merge},
    {"inspect", kiln::cli::add_inspect},
    {"verify", kiln::cli::add_verify},
    {"key", kiln::cli::add_key},
    {"cache", kiln::cli::add_cache},
    {"remote", kiln::cli::add_remote},
    {"explain", kiln::cli::add_explain},
    {"list", kiln::cli::add_list},
    {"bench", kiln::cli::add_bench},
    {"calibrate", kiln::cli::add_calibrate},
    {"events", kiln::cli::add_events},
    {"warm", kiln::cli::add_warm},
    {"run", kiln::cli::add_run},
    {"audit", kiln::cli::add_audit},
    {"capsule", kiln::cli::add_capsule},
    {"record", kiln::cli::add_record},
    {"replay", kiln::cli::add_replay},
    {"profile", kiln::cli::add_profile},
    {"spatial", kiln::cli::add_spatial},
    {"status", kiln::cli::add_status},
    {"trace", kiln::cli::add_trace},
    {"config", kiln::cli::add_config},
    {"help", kiln::cli::add_help},
    {"manual", kiln::cli::add_manual},
    {"completion", kiln::cli::add_completion},
};
// These speak of the others.
constexpr std::array<std::string_view, 3> about_all{"help", "manual", "completion"};

// The one that is named, where one is: a program that others wait for spends no millisecond on what it does not need.
void add_commands(CLI::App& root, std::vector<kiln::cli::command>& commands, std::string_view named) {
    auto const only = std::ranges::find(all, named, &std::pair<std::string_view, adding>::first);
    if (only != std::end(all) && std::ranges::find(about_all, named) == about_all.end())
        return only->second(root, commands);
    for (auto const& [name, add] : all) add(root, commands);
}

// An option takes one value each time it is given, and not an empty one: what follows is a file, and not swallowed.
void take_one_value_each(CLI::App& app) {
    static CLI::Validator const is_something{
        [](std::string const& value) { return std::string{value.empty() ? "the value is empty" : ""}; }, {}};
    for (auto* const option : app.get_options()) {
        if (!option->get_positional()) option->allow_extra_args(false)->check(is_something);
    }
    for (auto* const inner : app.get_subcommands([](CLI::App const*) { return true; })) take_one_value_each(*inner);
}

// The command line's exit status. Failures are thrown.
int run_command(int count, char** arguments) {
    using namespace kiln::cli;
    CLI::App root{"Kiln: GPU kernels compiled before they are needed"};
    root.name("kiln");
    root.set_version_flag("--version", fmt::format("kiln {}", kiln::version));
    root.require_subcommand(0, 1);
    root.fallthrough(false);

    std::vector<command> commands;
    add_commands(root, commands, count > 1 ? arguments[1] : "");
    take_one_value_each(root);
    if (auto const option = option_without_value(root, count, arguments); !option.empty())
        throw misuse{fmt::format("{} has no value; give it one, or leave it out", option)};

    try {
        root.parse(count, arguments);
    } catch (CLI::ParseError const& e) {
        if (e.get_exit_code() != 0) throw misuse{in_words(root, e)};
        // Help and version arrive here too.
        std::ostringstream text;
        root.exit(e, text, text);
        print(text.str());
        return ok;
    }
    for (auto const& c : commands) {
        if (c.app->parsed()) return c.run();
    }
    // Nothing was asked for: here is what there is.
    complain("name a command:");
    std::fputs(root.help().c_str(), stderr);
    return misused;
}

}  // namespace

int kiln_command_line(int count, char** arguments) {
    using namespace kiln::cli;
    kiln::base::occupy_standard_streams();
    try {
        auto const status = run_command(count, arguments);
        finish_output();
        return status;
    } catch (misuse const& e) {
        complain(e);
        return misused;
    } catch (kiln::error const& e) {
        complain(e);
        return failed;
    } catch (std::filesystem::filesystem_error const& e) {
        complain(fmt::format("{}: {}", e.path1().native(), e.code().message()));
        return failed;
    } catch (std::bad_alloc const&) {
        complain("not enough memory for it; a bound of the shell (ulimit -v) or of the container counts, too");
        return failed;
    } catch (std::exception const& e) {
        complain(e.what());
        return failed;
    }
}
