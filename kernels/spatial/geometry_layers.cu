// SPDX-License-Identifier: Apache-2.0
#include "geometry_layers.cuh"
