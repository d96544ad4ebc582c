# SPDX-License-Identifier: Apache-2.0
"""Put compiled kernels into one file, and use them in a process that may not compile. examples/python_package does so inside a wheel."""

import pathlib
import subprocess
import sys
import tempfile

import kiln

PROGRAM = '''
import sys

import kiln

kiln.add_bundle(sys.argv[1])     # reads nothing yet
kiln.configure(jit="forbid", cache_dir=sys.argv[2])

fill = kiln.Unit("fill", 'extern "C" __global__ void fill(int* x) { x[threadIdx.x] = 7; }')
assert len(fill.artifact("sm_80").image) > 500
print("found in the", kiln.status()[0]["origin"])
'''

fill = kiln.Unit("fill", 'extern "C" __global__ void fill(int* x) { x[threadIdx.x] = 7; }')
with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder) / "mylib.kiln"
    kiln.build(file, [fill], archs=["sm_80", "sm_90"])  # needs no GPU
    print(file.stat().st_size, "bytes for two architectures")
    subprocess.run([sys.executable, "-c", PROGRAM, file, pathlib.Path(folder) / "an empty cache"], check=True)
