# SPDX-License-Identifier: Apache-2.0
"""tests/audit/house.py, which holds Kiln's own examples to a budget on machines with a GPU, on programs of the test's own: a budget that is kept passes, and
whatever is not as it should be fails."""

import sys

from _audit import FAKE, waiting
from _kiln import CLI, SCRATCH, SOURCE, check, run, write

write("script", waiting(40))
PLAYS = f"""#!{sys.executable}
import ctypes, os
if "CUDA_INJECTION64_PATH" in os.environ:
    ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).InitializeInjection()
"""


def house(folder, budget, status):
    return run(SOURCE / "tests/audit/house.py", CLI, SCRATCH / folder, "--budget", write("a.budget", budget), "--out", SCRATCH / "out",
               program=sys.executable, status=status, KILN_AUDIT_CUPTI_ALWAYS=FAKE, KILN_TEST_CUPTI=SCRATCH / "script").stdout


def example(folder, name, text):
    write(f"{folder}/example_{name}", text).chmod(0o755)


example("good", "one", PLAYS)
example("good", "two", PLAYS)
kept = house("good", "R20.count <= 40\n", 0)
check(kept.count(" kept ") == 2 and "2 of 2 programs keep a.budget" in kept, "a budget that is kept", kept)
broken = house("good", "R20.count <= 39\n", 1)
check(broken.count("BROKEN") == 2 and "measured 40" in broken and "0 of 2" in broken, "a budget that is broken says by what", broken)
example("bad", "one", PLAYS)
example("bad", "gone", f"#!{sys.executable}\nimport sys\nsys.exit('no data')\n")
gone = house("bad", "R20.count <= 40\n", 1)
check("does not run" in gone and "no data" in gone and "1 of 2" in gone, "a program that does not run is no pass", gone)
example("idle", "one", f"#!{sys.executable}\n")
idle = house("idle", "R20.count <= 40\n", 1)
check("a GPU was expected" in idle, "nor is one that leaves the GPU alone", idle)
write("script", waiting(3))
rested = house("good", "R16.count <= 0\n", 0)
check("2 of 2" in rested, "an example without steps keeps what counts by them", rested)
rested = house("good", "R16.count <= 0\nR22.per_step <= 1\n", 1)
check("no answer" in rested and "0 of 2" in rested, "but not every line that is without an answer", rested)
(SCRATCH / "none").mkdir()
check("0 of 0" in house("none", "R20.count <= 40\n", 1), "nor is an empty folder")
print("ok")
