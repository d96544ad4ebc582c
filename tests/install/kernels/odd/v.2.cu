// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void second(int* x) { x[0] = 2; }
