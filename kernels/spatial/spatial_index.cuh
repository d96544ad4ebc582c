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
        for (int j = 0; j < 4; ++j) lower_to(least + j, around[j]);
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
    KILN_HD void operator()(u64 i) const {
        rough_box b = nothing_met();
        if (i < items) {
            box const exactly = boxes[item[i]];
            in_order[i] = exactly;
            if (is_box(exactly)) b = outwards(exactly);
        }
        set_child(nodes[i >> 3], i & 7, b);
    }
};
struct make_inner_nodes {
    tree_node* nodes;
    tree_node const* below;
    u64 items;  // nodes below
    KILN_HD void operator()(u64 i) const {
        rough_box b = nothing_met();
        if (i < items) {
            tree_node const& n = below[i];
            for (int k = 0; k < 8; ++k) {
                b.min_x = b.min_x < n.min_x[k] ? b.min_x : n.min_x[k], b.min_y = b.min_y < n.min_y[k] ? b.min_y : n.min_y[k];
                b.max_x = b.max_x > n.max_x[k] ? b.max_x : n.max_x[k], b.max_y = b.max_y > n.max_y[k] ? b.max_y : n.max_y[k];
            }
        }
        set_child(nodes[i >> 3], i & 7, b);
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
        if (distance == 0) return outwards(b);
        box const grown{sub(b.min_x, distance), sub(b.min_y, distance), add(b.max_x, distance), add(b.max_y, distance)};
        rough_box const r = outwards(grown);
        // What rounding took from the sums is less than what one more step outwards gives.
        return outwards({next_down(static_cast<double>(r.min_x)), next_down(static_cast<double>(r.min_y)),
                         next_up(static_cast<double>(r.max_x)), next_up(static_cast<double>(r.max_y))});
    }
    KILN_HD bool meets(box const& a, box const& b) const {
        if (distance == 0) return a.min_x <= b.max_x && a.min_y <= b.max_y && a.max_x >= b.min_x && a.max_y >= b.min_y;
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
        i32* const right = to.right;
        u64 const first = static_cast<u64>(to.place[i]);
        box const b = to.q.asked[i];
        u64 at = first;
        query_tree(to.q.t, to.q.reach(b), [&](u32 slot) {
            if (!to.q.meets(to.q.boxes[slot], b)) return;
            i32 const item = static_cast<i32>(to.q.t.item[slot]);
            u64 k = at++;
            for (; k > first && right[k - 1] > item; --k) right[k] = right[k - 1];
            right[k] = item;
        });
        for (u64 k = first; k < at; ++k) to.left[k] = static_cast<i32>(i);
    }
};

// Every query that was put off, against every subtree below one level.
struct heavy_boxes {
    box_question q;
    u32 const* heavy;
    u32 first_node, nodes;  // of that level
    i32 level;              // levels below them

    template <class Found>
    KILN_HD void each(u64 i, Found found) const {
        u32 const node = first_node + static_cast<u32>(i % nodes);
        box const b = q.asked[heavy[i / nodes]];
        query_subtree(q.t, node, level, q.reach(b), [&](u32 slot) {
            if (q.meets(q.boxes[slot], b)) found(q.t.item[slot]);
        });
    }
};
struct count_heavy_boxes {
    heavy_boxes h;
    i64* count;
    KILN_HD void operator()(u64 i) const {
        i64 n = 0;
        h.each(i, [&](u32) { ++n; });
        count[i] = n;
    }
};
// Counts of all queries, of sums of the light ones and those of the parts of heavy ones.
struct count_light_boxes {
    i64 const* light;
    i64* count;
    KILN_HD void operator()(u64 i) const { count[i] = light[i + 1] - light[i]; }
};
struct add_heavy_counts {
    u32 const* heavy;
    u64 nodes;
    i64 const* part;  // summed
    i64* count;
    KILN_HD void operator()(u64 i) const { count[heavy[i]] = part[(i + 1) * nodes] - part[i * nodes]; }
};
// Of heavy ones as keys: which of them, then what it meets. In order, they go to their places.
struct list_heavy_boxes {
    heavy_boxes h;
    i64 const* part;
    i32 bits;
    u64* key;
    i32* unused;
    KILN_HD void operator()(u64 i) const {
        u64 at = static_cast<u64>(part[i]);
        if (static_cast<u64>(part[i + 1]) == at) return;
        u64 const high = i / h.nodes << bits;
        h.each(i, [&](u32 item) { unused[at] = 0, key[at++] = high | item; });
    }
};
struct place_heavy_boxes {
    u32 const* heavy;
    u64 nodes;
    i64 const* part;
    i64 const* place;
    i32 bits;
    u64 const* key;  // sorted
    i32* left;
    i32* right;
    KILN_HD void operator()(u64 i) const {
        u64 const h = key[i] >> bits;
        i64 const at = place[heavy[h]] + static_cast<i64>(i) - part[h * nodes];
        left[at] = static_cast<i32>(heavy[h]), right[at] = static_cast<i32>(key[i] & ((u64{1} << bits) - 1));
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(box_bounds, kiln_spatial::box_extent, 256, 1)
KILN_KERNEL(box_keys, kiln_spatial::make_box_keys, 256, 1)
KILN_KERNEL(leaf_nodes, kiln_spatial::make_leaves, 256, 1)
KILN_KERNEL(inner_nodes, kiln_spatial::make_inner_nodes, 256, 1)
KILN_KERNEL(box_count, kiln_spatial::count_boxes, 128, 1)
KILN_KERNEL(box_scatter, kiln_spatial::list_boxes, 128, 1)
KILN_KERNEL(box_scatter_more, kiln_spatial::list_more_boxes, 128, 1)
KILN_KERNEL(box_count_heavy, kiln_spatial::count_heavy_boxes, 128, 1)
KILN_KERNEL(box_light_counts, kiln_spatial::count_light_boxes, 256, 1)
KILN_KERNEL(box_heavy_counts, kiln_spatial::add_heavy_counts, 256, 1)
KILN_KERNEL(box_scatter_heavy, kiln_spatial::list_heavy_boxes, 128, 1)
KILN_KERNEL(box_heavy_places, kiln_spatial::place_heavy_boxes, 256, 1)
