# SPDX-License-Identifier: Apache-2.0
"""What the programs with cuda.core share: memory by the driver's bindings, and a launch."""

import numpy
from cuda.bindings import driver
from cuda.core import LaunchConfig, launch


def ok(answer):
    if int(answer[0]) != 0:
        raise RuntimeError(str(answer[0]))
    return answer[1] if len(answer) > 1 else None


def launched(stream, kernel, host, *more):
    """kernel(in, out, more..., n) on the values of `host`."""
    source, target = ok(driver.cuMemAlloc(host.nbytes)), ok(driver.cuMemAlloc(host.nbytes))
    ok(driver.cuMemcpyHtoD(source, host.ctypes.data, host.nbytes))
    launch(stream, LaunchConfig(grid=(host.size + 255) // 256, block=256), kernel, int(source), int(target), *more, numpy.uint64(host.size))
    stream.sync()
    out = numpy.empty_like(host)
    ok(driver.cuMemcpyDtoH(out.ctypes.data, target, host.nbytes))
    return out
