// SPDX-License-Identifier: Apache-2.0
#include "misuse.hpp"

#include <cctype>

namespace kiln::cli {

namespace {

// The command in use: of 'kiln cache stats --jsn' it is stats.
CLI::App const& used_command(CLI::App const& root) {
    auto const* app = &root;
    while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
    return *app;
}

// "kiln cache stats".
std::string called(CLI::App const& app) {
    auto const* const parent = app.get_parent();
    return parent == nullptr ? app.get_name() : fmt::format("{} {}", called(*parent), app.get_name());
}

std::vector<std::string> names_of_commands(CLI::App const& app) {
    std::vector<std::string> out;
    for (auto const* c : all_commands(app)) out.push_back(c->get_name());
    return out;
}

// What the command in use could have been given instead of a word: options for an option, else commands.
std::vector<std::string> possible_words(CLI::App const& app, std::string_view word) {
    if (!word.starts_with('-')) return names_of_commands(app);
    std::vector<std::string> out;
    if (word.size() < 3) return out;  // one letter is near to anything
    for (auto const* o : app.get_options()) {
        for (auto const& name : o->get_lnames()) out.push_back("--" + name);
    }
    return out;
}

std::string unknown_word(CLI::App const& root, std::string_view word) {
    auto const& used = used_command(root);
    auto const name = word.substr(0, word.find('='));
    auto const near = did_you_mean(name, possible_words(used, name));
    auto const commands = names_of_commands(used);
    if (&used == &root)
        return fmt::format(
            "'{}' is not a command or option here{}; 'kiln --help' lists the commands, 'kiln COMMAND --help' the "
            "options of one",
            word, near);
    for (auto const* p = used.get_parent(); word.starts_with('-') && p != nullptr; p = p->get_parent())
        if (p->get_option_no_throw(std::string{name}) != nullptr)
            return fmt::format("'{}' is an option of '{}' and not of '{}'; '{} --help' says which has what", name,
                               called(*p), called(used), called(used));
    if (!commands.empty() && !word.starts_with('-'))
        return fmt::format("'{}' is not a command of '{}'{}; there are: {}", word, called(used), near,
                           fmt::join(commands, ", "));
    return fmt::format("'{}' is not a command or option here{}; '{} --help' lists what is", word, near, called(used));
}

}  // namespace

std::string option_without_value(CLI::App const& root, int count, char const* const* arguments) {
    auto const* app = &root;
    for (int i = 1; i < count; ++i) {
        std::string const word = arguments[i];
        if (word == "--") return {};
        auto const* const option = app->get_option_no_throw(word.substr(0, word.find('=')));
        if (option != nullptr) {
            if (word.ends_with('=') && word.find('=') == word.size() - 1) return word;
            bool const takes_next = word.find('=') == word.npos && option->get_items_expected_min() > 0;
            if (takes_next && ++i < count && std::string_view{arguments[i]} == "--") return word;
        } else if (auto const* const inner = find_command(*app, word)) app = inner;
        // What follows a program's name is the program's.
        else if (!word.starts_with('-') && (app->get_positionals_at_end() || app->get_prefix_command())) return {};
    }
    return {};
}

std::string in_words(CLI::App const& root, CLI::ParseError const& why) {
    // What nobody knows comes before what is missing: a misspelt word is both.
    auto unknown = root.remaining(true);
    // Not what follows "--": that is another program's, where one is asked for.
    unknown.erase(std::ranges::find(unknown, "--"), unknown.end());
    if (!unknown.empty()) return unknown_word(root, unknown.front());
    auto const& used = used_command(root);
    auto const help = fmt::format("'{} --help' shows how it is used", called(used));
    std::string text = why.what();
    auto const name = text.substr(0, text.find(':'));
    if (why.get_name() == "RequiredError") {
        if (auto const commands = names_of_commands(used); !commands.empty())
            return fmt::format("'{}' needs a command: {}", called(used), fmt::join(commands, ", "));
        return fmt::format("'{}' needs {}; {}", called(used), text.substr(0, text.find(' ')), help);
    }
    if (why.get_name() == "ArgumentMismatch") {
        auto const given = used.get_option_no_throw(name);
        bool const is_twice = given != nullptr && given->count() > 1;
        return fmt::format("{} {}; {}", name, is_twice ? "takes one value and has several" : "needs a value", help);
    }
    if (name.size() + 2 < text.size()) {  // "--jobs: Value x not in range 0 to 1024"
        auto& first = text[name.size() + 2];
        first = static_cast<char>(std::tolower(static_cast<unsigned char>(first)));
    }
    return fmt::format("{}; {}", text, help);
}

}  // namespace kiln::cli
