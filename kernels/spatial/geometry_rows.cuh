// SPDX-License-Identifier: Apache-2.0
// Geometries in GeoArrow's arrays, as kernels see them: all families, mixed arrays and views.
#pragma once

#include "support.cuh"

namespace kiln_spatial {

// By the family's number less one.
enum : i32 { a_point, a_linestring, a_polygon, a_multipoint, a_multilinestring, a_multipolygon, families };

struct family_memory {
    double const* x;
    double const* y;
    i32 const* offsets[3];
};
struct geometry_rows {
    family_memory memory[families];
    signed char const* type;  // of mixed arrays; the family's own number
    i32 const* child_row;
    u8 const* validity;
    i32 const* chosen;
    i32 family;  // of the others
    i32 rows;
};

struct row_source {
    i32 family;  // -1: a null row of a mixed array
    i32 row;     // of its memory
    bool valid;
};
KILN_HD row_source source_of(geometry_rows const& g, i32 row) {
    i32 const m = g.chosen != nullptr ? g.chosen[row] : row;
    bool const valid = g.validity == nullptr || (g.validity[m >> 3] >> (m & 7) & 1) != 0;
    if (g.type == nullptr) return {g.family, m, valid};
    if (!valid) return {-1, 0, false};
    return {g.type[m] - 1, g.child_row[m], true};
}

struct item_range {
    i32 first, last;
};
KILN_HD item_range paths_of(family_memory const& f, i32 family, i32 row) {
    switch (family) {
        case a_point:
        case a_linestring: return {row, row + 1};
        case a_multipolygon: return {f.offsets[1][f.offsets[0][row]], f.offsets[1][f.offsets[0][row + 1]]};
        default: return {f.offsets[0][row], f.offsets[0][row + 1]};
    }
}
// Of a path of the memory.
KILN_HD i32 first_vertex(family_memory const& f, i32 family, i32 path) {
    switch (family) {
        case a_linestring: return f.offsets[0][path];
        case a_polygon:
        case a_multilinestring: return f.offsets[1][path];
        case a_multipolygon: return f.offsets[2][path];
        default: return path;
    }
}
KILN_HD int dimension_of_family(i32 family) { return family % 3; }
KILN_HD bool is_no_point(family_memory const& f, i32 v) { return f.x[v] != f.x[v] && f.y[v] != f.y[v]; }

}  // namespace kiln_spatial
