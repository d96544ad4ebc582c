// SPDX-License-Identifier: Apache-2.0
//
// Well-known binary, on the host: ISO and EWKB as written by PostGIS and GEOS (an SRID is skipped), either byte order, in two
// dimensions. What is read is not trusted: every count is checked against the bytes that are left before it is used. Written is ISO
// WKB, little-endian, the bytes GEOS writes. Errors name the row and the byte.
#pragma once

#include <kiln/spatial/geometry.hpp>

#include <span>

namespace KILN_PUBLIC kiln {
namespace spatial {

// Arrow's layout: row i is bytes offsets[i] to offsets[i + 1]. A null row has no bytes.
[[nodiscard]] result<geometries> from_wkb(column<std::uint8_t> const& rows);
[[nodiscard]] result<geometries> from_wkb(std::span<std::span<std::uint8_t const> const> rows);

[[nodiscard]] result<column<std::uint8_t>> to_wkb(geometries const& from);

}  // namespace spatial
}  // namespace kiln
