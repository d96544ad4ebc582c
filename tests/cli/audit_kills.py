# SPDX-License-Identifier: Apache-2.0
"""A program that is killed while it is recorded: at any moment, from the recorder's beginning on, the recording can be read, and what a flush had brought
before is in it.

    audit_kills.py [--moments N] [--seed N]      (1000 by hand; fewer in CI)
"""

import argparse
import ctypes
import mmap
import os
import random
import shutil
import struct
import time

from _audit import FAKE, RECORDER, told
from _kiln import SCRATCH, check, run, write

arguments = argparse.ArgumentParser()
arguments.add_argument("--moments", type=int, default=40)
arguments.add_argument("--seed", type=int, default=7)
arguments = arguments.parse_args()

KERNELS = 50  # that come with every flush
script = ["device 132 H200"]
for n in range(KERNELS):
    at = 1_000_000 + 60_000 * n
    script += [f"call {n + 1} 1 {at} {at + 3000}", f"kernel {n + 1} 7 {at + 4000} {at + 24000} 500 256 mul"]
write("script", "\n".join(script) + "\n")
shared = mmap.mmap(-1, 4096)  # begun, flushes that came back


def record(place):
    """In a child: as the driver loads the recorder; then calls and flushes without an end. A flush counts when it has come back."""
    os.environ.update(KILN_AUDIT_DIR=str(place), KILN_AUDIT_CUPTI_ALWAYS=str(FAKE), KILN_TEST_CUPTI=str(SCRATCH / "script"))
    recorder, fake = ctypes.CDLL(str(RECORDER)), ctypes.CDLL(str(FAKE))
    shared[:4] = struct.pack("<I", 1)
    recorder.InitializeInjection()
    for flushes in range(1, 1 << 30):
        fake.fake_call(2)
        fake.cuptiActivityFlushAll(0)
        shared[4:8] = struct.pack("<I", flushes)


def killed_after(place, delay):
    shared[:8] = bytes(8)
    place.mkdir()
    child = os.fork()
    if child == 0:
        try:
            record(place)
        finally:
            os._exit(1)
    while shared[0] == 0:
        time.sleep(0)
    end = time.monotonic() + delay
    while time.monotonic() < end:
        pass
    os.kill(child, 9)
    os.waitpid(child, 0)
    return struct.unpack("<I", shared[4:8])[0]


random.seed(arguments.seed)
before_the_first = torn = most = 0
for moment in range(arguments.moments):
    place = SCRATCH / f"killed{moment}"
    # A third in the recorder's beginning, the rest among calls and flushes.
    flushes = killed_after(place, random.uniform(0, 0.002 if moment % 3 == 0 else 0.08))
    if not list(place.glob("*.kilnrec")):
        check(flushes == 0, "who has flushed has a file", flushes)
        before_the_first += 1
    else:
        report = told(run("audit", "report", place, "--json"))
        processes = report["processes"]
        kernels = processes[0]["kernels"] if processes else 0
        check(kernels % KERNELS == 0, "whole chunks alone", kernels)
        check(kernels >= flushes * KERNELS, "what was flushed is there", flushes, kernels)
        before_the_first += kernels == 0
        most = max(most, kernels)
        torn += any(f["rule"] == "R91" for f in report["findings"])
    shutil.rmtree(place)
check(most > 0, "some had recorded something", most)
print(f"killed {arguments.moments} times: {before_the_first} before the first flush came back, {torn} in the middle of a write, {most} kernels at most; all could be read")
print("ok")
