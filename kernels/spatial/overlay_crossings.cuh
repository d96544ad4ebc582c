// SPDX-License-Identifier: Apache-2.0
// Crossings of the segments of two layers of which the left one is moved, found as contacts are (segment_contacts.cuh). Of layers that have edges in common they are a
// fifth of the contacts.
#pragma once

#include "moved_crossings.cuh"
#include "segment_contacts.cuh"

namespace kiln_spatial {

struct crossing_question : contact_question {
    KILN_HD static u8 quick(point p, point q, point r, point s) { return quick_crossing(p, q, r, s); }
};
struct decide_crossings {
    layer a, b;
    contact_list of;
    u64* aparts;  // of 0
    KILN_HD void operator()(u64 i) const {
        if (of.how[i] != not_known) return;
        i32 const v = of.left[i], w = of.right[i];
        of.how[i] = crossing_of(a.at[v], element_end(a, v), b.at[w], element_end(b, w));
        if (of.how[i] == crossed_not) add_to(aparts, 1);
    }
};

}  // namespace kiln_spatial

KILN_KERNEL(crossing_count, kiln_spatial::count_contacts<kiln_spatial::asking_in_pairs<kiln_spatial::crossing_question>>, 128, 9)
KILN_KERNEL(crossing_scatter, kiln_spatial::list_contacts<kiln_spatial::asking_in_pairs<kiln_spatial::crossing_question>>, 128, 9)
KILN_KERNEL(crossing_count_heavy, kiln_spatial::count_heavy_contacts<kiln_spatial::asking_in_pairs<kiln_spatial::crossing_question>>, 128, 1)
KILN_KERNEL(crossing_scatter_heavy, kiln_spatial::list_heavy_contacts<kiln_spatial::asking_in_pairs<kiln_spatial::crossing_question>>, 128, 1)
KILN_KERNEL(crossing_count_each, kiln_spatial::count_contacts<kiln_spatial::asking_one_by_one<kiln_spatial::crossing_question>>, 128, 9)
KILN_KERNEL(crossing_scatter_each, kiln_spatial::list_contacts<kiln_spatial::asking_one_by_one<kiln_spatial::crossing_question>>, 128, 9)
KILN_KERNEL(crossing_count_heavy_each, kiln_spatial::count_heavy_contacts<kiln_spatial::asking_one_by_one<kiln_spatial::crossing_question>>, 128, 1)
KILN_KERNEL(crossing_scatter_heavy_each, kiln_spatial::list_heavy_contacts<kiln_spatial::asking_one_by_one<kiln_spatial::crossing_question>>, 128, 1)
KILN_KERNEL(crossing_exact, kiln_spatial::decide_crossings, 128, 1)
