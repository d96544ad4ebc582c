// SPDX-License-Identifier: Apache-2.0
//
// Well-known binary, on the host and on a device: ISO and EWKB as written by PostGIS and GEOS (an SRID is skipped), either byte order, in two
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

// The same where the bytes or geometries are, on the host or on a device, with the same result, byte for byte. On a device these wait
// for sizes, and once for each family that is there.
[[nodiscard]] result<geometries> from_wkb_sync(stream_ref on, column<std::uint8_t> const& rows);
[[nodiscard]] result<column<std::uint8_t>> to_wkb_sync(stream_ref on, geometries const& from);

}  // namespace spatial
}  // namespace kiln
