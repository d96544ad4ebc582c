# SPDX-License-Identifier: Apache-2.0
"""cuda.core: two programs compiled to LTO-IR and linked by nvJitLink."""

from _program import check, context, done, imports

with imports():
    import numpy
    from cuda.core import Device, Linker, LinkerOptions, Program, ProgramOptions

    from _cuda_core import launched

with context():
    device = Device()
    device.set_current()
    stream = device.create_stream()

CALLER = r"""
extern "C" __device__ float op(float);
extern "C" __global__ void map(const float* a, float* out, size_t n) {
    size_t const i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) out[i] = op(a[i]);
}
"""
CALLED = 'extern "C" __device__ float op(float x) { return x * 3 + 1; }'


def bitcode(source):
    options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}", relocatable_device_code=True, link_time_optimization=True)
    return Program(source, code_type="c++", options=options).compile("ltoir")


host = numpy.arange(4096, dtype=numpy.float32)
linker = Linker(bitcode(CALLER), bitcode(CALLED), options=LinkerOptions(arch=f"sm_{device.arch}", link_time_optimization=True))
kernel = linker.link("cubin").get_kernel("map")
check(numpy.allclose(launched(stream, kernel, host), host * 3 + 1), "mapped")
done()
