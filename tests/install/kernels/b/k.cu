// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void other(int* x) { *x = 2; }
