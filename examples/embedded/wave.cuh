// SPDX-License-Identifier: Apache-2.0
// A header of the kernel: it is not needed where the program runs.
#pragma once

__device__ inline float wave_at(float x, float phase) { return __sinf(x + phase); }
