# SPDX-License-Identifier: Apache-2.0
"""`kiln audit` without a GPU: programs are not disturbed, a fake libcupti plays sessions into the real recorder, whatever becomes of the
process its recording can be read, and the exit status says what was judged."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

from _audit import FAKE, RECORDER, told
from _kiln import BIN, SCRATCH, check, run, write

PYTHON = os.path.realpath(sys.executable)


# ---- what is loaded into other people's programs

def exported(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split()[-1] for line in lines}


def needed(library):
    return set(re.findall(r"NEEDED.*\[(.*)\]", subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout))


recorder, companion = RECORDER, RECORDER.with_name("libkiln-companion.so")
check(exported(recorder) - {"InitializeInjectionNvtx2"} == {"InitializeInjection", "kiln_recorder_v1"}, "the recorder exports what is looked up in it", exported(recorder))
check(exported(companion) == {"la_version", "la_objopen", "la_symbind64"}, "the companion exports what the loader asks", exported(companion))
for library, most in ((recorder, 1 << 20), (companion, 100 << 10)):
    libc = {n for n in needed(library) if not re.match(r"(libc|ld-linux.*|libdl|libpthread)\.so", n)}
    check(not libc, f"{library.name} needs libc alone", needed(library))
    check(library.stat().st_size <= most, f"{library.name} is small", library.stat().st_size)

# ---- programs that use no GPU

write("loud.py", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(int(sys.argv[1]))")
for status in (0, 7):
    bare = subprocess.run([PYTHON, str(SCRATCH / "loud.py"), str(status)], capture_output=True, text=True)
    audited = run("audit", "--", PYTHON, SCRATCH / "loud.py", status, status=status)
    check(audited.stdout == bare.stdout, "standard output is the program's own", audited.stdout)
    ours = audited.stderr.replace(bare.stderr, "")
    check(ours.count("\n") == 1 and "nothing ran on a GPU" in ours, "one line says why", ours)
temporary = SCRATCH / "temporary"
temporary.mkdir()
killed = run("audit", "--", "sh", "-c", "kill -TERM $$", status=None, TMPDIR=temporary)
check(killed.returncode == -signal.SIGTERM, "a signal that ends the program ends us", killed)
check(not list(temporary.iterdir()), "and nothing is left behind", list(temporary.iterdir()))
check(run("audit", "--expect-gpu", "--", "true", status=3), "expected and not there")
check("no such file" in run("audit", "--", "/no/such/program", status=127).stderr.lower(), "it cannot be started")
run("audit", status=2)
run("audit", "--fail-on", "awful", "--", "true", status=2)
write("bad.budget", "R22.per_stp <= 1\n")
check("'R22.per_step'" in run("audit", "--budget", SCRATCH / "bad.budget", "--", "true", status=2).stderr, "the nearest name")

for line, said in (("R50.share = -5%", "cannot be below 0"), ("R50.share = 1e9", "cannot be more than 100 %")):
    check(said in run("audit", "--budget", write("odd.budget", line + "\n"), "--", "true", status=2).stderr, "a number that makes no sense", line)

# ---- sessions, played

write("play.py", r'''
import ctypes, os, sys
if len(sys.argv) > 1 and sys.argv[1] == "late": sys.argv.pop(1)
recorder = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"])      # as the driver does it, inside cuInit
assert recorder.InitializeInjection() == 1
fake = ctypes.CDLL(os.environ["KILN_AUDIT_CUPTI_ALWAYS"])
def step():
    fake.fake_call(2)
exec(open(sys.argv[1]).read() if len(sys.argv) > 1 else "")
print("played")
''')


def session(steps, first=1_000_000):
    """Steps of a kernel, a read of 4 bytes and a wait; correlations from 1."""
    lines, at, n = ["once", "device 132 H200"], first, 0
    for _ in range(steps):
        n += 3
        lines += [f"call {n} 1 {at} {at + 3000}", f"kernel {n} 7 {at + 4000} {at + 24000} 500 256 mul",
                  f"call {n + 1} 2 {at + 5000} {at + 8000}", f"copy {n + 1} 7 2 3 2 1 4 {at + 24000} {at + 26000}",
                  f"call {n + 2} 3 {at + 9000} {at + 28000}", f"wait {n + 2} 3 7 {at + 9000} {at + 28000}"]
        at += 60000
    return "\n".join(lines) + "\n"


def play(script, body="", status=0, options=(), keep=None):
    write("script", script)
    write("body.py", body)
    shutil.rmtree(SCRATCH / "kept", ignore_errors=True)
    return run("audit", "--keep", keep or SCRATCH / "kept", "--json", *options, "--", PYTHON, SCRATCH / "play.py", SCRATCH / "body.py", status=status,
               KILN_AUDIT_CUPTI_ALWAYS=FAKE, KILN_TEST_CUPTI=SCRATCH / "script")


played = play(session(40))
check(played.stdout.startswith("played\n"), "the program owns standard output", played.stdout)
report = told(played)
process = report["processes"][0]
check(process["kernels"] == 40 and process["device"] == "H200" and process["ended_well"], "all of it was recorded", process)
read = [f for f in report["findings"] if f["rule"] == "R22"]
check(read and read[0]["count"] == 40, "the reads are found", report["findings"])
check(report["can_be_judged"], "it can be judged", report)
kept = SCRATCH / "kept"
check(oct(kept.stat().st_mode)[-3:] == "700" and all(oct(f.stat().st_mode)[-3:] == "600" for f in kept.iterdir()), "nobody else reads it", list(kept.iterdir()))
again = told(run("audit", "report", kept, "--json", "-o", SCRATCH / "page.html", "--perfetto", SCRATCH / "trace"))
check(again["findings"] == report["findings"], "a kept recording says the same")
page = (SCRATCH / "page.html").read_text()
check("<script" not in page and "scalar-read" in page, "the page")
check((SCRATCH / "trace").read_bytes()[:1] == b"\n", "the trace is packets")
run("audit", "--keep", kept, "--", "true", status=1)

# A call site, through Python.
sites = told(play(session(3) , "for i in range(30): step()\n"))
check(not sites["why_not"], "sites do no harm", sites)

# Ranges of the program's own, as NVTX hands them over: a table of places for functions.
if "InitializeInjectionNvtx2" in exported(recorder):
    ranged = told(play(session(9), r'''
from ctypes import CFUNCTYPE, POINTER, Structure, addressof, c_char_p, c_int, c_size_t, c_uint, c_void_p
slots = (c_void_p * 32)()
table = (c_void_p * 32)(*[addressof(slots) + 8 * i for i in range(32)])
@CFUNCTYPE(c_int, c_int, POINTER(c_void_p), POINTER(c_uint))
def functions(module, to, size):
    to[0], size[0] = addressof(table), 32
    return module == 1
class callbacks(Structure):
    _fields_ = [("size", c_size_t), ("functions", c_void_p)]
given = callbacks(16, ctypes.cast(functions, c_void_p))
export = CFUNCTYPE(c_void_p, c_uint)(lambda which: addressof(given))
assert ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"]).InitializeInjectionNvtx2(export) == 1
push, pop = CFUNCTYPE(c_int, c_char_p)(slots[9]), CFUNCTYPE(c_int)(slots[11])
for _ in range(10):
    push(b"train"); push(b"inner"); pop(); pop()
assert pop() == -1
''', options=("--step", "train")))
    check(ranged["processes"][0]["steps"]["count"] == 10 and "train" in ranged["processes"][0]["steps"]["anchor"], "ranges are recorded", ranged["processes"][0]["steps"])

# Judged.
write("kept.budget", "R22.count <= 40\nseverity <= high\n")
write("broken.budget", "R22.count <= 39\n")
play(session(40), options=("--budget", SCRATCH / "kept.budget"))
broken = play(session(40), options=("--budget", SCRATCH / "broken.budget"), status=3)
check("measured 40" in broken.stderr, "a broken line says what was measured", broken.stderr)
play(session(40), options=("--fail-on", "low"), status=3)
play(session(40), options=("--fail-on", "blocking"))
play("refuse torch.profiler\n", options=("--fail-on", "low"), status=4)
refused = play("refuse torch.profiler\n")
check("torch.profiler" in refused.stderr, "another profiler is named", refused.stderr)
play(session(40) + "drop 900\n", options=("--fail-on", "blocking"), status=4)
copies = "".join(f"call {n} 2 {n * 60000} {n * 60000 + 3000}\ncopy {n} 7 2 3 2 1 4 {n * 60000 + 5000} {n * 60000 + 7000}\n" for n in range(1000, 1040))
alone = play("once\ndevice 132 H200\n" + copies, options=("--fail-on", "low"), status=4)
check("no kernel ran on a GPU, so there is nothing to judge" in alone.stderr, "copies alone are no work", alone.stderr)
write("steps.budget", "R16.count <= 0\n")
rested = play(session(3), options=("--budget", SCRATCH / "steps.budget"), status=4)
check("R16.count <= 0: no steps were found, so R16 had nothing to look at" in rested.stderr, "a rule that rested keeps nothing", rested.stderr)
play(session(40), options=("--budget", SCRATCH / "steps.budget"))
torn = told(play(session(40) + "torn\n"))
check(torn["processes"][0]["kernels"] == 40, "half a record at the end is left out", torn)
check(told(play(session(5), "sys.exit(5)\n", status=5)), "its own status, and a report")


# A program that fails says so itself, whatever is found.
run("audit", "--expect-gpu", "--", "sh", "-c", "exit 7", status=7)
play(session(40), "sys.exit(5)\n", options=("--fail-on", "low"), status=5)

# Nobody passes because nothing was recorded.
write("counts.budget", "R22.count <= 0\n")
for options in (("--fail-on", "low"), ("--budget", SCRATCH / "counts.budget"), ("--expect-gpu",)):
    taken = run("audit", *options, "--", "true", status=4, CUDA_INJECTION64_PATH="/other.so")
    check("taken by /other.so" in taken.stderr, "why not", taken.stderr)
write("share.json", '{"gpu_share": 0.0}')
run("audit", "health", "--baseline", SCRATCH / "share.json", "--", "true", status=4, CUDA_INJECTION64_PATH="/other.so")
check(run("audit", "--", "true", CUDA_INJECTION64_PATH="/other.so"), "where nothing is judged the program runs as it is")
for spoilt in ("run.json", "p*.kilnrec"):
    play(session(40))
    next(kept.glob(spoilt)).write_bytes(b"")
    run("audit", "report", kept, "--fail-on", "blocking", status=4)
    run("audit", "health", kept, "--baseline", SCRATCH / "share.json", status=4)
# What cannot be opened hides nothing of what can.
for n, put in enumerate((os.mkfifo, os.mkdir, lambda path: os.symlink("/nonexistent", path), lambda path: path.touch(0o000))):
    play(session(40))
    put(kept / "p99.0.kilnrec")
    beside = told(run("audit", "report", kept, "--json"))
    check(beside["processes"][0]["kernels"] == 40 and any(f["rule"] == "R91" for f in beside["findings"]), "the others are read", n, beside["findings"])
    run("audit", "report", kept, "--fail-on", "blocking", status=4)
    shutil.rmtree(kept)
play(session(40))
run("audit", "report", kept, "--fail-on", "awful", status=2)
run("audit", "report", kept, "--budget", SCRATCH / "bad.budget", status=2)
run("audit", "report", kept, "--budget", SCRATCH / "nowhere", status=2)

# ---- what becomes of the process

forked = told(play(session(9), "if os.fork() == 0:\n  step(); sys.exit(0)\nos.wait()\n"))
check(len(forked["processes"]) == 1 and forked["processes"][0]["kernels"] == 9, "a fork is left alone", forked)
abrupt = told(play(session(9), "fake.cuptiActivityFlushAll(0); os._exit(0)\n"))
check(abrupt["processes"][0]["kernels"] == 9 and not abrupt["processes"][0]["ended_well"], "_exit keeps what was flushed", abrupt)
dead = play(session(9), "fake.cuptiActivityFlushAll(0); os.kill(os.getpid(), 9)\n", status=-9)
check(told(dead)["processes"][0]["kernels"] == 9, "and so does SIGKILL", dead.stdout)
crowd = told(play(session(9), "import threading\nt = [threading.Thread(target=lambda: [step() for _ in range(200)]) for _ in range(64)]\n[x.start() for x in t]; [x.join() for x in t]\n"))
check(crowd["processes"][0]["kernels"] == 9, "64 threads", crowd)

# Cut, and spoilt.
play(session(40))
file = next(kept.glob("p*.kilnrec"))
whole = file.read_bytes()
file.write_bytes(whole[:-7])
check(told(run("audit", "report", kept, "--json"))["processes"][0]["kernels"] == 40, "the readable part")
run("audit", "report", kept, "--fail-on", "blocking", status=4)
file.write_bytes(b"KILNREC\n\x02\0\0\0\0\0\0\0")
check("format 2" in run("audit", "report", kept, status=1).stderr, "a newer format is named")
run("audit", "report", SCRATCH / "nowhere", status=1)

# ---- the companion

cuda = pathlib.Path(os.environ.get("KILN_TEST_CUDA_PATH") or "/usr/local/cuda")
nvrtc = next((f for folder in ("lib64", "lib") for f in sorted((cuda / folder).glob("libnvrtc.so.1?"))), None)
body = "import subprocess\nsubprocess.run(['true'])\n"
if nvrtc is not None:
    body += f'''
n = ctypes.CDLL({str(nvrtc)!r}); p = ctypes.c_void_p()
for text in (b"__global__ void k() {{}}", b""):
    assert n.nvrtcCreateProgram(ctypes.byref(p), text, b"a.cu", 0, None, None) == 0
    assert n.nvrtcCompileProgram(p, 0, None) == 0
'''
if shutil.which("gcc"):
    body += "assert subprocess.run(['gcc', '-c', '-x', 'c', '/dev/null', '-o', '/dev/null']).returncode == 0\n"
body += "q = os.posix_spawn('/bin/true', ['true'], os.environ); assert q > 1 and os.waitpid(q, 0) == (q, 0), q\n"
seen = told(play(session(9, 20_000_000_000), body))
rows = {row["cause"]: row for row in seen["processes"][0]["ledger"]}
if nvrtc is not None:
    check(rows.get("NVRTC", {}).get("count") == 2, "both compiles are in the ledger", rows)
if shutil.which("gcc"):
    check(rows.get("compiler processes", {}).get("count", 0) >= 1, "gcc is in it", rows)
shutil.copy(shutil.which("sleep"), SCRATCH / "nvcc")
for waits in ("os.waitpid(p, 0)", "os.wait4(p, 0)", "os.wait()", "os.wait3(0)", "os.waitid(os.P_PID, p, os.WEXITED)"):
    late = told(play(session(9, 20_000_000_000), f"""
p = os.posix_spawn({str(SCRATCH / 'nvcc')!r}, ["nvcc", "0.3"], os.environ)
{waits}
"""))
    took = [row["ms"] for row in late["processes"][0]["ledger"] if row["cause"] == "compiler processes"]
    check(took and took[0] >= 290, f"{waits}: how long the compiler took", late["processes"][0]["ledger"])
plain = told(play(session(9), body, options=("--hook", "none")))
check("NVRTC" not in {row["cause"] for row in plain["processes"][0]["ledger"]}, "nothing of it without the hook", plain)

# ---- rules, checklist, diff, health

check(len(json.loads(run("audit", "rules", "--json").stdout)) == 47, "the rules")
check("scalar-read" in run("audit", "rules", "R22").stdout, "one rule")
run("audit", "rules", "R99", status=2)
boxes = json.loads(run("audit", "rules", "--checklist", "--json").stdout)
check(len(boxes) == 78 and all(b["rules"] or b["evidence"] or b["question"] for b in boxes), "no box without an answer")
play(session(40), keep=SCRATCH / "one")
play(session(40), keep=SCRATCH / "two")
run("audit", "diff", SCRATCH / "one", SCRATCH / "one")
check(run("audit", "diff", SCRATCH / "one", SCRATCH / "two", status=None).returncode in (0, 3), "two runs")
run("audit", "health", SCRATCH / "one", "--write-baseline", SCRATCH / "base.json")
run("audit", "health", SCRATCH / "one", "--baseline", SCRATCH / "base.json")
play(session(0), keep=SCRATCH / "idle")
fell = run("audit", "health", SCRATCH / "one", SCRATCH / "idle", "--baseline", SCRATCH / "base.json", status=3)
check("fell from 100.00 % to 50.00 %" in fell.stderr, "a GPU path that is turned off is noticed", fell.stderr)
# ---- Kiln's own words

example = BIN / "example_operations"
if example.exists():
    shutil.rmtree(kept, ignore_errors=True)
    write("script", session(1))
    run("audit", "--keep", kept, "--", "env", f"LD_PRELOAD={BIN / 'kiln-test-driver_start.so'}", example, KILN_EXECUTION_MODE="cpu", KILN_AUDIT_CUPTI_ALWAYS=FAKE, KILN_TEST_CUPTI=SCRATCH / "script")
    words = run("audit", "health", kept).stderr
    check("6 dispatches: 0 on the GPU, 6 on the CPU, 0 fell back, 0 failed" in words, "every dispatch is told, once", words)
    said = told(run("audit", "report", kept, "--json"))
    check("6 dispatches ran where they said" in said["good"] and not any(f["rule"] == "R07" for f in said["findings"]), "requested, selected, ran", said["good"])
print("ok")
