// SPDX-License-Identifier: Apache-2.0
// The tree over boxes: keys, nodes level by level, and queries of boxes. A query that has to look at much is put off, and done by
// many threads, each of which takes one subtree: no thread walks alone for long.
#pragma once

#include "grid.cuh"
#include "tree.cuh"

namespace kiln_spatial {

// As layer_extent (geometry_layers.cuh), of boxes.
struct box_extent {
    box const* boxes;
    u64 count, stride;
    u64* least;
    KILN_HD void operator()(u64 i) const {
        u64 around[4] = {~u64{0}, ~u64{0}, ~u64{0}, ~u64{0}};
        for (u64 k = i; k < count; k += stride) {
            box const b = boxes[k];
            if (!is_box(b)) continue;
            u64 const of[4] = {ordered(b.min_x), ordered(b.min_y), ordered(-b.max_x), ordered(-b.max_y)};
            for (int j = 0; j < 4; ++j) around[j] = of[j] < around[j] ? of[j] : around[j];
        }
        for (int j = 0; j < 4; ++j) lower_together(least + j, around[j]);
    }
};
// Signed, as the primitives that ship want them: the order is the same. What is no box comes last.
struct make_box_keys {
    box const* boxes;
    u64 const* least;
    i32* key;
    i32* item;
    KILN_HD void operator()(u64 i) const {
        box const b = boxes[i];
        u32 const k = is_box(b) ? box_key(frame_of_extent(least), b) : ~0U;
        key[i] = static_cast<i32>(k ^ 0x80000000U), item[i] = static_cast<i32>(i);
    }
};

// One item per child, eight times the number of leaves: those beyond the items are empty.
struct make_leaves {
    tree_node* nodes;
    box const* boxes;
    i32 const* item;
    u64 items;
    box* in_order;  // of the leaves
    u64 const* around;
    KILN_HD void operator()(u64 i) const {
        rough_box b = nothing_met();
        if (i < items) {
            box const exactly = boxes[item[i]];
            in_order[i] = exactly;
            if (is_box(exactly)) b = outwards_from(around, exactly);
        }
        set_child(nodes[i >> 3], i & 7, b);
    }
};
// One item for each of the four sides of every child: neighbours read what lies side by side.
struct make_inner_nodes {
    tree_node* nodes;
    tree_node const* below;
    u64 items;  // nodes below
    KILN_HD void operator()(u64 i) const {
        u64 const node = i >> 2, side = i & 3;
        bool const is_least = side < 2;
        rough_box const none = nothing_met();
        float out = is_least ? none.min_x : none.max_x;
        if (node < items) {
            auto const* const from = reinterpret_cast<four_floats const*>(below + node) + 2 * side;
            for (int half = 0; half < 2; ++half) {
                four_floats const f = from[half];
                for (int k = 0; k < 4; ++k) out = (f.v[k] < out) == is_least ? f.v[k] : out;
            }
        }
        reinterpret_cast<float*>(nodes + (node >> 3))[8 * side + (node & 7)] = out;
    }
};

// ---- Queries -----------------------------------------------------------------------------------------------------------

// Boxes that are no more than `distance` apart. Rounded once per operation; exact for 0.
struct box_question {
    tree t;
    box const* boxes;  // in the order of the leaves
    box const* asked;
    i32 const* order;  // to ask in: neighbours together; null: as they are
    double distance;

    KILN_HD u64 number(u64 i) const { return order != nullptr ? static_cast<u64>(order[i]) : i; }
    KILN_HD rough_box reach(box const& b) const {
        if (distance == 0) return t.rough(b);
        box const grown{next_down(sub(b.min_x, distance)), next_down(sub(b.min_y, distance)), next_up(add(b.max_x, distance)),
                        next_up(add(b.max_y, distance))};
        rough_box const r = t.rough(grown);
        // What rounding takes from distances is less than what one more step outwards gives.
        return outwards({next_down(static_cast<double>(r.min_x)), next_down(static_cast<double>(r.min_y)),
                         next_up(static_cast<double>(r.max_x)), next_up(static_cast<double>(r.max_y))});
    }
    KILN_HD bool meets(box const& a, box const& b) const {
        // Without branches: a box is two loads then, and not one for every side that is looked at.
        if (distance == 0) return (a.min_x <= b.max_x) & (a.min_y <= b.max_y) & (a.max_x >= b.min_x) & (a.max_y >= b.min_y);
        double const x = most(0, most(sub(a.min_x, b.max_x), sub(b.min_x, a.max_x)));
        double const y = most(0, most(sub(a.min_y, b.max_y), sub(b.min_y, a.max_y)));
        return add(mul(x, x), mul(y, y)) <= mul(distance, distance);
    }
};

enum : u32 { most_light_hits = 48, most_light_nodes = 192, most_kept_hits = 32 };

// The first hits of each query are kept, in the order of asking, so that few have to look for theirs again.
struct kept_items {
    i32* items;  // `each` times as many as queries
    u64 queries;
    u32 each;
    KILN_HD i32& at(u64 k, u64 n) const { return items[n * queries + k]; }
};

// Counts; what has too many hits or nodes is put off, and counted as none.
struct count_boxes {
    box_question q;
    kept_items kept;
    i64* count;
    u32* heavy;
    u32* heavies;
    KILN_HD void operator()(u64 k) const {
        u64 const i = q.number(k);
        box const b = q.asked[i];
        u32 hits = 0;
        bool put_off = false;
        if (is_box(b)) {
            put_off = !query_tree_within(q.t, q.reach(b), most_light_nodes, [&](u32 slot) {
                if (!q.meets(q.boxes[slot], b)) return true;
                if (hits < kept.each) kept.at(k, hits) = static_cast<i32>(q.t.item[slot]);
                ++hits;
                return hits <= most_light_hits;
            });
        }
        count[i] = put_off ? 0 : static_cast<i64>(hits);
        append(put_off, static_cast<u32>(i), heavy, heavies);
    }
};

// Sorts N numbers that stay in registers: a bitonic network.
template <int N, int Run = 2, int Step = 1>
KILN_HD void sort_few(i32* v) {
    KILN_UNROLL
    for (int i = 0; i < N; ++i) {
        int const other = i ^ Step;
        if (other < i) continue;
        i32 const low = v[i] < v[other] ? v[i] : v[other], high = v[i] < v[other] ? v[other] : v[i];
        bool const rises = (i & Run) == 0;
        v[i] = rises ? low : high, v[other] = rises ? high : low;
    }
    if constexpr (Step > 1) sort_few<N, Run, Step / 2>(v);
    else if constexpr (Run < N) sort_few<N, Run * 2, Run>(v);
}

// Light queries at their places. Rows are put in order as they are written: there are few in each. What was not kept is left for
// later.
struct listed_boxes {
    box_question q;
    i64 const* light;  // summed counts of the light ones
    i64 const* place;  // of all
    i32* left;
    i32* right;
};
struct list_boxes {
    listed_boxes to;
    kept_items kept;
    u32* later;
    u32* laters;
    KILN_HD void operator()(u64 k) const {
        u64 const i = to.q.number(k);
        u32 const count = static_cast<u32>(to.light[i + 1] - to.light[i]);
        if (count <= most_kept_hits / 2) write<most_kept_hits / 2>(k, i, count);
        else if (count <= kept.each) write<most_kept_hits>(k, i, count);
        append(count > kept.each, static_cast<u32>(i), later, laters);
    }

private:
    template <int N>
    KILN_HD void write(u64 k, u64 i, u32 count) const {
        i32 found[N];
        KILN_UNROLL
        for (int n = 0; n < N; ++n) found[n] = static_cast<u32>(n) < count ? kept.at(k, static_cast<u64>(n)) : 0x7fffffff;
        sort_few<N>(found);
        u64 const first = static_cast<u64>(to.place[i]);
        KILN_UNROLL
        for (int n = 0; n < N; ++n)
            if (static_cast<u32>(n) < count) to.left[first + static_cast<u64>(n)] = static_cast<i32>(i), to.right[first + static_cast<u64>(n)] = found[n];
    }
};
struct list_more_boxes {
    listed_boxes to;
    u32 const* later;
    u32 const* laters;
    u64 threads;
    KILN_HD void operator()(u64 thread) const {
        for (u64 k = thread; k < *laters; k += threads) write(later[k]);
    }

private:
    KILN_HD void write(u64 i) const {
        constexpr int most = 64;
        static_assert(most >= most_light_hits);
        i32 met[most], found[most];
        u32 count = 0;
        box const b = to.q.asked[i];
        query_tree(to.q.t, to.q.reach(b), [&](u32 slot) {
            if (to.q.meets(to.q.boxes[slot], b)) met[count++] = static_cast<i32>(to.q.t.item[slot]);
        });
        KILN_UNROLL
        for (int n = 0; n < most; ++n) found[n] = static_cast<u32>(n) < count ? met[n] : 0x7fffffff;
        sort_few<most>(found);
        u64 const first = static_cast<u64>(to.place[i]);
        KILN_UNROLL
        for (int n = 0; n < most; ++n)
            if (static_cast<u32>(n) < count) to.left[first + static_cast<u64>(n)] = static_cast<i32>(i), to.right[first + static_cast<u64>(n)] = found[n];
    }
};

// Queries that were put off: first the subtrees of a level that each may meet, in no order; then, one by one, those of the
// level below.
struct heavy_boxes {
    box_question q;
    u32 const* heavy;
    u32 first_node, nodes;  // of the level
    i32 level;              // levels below them
    u32 end_below;          // of the level below: its nodes end here

    // As far as the rounded boxes tell.
    KILN_HD bool may_meet(u32 node, rough_box const& b) const {
        if (node == 0) return true;
        return (children_met(q.t.nodes[(node - 1) >> 3], b) >> ((node - 1) & 7) & 1) != 0;
    }
    // visit(item) for all that is met in part i of a list of subtrees, which are parted in eight.
    template <class Visit>
    KILN_HD void each(u64 const* list, u64 i, Visit visit) const {
        u64 const entry = list[i >> 3];
        u32 const node = static_cast<u32>(entry) * 8 + 1 + static_cast<u32>(i & 7);
        box const b = q.asked[heavy[entry >> 32]];
        auto const found = [&](u32 slot) {
            if (q.meets(q.boxes[slot], b)) visit(q.t.item[slot]);
        };
        if (level > 0) {
            if (node < end_below && may_meet(node, q.reach(b))) query_subtree(q.t, node, level - 1, q.reach(b), found);
        } else if ((i & 7) == 0) {
            query_subtree(q.t, static_cast<u32>(entry), 0, q.reach(b), found);
        }
    }
};
struct list_heavy_subtrees {
    heavy_boxes h;
    u64* list;  // query << 32 | node
    u32* listed;
    KILN_HD void operator()(u64 i) const {
        u64 const query = i / h.nodes;
        u32 const node = h.first_node + static_cast<u32>(i % h.nodes);
        append(h.may_meet(node, h.q.reach(h.q.asked[h.heavy[query]])), query << 32 | node, list, listed);
    }
};
struct count_heavy_boxes {
    heavy_boxes h;
    u64 const* list;
    i64* count;  // by part
    u64* total;  // by query, of 0
    KILN_HD void operator()(u64 i) const {
        u64 n = 0;
        h.each(list, i, [&](u32) { ++n; });
        count[i] = static_cast<i64>(n);
        if (n != 0) add_to(total + (list[i >> 3] >> 32), n);
    }
};
// Counts of all queries, of sums of the light ones and of the heavy ones.
struct count_light_boxes {
    i64 const* light;
    i64* count;
    KILN_HD void operator()(u64 i) const { count[i] = light[i + 1] - light[i]; }
};
struct add_heavy_counts {
    u32 const* heavy;
    i64 const* first;  // of the heavy ones, summed
    u64 stride;        // of them in there
    i64* count;
    KILN_HD void operator()(u64 i) const { count[heavy[i]] = first[(i + 1) * stride] - first[i * stride]; }
};
// Of heavy ones as keys: which of them, then what it meets. In order, they go to their places.
struct list_heavy_boxes {
    heavy_boxes h;
    u64 const* list;
    i64 const* part;  // summed
    i32 bits;
    u64* key;
    i32* unused;
    KILN_HD void operator()(u64 i) const {
        u64 at = static_cast<u64>(part[i]);
        if (static_cast<u64>(part[i + 1]) == at) return;
        u64 const high = list[i >> 3] >> 32 << bits;
        h.each(list, i, [&](u32 item) { unused[at] = 0, key[at++] = high | item; });
    }
};
struct place_heavy_boxes {
    u32 const* heavy;
    i64 const* first;
    i64 const* place;
    i32 bits;
    u64 const* key;  // sorted
    i32* left;
    i32* right;
    KILN_HD void operator()(u64 i) const {
        u64 const h = key[i] >> bits;
        i64 const at = place[heavy[h]] + static_cast<i64>(i) - first[h];
        left[at] = static_cast<i32>(heavy[h]), right[at] = static_cast<i32>(key[i] & ((u64{1} << bits) - 1));
    }
};

// Where they are few, every one of them is held against every box, in the order of items: then what it meets needs no sorting.
// A thread takes a stretch of items for one query; its neighbours take the same items for others, so that a box is read once.
enum : u64 { items_of_mask = 32, masks_of_stretch = 32 };

struct boxes_by_item {
    box const* in_order;
    u32 const* item;
    box* to;
    KILN_HD void operator()(u64 slot) const {
        box const b = in_order[slot];
        double const far = from_bits(u64{0x7ff} << 52);
        to[item[slot]] = is_box(b) ? b : box{far, far, -far, -far};  // which nothing meets
    }
};
struct heavy_marks {
    u32 const* heavy;
    u64 queries, items, stretches;
    u32* mask;  // of items that are met, by item and then query
    KILN_HD u64 query(u64 i) const { return i % queries; }
    KILN_HD u64 stretch(u64 i) const { return i / queries; }
    // Of stretches, query by query.
    KILN_HD u64 part(u64 i) const { return query(i) * stretches + stretch(i); }
    // visit(first item, mask) for the masks of a stretch.
    template <class Visit>
    KILN_HD void each(u64 i, Visit visit) const {
        u64 const first = stretch(i) * masks_of_stretch;
        for (u64 m = first; m < first + masks_of_stretch && m * items_of_mask < items; ++m)
            visit(m * items_of_mask, mask[m * queries + query(i)]);
    }
};
struct mark_heavy_boxes {
    heavy_marks of;
    box_question q;
    box const* by_item;
    i64* count;  // by part
    KILN_HD void operator()(u64 i) const {
        box const b = q.asked[of.heavy[of.query(i)]];
        u32 met = 0;
        of.each(i, [&](u64 first, u32& mask) {
            u32 const n = static_cast<u32>(of.items - first < items_of_mask ? of.items - first : items_of_mask);
            u32 bits = 0;
            for (u32 k = 0; k < n; ++k) bits |= static_cast<u32>(q.meets(by_item[first + k], b)) << k;
            mask = bits, met += bits_set(bits);
        });
        count[of.part(i)] = static_cast<i64>(met);
    }
};
struct list_marked_boxes {
    heavy_marks of;
    i64 const* part;   // summed
    i64 const* place;  // of all queries
    i32* left;
    i32* right;
    KILN_HD void operator()(u64 i) const {
        i64 const own = part[of.part(i)];
        if (part[of.part(i) + 1] == own) return;
        i32 const query = static_cast<i32>(of.heavy[of.query(i)]);
        i64 at = place[query] + own - part[of.query(i) * of.stretches];
        of.each(i, [&](u64 first, u32 mask) {
            for (; mask != 0; mask &= mask - 1, ++at)
                left[at] = query, right[at] = static_cast<i32>(first) + lowest_bit(mask);
        });
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(box_bounds, kiln_spatial::box_extent, 256, 1)
KILN_KERNEL(box_keys, kiln_spatial::make_box_keys, 256, 1)
KILN_KERNEL(leaf_nodes, kiln_spatial::make_leaves, 256, 1)
KILN_KERNEL(inner_nodes, kiln_spatial::make_inner_nodes, 256, 1)
KILN_KERNEL(box_count, kiln_spatial::count_boxes, 128, 10)
KILN_KERNEL(box_scatter, kiln_spatial::list_boxes, 128, 1)
KILN_KERNEL(box_scatter_more, kiln_spatial::list_more_boxes, 128, 1)
KILN_KERNEL(box_heavy_subtrees, kiln_spatial::list_heavy_subtrees, 256, 1)
KILN_KERNEL(box_count_heavy, kiln_spatial::count_heavy_boxes, 128, 1)
KILN_KERNEL(box_light_counts, kiln_spatial::count_light_boxes, 256, 1)
KILN_KERNEL(box_heavy_counts, kiln_spatial::add_heavy_counts, 256, 1)
KILN_KERNEL(box_scatter_heavy, kiln_spatial::list_heavy_boxes, 128, 1)
KILN_KERNEL(box_heavy_places, kiln_spatial::place_heavy_boxes, 256, 1)
KILN_KERNEL(box_by_item, kiln_spatial::boxes_by_item, 256, 1)
KILN_KERNEL(box_mark_heavy, kiln_spatial::mark_heavy_boxes, 128, 12)
KILN_KERNEL(box_scatter_marked, kiln_spatial::list_marked_boxes, 128, 1)
