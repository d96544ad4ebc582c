# SPDX-License-Identifier: Apache-2.0
"""KILN_NVTX=1 shows a profiler what is looked up, waited for and compiled; without it nothing is said."""

import sys

from _kiln import BIN, SCRATCH, check, run, write

listener = BIN / "kiln-test-nvtx_listener.so"
if not listener.exists() or b"InitializeInjectionNvtx2" not in listener.read_bytes():
    print("no NVTX headers, or no library to preload")
    sys.exit(77)
write("k.cu", 'extern "C" __global__ void k(int* x) { *x = 1; }\n')
heard = SCRATCH / "ranges"
profiled = dict(NVTX_INJECTION64_PATH=listener, KILN_TEST_NVTX=heard)
run("compile", "k.cu", "--arch", "sm_90", **profiled)
check(not heard.exists(), "silent unless asked")
run("compile", "k.cu", "--arch", "sm_80", KILN_NVTX=1, **profiled)
cold = heard.read_text().splitlines()
check("push find k sm_80" in cold and "start compile k sm_80" in cold, "a lookup and a compile", cold)
check(sum(l.startswith("push") for l in cold) == cold.count("pop "), "what begins ends", cold)
check(sum(l.startswith("start") for l in cold) == cold.count("end "), "on whatever thread", cold)
heard.unlink()
run("compile", "k.cu", "--arch", "sm_80", KILN_NVTX=1, **profiled)
warm = heard.read_text().splitlines()
check("push find k sm_80" in warm and not any("compile" in l for l in warm), "a hit is a lookup alone", warm)
