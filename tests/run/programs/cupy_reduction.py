# SPDX-License-Identifier: Apache-2.0
"""CuPy: a reduction of one's own, over all and along an axis."""

from _program import check, context, done, imports

with imports():
    import cupy
    import numpy

with context():
    cupy.cuda.runtime.free(0)

host = (numpy.arange(1 << 16) % 97).astype(numpy.float64)
values = cupy.asarray(host)
squares = cupy.ReductionKernel("T x", "T y", "x * x + 1", "a + b", "y = a", "0", "sum_of_squares")
check(numpy.allclose(squares(values).get(), (host * host + 1).sum()), "over all")
check(numpy.allclose(squares(values.reshape(256, 256), axis=1).get(), (host * host + 1).reshape(256, 256).sum(1)), "along an axis")
done()
