// SPDX-License-Identifier: Apache-2.0
// What the readers of text share: where they are, and how they say what is wrong there.
#pragma once

#include "base/check.hpp"

#include <kiln/spatial/files.hpp>

#include <algorithm>

namespace kiln::spatial {

struct text_source {
    std::string_view name;  // of the file
    std::string_view text;
};

template <class... Args>
[[nodiscard]] error refuse(errc code, text_source const& in, std::uint32_t line, fmt::format_string<Args...> format,
                           Args&&... args) {
    return fail(code, "{}, line {}: {}", in.name, line, fmt::format(format, std::forward<Args>(args)...));
}

// One row of WKT, as it stands in a line or field. Errors name the row and the column.
[[nodiscard]] result<void> read_wkt_row(std::string_view text, geometry_builder& to);
// The bytes of one geometry, and of nothing else. Errors name the row and the byte.
[[nodiscard]] result<void> read_wkb_row(std::span<std::uint8_t const> bytes, geometry_builder& to);

// The number that a text begins with, as all formats have it: digits, a point, an exponent, perhaps a sign; inf and nan too, which
// validate() refuses with row and reason. What is not 0 and would be, or is greater than any double, is none that can be held.
enum class number_kind : std::uint8_t { none, beyond_doubles, number };
struct leading_number {
    number_kind kind = number_kind::none;
    double value = 0;
    std::size_t length = 0;  // characters
};
[[nodiscard]] leading_number number_at(std::string_view text) noexcept;

// Words of a file as errors show them: no more than anybody reads.
[[nodiscard]] inline std::string shown(std::string_view text) {
    constexpr std::size_t most = 60;
    if (text.size() <= most) return std::string{text};
    auto end = most;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
        --end;  // not in the middle of a character
    return std::string{text.substr(0, end)} + "...";
}
// The names there are, where somebody asked for another.
[[nodiscard]] inline std::string shown_names(std::vector<std::string> const& names) {
    constexpr std::size_t most = 40;
    std::string out;
    for (std::size_t i = 0; i < std::min(names.size(), most); ++i)
        out += fmt::format("{}{}", i == 0 ? "" : ", ", shown(names[i]));
    if (names.size() > most) out += fmt::format(" and {} more", names.size() - most);
    return out;
}

[[nodiscard]] result<rows_of_file> read_geojson(text_source const& from, read_options const& how);
[[nodiscard]] result<rows_of_file> read_csv(text_source const& from, read_options const& how);

}  // namespace kiln::spatial
