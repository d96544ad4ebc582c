# SPDX-License-Identifier: Apache-2.0
"""Recordings that somebody else made: a newer one is refused by name, what is not ours is not judged, and no page shows a file because a recording names it."""

import json
import os
import sys
import time

from _audit import FAKE, told, waiting
from _kiln import SCRATCH, check, run, write

PYTHON = os.path.realpath(sys.executable)
STEPS = 40
write("script", waiting(STEPS))
program = write("train.py", f"""import ctypes, os
assert ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).InitializeInjection() == 1
fake = ctypes.CDLL(os.environ["KILN_AUDIT_CUPTI_ALWAYS"])
for _ in range({STEPS}):
    fake.fake_call(3)  # the line to blame
""")
os.utime(program, (1_600_000_000, 1_600_000_000))
kept, page = SCRATCH / "kept", SCRATCH / "page.html"
run("audit", "--keep", kept, "-o", page, "--", PYTHON, program, KILN_AUDIT_CUPTI_ALWAYS=FAKE, KILN_TEST_CUPTI=SCRATCH / "script")
whole = next(kept.glob("p*.kilnrec")).stat().st_size

# ---- source

line = "<mark>    5      fake.fake_call(3)  # the line to blame</mark>"
check(line in page.read_text(), "the page shows the line", page.read_text())
check(oct((kept / "sources.txt").stat().st_mode)[-3:] == "600", "nobody else reads it")
program.write_text("a secret\n" * 10)
os.utime(program, (1_600_000_000, 1_600_000_000))
run("audit", "report", kept, "-o", page)
check(line in page.read_text() and "a secret" not in page.read_text(), "as it was when it ran", page.read_text())
(kept / "sources.txt").unlink()
run("audit", "report", kept, "-o", page)
check("a secret" not in page.read_text() and "train.py:5" in page.read_text(), "a file that a recording names is not opened", page.read_text())
for odd in ("\n\n\t\n\tx\n/a\n/a\tb\tc\n/a\t-1\t2\n" + f"{program}\t5\t99999999999999999999\n\tx\n", "\0" * 5000, f"{program}\t5\t1\n" + "\t<q>\n" * 100000):
    (kept / "sources.txt").write_text(odd)
    run("audit", "report", kept, "-o", page)
    check("<q>" not in page.read_text(), "odd sources", odd[:80])
check(page.read_text().count("&lt;q&gt;") < 50, "no more lines than there can be", page.read_text().count("&lt;q&gt;"))

# ---- a file that is long, and empty for the most part

os.truncate(next(kept.glob("p*.kilnrec")), 1 << 40)
began = time.monotonic()
sparse = told(run("audit", "report", kept, "--json"))
check(sparse["processes"][0]["kernels"] == STEPS and time.monotonic() - began < 30, "what is in it is read", time.monotonic() - began)
run("audit", "report", kept, "--fail-on", "blocking", status=4)
os.truncate(next(kept.glob("p*.kilnrec")), whole)

# ---- run.json

about = json.loads((kept / "run.json").read_text())
for version in (2, 10**30):
    (kept / "run.json").write_text(json.dumps({**about, "version": version}))
    newer = run("audit", "report", kept, "--fail-on", "blocking", status=1)
    check("run.json" in newer.stderr and "recording of format" in newer.stderr, "a newer one is refused by name", newer.stderr)
    run("audit", "diff", kept, kept, status=1)
(kept / "run.json").write_text(json.dumps({**about, "format": "something-else"}))
run("audit", "report", kept, "--fail-on", "blocking", status=4)
check(told(run("audit", "report", kept, "--json"))["processes"][0]["kernels"] == STEPS, "the readable part")
(kept / "run.json").write_text(json.dumps(about))
run("audit", "report", kept, "--fail-on", "blocking")
print("ok")
