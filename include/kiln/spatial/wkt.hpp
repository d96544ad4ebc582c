// SPDX-License-Identifier: Apache-2.0
//
// Well-known text, on the host: one geometry per string. Z and M are refused, as are geometry collections and curves; an empty
// string and "NULL" are null rows, "POINT EMPTY" is an empty one. Numbers are written with as few digits as give the same double
// back. Errors name the row, the column of the text and what was expected there.
#pragma once

#include <kiln/spatial/geometry.hpp>

#include <span>
#include <string>
#include <string_view>

namespace KILN_PUBLIC kiln {
namespace spatial {

[[nodiscard]] result<geometries> from_wkt(std::span<std::string_view const> rows);
[[nodiscard]] result<geometries> from_wkt(std::span<std::string const> rows);
// One geometry per line, as in a file.
[[nodiscard]] result<geometries> from_wkt_lines(std::string_view text);

// "NULL" for null rows.
[[nodiscard]] result<std::vector<std::string>> to_wkt(geometries const& from);

}  // namespace spatial
}  // namespace kiln
