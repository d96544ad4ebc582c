// SPDX-License-Identifier: Apache-2.0
#include "pair_complement.cuh"
