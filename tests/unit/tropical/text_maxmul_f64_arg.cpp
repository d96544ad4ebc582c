// SPDX-License-Identifier: Apache-2.0
#define KILN_EMULATED maxmul_f64_arg
#define KILN_TROPICAL_TYPE 2
#define KILN_TROPICAL_SEMIRING 3
#define KILN_TROPICAL_ARG 1
#define KILN_TROPICAL_SMALL 64, 32, 16, 8, 2, 4, 4
#include "emulated_product.hpp"
