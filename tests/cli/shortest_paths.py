# SPDX-License-Identifier: Apache-2.0
"""The example of all shortest paths says where it ran and why, and gives the same answer on the CPU and on a GPU."""

import re
import sys

from _kiln import BIN, SCRATCH, check, data, run

EXAMPLE = BIN / "example_shortest_paths"
if not EXAMPLE.exists():
    print("the examples are not built")
    sys.exit(77)


def solve(mode, status=0):
    done = run(400, f"{mode}.svg", program=EXAMPLE, status=status, KILN_EXECUTION_MODE=mode)
    print(f"{mode}: {done.stdout}{done.stderr}")
    return done


def answer(text):
    """All but where it ran and how long it took."""
    return re.sub(r"squarings on the .*|, [0-9.]+ ms", "", text)


has_gpu = any(f["what"].startswith("GPU ") and f["state"] == "ok" for f in data("doctor", status=None)["findings"])
cpu = solve("cpu").stdout
check("on the CPU, because: asked" in cpu, "the CPU, as asked", cpu)
check("160000 of 160000 pairs connected" in cpu, "a whole network", cpu)
check("<polyline" in (SCRATCH / "cpu.svg").read_text(), "a picture with a route")

auto = solve("auto").stdout
check(answer(auto) == answer(cpu), "the same answer", auto, cpu)
check((SCRATCH / "auto.svg").read_text() == (SCRATCH / "cpu.svg").read_text(), "the same picture")
if has_gpu:
    check("squarings on the GPU (" in auto, "the GPU, where there is one", auto)
    gpu = solve("gpu").stdout
    check(answer(gpu) == answer(cpu) and "on the GPU (" in gpu, "the GPU, as asked", gpu)
else:
    check("on the CPU, because: no-gpu" in auto, "the CPU, for want of a GPU", auto)
    check("mode auto would run it on the CPU" in solve("gpu", status=1).stderr, "an error that names the remedy")
