// SPDX-License-Identifier: Apache-2.0
// Both reductions in one template: most of a template is what CUB's headers leave behind, and these share theirs.
#define KILN_PRIM_SHARED
#include "kiln/prims/reduce.cu"
#undef KILN_OPERATOR_RESULT
#undef KILN_OPERATOR_PARAMETERS
#include "kiln/prims/segmented_reduce.cu"

namespace kiln_device {
KILN_PRIM_INFO(KILN_REDUCE_INFO, KILN_SEGMENTED_REDUCE_INFO);
}
