// SPDX-License-Identifier: Apache-2.0
// Crossings of the segments of two layers of which the left one is moved, found as contacts are (segment_contacts.cuh). Of layers that have edges in common they are a
// fifth of the contacts.
#pragma once

#include "moved_crossings.cuh"
#include "segment_contacts.cuh"

namespace kiln_spatial {

struct crossing_question : contact_question {
    KILN_HD static u8 quick(point p, point q, point r, point s) { return quick_crossing(p, q, r, s); }
    KILN_HD static u8 exact(point p, point q, point r, point s) { return crossing_of(p, q, r, s); }
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
KILN_KERNEL(crossing_exact, kiln_spatial::decide_contacts<kiln_spatial::crossing_question>, 128, 1)
