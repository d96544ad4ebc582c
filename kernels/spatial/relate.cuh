// SPDX-License-Identifier: Apache-2.0
// The DE-9IM matrix of two rows as an OR of evidence: each contact of their elements, each path of one inside the other, proves
// that some entries are at least of some dimension; what nothing proves is F. All from signs of orientations of input
// coordinates: no midpoint, no computed crossing. Layers are noded, so at a contact every chain of a row through the point has a
// vertex there, or the point is inside one segment alone (of areas; lines may cross themselves, which changes nothing).
#pragma once

#include "layer.cuh"

namespace kiln_spatial {

// Interior, boundary, exterior of one row against those of another: entry 3a + b, three bits each, one per dimension.
enum part : int { interior = 0, boundary = 1, exterior = 2 };
KILN_HD u32 proof(int a, int b, int dimension) { return 1U << (3 * (3 * a + b) + dimension); }
// With the rows exchanged.
KILN_HD u32 transposed(u32 bits) {
    u32 out = 0;
    for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 3; ++b) out |= (bits >> (3 * (3 * a + b)) & 7U) << (3 * (3 * b + a));
    return out;
}

// A path of kind k runs for some length inside, along or outside of the other row's `where`. Beside a ring lie its row's interior
// and exterior, and both reach into what the ring runs through if that is open: the interior or exterior of an area.
KILN_HD u32 runs_through_area(u8 kind, int where) {
    if (kind == point_path) return proof(interior, where, 0);
    if (kind == line_path) return proof(interior, where, 1);
    u32 const beside = proof(interior, where, 2) | proof(exterior, where, 2);
    return proof(boundary, where, 1) | beside;
}

// ---- Sectors -----------------------------------------------------------------------------------------------------------

// b, on the line through x and a: is it on a's side of x?
KILN_HD bool same_direction(point x, point a, point b) {
    return sign_of(a.x - x.x) == sign_of(b.x - x.x) && sign_of(a.y - x.y) == sign_of(b.y - x.y);
}
// Turning clockwise from the ray x -> r: 0 within half a turn, 1 opposite, 2 beyond.
KILN_HD int half_of(point x, point r, point c) {
    int const side = orient(x, r, c);
    return side < 0 ? 0 : side == 0 ? 1 : 2;
}
// Is x -> c met before x -> d? Neither has the direction of r.
KILN_HD bool is_before(point x, point r, point c, point d) {
    int const half_c = half_of(x, r, c), half_d = half_of(x, r, d);
    if (half_c != half_d) return half_c < half_d;
    return half_c != 1 && orient(x, c, d) < 0;
}

// Where a contact lies on a row: at a vertex, or inside the segment.
struct contact_place {
    i32 vertex;   // -1: inside the segment
    i32 element;
};

// +1: the ray from x to r begins inside the area, -1 outside, 0 along its boundary. The first boundary ray clockwise of it
// decides: left of a ring that comes out is the interior.
KILN_HD int ray_side(layer const& l, contact_place const& at, point x, point r) {
    if (at.vertex < 0) {
        int const side = orient(l.at[at.element], l.at[at.element + 1], r);
        return l.kind[l.path_of[at.element]] == reversed_ring ? -side : side;
    }
    i32 const first = l.group_first[at.vertex], last = first + l.group_size[at.vertex];
    point best = x;
    bool have = false;
    int side = 0;
    for (i32 k = first; k < last; ++k) {
        i32 const v = l.member[k];
        int const out = l.kind[l.path_of[v]] == reversed_ring ? -1 : 1;
        for (int outgoing = 0; outgoing < 2; ++outgoing) {
            point const c = l.at[outgoing != 0 ? vertex_after(l, v) : vertex_before(l, v)];
            if (orient(x, r, c) == 0 && same_direction(x, r, c)) return 0;
            if (have && !is_before(x, r, c, best)) continue;
            best = c, have = true;
            side = outgoing != 0 ? out : -out;
        }
    }
    return side;
}

// ---- Contacts ----------------------------------------------------------------------------------------------------------

// The part of a row that a point of contact belongs to.
KILN_HD int part_at(layer const& l, contact_place const& at) {
    u8 const kind = l.kind[l.path_of[at.element]];
    if (is_ring(kind)) return boundary;
    return at.vertex >= 0 && l.is_end[at.vertex] != 0 ? boundary : interior;
}

// Where the path of `from` goes from the contact at x, against the area of `area`. Entries are (from, area).
KILN_HD u32 rays_against_area(layer const& from, contact_place const& at, layer const& area, contact_place const& there, point x) {
    u8 const kind = from.kind[from.path_of[at.element]];
    if (kind == point_path) return 0;
    u32 out = 0;
    for (int forward = 0; forward < 2; ++forward) {
        i32 to = at.element + forward;
        if (at.vertex >= 0) to = forward != 0 ? vertex_after(from, at.vertex) : vertex_before(from, at.vertex);
        if (to < 0) continue;
        int const side = ray_side(area, there, x, from.at[to]);
        if (side != 0) out |= runs_through_area(kind, side > 0 ? interior : exterior);
    }
    return out;
}

KILN_HD u32 evidence_at(layer const& a, contact_place const& in_a, layer const& b, contact_place const& in_b, point x) {
    u32 out = proof(part_at(a, in_a), part_at(b, in_b), 0);
    if (is_ring(b.kind[b.path_of[in_b.element]])) out |= rays_against_area(a, in_a, b, in_b, x);
    if (is_ring(a.kind[a.path_of[in_a.element]])) out |= transposed(rays_against_area(b, in_b, a, in_a, x));
    return out;
}

// Of a crossing inside both segments.
KILN_HD u32 evidence_of_crossing(u8 kind_a, u8 kind_b) {
    u32 out = proof(is_ring(kind_a) ? boundary : interior, is_ring(kind_b) ? boundary : interior, 0);
    if (is_ring(kind_b)) out |= runs_through_area(kind_a, interior) | runs_through_area(kind_a, exterior);
    if (is_ring(kind_a))
        out |= transposed(runs_through_area(kind_b, interior) | runs_through_area(kind_b, exterior));
    return out;
}

// Of a common piece.
KILN_HD u32 evidence_of_overlap(u8 kind_a, u8 kind_b, bool same_way) {
    bool const ring_a = is_ring(kind_a), ring_b = is_ring(kind_b);
    u32 out = proof(ring_a ? boundary : interior, ring_b ? boundary : interior, 1);
    if (!ring_a || !ring_b) return out;
    if ((kind_a == kind_b) == same_way) return out | proof(interior, interior, 2);
    return out | proof(interior, exterior, 2) | proof(exterior, interior, 2);
}

KILN_HD contact_place place_on(layer const& l, i32 element, point x) {
    if (l.at[element] == x) return {element, element};
    if (element_end(l, element) == x) return {end_vertex(l, element), element};
    return {-1, element};
}

// Is this the element to ask at x, which it contains? Of those that meet in a vertex, the one that begins there; the last of a line
// where it ends.
KILN_HD bool speaks_for(layer const& l, i32 element, point x) {
    if (l.at[element] == x || element_end(l, element) != x) return true;
    return !is_ring(l.kind[l.path_of[element]]) && !is_segment(l, element + 1);
}

// All that the contact of two elements proves, or, of contacts that are all asked, its share: what they meet in is then asked once,
// not by every two that end there. Not `apart`.
enum class share_of_contact : int { whole, own };
template <share_of_contact Share = share_of_contact::whole>
KILN_HD u32 evidence_of(layer const& a, i32 element_a, layer const& b, i32 element_b, segment_contact how) {
    u8 const kind_a = a.kind[a.path_of[element_a]], kind_b = b.kind[b.path_of[element_b]];
    if (how == crossing) return evidence_of_crossing(kind_a, kind_b);
    point const a0 = a.at[element_a], a1 = element_end(a, element_a), b0 = b.at[element_b], b1 = element_end(b, element_b);
    u32 out = 0;
    if (how == overlapping) {
        bool const same_way = a0.x != a1.x ? (a1.x > a0.x) == (b1.x > b0.x) : (a1.y > a0.y) == (b1.y > b0.y);
        out |= evidence_of_overlap(kind_a, kind_b, same_way);
    }
    point const ends[4] = {b0, b1, a0, a1};
    for (int i = 0; i < 4; ++i) {
        point const x = ends[i];
        bool const seen = (i == 1 && x == b0) || (i >= 2 && (x == b0 || x == b1)) || (i == 3 && x == a0);
        if (seen) continue;
        if (Share == share_of_contact::own && !(speaks_for(a, element_a, x) && speaks_for(b, element_b, x))) continue;
        if (!on_segment(i < 2 ? a0 : b0, i < 2 ? a1 : b1, x)) continue;
        out |= evidence_at(a, place_on(a, element_a, x), b, place_on(b, element_b, x), x);
    }
    return out;
}

// What is true of rows of these dimensions before anything is known of them, if neither is empty; entries are (a, b).
KILN_HD u32 evidence_of_dimensions(int a, int b) {
    u32 out = proof(exterior, exterior, 2);
    if (a > b) out |= proof(interior, exterior, a);  // cannot be covered
    if (b > a) out |= proof(exterior, interior, b);
    if (a == 2 && b == 0) out |= proof(boundary, exterior, 1);
    if (b == 2 && a == 0) out |= proof(exterior, boundary, 1);
    return out;
}

// A path of a that lies in the exterior of b. A line without length is a point, beside others as well.
KILN_HD u32 evidence_outside(u8 kind) {
    if (is_ring(kind)) return proof(boundary, exterior, 1) | proof(interior, exterior, 2);
    return proof(interior, exterior, kind == point_path ? 0 : 1);
}

}  // namespace kiln_spatial
