// SPDX-License-Identifier: Apache-2.0
// Memory in 32-bit words: what every algorithm needs between its kernels.
#pragma once

#include "grid.cuh"

namespace kiln_spatial {

struct set_words {
    u32* to;
    u32 value;
    KILN_HD void operator()(u64 i) const { to[i] = value; }
};
struct copy_words {
    u32* to;
    u32 const* from;
    KILN_HD void operator()(u64 i) const { to[i] = from[i]; }
};

}  // namespace kiln_spatial

KILN_KERNEL(words_set, kiln_spatial::set_words, 256, 1)
KILN_KERNEL(words_copy, kiln_spatial::copy_words, 256, 1)
