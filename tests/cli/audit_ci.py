# SPDX-License-Identifier: Apache-2.0
"""examples/audit_ci without a GPU: a stand-in for CuPy starts the recorder as the driver would, and a fake libcupti plays a kernel. The job passes, and
fails with 3 when a GPU path is turned off although every test still passes."""

import os
import sys

from _kiln import BIN, SCRATCH, SOURCE, check, run, write

FAKE = BIN / "kiln-test-fake_cupti.so"
if not (BIN.parent / "lib/kiln/audit/libkiln-recorder.so").exists() or not FAKE.exists():
    print("skipped: no recorder in this build")
    sys.exit(77)

write("cupy.py", """
import ctypes, os
class array(list):
    sum = lambda self: sum(self)
    def __mul__(self, by): return array(v * by for v in self)
def asarray(values):
    path = os.environ.get("CUDA_INJECTION64_PATH")
    if path: assert ctypes.CDLL(path).InitializeInjection() == 1
    return array(values)
""")
write("script", "once\ndevice 132 H200\ncall 3 1 1000000 1003000\nkernel 3 7 1004000 1024000 500 256 mul\n")
EXAMPLE = SOURCE / "examples/audit_ci"


def job(*options, status=0, **environment):
    return run("audit", "health", *options, "--", os.path.realpath(sys.executable), EXAMPLE / "run_tests.py", status=status, PYTHONPATH=SCRATCH,
               PYTHONDONTWRITEBYTECODE="1", KILN_AUDIT_CUPTI_ALWAYS=FAKE, KILN_TEST_CUPTI=SCRATCH / "script", **environment)


good = job("--baseline", EXAMPLE / "gpu-share.json")
check("all passed" in good.stdout and "2 processes: 2 on the GPU, 0 on the CPU" in good.stderr, "both tests run on the GPU", good.stderr)
job("--write-baseline", SCRATCH / "again.json")
bad = job("--baseline", SCRATCH / "again.json", status=3, VECTOR_GPU="0")
check("all passed" in bad.stdout, "its tests do not notice", bad.stdout)
check("fell from 100.00 % to 0.00 %" in bad.stderr, "the job does", bad.stderr)
print("ok")
