# SPDX-License-Identifier: Apache-2.0
"""CuPy: an element-wise kernel of one's own."""

from _program import check, context, done, imports

with imports():
    import cupy
    import numpy

with context():
    cupy.cuda.runtime.free(0)

host = numpy.arange(4096, dtype=numpy.float32)
left, right = cupy.asarray(host), cupy.asarray(host[::-1].copy())
kernel = cupy.ElementwiseKernel("T a, T b, float32 s", "T o", "o = a * s + b * b", "scale_and_square")
check(numpy.allclose(kernel(left, right, numpy.float32(2.5)).get(), host * 2.5 + host[::-1] ** 2, rtol=1e-5), "element by element")
done()
