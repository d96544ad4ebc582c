// SPDX-License-Identifier: Apache-2.0
// The boxes that row_search.cuh looks at.
#pragma once

#include "row_search.cuh"

namespace kiln_spatial {

// By vertex: the first of each block makes it.
struct make_row_blocks {
    layer l;
    box* to;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i), row = row_at(l, v), first = l.path_first[l.row_first[row]];
        if ((v - first) % block_vertices != 0) return;
        i32 const end = l.path_first[l.row_first[row + 1]], last = end - v < block_vertices ? end : v + block_vertices;
        box all = no_box();
        for (i32 w = v; w < last; ++w)
            if (is_element(l, w)) all = around_both(all, box_of({l.at[w], element_end(l, w)}));
        to[first_block(row, first) + (v - first) / block_vertices] = all;
    }
};
// By vertex: the first of each group makes it.
struct make_row_groups {
    layer l;
    box const* blocks;
    box* to;
    KILN_HD void operator()(u64 i) const {
        i32 const v = static_cast<i32>(i), row = row_at(l, v), first = l.path_first[l.row_first[row]];
        if ((v - first) % group_vertices != 0) return;
        i32 const end = l.path_first[l.row_first[row + 1]], last = end - v < group_vertices ? end : v + group_vertices;
        box all = no_box();
        for (i32 w = v; w < last; w += block_vertices)
            all = around_both(all, blocks[first_block(row, first) + (w - first) / block_vertices]);
        to[first_group(row, first) + (v - first) / group_vertices] = all;
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(row_block_boxes, kiln_spatial::make_row_blocks, 128, 1)
KILN_KERNEL(row_group_boxes, kiln_spatial::make_row_groups, 128, 1)
