// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with an array, by row. Operations trust what passes: offsets that stay inside the memory, finite coordinates
// within the range in which predicates are exact, closed rings. Repeated points, touching rings and either orientation of rings are
// legal. Rings that cross themselves or each other are not looked for by validate(), which reads every vertex once: points in them, what
// intersects them, distances and overlays are those of the even-odd rule. Matrices need more: see validate_rings(). On the host; arrays that are made of memory on a device are trusted by all but relations, which look at offsets too.
#pragma once

#include <kiln/spatial/geometry.hpp>

#include <string>

namespace KILN_PUBLIC kiln {
namespace spatial {

enum class flaw : std::uint8_t {
    offsets,         // do not begin at 0, go back, or leave the memory
    child,           // a row of a mixed array or of a view that is not there
    not_finite,      // NaN or infinity; an empty point is NaN twice
    out_of_range,    // not 0, and below 2^-300, or 2^330 and more, in magnitude: signs would not be exact
    open_ring,       // the last vertex is not the first
    too_few_points,  // a ring of 1 to 3 vertices, a line of 1; an empty shell with a hole
    // Of validate_rings() alone:
    crossing_rings,  // themselves or each other, inside of segments or in a vertex
    shared_border,  // rings run twice over one piece, as those without area do, and those of two polygons of a row with a common side
    misplaced_ring,  // a hole outside of its polygon, a polygon inside of another
};
[[nodiscard]] std::string_view name_of(flaw what) noexcept;

struct flawed_row {
    std::size_t row = 0;
    flaw what = flaw::offsets;
    std::string message;  // "row 7: ring 2 is open: it begins at (0, 0) and ends at (0, 1)"
};

// At most `most` findings, in order of rows, one per row; of null rows, whose offsets are read as well, only these. errc::unsupported for arrays on a device.
[[nodiscard]] result<std::vector<flawed_row>> validate(geometries const& what, std::size_t most = 100);
// errc::invalid_argument with the first finding's message.
[[nodiscard]] result<void> require_valid(geometries const& what);

// The same of what matrices need beyond that, and all that is asked of them but `intersects` and `disjoint`, where a row of areas meets lines or areas:
// rings that neither cross nor run twice over one piece, holes inside of their polygons and polygons outside of each other. They may touch
// themselves and each other in points. Whatever needs such rings looks by itself, on a device once for each array, and refuses others. make_valid() (overlay.hpp) mends them.
[[nodiscard]] result<std::vector<flawed_row>> validate_rings(geometries const& what, std::size_t most = 100);

}  // namespace spatial
}  // namespace kiln
