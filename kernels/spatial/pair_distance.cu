// SPDX-License-Identifier: Apache-2.0
#include "pair_distance.cuh"
