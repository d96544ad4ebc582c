# SPDX-License-Identifier: Apache-2.0
"""What tests of `kiln audit` without a GPU share: the recorder, the fake libcupti that plays sessions into it, and what a report said."""

import json
import os
import shutil
import subprocess
import sys

from _kiln import BIN, SCRATCH, check, run, write

RECORDER = BIN.parent / "lib/kiln/audit/libkiln-recorder.so"
FAKE = BIN / "kiln-test-fake_cupti.so"
FIRST_CALL = 1001  # the correlation of the first fake_call()

if not RECORDER.exists() or not FAKE.exists():
    print("skipped: no recorder in this build")
    sys.exit(77)


def told(done):
    return json.loads(done.stdout.strip().splitlines()[-1])


def waiting(steps, per_step=1, first=1_000_000):
    """A kernel and a wait for it that nobody needs, so many times in every step; the waits are those that fake_call(3) makes."""
    lines, at = ["once", "device 132 H200"], first
    for n in range(steps * per_step):
        wait = FIRST_CALL + n
        lines += [f"call {n + 1} 1 {at} {at + 3000}", f"kernel {n + 1} 7 {at + 4000} {at + 54000} 500 256 mul{n % per_step}",
                  f"call {wait} 3 {at + 5000} {at + 55000}", f"wait {wait} 3 7 {at + 5000} {at + 55000}"]
        at += 90000
    return "\n".join(lines) + "\n"


COMPILER = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")


def build(name, text, *options):
    subprocess.run([COMPILER, "-O1", "-w", str(write(name + ".c", "#define _GNU_SOURCE\n" + text)), "-o", str(SCRATCH / name), "-pthread", *options], check=True)
    return SCRATCH / name


def same(what, *program, **environment):
    """Output and status of the program by itself; under `kiln audit` they must be the same, and on standard error there is but our line."""
    env = {**os.environ, **{k: str(v) for k, v in environment.items()}}
    bare = subprocess.run(list(map(str, program)), capture_output=True, text=True, cwd=SCRATCH, env=env, timeout=60)
    audited = run("audit", "--", *program, status=None, **environment)
    check((audited.stdout, audited.returncode) == (bare.stdout, bare.returncode), what, "bare:", bare, "audited:", audited)
    check(audited.stderr.startswith(bare.stderr + "kiln audit:") or audited.stderr.startswith(bare.stderr + "kiln: audit:"), what, bare.stderr, audited.stderr)
    return audited
