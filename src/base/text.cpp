// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace kiln::base {

namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

constexpr bool continues(char c) noexcept { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// What a first byte promises; 0: no character begins with it.
constexpr std::size_t length_after(unsigned char first) noexcept {
    if (first < 0x80) return 1;
    if (first >= 0xC2 && first <= 0xDF) return 2;
    if (first >= 0xE0 && first <= 0xEF) return 3;
    return first >= 0xF0 && first <= 0xF4 ? 4 : 0;
}

// Overlong forms, surrogates and what lies beyond U+10FFFF show in the second byte.
constexpr bool second_fits(unsigned char first, unsigned char second) noexcept {
    switch (first) {
        case 0xE0: return second >= 0xA0;
        case 0xED: return second <= 0x9F;
        case 0xF0: return second >= 0x90;
        case 0xF4: return second <= 0x8F;
        default: return true;
    }
}

// How many bytes at the front belong to one character, whole or not.
std::size_t present(std::string_view text, std::size_t length) noexcept {
    std::size_t n = 1;
    while (n < length && n < text.size() && continues(text[n])) {
        if (n == 1 && !second_fits(static_cast<unsigned char>(text[0]), static_cast<unsigned char>(text[1]))) break;
        ++n;
    }
    return n;
}

}  // namespace

std::string valid_utf8(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        auto const length = length_after(static_cast<unsigned char>(text.front()));
        auto const n = length <= 1 ? 1 : present(text, length);
        if (length == n) out += text.substr(0, n);
        else if (length != 0 && n == text.size()) break;  // cut off
        else out += replacement;
        text.remove_prefix(n);
    }
    return out;
}

std::string readable_utf8(std::string_view text) {
    auto out = valid_utf8(text);
    // All lie from U+2000 to U+206F: E2 80 80 to E2 81 AF.
    for (std::size_t i = 0; i + 2 < out.size(); ++i) {
        if (static_cast<unsigned char>(out[i]) != 0xe2) continue;
        auto const code = (static_cast<unsigned>(static_cast<unsigned char>(out[i + 1])) << 8) |
                          static_cast<unsigned char>(out[i + 2]);
        bool const marks = code == 0x808e || code == 0x808f;                // U+200E, U+200F
        bool const breaks_or_overrides = code >= 0x80a8 && code <= 0x80ae;  // U+2028 to U+202E
        bool const isolates = code >= 0x81a6 && code <= 0x81a9;             // U+2066 to U+2069
        if (marks || breaks_or_overrides || isolates) out.replace(i, 3, "?");
    }
    return out;
}

std::string json_quoted(std::string_view text) {
    std::string out = "\"";
    for (char const c : valid_utf8(text)) {
        auto const u = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') (out += '\\') += c;
        else if (c == '\n') out += "\\n";
        else if (u < 0x20) out += fmt::format("\\u{:04x}", u);
        else out += c;
    }
    return out += '"';
}

std::string_view first_characters(std::string_view text, std::size_t most) noexcept {
    if (text.size() <= most) return text;
    auto end = most;
    // A character has four bytes at most; what is longer is none.
    while (end > 0 && most - end < 3 && continues(text[end])) --end;
    return text.substr(0, continues(text[end]) ? most : end);
}

}  // namespace kiln::base
