// SPDX-License-Identifier: Apache-2.0
// Rows chosen of an array, perhaps through a view of it; and where rows of mixed arrays lie.
#pragma once

#include "geometry_rows.cuh"
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

// ---- Rows of some dimensions, taken out of an array and put back as others ------------------------------------------------

struct count_of_dimensions {
    geometry_rows g;
    u32 dimensions;  // bits
    i64* count;
    KILN_HD void operator()(u64 i) const {
        i32 const family = source_of(g, static_cast<i32>(i)).family;
        count[i] = family >= 0 && (dimensions >> dimension_of_family(family) & 1) != 0 ? 1 : 0;
    }
};
// A mixed array's table of where each row lies; of null rows, anywhere.
struct write_sources {
    geometry_rows g;
    signed char* type;
    i32* child_row;
    KILN_HD void operator()(u64 i) const {
        row_source const s = source_of(g, static_cast<i32>(i));
        type[i] = static_cast<signed char>(s.family < 0 ? 1 : s.family + 1), child_row[i] = s.row;
    }
};
// Rows that were taken out are those of a child now, in order. It has some, so null rows may lie there too.
struct write_new_sources {
    geometry_rows g;
    i64 const* place;
    signed char family;  // its own number
    signed char* type;
    i32* child_row;
    KILN_HD void operator()(u64 i) const {
        i64 const at = place[i];
        bool const is_one = place[i + 1] != at;
        if (is_one || source_of(g, static_cast<i32>(i)).family < 0) type[i] = family, child_row[i] = is_one ? static_cast<i32>(at) : 0;
    }
};
// Eight rows at a time.
struct write_validity {
    geometry_rows g;
    u8* to;
    KILN_HD void operator()(u64 i) const {
        u32 bits = 0;
        for (i32 k = 0, row = static_cast<i32>(8 * i); k < 8 && row < g.rows; ++k, ++row) bits |= (source_of(g, row).valid ? 1U : 0U) << k;
        to[i] = static_cast<u8>(bits);
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(choose_through, kiln_spatial::rows_through_view, 256, 1)
KILN_KERNEL(choose_count, kiln_spatial::count_kept, 256, 1)
KILN_KERNEL(choose_list, kiln_spatial::list_kept, 256, 1)
KILN_KERNEL(choose_dimension_count, kiln_spatial::count_of_dimensions, 256, 1)
KILN_KERNEL(choose_sources, kiln_spatial::write_sources, 256, 1)
KILN_KERNEL(choose_new_sources, kiln_spatial::write_new_sources, 256, 1)
KILN_KERNEL(choose_validity, kiln_spatial::write_validity, 128, 1)
