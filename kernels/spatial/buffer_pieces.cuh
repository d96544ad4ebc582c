// SPDX-License-Identifier: Apache-2.0
// What lies within a distance of points, lines and areas, as pieces that are put together afterwards: a circle for every point, and for every
// segment the strip along it with what is outside at its end: the join to the next segment, or a cap. Each piece is a simple ring, so that
// their union needs no winding numbers, and nothing has to be known of how offset curves cross themselves.
//
// Directions come from square roots and quotients, and angles from series below: the same bits on every machine.
#pragma once

#include "circle.cuh"
#include "grid.cuh"
#include "layer.cuh"

namespace kiln_spatial {

// ---- Angles ------------------------------------------------------------------------------------------------------------

// Of a direction with these cosine and sine, from 0 to pi: halved until the series of the arc tangent ends soon.
KILN_HD double angle_of(double cosine, double sine) {
    constexpr double quarter = 1.5707963267948966;
    double before = 0, c = cosine, s = sine;
    if (c < 0) before = quarter, c = sine, s = -cosine;
    double times = 1;
    for (int k = 0; k < 5; ++k, times = mul(times, 2)) {
        double const half = root(mul(0.5, add(1, c)));
        s = quotient(s, mul(2, half)), c = half;
    }
    double const t = quotient(s, c), square = mul(t, t);
    double sum = 0;
    for (int k = 13; k >= 1; k -= 2) sum = add(quotient((k / 2) % 2 == 0 ? 1.0 : -1.0, k), mul(sum, square));
    return add(before, mul(times, mul(t, sum)));
}
// The direction at an angle from 0 to 2 pi.
KILN_HD point direction_at(double angle) {
    double const x = quotient(angle, 32), square = mul(x, x);
    double s = 1, c = 1;
    for (int k = 14; k >= 2; k -= 2) {
        s = sub(1, mul(quotient(square, k * (k + 1)), s));
        c = sub(1, mul(quotient(square, k * (k - 1)), c));
    }
    s = mul(s, x);
    for (int k = 0; k < 5; ++k) {
        double const twice = mul(2, mul(s, c));
        c = sub(1, mul(2, mul(s, s))), s = twice;
    }
    return {c, s};
}

// ---- Pieces ------------------------------------------------------------------------------------------------------------

enum class cap_kind : i32 { round, flat, square };
enum class join_kind : i32 { round, mitre, bevel };
struct buffer_shape {
    double distance;  // above 0
    i32 side;         // 1: areas grow, -1: they shrink
    double mitre_limit;
    cap_kind caps;
    join_kind joins;
    quarter_circle circle;
};

struct buffer_pieces {
    layer l;
    double const* sign;  // by path: 1 where its row's interior is on its left, -1 on its right, 0 of what is no ring
    buffer_shape how;

    // put(point) for every corner of the piece of an element, with the first once more at the end. False where it has none.
    template <class Put>
    KILN_HD bool each(i32 v, Put put) const {
        i32 const path = l.path_of[v];
        u8 const kind = l.kind[path];
        if (kind == point_path) return v == l.path_first[path] && around_point(l.at[v], put);
        if (kind == no_path || !is_segment(l, v)) return false;
        strip(v, put);
        return true;
    }
    // The strip behind the one of an element; -1 where there is none.
    KILN_HD i32 next_strip(i32 v) const {
        i32 const path = l.path_of[v], first = l.path_first[path], last = l.path_first[path + 1] - 1;
        u8 const kind = l.kind[path];
        if (kind == point_path || kind == no_path || v >= last) return -1;
        if (v + 1 < last) return v + 1;
        return is_closed(path) ? first : -1;
    }

private:
    template <class Put>
    KILN_HD bool around_point(point p, Put put) const {
        if (how.caps == cap_kind::flat) return false;
        bool const is_round = how.caps == cap_kind::round;
        i32 const corners = is_round ? 4 * how.circle.steps : 4;
        for (i32 k = 0; k <= corners; ++k) {
            i32 const side = k % 4;
            point const c = is_round ? how.circle.corner(k) : point{side == 0 || side == 3 ? -1.0 : 1.0, side < 2 ? -1.0 : 1.0};
            put(away(p, c, how.distance));
        }
        return true;
    }
    KILN_HD static point away(point from, point direction, double by) {
        return {add(from.x, mul(direction.x, by)), add(from.y, mul(direction.y, by))};
    }
    KILN_HD static point turned(point d, point by) {
        return {sub(mul(d.x, by.x), mul(d.y, by.y)), add(mul(d.x, by.y), mul(d.y, by.x))};
    }
    KILN_HD static point opposite(point d) { return {-d.x, -d.y}; }
    KILN_HD static point direction(point a, point b) {
        // Of differences far from 1, squares would leave the range of doubles.
        double dx = sub(b.x, a.x), dy = sub(b.y, a.y);
        double const size = most(magnitude(dx), magnitude(dy));
        dx = quotient(dx, size), dy = quotient(dy, size);
        double const length = root(add(mul(dx, dx), mul(dy, dy)));
        return {quotient(dx, length), quotient(dy, length)};
    }
    // A line that ends where it begins is joined there.
    KILN_HD bool is_closed(i32 path) const {
        i32 const first = l.path_first[path], last = l.path_first[path + 1] - 1;
        return is_ring(l.kind[path]) || (last - first > 2 && l.at[first] == l.at[last]);
    }
    // Corners around a point from a direction on, to the left, without the first and the last.
    template <class Put>
    KILN_HD void arc(point around, point from, double angle, Put put) const {
        double const quarter = 1.5707963267948966;
        i32 const steps = whole_number(add(quotient(mul(angle, how.circle.steps), quarter), 0.5));
        for (i32 k = 1; k < steps; ++k) put(away(around, turned(from, direction_at(quotient(mul(angle, k), steps))), how.distance));
    }
    // Around the end of a line that goes in a direction, from its right to its left.
    template <class Put>
    KILN_HD void cap(point end, point d, Put put) const {
        if (how.caps == cap_kind::round) arc(end, {d.y, -d.x}, 3.141592653589793, put);
    }
    // What is outside of a turn to the left, between the two right sides. A mitre reaches farther than the distance: it is none where it would point into
    // an area that grows, or out of one that shrinks, and might come out on the other side, and where a line turns straight back.
    template <class Put>
    KILN_HD void join(point at, point d, point next, bool is_free, Put put) const {
        point const from{d.y, -d.x}, to{next.y, -next.x};
        double const cosine = add(mul(d.x, next.x), mul(d.y, next.y));
        if (how.joins == join_kind::round) {
            double const sine = magnitude(sub(mul(d.x, next.y), mul(d.y, next.x)));
            return arc(at, from, angle_of(cosine, sine), put);
        }
        if (how.joins == join_kind::bevel || !is_free) return;
        // The tip is at 1 / cos of half the angle.
        double const half = root(most(mul(0.5, add(1, cosine)), 0)), other = root(most(mul(0.5, sub(1, cosine)), 0));
        if (mul(how.mitre_limit, half) >= 1) {
            double const by = quotient(how.distance, add(1, cosine));
            put(point{add(at.x, mul(add(from.x, to.x), by)), add(at.y, mul(add(from.y, to.y), by))});
        } else if (how.mitre_limit > half) {
            // Cut off at the limit.
            double const along = quotient(mul(how.distance, sub(how.mitre_limit, half)), other);
            put(away(away(at, from, how.distance), d, along)), put(away(away(at, to, how.distance), opposite(next), along));
        }
    }
    // But for what the rounding of coordinates can do, which is to say whether there is a turn, and to which side.
    KILN_HD static bool is_straight_back(point a, point b, point c) {
        point const d = direction(a, b), next = direction(b, c);
        if (add(mul(d.x, next.x), mul(d.y, next.y)) >= 0) return false;
        double const first = most(magnitude(sub(b.x, a.x)), magnitude(sub(b.y, a.y)));
        double const second = most(magnitude(sub(c.x, b.x)), magnitude(sub(c.y, b.y)));
        double const size = most(most(magnitude(a.x), magnitude(a.y)), most(most(magnitude(b.x), magnitude(b.y)), most(magnitude(c.x), magnitude(c.y))));
        double const turn = magnitude(sub(mul(d.x, next.y), mul(d.y, next.x)));
        return turn <= mul(4.44e-16, add(1, add(quotient(size, first), quotient(size, second))));
    }
    // Strips that follow each other have the vertex between them and, on either side, the corners of the next one there: what they share is an edge of both
    // to the last bit. Else there would be slits in their union, and whoever makes a buffer of it again finds them.
    template <class Put>
    KILN_HD void strip(i32 v, Put put) const {
        i32 const path = l.path_of[v], first = l.path_first[path], last = l.path_first[path + 1] - 1;
        bool const closed = is_closed(path);
        bool const starts = v == first && !closed, ends = v + 1 == last && !closed;
        point a = l.at[v], b = l.at[v + 1];
        point const d = direction(a, b), right{d.y, -d.x}, left{-d.y, d.x};
        if (starts && how.caps == cap_kind::square) a = away(a, opposite(d), how.distance);
        if (ends && how.caps == cap_kind::square) b = away(b, d, how.distance);
        point const begin = away(a, right, how.distance);
        put(begin);
        put(away(b, right, how.distance));
        if (ends) cap(b, d, put);
        else corner(l.at[v], b, l.at[v + 1 < last ? v + 2 : first + 1], sign[path], put);
        put(away(b, left, how.distance));
        put(away(a, left, how.distance));
        if (starts) cap(a, opposite(d), put);
        else put(a);
        put(begin);
    }
    // From the right of a segment that ends at b to its left, with what is outside of the turn to the next one.
    template <class Put>
    KILN_HD void corner(point a, point b, point c, double interior, Put put) const {
        point const d = direction(a, b), next = direction(b, c);
        point const right{d.y, -d.x}, left{-d.y, d.x}, next_right{next.y, -next.x}, next_left{-next.y, next.x};
        int const turn = orient(a, b, c);
        bool const goes_on = add(mul(d.x, next.x), mul(d.y, next.y)) > 0;
        if (turn == 0 && !goes_on) {  // straight back
            if (how.joins == join_kind::round) arc(b, right, 3.141592653589793, put);
            return;
        }
        bool const is_free = (interior == 0 || interior * turn * how.side > 0) && !(how.joins == join_kind::mitre && is_straight_back(a, b, c));
        // Of a turn so slight that rounding decides to which side the next corners lie, they are what counts.
        point const on_right = away(b, next_right, how.distance), on_left = away(b, next_left, how.distance);
        bool const opens_right = goes_on ? orient(b, away(b, right, how.distance), on_right) > 0 : turn > 0;
        bool const opens_left = goes_on ? orient(b, away(b, left, how.distance), on_left) < 0 : turn < 0;
        if (opens_right) {
            if (turn > 0) join(b, d, next, is_free, put);
            put(on_right);
        }
        put(b);
        if (opens_left) {
            put(on_left);
            if (turn < 0) join(b, opposite(next), opposite(d), is_free, put);  // on the way back it is one to the left
        }
    }
};

// Segments of each row that are shorter than the distance: strips along those lie over each other, and each place of a row of many is in many strips.
struct count_short_segments {
    layer l;
    double distance;
    u64* segments;  // by row
    u64* short_ones;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i);
        if (!is_element(l, v) || !is_segment(l, v)) return;
        i32 const row = row_at(l, v);
        double const dx = magnitude(sub(l.at[v + 1].x, l.at[v].x)), dy = magnitude(sub(l.at[v + 1].y, l.at[v].y));
        add_to(segments + row, 1);
        if (add(dx, dy) < distance) add_to(short_ones + row, 1);
    }
};
struct crowded_rows {
    u64 const* segments;
    u64 const* short_ones;
    KILN_HD bool operator()(i32 row) const { return 2 * short_ones[row] > segments[row]; }
};

// Pieces of a crowded row are made one before all are: so many neighbours of a path. Each such block has the first strip of the next one, too. What
// blocks share is then a strip and not an edge, which crossings would move in one and not in the other.
constexpr i32 pieces_together = 16;
KILN_HD i32 block_of(layer const& l, i32 element) {
    i32 const first = l.path_first[l.path_of[element]];
    return element - (element - first) % pieces_together;
}

// Rows of which nothing is left when they shrink, as their boxes tell: no place in an area is farther from its edge than half the box's lesser side. Strips reach
// as far as the distance, and the chords of the coarsest round join 0.38 of that; other joins less, so they are not judged.
struct find_vanishing {
    signed char const* dimension;  // by row
    box const* around;             // by row
    double least_side;             // of a box; below 0: areas are not judged
    u32* vanishes;
    KILN_HD void operator()(u64 i) const {
        box const b = around[i];
        bool const is_area = dimension[i] == 2;
        vanishes[i] = !is_area || sub(b.max_x, b.min_x) < least_side || sub(b.max_y, b.min_y) < least_side ? 1 : 0;
    }
};
// Of crowded rows, in blocks, or of the others.
struct piece_choice {
    buffer_pieces of;
    crowded_rows is_crowded;
    bool in_blocks;
    u32 const* vanishes;  // by row: its pieces are not needed; null: none does

    // Elements whose pieces an element has: itself, and one of the next block.
    KILN_HD i32 count(i32 v) const {
        i32 const row = row_at(of.l, v);
        if (is_crowded(row) != in_blocks || (vanishes != nullptr && vanishes[row] != 0)) return 0;
        if (!in_blocks) return 1;
        i32 const next = of.next_strip(v);
        return next >= 0 && block_of(of.l, next) != block_of(of.l, v) ? 2 : 1;
    }
    KILN_HD i32 element(i32 v, i32 k) const { return k == 0 ? v : of.next_strip(v); }
};
struct count_pieces {
    piece_choice of;
    i64* count;  // rings (high) and their vertices (low)
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i), most = of.count(v);
        u32 rings = 0, n = 0;
        for (i32 k = 0; k < most; ++k) rings += of.of.each(of.element(v, k), [&](point) { ++n; }) ? 1 : 0;
        count[i] = both_counts(rings, n);
    }
};
// One more than vertices: the last writes where rings end.
struct write_pieces {
    piece_choice of;
    i64 const* place;
    point* at;
    i32* first;
    i32* ring_of;
    i32* row_of;  // by ring: the row it is of
    i32* block;   // by ring
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i), begin = static_cast<i32>(high_of(place[i]));
        u32 n = low_of(place[i]);
        if (i == static_cast<u64>(of.of.l.vertices)) {
            first[begin] = static_cast<i32>(n);
            return;
        }
        i32 const end = static_cast<i32>(high_of(place[i + 1]));
        for (i32 ring = begin; ring < end; ++ring) {
            first[ring] = static_cast<i32>(n), row_of[ring] = row_at(of.of.l, v), block[ring] = block_of(of.of.l, v);
            of.of.each(of.element(v, ring - begin), [&](point p) { at[n] = p, ring_of[n] = ring, ++n; });
        }
    }
};
// Neighbouring pieces of a row, a few at a time: those of a block, then as many, counted from the row's first.
struct begin_piece_groups {
    i32 const* row_of;  // ascending
    i32 const* block;   // null: they have none any more
    i64* begins;
    KILN_HD void operator()(u64 i) const {
        bool const is_first = i == 0 || row_of[i] != row_of[i - 1];
        begins[i] = is_first || (block != nullptr ? block[i] != block[i - 1] : (i - first_of_row(i)) % pieces_together == 0) ? 1 : 0;
    }

private:
    KILN_HD u64 first_of_row(u64 i) const {
        u64 low = 0, high = i;
        while (low < high) {
            u64 const middle = (low + high) / 2;
            if (row_of[middle] < row_of[i]) low = middle + 1;
            else high = middle;
        }
        return low;
    }
};
struct set_piece_groups {
    i32 const* row_of;
    i64 const* number;  // summed
    i32* group_of;      // by piece
    i32* row_of_group;
    KILN_HD void operator()(u64 i) const {
        i32 const group = static_cast<i32>(number[i + 1]) - 1;
        group_of[i] = group;
        if (number[i + 1] != number[i]) row_of_group[group] = row_of[i];
    }
};
// Areas are in the world of their number, with their pieces; what else there is is in none, and neither are those that vanish.
struct worlds_of_pieces {
    signed char const* dimension;  // by row
    u32 const* vanishes;           // by row; null: none does
    i32 const* row_of;             // by piece
    u64 rows;
    i32* world;
    KILN_HD void operator()(u64 i) const {
        if (i < rows) world[i] = dimension[i] == 2 && (vanishes == nullptr || vanishes[i] == 0) ? static_cast<i32>(i) : -1;
        else world[i] = row_of[i - rows];
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(buffer_piece_count, kiln_spatial::count_pieces, 128, 1)
KILN_KERNEL(buffer_piece_write, kiln_spatial::write_pieces, 128, 1)
KILN_KERNEL(buffer_short_count, kiln_spatial::count_short_segments, 256, 1)
KILN_KERNEL(buffer_vanishing, kiln_spatial::find_vanishing, 256, 1)
KILN_KERNEL(buffer_group_begin, kiln_spatial::begin_piece_groups, 256, 1)
KILN_KERNEL(buffer_groups, kiln_spatial::set_piece_groups, 256, 1)
KILN_KERNEL(buffer_worlds, kiln_spatial::worlds_of_pieces, 256, 1)
