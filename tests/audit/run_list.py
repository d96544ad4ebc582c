#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs with one defect each under `kiln audit`, on a machine with a GPU: what must be found is found with its exact count, and
nothing else above LOW but what a short run cannot tell.

    run_list.py KILN [--out DIR] [--jobs N] [--only REGEX] [--limit SECONDS] [--pack DIR]

--pack keeps the small recordings as archives, as in tests/audit/recordings, which tests/cli/audit_recordings.py judges without a GPU.

Exit status 1 if a program is not as written here, 77 where there is no GPU or no framework.
"""

import argparse
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import time

HERE = pathlib.Path(__file__).parent
# What a program may be told beside its row: the ledger, and how work is cut and where the GPU idles.
BESIDE = {"R02", "R10", "R11", "R12", "R13", "R14", "R15", "R92"} | {f"R{n}" for n in range(50, 67)}

# name: framework, program, times, must find, must not, exempt, options
LIST = {
    "scalar": ("torch", "reads_a_scalar", 200, {"R22": 200}, {"R20", "R23", "R52"}, {}),
    "device-wait": ("torch", "waits_for_the_device", 200, {"R21": 200}, {"R22"}, {}),
    "timing": ("torch", "times_itself", 200, {}, {"R20", "R21", "R58"}, {"R21": 200}),
    "fence": ("torch", "sizes_an_output", 200, {}, {"R22"}, {"R22": 200}),
    "pageable": ("torch", "uploads", 50, {"R30": 50}, {"R24"}, {}),
    "pinned": ("torch", "uploads_pinned", 50, {}, {"R24", "R30"}, {}),
    "trimming": ("torch", "empties_the_pool", 50, {"R40": 400, "R41": 50}, {"R58"}, {}),
    "tiny": ("torch", "adds_to_little", 200, {"R50": None, "R57": None, "R58": None}, set(), {}),
    "graph": ("torch", "adds_in_a_graph", 200, {}, {"R50", "R57", "R58"}, {}),
    "nvrtc": ("cupy", "compiles", 10, {"R10": 11}, {"R16"}, {"R10": 1}),
    "in-loop": ("cupy", "compiles_in_the_loop", 100, {"R16": None, "R10": 101}, set(), {}),
    "rows": ("cupy", "sums_row_by_row", 20, {"R22": 10240, "R57": 512}, set(), {}),
    "no-pool": ("cupy", "without_a_pool", 200, {"R40": 400}, {"R41"}, {}),
    "streams": ("cupy", "on_streams", 50, {"R27": 200, "R28": None}, set(), {}),
    "free-streams": ("cupy", "on_free_streams", 50, {}, {"R27", "R28"}, {}),
    "round-trip": ("cupy", "there_and_back", 50, {"R32": 50, "R23": 50}, {"R33"}, {}),
    "re-upload": ("cupy", "the_same_again", 50, {"R33": 50}, {"R32"}, {}),
    "managed": ("cupy", "managed", 50, {"R37": 1}, set(), {}),
    "triton": ("triton", "once", 1, {"R14": None}, {"R10"}, {}),
    "tuned": ("triton", "tunes", 20000, {"R15": None}, {"R16"}, {}),
    "constants": ("triton", "new_constants", 30, {"R16": None}, set(), {}),
    "few-blocks": ("triton", "few_blocks", 100, {"R52": 100, "R62": None}, {"R16"}, {}),
    "jax": ("jax", "one_jit", 200, {}, {"R16", "R20", "R22"}, {}),
    "shapes": ("jax", "new_shapes", 30, {"R16": None}, set(), {}),
    "op-by-op": ("jax", "reads_op_by_op", 200, {"R22": None, "R31": 801}, set(), {}),
    "cpu": ("torch", "on_the_cpu", 50, {"R01": 1}, set(), {}),
    "embedded": ("plain-ptx", "embedded_ptx", 1, {"R04": 1, "R11": 1}, {"R10"}, {}),
    "synchronous": ("plain", "synchronous", 100, {"R24": 200, "R27": None, "R28": None, "R52": None, "R53": 200}, set(), {}),
}
# Which line is to blame in a program without Python; recordings of before have none.
LINES = {"synchronous": {"R24": "cudaMemcpy(", "R53": "spin<<<8, 100"}}
CACHES = "CUPY_CACHE_DIR TRITON_CACHE_DIR TORCHINDUCTOR_CACHE_DIR PYTORCH_KERNEL_CACHE_PATH CUDA_CACHE_PATH XDG_CACHE_HOME".split()


def build_plain(out):
    nvcc = shutil.which("nvcc") or (shutil.which("/usr/local/cuda/bin/nvcc"))
    if nvcc is None:
        return {}
    programs = {"plain": out / "plain", "plain-ptx": out / "plain-ptx"}
    for program, options in zip(programs.values(), (["-arch=native"], ["-gencode=arch=compute_75,code=compute_75"])):
        done = subprocess.run([nvcc, "-std=c++17", "-O2", "-g", *options, "-o", str(program), str(HERE / "plain.cu")], capture_output=True)
        if done.returncode != 0:
            return {}
    return programs


def wrong_about(name, report):
    _, _, _, must, never, exempt = LIST[name]
    found, let_pass, wrong = {}, {}, []
    for f in report["findings"]:
        found[f["rule"]] = max(found.get(f["rule"], 0), f["count"])
    for e in report["exempt"]:
        let_pass[e["rule"]] = let_pass.get(e["rule"], 0) + e["count"]
    for rule, count in must.items():
        if rule not in found:
            wrong.append(f"{rule} is missing")
        elif count is not None and found[rule] != count:
            wrong.append(f"{rule} {found[rule]} times, not {count}")
    wrong += [f"{rule} must not be" for rule in sorted(never & found.keys())]
    wrong += [f"exempt {rule} {let_pass.get(rule, 0)}, not {count}" for rule, count in exempt.items() if let_pass.get(rule, 0) != count]
    for f in report["findings"]:
        if f["severity"] not in ("info", "LOW") and f["rule"] not in must and f["rule"] not in BESIDE:
            wrong.append(f"unexpected {f['rule']} {f['severity']} {f['count']}")
    return wrong


def wrong_lines(name, report):
    text = (HERE / "plain.cu").read_text().splitlines()
    wrong = []
    for rule, what in LINES.get(name, {}).items():
        for where in (f["where"] for f in report["findings"] if f["rule"] == rule):
            file, _, line = where.partition(":")
            if file != "plain.cu" or what not in text[int(line) - 1]:
                wrong.append(f"{rule} at {where}, not where {what!r} stands")
    return wrong


def pack(recording, to):
    if sum(f.stat().st_size for f in recording.iterdir()) > 600 << 10:
        return
    with tarfile.open(to, "w:xz") as packed:
        for file in sorted(recording.iterdir()):
            about = tarfile.TarInfo(file.name)  # neither time nor owner
            about.size, about.mode = file.stat().st_size, 0o600
            with file.open("rb") as contents:
                packed.addfile(about, contents)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("kiln")
    arguments.add_argument("--out", default="audit-list")
    arguments.add_argument("--jobs", type=int, default=3)
    arguments.add_argument("--only", default="")
    arguments.add_argument("--limit", type=float, default=300)
    arguments.add_argument("--pack", type=pathlib.Path)
    arguments = arguments.parse_args()
    if shutil.which("nvidia-smi") is None:
        print("skipped: no GPU here")
        return 77
    out, deadline = pathlib.Path(arguments.out).absolute(), time.monotonic() + arguments.limit
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    plain = build_plain(out)
    there = {f for f in ("torch", "cupy", "jax", "triton") if importlib.util.find_spec(f)} | plain.keys()

    def one(name):
        framework, program, times, *_ = LIST[name]
        left = deadline - time.monotonic()
        if framework not in there or left < 5:
            return name, None, "not here" if left >= 5 else "no time"
        place = out / name
        place.mkdir()
        env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        env.update({k: str(place / "cache" / k.lower()) for k in CACHES}, XLA_PYTHON_CLIENT_PREALLOCATE="false")
        command = [str(plain[framework])] if framework in plain else [sys.executable, str(HERE / f"with_{framework}.py")]
        try:
            done = subprocess.run([arguments.kiln, "audit", "--json", "-o", str(place / "report.html"), "--keep", str(place / "recording"), "--", *command, program, str(times)],
                                  capture_output=True, text=True, errors="replace", env=env, timeout=min(left, 60))
        except subprocess.TimeoutExpired:
            return name, None, "took too long"
        (place / "summary.txt").write_text(done.stderr)
        lines = [line for line in done.stdout.splitlines() if line]
        if done.returncode != 0 or len(lines) < 2 or lines[-2] != f"done {program}":
            return name, [f"exit status {done.returncode}", done.stderr[-300:]], ""
        report = json.loads(lines[-1])
        if arguments.pack:
            arguments.pack.mkdir(parents=True, exist_ok=True)
            pack(place / "recording", arguments.pack / f"{name}.tar.xz")
        return name, wrong_about(name, report) + wrong_lines(name, report), " ".join(f"{f['rule']}:{f['count']}:{f['severity'][0]}" for f in report["findings"])

    failed = skipped = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for name, wrong, text in pool.map(one, [n for n in LIST if re.search(arguments.only, n)]):
            skipped += wrong is None
            failed += bool(wrong)
            print(f"{name:<13} {'--' if wrong is None else 'ok' if not wrong else 'WRONG: ' + '; '.join(wrong)} | {text}"[:220], flush=True)
    print(f"{len(LIST) - failed - skipped} as expected, {failed} wrong, {skipped} not run")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
