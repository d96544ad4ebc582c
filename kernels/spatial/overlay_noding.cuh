// SPDX-License-Identifier: Apache-2.0
// Makes an arrangement of rings: after it, segments of any rows meet in vertices of both or not at all, and those that lie on each
// other have the same ends. A segment is divided where a vertex lies on it, which moves nothing, and where it crosses another one, at
// the correctly rounded crossing, which may move its parts by less than a unit in the last place. What was moved may meet what it did
// not before, so it is asked again, until nothing moves. Everything after it is exact of the rings as they are then.
#pragma once

#include "chosen_rows.cuh"
#include "grid.cuh"
#include "layer.cuh"
#include "segment_filter.cuh"
#include "tree.cuh"

namespace kiln_spatial {

// Rows are in "worlds" that know nothing of each other: null, all are in one; rows of a negative one are in none.
struct worlds_of_keys {
    i32 const* key;
    i32 keys;
    i32* world;
    KILN_HD void operator()(u64 i) const { world[i] = key[i] >= 0 && key[i] < keys ? key[i] : -1; }
};
// Row by row: the left and the right row of one number.
struct worlds_of_pairs {
    i32 left_rows;
    i32* world;
    KILN_HD void operator()(u64 i) const {
        i32 const row = static_cast<i32>(i);
        world[i] = row < left_rows ? row : row - left_rows;
    }
};
// Worlds by number, without gaps, of rows that are sorted by them: rows of none come first there, and have the number behind all.
struct count_worlds {
    i32 const* world;  // in order
    i64* is_new;
    KILN_HD void operator()(u64 i) const { is_new[i] = world[i] >= 0 && (i == 0 || world[i] != world[i - 1]) ? 1 : 0; }
};
struct number_worlds {
    i32 const* world;  // in order
    i32 const* row;
    i64 const* is_new;  // summed
    u64 rows;
    i32* number;  // by row
    KILN_HD void operator()(u64 i) const {
        number[row[i]] = static_cast<i32>(world[i] >= 0 ? is_new[i + 1] - 1 : is_new[rows]);
    }
};
// Elements of one world are next to each other in a tree: which world each is of, and where those of a world begin.
struct worlds_of_items {
    layer l;
    i32 const* item;
    i32 const* vertex;  // of the item; null: items are vertices
    i32 const* number;
    i32 worlds;
    i32* key;
    KILN_HD void operator()(u64 i) const {
        i32 const v = vertex != nullptr ? vertex[item[i]] : item[i];
        key[i] = is_element(l, v) ? number[row_at(l, v)] : worlds;
    }
};
struct begin_worlds {
    i32 const* key;  // in order
    u64 items;       // asked for one more
    i32 worlds;
    i32* first;  // by world, one more
    KILN_HD void operator()(u64 i) const {
        i32 const last = i == items ? worlds : key[i];
        for (i32 w = i == 0 ? 0 : key[i - 1] + 1; w <= last; ++w) first[w] = static_cast<i32>(i);
    }
};
// Where a tree has the elements of worlds.
struct world_slots {
    i32 const* number;  // of worlds, by row; null: all elements are together
    i32 const* first;   // by world, one more
    i32 worlds;

    KILN_HD bool are_apart() const { return number != nullptr; }
    KILN_HD slot_range of(i32 world) const {
        return world < worlds ? slot_range{static_cast<u32>(first[world]), static_cast<u32>(first[world + 1])} : slot_range{0, 0};
    }
};

// ---- A grid ------------------------------------------------------------------------------------------------------------

// Coordinates that are whole multiples of a step, or of 1 / scale, which is the step rounded; 0: all doubles. A step below 1 is mostly one of 0.1,
// 0.01 and so on, and 1 / 10 is nearer to what is meant than the step; one above it is its own whole number.
struct coordinate_grid {
    double scale, step;
    KILN_HD bool is_there() const { return scale != 0; }
    KILN_HD double nearest(double v) const {
        if (!is_there()) return v;
        double const k = whole(add(step > 1 ? quotient(v, step) : mul(v, scale), 0.5));
        return k == 0 ? 0 : step > 1 ? mul(k, step) : quotient(k, scale);
    }
    KILN_HD point nearest(point p) const { return {nearest(p.x), nearest(p.y)}; }
    // Where coordinates round to those of p, its edge, and a little more: edges are rounded themselves, and a crossing on one of them must
    // not be outside of the squares on both sides.
    KILN_HD box around(point p) const {
        double const x = reach(p.x), y = reach(p.y);
        return {sub(p.x, x), sub(p.y, y), add(p.x, x), add(p.y, y)};
    }

private:
    KILN_HD double reach(double at) const {
        double const half = quotient(0.5, scale);
        return add(half, add(mul(half, 0x1p-30), mul(at < 0 ? -at : at, 0x1p-50)));
    }
};
// One for all rows, or one for each, the same of all rows of a world.
struct row_grids {
    double scale, step;
    double const* of_row;  // scales, of steps that are powers of two; null: the same for all
    KILN_HD coordinate_grid of(i32 row) const {
        if (of_row == nullptr) return {scale, step};
        return {of_row[row], 0};
    }
};
struct round_vertices {
    layer l;
    i32 const* world;  // by row; those of a negative one stay as they are
    row_grids grids;
    point* to;
    KILN_HD void operator()(u64 i) const {
        i32 const row = row_at(l, static_cast<i32>(i));
        bool const stays = world != nullptr && world[row] < 0;
        to[i] = stays ? l.at[i] : grids.of(row).nearest(l.at[i]);
    }
};
// Of coordinates up to this size, a step that is coarse beside their rounding and fine beside everything else: 2^-46 of it, and never so fine
// that its multiples would be too small for exact signs.
KILN_HD double step_for_size(double size) {
    if (size == 0) return 1;
    int const exponent = static_cast<int>(bits_of(size) >> 52) - 1023 - 46;
    return from_bits(static_cast<u64>((exponent > least_exponent ? exponent : least_exponent) + 1023) << 52);
}
// The largest coordinates of worlds, in magnitude, and the scales of rows by them: a world's grid is its own.
struct find_world_sizes {
    layer l;
    i32 const* number;  // of worlds, by row
    u64* least;         // by number, of all bits set; one more, for rows of none: the inverted bits of the largest
    KILN_HD void operator()(u64 i) const {
        u8 const kind = l.kind[l.path_of[i]];
        if (!is_ring(kind) && kind != line_path) return;
        double const size = most(magnitude(l.at[i].x), magnitude(l.at[i].y));
        lower_to(least + number[row_at(l, static_cast<i32>(i))], ~bits_of(size));
    }
};
struct set_row_scales {
    i32 const* number;
    u64 const* least;
    double* scale;  // by row
    KILN_HD void operator()(u64 i) const { scale[i] = quotient(1, step_for_size(from_bits(~least[number[i]]))); }
};
struct find_largest_world {
    u64 const* least;  // by world
    u64* of_all;       // of all bits set
    KILN_HD void operator()(u64 i) const { lower_to(of_all, least[i]); }
};

// ---- What may have to be divided ---------------------------------------------------------------------------------------

// False for what certainly needs no division: segments apart, the same one twice, and two that only share an end.
KILN_HD bool may_divide(point a, point b, point c, point d) {
    if (c == d) return false;
    bool const first = a == c, crossed = a == d, second = b == d, last = b == c;
    if ((first && second) || (crossed && last)) return false;
    if (first || crossed || second || last) {
        point const p = first || crossed ? a : b, q = first || crossed ? b : a, r = first || last ? d : c;
        guess const side = orient_filter(p, q, r);
        return !side.certain || side.side == 0;
    }
    return quick_contact(a, b, c, d) != apart;
}

struct meeting_search {
    layer l;
    tree t;
    segment const* elements;  // in the order of the leaves
    i32 const* world;         // by row; those of a negative one meet nothing
    u32 const* moved;         // by segment; null: all are. Those that did not move have asked each other.
    row_roles roles;
    world_slots worlds;

    // The segments of a leaf ask together if they are near each other: those on both sides of a gap may be far apart, and a box around
    // them would be around everything. Where all ask, leaves ask those that come after them.
    template <class Found>
    KILN_HD void each(u64 leaf, Found found) const {
        u32 const node = t.first_leaf + static_cast<u32>(leaf), first = static_cast<u32>(leaf) * 8;
        tree_node const& own = t.nodes[node];
        u32 const asking = asking_of(first);
        bool const near_each_other = are_near(own, asking);
        for (u32 left = asking; left != 0;) {
            u32 const together = near_each_other ? left : left & (~left + 1);
            left &= ~together;
            rough_box const reach = box_around(own, together);
            auto const meet = [&](u32 slot) {
                u32 met = children_met(own, child_of(t.nodes[t.first_leaf + (slot >> 3)], slot & 7)) & together;
                // Each pair once.
                if (met != 0 && slot < first + 8 && asks(slot)) met &= slot < first ? 0 : (1U << (slot - first)) - 1;
                for (; met != 0; met &= met - 1) ask(first + static_cast<u32>(lowest_bit(met)), slot, found);
                return true;
            };
            if (worlds.are_apart()) query_slots(t, slots_for(first), reach, meet);
            else if (moved == nullptr) walk_on(t, from_leaf_on(t, node, reach), reach, ~0U, meet);
            else walk_subtree(t, 0, t.top, reach, ~0U, meet);
        }
    }

private:
    // Those of the worlds that a leaf has elements of: of one, or of a few small ones.
    KILN_HD slot_range slots_for(u32 first) const {
        i32 const before = world_at(first), behind = world_at(first + 7 < t.size ? first + 7 : t.size - 1);
        slot_range out = worlds.of(before);
        if (before >= worlds.worlds) return out;
        out.last = behind < worlds.worlds ? worlds.of(behind).last : static_cast<u32>(worlds.first[worlds.worlds]);
        if (moved == nullptr && out.first < first) out.first = first;
        return out;
    }
    KILN_HD i32 world_at(u32 slot) const {
        i32 const v = static_cast<i32>(t.item[slot]);
        return is_element(l, v) ? worlds.number[row_at(l, v)] : worlds.worlds;
    }
    KILN_HD bool asks(u32 slot) const { return moved == nullptr || moved[t.item[slot]] != 0; }
    KILN_HD u32 asking_of(u32 first) const {
        if (moved == nullptr) return 0xff;
        u32 out = 0;
        for (u32 k = 0; k < 8 && first + k < t.size; ++k) out |= static_cast<u32>(asks(first + k)) << k;
        return out;
    }
    KILN_HD static rough_box box_around(tree_node const& own, u32 children) {
        rough_box out = nothing_met();
        for (; children != 0; children &= children - 1) out = around(out, child_of(own, static_cast<u32>(lowest_bit(children))));
        return out;
    }
    KILN_HD static float reach_of(rough_box const& b) { return b.min_x <= b.max_x ? (b.max_x - b.min_x) + (b.max_y - b.min_y) : 0; }
    KILN_HD static bool are_near(tree_node const& own, u32 children) {
        float alone = 0;
        for (u32 left = children; left != 0; left &= left - 1) alone += reach_of(child_of(own, static_cast<u32>(lowest_bit(left))));
        return reach_of(box_around(own, children)) <= alone + alone;
    }
    template <class Found>
    KILN_HD void ask(u32 slot, u32 other_slot, Found& found) const {
        segment const s = elements[slot], other = elements[other_slot];
        if (s.a == s.b || !boxes_meet(s.a, s.b, other.a, other.b) || !may_divide(s.a, s.b, other.a, other.b)) return;
        i32 const v = static_cast<i32>(t.item[slot]), w = static_cast<i32>(t.item[other_slot]);
        if (world != nullptr && (world[row_at(l, v)] < 0 || world[row_at(l, v)] != world[row_at(l, w)])) return;
        if (!roles.is_pair(row_at(l, v), row_at(l, w))) return;
        found(v, w);
    }
};

// The first that a leaf finds are kept, so that few have to look for them again.
enum : u32 { meetings_kept = 4 };
struct kept_meetings {
    u64* pairs;  // meetings_kept times as many as leaves
    u64 leaves;
    KILN_HD u64& at(u64 leaf, u64 n) const { return pairs[n * leaves + leaf]; }
};
struct count_meetings {
    meeting_search of;
    kept_meetings kept;
    i64* count;
    KILN_HD void operator()(u64 i) const {
        u64 n = 0;
        of.each(i, [&](i32 v, i32 w) {
            if (n < meetings_kept) kept.at(i, n) = static_cast<u64>(v) << 32 | static_cast<u64>(w);
            ++n;
        });
        count[i] = static_cast<i64>(n);
    }
};
struct list_meetings {
    meeting_search of;
    kept_meetings kept;
    i64 const* place;
    i32* left;
    i32* right;
    KILN_HD void operator()(u64 i) const {
        u64 at = static_cast<u64>(place[i]);
        u64 const count = static_cast<u64>(place[i + 1]) - at;
        if (count > meetings_kept) return of.each(i, [&](i32 v, i32 w) { left[at] = v, right[at++] = w; });
        for (u64 k = 0; k < count; ++k) {
            u64 const pair = kept.at(i, k);
            left[at + k] = static_cast<i32>(pair >> 32), right[at + k] = static_cast<i32>(pair);
        }
    }
};

// ---- Divisions ---------------------------------------------------------------------------------------------------------

// A segment and a place on it, or next to it: at most two for a pair of segments.
struct division_pair {
    i32* segment_of;  // two for each pair
    point* at;
};
// What was found of a segment. Of two that cross, one is told.
enum : u32 { segment_moved = 1, segment_crosses = 2 };
struct find_divisions {
    layer l;
    i32 const* left;
    i32 const* right;
    division_pair to;
    row_grids grids;
    i64* count;
    u32* moved;  // by segment, bits, of 0
    KILN_HD void operator()(u64 i) const {
        i32 const v = left[i], w = right[i];
        point const a = l.at[v], b = l.at[v + 1], c = l.at[w], d = l.at[w + 1];
        int n = 0;
        segment_contact const how = contact_of(a, b, c, d);
        if (how == crossing) {
            or_into(moved + v, segment_crosses);
            point const exact = crossing_point(a, b, c, d);
            point const p = grids.of(row_at(l, v)).nearest(point{in_range(exact.x), in_range(exact.y)});
            n = cross(i, n, v, a, b, p);
            n = cross(i, n, w, c, d, p);
        } else if (how != apart) {
            n = touch(i, n, v, a, b, c), n = touch(i, n, v, a, b, d);
            n = touch(i, n, w, c, d, a), n = touch(i, n, w, c, d, b);
        }
        count[i] = n;
    }

private:
    // No negative zero, so that equal places have equal bits; what is too small for exact signs becomes 0.
    KILN_HD static double in_range(double v) { return in_domain(v) ? add(v, 0.0) : 0.0; }
    KILN_HD int put(u64 i, int n, i32 v, point p) const {
        to.segment_of[2 * i + static_cast<u64>(n)] = v, to.at[2 * i + static_cast<u64>(n)] = p;
        return n + 1;
    }
    KILN_HD int cross(u64 i, int n, i32 v, point a, point b, point p) const {
        if (p == a || p == b) return n;
        if (orient(a, b, p) != 0) or_into(moved + v, segment_moved);
        return put(i, n, v, p);
    }
    KILN_HD int touch(u64 i, int n, i32 v, point a, point b, point p) const {
        return n < 2 && p != a && p != b && on_segment(a, b, p) ? put(i, n, v, p) : n;
    }
};
struct gather_divisions {
    division_pair from;
    i64 const* place;  // summed counts
    i32* segment_of;
    point* at;
    i32* number;
    KILN_HD void operator()(u64 i) const {
        for (i64 k = place[i]; k < place[i + 1]; ++k) {
            u64 const source = 2 * i + static_cast<u64>(k - place[i]);
            segment_of[k] = from.segment_of[source], at[k] = from.at[source], number[k] = static_cast<i32>(k);
        }
    }
};
// ---- Snapping ----------------------------------------------------------------------------------------------------------

// On a grid, vertices and crossings make the squares hot in which they are rounded, and every segment that comes through a hot one goes
// through its middle: then no two segments cross any more but in such middles, which dividing alone would reach only after many turns,
// if at all.
struct hot_search {
    layer l;
    tree t;
    segment const* elements;
    i32 const* world;
    row_grids grids;
    u64 vertices;       // those of the layer first
    point const* more;  // then crossings, with their segments
    i32 const* segment_of;
    row_roles roles;  // vertices of other rows are some other chunk's
    world_slots worlds;

    template <class Found>
    KILN_HD void each(u64 i, Found found) const {
        bool const own = i < vertices;
        i32 const v = own ? static_cast<i32>(i) : segment_of[i - vertices];
        u8 const kind = l.kind[l.path_of[v]];
        if ((!is_ring(kind) && kind != line_path) || (world != nullptr && world[row_at(l, v)] < 0)) return;
        if (own && !roles.is_own(row_at(l, v))) return;
        point const p = own ? l.at[i] : more[i - vertices];
        box const hot = grids.of(row_at(l, v)).around(p);
        auto const meet = [&](u32 slot) {
            i32 const w = static_cast<i32>(t.item[slot]);
            segment const s = elements[slot];
            if (s.a == s.b || p == s.a || p == s.b || !comes_through(s, hot)) return;
            if (world != nullptr && world[row_at(l, v)] != world[row_at(l, w)]) return;
            found(w, p);
        };
        if (worlds.are_apart()) query_slots(t, worlds.of(worlds.number[row_at(l, v)]), t.rough(hot), meet);
        else query_tree(t, t.rough(hot), meet);
    }

private:
    KILN_HD static bool comes_through(segment const& s, box const& b) {
        box const own = box_of(s);
        if (own.max_x < b.min_x || own.min_x > b.max_x || own.max_y < b.min_y || own.min_y > b.max_y) return false;
        int const first = orient(s.a, s.b, {b.min_x, b.min_y}), second = orient(s.a, s.b, {b.max_x, b.min_y});
        int const third = orient(s.a, s.b, {b.max_x, b.max_y}), last = orient(s.a, s.b, {b.min_x, b.max_y});
        bool const all_left = first > 0 && second > 0 && third > 0 && last > 0;
        return !all_left && !(first < 0 && second < 0 && third < 0 && last < 0);
    }
};
struct count_hot {
    hot_search of;
    i64* count;
    KILN_HD void operator()(u64 i) const {
        i64 n = 0;
        of.each(i, [&](i32, point) { ++n; });
        count[i] = n;
    }
};
struct list_hot {
    hot_search of;
    i64 const* place;
    i32* segment_of;
    point* at;
    i32* number;
    KILN_HD void operator()(u64 i) const {
        i64 k = place[i];
        if (place[i + 1] == k) return;
        of.each(i, [&](i32 w, point p) { segment_of[k] = w, at[k] = p, number[k] = static_cast<i32>(k), ++k; });
    }
};

// Numbers that grow along the segment, by y and then by x: both coordinates go one way along it, also rounded ones.
struct division_keys {
    layer l;
    i32 const* segment_of;
    point const* at;
    i32 const* number;
    i32 step;
    u64* key;
    KILN_HD void operator()(u64 i) const {
        i32 const k = number[i], v = segment_of[k];
        point const a = l.at[v], b = l.at[v + 1];
        bool const falls = step == 0 ? a.y > b.y : a.x > b.x;
        u64 const grows = ordered(step == 0 ? at[k].y : at[k].x);
        key[i] = falls ? ~grows : grows;
    }
};
// The parts of a segment that moved have.
struct spread_moved {
    u32 const* moved;
    i64 const* place;  // of vertices
    u32* to;
    u64* any;  // of 0
    KILN_HD void operator()(u64 i) const {
        u32 const has = moved[i] & segment_moved;
        for (i64 k = place[i]; k < place[i + 1]; ++k) to[k] = has;
        if (has != 0) *any = 1;
    }
};
// Whether worlds come to rest, each by its own divisions: how many it has in a round, and how many it had in the one before.
struct count_world_divisions {
    layer l;
    i32 const* segment_of;
    i32 const* number;  // of worlds, by row; null: all are in one
    u64* count;         // by number, of 0
    KILN_HD void operator()(u64 i) const {
        count_in(count, number != nullptr ? static_cast<u32>(number[row_at(l, segment_of[i])]) : 0U);
    }
};
struct judge_worlds {
    u64 const* count;
    u64 const* before;
    u64 by_chance;  // so many more are no sign of unrest
    bool is_late;   // from now on they have to become half as many in every round
    u32* restless;  // by world: 1 where it is; those that are have no divisions any more
    u64* calm;      // of 0: divisions of worlds that may come to rest
    u64* worlds;    // of 0: how many are restless since this round
    KILN_HD void operator()(u64 i) const {
        u64 const n = count[i];
        if (n == 0) return;
        if (n > before[i] + by_chance || (is_late && 2 * n > before[i])) {
            restless[i] = 1;
            add_to(worlds, 1);
        } else add_to(calm, n);
    }
};
// What restless worlds still have is given up: their divisions, and that their segments moved.
struct calm_divisions {
    layer l;
    i32 const* segment_of;
    point const* at;
    i32 const* number;  // of worlds, by row
    u32 const* restless;
    KILN_HD bool has(u64 i) const { return restless[number[row_at(l, segment_of[i])]] == 0; }
};
struct count_calm_divisions {
    calm_divisions of;
    i64* count;
    KILN_HD void operator()(u64 i) const { count[i] = of.has(i) ? 1 : 0; }
};
struct keep_calm_divisions {
    calm_divisions of;
    i64 const* place;  // summed
    i32* segment_of;
    point* at;
    i32* number;
    KILN_HD void operator()(u64 i) const {
        i64 const k = place[i];
        if (place[i + 1] != k) segment_of[k] = of.segment_of[i], at[k] = of.at[i], number[k] = static_cast<i32>(k);
    }
};
struct forget_moved {
    layer l;
    i32 const* number;
    u32 const* restless;
    u32* moved;
    KILN_HD void operator()(u64 i) const {
        if (restless[number[row_at(l, static_cast<i32>(i))]] != 0) moved[i] = 0;
    }
};
// Of a layer as it was and then as it is divided: rows of restless worlds as they were, and others divided.
struct choose_calm_rows {
    i32 const* number;
    u32 const* restless;
    i32 rows;
    i32* to;
    KILN_HD void operator()(u64 i) const {
        to[i] = static_cast<i32>(i) + (restless[number[i]] != 0 ? 0 : rows);
    }
};
struct count_rows_with {
    layer l;
    u32 kinds;   // bits
    u64* count;  // of 0
    KILN_HD void operator()(u64 i) const {
        for (i32 k = l.row_first[i]; k < l.row_first[i + 1]; ++k)
            if ((kinds >> l.kind[k] & 1) != 0) return add_to(count, 1);
    }
};
// Worlds with segments that moved still; and worlds of one kind, all others negative.
struct find_restless {
    layer l;
    u32 const* moved;
    i32 const* number;  // of worlds, by row
    u32* restless;      // by number, of 0; one more, for rows of none
    KILN_HD void operator()(u64 i) const {
        if ((moved[i] & segment_moved) != 0) or_into(restless + number[row_at(l, static_cast<i32>(i))], 1);
    }
};
struct find_crossed_rows {
    layer l;
    u32 const* moved;
    u32* crossed;  // by row, of 0
    KILN_HD void operator()(u64 i) const {
        if ((moved[i] & segment_crosses) != 0) or_into(crossed + row_at(l, static_cast<i32>(i)), 1);
    }
};
struct choose_worlds {
    i32 const* world;
    i32 const* number;
    u32 const* restless;
    u32 wanted;
    i32* to;
    KILN_HD void operator()(u64 i) const { to[i] = world[i] >= 0 && restless[number[i]] == wanted ? world[i] : -1; }
};
// Which vertices were there from the beginning.
struct carry_owned {
    u32 const* owned;
    i64 const* place;
    u32* to;
    KILN_HD void operator()(u64 i) const {
        to[place[i]] = owned[i];
        for (i64 k = place[i] + 1; k < place[i + 1]; ++k) to[k] = 0;
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(overlay_worlds, kiln_spatial::worlds_of_keys, 256, 1)
KILN_KERNEL(overlay_pair_worlds, kiln_spatial::worlds_of_pairs, 256, 1)
KILN_KERNEL(overlay_new_worlds, kiln_spatial::count_worlds, 256, 1)
KILN_KERNEL(overlay_number_worlds, kiln_spatial::number_worlds, 256, 1)
KILN_KERNEL(overlay_item_worlds, kiln_spatial::worlds_of_items, 256, 1)
KILN_KERNEL(overlay_begin_worlds, kiln_spatial::begin_worlds, 256, 1)
KILN_KERNEL(overlay_meeting_count, kiln_spatial::count_meetings, 128, 1)
KILN_KERNEL(overlay_meetings, kiln_spatial::list_meetings, 128, 1)
KILN_KERNEL(overlay_division_pairs, kiln_spatial::find_divisions, 128, 4)
KILN_KERNEL(overlay_divisions, kiln_spatial::gather_divisions, 256, 1)
KILN_KERNEL(overlay_rounded, kiln_spatial::round_vertices, 256, 1)
KILN_KERNEL(overlay_hot_count, kiln_spatial::count_hot, 128, 1)
KILN_KERNEL(overlay_hot, kiln_spatial::list_hot, 128, 1)
KILN_KERNEL(overlay_division_keys, kiln_spatial::division_keys, 256, 1)
KILN_KERNEL(overlay_moved, kiln_spatial::spread_moved, 256, 1)
KILN_KERNEL(overlay_world_sizes, kiln_spatial::find_world_sizes, 256, 1)
KILN_KERNEL(overlay_row_scales, kiln_spatial::set_row_scales, 256, 1)
KILN_KERNEL(overlay_largest_world, kiln_spatial::find_largest_world, 256, 1)
KILN_KERNEL(overlay_world_divisions, kiln_spatial::count_world_divisions, 256, 1)
KILN_KERNEL(overlay_judge_worlds, kiln_spatial::judge_worlds, 256, 1)
KILN_KERNEL(overlay_calm_count, kiln_spatial::count_calm_divisions, 256, 1)
KILN_KERNEL(overlay_calm_divisions, kiln_spatial::keep_calm_divisions, 256, 1)
KILN_KERNEL(overlay_forget_moved, kiln_spatial::forget_moved, 256, 1)
KILN_KERNEL(overlay_calm_rows, kiln_spatial::choose_calm_rows, 256, 1)
KILN_KERNEL(overlay_rows_with, kiln_spatial::count_rows_with, 256, 1)
KILN_KERNEL(overlay_restless, kiln_spatial::find_restless, 256, 1)
KILN_KERNEL(overlay_crossed_rows, kiln_spatial::find_crossed_rows, 256, 1)
KILN_KERNEL(overlay_chosen_worlds, kiln_spatial::choose_worlds, 256, 1)
KILN_KERNEL(overlay_owned, kiln_spatial::carry_owned, 256, 1)
