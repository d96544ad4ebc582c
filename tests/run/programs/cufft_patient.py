# SPDX-License-Identifier: Apache-2.0
"""cuFFT: plans made for the size (PATIENT_JIT), whose kernels it links by nvJitLink. Memory is CuPy's."""

import ctypes
import re

from _program import check, context, done, imports, skip

with imports():
    import cupy
    import numpy
    from cupy.cuda import cufft  # noqa: F401: it loads the library

with context():
    cupy.cuda.runtime.free(0)

C2C, FORWARD, PATIENT_JIT = 0x29, -1, 1


def ok(status):
    if status != 0:
        raise RuntimeError(f"cuFFT: status {status}")


with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
    found = re.search(r"/\S*/libcufft\.so[.\d]*$", maps.read(), re.MULTILINE)
library = ctypes.CDLL(found.group() if found else "libcufft.so")
if not hasattr(library, "cufftSetPlanPropertyInt64"):
    skip("this cuFFT has no property of plans")
random = numpy.random.default_rng(6)
for size in (1000, 1536, 4096):
    host = (random.standard_normal((16, size)) + 1j * random.standard_normal((16, size))).astype(numpy.complex64)
    values, plan, room = cupy.asarray(host), ctypes.c_int(), ctypes.c_size_t()
    ok(library.cufftCreate(ctypes.byref(plan)))
    ok(library.cufftSetPlanPropertyInt64(plan, PATIENT_JIT, ctypes.c_longlong(1)))
    ok(library.cufftMakePlan1d(plan, size, C2C, 16, ctypes.byref(room)))
    ok(library.cufftExecC2C(plan, ctypes.c_void_p(values.data.ptr), ctypes.c_void_p(values.data.ptr), FORWARD))
    cupy.cuda.runtime.deviceSynchronize()
    check(numpy.allclose(values.get(), numpy.fft.fft(host), atol=1e-2), f"of {size}")
done()
