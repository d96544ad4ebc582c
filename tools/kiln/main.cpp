// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include <kiln/version.hpp>

int main(int count, char** arguments) {
    using namespace kiln::cli;
    CLI::App root{"Kiln: GPU kernels compiled before they are needed"};
    root.name("kiln");
    root.set_version_flag("--version", fmt::format("kiln {}", kiln::version));
    root.require_subcommand(1);
    root.fallthrough(false);

    std::vector<command> commands;
    add_demo(root, commands);
    add_doctor(root, commands);
    add_compile(root, commands);
    add_build(root, commands);
    add_inspect(root, commands);
    add_verify(root, commands);
    add_key(root, commands);
    add_cache(root, commands);
    add_explain(root, commands);
    add_list(root, commands);
    add_bench(root, commands);
    add_calibrate(root, commands);
    add_events(root, commands);
    add_warm(root, commands);
    add_record(root, commands);
    add_replay(root, commands);
    add_profile(root, commands);
    add_status(root, commands);
    add_trace(root, commands);

    try {
        root.parse(count, arguments);
    } catch (CLI::ParseError const& e) {
        // What nobody knows comes before what is missing: a misspelt word is both.
        auto const unknown = root.remaining(true);
        if (e.get_exit_code() != 0 && !unknown.empty()) {
            complain(
                fmt::format("'{}' is not a command or option here; 'kiln --help' lists the commands, 'kiln COMMAND "
                            "--help' the options of one",
                            unknown.front()));
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
    } catch (std::exception const& e) {
        complain(e.what());
        return failed;
    }
    return misused;
}
