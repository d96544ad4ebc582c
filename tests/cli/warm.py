# SPDX-License-Identifier: Apache-2.0
"""warm, record, replay, profile, status and trace, and what a program that warms up leaves behind."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time

from _kiln import BIN, CACHE, SCRATCH, check, data, run

PROGRAM = BIN / "kiln-test-warm_program"


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
    env.update(KILN_CACHE_DIR=str(CACHE), KILN_CUDA_PATH=os.environ.get("KILN_TEST_CUDA_PATH", ""))
    env.update({k: str(v) for k, v in more.items()})
    return {k: v for k, v in env.items() if v != ""}


def is_running(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"


# What an operation declares, and nothing else.
operations = {o["operation"]: o for o in data("warm", "--operations")}
check(operations["exclusive_scan"]["specs"] == ["exclusive_scan_i32", "exclusive_scan_i64"], "what its variants say", operations)
for name, specs in (("inclusive_scan", "inclusive_scan_i32 inclusive_scan_i64"), ("radix_sort", "radix_sort_i32 radix_sort_u64"),
                    ("merge_sort", "merge_sort_u64"), ("unique_by_key", "unique_by_key_i32_i32 unique_by_key_u64_i32")):
    check(operations[name]["specs"] == specs.split(), "of every primitive", name, operations)
check(operations["tropical_product"]["pack"] == "tropical" and operations["tropical_product"]["count"] == 12, "of every pack", operations)
known = {s["name"] for s in data("list")}
check(all(set(o["specs"]) <= known for o in operations.values()), "every declared name exists", operations)
unknown = run("warm", "--operation", "nothing", status=2).stderr
check("kiln warm --operations" in unknown, "an unknown operation names the remedy", unknown)

# Recording from outside; the second run needs no compiler.
done = run("record", "-o", "app.profile", "--", PROGRAM, "use", "a", "b", "c")
check("3 recipes of 1 process\n" in done.stderr, "recorded", done.stderr)
shown = data("profile", "show", "app.profile")
check([u["name"] for u in shown["uses"]] == ["a", "b", "c"], "in order of first use", shown)
check(all(u["compile_ms"] > 0 and u["waited_ms"] > 0 and u["from"] == "compiled" for u in shown["uses"]), "with costs", shown)
check(not (SCRATCH / "app.profile.recording").exists(), "no scratch left")
status = run("record", "-o", "none.profile", "--", "sh", "-c", "exit 7", status=7).stderr
check("nothing was recorded" in status, "a program without Kiln", status)

# By itself, and only what is new.
auto = SCRATCH / "auto.profile"
run("use", "a", "b", program=PROGRAM, KILN_PROFILE=auto)
run("use", "a", "b", program=PROGRAM, KILN_PROFILE=auto)
check(len(list(SCRATCH.glob("auto.profile*"))) == 1, "a settled program writes nothing", list(SCRATCH.glob("auto.profile*")))
run("use", "b", "d", program=PROGRAM, KILN_PROFILE=auto)
more = [p for p in SCRATCH.glob("auto.profile*") if p != auto]
check(len(more) == 1, "what is new goes to a file of its own", more)
merged = data("profile", "merge", auto, more[0], "-o", "merged.profile")
check(merged["recipes"] == 3 and merged["files"] == 2, "merged", merged)
changes = json.loads(run("profile", "diff", auto, "merged.profile", "--json", status=1).stdout)
check([(c["change"], c["name"]) for c in changes] == [("added", "d")], "compared", changes)
run("profile", "diff", auto, auto)

# Many processes at once, one file each.
crowd = SCRATCH / "crowd" / "p"
programs = [subprocess.Popen([PROGRAM, "use", "a", f"n{i % 4}"], env=environment(KILN_PROFILE=crowd), stdout=subprocess.DEVNULL) for i in range(12)]
check(all(p.wait(60) == 0 for p in programs), "all of them work")
files = sorted((SCRATCH / "crowd").iterdir())
check(len(files) == 12, "one file per process", files)
merged = data("profile", "merge", *files, "-o", "crowd.profile")
check(merged["recipes"] == 5 and merged["uses"] == 5, "a thing used by many counts once", merged)

# Killed while recording; cut off in the middle of a record as well.
killed = SCRATCH / "killed.profile"
program = subprocess.Popen([PROGRAM, "hold", "k1", "k2"], env=environment(KILN_PROFILE=killed), stdout=subprocess.PIPE, text=True)
while program.stdout.readline().strip() != "holding":
    pass
program.send_signal(signal.SIGKILL)
program.wait()
replayed = data("replay", killed, "--arch", "sm_90,sm_100", "-o", "killed.kiln")
check(replayed["ready"] == 4 and replayed["stale"] == 0, "a killed recording replays, for what it never saw too", replayed)
torn = SCRATCH / "torn.profile"
torn.write_bytes(killed.read_bytes()[:-5])
replayed = data("replay", torn, KILN_JIT="forbid")
check(replayed["ready"] == 1 and replayed["torn_bytes"] > 0, "what is whole of a torn one replays", replayed)
served = run("use", "k1", "k2", program=PROGRAM, KILN_JIT="forbid", KILN_CACHE_DIR=SCRATCH / "fresh", KILN_BUNDLES=SCRATCH / "killed.kiln")
check("k1: bundle" in served.stdout and "k2: bundle" in served.stdout, "the bundle serves", served.stdout)
for_100 = data("inspect", "killed.kiln")
check("sm_100" in json.dumps(for_100), "and has sm_100", for_100)
garbage = SCRATCH / "garbage.profile"
garbage.write_bytes(b"not a profile at all, but long enough")
check("kiln record" in run("replay", garbage, status=1).stderr, "garbage is told from a profile")
ran = run("use", "a", program=PROGRAM, KILN_PROFILE=garbage)
check("a: disk" in ran.stdout, "and disturbs no program", ran.stdout)

# Files can be warmed, and are then found.
folder = SCRATCH / "headers"
folder.mkdir()
(folder / "h.h").write_text("#define VALUE 1\n")
(SCRATCH / "needs.cu").write_text('#include "h.h"\nextern "C" __global__ void needs(int* x) { x[0] = VALUE; }\n')
warmed = data("warm", "needs.cu", "-I", folder, "--arch", "sm_90")
check(warmed["ready"] == 1 and warmed["compiled"] == 1, "files can be warmed", warmed)
warmed = data("warm", "needs.cu", "-I", folder, "--arch", "sm_90", KILN_JIT="forbid")
check(warmed["things"][0]["from"] == "disk", "and are found again", warmed)

# A unit that is broken: the program starts and works, the status shows it, asking for it gives the log.
events = SCRATCH / "broken.jsonl"
said = run("broken", program=PROGRAM, KILN_EVENTS=events).stdout
check("1 of 2 cold: bad (failed" in said and "1 ready, 1 failed" in said and "good works" in said, "it works on", said)
check("no_such_function" in said.split("log:")[1], "and asking gives the log", said)
seen = data("status", events)
states = {u["name"]: u["state"] for u in seen["units"]}
check(states == {"bad": "failed", "good": "ready"} and seen["failed"] == 1 and not seen["alive"], "from outside too", seen)
for field in ("submitted", "compiled", "pending", "failed", "wall_ms"):
    check(field in seen, "the seed's fields are there", seen)

# What comes to nothing, in every way, is told from outside as it is from inside.
events = SCRATCH / "hopeless.jsonl"
said = run("hopeless", program=PROGRAM, KILN_EVENTS=events, KILN_JIT="forbid").stdout
inside = {name: rest for name, *rest in (line.split(";", 4) for line in said.splitlines())}
check(inside["select_i23"][0] == inside["option"][0] == inside["never_made"][0] == "failed", "it comes to nothing", inside)
outside = {u["name"]: [u["state"], u["priority"], u["consumers"], u["error"]] for u in data("status", events)["units"]}
check(set(inside) == set(outside), "all of it", inside, outside)
for name, (state, priority, consumers, error) in inside.items():
    seen = outside[name]
    check(seen[:3] == [state, priority, consumers], "with who wanted it and how much", name, inside[name], seen)
    check(error.startswith(seen[3]) and bool(seen[3]) == bool(error), "and why", name, error, seen)

# Leaving while compiles run takes no time and leaves nothing running.
times = []
for attempt in range(3):
    env = environment(KILN_CACHE_DIR=SCRATCH / f"busy{attempt}", KILN_EVENTS=SCRATCH / "busy.jsonl")
    program = subprocess.Popen([PROGRAM, "busy", "20"], env=env, stdout=subprocess.PIPE, text=True)
    line = program.stdout.readline()
    program.wait(30)
    after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    check(program.returncode == 0, "exit status", program.returncode)
    match = re.match(r"leaving (\d+)((?: \d+)+)", line)
    check(match, "workers were busy", line)
    times.append((after - int(match.group(1))) / 1e6)
    survivors = match.group(2).split()
    deadline = time.monotonic() + 1
    while survivors and time.monotonic() < deadline:
        survivors = [pid for pid in survivors if is_running(pid)]
    check(not survivors, "no worker survives", survivors)
    if times[-1] < 200:
        break
# The best of three: on a busy machine the clock is read late.
check(min(times) < 200, "leaving takes at most 0.2 s", times)

# A trace with a row per thread and per compile process.
run("use", "t1", "t2", program=PROGRAM, KILN_EVENTS=SCRATCH / "t.jsonl", KILN_CACHE_DIR=SCRATCH / "trace-cache")
made = data("trace", "t.jsonl", "-o", "t.json", "--svg", "t.svg")
check(made["bad_lines"] == 0 and made["spans"] > 4, "spans", made)
trace = json.loads((SCRATCH / "t.json").read_text())["traceEvents"]
spans = [e for e in trace if e["ph"] == "X"]
compiles = {e["name"]: e for e in spans if e["cat"] == "compile"}
waits = {e["name"]: e for e in spans if e["cat"] == "wait"}
check(set(compiles) == set(waits) == {"t1 sm_90", "t2 sm_90"}, "compiles and waits", spans)
for name, wait in waits.items():
    compiled = compiles[name]
    check(compiled["tid"] != wait["tid"], "a compile is on its process's row", name)
    check(wait["ts"] <= compiled["ts"] and compiled["ts"] + compiled["dur"] <= wait["ts"] + wait["dur"] + 1000,
          "the caller waits while its unit is compiled", wait, compiled)
rows = {e["args"]["name"] for e in trace if e["ph"] == "M" and e["name"] == "thread_name"}
check(any(r.startswith("compile process") for r in rows) and "main thread" in rows, "rows have names", rows)
check("<svg" in (SCRATCH / "t.svg").read_text(), "a picture")
check("KILN_EVENTS" in run("status", "nowhere.jsonl", status=1).stderr, "a missing file names the remedy")

# The example: cold, then warm.
first = run(program=BIN / "example_warmup", KILN_CACHE_DIR=SCRATCH / "example").stdout
check("all 3 warm" in first, "the example", first)
again = run(program=BIN / "example_warmup", KILN_CACHE_DIR=SCRATCH / "example", KILN_JIT="forbid").stdout
check("all 3 warm" in again, "and again without a compiler", again)
