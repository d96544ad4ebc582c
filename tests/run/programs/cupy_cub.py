# SPDX-License-Identifier: Apache-2.0
"""CuPy: what it has from CUB: a sum, a maximum along an axis, a sort and a scan."""

import os

os.environ["CUPY_ACCELERATORS"] = "cub"

from _program import check, context, done, imports  # noqa: E402

with imports():
    import cupy
    import numpy

with context():
    cupy.cuda.runtime.free(0)

host = numpy.random.default_rng(1).integers(0, 1000, 1 << 16).astype(numpy.float64)
values = cupy.asarray(host)
check(numpy.allclose(values.sum().get(), host.sum()), "sum")
check(numpy.allclose(values.reshape(256, 256).max(axis=0).get(), host.reshape(256, 256).max(0)), "maximum along an axis")
check(numpy.array_equal(cupy.sort(values).get(), numpy.sort(host)), "sort")
check(numpy.allclose(cupy.cumsum(values).get(), numpy.cumsum(host)), "scan")
done()
