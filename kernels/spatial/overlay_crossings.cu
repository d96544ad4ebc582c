// SPDX-License-Identifier: Apache-2.0
#include "overlay_crossings.cuh"
