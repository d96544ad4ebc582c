// SPDX-License-Identifier: Apache-2.0
// The tree over boxes: keys, nodes level by level, and queries of boxes.
#include "grid.cuh"
#include "tree.cuh"

using namespace kiln_spatial;

extern "C" __global__ void box_keys(key_frame f, box const* boxes, u32 count, u32* key, u32* item) {
    for (u64 i = first_item(); i < count; i += item_stride()) key[i] = box_key(f, boxes[i]), item[i] = static_cast<u32>(i);
}

namespace {

__device__ __forceinline__ void set_child(tree_node& n, u32 i, rough_box const& b) {
    n.min_x[i] = b.min_x, n.min_y[i] = b.min_y, n.max_x[i] = b.max_x, n.max_y[i] = b.max_y;
}
__device__ __forceinline__ rough_box nothing() {
    float const far = __int_as_float(0x7f800000);
    return {far, far, -far, -far};
}

}  // namespace

// One thread per child; `count` is a multiple of eight, items beyond `items` are empty.
extern "C" __global__ void leaf_nodes(tree_node* nodes, u32 const* item, box const* boxes, u32 items, u32 count) {
    for (u64 i = first_item(); i < count; i += item_stride())
        set_child(nodes[i >> 3], static_cast<u32>(i & 7), i < items ? outwards(boxes[item[i]]) : nothing());
}
extern "C" __global__ void inner_nodes(tree_node* nodes, tree_node const* below, u32 items, u32 count) {
    for (u64 i = first_item(); i < count; i += item_stride()) {
        rough_box b = nothing();
        if (i < items) {
            tree_node const& n = below[i];
            for (int k = 0; k < 8; ++k) {
                b.min_x = fminf(b.min_x, n.min_x[k]), b.min_y = fminf(b.min_y, n.min_y[k]);
                b.max_x = fmaxf(b.max_x, n.max_x[k]), b.max_y = fmaxf(b.max_y, n.max_y[k]);
            }
        }
        set_child(nodes[i >> 3], static_cast<u32>(i & 7), b);
    }
}

namespace {

__device__ __forceinline__ bool meet(box const& a, box const& b) {
    return a.min_x <= b.max_x && a.min_y <= b.max_y && a.max_x >= b.min_x && a.max_y >= b.min_y;
}

}  // namespace

// `boxes` in the order of the leaves.
extern "C" __global__ void __launch_bounds__(128) box_count(tree t, box const* boxes, box const* asked, u64 count, u32* hits) {
    for (u64 i = first_item(); i < count; i += item_stride()) {
        box const b = asked[i];
        u32 n = 0;
        query_tree(t, outwards(b), [&](u32 slot) { n += meet(boxes[slot], b) ? 1U : 0U; });
        hits[i] = n;
    }
}
extern "C" __global__ void __launch_bounds__(128)
    box_scatter(tree t, box const* boxes, box const* asked, u64 count, u64 const* first, i32* left, i32* right) {
    for (u64 i = first_item(); i < count; i += item_stride()) {
        box const b = asked[i];
        u64 at = first[i];
        query_tree(t, outwards(b), [&](u32 slot) {
            if (!meet(boxes[slot], b)) return;
            left[at] = static_cast<i32>(i), right[at++] = static_cast<i32>(t.item[slot]);
        });
    }
}
