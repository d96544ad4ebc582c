// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"
#include "help_page.hpp"

#include "base/config.hpp"

#include <kiln/version.hpp>

#include <cctype>
#include <memory>
#include <utility>

namespace kiln::cli {

namespace {

// Text in which troff sees nothing but letters; what stands between backquotes is bold.
std::string in_roff(std::string_view text) {
    std::string out;
    bool is_bold = false;
    for (char const c : text) {
        switch (c) {
            case '\\': out += "\\e"; break;
            case '-': out += "\\-"; break;
            case '\'': out += "\\(aq"; break;
            case '^': out += "\\(ha"; break;
            case '~': out += "\\(ti"; break;
            case '`': out += std::exchange(is_bold, !is_bold) ? "\\fR" : "\\fB"; break;
            case '\n': out += "\n\\&"; break;  // a point at the beginning of a line is a command
            default: out += c;
        }
    }
    return "\\&" + out + (is_bold ? "\\fR" : "");
}

std::string section(std::string_view name) { return fmt::format(".SH {}\n", name); }
std::string entry(std::string_view head, std::string_view text) {
    return fmt::format(".TP\n\\fB{}\\fR\n{}\n", in_roff(head), in_roff(text));
}
std::string verbatim(std::string_view lines) { return fmt::format(".nf\n{}\n.fi\n", in_roff(lines)); }

std::string title(std::string_view name) {
    std::string upper{name};
    for (auto& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return fmt::format(".\\\" Made by 'kiln manual' from docs/cli: do not edit.\n.TH \"{}\" 1 \"\" \"kiln {}\" Kiln\n",
                       upper, kiln::version);
}

// For apropos: no point at the end, no capital at the beginning.
std::string name_section(std::string_view name, std::string summary) {
    if (summary.ends_with('.')) summary.pop_back();
    if (!summary.empty()) summary[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(summary[0])));
    return section("NAME") + fmt::format("{} \\- {}\n", in_roff(name).substr(2), in_roff(summary).substr(2));
}

std::string block_text(help_block const& block) {
    switch (block.is) {
        case help_block::kind::heading: return {};  // a section, made by the page
        case help_block::kind::text: return ".PP\n" + in_roff(block.text) + '\n';
        case help_block::kind::example: return ".PP\n.RS 4\n" + verbatim(block.text) + ".RE\n";
        case help_block::kind::entries: break;
    }
    std::string out;
    for (auto const& e : block.entries) out += entry(e.head, e.text);
    return out;
}

// "Of a run alone:", before the options of that.
bool leads(std::vector<help_block>::const_iterator at, std::vector<help_block>::const_iterator end) {
    return at->is == help_block::kind::text && at->text.ends_with(':') && std::next(at) != end &&
           std::next(at)->is == help_block::kind::entries;
}

std::string page_of_command(std::string const& command) {
    auto const page = parse_page(page_text(command));
    auto const name = "kiln-" + command;
    auto out = title(name) + name_section(name, page.summary);
    auto blocks = page.blocks.begin();
    if (blocks != page.blocks.end() && blocks->is == help_block::kind::example)
        out += section("SYNOPSIS") + verbatim((blocks++)->text);
    std::string_view part;  // the section it is in
    for (; blocks != page.blocks.end(); ++blocks) {
        auto next = part;
        if (blocks->is == help_block::kind::heading) next = "OPTIONS";
        else if (part.empty()) next = "DESCRIPTION";
        else if (part == "OPTIONS" && blocks->is != help_block::kind::entries && !leads(blocks, page.blocks.end()))
            next = "NOTES";
        if (next != part) out += section(next);
        part = next;
        out += block_text(*blocks);
    }
    return out + section("SEE ALSO") + ".BR kiln (1)\n";
}

std::string page_of_program(CLI::App const& root) {
    auto out = title("kiln") + name_section("kiln", "compile GPU kernels before they are needed, and keep them") +
               section("SYNOPSIS") + verbatim("kiln COMMAND [ARGUMENT...]\nkiln COMMAND --help\nkiln --version\n");
    out += section("COMMANDS");
    for (auto const* c : all_commands(root)) out += entry("kiln-" + c->get_name() + "(1)", c->get_description());
    out += section("ENVIRONMENT") + ".PP\n" +
           in_roff(
               "Each is also a line of the file below, without KILN_ and in small letters: `max-size = 20G`. The "
               "environment "
               "comes before the file. `kiln config` shows what is in force.") +
           '\n';
    for (auto const& k : base::knobs())
        out += entry(k.variable, k.preset.empty() ? std::string{k.help} : fmt::format("{} [{}]", k.help, k.preset));
    out += entry("KILN_CONFIG", "another file of settings");
    out += section("FILES") +
           entry("~/.config/kiln/kiln.conf", "settings; $XDG_CONFIG_HOME/kiln/kiln.conf where that is set");
    out += entry("~/.cache/kiln", "what was compiled; $XDG_CACHE_HOME/kiln where that is set, or KILN_CACHE_DIR");
    out += section("EXIT STATUS") + entry("0", "all went well") + entry("1", "something did not") +
           entry("2", "the command line could not be read");
    return out + ".PP\n" + in_roff("What is special is said on the pages of the commands.") + '\n';
}

struct manual_arguments {
    std::string command;
    std::string folder;
};

int write_all(CLI::App const& root, std::filesystem::path const& folder) {
    std::filesystem::create_directories(folder);
    auto const write = [&](std::string const& name, std::string const& text) {
        base::write_output(folder / (name + ".1"), base::as_bytes(text)).value();
    };
    write("kiln", page_of_program(root));
    for (auto const* c : all_commands(root)) write("kiln-" + c->get_name(), page_of_command(c->get_name()));
    return ok;
}

int show_manual(CLI::App const& root, manual_arguments const& a) {
    if (!a.folder.empty()) return write_all(root, a.folder);
    if (!a.command.empty() && find_command(root, a.command) == nullptr) {
        complain(no_such_command(root, a.command));
        return misused;
    }
    print(a.command.empty() ? page_of_program(root) : page_of_command(a.command));
    return ok;
}

}  // namespace

void add_manual(CLI::App& root, std::vector<command>& commands) {
    auto arguments = std::make_shared<manual_arguments>();
    auto* const app = add_command(root, "manual");
    auto* const one = app->add_option("COMMAND", arguments->command, "which");
    app->add_option("-o,--output", arguments->folder, "folder for all pages")->excludes(one);
    commands.push_back({app, [&root, arguments] { return show_manual(root, *arguments); }});
}

}  // namespace kiln::cli
