// SPDX-License-Identifier: Apache-2.0
// Numbers of rows: boxes, areas, lengths, centroids, counts. NaN where there is none.
#pragma once

#include "grid.cuh"
#include "row_sums.cuh"

namespace kiln_spatial {

KILN_HD double no_number() { return from_bits(u64{0x7ff8} << 48); }

// Where the runs of a path or a row begin that begins at a vertex: no two have one in common.
KILN_HD i32 first_run(i32 number, i32 vertex) { return vertex / run_vertices + number; }

// By vertex: the first of each run makes it.
struct make_ring_runs {
    layer l;
    moments* to;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i), path = l.path_of[v], first = l.path_first[path];
        if (is_ring(l.kind[path]) && (v - first) % run_vertices == 0)
            to[first_run(path, first) + (v - first) / run_vertices] = ring_run(l, path, v);
    }
};
enum class row_runs : i32 { lines, points };
template <row_runs What>
struct make_row_runs {
    layer l;
    moments* to;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i), row = row_at(l, v), first = vertices_of_row(l, row).first;
        if ((v - first) % run_vertices != 0) return;
        moments m;
        if constexpr (What == row_runs::lines) m = line_run(l, row, v);
        else m = point_run(l, row, v);
        to[first_run(row, first) + (v - first) / run_vertices] = m;
    }
};

struct runs_of_rows {
    layer l;
    u8 const* state;
    moments const* ring;
    moments const* line;
    moments const* point;
    KILN_HD moments of_ring(i32 path, i32 v) const { return at(ring, path, l.path_first[path], v); }
    KILN_HD moments of_line(i32 row, i32 v) const { return at(line, row, vertices_of_row(l, row).first, v); }
    KILN_HD moments of_point(i32 row, i32 v) const { return at(point, row, vertices_of_row(l, row).first, v); }

private:
    KILN_HD static moments at(moments const* runs, i32 number, i32 first, i32 v) {
        return runs[first_run(number, first) + (v - first) / run_vertices];
    }
};
struct areas_of_rows {
    runs_of_rows of;
    double* to;
    KILN_HD void operator()(u64 i) const {
        to[i] = of.state[i] == row_null
                    ? no_number()
                    : area_of_row(of.l, static_cast<i32>(i), [this](i32 path, i32 v) { return of.of_ring(path, v); });
    }
};
struct lengths_of_rows {
    runs_of_rows of;
    double* to;
    KILN_HD void operator()(u64 i) const {
        to[i] = of.state[i] == row_null
                    ? no_number()
                    : sums_of_row(of.l, static_cast<i32>(i), [this](i32 row, i32 v) { return of.of_line(row, v); }).weight;
    }
};
struct centroids_of_rows {
    runs_of_rows of;
    double* x;
    double* y;
    KILN_HD void operator()(u64 i) const {
        point at{no_number(), no_number()};
        if (of.state[i] == row_there)
            at = centroid_of_row(
                of.l, static_cast<i32>(i), [this](i32 path, i32 v) { return of.of_ring(path, v); },
                [this](i32 row, i32 v) { return of.of_line(row, v); }, [this](i32 row, i32 v) { return of.of_point(row, v); });
        x[i] = at.x, y[i] = at.y;
    }
};

// Zeros are +0, whichever of them a row has: what is greatest is found turned round, as what is least.
struct box_columns {
    box const* of;
    double* min_x;
    double* min_y;
    double* max_x;
    double* max_y;
    KILN_HD void operator()(u64 i) const {
        box const b = of[i];
        bool const there = b.min_x <= b.max_x;
        min_x[i] = there ? add(b.min_x, 0.0) : no_number(), min_y[i] = there ? add(b.min_y, 0.0) : no_number();
        max_x[i] = there ? add(b.max_x, 0.0) : no_number(), max_y[i] = there ? add(b.max_y, 0.0) : no_number();
    }
};
// Rows whose key is none are left out.
struct boxes_by_key {
    box const* of;
    i32 const* key;
    u64 keys;
    u64* least;  // four by key, of all bits set
    KILN_HD void operator()(u64 i) const {
        box const b = of[i];
        if (key[i] < 0 || static_cast<u64>(key[i]) >= keys || !(b.min_x <= b.max_x)) return;
        u64* const own = least + 4 * static_cast<u64>(key[i]);
        lower_to(own, ordered(b.min_x)), lower_to(own + 1, ordered(b.min_y));
        lower_to(own + 2, ordered(-b.max_x)), lower_to(own + 3, ordered(-b.max_y));
    }
};
// Vertices and paths: points, lines, rings. Of null and empty rows 0.
struct counts_of_rows {
    layer l;
    u8 const* state;
    i32* vertices;
    i32* paths;
    KILN_HD void operator()(u64 i) const {
        i32 const row = static_cast<i32>(i);
        i32 n = 0;
        vertices[i] = paths[i] = 0;
        if (state[i] != row_there) return;
        row_range const all = vertices_of_row(l, row);
        for (i32 p = l.row_first[row]; p < l.row_first[row + 1]; ++p) n += l.kind[p] != no_path ? 1 : 0;
        vertices[i] = all.last - all.first, paths[i] = n;
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(measure_ring_runs, kiln_spatial::make_ring_runs, 128, 4)
KILN_KERNEL(measure_line_runs, kiln_spatial::make_row_runs<kiln_spatial::row_runs::lines>, 128, 4)
KILN_KERNEL(measure_point_runs, kiln_spatial::make_row_runs<kiln_spatial::row_runs::points>, 128, 4)
KILN_KERNEL(measure_areas, kiln_spatial::areas_of_rows, 128, 4)
KILN_KERNEL(measure_lengths, kiln_spatial::lengths_of_rows, 128, 4)
KILN_KERNEL(measure_centroids, kiln_spatial::centroids_of_rows, 128, 4)
KILN_KERNEL(measure_boxes, kiln_spatial::box_columns, 256, 1)
KILN_KERNEL(measure_boxes_by_key, kiln_spatial::boxes_by_key, 256, 1)
KILN_KERNEL(measure_counts, kiln_spatial::counts_of_rows, 256, 1)
