// SPDX-License-Identifier: Apache-2.0
// Builds the cells of cells.cuh, level by level. An entry says that an edge comes near a cell, or, with no_edge for the edge,
// that the cell's corner lies inside of the row; entries are sorted by cell and row, stably, corners before edges. From sorted
// entries come records and heads; the entries of crowded cells are divided into those of the next level.
//
// Two layers may be built at once, each in its own storey of cells over the same frame: the second's lines are numbered behind those of the first. So nothing
// of one meets anything of the other, and what is too small to keep a device busy is waited for once. Or each world of rows has a frame of its own, and
// its cells come behind those of the world before: whoever asks for rows of one world finds no others.
#pragma once

#include "cells.cuh"
#include "grid.cuh"
#include "layer.cuh"

namespace kiln_spatial {

enum : u32 { no_edge = ~0U };

// cell << row_bits | row
struct entry_key {
    i32 row_bits;
    KILN_HD u64 make(u64 cell, u32 row) const { return cell << row_bits | row; }
    KILN_HD u64 cell(u64 key) const { return key >> row_bits; }
    KILN_HD u32 row(u64 key) const { return static_cast<u32>(key & ((u64{1} << row_bits) - 1)); }
};
struct entry_list {
    u64 const* key;
    u32 const* edge;
    u64 count;
};

KILN_HD bool is_edge(layer const& l, i32 v) { return is_ring(l.kind[l.path_of[v]]) && is_segment(l, v); }

// ---- Frames of worlds ----------------------------------------------------------------------------------------------------

// A box and edges by world, from those of rows.
struct world_extents {
    layer l;
    box const* row_box;  // turned round: none
    i32 const* world;    // by row
    u64* around;         // four by world, as of frame_of_extent(), of all bits set
    u64* edges;          // by world, of 0
    KILN_HD void operator()(u64 i) const {
        box const b = row_box[i];
        if (!(b.min_x <= b.max_x)) return;
        u64* const to = around + 4 * static_cast<u64>(world[i]);
        lower_to(to, ordered(b.min_x)), lower_to(to + 1, ordered(b.min_y));
        lower_to(to + 2, ordered(-b.max_x)), lower_to(to + 3, ordered(-b.max_y));
        add_to(edges + world[i], static_cast<u64>(l.path_first[l.row_first[i + 1]] - l.path_first[l.row_first[i]]));
    }
};
// What has few edges has one cell: all of them are looked at.
enum : u32 { edges_of_single_cell = 32 };
struct make_world_frames {
    u64 const* around;
    u64 const* edges;
    double cells_per_edge;
    world_frame* to;
    i64* cells;
    u64* fewest;  // of all bits set: ~ of the most rows of a frame, and of the most columns
    KILN_HD void operator()(u64 i) const {
        u64 const* const a = around + 4 * i;
        bool const is_there = a[0] != ~u64{0};
        box const all{unordered(a[0]), unordered(a[1]), -unordered(a[2]), -unordered(a[3])};
        double const wanted = most(mul(static_cast<double>(edges[i]), cells_per_edge), 1);
        cell_frame const f = !is_there                          ? cell_frame{0, 0, 1, 1, 0, 0}
                             : edges[i] <= edges_of_single_cell ? single_cell_around(all)
                                                                : frame_around(all, wanted, wanted);
        to[i].frame = f, cells[i] = static_cast<i64>(f.columns) * f.rows;
        lower_together(fewest, ~static_cast<u64>(f.rows)), lower_together(fewest + 1, ~static_cast<u64>(f.columns));
    }
};
struct number_world_cells {
    i64 const* first;  // summed cells
    world_frame* to;
    KILN_HD void operator()(u64 i) const { to[i].first_cell = static_cast<u32>(first[i]); }
};

// One frame for all rows, or one for each world.
struct cell_frames {
    cell_frame one;
    world_frame const* own;  // by world; null: one
    i32 const* world;        // by row
    u64 worlds;

    KILN_HD cell_frame of(u32 row) const { return own == nullptr ? one : own[world[row]].frame; }
    // Lines of the one frame are numbered through its storeys.
    KILN_HD u64 cell(u32 row, u64 line, u64 column) const {
        if (own == nullptr) return line * static_cast<u64>(one.columns) + column;
        world_frame const& w = own[world[row]];
        return w.first_cell + line * static_cast<u64>(w.frame.columns) + column;
    }
};

// ---- The undivided grid --------------------------------------------------------------------------------------------------

// Cells (high) and lines (low) of every edge.
struct edge_counts {
    layer l;
    cell_frames frames;
    i64* counts;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i);
        u32 cells = 0, lines = 0;
        if (is_edge(l, v)) {
            cell_frame const f = frames.of(static_cast<u32>(row_at(l, v)));
            visit_cells(f, l.at[v], l.at[v + 1], [&](i32, i32) { ++cells; });
            visit_crossed_lines(f, l.at[v], l.at[v + 1], [&](i32, i32) { ++lines; });
        }
        counts[i] = both_counts(cells, lines);
    }
};

// (row << line_bits | line) << column_bits | column
struct line_key {
    i32 line_bits, column_bits;
    KILN_HD u64 make(u32 row, i32 line, i32 column) const {
        return (static_cast<u64>(row) << line_bits | static_cast<u64>(line)) << column_bits | static_cast<u64>(column);
    }
    KILN_HD u32 row(u64 key) const { return static_cast<u32>(key >> (line_bits + column_bits)); }
    KILN_HD u64 line(u64 key) const { return key >> column_bits & ((u64{1} << line_bits) - 1); }
    KILN_HD u64 column(u64 key) const { return key & ((u64{1} << column_bits) - 1); }
};
struct edge_lines {
    layer l;
    cell_frames frames;
    line_key by;
    i32 first_line;  // of the storey
    i64 const* first;
    u64* key;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i);
        if (!is_edge(l, v)) return;
        u64 at = low_of(first[i]);
        u32 const row = static_cast<u32>(row_at(l, v));
        visit_crossed_lines(frames.of(row), l.at[v], l.at[v + 1], [&](i32 line, i32 column) { key[at++] = by.make(row, first_line + line, column); });
    }
};
// Every row crosses every line an even number of times; from each odd crossing to the next, corners are inside.
struct line_spans {
    line_key by;
    u64 const* key;
    i64* length;
    KILN_HD void operator()(u64 i) const { length[i] = static_cast<i64>(by.column(key[2 * i + 1]) - by.column(key[2 * i])); }
};
struct corner_entries {
    line_key by;
    entry_key to;
    u64 const* line;
    i64 const* first;  // of spans
    u64 spans;
    cell_frames frames;
    u64* key;
    u32* edge;
    KILN_HD void operator()(u64 i) const {
        u64 const span = last_not_above(spans, static_cast<i64>(i), [this](u64 k) { return first[k]; });
        u64 const from = line[2 * span], column = by.column(from) + (i - static_cast<u64>(first[span]));
        key[i] = to.make(frames.cell(by.row(from), by.line(from), column), by.row(from)), edge[i] = no_edge;
    }
};
struct edge_entries {
    layer l;
    cell_frames frames;
    entry_key to;
    i32 first_line;  // of the storey
    i64 const* first;
    u64* key;  // behind the corners
    u32* edge;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i);
        if (!is_edge(l, v)) return;
        u64 at = high_of(first[i]);
        u32 const row = static_cast<u32>(row_at(l, v));
        visit_cells(frames.of(row), l.at[v], l.at[v + 1], [&](i32 column, i32 line) {
            key[at] = to.make(frames.cell(row, static_cast<u64>(first_line + line), static_cast<u64>(column)), row);
            edge[at++] = static_cast<u32>(v);
        });
    }
};

// ---- Records and heads of a level ----------------------------------------------------------------------------------------

// A cell of the level before that was divided: its parts are cells first_cell and so on of this level.
struct alignas(16) divided_cell {
    double x, y, width, height;  // of the whole
    u32 cell;                    // of its own level
    u32 log, edges;
    u32 first_cell, first_entry, entries, first_work, storey;
    KILN_HD cell_frame parts() const {
        double const scale = from_bits(static_cast<u64>(1023 - log) << 52);  // 2^-log
        return {x, y, mul(width, scale), mul(height, scale), 1 << log, 1 << log};
    }
};
struct cell_level {
    cell_frames top;
    divided_cell const* parent;  // null: the undivided grid
    u64 parents;

    struct place {
        double x, y, width, height;
        u32 parent_edges, storey;
        u64 columns;  // of the grid it is in
        bool is_last_column, is_last_row;
    };
    KILN_HD place at(u64 cell) const {
        if (parent == nullptr) return at_top(cell);
        divided_cell const& p =
            parent[last_not_above(parents, static_cast<u32>(cell), [this](u64 k) { return parent[k].first_cell; })];
        return inside(p.parts(), cell - p.first_cell, p.edges, p.storey);
    }

private:
    KILN_HD place at_top(u64 cell) const {
        if (top.own != nullptr) {
            world_frame const& w =
                top.own[last_not_above(top.worlds, static_cast<u32>(cell), [this](u64 k) { return top.own[k].first_cell; })];
            return inside(w.frame, cell - w.first_cell, ~0U, 0);
        }
        u64 const of_storey = static_cast<u64>(top.one.columns) * static_cast<u64>(top.one.rows);
        return inside(top.one, cell % of_storey, ~0U, static_cast<u32>(cell / of_storey));
    }
    KILN_HD static place inside(cell_frame const& f, u64 cell, u32 edges, u32 storey) {
        u64 const columns = static_cast<u64>(f.columns);
        return {add(f.x, mul(static_cast<double>(cell % columns), f.width)),
                add(f.y, mul(static_cast<double>(cell / columns), f.height)), f.width, f.height, edges, storey, columns,
                cell % columns + 1 == columns, cell / columns + 1 == static_cast<u64>(f.rows)};
    }
};

// Edges (high) and first entries of records (low).
struct entry_counts {
    entry_list e;
    i64* counts;
    KILN_HD static bool begins_record(entry_list const& e, u64 i) {
        if (e.edge[i] == no_edge) return i + 1 == e.count || e.key[i + 1] != e.key[i];  // of a cell that is all inside
        return i == 0 || e.key[i - 1] != e.key[i] || e.edge[i - 1] == no_edge || e.edge[i - 1] + 1 != e.edge[i];
    }
    KILN_HD void operator()(u64 i) const { counts[i] = both_counts(e.edge[i] != no_edge ? 1 : 0, begins_record(e, i) ? 1 : 0); }
};
struct cell_ranges {
    entry_list e;
    entry_key by;
    u32* first;
    u32* last;  // both 0 for cells without entries
    KILN_HD void operator()(u64 i) const {
        u64 const cell = by.cell(e.key[i]);
        if (i == 0 || by.cell(e.key[i - 1]) != cell) first[cell] = static_cast<u32>(i);
        if (i + 1 == e.count || by.cell(e.key[i + 1]) != cell) last[cell] = static_cast<u32>(i) + 1;
    }
};

// What a cell has: edges, rows or some more than that, and how many rows at most have one of its four corners inside.
struct cell_load {
    u32 edges, rows, depth;
};
struct division {
    u32 above;                  // edges
    double edges_per_cell;      // after dividing
    double least_side;
    i32 levels_left;
    KILN_HD bool is_crowded(u32 edges) const { return edges > above && levels_left != 0; }
    // How many times to halve a crowded cell's sides; 0: leave it. Dividing helps only where it parts the edges: many that meet in one
    // point stay together, and so do rows that lie over each other, which every part would have to list.
    KILN_HD u32 log_of(cell_level::place const& p, cell_load const& load) const {
        u32 const edges = load.edges;
        double side = mul(least(p.width, p.height), 0.5), room = mul(edges_per_cell, 4);
        if (edges > p.parent_edges / 2 || side < least_side) return 0;
        u32 log = 1;
        while (log < 5 && room < edges && mul(side, 0.5) >= least_side) ++log, room = mul(room, 4), side = mul(side, 0.5);
        return worth(log, load);
    }
    // Corners of parts that are asked for, and those that lie inside and are listed, stay in proportion to the edges.
    KILN_HD static u32 worth(u32 log, cell_load const& load) {
        u64 const edges = load.edges;
        while (log > 0 && ((static_cast<u64>(load.rows) << (2 * log)) > 64 * edges || (static_cast<u64>(load.depth) << (2 * log)) > 4 * edges)) --log;
        return log;
    }
};
// Of each cell: is it divided (high), into how many (low); and how many entries that takes with it.
struct cell_sizes {
    cell_level level;
    division how;
    u32 const* first;
    u32 const* last;
    i64 const* counts;  // of entries, summed
    i64* divided;
    i64* work;
    KILN_HD void operator()(u64 i) const {
        u32 const log = log_of(i);
        divided[i] = log == 0 ? 0 : both_counts(1, 1U << (2 * log));
        work[i] = log == 0 ? 0 : static_cast<i64>(last[i] - first[i]);
    }
    KILN_HD u32 edges_in(u64 i) const { return high_of(counts[last[i]]) - high_of(counts[first[i]]); }
    KILN_HD u32 log_of(u64 i) const {
        u32 const edges = edges_in(i);
        if (!how.is_crowded(edges)) return 0;
        cell_level::place const p = level.at(i);
        return how.log_of(p, {edges, low_of(counts[last[i]]) - low_of(counts[first[i]]), depth_at(i, p)});
    }

private:
    // Rows that have the cell's own corner inside.
    KILN_HD u32 corners_in(u64 i) const { return last[i] - first[i] - edges_in(i); }
    // Of a grid's last cells the corners that belong to others are left out.
    KILN_HD u32 depth_at(u64 i, cell_level::place const& p) const {
        u32 out = corners_in(i);
        for (int k = 1; k < 4; ++k) {
            bool const right = (k & 1) != 0, above = (k & 2) != 0;
            if ((right && p.is_last_column) || (above && p.is_last_row)) continue;
            u32 const there = corners_in(i + (right ? 1 : 0) + (above ? p.columns : 0));
            out = there > out ? there : out;
        }
        return out;
    }
};
struct divided_cells {
    cell_sizes sizes;
    i64 const* divided;  // summed
    i64 const* work;
    u32 first_head;  // of the next level's cells
    divided_cell* to;
    sub_grid* sub;
    KILN_HD void operator()(u64 i) const {
        if (divided[i + 1] == divided[i]) return;
        u32 const edges = sizes.edges_in(i), k = high_of(divided[i]), log = sizes.log_of(i);
        cell_level::place const p = sizes.level.at(i);
        to[k] = {p.x,   p.y,    p.width, p.height, static_cast<u32>(i), log, edges, low_of(divided[i]), sizes.first[i], sizes.last[i] - sizes.first[i],
                 static_cast<u32>(work[i]), p.storey};
        sub[k] = {first_head + low_of(divided[i]), log};
    }
};

struct entry_records {
    entry_list e;
    entry_key by;
    i64 const* counts;  // summed
    cell_record* record;
    KILN_HD void operator()(u64 i) const {
        u32 const v = e.edge[i];
        bool const begins = entry_counts::begins_record(e, i), corner = v == no_edge;
        cell_record* const r = record + low_of(counts[i]) - (begins ? 0 : 1);
        if (begins) {
            bool const new_row = i == 0 || e.key[i - 1] != e.key[i], after_corner = !new_row && e.edge[i - 1] == no_edge;
            u32 flags = corner ? record_first | record_full : 0;
            if (!corner && (new_row || after_corner)) flags |= record_first;
            if (!corner && after_corner) flags |= record_corner;
            r->row = by.row(e.key[i]) | flags;
            r->first = corner ? 0 : v;
            r->unused = 0;
            if (corner) r->last = 0;
        }
        if (!corner && (i + 1 == e.count || e.key[i + 1] != e.key[i] || e.edge[i + 1] != v + 1)) r->last = v + 1;
    }
};
// After entry_records and divided_cells.
struct cell_heads {
    u32 const* first;
    u32 const* last;
    i64 const* counts;   // of entries, summed
    i64 const* divided;  // of cells, summed; null: none
    u32 first_record, first_sub;
    cell_record* record;  // of this level
    u32* head;
    KILN_HD void operator()(u64 i) const {
        u32 const a = first[i], b = last[i];
        if (a == b) {
            head[i] = head_empty;
            return;
        }
        u32 const r = low_of(counts[a]), end = low_of(counts[b]);
        record[end - 1].row |= record_last;
        if (divided != nullptr && divided[i + 1] != divided[i]) head[i] = head_divided | (first_sub + high_of(divided[i]));
        else if (end - r == 1 && (record[r].row & record_full) != 0) head[i] = head_full | (record[r].row & record_row);
        else head[i] = head_list | (first_record + r);
    }
};

// ---- Dividing ------------------------------------------------------------------------------------------------------------

struct divided_entries {
    entry_list e;
    point const* at;        // of the first storey's vertices
    point const* at_above;  // of the second's
    divided_cell const* cell;
    u64 cells;
    KILN_HD divided_cell const& cell_of(u64 work) const {
        return cell[last_not_above(cells, static_cast<u32>(work), [this](u64 k) { return cell[k].first_work; })];
    }
    KILN_HD point const* vertices(divided_cell const& c) const { return c.storey == 0 ? at : at_above; }
    KILN_HD u64 entry_of(divided_cell const& c, u64 work) const { return c.first_entry + (work - c.first_work); }
};
// Of each entry of a divided cell: parts it comes near (low), and, at the first of a row, corners to ask about (high).
struct part_counts {
    divided_entries d;
    i64* counts;
    KILN_HD void operator()(u64 i) const {
        divided_cell const& c = d.cell_of(i);
        u64 const k = d.entry_of(c, i);
        u32 const v = d.e.edge[k];
        u32 parts = 0;
        point const* const at = d.vertices(c);
        if (v != no_edge) visit_cells(c.parts(), at[v], at[v + 1], [&](i32, i32) { ++parts; });
        bool const new_row = k == c.first_entry || d.e.key[k - 1] != d.e.key[k];
        counts[i] = both_counts(new_row ? 1U << (2 * c.log) : 0, parts);
    }
};
// Is the corner inside? By the walk that locates points.
struct part_corners {
    divided_entries d;
    i64 const* counts;  // summed
    u64 work;
    i64* inside;
    KILN_HD void operator()(u64 i) const {
        u64 const at = last_not_above(work, static_cast<u32>(i), [this](u64 k) { return high_of(counts[k]); });
        divided_cell const& c = d.cell_of(at);
        cell_frame const parts = c.parts();
        u32 const part = static_cast<u32>(i) - high_of(counts[at]), n = 1U << c.log;
        point const p{add(c.x, mul(static_cast<double>(part % n), parts.width)), add(c.y, mul(static_cast<double>(part / n), parts.height))};
        cell_walk<tie::on> walk{p, {c.x, c.y}, false};
        point const* const vertices = d.vertices(c);
        u64 k = d.entry_of(c, at);
        u64 const key = d.e.key[k], end = static_cast<u64>(c.first_entry) + c.entries;
        for (; k < end && d.e.key[k] == key; ++k) {
            u32 const v = d.e.edge[k];
            if (v == no_edge) walk.inside = !walk.inside;
            else walk.edge(vertices[v], vertices[v + 1]);
        }
        inside[i] = walk.inside ? 1 : 0;
    }
};
struct part_corner_entries {
    divided_entries d;
    entry_key by;
    i64 const* counts;  // summed
    u64 work;
    i64 const* inside;  // summed
    u64* key;
    u32* edge;
    KILN_HD void operator()(u64 i) const {
        if (inside[i + 1] == inside[i]) return;
        u64 const at = last_not_above(work, static_cast<u32>(i), [this](u64 k) { return high_of(counts[k]); });
        divided_cell const& c = d.cell_of(at);
        u32 const part = static_cast<u32>(i) - high_of(counts[at]);
        key[inside[i]] = by.make(static_cast<u64>(c.first_cell) + part, by.row(d.e.key[d.entry_of(c, at)]));
        edge[inside[i]] = no_edge;
    }
};
struct part_edge_entries {
    divided_entries d;
    entry_key by;
    i64 const* counts;  // summed
    u64* key;           // behind the corners
    u32* edge;
    KILN_HD void operator()(u64 i) const {
        divided_cell const& c = d.cell_of(i);
        u64 const k = d.entry_of(c, i);
        u32 const v = d.e.edge[k], row = by.row(d.e.key[k]);
        if (v == no_edge) return;
        u64 at = low_of(counts[i]);
        point const* const vertices = d.vertices(c);
        visit_cells(c.parts(), vertices[v], vertices[v + 1], [&](i32 column, i32 line) {
            key[at] = by.make(c.first_cell + (static_cast<u64>(line) << c.log) + static_cast<u64>(column), row), edge[at++] = v;
        });
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(cell_world_extents, kiln_spatial::world_extents, 256, 1)
KILN_KERNEL(cell_world_frames, kiln_spatial::make_world_frames, 128, 1)
KILN_KERNEL(cell_world_numbers, kiln_spatial::number_world_cells, 256, 1)
KILN_KERNEL(cell_edge_counts, kiln_spatial::edge_counts, 128, 1)
KILN_KERNEL(cell_edge_lines, kiln_spatial::edge_lines, 128, 1)
KILN_KERNEL(cell_line_spans, kiln_spatial::line_spans, 256, 1)
KILN_KERNEL(cell_corner_entries, kiln_spatial::corner_entries, 256, 1)
KILN_KERNEL(cell_edge_entries, kiln_spatial::edge_entries, 128, 1)
KILN_KERNEL(cell_entry_counts, kiln_spatial::entry_counts, 256, 1)
KILN_KERNEL(cell_entry_ranges, kiln_spatial::cell_ranges, 256, 1)
KILN_KERNEL(cell_divisions, kiln_spatial::cell_sizes, 256, 1)
KILN_KERNEL(cell_divided, kiln_spatial::divided_cells, 256, 1)
KILN_KERNEL(cell_entry_records, kiln_spatial::entry_records, 256, 1)
KILN_KERNEL(cell_level_heads, kiln_spatial::cell_heads, 256, 1)
KILN_KERNEL(cell_part_counts, kiln_spatial::part_counts, 128, 1)
KILN_KERNEL(cell_part_corners, kiln_spatial::part_corners, 128, 1)
KILN_KERNEL(cell_part_corner_entries, kiln_spatial::part_corner_entries, 128, 1)
KILN_KERNEL(cell_part_edge_entries, kiln_spatial::part_edge_entries, 128, 1)
