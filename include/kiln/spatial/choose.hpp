// SPDX-License-Identifier: Apache-2.0
//
// Some rows of an array: views (geometries::view), so no vertex is copied, and rows may come several times. They run where the
// geometries are, on the host or on a device, also through views; the numbers or flags must be there too.
//
//     auto const pairs = spatial::join(stream, places, zones, spatial::predicate::within).value();
//     auto const inside = spatial::gather(stream, places, pairs.left).value();     // row by row with gather(.., zones, pairs.right)
#pragma once

#include <kiln/spatial/geometry.hpp>

namespace KILN_PUBLIC kiln {
namespace spatial {

// Row i is row `rows[i]`. The numbers must be from 0 to rows() - 1: errc::invalid_argument on the host; on a device they are not looked at.
[[nodiscard]] result<geometries> gather(stream_ref on, geometries const& from, buffer<std::int32_t> const& rows);
// The rows whose flag is not 0, in order. One flag per row, else errc::invalid_argument. Waits for how many there are.
[[nodiscard]] result<geometries> filter_sync(stream_ref on, geometries const& from, buffer<std::uint8_t> const& keep);

}  // namespace spatial
}  // namespace kiln
