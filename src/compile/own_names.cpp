// SPDX-License-Identifier: Apache-2.0
#include "compile/own_names.hpp"

#include "compile/known_phrases.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace kiln::compile {

namespace {

using namespace std::string_view_literals;

constexpr bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool is_word_part(char c) {
    return is_capital(c) || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

// Compilers let people have a dollar in names.
constexpr bool is_identifier_part(char c) { return is_word_part(c) || c == '$'; }

// string_view's own stops at every first letter.
std::size_t place_of(std::string_view part, std::string_view text, std::size_t from = 0) {
    auto const rest = text.substr(std::min(from, text.size()));
    auto const* const at = static_cast<char const*>(::memmem(rest.data(), rest.size(), part.data(), part.size()));
    return at == nullptr ? text.npos : static_cast<std::size_t>(at - text.data());
}

bool has(std::string_view text, std::string_view part) { return place_of(part, text) != text.npos; }

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

// Whatever is around it: no comment or literal of many lines ends in it, and it does not go on.
bool is_comment_line(std::string_view line) {
    auto const first = line.find_first_not_of(" \t");
    auto const last = line.find_last_not_of(" \t\r");
    return first != line.npos && line.substr(first).starts_with("//") && !has(line, "\"") && !has(line, "*/") &&
           line[last] != '\\' && line[last] != '/';
}

std::string without_comment_lines(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        auto const line = text.substr(0, text.find('\n'));
        if (!is_comment_line(line)) out += line;
        text.remove_prefix(line.size());
        if (!text.empty()) text.remove_prefix(1), out += '\n';
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
constexpr std::array file_names{name_of_file, name_of_source};
constexpr std::array source_names{name_of_source};
constexpr std::array time_names{"__DATE__"sv, "__TIME__"sv, "__TIMESTAMP__"sv};

bool is_piece_of(std::string_view name, std::string_view word, std::size_t least) {
    return word.size() >= least && has(name, word);
}

bool names_a_file(std::string_view word) {
    return has(word, "_FILE") || has(word, "FILE_") || is_piece_of(name_of_file, word, 3) ||
           (is_piece_of(name_of_source, word, 4) && has(word, "_"));
}

// The library's way to a file's name, whole or a piece with its underscore.
bool names_a_location(std::string_view word) {
    constexpr auto name = "source_location"sv;
    return has(word, name) || (is_piece_of(name, word, 4) && has(word, "_"));
}

// Every piece that counts has one of these in it.
bool may_name_a_location(std::string_view text) {
    for (auto const part : {"rce_"sv, "e_l"sv, "_loc"sv}) {
        for (auto at = place_of(part, text); at != text.npos; at = place_of(part, text, at + 1)) {
            auto from = at, end = at;
            while (from > 0 && is_word_part(text[from - 1])) --from;
            while (end < text.size() && is_word_part(text[end])) ++end;
            if (names_a_location(text.substr(from, end - from))) return true;
        }
    }
    return false;
}

bool names_its_source(std::string_view word) { return is_piece_of(name_of_source, word, 4); }

// A name, or a piece of four letters with an end of one: what is between them is a word that people use.
bool names_a_time(std::string_view word) {
    return std::ranges::any_of(
        time_names, [&](auto name) { return has(word, name) || (is_piece_of(name, word, 4) && has(word, "_")); });
}

// Calls `seen` with every word of letters that names have, and of no other: few words have none but capitals.
template <class Seen>
void each_possible_piece(std::string_view text, Seen seen) {
    constexpr std::size_t longest = 13;
    constexpr unsigned char of_a_word = 1, of_a_name = 2;
    static constexpr auto letters = [] {
        std::array<unsigned char, 256> out{};
        for (int c = 0; c < 256; ++c) out[static_cast<std::size_t>(c)] = is_identifier_part(static_cast<char>(c));
        for (auto const c : "_FILEBASEDATETIMESTAMP"sv) out[static_cast<unsigned char>(c)] |= of_a_name;
        return out;
    }();
    auto const kind = [&](std::size_t at) { return letters[static_cast<unsigned char>(text[at])]; };
    for (std::size_t from = 0; from < text.size(); ++from) {
        unsigned char all = of_a_word | of_a_name;
        auto end = from;
        for (; end < text.size() && kind(end) != 0; ++end) all &= kind(end);
        if ((all & of_a_name) != 0 && end > from && end - from <= longest) seen(text.substr(from, end - from), from);
        from = end;
    }
}

bool can_be_pasted(std::string_view text, std::span<std::string_view const> names) {
    pasted_names made{names};
    each_possible_piece(text, [&](std::string_view word, std::size_t) { made.add(word); });
    return made.make_one();
}

bool is_beside_pasting(std::string_view text, std::size_t from, std::size_t size) {
    auto const before = text.substr(0, from), after = text.substr(from + size);
    auto const left = before.substr(0, before.find_last_not_of(" \t") + 1);
    auto const right = after.substr(std::min(after.find_first_not_of(" \t"), after.size()));
    return std::ranges::any_of(std::array{"#"sv, "%:"sv, "?\?="sv},
                               [&](auto mark) { return left.ends_with(mark) || right.starts_with(mark); });
}

// What speaks for a name of a time in a text.
struct signs_of_a_time {
    bool pieces = false;  // all of one, or one that nobody else has
    bool ends = false;    // for which another text may have the middle: "__##x##__", "#define ENDS __"
};

// Whether a word begins or ends as only a name of a time and pieces of one do: a look that is quicker than one at each word.
bool has_an_end_of_a_time(std::string_view text) {
    auto const at = [&](std::size_t n) { return n < text.size() && is_identifier_part(text[n]) ? text[n] : ' '; };
    for (auto from = text.find('_'); from != text.npos;) {
        auto const end = std::min(text.find_first_not_of('_', from), text.size());
        auto const before = at(from - 1), after = at(end);
        if (before == ' ') {
            auto const next = at(end + 1);
            if (after == ' ' || (after == 'D' && (next == 'A' || next == ' ')) ||
                (after == 'T' && (next == 'I' || next == ' ')))
                return true;
        } else if (after == ' ') {
            auto const last = at(from - 2);
            if ((before == 'E' && (last == 'T' || last == 'M' || last == ' ')) ||
                (before == 'P' && (last == 'M' || last == ' ')))
                return true;
        }
        from = text.find('_', end);
    }
    return false;
}

signs_of_a_time read_signs(std::string_view text) {
    signs_of_a_time out;
    if (!has_an_end_of_a_time(text)) return out;
    pasted_names made{time_names};
    each_possible_piece(text, [&](std::string_view word, std::size_t from) {
        made.add(word);
        out.pieces = out.pieces || names_a_time(word);
        out.ends = out.ends || word == "__" || (word == "_" && is_beside_pasting(text, from, 1));
    });
    out.pieces = out.pieces || made.make_one();
    return out;
}

bool is_piece_of_a_name(std::string_view word) {
    auto const is_piece = [&](auto name) { return has(name, word); };
    return std::ranges::any_of(file_names, is_piece) || std::ranges::any_of(time_names, is_piece);
}

// Whether a piece of a name is more than a parameter of somebody's template.
bool is_telling(std::string_view word) { return word.size() > 2 || word == "__" || word == "_"; }

// A piece with its underscore: nothing else is called so.
bool is_end_of_a_file(std::string_view word) {
    return has(word, "_") && (is_piece_of(name_of_file, word, 3) || is_piece_of(name_of_source, word, 4));
}

bool has_word_that_begins(std::string_view text, std::string_view beginning) {
    for (auto at = text.find(beginning); at != text.npos; at = text.find(beginning, at + 1)) {
        if (at == 0 || !is_identifier_part(text[at - 1])) return true;
    }
    return false;
}

bool says_how_to_name_a_file(std::string_view text) {
    return has_word_that_begins(text, "__FILE") || has_word_that_begins(text, name_of_source) ||
           has(text, "builtin_FILE") || has(text, "BUILTIN_FILE") || has(text, "source_location");
}

}  // namespace

bool may_name_its_file(std::string_view text) {
    return of_whole_words(text, [](std::string_view whole) {
        return may_name_a_location(whole) || any_word(whole, names_a_file) || can_be_pasted(whole, file_names);
    });
}

bool header_may_name_its_file(std::string_view text) {
    texts_together alone;
    alone.add_header(text);
    return alone.may_name_a_file();
}

bool may_name_its_source(std::string_view text) {
    return of_whole_words(text, [](std::string_view whole) {
        return any_word(whole, names_its_source) || can_be_pasted(whole, source_names);
    });
}

bool library_may_name_its_source(std::string_view text) {
    return of_whole_words(text, [](std::string_view whole) { return any_word(whole, names_its_source); });
}

bool may_name_the_time(std::string_view text) {
    return of_whole_words(text, [](std::string_view whole) {
        auto const signs = read_signs(whole);
        return signs.pieces || signs.ends;
    });
}

bool header_may_name_the_time(std::string_view text) {
    texts_together alone;
    alone.add_header(text);
    return alone.may_name_the_time();
}

void pasted_names::add(std::string_view word) {
    for (std::size_t n = 0; n < names_.size(); ++n) {
        for (auto at = names_[n].find(word); at != names_[n].npos; at = names_[n].find(word, at + 1))
            steps_[n][at] |= 1U << word.size();
    }
}

bool pasted_names::make_one() const {
    for (std::size_t n = 0; n < names_.size(); ++n) {
        unsigned reached = 1;  // a bit for each length
        for (std::size_t at = 0; at < names_[n].size(); ++at) {
            if ((reached >> at & 1) != 0) reached |= steps_[n][at] << at;
        }
        if ((reached >> names_[n].size() & 1) != 0) return true;
    }
    return false;
}

texts_together::texts_together()
    : own_{pasted_names{file_names}, pasted_names{source_names}, pasted_names{time_names}}, all_{own_} {}

void texts_together::add_piece(std::string_view word, pieces which) {
    bool const is_letter = word.size() == 1;
    if (which == pieces::underscores && word != "__") return;
    if (which == pieces::all || (which == pieces::of_two_letters && !is_letter)) own_.add(word);
    if (!is_letter || word == "_") all_.add(word);
}

void texts_together::add(std::string_view text, pieces which) {
    (void)of_whole_words(text, [&](std::string_view whole) {
        each_possible_piece(whole, [&](std::string_view word, std::size_t) { add_piece(word, which); });
        return true;
    });
}

void texts_together::add_header(std::string_view text) {
    (void)of_whole_words(text, [&](std::string_view whole) {
        std::vector<std::string_view> found;
        bool is_worth_it = has(whole, "FILE") || may_name_a_location(whole);
        each_possible_piece(whole, [&](std::string_view word, std::size_t) {
            if ((word.size() == 1 && word != "_") || !is_piece_of_a_name(word)) return;
            found.push_back(word);
            is_worth_it = is_worth_it || is_telling(word);
        });
        if (is_worth_it) read_closely(text);
        else
            for (auto const word : found) add_piece(word, pieces::of_two_letters);
        return true;
    });
}

void texts_together::read_closely(std::string_view header) {
    auto const rest = without_known_phrases(with_lines_joined(without_comment_lines(header)));
    says_.file = says_.file || says_how_to_name_a_file(rest) || may_name_a_location(rest);
    each_possible_piece(rest, [&](std::string_view word, std::size_t from) {
        add_piece(word, pieces::of_two_letters);
        says_.file = says_.file || is_end_of_a_file(word);
        says_.time =
            says_.time || names_a_time(word) || word == "__" || (word == "_" && is_beside_pasting(rest, from, 1));
    });
}

}  // namespace kiln::compile
