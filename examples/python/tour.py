# SPDX-License-Identifier: Apache-2.0
"""A tour of Kiln from Python, in cells: run it whole, or open it as a notebook. What needs a GPU is left out where there is none."""

# %% Importing starts nothing
import os
import tempfile

import kiln
import numpy

try:
    gpu = kiln.devices()[0]["name"]
except kiln.NoDevice as why:
    gpu = ""
    print("no GPU here, so some cells do nothing:", str(why)[:60])

# %% 1. A kernel of one's own: text, compiled for any architecture, also without a GPU
saxpy = kiln.Unit("saxpy", r'''
extern "C" __global__ void saxpy(int n, float a, const float* x, float* y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}''')
print(saxpy.artifact("sm_90"))
if gpu:
    x = kiln.Array.from_host_sync(numpy.ones(1000, "f4"))
    y = kiln.Array.from_host_sync(numpy.zeros(1000, "f4"))
    saxpy.kernel("saxpy")(4, 256, (1000, 2.0, x, y))
    assert (y.numpy_sync() == 2).all()

# %% 2. A scan by an operator nobody has compiled; another limit is no other program
cap = kiln.op("a + b > s ? s : a + b", s=numpy.int32(100))
if gpu:
    numbers = numpy.arange(1000, dtype="i4")
    print(kiln.inclusive_scan(numbers, cap)[:20], kiln.reduce_sync(numbers), kiln.select_sync(numbers, "a % 100 == 0"))

# %% 3. Products over other semirings: shortest paths of two steps
steps = numpy.random.default_rng(1).random((50, 50), dtype="f4")
two, by_way_of = kiln.tropical.product(steps, steps, "min_plus", winners="int32")
assert (two == (steps[:, :, None] + steps[None]).min(1)).all()

# %% 4. Say at import what will be needed, and ask whether it is there
needs = kiln.requires("tour", [saxpy, "exclusive_scan_i32", kiln.spec("inclusive_scan", "int32", cap)])
report = kiln.Plan("tour", needs, archs=["sm_90"]).ensure_warm(120)
print(report)
assert report

# %% 5. Ship it
folder = tempfile.mkdtemp()
kiln.build(os.path.join(folder, "tour.kiln"), needs, archs=["sm_90"])
print(os.path.getsize(os.path.join(folder, "tour.kiln")), "bytes")

# %% 6. Learn what a program needs
with kiln.record(os.path.join(folder, "tour.profile")):
    saxpy.artifact("sm_80")

# %% 7. Spatial: which square is each point in?
squares = ["POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))", "POLYGON ((2 0, 4 0, 4 2, 2 2, 2 0))"]
px, py = numpy.random.default_rng(2).random((2, 1000)) * 4
first = kiln.spatial.join_count(squares, (px, py), "contains")
print("points in each square:", first.numpy_sync() if isinstance(first, kiln.Array) else first)

# %% 8. See it
print(kiln.status())
print(len(kiln.events("compiled")), "compiled;", kiln.activity()["synchronisations"], "waits for the GPU")
