// SPDX-License-Identifier: Apache-2.0
// Point location in many polygons at once: a grid of cells with power-of-two sides, crowded cells divided again. A cell knows,
// for every row that meets it, whether its lower left corner is inside, and the runs of consecutive ring edges that come near. A
// point is located by walking from the corner up to its height and then across to it, and counting edges: only those of the
// cell can matter. Every decision is the sign of one orientation of input coordinates (corners are exact doubles).
//
// Why it is right. R(q) is the parity of edges that half-openly straddle the height of q, (y1 > q.y) != (y2 > q.y), and cross it
// strictly left of q. On the upright line x = x0,
//     R(x0, y) = xor over edges with (x1 < x0) != (x2 < x0) of T(y),   T(y) = [h <= y] for edges that rise or are level from
//                left to right, [h < y] for falling ones, h being the height at x0:
// left of x0 an edge counts for y in [lower, upper); along each chain left of the line the terms of its vertices cancel. Hence
//     R(p) = R(corner) ^ xor (T(p.y) ^ T(corner.y)) ^ xor over edges straddling p.y of ([x < p.x] ^ [x < corner.x]),
// whatever the degeneracies. A point on an edge or vertex is "on". Two more modes move the point by +(e, e^2) or -(e, e^2), e
// infinitesimal, by other rules for ties: nothing is "on" then.
#pragma once

#include "exact.cuh"

namespace kiln_spatial {

enum : u32 {
    record_first = 1U << 31,   // of its row in this cell
    record_corner = 1U << 30,  // the corner is inside the row
    record_full = 1U << 29,    // the whole cell is
    record_last = 1U << 28,    // of its cell
    record_row = (1U << 28) - 1,
    head_empty = 0,
    head_full = 1U << 30,    // | row
    head_list = 2U << 30,    // | first record
    head_divided = 3U << 30, // | sub-grid
    head_kind = 3U << 30,
    head_value = (1U << 30) - 1,
};
struct alignas(16) cell_record {
    u32 row;          // and flags
    u32 first, last;  // edges first to last - 1, by their first vertex
    u32 unused;
};
struct sub_grid {
    u32 first;  // head of its lower left cell
    u32 log;    // 2^log cells per side
};

struct cell_grid {
    double x, y, width, height, per_width, per_height;  // lower left corner; sides of a cell and their inverses
    i32 columns, rows;
    u32 const* head;
    cell_record const* record;
    sub_grid const* sub;
    point const* at;  // of vertices
    u32 first_cell;   // head of its lower left cell
};

enum class tie : int { on = 0, up = 1, down = -1 };
enum class place : int { outside = 0, inside = 1, on = 2 };
enum class certainty : int { exact, filtered };

// Whether an edge changes what is inside on the way from a cell's corner upright to a height, by side(a, b, c): T(height) ^ T(corner.y). `counts_itself`: what
// begins at the height is below it.
template <class Side>
KILN_HD bool changes_upwards(point a, point b, point corner, double height, bool counts_itself, Side side) {
    bool const a_left = a.x < corner.x, b_left = b.x < corner.x;
    if (a_left == b_left) return false;
    if (most(a.y, b.y) < least(height, corner.y) || least(a.y, b.y) > most(height, corner.y)) return false;
    point const left = a_left ? a : b, right = a_left ? b : a;
    int const at_height = side(left, right, {corner.x, height}), at_corner = side(left, right, corner);
    bool const rises = right.y >= left.y;
    bool const below_height = at_height > 0 || (counts_itself && rises && at_height == 0);
    bool const below_corner = at_corner > 0 || (rises && at_corner == 0);
    return below_height != below_corner;
}

// Mode and arithmetic are known when compiling: filtered walks only note that a sign was not certain.
template <tie Mode, certainty How = certainty::exact>
struct cell_walk {
    point p, corner;
    bool inside, touches = false, unsure = false;

    KILN_HD int side(point a, point b, point c) {
        if constexpr (How == certainty::exact) return orient(a, b, c);
        guess const g = orient_filter(a, b, c);
        unsure |= !g.certain;
        return g.side;
    }
    KILN_HD void edge(point a, point b) {
        across(a, b);
        inside ^= changes_upwards(a, b, corner, p.y, Mode != tie::down, [this](point u, point v, point w) { return side(u, v, w); });
    }
    KILN_HD place where() const {
        if (Mode == tie::on && touches) return place::on;
        return inside ? place::inside : place::outside;
    }

private:
    KILN_HD void across(point a, point b) {
        bool const a_above = Mode == tie::down ? a.y >= p.y : a.y > p.y;
        bool const b_above = Mode == tie::down ? b.y >= p.y : b.y > p.y;
        if (a_above == b_above) {
            touches |= a.y == p.y && (a.x == p.x || (b.y == p.y && p.x >= least(a.x, b.x) && p.x <= most(a.x, b.x)));
            return;
        }
        if (most(a.x, b.x) < least(p.x, corner.x) || least(a.x, b.x) > most(p.x, corner.x)) return;
        point const low = a_above ? b : a, high = a_above ? a : b;
        int const at_p = side(low, high, p), at_corner = side(low, high, {corner.x, p.y});
        touches |= at_p == 0;
        bool const left_of_p = Mode == tie::up ? at_p <= 0 : at_p < 0;
        bool const left_of_corner = at_corner < 0 || (Mode == tie::down && at_corner == 0 && high.x > low.x);
        inside ^= left_of_p != left_of_corner;
    }
};

// found(row, place) for every row that the point is inside or on, in order of rows; it returns true to stop. False where a
// filter failed before that: ask again with certainty::exact. begin(corner, inside) makes the walk from a cell's corner.
template <class Begin, class Found>
KILN_HD bool locate_by(cell_grid const& g, point p, Begin begin, Found found) {
    i32 const column = whole_number(mul(sub(p.x, g.x), g.per_width)), row = whole_number(mul(sub(p.y, g.y), g.per_height));
    if (static_cast<u32>(column) >= static_cast<u32>(g.columns) || static_cast<u32>(row) >= static_cast<u32>(g.rows)) return true;
    u32 head = g.head[g.first_cell + static_cast<u32>(row) * static_cast<u32>(g.columns) + static_cast<u32>(column)];
    if (head == head_empty) return true;
    if ((head & head_kind) == head_full) return found(static_cast<i32>(head & head_value), place::inside), true;
    point corner{add(g.x, mul(column, g.width)), add(g.y, mul(row, g.height))};
    if ((head & head_kind) == head_divided) {
        double width = g.width, height = g.height, per_width = g.per_width, per_height = g.per_height;
        do {
            sub_grid const s = g.sub[head & head_value];
            i32 const n = 1 << s.log;
            double const scale = from_bits(static_cast<u64>(1023 - s.log) << 52), many = n;  // 2^-log, 2^log
            width = mul(width, scale), height = mul(height, scale);
            per_width = mul(per_width, many), per_height = mul(per_height, many);
            i32 c = whole_number(mul(sub(p.x, corner.x), per_width)), r = whole_number(mul(sub(p.y, corner.y), per_height));
            c = c < 0 ? 0 : c >= n ? n - 1 : c, r = r < 0 ? 0 : r >= n ? n - 1 : r;
            head = g.head[s.first + static_cast<u32>(r * n + c)];
            corner = {add(corner.x, mul(c, width)), add(corner.y, mul(r, height))};
        } while ((head & head_kind) == head_divided);
        if (head == head_empty) return true;
        if ((head & head_kind) == head_full) return found(static_cast<i32>(head & head_value), place::inside), true;
    }
    for (u32 at = head & head_value;;) {
        cell_record r = g.record[at];
        i32 const id = static_cast<i32>(r.row & record_row);
        bool last = (r.row & record_last) != 0;
        place where = place::inside;
        if ((r.row & record_full) != 0) {
            ++at;
        } else {
            auto walk = begin(corner, (r.row & record_corner) != 0);
            for (;;) {
                point a = g.at[r.first];
                for (u32 v = r.first; v < r.last; ++v) {
                    point const b = g.at[v + 1];
                    walk.edge(a, b);
                    a = b;
                }
                last = (r.row & record_last) != 0;
                ++at;
                if (last) break;
                r = g.record[at];
                if ((r.row & record_first) != 0) break;
            }
            if (walk.unsure) return false;
            where = walk.where();
        }
        if (where != place::outside && found(id, where)) return true;
        if (last) return true;
    }
}

template <tie Mode, certainty How, class Found>
KILN_HD bool locate(cell_grid const& g, point p, Found found) {
    return locate_by(g, p, [&](point corner, bool inside) { return cell_walk<Mode, How>{p, corner, inside}; }, found);
}

// ---- For whoever builds it ---------------------------------------------------------------------------------------------

struct cell_frame {
    double x, y, width, height;  // the sides are powers of two
    i32 columns, rows;
};
// 1 / v of a power of two.
KILN_HD double inverse_of_power(double v) { return from_bits((u64{2046} << 52) - bits_of(v)); }

// Rows of worlds that know nothing of each other may have a grid for each of them.
struct world_frame {
    cell_frame frame;
    u32 first_cell;
};
// The grid of one world.
struct world_cells {
    cell_grid g;
    world_frame const* own;  // null: there is one grid
    i32 const* world;        // by row

    KILN_HD cell_grid of_row_like(i32 row) const {
        if (own == nullptr) return g;
        world_frame const w = own[world[row]];
        cell_frame const& f = w.frame;
        return {f.x,  f.y,    f.width,  f.height, inverse_of_power(f.width), inverse_of_power(f.height), f.columns, f.rows,
                g.head, g.record, g.sub,    g.at,     w.first_cell};
    }
};

// The least one that is not below v.
KILN_HD double power_of_two_from(double v) {
    u64 const whole_part = (u64{1} << 52) - 1;
    return from_bits((bits_of(v) + whole_part) & ~whole_part);
}

// Below this cells are not divided: visit_cells() could not tell them apart.
KILN_HD double least_side_of(box const& all) {
    double const far = most(most(magnitude(all.min_x), magnitude(all.max_x)), most(magnitude(all.min_y), magnitude(all.max_y)));
    return most(mul(far, 0x1p-27), 0x1p-320);
}
// About so many cells, and along no side more than `most_along`, around all of a box. Power-of-two sides and a corner on a multiple of them, so that all
// corners are exact; one empty cell of margin, whose corners are outside of everything.
KILN_HD cell_frame frame_around(box const& all, double cells, double most_along) {
    double const least_side = least_side_of(all);
    double const dx = most(sub(all.max_x, all.min_x), least_side), dy = most(sub(all.max_y, all.min_y), least_side);
    // Square, unless all lies in a strip: long edges would cross a million columns, and each would list them all.
    double const along = mul(2, root(cells));
    double width = quotient(mul(root(dx), root(dy)), root(cells)), height = width;
    if (dx > mul(along, width)) width = quotient(dx, along), height = mul(height, quotient(height, width));
    if (dy > mul(along, height)) height = quotient(dy, along), width = mul(width, quotient(width, height));
    cell_frame f{};
    f.width = power_of_two_from(most(most(width, least_side), quotient(dx, most_along)));
    f.height = power_of_two_from(most(most(height, least_side), quotient(dy, most_along)));
    double const across = quotient(dx, f.width), upwards = quotient(dy, f.height);
    if (mul(mul(across, upwards), 2.2) < cells && mul(f.width, 0.5) >= least_side) f.width = mul(f.width, 0.5);
    f.x = mul(whole(quotient(all.min_x, f.width)) - 1, f.width);
    f.y = mul(whole(quotient(all.min_y, f.height)) - 1, f.height);
    f.columns = static_cast<i32>(whole(quotient(sub(all.max_x, f.x), f.width))) + 2;
    f.rows = static_cast<i32>(whole(quotient(sub(all.max_y, f.y), f.height))) + 2;
    return f;
}
// One cell, whose corner is outside of everything.
KILN_HD cell_frame single_cell_around(box const& all) {
    double const least_side = least_side_of(all);
    double const side = power_of_two_from(most(most(sub(all.max_x, all.min_x), sub(all.max_y, all.min_y)), least_side));
    return {mul(whole(quotient(all.min_x, side)) - 1, side), mul(whole(quotient(all.min_y, side)) - 1, side), mul(side, 4), mul(side, 4), 1, 1};
}

// visit(column, row) for every cell the segment may come near: padded by a millionth of a cell, which is more than all
// rounding here as long as a cell is more than 2^-28 of the coordinates.
template <class Visit>
KILN_HD void visit_cells(cell_frame const& f, point a, point b, Visit visit) {
    double const low = least(a.y, b.y), high = most(a.y, b.y), left = least(a.x, b.x), right = most(a.x, b.x);
    double const pad_x = mul(1e-6, f.width), pad_y = mul(1e-6, f.height);
    double const per_width = inverse_of_power(f.width), per_height = inverse_of_power(f.height);
    i32 first = static_cast<i32>(whole(mul(sub(sub(low, pad_y), f.y), per_height)));
    i32 last = static_cast<i32>(whole(mul(sub(add(high, pad_y), f.y), per_height)));
    first = first < 0 ? 0 : first, last = last >= f.rows ? f.rows - 1 : last;
    double const slope = a.y != b.y ? quotient(sub(b.x, a.x), sub(b.y, a.y)) : 0;
    for (i32 row = first; row <= last; ++row) {
        double from = left, to = right;
        if (a.y != b.y) {
            double const bottom = most(sub(add(f.y, mul(row, f.height)), pad_y), low);
            double const top = least(add(add(f.y, mul(row + 1, f.height)), pad_y), high);
            double const x0 = add(a.x, mul(sub(bottom, a.y), slope)), x1 = add(a.x, mul(sub(top, a.y), slope));
            from = most(left, least(x0, x1)), to = least(right, most(x0, x1));
            if (from > to) from = left, to = right;
        }
        i32 c0 = static_cast<i32>(whole(mul(sub(sub(from, pad_x), f.x), per_width)));
        i32 c1 = static_cast<i32>(whole(mul(sub(add(to, pad_x), f.x), per_width)));
        c0 = c0 < 0 ? 0 : c0, c1 = c1 >= f.columns ? f.columns - 1 : c1;
        for (i32 c = c0; c <= c1; ++c) visit(c, row);
    }
}

// visit(row, column) for every lower line of a row that the segment straddles, with the first column whose corner lies right of
// where it does.
template <class Visit>
KILN_HD void visit_crossed_lines(cell_frame const& f, point a, point b, Visit visit) {
    if (a.y == b.y) return;
    point const low = a.y < b.y ? a : b, high = a.y < b.y ? b : a;
    double const per_width = inverse_of_power(f.width), per_height = inverse_of_power(f.height);
    i32 first = static_cast<i32>(whole(mul(sub(low.y, f.y), per_height))) - 1;
    i32 last = static_cast<i32>(whole(mul(sub(high.y, f.y), per_height))) + 1;
    first = first < 0 ? 0 : first, last = last >= f.rows ? f.rows - 1 : last;
    double const slope = quotient(sub(high.x, low.x), sub(high.y, low.y));
    for (i32 row = first; row <= last; ++row) {
        double const y = add(f.y, mul(row, f.height));
        if ((low.y > y) == (high.y > y)) continue;
        double const guessed = whole(mul(sub(add(low.x, mul(sub(y, low.y), slope)), f.x), per_width)) + 1;
        i32 c = guessed < 0 ? 0 : guessed > f.columns ? f.columns : static_cast<i32>(guessed);
        while (c > 0 && orient(low, high, {add(f.x, mul(c - 1, f.width)), y}) < 0) --c;
        while (c < f.columns && !(orient(low, high, {add(f.x, mul(c, f.width)), y}) < 0)) ++c;
        visit(row, c);
    }
}

}  // namespace kiln_spatial
