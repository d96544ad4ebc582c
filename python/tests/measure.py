# SPDX-License-Identifier: Apache-2.0
"""What a call costs, beside CuPy, cuda.compute and torch where they are: one table. `python measure.py`"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import kiln
import numpy


def each(call: Callable[[], object], n: int = 2000, rounds: int = 7) -> str:
    for _ in range(50):
        call()
    best = []
    for _ in range(rounds):
        begun = time.perf_counter()
        for _ in range(n):
            call()
        best.append((time.perf_counter() - begun) / n * 1e6)
        torch.cuda.synchronize()
    return f"{min(best):7.2f} us least, {sorted(best)[len(best) // 2]:7.2f} median"


try:
    import torch
except ImportError:
    raise SystemExit("torch is not here")
x = torch.arange(1000, dtype=torch.int32, device="cuda")
y = torch.empty_like(x)
scan = kiln.make_inclusive_scan("int32")
print("scan of 1,000 int32, torch, out=     ", each(lambda: scan(x, out=y)))
select = kiln.make_select("int32", indices=True)
mask, kept, count = (x % 2 == 0), torch.empty_like(x), torch.empty(1, dtype=torch.int64, device="cuda")
print("select by a mask, out=               ", each(lambda: select(None, mask, out=kept, count=count)))
print("the function, out=                   ", each(lambda: kiln.inclusive_scan(x, out=y)))
print("the function, new output             ", each(lambda: kiln.inclusive_scan(x)))
k = kiln.Unit("k", 'extern "C" __global__ void k(int n, const int* x, int* y) { }').kernel("k")
print("kernel of three arguments            ", each(lambda: k(1, 32, (1000, x, y))))
at_x, at_y = x.data_ptr(), y.data_ptr()
print("the same with addresses              ", each(lambda: k(1, 32, (1000, at_x, at_y))))
nothing = kiln.Unit("nothing", 'extern "C" __global__ void nothing() { }').kernel("nothing")
print("kernel without arguments             ", each(lambda: nothing(1, 32)))
try:
    import cupy

    cx, cy = cupy.asarray(x), cupy.asarray(y)
    print("scan, CuPy arrays, out=              ", each(lambda: scan(cx, out=cy)))
    cupy_kernel = cupy.RawKernel('extern "C" __global__ void k(int n, const int* x, int* y) { }', "k")
    print("CuPy's RawKernel                     ", each(lambda: cupy_kernel((1,), (32,), (1000, cx, cy))))
except ImportError:
    print("CuPy is not here")

try:
    import importlib

    for name in ("cuda.compute", "cuda.cccl.parallel.experimental", "cuda.parallel.experimental"):  # as it has been called
        try:
            parallel = importlib.import_module(name)
            break
        except ModuleNotFoundError:
            pass
    else:
        raise ModuleNotFoundError("under none of its names")

    begin = numpy.array([0], dtype=numpy.int32)
    if hasattr(parallel, "OpKind"):  # from 1.0 on by names, and without Numba where the operator is a known one
        given: dict[str, Any] = {"d_in": x, "d_out": y, "op": parallel.OpKind.PLUS, "init_value": begin}
        made = time.perf_counter()
        theirs = parallel.make_inclusive_scan(**given)
        print(f"cuda.compute's scan, made, in this process: {(time.perf_counter() - made) * 1e3:.0f} ms")
        given["num_items"] = 1000
        room = torch.empty(theirs(temp_storage=None, **given), dtype=torch.uint8, device="cuda")
        print("cuda.compute's scan, object kept     ", each(lambda: theirs(temp_storage=room, **given), 500))
        print("cuda.compute's scan, one call        ", each(lambda: parallel.inclusive_scan(**given), 300))
    else:

        def add(a: Any, b: Any) -> Any:
            return a + b

        theirs = parallel.make_inclusive_scan(x, y, add, begin)
        room = torch.empty(theirs(None, x, y, add, 1000, begin), dtype=torch.uint8, device="cuda")
        print("cuda.compute's scan, object kept     ", each(lambda: theirs(room, x, y, add, 1000, begin), 500))
        print("cuda.compute's scan, one call        ", each(lambda: parallel.inclusive_scan(x, y, add, begin, 1000), 300))
except Exception as why:  # its interface changes from version to version
    print("cuda.compute:", type(why).__name__, str(why)[:120])
try:
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

    device = Device()
    device.set_current()
    code = Program('extern "C" __global__ void k(int n, const int* x, int* y) { }', "c++", options=ProgramOptions(std="c++17"))
    core_kernel = code.compile("cubin").get_kernel("k")
    stream, shape = device.default_stream, LaunchConfig(grid=1, block=32)
    px, py, n = x.data_ptr(), y.data_ptr(), numpy.int32(1000)
    print("cuda.core's launch                   ", each(lambda: launch(stream, shape, core_kernel, n, px, py)))
except Exception as why:
    print("cuda.core:", type(why).__name__, str(why)[:120])
print("torch.cumsum, out=                   ", each(lambda: torch.cumsum(x, 0, dtype=torch.int32, out=y)))
# A process of its own, as a program that runs again: with the package's bytecode, which pip makes when it installs. Without it (as here by
# PYTHONDONTWRITEBYTECODE, or from a folder that cannot be written to) the interpreter reads the package's text anew, 8 ms on a slow machine.
FIRST = """import time, torch, kiln
x = torch.arange(1000, dtype=torch.int32, device="cuda"); torch.cuda.synchronize()
at = [time.perf_counter()]
kiln.inclusive_scan; at.append(time.perf_counter())
scan = kiln.make_inclusive_scan("int32", kiln.op("a + b + 7")); at.append(time.perf_counter())
y = scan(x); torch.cuda.synchronize(); at.append(time.perf_counter())
ms = [(b - a) * 1e3 for a, b in zip(at, at[1:])]
print(f"{sum(ms):.1f} ms: {ms[0]:.2f} reading the package's modules, {ms[1]:.2f} the handle, {ms[2]:.2f} the call")"""
with tempfile.TemporaryDirectory() as scratch:
    run = {**os.environ, "KILN_CACHE_DIR": os.path.join(scratch, "cache"), "PYTHONPYCACHEPREFIX": os.path.join(scratch, "bytecode")}
    run.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run([sys.executable, "-c", "import torch, kiln; kiln.inclusive_scan, kiln.op"], env=run)
    for when in ("an operator nobody has seen          ", *["the same in the next process         "] * 3):
        print(when, subprocess.run([sys.executable, "-c", FIRST], env=run, capture_output=True, text=True).stdout.strip())
