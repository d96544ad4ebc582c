// SPDX-License-Identifier: Apache-2.0
#define KILN_EMULATED maxplus_i64
#define KILN_TROPICAL_TYPE 4
#define KILN_TROPICAL_SEMIRING 1
#define KILN_TROPICAL_ARG 0
#define KILN_TROPICAL_SMALL 64, 64, 24, 8, 4, 3, 4
#include "emulated_product.hpp"
