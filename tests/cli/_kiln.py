# SPDX-License-Identifier: Apache-2.0
"""What the tests of the command line share: the program, a scratch directory, and checks that tell what they saw."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

CLI = os.environ["KILN_TEST_CLI"]
BIN = pathlib.Path(os.environ["KILN_TEST_BIN_DIR"])
# The command line itself: `kiln` may be a small static program in front of it.
FULL = str(BIN / "kiln-cli") if (BIN / "kiln-cli").exists() else CLI
SOURCE = pathlib.Path(os.environ["KILN_TEST_SOURCE_DIR"])

_scratch = tempfile.TemporaryDirectory(prefix="kiln-cli-")
SCRATCH = pathlib.Path(_scratch.name)
CACHE = SCRATCH / "cache"


def run(*arguments, status=0, program=CLI, cwd=SCRATCH, **environment):
    """Runs the program with a cache of its own; ends the test if its exit status is not the one expected."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
    env.update(KILN_CACHE_DIR=str(CACHE), KILN_CUDA_PATH=os.environ.get("KILN_TEST_CUDA_PATH", ""))
    env.update({k: str(v) for k, v in environment.items()})
    env = {k: v for k, v in env.items() if v != ""}
    done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True, errors="replace", cwd=cwd, env=env, timeout=240)
    if status is not None and done.returncode != status:
        sys.exit(f"{arguments}: exit status {done.returncode}, expected {status}\nstdout: {done.stdout}\nstderr: {done.stderr}")
    return done


def data(*arguments, **kwargs):
    return json.loads(run(*arguments, "--json", **kwargs).stdout)


def write(name, text):
    path = SCRATCH / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def check(condition, what, *seen):
    if not condition:
        sys.exit("\n".join([f"FAILED: {what}", *map(str, seen)]))


_tests = {}


def test(function):
    """Marks a test of a file that has many: each is one of ctest's, and stands on its own."""
    _tests[function.__name__] = function
    return function


def run_tests():
    """Those that are named on the command line, or all."""
    for name in sys.argv[1:] or _tests:
        began = time.monotonic()
        _tests[name]()
        print(f"{name}: {time.monotonic() - began:.1f} s")


KERNEL = 'extern "C" __global__ void k(int* x) { x[threadIdx.x] = VALUE; }\n'
