// SPDX-License-Identifier: Apache-2.0
#include "polygon_predicates.cuh"
