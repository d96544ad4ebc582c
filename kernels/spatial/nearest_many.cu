// SPDX-License-Identifier: Apache-2.0
#include "nearest_many.cuh"
