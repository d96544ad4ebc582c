# SPDX-License-Identifier: Apache-2.0
"""Names are for people: units of one name are made and fail each by itself, and their directories tell them apart."""

from _kiln import SCRATCH, check, data, run, write

good = write("a/k.cu", 'extern "C" __global__ void k(int* x) { x[0] = 1; }\n')
bad = write("b/k.cu", 'extern "C" __global__ void k(int* x) { x[0] = broken; }\n')
for order in ([good, bad], [bad, good]):
    found = data("warm", *order, "--arch", "sm_90", status=None)
    check(found["ready"] == 1 and found["failed"] == 1, "one of two of the same name", found)

# A bundle of two of one name is as it was built, whichever file is named first.
write("c/k.cu", 'extern "C" __global__ void k(int* x) { x[0] = 2; }\n')
run("build", "a/k.cu", "c/k.cu", "--arch", "sm_90", "-o", "two.kiln")
for order in (["a/k.cu", "c/k.cu"], ["c/k.cu", "a/k.cu"]):
    deep = data("verify", "two.kiln", "--deep", *order)
    check(deep["recompiled"] == 2 and deep["bad"] == [], "each is compared with its own", deep)
alone = data("verify", "two.kiln", "--deep", "a/k.cu")
check(alone["recompiled"] == 1 and alone["bad"] == [], "also where it is the only one named", alone)
write("d/k.cu", 'extern "C" __global__ void k(int* x) { x[0] = 3; }\n')
check(data("verify", "two.kiln", "--deep", "d/k.cu", status=1)["bad"] != [], "and not with another of its name")
check(len(data("verify", "two.kiln", "--deep", "d/k.cu", "a/k.cu", status=1)["bad"]) == 1, "whoever is named beside it")
