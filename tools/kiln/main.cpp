// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include <kiln/version.hpp>

#include <cstdio>
#include <filesystem>

namespace {

// The command in use: of 'kiln cache stats --jsn' it is stats.
CLI::App const& used_command(CLI::App const& root) {
    auto const* app = &root;
    while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
    return *app;
}

// What the command in use could have been given instead of a word: options for an option, else commands.
std::vector<std::string> possible_words(CLI::App const& app, std::string_view word) {
    std::vector<std::string> out;
    if (!word.starts_with('-')) {
        for (auto const* c : kiln::cli::all_commands(app)) out.push_back(c->get_name());
        return out;
    }
    if (word.size() < 3) return out;  // one letter is near to anything
    for (auto const* o : app.get_options()) {
        for (auto const& name : o->get_lnames()) out.push_back("--" + name);
    }
    return out;
}

std::string unknown_word(CLI::App const& root, std::string_view word) {
    auto const name = word.substr(0, word.find('='));
    return fmt::format(
        "'{}' is not a command or option here{}; 'kiln --help' lists the commands, 'kiln COMMAND --help' the options "
        "of one",
        word, kiln::cli::did_you_mean(name, possible_words(used_command(root), name)));
}

void add_all(CLI::App& root, std::vector<kiln::cli::command>& commands) {
    using namespace kiln::cli;
    add_demo(root, commands);
    add_doctor(root, commands);
    add_compile(root, commands);
    add_build(root, commands);
    add_merge(root, commands);
    add_inspect(root, commands);
    add_verify(root, commands);
    add_key(root, commands);
    add_cache(root, commands);
    add_remote(root, commands);
    add_explain(root, commands);
    add_list(root, commands);
    add_bench(root, commands);
    add_calibrate(root, commands);
    add_events(root, commands);
    add_warm(root, commands);
    add_run(root, commands);
    add_audit(root, commands);
    add_capsule(root, commands);
    add_record(root, commands);
    add_replay(root, commands);
    add_profile(root, commands);
    add_spatial(root, commands);
    add_status(root, commands);
    add_trace(root, commands);
    add_config(root, commands);
    add_help(root, commands);
    add_manual(root, commands);
    add_completion(root, commands);
}

}  // namespace

int main(int count, char** arguments) {
    using namespace kiln::cli;
    CLI::App root{"Kiln: GPU kernels compiled before they are needed"};
    root.name("kiln");
    root.set_version_flag("--version", fmt::format("kiln {}", kiln::version));
    root.require_subcommand(0, 1);
    root.fallthrough(false);

    std::vector<command> commands;
    // 'kiln run' stands in front of programs that others wait for: not a millisecond for what it does not need.
    bool const only_run = count > 1 && std::string_view{arguments[1]} == "run";
    if (only_run) add_run(root, commands);
    else add_all(root, commands);

    try {
        root.parse(count, arguments);
    } catch (CLI::ParseError const& e) {
        // What nobody knows comes before what is missing: a misspelt word is both.
        auto const unknown = root.remaining(true);
        if (e.get_exit_code() != 0 && !unknown.empty()) {
            complain(unknown_word(root, unknown.front()));
            return misused;
        }
        // Help and version arrive here too, with status 0.
        return root.exit(e) == 0 ? ok : misused;
    }
    try {
        for (auto const& c : commands) {
            if (c.app->parsed()) return c.run();
        }
    } catch (kiln::error const& e) {
        complain(e);
        return failed;
    } catch (std::filesystem::filesystem_error const& e) {
        complain(fmt::format("{}: {}", e.path1().native(), e.code().message()));
        return failed;
    } catch (std::exception const& e) {
        complain(e.what());
        return failed;
    }
    // Nothing was asked for: here is what there is.
    complain("name a command:");
    std::fputs(root.help().c_str(), stderr);
    return misused;
}
