# SPDX-License-Identifier: Apache-2.0
"""Programs with one defect each, for `kiln audit`: with_cupy.py NAME [TIMES]."""

import sys

import cupy
import numpy


def compiles(times):
    values = cupy.zeros(64, cupy.float32)
    for step in range(times):
        source = f'extern "C" __global__ void add_{step}(float* v) {{ v[threadIdx.x] += {step}; }}'
        cupy.RawKernel(source, f"add_{step}")((1,), (64,), (values,))
    values.get()


def compiles_in_the_loop(times):
    values = cupy.zeros(64, cupy.float32)
    for step in range(times):
        source = f'extern "C" __global__ void add(float* v) {{ v[threadIdx.x] += {step}; }}'
        cupy.RawKernel(source, "add")((1,), (64,), (values,))
    values.get()


def sums_row_by_row(times):
    rows = cupy.ones((512, 4096), cupy.float32)
    for _ in range(times):
        for row in range(512):
            float(cupy.sum(rows[row]).get())
        rows += 1


def without_a_pool(times):
    cupy.cuda.set_allocator(None)
    values = cupy.zeros(1 << 20, cupy.float32)
    for _ in range(times):
        values * 2 + 1


SPIN = 'extern "C" __global__ void spin(long long n) { long long t = clock64(); while (clock64() - t < n) {} }'


def on_streams(times, non_blocking=False):
    spin = cupy.RawKernel(SPIN, "spin")
    streams = [cupy.cuda.Stream(non_blocking=non_blocking) for _ in range(4)]
    for _ in range(times):
        for stream in streams:
            with stream:
                spin((8,), (128,), (numpy.int64(200000),))
            spin((1,), (64,), (numpy.int64(1000),))
    cupy.cuda.runtime.deviceSynchronize()


def on_free_streams(times):
    on_streams(times, True)


def there_and_back(times):
    values = cupy.zeros(1 << 20, cupy.float32)
    for _ in range(times):
        values += 1
        host = cupy.asnumpy(values)
        values = cupy.asarray(host)


def the_same_again(times):
    host, total = numpy.ones(1 << 20, numpy.float32), cupy.zeros(1 << 20, cupy.float32)
    for _ in range(times):
        total += cupy.asarray(host)


def managed(times):
    cupy.cuda.set_allocator(cupy.cuda.malloc_managed)
    values = cupy.zeros(4 << 20, cupy.float32)
    for _ in range(times):
        values += 1
    cupy.cuda.runtime.deviceSynchronize()


if __name__ == "__main__":
    globals()[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 50)
    print("done", sys.argv[1])
