// SPDX-License-Identifier: Apache-2.0
// Vertices of paths that are left out or stay (simplify.cuh), as kernels see them.
#pragma once

#include "support.cuh"

namespace kiln_spatial {

enum vertex_fate : u32 { fate_open = 0, fate_stays = 1, fate_goes = 2 };

// Between which vertices that stay each of the others lies.
struct vertex_spans {
    i32* low;
    i32* high;
    u32* fate;
};

}  // namespace kiln_spatial
