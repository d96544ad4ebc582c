// SPDX-License-Identifier: Apache-2.0
// Areas that share borders, with fewer vertices. What is made simpler is not rings but borders (overlay_borders.cuh), each once and as a line of its own: so
// rows that share one agree on it. A line that was thinned has "spans", from a vertex that stays to the next. Nothing has changed but the shape of borders if
//
//  - no two segments that are left meet but in ends they share, and
//  - no vertex that is left lies, by the even-odd rule, in the "pocket" between a span and the segment that takes its place.
//
// For then every ring of borders has the vertices inside of it that it had: what it was and what it is differ by pockets. And of three borders between
// two places the same one stays between the others: two of them at least have vertices left, or they would run along each other.
// Spans of which that is not so get a vertex back, and are looked at again. After some rounds they get all of them back, and so do those that would be in
// trouble then: for a border that comes back enters another's pocket by a vertex. With all of these back nothing is in trouble.
#pragma once

#include "overlay_views.cuh"
#include "segment_contacts.cuh"
#include "vertex_spans.cuh"

namespace kiln_spatial {

// ---- Borders as lines --------------------------------------------------------------------------------------------------

struct count_border_vertices {
    border_list b;
    i64* count;
    KILN_HD void operator()(u64 i) const { count[i] = b.length(static_cast<i32>(i)) + 1; }
};
struct set_border_firsts {
    i64 const* place;  // summed counts
    i32* first;
    KILN_HD void operator()(u64 i) const { first[i] = static_cast<i32>(place[i]); }
};
struct write_borders {
    border_list b;
    i32 const* first;
    u64 borders;
    double share;  // of borders in vertices
    point* at;
    i32* line_of;
    i32* place_of;
    KILN_HD void operator()(u64 i) const {
        i32 const border = static_cast<i32>(last_not_above_near(evenly(i, share), borders, static_cast<i32>(i), [&](u64 k) { return first[k]; }));
        i32 const v = b.vertex(border, static_cast<i32>(i) - first[border]);
        at[i] = b.s.l.at[v], line_of[i] = border, place_of[i] = b.s.place_of[v];
    }
};
// Lines that end where they begin: their two ends are no segment.
struct mark_closed_lines {
    layer l;
    u32* must;  // by vertex, of 0
    KILN_HD void operator()(u64 i) const {
        i32 const first = l.path_first[i], last = l.path_first[i + 1] - 1;
        if (l.at[first] == l.at[last]) must[first] = 1;
    }
};

// ---- What is wrong with them -------------------------------------------------------------------------------------------

// Lines whose vertices stay, and which of all vertices these are.
struct thinned_lines {
    layer l;
    i32 const* source;

    KILN_HD i32 left_out(i32 v) const { return is_segment(l, v) ? source[v + 1] - source[v] - 1 : 0; }
};
struct span_troubles {
    u32* at;  // by first vertex, of 0; found later: the step
    u64* any;
    KILN_HD void mark(i32 from) const { at[from] = 1, *any = 1; }
};
struct set_sources {
    i64 const* place;  // summed, of vertices that stay
    i32* source;
    KILN_HD void operator()(u64 i) const {
        if (place[i + 1] != place[i]) source[place[i]] = static_cast<i32>(i);
    }
};
struct find_troubled_contacts {
    thinned_lines of;
    contact_list met;
    span_troubles to;
    KILN_HD void operator()(u64 i) const {
        i32 const v = met.left[i], w = met.right[i];
        if (met.how[i] == apart || v == w || (met.how[i] == touching && share_end(v, w))) return;
        if (of.left_out(v) > 0) to.mark(of.source[v]);
        if (of.left_out(w) > 0) to.mark(of.source[w]);
    }

private:
    KILN_HD bool share_end(i32 v, i32 w) const {
        point const a = of.l.at[v], b = of.l.at[v + 1], c = of.l.at[w], d = of.l.at[w + 1];
        return a == c || a == d || b == c || b == d;
    }
};
struct write_points {
    point const* at;
    double* x;
    double* y;
    KILN_HD void operator()(u64 i) const { x[i] = at[i].x, y[i] = at[i].y; }
};

// Pockets (high) and their vertices (low): those of the span, and the first of them once more.
struct count_pockets {
    thinned_lines of;
    i64* count;
    KILN_HD void operator()(u64 i) const {
        i32 const n = of.left_out(static_cast<i32>(i));
        count[i] = n > 0 ? both_counts(1, static_cast<u32>(n) + 3) : 0;
    }
};
struct set_pockets {
    thinned_lines of;
    i64 const* place;  // summed counts
    i32* first;
    i32* span;  // where it begins
    KILN_HD void operator()(u64 i) const {
        u32 const k = high_of(place[i]), next = high_of(place[i + 1]);
        if (next != k) first[k] = static_cast<i32>(low_of(place[i])), span[k] = of.source[i];
        if (i + 1 == static_cast<u64>(of.l.vertices)) first[next] = static_cast<i32>(low_of(place[i + 1]));
    }
};
struct write_pockets {
    point const* from;
    i32 const* first;
    i32 const* span;
    u64 pockets;
    double share;  // of pockets in vertices
    point* at;
    i32* pocket_of;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i);
        u64 const k = last_not_above_near(evenly(i, share), pockets, v, [&](u64 p) { return first[p]; });
        at[i] = from[span[k] + (v + 1 == first[k + 1] ? 0 : v - first[k])];
        pocket_of[i] = static_cast<i32>(k);
    }
};
struct find_jumped_over {
    i64 const* inside;  // how many, by pocket
    i32 const* span;
    span_troubles to;
    KILN_HD void operator()(u64 i) const {
        if (inside[i] > 0) to.mark(span[i]);
    }
};
// Vertices that come back, of the spans that were reached with this step.
struct count_returning {
    vertex_spans of;
    u32 const* trouble;
    u32 step;
    i64* count;
    KILN_HD void operator()(u64 i) const { count[i] = of.fate[i] == fate_goes && trouble[of.low[i]] == step ? 1 : 0; }
};
struct find_reached {
    i64 const* met;  // how many of these, by pocket
    i32 const* span;
    u32 step;
    u32* trouble;
    KILN_HD void operator()(u64 i) const {
        if (met[i] > 0 && trouble[span[i]] == 0) trouble[span[i]] = step;
    }
};
struct reopen_spans {
    vertex_spans of;
    u32 const* trouble;
    vertex_fate to;
    KILN_HD void operator()(u64 i) const {
        if (of.fate[i] == fate_goes && trouble[of.low[i]] != 0) of.fate[i] = to;
    }
};

// ---- Rings again -------------------------------------------------------------------------------------------------------

struct find_staying_places {
    u32 const* fate;
    i32 const* place_of;
    u32* stays;  // by place
    KILN_HD void operator()(u64 i) const { stays[place_of[i]] = fate[i] == fate_stays ? 1 : 0; }
};
struct count_corners {
    layer l;
    i32 const* place_of;  // by vertex
    u32 const* stays;
    i64* count;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i);
        bool const closes = is_ring(l.kind[l.path_of[v]]) && !is_segment(l, v);
        count[i] = closes || (place_of[v] >= 0 && stays[place_of[v]] != 0) ? 1 : 0;
    }
};
struct close_rings {
    layer l;
    i64 const* count;
    point* at;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i), path = l.path_of[v];
        i32 from = v;
        if (is_ring(l.kind[path]) && !is_segment(l, v))
            for (from = l.path_first[path]; from < v && count[from] == 0;) ++from;
        at[i] = l.at[from];
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(coverage_border_count, kiln_spatial::count_border_vertices, 256, 1)
KILN_KERNEL(coverage_border_first, kiln_spatial::set_border_firsts, 256, 1)
KILN_KERNEL(coverage_borders, kiln_spatial::write_borders, 256, 1)
KILN_KERNEL(coverage_closed, kiln_spatial::mark_closed_lines, 256, 1)
KILN_KERNEL(coverage_sources, kiln_spatial::set_sources, 256, 1)
KILN_KERNEL(coverage_contacts, kiln_spatial::find_troubled_contacts, 256, 1)
KILN_KERNEL(coverage_points, kiln_spatial::write_points, 256, 1)
KILN_KERNEL(coverage_pocket_count, kiln_spatial::count_pockets, 256, 1)
KILN_KERNEL(coverage_pocket_first, kiln_spatial::set_pockets, 256, 1)
KILN_KERNEL(coverage_pockets, kiln_spatial::write_pockets, 256, 1)
KILN_KERNEL(coverage_jumped, kiln_spatial::find_jumped_over, 256, 1)
KILN_KERNEL(coverage_returning, kiln_spatial::count_returning, 256, 1)
KILN_KERNEL(coverage_reached, kiln_spatial::find_reached, 256, 1)
KILN_KERNEL(coverage_reopen, kiln_spatial::reopen_spans, 256, 1)
KILN_KERNEL(coverage_places, kiln_spatial::find_staying_places, 256, 1)
KILN_KERNEL(coverage_corner_count, kiln_spatial::count_corners, 256, 1)
KILN_KERNEL(coverage_rings, kiln_spatial::close_rings, 256, 1)
