// SPDX-License-Identifier: Apache-2.0
#include "audit/source_text.hpp"

#include "audit/model.hpp"
#include "base/files.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <set>
#include <sys/stat.h>

namespace kiln::audit {

namespace {

constexpr int lines_around = 2;
constexpr std::size_t most_places = 2000, most_line_bytes = 200, most_file_bytes = std::size_t{4} << 20;

std::time_t begin_of_run(recording const& from) {
    auto const about = nlohmann::json::parse(from.about, nullptr, false);
    std::tm when{};
    if (!about.is_object() || !about.contains("date") || !about["date"].is_string() ||
        ::strptime(about["date"].get<std::string>().c_str(), "%Y-%m-%dT%H:%M:%SZ", &when) == nullptr)
        return 0;
    return ::timegm(&when);
}

bool is_as_it_ran(std::string const& file, std::time_t begun) {
    struct ::stat about {};
    return ::stat(file.c_str(), &about) == 0 && S_ISREG(about.st_mode) && about.st_mtime <= begun;
}

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> out;
    for (std::size_t at = 0; at < text.size();) {
        auto const end = std::min(text.find('\n', at), text.size());
        out.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return out;
}

// Of a file, the lines that are wanted.
void take_lines(std::string const& file, std::set<int> const& wanted, kept_sources& to) {
    auto const read = base::read_file(file, most_file_bytes);
    if (!read || !*read) return;
    auto const all = lines_of(base::as_text(**read));
    for (int const line : wanted) {
        if (static_cast<std::size_t>(line) > all.size()) continue;
        kept_source kept{.first = std::max(1, line - lines_around), .lines = {}};
        auto const last = std::min(static_cast<std::size_t>(line + lines_around), all.size());
        for (auto i = static_cast<std::size_t>(kept.first); i <= last; ++i)
            kept.lines.emplace_back(all[i - 1].substr(0, most_line_bytes));
        to[{file, line}] = std::move(kept);
    }
}

// The number before the tab, or all of it; 0: none.
int take_number(std::string_view& text) {
    auto const tab = text.find('\t');
    auto const word = text.substr(0, tab);
    text.remove_prefix(tab == text.npos ? text.size() : tab + 1);
    int out = 0;
    auto const [end, why] = std::from_chars(word.data(), word.data() + word.size(), out);
    return why == std::errc{} && end == word.data() + word.size() && out > 0 ? out : 0;
}

}  // namespace

kept_sources read_sources(recording const& from) {
    std::set<std::uint32_t> stacks;
    for (auto const& p : from.processes)
        for (auto const& s : p.sites)
            if (s.stack != 0) stacks.insert(s.stack);
    std::map<std::string, std::set<int>> wanted;
    std::size_t places = 0;
    for (auto const id : stacks) {
        auto const where = place_from(from.strings.at(id));
        if (where.file.starts_with('/') && where.line > 0 && places < most_places)
            places += wanted[where.file].insert(where.line).second ? 1 : 0;
    }
    kept_sources out;
    auto const begun = begin_of_run(from);
    for (auto const& [file, lines] : wanted)
        if (is_as_it_ran(file, begun)) take_lines(file, lines, out);
    return out;
}

std::string to_text(kept_sources const& sources) {
    std::string out;
    for (auto const& [where, kept] : sources) {
        out += fmt::format("{}\t{}\t{}\n", where.first, where.second, kept.first);
        for (auto const& line : kept.lines) out += "\t" + line + "\n";
    }
    return out;
}

kept_sources kept_sources_from(std::string_view text) {
    kept_sources out;
    kept_source* to = nullptr;
    for (auto line : lines_of(text)) {
        if (line.starts_with('\t')) {
            if (to != nullptr && to->lines.size() <= 2 * lines_around)
                to->lines.emplace_back(line.substr(1, most_line_bytes));
            continue;
        }
        auto const tab = line.find('\t');
        std::string const file{line.substr(0, tab)};
        line.remove_prefix(tab == line.npos ? line.size() : tab + 1);
        int const number = take_number(line), first = take_number(line);
        to = file.empty() || number == 0 || first == 0 ? nullptr : &out[{file, number}];
        if (to != nullptr) *to = {.first = first, .lines = {}};
    }
    return out;
}

}  // namespace kiln::audit
