# SPDX-License-Identifier: Apache-2.0
"""A program with raised privileges takes no file name from the environment of who started it."""

import os
import shutil
import subprocess
import sys

from _kiln import CLI, KERNEL, SCRATCH, check, run, write

if os.getuid() != 0 or os.statvfs(SCRATCH).f_flag & os.ST_NOSUID:
    print("skipped: needs root, and a file system with set-user-id programs")
    sys.exit(77)

NOBODY = 65534
SCRATCH.chmod(0o755)
write("k.cu", KERNEL.replace("VALUE", "1")).chmod(0o644)
raised = SCRATCH / "kiln-raised"
shutil.copy(CLI, raised)
raised.chmod(0o4755)


def start(program, events, **more):
    env = {"PATH": os.environ["PATH"], "HOME": str(SCRATCH), "KILN_EVENTS": str(events), "KILN_PROFILE": str(events) + ".profile"}
    return subprocess.run([program, "compile", "k.cu", "-a", "sm_90"], env=env, cwd=SCRATCH, capture_output=True, timeout=240, **more)


start(CLI, SCRATCH / "plain")
check((SCRATCH / "plain").exists(), "this command does write events")
start(raised, SCRATCH / "raised", user=NOBODY, group=NOBODY, extra_groups=[])
check(not (SCRATCH / "raised").exists(), "and writes none where its user may not choose files")
check(not list(SCRATCH.glob("raised.profile*")), "no profile either")

# Without a worker the compiler runs in the program, and would do what the variables say: write a file as root.
(SCRATCH / "closed").mkdir(mode=0o755)
hostile = {"NVRTCWIZ": "3153394", "NVRTC_APPEND_FLAGS": f"--time={SCRATCH}/closed/times"}
env = {"PATH": os.environ["PATH"], "HOME": str(SCRATCH), "KILN_CUDA_PATH": os.environ.get("KILN_TEST_CUDA_PATH", ""), **hostile}
alone = SCRATCH / "alone/kiln"
alone.parent.mkdir()
shutil.copy(CLI, alone)
alone.chmod(0o4755)
subprocess.run([alone, "compile", "k.cu", "-a", "sm_90"], env=env, cwd=SCRATCH, capture_output=True, timeout=240,
               user=NOBODY, group=NOBODY, extra_groups=[])
check(not (SCRATCH / "closed/times").exists(), "nor does its compiler")
