// SPDX-License-Identifier: Apache-2.0
#include "segment_intersection.cuh"
