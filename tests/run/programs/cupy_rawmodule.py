# SPDX-License-Identifier: Apache-2.0
"""CuPy: a module of two kernels in C++."""

from _program import check, context, done, imports

with imports():
    import cupy
    import numpy

with context():
    cupy.cuda.runtime.free(0)

SOURCE = r"""
extern "C" __global__ void scale(float* a, float s, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] *= s; }
extern "C" __global__ void add(float* a, const float* b, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] += b[i]; }
"""
host = numpy.arange(4096, dtype=numpy.float32)
values, more = cupy.asarray(host), cupy.asarray(host)
module = cupy.RawModule(code=SOURCE, options=("-std=c++17",))
module.get_function("scale")((16,), (256,), (values, numpy.float32(3), numpy.int32(host.size)))
module.get_function("add")((16,), (256,), (values, more, numpy.int32(host.size)))
check(numpy.allclose(values.get(), host * 4), "scaled and added")
done()
