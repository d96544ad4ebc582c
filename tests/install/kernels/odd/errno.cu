// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void number(int* x) { x[0] = 4; }
