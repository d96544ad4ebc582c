// SPDX-License-Identifier: Apache-2.0
#include "row_outlines.cuh"
