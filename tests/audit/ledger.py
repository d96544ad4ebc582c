#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ledger of the first call, with empty caches and again with full ones, beside what the frameworks say of themselves.

    ledger.py KILN [--out DIR] [--only REGEX]

Needs a GPU and the frameworks; 77 without.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
PROGRAMS = {
    "CuPy": ["with_cupy.py", "compiles", "10"],
    "Triton": ["with_triton.py", "once", "1"],
    "torch.compile": ["with_libraries.py", "compiled", "50"],
    "JAX": ["with_jax.py", "one_jit", "50"],
}
CACHES = "CUPY_CACHE_DIR TRITON_CACHE_DIR TORCHINDUCTOR_CACHE_DIR PYTORCH_KERNEL_CACHE_PATH CUDA_CACHE_PATH XDG_CACHE_HOME JAX_COMPILATION_CACHE_DIR".split()
ROWS = ["start and imports", "cuInit", "context", "NVRTC", "driver JIT: compile", "driver JIT: cache load", "compiler processes", "compile inside a library", "load and link",
        "lazy loading", "trials", "GPU work", "this tool", "the program's own code"]


def own_words(name, text):
    """Milliseconds and how often, as the framework logs them; None where it says nothing."""
    if name == "JAX":
        found = [float(t) for t in re.findall(r"Finished XLA compilation of .* in ([0-9.]+) sec", text)]
        return f"XLA {1000 * sum(found):.0f} ms in {len(found)}" if found else None
    found = re.search(r"it says: (.*)", text)
    return found.group(1)[:110] if found else None


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("kiln")
    arguments.add_argument("--out", default="audit-ledger")
    arguments.add_argument("--only", default="")
    arguments = arguments.parse_args()
    if shutil.which("nvidia-smi") is None:
        print("skipped: no GPU here")
        return 77
    out = pathlib.Path(arguments.out).absolute()
    shutil.rmtree(out, ignore_errors=True)

    def run(name, when):
        place = out / name
        place.mkdir(parents=True, exist_ok=True)
        env = dict(os.environ, XLA_PYTHON_CLIENT_PREALLOCATE="false", JAX_LOG_COMPILES="1", JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0")
        env.update({k: str(place / "cache" / k.lower()) for k in CACHES})
        program, *rest = PROGRAMS[name]
        done = subprocess.run([arguments.kiln, "audit", "--json", "--keep", str(place / when), "--", sys.executable, str(HERE / program), *rest], capture_output=True, text=True, errors="replace", env=env)
        (place / f"{when}.txt").write_text(done.stderr)
        report = json.loads(done.stdout.strip().splitlines()[-1])
        rows = {r["cause"]: r for r in report["processes"][0]["ledger"]}
        all_ms = sum(r["ms"] for r in rows.values())
        shown = [f"{cause} {rows[cause]['ms']:.0f}" + (f" in {rows[cause]['count']}" if rows[cause]["count"] > 1 else "") for cause in ROWS if cause in rows and rows[cause]["ms"] >= 5]
        return f"{name:<13} {when:<5} {all_ms:>6.0f} ms: {', '.join(shown)}" + (f" | says: {w}" if (w := own_words(name, done.stderr + done.stdout)) else "")

    def both(name):
        for when in ("cold", "warm"):
            try:
                print(run(name, when), flush=True)
            except (IndexError, KeyError, json.JSONDecodeError) as why:
                print(f"{name:<13} {when:<5} failed: {why!r}", flush=True)

    with concurrent.futures.ThreadPoolExecutor(len(PROGRAMS)) as pool:
        list(pool.map(both, [name for name in PROGRAMS if re.search(arguments.only, name)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
