# SPDX-License-Identifier: Apache-2.0
"""A toolkit the loader knows nothing of compiles, with its own builtins; others on the loader's path are not taken."""

import hashlib
import os
import pathlib
import shutil
import struct
import sys

from _kiln import FULL, SCRATCH, check, data, run, write

found = [f for f in data("doctor", status=None)["findings"] if f["what"] == "NVRTC" and f["state"] == "ok"]
if not found:
    print("NVRTC is not installed")
    sys.exit(77)
nvrtc = pathlib.Path(found[0]["value"].split(" (by ")[0])
# By the name NVRTC asks for, which may be a link.
builtins = min(nvrtc.parent.glob("libnvrtc-builtins.so.*.*"), key=lambda p: len(p.name))


def interpreter(program):
    """The loader a program names in its headers."""
    head = pathlib.Path(program).read_bytes()
    offset, size, count = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
    for i in range(count):
        kind, _, at, _, _, length = struct.unpack_from("<IIQQQQ", head, offset + i * size)
        if kind == 3:
            return head[at:at + length].rstrip(b"\0").decode()
    return None


# A copy somewhere; the loader is told to forget its cache, so that it knows the copy's directory no more than any other.
toolkit = SCRATCH / "toolkit" / "lib64"
toolkit.mkdir(parents=True)
for file in (nvrtc, builtins):
    shutil.copy(file, toolkit / (nvrtc.name if file == nvrtc else builtins.name))
loader = interpreter(FULL)
worker = write("worker.sh", f'#!/bin/sh\nexec {loader} --inhibit-cache {os.environ["KILN_TEST_WORKER"]}\n')
worker.chmod(0o755)
write("k.cu", 'extern "C" __global__ void k(long* x) { x[0] = (long)NULL; }\n')
off_path = dict(KILN_CUDA_PATH=toolkit.parent, LD_LIBRARY_PATH="", KILN_DISABLE="1")
for how in (dict(KILN_WORKERS="0"), dict(KILN_WORKERS="1", KILN_WORKER=worker)):
    run("--inhibit-cache", FULL, "compile", "k.cu", "--arch", "sm_90", program=loader, **off_path, **how)

# One library, named by its file: no toolkit is looked for, and what it makes is kept under its own name.
named = data("compile", "k.cu", "--arch", "sm_90", KILN_CUDA_PATH=SCRATCH / "no-cuda", KILN_NVRTC=toolkit / nvrtc.name)[0]
check(named["from"] in ("compiled", "disk"), "a named compiler compiles", named)
wrong = run("compile", "k.cu", "--arch", "sm_80", KILN_NVRTC=SCRATCH / "k.cu", status=1).stderr
check("KILN_NVRTC=" in wrong, "one that is none is named, and no other is taken", wrong)

warm = run("compile", "k.cu", "--arch", "sm_90", KILN_NVRTC=SCRATCH / "nowhere.so", status=1).stderr
check("nowhere.so" in warm and "unset it" in warm, "also where another has made it before", warm)

warm = run("compile", "k.cu", "--arch", "sm_90", KILN_CUDA_PATH=SCRATCH / "nowhere", status=1).stderr
check("KILN_CUDA_PATH=" in warm and "nowhere: no such directory" in warm and "unset it" in warm, "and so is a toolkit that is not there", warm)
(SCRATCH / "empty").mkdir()
hidden = data("compile", "k.cu", "--arch", "sm_90", KILN_CUDA_PATH=SCRATCH / "empty")[0]
check(hidden["from"] == "disk", "an empty one hides all of them", hidden)

# Other builtins on the loader's path: as before. Other builtins beside NVRTC: another compiler.
plain = data("compile", "k.cu", "--arch", "sm_90", KILN_CUDA_PATH=toolkit.parent)[0]
other = SCRATCH / "other"
other.mkdir()
changed = builtins.read_bytes().replace(b"#define NULL 0", b"#define NULL 7")
(other / builtins.name).write_bytes(changed)
for how in (dict(KILN_WORKERS="0"), dict(KILN_WORKERS="1")):
    again = data("compile", "k.cu", "--arch", "sm_90", "-o", "again", LD_LIBRARY_PATH=other, KILN_RECACHE="1",
                 KILN_CUDA_PATH=toolkit.parent, **how)[0]
    check(again["key"] == plain["key"] and again["from"] == "compiled", "the builtins beside NVRTC are taken", plain, again)
image = hashlib.sha256(next((SCRATCH / "again").iterdir()).read_bytes()).hexdigest()
if changed != builtins.read_bytes():
    (toolkit / builtins.name).write_bytes(changed)
    beside = data("compile", "k.cu", "--arch", "sm_90", "-o", "beside", KILN_CUDA_PATH=toolkit.parent)[0]
    check(beside["from"] == "compiled" and beside["key"] != plain["key"], "other builtins are another compiler", plain, beside)
    check(hashlib.sha256(next((SCRATCH / "beside").iterdir()).read_bytes()).hexdigest() != image, "and make other code")

# Without builtins there is no compiler; the compile and doctor say what is missing.
(toolkit / builtins.name).unlink()
told = run("compile", "k.cu", "--arch", "sm_80", KILN_CUDA_PATH=toolkit.parent, status=1).stderr
check("that can be used" in told and "libnvrtc-builtins" in told, "what is wrong with the compiler is said", told)
seen = [f["value"] for f in data("doctor", status=None, KILN_CUDA_PATH=toolkit.parent)["findings"] if f["what"] == "NVRTC"]
check(len(seen) == 1 and "libnvrtc-builtins.so" in seen[0], "what is missing is named", seen)
