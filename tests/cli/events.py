# SPDX-License-Identifier: Apache-2.0
"""Where operations ran, told by the example and by kiln events; calibrate without a GPU."""

import json

from _kiln import BIN, SCRATCH, check, data, run


def example(status, **settings):
    return run(program=BIN / "example_operations", status=status, **settings)


has_gpu = "nothing to calibrate" not in run("calibrate", "nosuch", status=None).stderr

cpu = example(0, KILN_EXECUTION_MODE="cpu", KILN_EVENTS=SCRATCH / "cpu.jsonl")
check("on the gpu" not in cpu.stdout and "fallbacks: 0" in cpu.stdout, "cpu means the CPU, by choice", cpu.stdout)
told = data("events", SCRATCH / "cpu.jsonl", "--summary")
check(told["gpu_share"] == 0 and told["fallbacks"] == [] and told["transfers"] == [], "nothing moved", told)
check(len(told["operations"]) == 3, "three operations", told)

if not has_gpu:
    auto = example(0, KILN_EVENTS=SCRATCH / "auto.jsonl")
    check("no-gpu" in auto.stdout, "auto falls back and says so", auto.stdout)
    told = data("events", SCRATCH / "auto.jsonl", "--summary")
    check([f["what"] for f in told["fallbacks"]] == ["no-gpu"], "fallbacks by reason", told)
    check("no-gpu" in run("events", SCRATCH / "auto.jsonl", "--summary").stdout, "in words too")

    gpu = example(1, KILN_EXECUTION_MODE="gpu")
    check("exclusive_scan: mode gpu, but" in gpu.stderr and "mode auto would run it on the CPU" in gpu.stderr,
          "gpu fails loudly: the operation, the reason and what would work", gpu.stderr)
    strict = example(1, KILN_STRICT=1)
    check("KILN_STRICT allows no fallback" in strict.stderr, "strict: a fallback is an error", strict.stderr)
    check("nothing to calibrate" in run("calibrate", status=1).stderr, "calibrate needs a GPU")

# Who waits for a server is blocked once: what the tier tells of it is a part of what the caller does.
(SCRATCH / "fleet.jsonl").write_text("".join(
    json.dumps({"t": 1, "kind": "waited", "reason": reason, "ns": 100_000_000}) + "\n" for reason in ("compile", "fleet", "lease")))
told = data("events", SCRATCH / "fleet.jsonl", "--summary")
check(told["blocked"] == 1 and told["fleet_waited"] == 2, "waits for the fleet are not counted twice", told)

# A process killed in the middle of a line.
with open(SCRATCH / "cpu.jsonl", "a") as file:
    file.write('{"t":1,"ki')
check(data("events", SCRATCH / "cpu.jsonl", "--summary")["unreadable"] == 1, "a torn line is counted")
lines = run("events", SCRATCH / "cpu.jsonl", "--kind", "dispatched").stdout.splitlines()
check(len(lines) == 6 and all(json.loads(l)["kind"] == "dispatched" for l in lines), "by kind", lines)
missing = run("events", SCRATCH / "none.jsonl", status=1)
check("KILN_EVENTS=" in missing.stderr, "a missing file: how to make one", missing.stderr)
(SCRATCH / "other.txt").write_text("something else\n")
for words in (["events", "other.txt"], ["trace", "other.txt", "-o", "t.json"]):
    check("KILN_EVENTS=" in run(*words, status=1).stderr, "a file without events is an error", words)
wrong = run("events", SCRATCH / "cpu.jsonl", "--kind", "dispatched,nosuch", status=2).stderr
check("'nosuch' is no kind" in wrong and "compile_failed" in wrong, "a kind that is none is named, with those there are", wrong)
