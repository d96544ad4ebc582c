// SPDX-License-Identifier: Apache-2.0
#include "command_line.hpp"

#include "misuse.hpp"

#include <kiln/version.hpp>

#include <cstdio>
#include <filesystem>
#include <sstream>

namespace {

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
    // 'kiln run' stands in front of programs that others wait for: not a millisecond for what it does not need.
    bool const only_run = count > 1 && std::string_view{arguments[1]} == "run";
    if (only_run) add_run(root, commands);
    else add_all(root, commands);
    take_one_value_each(root);
    if (auto const option = option_without_value(root, count, arguments); !option.empty())
        throw misuse{fmt::format("{}= has no value; give it one, or leave it out", option)};

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
    hold_closed_descriptors();
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
