// SPDX-License-Identifier: Apache-2.0
#include "intercept/own_names.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <string>

namespace kiln::intercept {

namespace {

using namespace std::string_view_literals;

bool is_word_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool has(std::string_view text, std::string_view part) {
    return ::memmem(text.data(), text.size(), part.data(), part.size()) != nullptr;
}

// A line goes on where a backslash ends it, also in the middle of a word.
std::string with_lines_joined(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\') {
            auto end = i + 1;
            while (end < text.size() && (text[end] == ' ' || text[end] == '\t' || text[end] == '\r')) ++end;
            if (end < text.size() && text[end] == '\n') {
                i = end;
                continue;
            }
        }
        out += text[i];
    }
    return out;
}

template <class Matches>
bool any_word(std::string_view text, Matches matches) {
    for (std::size_t from = 0; from < text.size();) {
        if (!is_word_part(text[from])) {
            ++from;
            continue;
        }
        auto end = from;
        while (end < text.size() && is_word_part(text[end])) ++end;
        if (matches(text.substr(from, end - from))) return true;
        from = end;
    }
    return false;
}

// The parts that macros could paste the name of, beside those that are seen by "_FILE" and "FILE_".
bool is_part_of_a_name(std::string_view word) {
    constexpr std::array parts{"__F"sv,  "__FI"sv,  "__FIL"sv,  "ILE__"sv,  "LE__"sv,
                               "__BA"sv, "__BAS"sv, "__BASE"sv, "__BASE_"sv};
    return std::ranges::find(parts, word) != parts.end();
}

bool names_a_file(std::string_view word) {
    return has(word, "_FILE") || has(word, "FILE_") || has(word, "source_location") || is_part_of_a_name(word);
}

// CUDA's own, and those that come with CuPy.
bool is_of_a_known_library(std::string_view path) {
    constexpr std::array places{"/cuda/std/"sv, "/cuda/__"sv, "/cub/"sv,   "/thrust/"sv,
                                "/nv/"sv,       "/crt/"sv,    "/kokkos/"sv};
    auto const name = path.substr(path.rfind('/') + 1);
    return name.starts_with("cuda") || std::ranges::any_of(places, [&](auto place) { return has(path, place); });
}

// What is left of a text without its macros.
std::string without_defines(std::string_view text) {
    auto const joined = with_lines_joined(text);
    std::string out;
    for (std::string_view rest = joined; !rest.empty();) {
        auto const line = rest.substr(0, rest.find('\n'));
        auto const first = line.find_first_not_of(" \t");
        auto const directive = first != line.npos && line[first] == '#' ? line.substr(first + 1) : std::string_view{};
        auto const word = directive.substr(std::min(directive.size(), directive.find_first_not_of(" \t")));
        if (!word.starts_with("define")) (out += line) += '\n';
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    }
    return out;
}

}  // namespace

bool may_name_its_file(std::string_view text) {
    if (!has(text, "\\")) return any_word(text, names_a_file);
    return any_word(with_lines_joined(text), names_a_file);
}

bool header_may_name_its_file(std::string_view path, std::string_view text) {
    if (!is_of_a_known_library(path)) return may_name_its_file(text);
    if (!has(text, "FILE__") && !has(text, "_FILE(") && !has(text, "__builtin_source_location")) return false;
    auto const rest = without_defines(text);
    return has(rest, "__FILE__") || has(rest, "__BASE_FILE__") || has(rest, "_FILE(") ||
           has(rest, "__builtin_source_location");
}

bool may_name_the_time(std::string_view text) {
    constexpr std::array names{"__DATE__"sv, "__TIME__"sv, "__TIMESTAMP__"sv};
    return std::ranges::any_of(names, [&](auto name) { return has(text, name); });
}

}  // namespace kiln::intercept
