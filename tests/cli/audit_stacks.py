# SPDX-License-Identifier: Apache-2.0
"""Which line is to blame, in programs without Python and in a Python that this machine may not have: the recorder walks both kinds of stacks,
and `kiln audit` turns native frames into lines while the program is still there."""

import os
import shutil
import subprocess
import sys

from _audit import FAKE, told, waiting
from _kiln import BIN, SCRATCH, check, run, write

compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
if compiler is None or shutil.which("addr2line") is None:
    print("skipped: no C++ compiler or no addr2line here")
    sys.exit(77)

STEPS = 40
SOURCE = r'''
#include <cstdlib>
#include <dlfcn.h>
namespace {
unsigned (*call)(unsigned);
template <class F> F* find(char const* library, char const* name) {
    return reinterpret_cast<F*>(dlsym(dlopen(std::getenv(library), RTLD_NOW), name));
}
}
__attribute__((noinline)) void solve() {
    call(3);  // FIRST
    call(3);  // SECOND
    asm volatile("");
}
__attribute__((noinline)) static void iterate() {
    solve();  // ITERATE
    asm volatile("");
}
int main() {
    if (find<int()>("CUDA_INJECTION64_PATH", "InitializeInjection")() != 1) return 1;
    call = find<unsigned(unsigned)>("KILN_AUDIT_CUPTI_ALWAYS", "fake_call");
    for (int i = 0; i < STEPS; ++i) iterate();
}
'''
source = write("solver.cpp", SOURCE.replace("STEPS", str(STEPS)))
program = SCRATCH / "solver"
subprocess.run([compiler, "-std=c++17", "-g", "-O1", str(source), "-o", str(program), "-ldl"], check=True)
write("script", waiting(STEPS, per_step=2))


def line_of(marker):
    return "solver.cpp:" + str(1 + next(i for i, line in enumerate(source.read_text().splitlines()) if marker in line))


def waits_of(report):
    return {f["where"]: f for f in report["findings"] if f["rule"] == "R20"}


def audit(*command, keep, **environment):
    return told(run("audit", "--json", "--keep", keep, "--", *command, KILN_AUDIT_CUPTI_ALWAYS=FAKE, KILN_TEST_CUPTI=SCRATCH / "script", **environment))


# Two lines of one function, at the same depth, called through another.
kept = SCRATCH / "kept"
waits = waits_of(audit(program, keep=kept))
check(set(waits) == {line_of("FIRST"), line_of("SECOND")}, "both lines are named", waits)
for found in waits.values():
    check(found["count"] == STEPS and found["by"] == "caller", "each as often as it waited", found)
    check("solve()" in found["stack"][0] and any(f"{line_of('ITERATE')} in " in frame for frame in found["stack"]), "with those who called", found["stack"])

# The lines are in the recording: the program may change or go.
program.rename(SCRATCH / "gone")
check(set(waits_of(told(run("audit", "report", kept, "--json")))) == set(waits), "a kept recording says the same", waits)
(kept / "lines.txt").write_text("nonsense\n\tnonsense\n" + str(program) + "\t+zz\n")
check(all(where.startswith("solver+0x") for where in waits_of(told(run("audit", "report", kept, "--json")))), "and without lines where it was", waits)

# Without lines a program still has names, and without names places.
(SCRATCH / "gone").rename(program)
subprocess.run(["strip", "--strip-debug", str(program)], check=True)
named = waits_of(audit(program, keep=SCRATCH / "named"))
check(len(named) >= 1 and all("solve()" in f["stack"][0] for f in named.values()), "the function is known", named)
subprocess.run(["strip", str(program)], check=True)
bare = waits_of(audit(program, keep=SCRATCH / "bare"))
check(len(bare) == 2 and all(where.startswith("solver+0x") for where in bare), "an object and an offset", bare)
check(not waits_of(audit(program, keep=SCRATCH / "off", KILN_AUDIT_STACKS="none")).keys() - {"?"}, "stacks can be turned off")

# A framework forty frames deep between the user's line and the call.
deep = write("deep.py", f"""import ctypes, os
ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).InitializeInjection()
fake = ctypes.CDLL(os.environ["KILN_AUDIT_CUPTI_ALWAYS"])
exec(compile("def fit(depth): return fit(depth - 1) if depth else (fake.fake_call(3), fake.fake_call(3))", "/opt/site-packages/trainer.py", "exec"))
for _ in range({STEPS}):
    fit(40)  # FIT
""")
framework = waits_of(audit(os.path.realpath(sys.executable), deep, keep=SCRATCH / "deep"))
check(set(framework) == {"deep.py:6"} and framework["deep.py:6"]["by"] == "wrapper", "the user's line is found below it", framework)

# Python 3.13, as its headers have it.
python = waits_of(audit("env", f"LD_PRELOAD={BIN / 'kiln-test-fake_python.so'}", program, keep=SCRATCH / "python"))
check(set(python) == {"train.py:12"}, "a frame of Python's comes before native ones", python)
check(python["train.py:12"]["count"] == 2 * STEPS and python["train.py:12"]["stack"] == ["train.py:12 in step", "train.py:40 in main"], "the whole stack", python)
print("ok")
