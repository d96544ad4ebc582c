# SPDX-License-Identifier: Apache-2.0
"""What the tests of `kiln run` share: the compiler, a small program that uses it, and both ways to start it."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from _kiln import BIN, CACHE, CLI, SCRATCH, SOURCE, check, data, run, run_tests, test, write  # most of it for who imports this

HERE = pathlib.Path(__file__).parent
CUDA = pathlib.Path(os.environ.get("KILN_TEST_CUDA_PATH") or "/usr/local/cuda")
PYTHON = os.path.realpath(sys.executable)


def library(stem):
    for folder in ("lib64", "lib"):
        found = sorted(f for f in (CUDA / folder).glob(f"lib{stem}.so.*") if re.fullmatch(r"\.so\.\d+", "".join(f.suffixes[-2:])))
        if found:
            return found[0]
    return None


NVRTC, NVJITLINK = library("nvrtc"), library("nvJitLink")
if NVRTC is None or not (BIN.parent / "lib/kiln/intercept/hook.so").exists():
    print("skipped: no NVRTC here, or no stand-ins in this build")
    sys.exit(77)

# A compiler off the loader's path finds its own parts only where the program's user says so; Kiln finds them by itself.
os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [str(NVRTC.parent), os.environ.get("LD_LIBRARY_PATH")]))

write("work/include/kiln_test_header.h", "#define VALUE 41\n")
write("work/include/warns.h", "__device__ inline int f() { int unused; return 3; }\n")
write("work/include/tells.h", "__device__ inline char told(int i) { const char* s = __FILE__; return s[i]; }\n")
write("work/some/beside.h", "#define BESIDE 5\n")
WORK = SCRATCH / "work"


def under(*arguments, options=(), status=0, **environment):
    return run("run", *options, "--", *arguments, status=status, **environment)


def bare(*arguments, **environment):
    return run(*arguments[1:], program=arguments[0], **environment)


# A small program: one compile, what it said, and whether the compiler was loaded.
write("one.py", r'''
import ctypes as C, json, os, re, sys
n = C.CDLL(sys.argv[1]); p = C.c_void_p(); source = sys.argv[2].encode(); options = [o.encode() for o in sys.argv[3:]]
assert n.nvrtcCreateProgram(C.byref(p), source, None, 0, None, None) == 0
status = n.nvrtcCompileProgram(p, len(options), (C.c_char_p * len(options))(*options))
z = C.c_size_t(); n.nvrtcGetProgramLogSize(p, C.byref(z)); log = C.create_string_buffer(max(1, z.value)); n.nvrtcGetProgramLog(p, log)
c = C.c_size_t(); s2 = n.nvrtcGetCUBINSize(p, C.byref(c)); d = C.create_string_buffer(max(1, c.value)); n.nvrtcGetCUBIN(p, d)
import hashlib
loaded = any("r-xp" in l and re.search(r"/libnvrtc\.so\.[\d.]+$", l.strip()) and "standins" not in l for l in open("/proc/self/maps"))
print(json.dumps({"status": status, "log": log.value.decode(), "cubin": hashlib.sha256(d.raw[:c.value]).hexdigest(), "loaded": loaded}))
''')
KERNEL = 'extern "C" __global__ void k(int* a) { *a = %d; }'
# One that takes its time.
LONG = ("template <int N> struct s { static __device__ int f(int x) { return s<N - 1>::f(x * N + 1) + x; } };\n"
        "template <> struct s<0> { static __device__ int f(int x) { return x; } };\n"
        'extern "C" __global__ void k(int* a) { *a = s<150>::f(*a) ^ %d; }')


def one(number, *options, kiln=True, source=None, **kwargs):
    words = [PYTHON, SCRATCH / "one.py", NVRTC, source or KERNEL % number, "-arch=sm_90", *options]
    done = under(*words, **kwargs) if kiln else bare(*words)
    return json.loads(done.stdout), done.stderr


def children_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


def maps_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return ""


def mounts_are_possible():
    return shutil.which("unshare") and subprocess.run(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True).returncode == 0


def mounted(script, *words):
    """A command in a mount namespace of its own, after what `script` does there."""
    return ["unshare", "-m", "sh", "-c", script + '\nexec "$0" "$@"', *words]


# Compiles, lets something happen, and compiles twice more: the same and another one.
WHILE = r'''
import ctypes as C, hashlib, os, sys
n = C.CDLL(sys.argv[1])
def compiled(number):
    p, o, size = C.c_void_p(), (C.c_char_p * 1)(b"-arch=sm_90"), C.c_size_t()
    n.nvrtcCreateProgram(C.byref(p), b'extern "C" __global__ void w(int* a) { *a = %d; }' % number, None, 0, None, None)
    status = n.nvrtcCompileProgram(p, 1, o)
    n.nvrtcGetCUBINSize(p, C.byref(size)); data = C.create_string_buffer(size.value); n.nvrtcGetCUBIN(p, data)
    return status, hashlib.sha256(data.raw).hexdigest()[:16]
first = compiled(1)
assert os.system(sys.argv[2]) == 0
print(*first, *compiled(1), *compiled(int(sys.argv[3]) if len(sys.argv) > 3 else 2))
'''
