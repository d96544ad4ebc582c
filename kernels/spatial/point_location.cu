// SPDX-License-Identifier: Apache-2.0
#include "point_location.cuh"
