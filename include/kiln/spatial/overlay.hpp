// SPDX-License-Identifier: Apache-2.0
//
// Areas put over each other: what rows of two arrays have in common and what they have alone, rows of one array made one, and rows put
// right. Results are multipolygons, valid as OGC means it whatever came in: rings of the input may cross, overlap and touch, and
// count by the even-odd rule. Everything follows from exact signs; where segments cross, the crossing is correctly rounded, and should that
// make others cross, they are divided too, until nothing does. (Should that not end, coordinates are rounded to 2^-46 of the largest, and an
// event says so.) Decided once per call, on the CPU or the GPU, with the same bits; results
// live where it ran. Waits for sizes. Layers that a device has no room for are worked on in chunks, with the same results, which
// then live where the operands do; `most_bytes` asks for that.
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
struct overlay_options {
    // Above 0: coordinates of results are whole multiples of it. Vertices of the operands are rounded too, and segments go through the middle
    // of every square of the grid that they come through and a vertex or crossing lies in. errc::invalid_argument for one that is
    // finer than 2^-46 of the largest coordinate.
    double grid = 0;
    // What the call may take beside its operands and its result: what would take more is done in chunks, of some rows with all
    // they meet, and operands on the host stay there. errc::out_of_memory where one row with what it meets needs more. 0: all at
    // once, on a device what it has room for.
    std::size_t most_bytes = 0;
};
[[nodiscard]] result<overlay_rows> overlay(stream_ref on, geometries const& left, geometries const& right,
                                           overlay_kind what, overlay_options const& how = {});

// What of each row lies in any of the areas, or along their edges: of areas multipolygons, of lines multilinestrings, of points those that do, as points
// where all rows of the array are single points and else as multipoints. Lines are divided where they cross areas; the crossing is correctly rounded. A row for
// every row, empty where nothing is left; null rows stay null. Of points, lines and areas together, a mixed array.
[[nodiscard]] result<geometries> clip(stream_ref on, geometries const& of, geometries const& areas);

// Areas of the intersection, by left row and then by right one, of pairs that have more than edges in common: no overlay is made for it, so rows must be valid.
struct area_list {
    buffer<std::int32_t> left, right;
    buffer<double> area;
    [[nodiscard]] std::size_t size() const noexcept { return left.size(); }
};
[[nodiscard]] result<area_list> area_table(stream_ref on, geometries const& left, geometries const& right);

// Row by row, of two arrays of as many rows, else errc::invalid_argument: intersection, union_, difference or symmetric_difference of the two rows
// of one number, as one row. Null where one of them is. All at once, whatever `most_bytes` is.
[[nodiscard]] result<geometries> overlay_row_by_row(stream_ref on, geometries const& left, geometries const& right,
                                                    overlay_kind what, overlay_options const& how = {});
// Row by row the area of the intersection, and that over the area of the union, from 0 to 1; NaN where a row is null. Rows must be
// valid: those of few vertices are not overlaid for it, and what is divided by is a sum of areas.
[[nodiscard]] result<buffer<double>> intersection_area(stream_ref on, geometries const& left, geometries const& right);
[[nodiscard]] result<buffer<double>> iou(stream_ref on, geometries const& left, geometries const& right);

// What these may take: as overlay_options says, in chunks of some keys or rows.
struct memory_options {
    std::size_t most_bytes = 0;
};
// A row for each key from 0 to before `keys`: all rows with that key as one. Rows with another key are left out. errc::invalid_argument for
// keys that are no numbering: more than 2^20 of them, and more than 64 for each row.
[[nodiscard]] result<geometries> dissolve(stream_ref on, geometries const& of, buffer<std::int32_t> const& key,
                                          std::size_t keys, memory_options const& how = {});
// One row.
[[nodiscard]] result<geometries> union_all(stream_ref on, geometries const& of);
// Row by row the same points by the even-odd rule, as a valid multipolygon. Points and lines stay as they are, null rows null; of areas with such
// rows, a mixed array.
[[nodiscard]] result<geometries> make_valid(stream_ref on, geometries const& of, memory_options const& how = {});
// The same, and which rows were valid before: 1 where they were, but for where their rings begin and which way they run; 0 where they are others
// now. Null and empty rows are valid.
struct mended_rows {
    geometries rows;
    buffer<std::uint8_t> was_valid;
};
[[nodiscard]] result<mended_rows> mend(stream_ref on, geometries const& of, memory_options const& how = {});
// That alone, of rows of any family: points always are valid, lines where they have some length.
[[nodiscard]] result<buffer<std::uint8_t>> is_valid(stream_ref on, geometries const& of);

}  // namespace spatial
}  // namespace kiln
