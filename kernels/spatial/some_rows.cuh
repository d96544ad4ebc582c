// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support.cuh"

namespace kiln_spatial {

// Rows that are asked for, by number; null: all.
struct some_rows {
    u32 const* wanted;
    KILN_HD bool has(i32 row) const { return wanted == nullptr || wanted[row] != 0; }
};

}  // namespace kiln_spatial
