// SPDX-License-Identifier: Apache-2.0
#define KILN_EMULATED maxplus_f32
#define KILN_TROPICAL_TYPE 1
#define KILN_TROPICAL_SEMIRING 1
#define KILN_TROPICAL_ARG 0
#define KILN_TROPICAL_LARGE 256, 128, 32, 16, 8, 1, 2
#define KILN_TROPICAL_SMALL 64, 64, 32, 8, 4, 4, 4
#include "emulated_product.hpp"
