# SPDX-License-Identifier: Apache-2.0
"""tests/run/run_list.py itself, with programs that need no GPU: what is right, wrong, different, too much, too slow and not
there is told as such. That the real ones are whole: each is skipped by name, or run, and none fails to start."""

import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "run"))
from _run import CLI, NVRTC, PYTHON, SCRATCH, SOURCE, check, write  # noqa: E402

PROGRAM = f"""
import os, sys, time
sys.path.insert(0, {str(SOURCE / "tests/run/programs")!r})
from _program import check, context, done, imports, skip
with imports():
    import ctypes as C
with context():
    n = C.CDLL({str(NVRTC)!r})
served = "LD_AUDIT" in os.environ
def compiled(number, *options):
    p, o, size = C.c_void_p(), (C.c_char_p * (1 + len(options)))(b"-arch=sm_90", *options), C.c_size_t()
    n.nvrtcCreateProgram(C.byref(p), b'extern "C" __global__ void k(int* a) {{ *a = %d; }}' % number, None, 0, None, None)
    check(n.nvrtcCompileProgram(p, len(o), o) == 0, "it compiles")
    get = "LTOIR" if options else "CUBIN"
    getattr(n, f"nvrtcGet{{get}}Size")(p, C.byref(size)); data = C.create_string_buffer(size.value); getattr(n, f"nvrtcGet{{get}}")(p, data)
    return data.raw
"""
PROGRAMS = {
    "right": "check(compiled(1)[:4] == b'\\x7fELF', 'code'); done()",
    "skipped": "skip('no such thing here')",
    "missing": "with imports():\n    import a_module_that_is_not_there",
    "wrong_result": "compiled(1); check(not served, 'the sum'); done()",
    "wrong_status": "compiled(1); done(); sys.exit(5 if served else 0)",
    "wrong_alone": "sys.exit('it cannot be')",
    "makes_again": "compiled(os.getpid()); done()",
    "slow": "time.sleep(50)",
    # Named as programs that are known.
    "cupy_cub": "done()",
    "cuda_core_link": "check(len(compiled(1, b'-dlto')) > 0, 'bitcode'); done()",
    "torch_fft": "check(len(compiled(1, b'-dlto')) > 0, 'bitcode'); done()",
}
for name, text in PROGRAMS.items():
    write(f"programs/{name}.py", PROGRAM + text + "\n")


def listed(only, *options, status, kiln=CLI, programs=SCRATCH / "programs"):
    words = [PYTHON, SOURCE / "tests/run/run_list.py", kiln, "--programs", programs, "--only", only, "--out", SCRATCH / "out", "--jobs", 2, "--json", SCRATCH / "list.json", *options]
    done = subprocess.run([*map(str, words)], capture_output=True, text=True)
    check(done.returncode == status, f"{only}: status {done.returncode}, expected {status}", done.stdout, done.stderr)
    if status == 2:
        return done.stderr, {}, {}
    found = json.loads((SCRATCH / "list.json").read_text())
    return done.stdout, found["counts"], {name: p["runs"] for name, p in found["programs"].items()}


def wrong(runs):
    return {phase: one["wrong"] for phase, one in runs.items() if one["wrong"]}


text, counts, runs = listed("^(right|skipped|missing|cuda_core_link)$", status=0)
check(counts == {"right": 14, "wrong": 0, "not_run": 14, "answered": 2, "same": 2, "different": 0}, "counts", text)
check("skipped (no such thing here)" in text and "missing (No module named 'a_module_that_is_not_there')" in text, "what is not run is named", text)
check(runs["right"]["made"]["compiles"]["made"] == 1 and runs["right"]["capsule"]["compiles"]["answered"] == 1, "who makes and who is answered", text)
check(runs["right"]["cold"]["said"]["mapped"] == ["nvrtc"] and runs["right"]["answered"]["said"]["mapped"] == [], "the compiler is loaded without Kiln alone", text)
check(text.count("allowed, ") == 1 and "allowed, capsule: 1 made again: k (LTO-IR has the working directory" in text, "an exception is told, with its reason", text)
check(not (SCRATCH / "out/right/run").exists() and (SCRATCH / "out/right/again.err").exists(), "logs are kept, caches are not")

text, counts, runs = listed("^(wrong_|makes_again|cupy_cub)", "--phases", "cold,made,answered", status=1)
check(set(wrong(runs["wrong_result"])) == {"made", "answered"} and "exit status 1, without Kiln 0: the sum" in wrong(runs["wrong_result"])["made"], "a result", text)
check(wrong(runs["wrong_status"])["answered"][0].startswith("exit status 5, without Kiln 0"), "a status", text)
check(wrong(runs["wrong_alone"])["cold"] == ["exit status 1: it cannot be"], "what fails without Kiln", text)
check(set(wrong(runs["makes_again"])) == {"answered"} and "1 made again: k" in wrong(runs["makes_again"])["answered"], "what is made again", text)
check("is there a stand-in" in wrong(runs["cupy_cub"])["made"][0], "one that should have asked", text)
check((SCRATCH / "out/makes_again/run").exists(), "what went wrong is kept")

text, _, runs = listed("^torch_fft$", "--phases", "made,capsule", status=1)
check(set(wrong(runs["torch_fft"])) == {"capsule"}, "an exception is for whom it names", text)

# A compiler that says another thing the second time cannot be had; one line is changed instead.
write("kiln", f"""#!{PYTHON}
import subprocess, sys
done = subprocess.run([{CLI!r}, *sys.argv[1:]], stderr=subprocess.PIPE, text=True)
sys.stderr.write(done.stderr.replace("1 made again and the same, 0 different", "0 made again and the same, 1 different"))
sys.exit(1 if "--verify" in sys.argv else done.returncode)
""").chmod(0o755)
text, counts, runs = listed("^right$", "--phases", "cold,made,answered,verify", status=1, kiln=SCRATCH / "kiln")
check(wrong(runs["right"]) == {"verify": ["1 different when made again"]} and counts["different"] == 1, "a difference", text)

text, counts, runs = listed("^slow$", "--phases", "cold,own", "--limit", 1, status=1)
check(wrong(runs["slow"]) == {"cold": ["it took too long"]} and counts["not_run"] == 1, "one that does not end", text)
listed("^skipped$", status=77)
check("answered needs made" in listed("^right$", "--phases", "cold,answered", status=2)[0], "a run that needs another")

# With a GPU the real ones are run by scripts/device-test. Here each is built, started, and says what it lacks.
if not pathlib.Path("/dev/nvidiactl").exists():
    real = SOURCE / "tests/run/programs"
    text, counts, runs = listed("", "--phases", "cold", status=77, programs=real)
    check(counts["wrong"] == 0 and counts["not_run"] == len([*real.glob("[!_]*.py"), *real.glob("[!_]*.cpp")]) >= 16, "each is named", text)
