// SPDX-License-Identifier: Apache-2.0
// Scripts that complete command lines of kiln, made of the commands and options the program has.
#include "command.hpp"
#include "help_page.hpp"

#include <algorithm>
#include <memory>

namespace kiln::cli {

namespace {

struct completed_word {
    std::string name;
    std::string about;
};

// What can follow a command: "", "cache", "cache stats".
struct command_place {
    std::string words;
    std::vector<completed_word> arguments;  // commands of it; files are completed where there are none
    std::vector<completed_word> options;
};

std::vector<completed_word> options_of(CLI::App const& app, help_page const& page) {
    std::vector<completed_word> out;
    for (auto const* o : app.get_options()) {
        std::vector<std::string> names;
        for (auto const& n : o->get_snames()) names.push_back("-" + n);
        for (auto const& n : o->get_lnames()) names.push_back("--" + n);
        std::string about;
        for (auto const& n : names) about = about.empty() ? words_on(page, n) : about;
        if (about.empty()) about = o->get_description();
        for (auto& n : names) out.push_back({std::move(n), about});
    }
    return out;
}

std::vector<completed_word> commands_of(CLI::App const& app) {
    std::vector<completed_word> out;
    for (auto const* c : all_commands(app)) out.push_back({c->get_name(), c->get_description()});
    return out;
}

std::vector<command_place> places(CLI::App const& root) {
    std::vector<command_place> out{{"", commands_of(root), options_of(root, {})}};
    for (auto const* c : all_commands(root)) {
        auto const page = parse_page(page_text(c->get_name()));
        out.push_back({c->get_name(), commands_of(*c), options_of(*c, page)});
        if (c->get_name() == "help" || c->get_name() == "manual") out.back().arguments = commands_of(root);
        if (c->get_name() == "completion") out.back().arguments = {{"bash", "for bash"}, {"zsh", "for zsh"}};
        for (auto const* sub : all_commands(*c)) {
            out.push_back({c->get_name() + " " + sub->get_name(), {}, options_of(*sub, page)});
            // One page for all of them: its summary is not of one.
            for (auto const& block : page.blocks) {
                auto const at = std::ranges::find(block.entries, sub->get_name(), &help_entry::head);
                if (at == block.entries.end()) continue;
                auto& parent = *std::ranges::find(out, c->get_name(), &command_place::words);
                std::ranges::find(parent.arguments, sub->get_name(), &completed_word::name)->about = at->text;
            }
        }
    }
    return out;
}

std::string joined(std::vector<completed_word> const& words) {
    std::string out;
    for (auto const& w : words) (out += out.empty() ? "" : " ") += w.name;
    return out;
}

// The pattern of all places but the first, for the shells' case.
std::string known_places(std::vector<command_place> const& all) {
    std::string out;
    for (auto const& p : all) {
        if (!p.words.empty()) out += fmt::format("{}'{}'", out.empty() ? "" : "|", p.words);
    }
    return out;
}

std::string bash_script(std::vector<command_place> const& all) {
    std::string cases;
    for (auto const& p : all) {
        cases += fmt::format("        '{}')\n            arguments='{}'\n            options='{}' ;;\n", p.words,
                             joined(p.arguments), joined(p.options));
    }
    return fmt::format(R"(# Completion of kiln for bash, made by 'kiln completion bash': do not edit.
_kiln() {{
    local current=${{COMP_WORDS[COMP_CWORD]}} place= arguments= options= next i
    for ((i = 1; i < COMP_CWORD; ++i)); do
        [[ ${{COMP_WORDS[i]}} == -- ]] && return  # the words of another program
        next="$place${{place:+ }}${{COMP_WORDS[i]}}"
        case $next in
            {}) place=$next ;;
        esac
    done
    case $place in
{}    esac
    if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$current"))
    elif [[ -n $arguments ]]; then
        COMPREPLY=($(compgen -W "$arguments" -- "$current"))
    fi
}}
complete -o default -F _kiln kiln
)",
                       known_places(all), cases);
}

// 'name:about', as _describe takes them.
std::string zsh_words(std::vector<completed_word> const& words) {
    std::string out;
    for (auto const& w : words) {
        out += " '" + w.name + ':';
        for (char const c : w.about)
            out += c == '\'' ? std::string{"'\\''"} : c == ':' ? std::string{"\\:"} : std::string{c};
        out += '\'';
    }
    return out;
}

std::string zsh_script(std::vector<command_place> const& all) {
    std::string cases;
    for (auto const& p : all) {
        cases += fmt::format("        ('{}')\n            arguments=({} )\n            options=({} ) ;;\n", p.words,
                             zsh_words(p.arguments), zsh_words(p.options));
    }
    return fmt::format(R"(#compdef kiln
# Completion of kiln for zsh, made by 'kiln completion zsh': do not edit.
_kiln() {{
    local place= next
    local -a arguments options
    integer i
    for ((i = 2; i < CURRENT; ++i)); do
        if [[ $words[i] == -- ]]; then  # the words of another program
            _files
            return
        fi
        next="$place${{place:+ }}$words[i]"
        case $next in
            ({}) place=$next ;;
        esac
    done
    case $place in
{}    esac
    if [[ $words[CURRENT] == -* ]]; then
        _describe -o option options
    elif (( $#arguments )); then
        _describe command arguments
    else
        _files
    fi
}}
if [[ $funcstack[1] == _kiln ]]; then
    _kiln "$@"
else
    compdef _kiln kiln
fi
)",
                       known_places(all), cases);
}

}  // namespace

void add_completion(CLI::App& root, std::vector<command>& commands) {
    auto shell = std::make_shared<std::string>();
    auto* const app = add_command(root, "completion");
    app->add_option("SHELL", *shell, "bash or zsh")->required()->check(CLI::IsMember({"bash", "zsh"}));
    commands.push_back({app, [&root, shell] {
                            auto const all = places(root);
                            print(*shell == "bash" ? bash_script(all) : zsh_script(all));
                            return ok;
                        }});
}

}  // namespace kiln::cli
