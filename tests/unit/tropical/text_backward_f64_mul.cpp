// SPDX-License-Identifier: Apache-2.0
#define KILN_EMULATED backward_f64_mul
#define KILN_TROPICAL_TYPE 2
#define KILN_TROPICAL_RULE 2
#include "emulated_backward.hpp"
