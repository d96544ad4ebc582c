// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void k(int* x) { *x = 1; }
