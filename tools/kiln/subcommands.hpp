// SPDX-License-Identifier: Apache-2.0
// A command that is several: `kiln cache stats`, `kiln remote push`. Their page is the command's, and each has --json.
#pragma once

#include "command.hpp"

namespace kiln::cli {

// `Arguments` has `bool as_json`.
template <class Arguments>
class subcommands {
public:
    subcommands(CLI::App& root, std::vector<command>& commands, std::string name)
        : name_{std::move(name)}, all_{add_command(root, name_)}, commands_{commands} {
        all_->require_subcommand(1);
    }
    // `options` adds what this one takes: it is called with its application and its arguments.
    template <class Options>
    void add(std::string const& name, int (*run)(Arguments const&), Options options) {
        auto const arguments = std::make_shared<Arguments>();
        auto* const app = add_command(*all_, name, name_);
        app->add_flag("--json", arguments->as_json, "JSON on stdout");
        options(*app, *arguments);
        commands_.push_back({app, [arguments, run] { return run(*arguments); }});
    }

private:
    std::string name_;
    CLI::App* all_;
    std::vector<command>& commands_;
};

}  // namespace kiln::cli
