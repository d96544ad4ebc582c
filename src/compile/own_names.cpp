// SPDX-License-Identifier: Apache-2.0
#include "compile/own_names.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

namespace kiln::compile {

namespace {

using namespace std::string_view_literals;

bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }
bool is_word_part(char c) { return is_capital(c) || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

bool has(std::string_view text, std::string_view part) {
    return ::memmem(text.data(), text.size(), part.data(), part.size()) != nullptr;
}

// How long a line's end is that counts as none, also in the middle of a word; 0: there is none here. Compilers forgive blanks there.
std::size_t splice_length(std::string_view text) {
    for (auto const mark : {"\\"sv, "?\?/"sv}) {
        if (!text.starts_with(mark)) continue;
        auto const end = text.find_first_not_of(" \t\r", mark.size());
        if (end != text.npos && text[end] == '\n') return end + 1;
    }
    return 0;
}

std::string with_lines_joined(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        auto const plain = std::min(text.find_first_of("\\?"), text.size());
        out += text.substr(0, plain);
        text.remove_prefix(plain);
        if (text.empty()) break;
        auto const splice = splice_length(text);
        if (splice == 0) out += text.front();
        text.remove_prefix(std::max<std::size_t>(splice, 1));
    }
    return out;
}

bool cuts_a_word(std::string_view text, std::size_t at) {
    auto const splice = splice_length(text.substr(at));
    return splice != 0 && at > 0 && is_word_part(text[at - 1]) && at + splice < text.size();
}

// Lines go on in many texts, words over a line's end in none that anybody wrote by hand.
template <class Answer>
bool of_whole_words(std::string_view text, Answer answer) {
    for (auto const mark : {"\\"sv, "?\?/"sv}) {
        for (auto at = text.find(mark); at != text.npos; at = text.find(mark, at + 1)) {
            if (cuts_a_word(text, at)) return answer(with_lines_joined(text));
        }
    }
    return answer(text);
}

// Only words with a capital letter, which every name looked for has, and so has every piece of one: most words have none.
template <class Matches>
bool any_word(std::string_view text, Matches matches) {
    for (std::size_t from = 0; from < text.size(); ++from) {
        auto end = from;
        bool has_capital = false;
        for (; end < text.size() && is_word_part(text[end]); ++end) has_capital |= is_capital(text[end]);
        if (has_capital && matches(text.substr(from, end - from))) return true;
        from = end;
    }
    return false;
}

constexpr auto name_of_file = "__FILE__"sv, name_of_source = "__BASE_FILE__"sv;
constexpr std::array time_names{"__DATE__"sv, "__TIME__"sv, "__TIMESTAMP__"sv};

bool is_piece_of(std::string_view name, std::string_view word, std::size_t least) {
    return word.size() >= least && has(name, word);
}

bool names_a_file(std::string_view word) {
    return has(word, "_FILE") || has(word, "FILE_") || is_piece_of(name_of_file, word, 3) ||
           (is_piece_of(name_of_source, word, 4) && has(word, "_"));
}

bool names_its_source(std::string_view word) { return is_piece_of(name_of_source, word, 4); }

// A piece has one end of the name: what is between them is a word that people use.
bool names_a_time(std::string_view word) {
    return std::ranges::any_of(
        time_names, [&](auto name) { return has(word, name) || (is_piece_of(name, word, 4) && has(word, "__")); });
}

// What every name of a time has, and every piece of one: a look that is quicker than one at each word.
bool has_an_end_of_a_time(std::string_view text) {
    for (auto at = text.find("__"); at != text.npos; at = text.find("__", at + 1)) {
        auto const after = text.substr(at + 2, 2), before = text.substr(at < 2 ? 0 : at - 2, 2);
        if (after == "DA" || after == "TI" || before == "TE" || before == "ME" || before == "MP") return true;
    }
    return false;
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
    return of_whole_words(
        text, [](std::string_view whole) { return has(whole, "source_location") || any_word(whole, names_a_file); });
}

bool header_may_name_its_file(std::string_view path, std::string_view text) {
    if (!is_of_a_known_library(path)) return may_name_its_file(text);
    if (!has(text, "FILE__") && !has(text, "_FILE(") && !has(text, "__builtin_source_location")) return false;
    auto const rest = without_defines(text);
    return has(rest, name_of_file) || has(rest, name_of_source) || has(rest, "_FILE(") ||
           has(rest, "__builtin_source_location");
}

bool may_name_its_source(std::string_view text) {
    return of_whole_words(text, [](std::string_view whole) { return any_word(whole, names_its_source); });
}

bool may_name_the_time(std::string_view text) {
    return of_whole_words(
        text, [](std::string_view whole) { return has_an_end_of_a_time(whole) && any_word(whole, names_a_time); });
}

}  // namespace kiln::compile
