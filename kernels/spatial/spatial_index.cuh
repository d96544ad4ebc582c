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

enum : u32 { most_light_hits = 48, most_light_nodes = 192 };

// Counts; what has too many hits or nodes is put off, and counted as none.
struct count_boxes {
    box_question q;
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
                hits += q.meets(q.boxes[slot], b) ? 1U : 0U;
                return hits <= most_light_hits;
            });
        }
        count[i] = put_off ? 0 : static_cast<i64>(hits);
        append(put_off, static_cast<u32>(i), heavy, heavies);
    }
};
// Rows are put in order as they are written: there are few in each.
struct list_boxes {
    box_question q;
    i64 const* place;  // summed counts
    i32* left;
    i32* right;
    KILN_HD void operator()(u64 asked) const {
        u64 const i = q.number(asked);
        u64 const first = static_cast<u64>(place[i]), last = static_cast<u64>(place[i + 1]);
        if (first == last) return;
        box const b = q.asked[i];
        u64 at = first;
        query_tree(q.t, q.reach(b), [&](u32 slot) {
            if (!q.meets(q.boxes[slot], b)) return;
            i32 const item = static_cast<i32>(q.t.item[slot]);
            u64 k = at++;
            for (; k > first && right[k - 1] > item; --k) right[k] = right[k - 1];
            right[k] = item;
        });
        for (u64 k = first; k < last; ++k) left[k] = static_cast<i32>(i);
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
        u32 const asked = heavy[i / nodes];
        box const b = q.asked[asked];
        query_subtree(q.t, node, level, q.reach(b), [&](u32 slot) {
            if (q.meets(q.boxes[slot], b)) found(static_cast<i32>(asked), static_cast<i32>(q.t.item[slot]));
        });
    }
};
struct count_heavy_boxes {
    heavy_boxes h;
    i64* count;
    KILN_HD void operator()(u64 i) const {
        i64 n = 0;
        h.each(i, [&](i32, i32) { ++n; });
        count[i] = n;
    }
};
struct list_heavy_boxes {
    heavy_boxes h;
    i64 const* place;
    i32* left;
    i32* right;
    KILN_HD void operator()(u64 i) const {
        u64 at = static_cast<u64>(place[i]);
        if (static_cast<u64>(place[i + 1]) == at) return;
        h.each(i, [&](i32 l, i32 r) { left[at] = l, right[at++] = r; });
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(box_bounds, kiln_spatial::box_extent, 256, 1)
KILN_KERNEL(box_keys, kiln_spatial::make_box_keys, 256, 1)
KILN_KERNEL(leaf_nodes, kiln_spatial::make_leaves, 256, 1)
KILN_KERNEL(inner_nodes, kiln_spatial::make_inner_nodes, 256, 1)
KILN_KERNEL(box_count, kiln_spatial::count_boxes, 128, 1)
KILN_KERNEL(box_scatter, kiln_spatial::list_boxes, 128, 1)
KILN_KERNEL(box_count_heavy, kiln_spatial::count_heavy_boxes, 128, 1)
KILN_KERNEL(box_scatter_heavy, kiln_spatial::list_heavy_boxes, 128, 1)
