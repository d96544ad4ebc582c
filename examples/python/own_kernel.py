# SPDX-License-Identifier: Apache-2.0
"""A kernel of one's own: compiled for any architecture, and launched with anybody's arrays where there is a GPU."""

import kiln

saxpy = kiln.Unit("saxpy", r'''
extern "C" __global__ void saxpy(int n, float a, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}''')

print(saxpy.artifact("sm_90"))  # without a GPU too

try:
    # What its parameters are is copied from the kernel: numbers become that, and what cannot is refused.
    launch = saxpy.kernel("saxpy", types="int n, float a, const float* x, float* y")
except kiln.NoDevice as why:
    print("not launched:", why)
else:
    import numpy

    n = 1000
    x = kiln.Array.from_host_sync(numpy.ones(n, "f4"))  # or torch's, CuPy's, JAX's arrays, as they are
    y = kiln.Array.from_host_sync(numpy.zeros(n, "f4"))
    launch((n + 255) // 256, 256, (n, 2, x, y))  # queued; nothing waits
    assert (y.numpy_sync() == 2).all()
    print("launched:", launch)
