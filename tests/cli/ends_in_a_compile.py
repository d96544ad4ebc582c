# SPDX-License-Identifier: Apache-2.0
"""A program without workers that ends while a compile runs in it: the compiler's own exit functions wait until that is done."""

import json

from _kiln import BIN, check, run, write

LONG = ("template <int N> struct s { static __device__ int f(int x) { return s<N - 1>::f(x * N + 1) + x; } };\n"
        "template <> struct s<0> { static __device__ int f(int x) { return x; } };\n"
        'extern "C" __global__ void k(int* a) { *a = s<150>::f(*a) ^ %d; }')
SHORT = 'extern "C" __global__ void k(int* a) { *a = 1; }'

units = [{"name": f"u{n}", "source": text, "kernels": ["k"]} for n, text in enumerate([SHORT, LONG % 1, LONG % 2])]
# What somebody waits for comes before the second long one, which begins as the program ends.
plan = write("plan.json", json.dumps({"units": units, "steps": [["start", [1]], ["start", [2]], ["ask", [0]]]}))
for n in range(6):
    done = run(plan, program=BIN / "kiln-test-asker", status=None, KILN_WORKERS="0", KILN_DISABLE="1")
    check(done.returncode == 0 and '"from":"compiled"' in done.stdout, f"run {n} ends as it should", done)
