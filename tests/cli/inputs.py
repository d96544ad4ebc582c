# SPDX-License-Identifier: Apache-2.0
"""Nothing that can change a kernel gets past the key: variables, headers in odd places, options with files, NULs."""

import os
import shutil
import tempfile

from _kiln import SCRATCH, check, data, run, write

BODY = 'extern "C" __global__ void p(int* x) { __shared__ int s[V*64]; s[threadIdx.x]=x[0]; __syncthreads(); x[threadIdx.x]=s[63-threadIdx.x]; }\n'
HERE, WORKERS = dict(KILN_WORKERS="0"), dict(KILN_WORKERS="1")


def shared(*arguments, **environment):
    one = data("compile", *arguments, "--arch", "sm_90", **environment)[0]
    return one["from"], one["kernels"][0]["shared_bytes"]


# Variables of the compiler: workers do not have them, and what the host compiled with them is not kept for others.
write("f.cu", 'extern "C" __global__ void f(float* x) { x[0] = sinf(x[1]) / x[2]; }\n')
wizard = dict(NVRTCWIZ="3153394", NVRTC_APPEND_FLAGS="-use_fast_math")
for how, name in ((WORKERS, "w"), (HERE, "h")):
    run("compile", "f.cu", "--arch", "sm_90", "-o", f"{name}1", KILN_CACHE_DIR=SCRATCH / name, **how, **wizard)
    run("compile", "f.cu", "--arch", "sm_90", "-o", f"{name}2", KILN_CACHE_DIR=SCRATCH / name, **how)
    run("compile", "f.cu", "--arch", "sm_90", "-o", f"{name}3", KILN_CACHE_DIR=SCRATCH / name, KILN_DISABLE="1", **how)
    seen = [(SCRATCH / f"{name}{i}" / "f.sm_90.cubin").read_bytes() for i in (2, 3)]
    check(seen[0] == seen[1], "who did not set the variable gets what they would have compiled", name)

# Headers in memory file systems, with real paths.
if os.path.isdir("/dev/shm"):
    place = tempfile.mkdtemp(dir="/dev/shm")
    try:
        header = os.path.join(place, "q.h")
        write("shm.cu", f'#include "{header}"\n' + BODY)
        for value, bytes_ in ((1, 256), (4, 1024)):
            with open(header, "w") as file:
                file.write(f"#define V {value}\n")
            got = shared("shm.cu")
            check(got == ("compiled", bytes_), "a header in /dev/shm counts", got)
        check(shared("shm.cu") == ("disk", 1024), "and is a hit when it stays")
    finally:
        shutil.rmtree(place)

# A relative --pre-include, with and without workers.
write("pre.cu", BODY)
for how in (HERE, WORKERS):
    for value, bytes_ in ((1, 256), (4, 1024)):
        write("pre.h", f"#define V {value}\n")
        got = shared("pre.cu", "--option=--pre-include=pre.h", **how)
        check(got[1] == bytes_, "a header named by --pre-include counts", how, got)

# Paths are the system's: what follows a link.
(SCRATCH / "real/deep").mkdir(parents=True)
os.symlink("real/deep", SCRATCH / "link")
write("real/inc/q.h", "#define V 4\n")
write("inc/q.h", "#define V 1\n")
write("linked.cu", "#include <q.h>\n" + BODY)
check(shared("linked.cu", "-I", "link/../inc")[1] == 1024, "-I link/../inc is where the link leads")
warmed = dict(KILN_CACHE_DIR=SCRATCH / "warmed")
run("warm", "linked.cu", "-I", "link/../inc", "--arch", "sm_90", **warmed)
got = shared("linked.cu", "-I", "link/../inc", KILN_JIT="forbid", **warmed)
check(got == ("disk", 1024), "for 'kiln warm' too", got)

# A folder with a header's name, and the hit after it.
(SCRATCH / "folder/q.h").mkdir(parents=True)
shared("linked.cu", "-I", "folder", "-I", "inc")
check(shared("linked.cu", "-I", "folder", "-I", "inc") == ("disk", 256), "a folder with a header's name is no header")

# Options that read or write files of their own, and a NUL.
out = SCRATCH / "stats"
done = run("compile", "f.cu", "--arch", "sm_90", f"--option=--ptxas-options=--compiler-stats-file={out}", status=1)
check("--compiler-stats-file" in done.stderr and not out.exists(), "an option that writes is refused by name", done.stderr)
(SCRATCH / "nul.cu").write_bytes(b'extern "C" __global__ void n(int* x) { x[0] = 1; }\n\0 this is not compiled')
check("NUL" in run("compile", "nul.cu", "--arch", "sm_90", status=1).stderr, "a NUL in a source is refused")

# -w is asked for by each on their own.
write("warn.cu", 'extern "C" __global__ void w(int* x) { int unused; x[0] = 1; }\n')
quiet = run("compile", "warn.cu", "--arch", "sm_90", "--option=-w")
check("unused" not in quiet.stderr, "-w is quiet", quiet.stderr)
check("unused" in run("compile", "warn.cu", "--arch", "sm_90").stderr, "and nobody else is")

# A reproduction file is read by the command that is told to.
write("not.kiln-repro", "something else\n")
check("not a reproduction file" in run("compile", "not.kiln-repro", status=1).stderr, "what is none is named")
