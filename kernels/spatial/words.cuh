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
// 0, 1, 2 and so on.
struct number_words {
    i32* to;
    KILN_HD void operator()(u64 i) const { to[i] = static_cast<i32>(i); }
};
struct shift_words {
    i32* what;
    i32 by;
    KILN_HD void operator()(u64 i) const { what[i] += by; }
};

}  // namespace kiln_spatial

KILN_KERNEL(words_set, kiln_spatial::set_words, 256, 1)
KILN_KERNEL(words_copy, kiln_spatial::copy_words, 256, 1)
KILN_KERNEL(words_number, kiln_spatial::number_words, 256, 1)
KILN_KERNEL(words_shift, kiln_spatial::shift_words, 256, 1)
