# SPDX-License-Identifier: Apache-2.0
"""cuda.core: a template compiled by name."""

from _program import check, context, done, imports

with imports():
    import numpy
    from cuda.core import Device, Program, ProgramOptions

    from _cuda_core import launched

with context():
    device = Device()
    device.set_current()
    stream = device.create_stream()

SOURCE = r"""
template <class T> __global__ void scale(const T* a, T* out, T s, size_t n) {
    size_t const i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] * s + T(1);
}
"""
host = numpy.arange(4096, dtype=numpy.float32)
program = Program(SOURCE, code_type="c++", options=ProgramOptions(std="c++17", arch=f"sm_{device.arch}"))
kernel = program.compile("cubin", name_expressions=("scale<float>",)).get_kernel("scale<float>")
check(numpy.allclose(launched(stream, kernel, host, numpy.float32(2)), host * 2 + 1), "scaled")
done()
