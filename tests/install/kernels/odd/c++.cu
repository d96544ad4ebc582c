// SPDX-License-Identifier: Apache-2.0
template <class T>
__global__ void cxx(T* x) {
    x[0] = 1;
}
