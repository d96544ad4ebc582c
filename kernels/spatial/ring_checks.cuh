// SPDX-License-Identifier: Apache-2.0
// Whether rows are what relations take them for: offsets that stay inside of the memory, vertices whose signs are exact, closed rings, and rings that are borders (src/spatial/rings.cpp, which does
// the same on the host). What is found is the least number of a row that is not; the host then says why. Segments of a row that meet are found by the tree over all elements, by
// filters first. Only rows that touch themselves or have several rings are looked at further: they are noded, and around each of their vertices the sides must change.
//
// Whether rings lie where they should is asked at the first vertex of each, moved by -(e, e^2), e infinitesimal: what the rings through it say of that place, and what the parity
// of all rings of the row says. Walking along rings that touch each other, both change together at every ray. So one vertex speaks for all of them, and the host may ask another.
#pragma once

#include "cells.cuh"
#include "geometry_rows.cuh"
#include "relate.cuh"
#include "segment_contacts.cuh"
#include "some_rows.cuh"

namespace kiln_spatial {

// ---- Memory --------------------------------------------------------------------------------------------------------------

// Elements of a family's buffers.
struct family_size {
    i64 vertices;
    i64 offsets[3];
};
// Of geometries: what no kernel could read. Rows of views and mixed arrays that are not there, offsets that do not begin at 0, go back or leave the
// memory; of null rows too, whose offsets are read like all others. And polygons with a hole and no shell, which only offsets tell.
struct check_memory {
    geometry_rows g;
    family_size size[families];
    i64 rows;  // of the memory, without a view
    u64* least_row;  // of all bits set
    KILN_HD void operator()(u64 i) const {
        if (!is_there(static_cast<i32>(i))) lower_to(least_row, i);
    }

private:
    KILN_HD bool is_there(i32 row) const {
        if (g.chosen != nullptr && (g.chosen[row] < 0 || g.chosen[row] >= rows)) return false;
        row_source const s = source_of(g, row);
        if (s.family < 0) return !s.valid;
        if (s.family >= families) return false;
        int const levels = levels_of(s.family);
        i64 first = s.row, last = first + 1;
        if (first < 0 || last > (levels == 0 ? size[s.family].vertices : size[s.family].offsets[0] - 1)) return false;
        for (int level = 0; level < levels; ++level)
            if (!enters(s.family, level, level + 1 < levels ? size[s.family].offsets[level + 1] - 1 : size[s.family].vertices, first, last))
                return false;
        return s.family % 3 != a_polygon || !s.valid || has_shells(s);
    }
    // Of areas whose offsets are in order: a hole is one in something. Kinds of paths do not tell, as an empty hole is no path either.
    KILN_HD bool has_shells(row_source const& s) const {
        family_memory const& f = g.memory[s.family];
        bool const many = s.family == a_multipolygon;
        i32 const* const rings = f.offsets[many ? 1 : 0];
        i32 const* const vertices = f.offsets[many ? 2 : 1];
        i32 const first = many ? f.offsets[0][s.row] : s.row, last = many ? f.offsets[0][s.row + 1] : s.row + 1;
        for (i32 i = first; i < last; ++i) {
            i32 const shell = rings[i], end = rings[i + 1];
            if (shell < end && vertices[shell] == vertices[shell + 1] && vertices[end] > vertices[shell]) return false;
        }
        return true;
    }
    KILN_HD static int levels_of(i32 family) {
        return family == a_point ? 0 : family == a_linestring || family == a_multipoint ? 1 : family == a_multipolygon ? 3 : 2;
    }
    // What lies inside of some members of a level.
    KILN_HD bool enters(i32 family, int level, i64 room, i64& first, i64& last) const {
        i32 const* const at = g.memory[family].offsets[level];
        for (i64 i = first; i <= last; ++i)
            if (at[i] < 0 || at[i] > room || (i > first && at[i] < at[i - 1])) return false;
        if (first == 0 && at[0] != 0) return false;
        first = at[first], last = at[last];
        return true;
    }
};

// ---- Vertices ------------------------------------------------------------------------------------------------------------

// Of a layer as its geometries are: what else validate() refuses.
struct check_vertices {
    layer l;
    signed char const* dimension;
    u64* least_row;  // of all bits set
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i), path = l.path_of[v];
        if (l.kind[path] == no_path) return;
        bool const is_exact = in_domain(l.at[v].x) && in_domain(l.at[v].y);
        if (!is_exact || (v == l.path_first[path] && !is_whole(path))) lower_to(least_row, static_cast<u64>(l.row_of[path]));
    }

private:
    KILN_HD bool is_whole(i32 path) const {
        int const d = dimension[l.row_of[path]];
        i32 const first = l.path_first[path], last = l.path_first[path + 1] - 1;
        if (d == 2) return last - first >= 3 && l.at[first] == l.at[last];
        return d == 0 || last > first;
    }
};

// Of a distinct layer: rings that are points by now, and rings that turn back in a vertex.
struct check_turns {
    layer l;
    signed char const* dimension;
    u64* least_row;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i), path = l.path_of[v], row = l.row_of[path];
        if (dimension[row] != 2 || l.kind[path] == no_path) return;
        if (!is_ring(l.kind[path]) || (is_segment(l, v) && turns_back(v))) lower_to(least_row, static_cast<u64>(row));
    }

private:
    KILN_HD bool turns_back(i32 v) const {
        point const x = l.at[v], from = l.at[vertex_before(l, v)], to = l.at[vertex_after(l, v)];
        return same_direction(x, from, to) && orient(x, from, to) == 0;
    }
};

// ---- Segments of a row that meet -----------------------------------------------------------------------------------------

// Every two of a ring's row once, but for neighbours, which meet in a vertex and nowhere else unless the ring turns back.
struct own_question : contact_question {
    KILN_HD bool may_meet(i32 v, u32 slot) const {
        i32 const w = static_cast<i32>(t.item[slot]), path = a.path_of[v];
        if (w <= v || !is_ring(a.kind[path]) || a.row_of[path] != row_at(a, w)) return false;
        return path != a.path_of[w] || (w != v + 1 && (v != a.path_first[path] || w + 2 != a.path_first[path + 1]));
    }
};
using asking_own = asking_in_pairs<own_question>;

// What filters cannot decide is listed, and so is who has much to look at.
struct find_own_contacts {
    asking_own who;
    u64* least_row;
    u32* unsure;
    u32* unsures;
    u32* heavy;
    u32* heavies;
    KILN_HD void operator()(u64 i) const {
        auto const g = who.at(i);
        bool is_unsure = false, put_off = false;
        if (g.reach.min_x <= g.reach.max_x) {
            put_off = !query_tree_within(who.q.t, g.reach, most_light_contact_nodes, [&](u32 slot) {
                who.contacts(g, slot, [&](int member, u8 how) {
                    if (how == crossing) lower_to(least_row, static_cast<u64>(row_at(who.q.a, g.first + member)));
                    else is_unsure = true;
                });
                return true;
            });
        }
        append(is_unsure && !put_off, static_cast<u32>(i), unsure, unsures);
        append(put_off, static_cast<u32>(i), heavy, heavies);
    }
};

// Segments that touch are for what follows; others that meet make their row one that is refused.
struct settle_contacts {
    asking_own who;
    u64* least_row;
    u32* rows;  // that touch themselves, of 0
    u64* any;   // of them
    KILN_HD void at(asking_own::group const& g, u32 slot) const {
        who.contacts(g, slot, [&](int member, u8) {
            layer const& l = who.q.a;
            i32 const v = g.first + member, row = row_at(l, v);
            segment const s = who.q.elements[slot];
            segment_contact const how = contact_of(l.at[v], l.at[v + 1], s.a, s.b);
            if (how == crossing || how == overlapping) lower_to(least_row, static_cast<u64>(row));
            if (how == touching) rows[row] = 1, *any = 1;
        });
    }
};
struct settle_unsure {
    settle_contacts to;
    u32 const* unsure;
    u32 const* unsures;
    u64 threads;
    KILN_HD void operator()(u64 thread) const {
        for (u64 k = thread; k < *unsures; k += threads) {
            auto const g = to.who.at(unsure[k]);
            query_tree(to.who.q.t, g.reach, [&](u32 slot) { to.at(g, slot); });
        }
    }
};
// Each of them against every subtree below one level.
struct settle_heavy {
    settle_contacts to;
    u32 const* heavy;
    u32 const* heavies;
    u32 first_node, nodes;
    i32 level;
    u64 threads;
    KILN_HD void operator()(u64 thread) const {
        for (u64 k = thread; k < static_cast<u64>(*heavies) * nodes; k += threads) {
            auto const g = to.who.at(heavy[k / nodes]);
            query_subtree(to.who.q.t, first_node + static_cast<u32>(k % nodes), level, g.reach, [&](u32 slot) { to.at(g, slot); });
        }
    }
};

// ---- Rows of several rings -----------------------------------------------------------------------------------------------

struct mark_rows {
    u64 const* row_paths;
    u64 const* row_segments;
    signed char const* dimension;
    u32* rows;  // several rings
    u64* any;
    u64* any_length;  // a row of lines or areas
    KILN_HD void operator()(u64 row) const {
        int const d = dimension[row];
        if (d == 2 && path_count{row_paths[row]}.all() > 1) rows[row] = 1, *any = 1;
        if (d == 2 || (d == 1 && row_segments[row] != 0)) *any_length = 1;
    }
};

// ---- Around vertices -----------------------------------------------------------------------------------------------------

// A border that leaves a vertex: whether its row's interior is on its left, that is, counter-clockwise of it.
KILN_HD bool has_interior_left(layer const& l, i32 v, bool outgoing) { return (l.kind[l.path_of[v]] == reversed_ring) != outgoing; }

// found(to, interior_left) for all of them at v's place, but for v's own one if `without` is 0 (the one that comes in) or 1.
template <class Found>
KILN_HD void each_ray(layer const& l, i32 v, int without, Found found) {
    for (i32 k = l.group_first[v]; k < l.group_first[v] + l.group_size[v]; ++k) {
        i32 const m = l.member[k];
        if (!is_ring(l.kind[l.path_of[m]])) continue;
        for (int outgoing = 0; outgoing < 2; ++outgoing) {
            if (m == v && outgoing == without) continue;
            found(l.at[outgoing != 0 ? vertex_after(l, m) : vertex_before(l, m)], has_interior_left(l, m, outgoing != 0));
        }
    }
}

// Of a noded layer: the next ray clockwise of each has its interior on the other side.
struct check_sides {
    layer l;
    some_rows rows;
    u64* least_row;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i), row = row_at(l, v);
        if (!rows.has(row) || !is_ring(l.kind[l.path_of[v]]) || !is_segment(l, v) || l.group_size[v] < 2) return;
        if (!changes_after(v, 0) || !changes_after(v, 1)) lower_to(least_row, static_cast<u64>(row));
    }

private:
    KILN_HD bool changes_after(i32 v, int outgoing) const {
        point const x = l.at[v], r = l.at[outgoing != 0 ? vertex_after(l, v) : vertex_before(l, v)];
        point best = x;
        bool left = false, is_alone = true;
        each_ray(l, v, outgoing, [&](point c, bool interior_left) {
            bool const is_same = orient(x, r, c) == 0 && same_direction(x, r, c);
            if (is_same) is_alone = false;
            if (is_same || (best != x && !is_before(x, r, c, best))) return;
            best = c, left = interior_left;
        });
        return is_alone && left != has_interior_left(l, v, outgoing != 0);
    }
};

// ---- Where rings lie -----------------------------------------------------------------------------------------------------

// Vertices that each ring of the marked rows is held against: all of its row.
struct count_ring_steps {
    layer l;
    some_rows rows;
    i64* count;
    KILN_HD void operator()(u64 path) const {
        i32 const row = l.row_of[path];
        bool const is_asked = is_ring(l.kind[path]) && rows.has(row);
        count[path] = is_asked ? l.path_first[l.row_first[row + 1]] - l.path_first[l.row_first[row]] : 0;
    }
};
// Does a ray to the right from p, moved by -(e, e^2), meet the edge?
KILN_HD bool is_right_of_moved(point a, point b, point p) {
    bool const a_above = a.y >= p.y;
    if (a_above == (b.y >= p.y) || most(a.x, b.x) < p.x) return false;
    return least(a.x, b.x) >= p.x || (a_above ? orient(b, a, p) : orient(a, b, p)) >= 0;
}
struct flip_rings {
    layer l;
    i64 const* first;  // summed steps
    u64 steps;
    double share;  // paths for a step
    u32* inside;   // by path, of 0
    KILN_HD void operator()(u64 i) const {
        u64 const path = last_not_above_near(evenly(i, share), static_cast<u64>(l.paths), static_cast<i64>(i), [this](u64 p) { return first[p]; });
        i32 const v = l.path_first[l.row_first[l.row_of[path]]] + static_cast<i32>(static_cast<i64>(i) - first[path]);
        if (!is_ring(l.kind[l.path_of[v]]) || !is_segment(l, v)) return;
        if (is_right_of_moved(l.at[v], l.at[v + 1], l.at[l.path_first[path]])) flip(inside + path, 1);
    }
};
// The same by an index, where there are too many steps.
struct locate_rings {
    layer l;
    some_rows rows;
    cell_grid g;
    u32* inside;
    KILN_HD void operator()(u64 path) const {
        i32 const row = l.row_of[path];
        if (!is_ring(l.kind[path]) || !rows.has(row)) return;
        bool found = false;
        locate<tie::down, certainty::exact>(g, l.at[l.path_first[path]], [&](i32 there, place) { return found = found || there == row; });
        inside[path] = found ? 1 : 0;
    }
};
// Of a noded layer: as the rings through its first vertex say.
struct check_places {
    layer l;
    some_rows rows;
    u32 const* inside;
    u64* least_row;
    KILN_HD void operator()(u64 path) const {
        i32 const row = l.row_of[path];
        if (!is_ring(l.kind[path]) || !rows.has(row)) return;
        if (is_said_inside(l.path_first[path]) != (inside[path] != 0)) lower_to(least_row, static_cast<u64>(row));
    }

private:
    // The first ray clockwise of the one to where v is moved has that on its left.
    KILN_HD bool is_said_inside(i32 v) const {
        point const x = l.at[v];
        point best = x;
        bool out = false;
        each_ray(l, v, -1, [&](point c, bool interior_left) {
            if (best != x && !comes_first(x, c, best)) return;
            best = c, out = interior_left;
        });
        return out;
    }
    KILN_HD static bool is_upper(point x, point c) { return c.y > x.y || (c.y == x.y && c.x < x.x); }
    KILN_HD static bool comes_first(point x, point c, point d) {
        return is_upper(x, c) != is_upper(x, d) ? is_upper(x, c) : orient(x, c, d) < 0;
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(ring_memory, kiln_spatial::check_memory, 256, 1)
KILN_KERNEL(ring_vertices, kiln_spatial::check_vertices, 256, 1)
KILN_KERNEL(ring_turns, kiln_spatial::check_turns, 128, 1)
KILN_KERNEL(ring_contacts, kiln_spatial::find_own_contacts, 128, 9)
KILN_KERNEL(ring_contacts_exact, kiln_spatial::settle_unsure, 128, 1)
KILN_KERNEL(ring_contacts_heavy, kiln_spatial::settle_heavy, 128, 1)
KILN_KERNEL(ring_rows, kiln_spatial::mark_rows, 256, 1)
KILN_KERNEL(ring_sides, kiln_spatial::check_sides, 128, 1)
KILN_KERNEL(ring_steps, kiln_spatial::count_ring_steps, 256, 1)
KILN_KERNEL(ring_flips, kiln_spatial::flip_rings, 256, 1)
KILN_KERNEL(ring_places_by_cells, kiln_spatial::locate_rings, 128, 1)
KILN_KERNEL(ring_places, kiln_spatial::check_places, 128, 1)
