# SPDX-License-Identifier: Apache-2.0
"""Names are for people: units of one name are made and fail each by itself, and their directories tell them apart."""

from _kiln import SCRATCH, check, data, write

good = write("a/k.cu", 'extern "C" __global__ void k(int* x) { x[0] = 1; }\n')
bad = write("b/k.cu", 'extern "C" __global__ void k(int* x) { x[0] = broken; }\n')
for order in ([good, bad], [bad, good]):
    found = data("warm", *order, "--arch", "sm_90", status=None)
    check(found["ready"] == 1 and found["failed"] == 1, "one of two of the same name", found)
