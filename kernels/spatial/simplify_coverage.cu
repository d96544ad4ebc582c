// SPDX-License-Identifier: Apache-2.0
#include "simplify_coverage.cuh"
