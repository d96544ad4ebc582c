// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include "base/text.hpp"
#include "embedded/cli_docs.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <numeric>
#include <set>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace kiln::cli {

namespace {

// Help is the page itself: one source for the documentation and the program.
class page_formatter : public CLI::Formatter {
public:
    explicit page_formatter(std::string page) : page_{std::move(page)} {}
    std::string make_help(CLI::App const*, std::string, CLI::AppFormatMode) const override { return page_text(page_); }

private:
    std::string page_;
};

error output_lost(int why) { return io_error("cannot write to standard output", why); }

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

}  // namespace

namespace {

std::string_view page_called(std::string_view name) {
    for (auto const& file : embedded::cli_docs()) {
        if (file.name.ends_with(".md") && file.name.substr(0, file.name.size() - 3) == name) return file.data;
    }
    return {};
}

}  // namespace

std::string page_text(std::string const& page) {
    auto const text = page_called(page);
    return text.empty() ? fmt::format("no page '{}' in this build\n", page) : std::string{text};
}

std::string summary_of(std::string const& page) {
    auto const text = page_called(page);
    auto const from = text.find_first_not_of('\n', text.find('\n'));
    return std::string{from == text.npos ? std::string_view{} : text.substr(from, text.find('\n', from) - from)};
}

CLI::App* add_command(CLI::App& parent, std::string const& name, std::string const& page) {
    auto const& source = page.empty() ? name : page;
    auto* const app = parent.add_subcommand(name, summary_of(source));
    app->formatter(std::make_shared<page_formatter>(source));
    return app;
}

std::vector<CLI::App const*> all_commands(CLI::App const& parent) {
    return parent.get_subcommands([](CLI::App const*) { return true; });
}

CLI::App const* find_command(CLI::App const& root, std::string_view name) {
    auto const known = all_commands(root);
    auto const at = std::ranges::find(known, name, [](CLI::App const* c) { return c->get_name(); });
    return at == known.end() ? nullptr : *at;
}

std::string no_such_command(CLI::App const& root, std::string_view name) {
    std::vector<std::string> names;
    for (auto const* c : all_commands(root)) names.push_back(c->get_name());
    return fmt::format("there is no command '{}'{}; 'kiln help' lists them", name, did_you_mean(name, names));
}

std::string did_you_mean(std::string_view word, std::vector<std::string> const& names) {
    std::pair<std::size_t, std::string> best{std::max<std::size_t>(2, word.size() / 3) + 1, {}};
    for (auto const& name : names) best = std::min(best, {letters_apart(word, name), name});
    return best.second.empty() ? std::string{} : fmt::format("; did you mean '{}'?", best.second);
}

void print_json(json const& data) { print(base::json_text(data, 2) + "\n"); }
void print(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) throw output_lost(errno);
}
void finish_output() {
    if (std::fflush(stdout) != 0) throw output_lost(errno);
}

result<void> check_output(std::filesystem::path const& file) {
    if (file == "-") return fail(errc::invalid_argument, "a bundle is not written to standard output; name a file");
    return base::check_output(file, base::streams::refused);
}

result<void> check_text_output(std::string const& to) {
    if (to == "-") return {};
    return base::check_output(to, base::streams::allowed);
}

namespace {

// Which file a name means: links to it, and other names of it, mean the same.
std::optional<std::pair<::dev_t, ::ino_t>> file_at(std::string const& name) {
    struct ::stat about {};
    if (::stat(name.c_str(), &about) != 0) return std::nullopt;
    return std::pair{about.st_dev, about.st_ino};
}

}  // namespace

result<void> check_apart(std::vector<std::string> const& outputs, std::vector<std::string> const& inputs) {
    std::map<std::pair<::dev_t, ::ino_t>, std::string> there;
    std::set<std::filesystem::path> places;
    for (auto const& output : outputs) {
        auto const file = file_at(output);
        bool const is_new = !file || there.emplace(*file, output).second;
        if (!is_new || !places.insert(std::filesystem::weakly_canonical(output)).second)
            return fail(errc::invalid_argument, "{}: two things would be written there; name another for one of them",
                        output);
    }
    for (auto const& input : inputs) {
        auto const file = file_at(input);
        auto const hit = file ? there.find(*file) : there.end();
        if (hit != there.end())
            return fail(errc::invalid_argument,
                        "{}: it would be overwritten, and it is one of the inputs ({}); name another", hit->second,
                        input);
    }
    return {};
}

result<void> write_text_output(std::string const& to, base::byte_span data) {
    finish_output();  // whatever is printed comes before what is written, also where both go to one place
    if (to != "-") return base::write_output(to, data);
    print(base::as_text(data));
    return {};
}

std::string bytes_text(std::uint64_t bytes) {
    if (bytes < 1024) return fmt::format("{} B", bytes);
    auto value = static_cast<double>(bytes);
    for (auto const* unit : {"KiB", "MiB", "GiB"}) {
        value /= 1024;
        if (value < 1024 || std::string_view{unit} == "GiB") return fmt::format("{:.1f} {}", value, unit);
    }
    return {};
}

std::string count_of(std::uint64_t count, std::string_view one, std::string_view many) {
    if (count == 1) return fmt::format("1 {}", one);
    return many.empty() ? fmt::format("{} {}s", count, one) : fmt::format("{} {}", count, many);
}

namespace {

// Names come from files and servers: whoever made them does not write to this terminal.
std::string printable(std::string text) {
    for (auto& c : text) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    }
    return text;
}

}  // namespace

std::string table(std::vector<std::vector<std::string>> const& rows) {
    std::vector<std::size_t> widths;
    for (auto const& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string out;
    for (auto const& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", printable(row[i]), widths[i]);
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + '\n';
    }
    return out;
}

local_arch arch_of_this_machine() {
    if (auto const all = devices(); all) {
        auto const& first = all->front();
        return {arch::of_device(first.major, first.minor), true, first.name};
    }
    return {arch::of_device(9, 0), false, {}};
}

}  // namespace kiln::cli
