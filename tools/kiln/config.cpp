// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include "base/config.hpp"
#include "remote/settings.hpp"
#include "unknown_variables.hpp"

#include <algorithm>
#include <memory>

namespace kiln::cli {

namespace {

struct config_arguments {
    std::vector<std::string> names;
    bool as_json = false;
    bool as_markdown = false;
};

// As it is written in the file: "max-size".
std::string key_of(base::knob const& k) {
    std::string out{k.variable.substr(std::string_view{"KILN_"}.size())};
    for (auto& c : out) c = c == '_' ? '-' : static_cast<char>(c - 'A' + 'a');
    return out;
}

// Somebody may name it either way, with either stroke.
bool is_called(base::knob const& k, std::string name) {
    if (name == k.variable) return true;
    std::ranges::replace(name, '_', '-');
    return name == key_of(k);
}

result<std::vector<base::knob>> chosen(std::vector<std::string> const& names) {
    auto const all = base::knobs();
    std::vector<base::knob> out;
    if (names.empty()) out.assign(all.begin(), all.end());
    for (auto const& name : names) {
        auto const at = std::ranges::find_if(all, [&](base::knob const& k) { return is_called(k, name); });
        if (at == all.end()) {
            std::vector<std::string> known;
            for (auto const& k : all) known.push_back(name.starts_with("KILN_") ? std::string{k.variable} : key_of(k));
            return fail(errc::invalid_argument, "there is no setting '{}'{}", name, did_you_mean(name, known));
        }
        out.push_back(*at);
    }
    return out;
}

std::string from_in_words(base::setting const& s) {
    return s.from == base::origin::file ? s.file : std::string{base::name_of(s.from)};
}

std::vector<std::string> problems_of(base::config const& config) {
    auto out = config.problems();
    for (auto& unknown : unknown_variables()) out.push_back(std::move(unknown));
    return out;
}

json config_json(base::config const& config, std::vector<base::knob> const& which) {
    json settings = json::array();
    for (auto const& k : which) {
        auto const& s = config.get(k.variable);
        settings.push_back({{"name", k.variable},
                            {"key", key_of(k)},
                            {"value", remote::shown_value(k, s)},
                            {"default", k.preset},
                            {"from", base::name_of(s.from)},
                            {"file", s.file},
                            {"help", k.help}});
    }
    return {{"settings", std::move(settings)}, {"problems", problems_of(config)}};
}

std::string config_table(base::config const& config, std::vector<base::knob> const& which) {
    std::vector<std::vector<std::string>> rows{{"setting", "value", "from", "what it is"}};
    for (auto const& k : which) {
        auto const& s = config.get(k.variable);
        rows.push_back({std::string{k.variable}, s.value.empty() ? "-" : remote::shown_value(k, s), from_in_words(s),
                        std::string{k.help}});
    }
    return table(rows);
}

// The table of docs/guide/settings.md.
std::string config_markdown(std::vector<base::knob> const& which) {
    std::string out = "| variable | in the file | default | what it is |\n|---|---|---|---|\n";
    for (auto const& k : which) {
        auto const preset = k.preset.empty() ? std::string{} : fmt::format("`{}`", k.preset);
        out += fmt::format("| `{}` | `{}` | {} | {} |\n", k.variable, key_of(k), preset, k.help);
    }
    return out;
}

int show_config(config_arguments const& a) {
    auto const which = chosen(a.names);
    if (!which) {
        complain(which.error());
        return misused;
    }
    auto const config = base::config::load();
    if (a.as_markdown) print(config_markdown(*which));
    else if (a.as_json) print_json(config_json(config, *which));
    else print(config_table(config, *which));
    auto const problems = problems_of(config);
    for (auto const& problem : problems) complain(problem);
    return problems.empty() ? ok : failed;
}

}  // namespace

void add_config(CLI::App& root, std::vector<command>& commands) {
    auto arguments = std::make_shared<config_arguments>();
    auto* const app = add_command(root, "config");
    app->add_option("NAME", arguments->names, "which settings");
    auto* const json_flag = app->add_flag("--json", arguments->as_json, "JSON on stdout");
    app->add_flag("--markdown", arguments->as_markdown, "a table for documents")->excludes(json_flag);
    commands.push_back({app, [arguments] { return show_config(*arguments); }});
}

}  // namespace kiln::cli
