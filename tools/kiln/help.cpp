// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include <memory>

namespace kiln::cli {

namespace {

int show_help(CLI::App const& root, std::string const& name) {
    if (name.empty()) {
        // Not root.help(), which is the page of the command in use: 'help'.
        print(root.get_formatter()->make_help(&root, root.get_name(), CLI::AppFormatMode::Normal));
        return ok;
    }
    auto const* const known = find_command(root, name);
    if (known == nullptr) {
        complain(no_such_command(root, name));
        return misused;
    }
    print(known->help());
    return ok;
}

}  // namespace

void add_help(CLI::App& root, std::vector<command>& commands) {
    auto about = std::make_shared<std::string>();
    auto* const app = add_command(root, "help");
    app->add_option("COMMAND", *about, "which");
    commands.push_back({app, [&root, about] { return show_help(root, *about); }});
}

}  // namespace kiln::cli
