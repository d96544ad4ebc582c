// SPDX-License-Identifier: Apache-2.0
#include <lib/deeper.cuh>
#if A + B != 3
#error "options of the configuration did not come, or came as one"
#endif
static_assert(SEPARATOR == 59, "a semicolon is a character like any other");
extern "C" __global__ void first(int* x) { x[0] = STEP; }
