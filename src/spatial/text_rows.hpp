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

// A finite or infinite number and nothing else around it but blanks.
[[nodiscard]] std::optional<double> number_in(std::string_view text) noexcept;

[[nodiscard]] result<rows_of_file> read_geojson(text_source const& from, read_options const& how);
[[nodiscard]] result<rows_of_file> read_csv(text_source const& from, read_options const& how);

}  // namespace kiln::spatial
