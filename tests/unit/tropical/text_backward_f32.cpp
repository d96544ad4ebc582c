// SPDX-License-Identifier: Apache-2.0
#define KILN_EMULATED backward_f32
#define KILN_TROPICAL_TYPE 1
#define KILN_TROPICAL_RULE 1
#include "emulated_backward.hpp"
