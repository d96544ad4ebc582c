#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kiln's own examples under `kiln audit`, warm, each under a budget: our own house first.

    house.py KILN FOLDER [--budget FILE] [--out DIR] [--jobs N] [--limit SECONDS]

FOLDER holds the programs, example_*. Each runs once to be warm, then once audited. Exit status 1 if one of them does not run, leaves the GPU alone, breaks a
line of the budget or cannot be judged, and if there is none at all.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
SHOWN = ("MEDIUM", "HIGH", "BLOCKING")
RESTED = "had nothing to look at"
WITHOUT_KERNELS = {"example_warmup", "example_from_nvrtc_simple_assert"}  # one only gets ready; the other's kernel ends its context


def audited(program, arguments, out):
    """What became of it, and what was found."""
    env = dict(os.environ, KILN_CACHE_DIR=str(out / "cache"))
    expect = [] if program.name in WITHOUT_KERNELS else ["--expect-gpu"]
    try:
        bare = subprocess.run([program], capture_output=True, text=True, errors="replace", env=env, timeout=arguments.limit)
        if bare.returncode != 0:
            return f"does not run: {bare.returncode}: {(bare.stderr or bare.stdout).strip()[-200:]}", []
        done = subprocess.run([arguments.kiln, "audit", "--json", *expect, "--budget", str(arguments.budget), "--keep", str(out / program.name), "-o", str(out / f"{program.name}.html"),
                               "--", program], capture_output=True, text=True, errors="replace", env=env, timeout=arguments.limit)
    except subprocess.TimeoutExpired:
        return "took too long", []
    (out / f"{program.name}.txt").write_text(done.stderr)
    broken = [line for line in done.stderr.splitlines() if line.startswith("kiln: audit: ")]
    try:
        findings = json.loads(done.stdout.strip().splitlines()[-1])["findings"]
    except (IndexError, ValueError, KeyError):
        return f"exit status {done.returncode}: no report", []
    shown = [f"{f['rule']} {f['severity']} {f['count']} at {f['where']}" for f in findings if f["severity"] in SHOWN]
    kept = 4 if program.name in WITHOUT_KERNELS else 0  # without kernels there is nothing to judge
    if done.returncode == 4 and broken and all(RESTED in line for line in broken):
        kept = 4  # an example of a launch or two has no steps: what counts by them says nothing of it
    return "" if done.returncode == kept else f"exit status {done.returncode}: {'; '.join(broken) or done.stderr.strip()[-200:]}", shown


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("kiln")
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--budget", type=pathlib.Path, default=HERE / "house.budget")
    arguments.add_argument("--out", type=pathlib.Path, default=pathlib.Path("audit-house"))
    arguments.add_argument("--jobs", type=int, default=3)
    arguments.add_argument("--limit", type=float, default=120)
    arguments = arguments.parse_args()
    shutil.rmtree(arguments.out, ignore_errors=True)
    arguments.out.mkdir(parents=True)
    out = arguments.out.absolute()
    programs = sorted(p for p in arguments.folder.glob("example_*") if os.access(p, os.X_OK) and p.is_file())
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for program, (wrong, found) in zip(programs, pool.map(lambda p: audited(p, arguments, out), programs)):
            failed += bool(wrong)
            print(f"{program.name:<28} {'BROKEN: ' + wrong if wrong else 'kept'} | {'; '.join(found)}", flush=True)
    print(f"{len(programs) - failed} of {len(programs)} programs keep {arguments.budget.name}")
    return 0 if programs and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
