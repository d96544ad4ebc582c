// SPDX-License-Identifier: Apache-2.0
#include "path_points.cuh"
