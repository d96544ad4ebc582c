// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include <kiln/version.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <utility>

namespace {

// How many letters to add, drop or change.
std::size_t letters_apart(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        auto before = std::exchange(row[0], i);
        for (std::size_t j = 1; j <= b.size(); ++j) {
            auto const changed = before + (a[i - 1] == b[j - 1] ? 0 : 1);
            before = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
        }
    }
    return row.back();
}

std::vector<CLI::App const*> all_commands(CLI::App const& root) {
    return root.get_subcommands([](CLI::App const*) { return true; });
}

// The command somebody may have meant; empty where none is near.
std::string nearest_command(CLI::App const& root, std::string_view word) {
    std::pair<std::size_t, std::string> best{std::max<std::size_t>(2, word.size() / 3) + 1, {}};
    for (auto const* c : all_commands(root)) best = std::min(best, {letters_apart(word, c->get_name()), c->get_name()});
    return best.second;
}

int show_help(CLI::App const& root, std::vector<std::string> const& words) {
    using namespace kiln::cli;
    if (words.empty()) {
        // Not root.help(), which is the page of the command in use: 'help'.
        print(root.get_formatter()->make_help(&root, root.get_name(), CLI::AppFormatMode::Normal));
        return ok;
    }
    auto const known = all_commands(root);
    auto const at = std::ranges::find(known, words.front(), [](CLI::App const* c) { return c->get_name(); });
    if (at == known.end()) {
        auto const near = nearest_command(root, words.front());
        complain(fmt::format("there is no command '{}'{}; 'kiln help' lists them", words.front(),
                             near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
        return misused;
    }
    print((*at)->help());
    return ok;
}

void add_all(CLI::App& root, std::vector<kiln::cli::command>& commands) {
    using namespace kiln::cli;
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
    add_run(root, commands);
    add_capsule(root, commands);
    add_record(root, commands);
    add_replay(root, commands);
    add_profile(root, commands);
    add_spatial(root, commands);
    add_status(root, commands);
    add_trace(root, commands);
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
    std::vector<std::string> about;
    auto* const help = root.add_subcommand("help", "Show the commands, or the page of one.");
    help->add_option("COMMAND", about, "which");
    commands.push_back({help, [&] { return show_help(root, about); }});

    try {
        root.parse(count, arguments);
    } catch (CLI::ParseError const& e) {
        // What nobody knows comes before what is missing: a misspelt word is both.
        auto const unknown = root.remaining(true);
        if (e.get_exit_code() != 0 && !unknown.empty()) {
            auto const near = root.get_subcommands().empty() ? nearest_command(root, unknown.front()) : std::string{};
            complain(
                fmt::format("'{}' is not a command or option here{}; 'kiln --help' lists the commands, 'kiln COMMAND "
                            "--help' the options of one",
                            unknown.front(), near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
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
