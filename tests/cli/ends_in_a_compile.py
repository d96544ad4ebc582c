# SPDX-License-Identifier: Apache-2.0
"""A program without workers that ends while a compile runs in it: the compiler's own exit functions wait until that is done."""

import json

from _kiln import BIN, check, run, test, run_tests, write

LONG = ("template <int N> struct s { static __device__ int f(int x) { return s<N - 1>::f(x * N + 1) + x; } };\n"
        "template <> struct s<0> { static __device__ int f(int x) { return x; } };\n"
        'extern "C" __global__ void k(int* a) { *a = s<150>::f(*a) ^ %d; }')
SHORT = 'extern "C" __global__ void k(int* a) { *a = 1; }'


def asked(units, steps, before=()):
    """The program that takes these steps and ends."""
    kept = [{"name": f"u{n}", "source": text, "kernels": ["k"]} for n, text in enumerate(units)]
    program, *words = *before, BIN / "kiln-test-asker"
    return run(*words, write("plan.json", json.dumps({"units": kept, "steps": steps})), program=program, status=None,
               KILN_WORKERS="0", KILN_DISABLE="1")


@test
def in_a_later_one():
    # The compiler is loaded, the long one begins, and the program goes on for a while: what it asks for is in memory.
    for meanwhile in (100, 300, 1000, 2000, 3000, 4000, 5000, 6000):
        done = asked([SHORT, LONG % 1], [["ask", [0]], ["start", [1]], *[["ask", [0]]] * meanwhile])
        check(done.returncode == 0, f"it ends by itself after {meanwhile} answers", done.returncode, done.stderr)
        check(done.stdout.count("\n") == 1 + meanwhile and "error" not in done.stdout, "and was answered", done.stdout[:400])


@test
def in_the_first():
    # The compiler registers thousands of functions while it is loaded, and some more while it compiles for the first time.
    for ms in (*range(0, 40, 2), *range(40, 200, 10)):
        done = asked([SHORT], [["start", [0]], ["meanwhile", ms * 1000]])
        check(done.returncode == 0, f"it ends by itself after {ms} ms", done.returncode, done.stderr)


@test
def by_a_signal():
    # NVRTC before 13.1 takes these for itself while it reads, and ends the program as if all were well.
    for name, number in (("TERM", 15), ("INT", 2)):
        for ms in range(40, 400, 40):
            done = asked([LONG % 1], [["start", [0]], ["meanwhile", 5_000_000]], before=("timeout", "--preserve-status", "-s", name, f"{ms / 1000}"))
            check(done.returncode in (-number, 128 + number), f"SIG{name} after {ms} ms ends it", done.returncode, done.stdout, done.stderr)


@test
def of_a_parent():
    # A child of fork() has its parent's compiler as it was, half-way, and with its locks.
    for ms in (0, 5, 20, 60, 150, 300, 600):
        done = asked([LONG % 1, SHORT], [["start", [0]], ["meanwhile", ms * 1000], ["fork", [["ask", [1]]]]])
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        check(done.returncode == 0 and lines[-1:] == [{"child": 0}], f"a child {ms} ms later is answered", done.returncode, done.stdout, done.stderr)
        check("image" in lines[0] or "forked while" in lines[0]["error"], "or told why not", lines[0])
    check("error" in lines[0], "while its parent compiles", lines[0])


run_tests()
