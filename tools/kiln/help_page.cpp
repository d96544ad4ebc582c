// SPDX-License-Identifier: Apache-2.0
#include "help_page.hpp"

#include <algorithm>
#include <optional>

namespace kiln::cli {

namespace {

using kind = help_block::kind;

std::string_view without_edges(std::string_view line) {
    auto const from = line.find_first_not_of(' ');
    return from == line.npos ? std::string_view{} : line.substr(from, line.find_last_not_of(' ') - from + 1);
}

void append_words(std::string& to, std::string_view words) {
    if (words.empty()) return;
    if (!to.empty()) to += ' ';
    to += words;
}

// Options may have several words before the gap, other entries one.
std::optional<help_entry> entry_in(std::string_view line) {
    auto const indent = line.find_first_not_of(' ');
    if (indent == line.npos || indent > 6) return std::nullopt;
    auto const words = without_edges(line);
    auto const gap = words.find("  ");
    bool const is_option = words.front() == '-' && indent > 0;
    if (!is_option && (gap == words.npos || indent > 2 || words.find(' ') != gap)) return std::nullopt;
    if (gap == words.npos) return help_entry{std::string{words}, {}};
    return help_entry{std::string{words.substr(0, gap)}, std::string{without_edges(words.substr(gap))}};
}

// Whether the line belongs to the block; adds it if so.
bool goes_on(help_block& block, std::string_view line) {
    bool const is_example = line.starts_with("    ");
    switch (block.is) {
        case kind::heading: return false;
        case kind::example:
            if (is_example) (block.text += '\n') += line.substr(4);
            return is_example;
        case kind::entries:
            if (auto entry = entry_in(line)) block.entries.push_back(*std::move(entry));
            else if (is_example) append_words(block.entries.back().text, without_edges(line));
            else return false;
            return true;
        case kind::text:
            if (is_example || entry_in(line)) return false;
            append_words(block.text, without_edges(line));
            return true;
    }
    return false;
}

help_block begin_block(std::string_view line) {
    if (line == "Options:") return {kind::heading, "Options", {}};
    if (auto entry = entry_in(line)) return {kind::entries, {}, {*std::move(entry)}};
    if (line.starts_with("    ")) return {kind::example, std::string{line.substr(4)}, {}};
    return {kind::text, std::string{without_edges(line)}, {}};
}

bool names(std::string_view head, std::string_view option) {
    for (auto at = head.find(option); at != head.npos; at = head.find(option, at + 1)) {
        auto const end = at + option.size();
        if ((at == 0 || head[at - 1] == ' ') && (end == head.size() || head.find_first_of(" ,=", end) == end))
            return true;
    }
    return false;
}

}  // namespace

help_page parse_page(std::string_view text) {
    help_page page;
    bool is_open = false;
    for (; !text.empty(); text.remove_prefix(std::min(text.size(), text.find('\n') + 1))) {
        auto const line = text.substr(0, text.find('\n'));
        if (line.find_first_not_of(' ') == line.npos) is_open = false;
        else if (line.starts_with("# ")) continue;
        else if (page.summary.empty()) page.summary = line;
        else if (!is_open || !goes_on(page.blocks.back(), line)) {
            page.blocks.push_back(begin_block(line));
            is_open = true;
        }
        if (text.find('\n') == text.npos) break;
    }
    return page;
}

std::string words_on(help_page const& page, std::string_view option) {
    for (auto const& block : page.blocks) {
        for (auto const& entry : block.entries) {
            if (!names(entry.head, option)) continue;
            auto const end = std::min({entry.text.find(". "), entry.text.find("; "), entry.text.find(": ")});
            return entry.text.substr(0, end);
        }
    }
    return {};
}

}  // namespace kiln::cli
