// SPDX-License-Identifier: Apache-2.0
// Rows chosen of an array, perhaps through a view of it.
#pragma once

#include "grid.cuh"

namespace kiln_spatial {

struct rows_through_view {
    i32 const* rows;
    i32 const* chosen;
    i32* to;
    KILN_HD void operator()(u64 i) const { to[i] = chosen[rows[i]]; }
};
struct count_kept {
    u8 const* keep;
    i64* count;
    KILN_HD void operator()(u64 i) const { count[i] = keep[i] != 0 ? 1 : 0; }
};
struct list_kept {
    i64 const* place;
    i32 const* chosen;  // may be null
    i32* to;
    KILN_HD void operator()(u64 i) const {
        i64 const at = place[i];
        if (place[i + 1] != at) to[at] = chosen != nullptr ? chosen[i] : static_cast<i32>(i);
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(choose_through, kiln_spatial::rows_through_view, 256, 1)
KILN_KERNEL(choose_count, kiln_spatial::count_kept, 256, 1)
KILN_KERNEL(choose_list, kiln_spatial::list_kept, 256, 1)
