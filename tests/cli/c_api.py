# SPDX-License-Identifier: Apache-2.0
"""The examples in C and C++17 and those that come from NVRTC: right on a GPU; without one, compiled as far as that goes."""

import sys

from _kiln import BIN, check, run

programs = ["example_in_c", "example_in_cxx17", *sorted(p.name for p in BIN.glob("example_from_nvrtc_*"))]
missing = [p for p in programs if not (BIN / p).exists()]
if missing or len(programs) < 10:
    print(f"not built: {missing or programs}")
    sys.exit(77)
for program in programs:
    done = run(program=BIN / program, status=None)
    check(done.returncode in (0, 77), f"{program} is right", done.returncode, done.stdout, done.stderr)
    said = done.stdout
    if done.returncode == 77:
        check("sm_90" in said or "is compiled" in said, f"{program} compiles without a GPU", said, done.stderr)
    else:
        check("0 wrong" in said or "the host knows" in said, f"{program} has compared its results", said)
    print(said, end="")
