# SPDX-License-Identifier: Apache-2.0
"""check_installed.py [--without-compiler]: the package where it was installed, in an environment that names nothing: its own library, worker,
command line and bundles, and no CUDA library before one is needed. scripts/wheel runs it."""

import os
import subprocess
import sys
from typing import Any

import kiln

HOME = os.path.dirname(kiln.__file__)


def mapped() -> Any:
    with open("/proc/self/maps") as file:
        return {line.split()[-1] for line in file if "/" in line}


def check(what: Any, right: Any) -> None:
    if not right:
        raise SystemExit(f"check_installed: {what}")


check(f"kiln is {kiln.__file__}, not of {sys.prefix}", HOME.startswith(sys.prefix))
check("libkiln is another one's", {os.path.dirname(p) for p in mapped() if "libkiln" in p} == {os.path.join(HOME, "lib")})
check("a CUDA library is mapped", not any(word in path for path in mapped() for word in ("libcuda.so", "libnvrtc", "nvJitLink")))

# What ships is beside the library, and is all that is needed of it.
ready = kiln.Plan("shipped", ["exclusive_scan_i32", "tropical_maxplus_f32_nn"], archs=["sm_90"]).ensure_warm(60)
check(f"what ships is not found: {ready}", ready and {unit["origin"] for unit in kiln.status()} == {"bundle"})

unit = kiln.Unit("k", 'extern "C" __global__ void k(int* x) { *x = 1; }')
if "--without-compiler" in sys.argv:
    try:
        unit.artifact("sm_90")
        raise SystemExit("check_installed: something compiled without a compiler")
    except kiln.Error as why:
        check(f"the remedy is not named: {why}", "pip install" in f"{why} {why.log}" or "KILN_CUDA_PATH" in f"{why} {why.log}")
        print(f"without a compiler: {type(why).__name__}: {str(why)[:90]}")
else:
    print(f"compiled through {HOME}: {unit.artifact('sm_90')}")

said = subprocess.run([os.path.join(sys.prefix, "bin", "kiln"), "--version"], capture_output=True, text=True)
check(f"kiln --version: {said.stderr}", said.returncode == 0 and kiln.__version__ in said.stdout)
