// SPDX-License-Identifier: Apache-2.0
//
// Areas put over each other: what rows of two arrays have in common and what they have alone, rows of one array made one, and rows put
// right. Results are multipolygons, valid as OGC means it whatever came in: rings of the input may cross, overlap and touch, and
// count by the even-odd rule. Everything follows from exact signs; where segments cross, the crossing is correctly rounded, and should that
// make others cross, they are divided too, until nothing does. Decided once per call, on the CPU or the GPU, with the same bits; results
// live where it ran. Waits for sizes.
//
//     auto const parts = spatial::overlay(stream, zones, floods, spatial::overlay_kind::intersection).value();
//     auto const sizes = spatial::area(stream, parts.rows).value();      // row i: zone parts.left[i] under flood parts.right[i]
//     auto const states = spatial::dissolve(stream, counties, state_of_county, 56).value();
#pragma once

#include <kiln/spatial/geometry.hpp>

namespace KILN_PUBLIC kiln {
namespace spatial {

enum class overlay_kind : std::uint8_t {
    intersection,          // what a left and a right row have in common
    union_,                // that, and what is in rows of one side only
    difference,            // what is in a left row and in no right one
    symmetric_difference,  // that, and what is in a right row and in no left one
    identity,              // what is in a left row: in common with each right one, and in none
    update,                // right rows as they are, and what is in a left row and in no right one
};
[[nodiscard]] std::string_view name_of(overlay_kind what) noexcept;
[[nodiscard]] std::optional<overlay_kind> overlay_kind_of(std::string_view name) noexcept;

// By left row, then right row; behind all others, those of which -1 says that there is none. Only what has some area is there.
struct overlay_rows {
    geometries rows;
    buffer<std::int32_t> left, right;
    [[nodiscard]] std::size_t size() const noexcept { return left.size(); }
};
// Of polygons and multipolygons; of other families errc::unsupported. Null and empty rows have nothing in common with anything.
[[nodiscard]] result<overlay_rows> overlay(stream_ref on, geometries const& left, geometries const& right,
                                           overlay_kind what);

// Areas of the intersection.
struct area_list {
    buffer<std::int32_t> left, right;
    buffer<double> area;
    [[nodiscard]] std::size_t size() const noexcept { return left.size(); }
};
[[nodiscard]] result<area_list> area_table(stream_ref on, geometries const& left, geometries const& right);

// A row for each key from 0 to before `keys`: all rows with that key as one. Rows with another key are left out.
[[nodiscard]] result<geometries> dissolve(stream_ref on, geometries const& of, buffer<std::int32_t> const& key,
                                          std::size_t keys);
// One row.
[[nodiscard]] result<geometries> union_all(stream_ref on, geometries const& of);
// Row by row the same points by the even-odd rule, as a valid multipolygon. Null rows stay null.
[[nodiscard]] result<geometries> make_valid(stream_ref on, geometries const& of);

}  // namespace spatial
}  // namespace kiln
