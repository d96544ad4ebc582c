// SPDX-License-Identifier: Apache-2.0
// Borders of results become polygons (kernels/spatial/overlay_rings.cuh), where a queue runs.
#pragma once

#include "spatial/overlay/arrangement.hpp"

#include <kiln/spatial/geometry.hpp>

namespace kiln::spatial {

// Which result each border bounds, in no particular order.
struct result_borders {
    buffer<std::uint64_t> key;   // pair_key() of the result
    buffer<std::int32_t> piece;  // border << 1 | backwards
};

class drawing {
public:
    drawing(queue& on, arrangement const& of) noexcept : on_{on}, of_{of} {}

    // Results in the order of their keys, of which the halves are left() and right().
    [[nodiscard]] result<void> order(result_borders const& of);
    [[nodiscard]] std::size_t results() const noexcept { return results_; }
    [[nodiscard]] buffer<std::int32_t> const& left() const noexcept { return left_; }
    [[nodiscard]] buffer<std::int32_t> const& right() const noexcept { return right_; }

    // Their polygons, as valid as OGC wants them. A row for every result; or, where there is a number of rows, that many, each with
    // the result whose left() it is. Without results, empty rows. Polygons of a row, and holes of a polygon, come by where they
    // are leftmost, and of that lowest.
    [[nodiscard]] result<geometry_parts> draw();
    [[nodiscard]] result<geometry_parts> draw(std::size_t rows);

private:
    struct rings;
    [[nodiscard]] kiln_spatial::piece_list pieces() const noexcept { return {of_.view(), piece_.data()}; }
    [[nodiscard]] result<void> link();
    // step(its own counter of changes)
    template <class Step>
    [[nodiscard]] result<void> until_nothing_changes(Step step);
    [[nodiscard]] result<buffer<std::int32_t>> first_of_rings(buffer<std::int32_t> const& next);
    [[nodiscard]] result<buffer<std::int32_t>> vertices_left(buffer<std::int32_t> const& next,
                                                             buffer<std::int32_t> const& first);
    [[nodiscard]] result<rings> draw_rings();
    [[nodiscard]] result<void> find_shells(rings& of);
    // Where a result has several shells, and holes.
    [[nodiscard]] std::size_t most_holes_by_edges(std::size_t edges) const;
    [[nodiscard]] result<void> find_shells_by_edges(rings& of, std::size_t holes);
    [[nodiscard]] result<void> find_shells_by_cells(rings& of);
    [[nodiscard]] result<void> put_in_order(rings& of);
    [[nodiscard]] result<geometry_parts> assemble(rings const& of, std::size_t rows, std::int32_t const* row_of);

    queue& on_;
    arrangement const& of_;
    std::size_t results_ = 0;
    buffer<std::int32_t> piece_, result_, left_, right_, first_, next_;
};

}  // namespace kiln::spatial
