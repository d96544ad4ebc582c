# SPDX-License-Identifier: Apache-2.0
"""`kiln run`: programs that know nothing of Kiln get the same answers with it as without, from whatever state the cache is in,
and notice nothing of it otherwise."""

import hashlib
import json
import os
import pathlib
import platform
import pty
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

from _kiln import BIN, CACHE, CLI, SCRATCH, SOURCE, check, data, run, run_tests, test, write

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


# ---- a small program: one compile, what it said, and whether the compiler was loaded

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


LONG = ("template <int N> struct s { static __device__ int f(int x) { return s<N - 1>::f(x * N + 1) + x; } };\n"
        "template <> struct s<0> { static __device__ int f(int x) { return x; } };\n"
        'extern "C" __global__ void k(int* a) { *a = s<150>::f(*a) ^ %d; }')


def one(number, *options, kiln=True, source=None, **kwargs):
    words = [PYTHON, SCRATCH / "one.py", NVRTC, source or KERNEL % number, "-arch=sm_90", *options]
    done = under(*words, **kwargs) if kiln else bare(*words)
    return json.loads(done.stdout), done.stderr


# The same, with a name and headers of its own.
write("named.py", r'''
import ctypes as C, hashlib, sys
n = C.CDLL(sys.argv[1]); p = C.c_void_p(); words = sys.argv[4:]; headers = [w[2:].split("=", 1) for w in words if w.startswith("H:")]; expressions = [w[2:].encode() for w in words if w.startswith("E:")]
options = [w.encode() for w in words if not w.startswith(("H:", "E:"))]; texts = (C.c_char_p * len(headers))(*(t.encode() for _, t in headers)); names = (C.c_char_p * len(headers))(*(h.encode() for h, _ in headers))
assert n.nvrtcCreateProgram(C.byref(p), sys.argv[2].encode(), sys.argv[3].encode(), len(headers), texts if headers else None, names if headers else None) == 0
for e in expressions: assert n.nvrtcAddNameExpression(p, e) == 0
status = n.nvrtcCompileProgram(p, len(options), (C.c_char_p * len(options))(*options)); size = C.c_size_t()
n.nvrtcGetPTXSize(p, C.byref(size)); ptx = C.create_string_buffer(max(1, size.value)); n.nvrtcGetPTX(p, ptx)
print(status, hashlib.sha256(ptx.value).hexdigest()[:12] if status == 0 else "")
''')


@test
def answers_are_the_same():
    calls = [PYTHON, HERE / "_foreign_calls.py", NVRTC, NVJITLINK or "-", WORK]
    want = json.loads(bare(*calls).stdout)

    def compare(state, options=(), expected=want, **environment):
        done = under(*calls, options=options, **environment)
        got = json.loads(done.stdout)
        different = [k for k in expected if got.get(k) != expected[k]]
        check(not different, f"{state}: other answers to {different}", *(f"{k}\n  want {expected[k]}\n  got  {got.get(k)}" for k in different))
        return done.stderr

    compare("empty cache")
    said = compare("full cache", options=("-v",))
    made = [line for line in said.splitlines() if " made " in line and "run: nv" in line]
    check(not made, "with a full cache nothing is made", *made)
    compare("read-only cache", KILN_READONLY=1)
    compare("no cache", KILN_DISABLE=1)
    compare("a cache that cannot be made", KILN_CACHE_DIR="/proc/nowhere")
    write("work/include/kiln_test_header.h", "#define VALUE 42\n")
    edited = json.loads(bare(*calls).stdout)
    check(edited["header on disk"] != want["header on disk"], "the edit changes the result")
    compare("a header edited", expected=edited)
    write("work/include/kiln_test_header.h", "#define VALUE 41\n")
    compare("the edit taken back")
    said = compare("every answer verified", options=("--verify",))
    check("0 different" in said, "nothing differs when it is made again", said)
    for entry in CACHE.glob("v1/*/*.kiln"):
        data = bytearray(entry.read_bytes())
        data[len(data) // 2] ^= 1
        entry.write_bytes(data)
    compare("every entry damaged")
    flags = json.loads(bare(*calls, NVRTC_APPEND_FLAGS="-lineinfo").stdout)
    compare("flags from the environment", expected=flags, NVRTC_APPEND_FLAGS="-lineinfo")


@test
def a_hit_loads_no_compiler():
    want, _ = one(100, kiln=False)
    first, said = one(100)
    check(first == {**want, "loaded": False} and " 1 made" in said, "made first, by a worker", first, want, said)
    again, said = one(100)
    check(again == {**want, "loaded": False}, "answered without the compiler", again, want)
    check("1 compiles answered" in said and " 0 made" in said, "one line says so", said)
    listed = run("cache", "list").stdout
    check("nvrtc" in listed, "the answer is in Kiln's cache", listed)
    check(run("cache", "verify").returncode == 0, "and passes its checks")


@test
def names_that_the_code_knows():
    """What a program makes of the names of its files is what it would make without us, wherever it lies."""
    body = "extern \"C\" __global__ void n(int* x) { __shared__ int s[sizeof(%s)]; s[threadIdx.x] = x[0]; __syncthreads(); x[threadIdx.x] = s[3]; x[1] = %s[1]; }"
    told = 'extern "C" __global__ void n(int* x) { x[0] = %s[10]; }'
    kernels = {"its length": [body % ("__FILE__", "__FILE__")],
               "pasted": ["#define P(a, b) P2(a, b)\n#define P2(a, b) a##b\n" + body % ("P(__FI, LE__)", "P(__FI, LE__)")],
               "a builtin": [body % ("__builtin_FILE()", "__builtin_FILE()")],
               "in a structure": ["__device__ int y; __device__ struct { int* p; char f[200]; } x = { &y, __FILE__ };\nextern \"C\" __global__ void n(int* o) { o[0] = x.f[3]; o[1] = *x.p; }"],
               "wide": ["__device__ char16_t const f[] = u\"\" __FILE__; extern \"C\" __global__ void n(int* o) { o[0] = f[o[1]]; }"],
               "a header's": ["#include <named.h>\n" + body % ("NAME", "NAME"), f"-I{SCRATCH}/named"],
               "a macro of a header that is called as CUDA's are": ["#include <cuda_named.h>\n" + body % ("NAME", "NAME"), f"-I{SCRATCH}/named"],
               "pieces in the source and in options": ["#define P(a, b) P2(a, b)\n#define P2(a, b) a##b\n#define WHOLE P(_, P(_, P(X, P(Y, P(_, _)))))\n" + body % ("WHOLE", "WHOLE"), "-DX=FI", "-DY=LE"],
               "by a builtin, after a blank, in a folder called cub": ["#include <cub/blank.h>\n" + told % "NAME", f"-I{SCRATCH}/named"],
               "pasted in a folder called nv": ["#include <nv/pasted.h>\n" + body % ("NAME", "NAME"), f"-I{SCRATCH}/named"],
               "by a macro that begins as CUB's do": ["#include <cub/macro.h>\n" + body % ("NAME", "NAME"), f"-I{SCRATCH}/named"],
               "by an assert of one's own": ["#include <cuda_assert.h>\n" + body % ("assert(1)", "assert(1)"), f"-I{SCRATCH}/named"],
               "by another name of source_location": ["#include <cuda_where.h>\n" + told % "where::current().file_name()", f"-I{SCRATCH}/named", f"-I{CUDA}/include/cccl"],
               "a name expression": ["template <int N> __global__ void n(int* x) { x[0] = N; }", "E:n<sizeof(__BASE_FILE__)>"],
               "a header in memory, by its place": ['#include "placed.h"\nextern "C" __global__ void n(int* x) { *x = PLACED; }', "H:/nowhere/bbbb/placed.h=#define PLACED 3"]}
    write("named/named.h", "#define NAME __FILE__\n")
    write("named/cuda_named.h", "#define NAME __FILE__\n")
    write("named/cub/blank.h", "#define NAME __builtin_FILE ()\n")
    write("named/nv/pasted.h", "#define P(a, b) P2(a, b)\n#define P2(a, b) a##b\n#define NAME P(__FI, LE__)\n")
    write("named/cub/macro.h", "#define CUB_NAME __FILE__\n#define NAME CUB_NAME\n")
    write("named/cuda_assert.h", "#define assert(x) __FILE__\n")
    write("named/cuda_where.h", "#include <cuda/std/source_location>\nusing where = cuda::std::source_location;\n")
    if not (CUDA / "include/cccl/cuda/std/source_location").exists():
        del kernels["by another name of source_location"]
    for folder in ("/nowhere/aaaaaaaaaaaaaaaa", "/nowhere/bbbb"):
        for what, (source, *options) in kernels.items():
            words = [PYTHON, SCRATCH / "named.py", NVRTC, source, folder + "/k.cu", "-arch=compute_90", *options]
            want = bare(*words).stdout
            seen = [under(*words).stdout, under(*words).stdout]
            check(seen == [want, want], f"{what}, in {folder}: the same code", want, seen)
    # Compared when it is made for the first time, too.
    words = [PYTHON, SCRATCH / "named.py", NVRTC, KERNEL % 950, "/nowhere/cc/k.cu", "-arch=compute_90"]
    done = under(*words, options=("--verify",))
    check("1 made again and the same, 0 different" in done.stderr and " 1 made" in done.stderr, "a first run is verified", done.stderr)
    # What says when it was compiled cannot be kept.
    write("named/when.h", "#define WHEN __TIME__\n")
    cat = "#define D3(a, b, c) a##b##c\n#define C3(a, b, c) D3(a, b, c)\n#define C2(a, b) a##b\n"
    write("named/wraps.h", "#define WRAP(x) __##x##__\n")
    write("named/cuda_wraps.h", "#define WRAP(x) __##x##__\n")
    write("named/middle.h", "#define X TIME\n")
    write("named/cub/halves.h", "#define H2(a, b) a##b\n#define H(a, b) H2(a, b)\n#define WHEN H(H(__, DA), H(TE, __))\n")
    whole = "#define C2_(a, b) C2(a, b)\n__device__ char const* w = C2_(_, C2_(_, C2_(X, C2_(_, _)))); "
    for source, option in (("__device__ char const* w = __TIME__; ", "-DX"), (cat + whole, "-DX=TIME"), (cat + "#include <middle.h>\n" + whole, f"-I{SCRATCH}/named"), ("#include <cuda_wraps.h>\n__device__ char const* w = WRAP(TIME); ", f"-I{SCRATCH}/named"), (cat + "__device__ char const* w = C3(__, TIME, __); ", "-DX"), (cat + "__device__ char const* w = C2(__D, ATE__); ", "-DX"),
                           (cat + "__device__ char const* w = C3(__, MIDDLE, __); ", "-DMIDDLE=TIME"), ("__device__ char const* w = __TI\\\nME__; ", "-DX"), ("#include <wraps.h>\n__device__ char const* w = WRAP(TIME); ", f"-I{SCRATCH}/named"), ("#include <when.h>\n__device__ char const* w = WHEN; ", f"-I{SCRATCH}/named"), ("#include <cub/halves.h>\n__device__ char const* w = WHEN; ", f"-I{SCRATCH}/named")):
        done = under(PYTHON, SCRATCH / "one.py", NVRTC, source + KERNEL % 951, "-arch=sm_90", option)
        check(json.loads(done.stdout)["status"] == 0 and "1 left to the library itself" in done.stderr, "the time is asked anew", source, option, done.stderr)
    done = under(PYTHON, SCRATCH / "named.py", NVRTC, "template <int N> __global__ void n(int* x) { x[0] = N; }", "k.cu", "-arch=compute_90", "E:n<__TIME__[7]>")
    check(done.stdout.startswith("0 ") and "1 left to the library itself" in done.stderr, "a name expression can ask for the time", done.stdout, done.stderr)


@test
def a_library_that_knows_of_places():
    """CUDA's own headers have a way to the file's name (CCCL 3.1's are read with every larger one of it); who does not take it is answered wherever it lies."""
    write("cccl/cuda/std/source_location", "#pragma once\n#define _CCCL_BUILTIN_FILE() __builtin_FILE()\nnamespace cuda { namespace std {\nclass source_location {\n  const char* f_ = \"\";\n"
          "  __device__ explicit constexpr source_location(const char* __file, int, int, int) : f_{__file} {}\npublic:\n"
          "  __device__ static constexpr source_location current(\n    const char* __file = _CCCL_BUILTIN_FILE(), int __func = 0, int __line = 0, int __column = 0) {\n    return source_location{__file, __func, __line, __column};\n  }\n"
          "  constexpr __device__ const char* file_name() const { return f_; }\n};\n} }\n")
    write("cccl/cuda/std/__exception/cuda_error.h", "#pragma once\n#include <cuda/std/source_location>\nnamespace cuda { __device__ inline void __throw_cuda_error(const char*,\n"
          "    ::cuda::std::source_location __loc = ::cuda::std::source_location::current()) { __trap(); } }\n")
    reads = "#include <cuda/std/__exception/cuda_error.h>\n"
    kernel = reads + 'extern "C" __global__ void k(int* a) { if (*a == 3) cuda::__throw_cuda_error("three"); *a = 4; }'
    asks = reads + 'extern "C" __global__ void k(int* a) { *a = cuda::std::source_location::current().file_name()[13]; }'

    def compile_as(folder, source, *more):
        words = [PYTHON, SCRATCH / "named.py", NVRTC, source, f"/nowhere/{folder}/k.cu", "-arch=compute_90", f"-I{SCRATCH}/cccl", *more]
        want, done = bare(*words).stdout, under(*words)
        check(done.stdout == want and want.startswith("0 "), "the same code", folder, source, want, done.stdout, done.stderr)
        return done.stderr

    internal = "static __device__ int s = 3; namespace { __device__ int n = 5; }\n__device__ int f() { return s++ + n++; }\n__global__ void k(int* a) { *a = f(); }"
    for source, more in ((kernel, ()), (kernel, ("H:cub/debug.cuh=#define CubDebug(e) CUB_NS_QUALIFIER::Debug((cudaError_t) (e), __FILE__, __LINE__)",)), (internal, ("-rdc=true",)), (internal, ("-dc",))):
        check(" 1 made" in compile_as("tmp1", source, *more), "made once", source)
        said = compile_as("tmp2", source, *more)
        check("1 compiles answered" in said and " 0 made" in said, "and answered under another name", source, said)
    for folder in ("tmp3", "tmp4"):
        said = compile_as(folder, asks)
        check(" 1 made" in said and "1 kept under the names of this run: it may ask what it is called" in said, "what asks is made for each place, and the line says why", said)
    check("1 compiles answered" in compile_as("tmp3", asks), "and answered there")
    events = SCRATCH / "places.jsonl"
    under(PYTHON, SCRATCH / "named.py", NVRTC, asks, "/nowhere/tmp5/k.cu", "-arch=compute_90", f"-I{SCRATCH}/cccl", KILN_EVENTS=events)
    check("under its own names: it may ask what it is called" in events.read_text(), "so do the events", events.read_text())


@test
def files_decide():
    source = "#include <v.h>\nextern \"C\" __global__ void k(int* a) { *a = V; }"
    write("a/v.h", "#define V 1\n")
    write("b/v.h", "#define V 2\n")
    first, _ = one(0, f"-I{SCRATCH}/a", source=source)
    other, _ = one(0, f"-I{SCRATCH}/b", source=source)
    check(first["cubin"] != other["cubin"], "one text, two folders")
    # The folder moved, with the same headers in it: the same answer, from the cache.
    shutil.copytree(SCRATCH / "a", SCRATCH / "moved")
    moved, said = one(0, f"-I{SCRATCH}/moved", source=source)
    check(moved["cubin"] == first["cubin"] and not moved["loaded"] and " 0 made" in said, "a moved folder changes nothing", moved, said)
    # A header that appears in front of the one that was read.
    (SCRATCH / "c").mkdir()
    before, _ = one(0, f"-I{SCRATCH}/c", f"-I{SCRATCH}/a", source=source)
    write("c/v.h", "#define V 3\n")
    shadowed, said = one(0, f"-I{SCRATCH}/c", f"-I{SCRATCH}/a", source=source)
    check(before["cubin"] == first["cubin"] != shadowed["cubin"] and " 1 made" in said, "a header that appears counts", shadowed, said)
    # '#pragma once' goes by whether two names are one file.
    write("once/a/p.h", "#pragma once\n#ifdef SEEN\n#define TWICE\n#endif\n#define SEEN\n")
    twice = "#include <a/p.h>\n#include <b/p.h>\n#ifdef TWICE\n#define N 2\n#else\n#define N 1\n#endif\nextern \"C\" __global__ void k(int* a) { *a = N; }"
    (SCRATCH / "once/b").symlink_to("a")
    linked, _ = one(0, f"-I{SCRATCH}/once", source=twice)
    (SCRATCH / "once/b").unlink()
    shutil.copytree(SCRATCH / "once/a", SCRATCH / "once/b")
    for state, want in (("copied", one(0, f"-I{SCRATCH}/once", source=twice, kiln=False)[0]), ("linked", linked)):
        if state == "linked":
            shutil.rmtree(SCRATCH / "once/b")
            (SCRATCH / "once/b").symlink_to("a")
        for made in (state == "copied", False):
            got, said = one(0, f"-I{SCRATCH}/once", source=twice)
            check(got["cubin"] == want["cubin"] and f" {int(made)} made" in said, f"a header by two names, {state}", got, want, said)
    check(want["cubin"] != one(0, source=twice.replace("#include", "//").replace("N 1", "N 2"), kiln=False)[0]["cubin"], "which makes a difference")
    # Spellings that the compiler does not know, or takes for something else.
    write("=/odd/v.h", "#define V 7\n")
    for options in (["-I==/odd"], ["--include-path==/odd"], [f"-include-path={SCRATCH}/a"], [f"---include-path={SCRATCH}/a"], ["-I", "-I/odd"]):
        words = [PYTHON, SCRATCH / "named.py", NVRTC, source, "k.cu", "-arch=compute_90", *options]
        want, seen = bare(*words).stdout, [under(*words).stdout, under(*words).stdout]
        check(seen == [want, want], f"{options} means what it means without us", want, seen)
    # A relative look means the folder the program is in: another folder is another question.
    relative = '#include "near.h"\nextern "C" __global__ void k(int* a) { *a = V; }'
    write("here/near.h", "#define V 1\n")
    write("there/near.h", "#define V 2\n")
    seen = []
    for folder in ("here", "there", "here"):
        done = run("run", "--", PYTHON, SCRATCH / "one.py", NVRTC, relative, "-arch=sm_90", cwd=SCRATCH / folder)
        seen.append(json.loads(done.stdout))
    check(seen[0]["status"] == 0 and seen[0]["cubin"] == seen[2]["cubin"] != seen[1]["cubin"] and " 0 made" in done.stderr,
          "headers named relative to the working directory", seen)


@test
def the_folder_it_is_compiled_in():
    """What tells where the compiler was is answered with this folder, and never with another."""
    for folder in ("one/inc", "other/inc"):
        write(f"{folder}/near.h", "__device__ inline int f(int x) { return x * 3 + 1; }\n")
    source = '#include <near.h>\nextern "C" __global__ void k(int* a) { *a = f(*a); }'
    for option in ("-lineinfo", "--generate-line-info", "-G", "--device-debug", " -lineinfo", "-G "):
        for folder in ("one", "other", "one"):
            words = [PYTHON, SCRATCH / "named.py", NVRTC, source, "k.cu", "-arch=compute_90", "-Iinc", option]
            want = run(*words[1:], program=words[0], cwd=SCRATCH / folder).stdout
            done = run("run", "--", *words, cwd=SCRATCH / folder)
            check(done.stdout == want, f"{option} in {folder}: the same code", want, done.stdout, done.stderr)
    check(" 0 made" in done.stderr, "answered where it was made", done.stderr)
    # By the user's name for it, which may lead through a link.
    (SCRATCH / "by-link").symlink_to("one")
    words = [PYTHON, SCRATCH / "named.py", NVRTC, source, "k.cu", "-arch=compute_90", "-Iinc", "-lineinfo"]
    for name in ("by-link", "one", "by-link", "nowhere"):
        want = run(*words[1:], program=words[0], cwd=SCRATCH / "one", PWD=SCRATCH / name).stdout
        done = run("run", "--", *words, cwd=SCRATCH / "one", PWD=SCRATCH / name)
        check(done.stdout == want, f"a folder that is called {name}: the same code", want, done.stdout, done.stderr)
    check(" 0 made" in done.stderr, "a name that leads elsewhere is none", done.stderr)
    # A name that leads each process to a place of its own, and one that something was mounted over: a worker that goes there is elsewhere.
    write("other/inc/near.h", "__device__ inline int f(int x) { return x * 5 + 1; }\n")
    (SCRATCH / "wherever").symlink_to("/proc/self/cwd")
    words = [PYTHON, SCRATCH / "named.py", NVRTC, source, "k.cu", "-arch=compute_90", "-Iinc"]
    want = run(*words[1:], program=words[0], cwd=SCRATCH / "other").stdout
    done = run("run", "--", "sh", "-c", f'cd {SCRATCH}/other && export PWD={SCRATCH}/wherever && exec "$0" "$@"', *words, cwd=SCRATCH / "one", KILN_CACHE_DIR=SCRATCH / "elsewhere.cache")
    check(done.stdout == want, "a folder by a name that each process has its own of", want, done.stdout, done.stderr)
    if mounts_are_possible():
        script = f"cd {SCRATCH}/other && mount --bind {SCRATCH}/one {SCRATCH}/other"
        done = run(*mounted(script, CLI, "run", "--", *words)[1:], program="unshare", KILN_CACHE_DIR=SCRATCH / "covered.cache")
        check(done.stdout == want, "a folder that something was mounted over", want, done.stdout, done.stderr)
    (SCRATCH / "gone").mkdir()
    away = f'cd {SCRATCH}/gone && rmdir ../gone && exec "$0" "$@"'
    done = under("sh", "-c", away, PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 960, "-arch=sm_90", "-lineinfo")
    check("1 left to the library itself: the working directory is gone" in done.stderr, "a folder that is gone has no answers", done.stderr)


@test
def stand_ins_that_were_damaged():
    """A stand-in is what it should be when it is used, whatever became of its file; 'cache verify' sees it before, 'cache clear' takes it along."""
    place = {"KILN_CACHE_DIR": SCRATCH / "torn"}
    words = [PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 970, "-arch=sm_90"]
    want = json.loads(under(*words, **place).stdout)
    kept = sorted((SCRATCH / "torn/run/standins").iterdir())
    whole = {f: f.read_bytes() for f in kept}
    check(len(kept) == 2, "a stand-in and its bridge", *kept)
    check(run("cache", "verify", **place).returncode == 0, "as they should be")

    def zeroed(f):
        f.write_bytes(bytes(len(whole[f])))

    def one_bit(f):
        f.write_bytes(bytes(b ^ (at == len(whole[f]) // 2) for at, b in enumerate(whole[f])))

    def in_secret(f):
        about = f.stat()
        zeroed(f)
        os.utime(f, ns=(about.st_atime_ns, about.st_mtime_ns))

    for damage in (zeroed, one_bit, in_secret, lambda f: f.write_bytes(b""), lambda f: f.write_bytes(whole[f][:4096]), lambda f: (f.unlink(), f.mkdir())):
        for f in kept:
            damage(f)
        done = under(*words, status=None, **place)
        is_file = all(f.is_file() for f in kept)
        check(done.returncode == 0 and json.loads(done.stdout) == {**want, "loaded": not is_file}, "a damaged stand-in is not used", done)
        check(not is_file or all(f.read_bytes() == whole[f] for f in kept), "but made anew")
        for f in kept:
            if f.is_dir():
                f.rmdir()
    # What a process of the same number left behind: in a container they all have one.
    for f in kept:
        f.unlink(missing_ok=True)
    last = int(pathlib.Path("/proc/sys/kernel/ns_last_pid").read_text()) if os.path.exists("/proc/sys/kernel/ns_last_pid") else os.getpid()
    left = [f.with_name(f"{f.name}.{number:016x}.part") for f in kept for number in range(last, last + 200)]
    for f in left:
        f.touch()
    check(not json.loads(under(*words, **place).stdout)["loaded"] and all(f.exists() for f in kept), "what others left is in nobody's way")
    for f in left:
        f.unlink()
    for damage in (zeroed, one_bit):
        under(*words, **place)
        for f in kept:
            damage(f)
        said = run("cache", "verify", status=1, **place)
        check(all(str(f) in said.stderr for f in kept), "verify names them", said.stdout, said.stderr)
        check(len(json.loads(run("cache", "verify", "--json", status=1, **place).stdout)["bad"]) == 2, "in JSON, too")
        run("cache", "verify", "--repair", **place)
        check(not any(f.exists() for f in kept), "and can remove them")
        check(run("cache", "verify", **place).returncode == 0, "then all is well")
    under(*words, **place)
    run("cache", "clear", **place)
    check(not any(f.exists() for f in kept), "cache clear takes them along")


@test
def links_of_files():
    """A file counts by what was in it when the program gave it to the linker, whatever became of it since; what comes after the end is told by the linker itself."""
    if NVJITLINK is None:
        return
    write("links.py", r'''
import ctypes as C, hashlib, os, sys
n, j = C.CDLL(sys.argv[1]), C.CDLL(sys.argv[2])
def made(source):
    p = C.c_void_p(); z = C.c_size_t(); o = (C.c_char_p * 2)(b"-arch=sm_90", b"-rdc=true")
    assert n.nvrtcCreateProgram(C.byref(p), source.encode(), b"k.cu", 0, None, None) == 0 and n.nvrtcCompileProgram(p, 2, o) == 0
    n.nvrtcGetCUBINSize(p, C.byref(z)); d = C.create_string_buffer(z.value); n.nvrtcGetCUBIN(p, d)
    return d.raw
def said(h):
    out = []
    for kind in ("LinkedCubin", "ErrorLog"):
        z = C.c_size_t(); out.append(getattr(j, f"nvJitLinkGet{kind}Size")(h, C.byref(z)))
        d = C.create_string_buffer(max(1, z.value)); out.append(getattr(j, f"nvJitLinkGet{kind}")(h, d) if z.value else None); out.append(hashlib.sha256(d.raw).hexdigest()[:8])
    return out
h = C.c_void_p(); print(j.nvJitLinkCreate(C.byref(h), 1, (C.c_char_p * 1)(b"-arch=sm_90")))
place = sys.argv[3].encode()  # one file for all of them, one after the other
for source in sys.argv[4:]:
    with open(place, "wb") as f: f.write(made(source))
    print(j.nvJitLinkAddFile(h, 1, place))
os.unlink(place)
print(j.nvJitLinkComplete(h), said(h))
print(j.nvJitLinkComplete(h), said(h))
print(j.nvJitLinkAddData(h, 1, b"x", C.c_size_t(1), b"late"), said(h), j.nvJitLinkDestroy(C.byref(h)))
''')
    pieces = ["__device__ int f(int x) { return x + %d; }", "__device__ int g(int x) { return x * 3; }", "__device__ int f(int); __device__ int g(int); extern \"C\" __global__ void k(int* a) { *a = f(g(*a)) + %d; }"]
    for first, last in ((1, 1), (1, 1), (1, 2), (2, 2), (1, 2)):
        words = [PYTHON, SCRATCH / "links.py", NVRTC, NVJITLINK, SCRATCH / "piece", pieces[0] % first, pieces[1], pieces[2] % last]
        want, done = bare(*words).stdout, under(*words)
        check(done.stdout == want and want.startswith("0\n0\n0\n0\n0 "), f"linked of files, {first} and {last}", want, done.stdout, done.stderr)


@test
def links_of_temporary_files():
    """What an input is called decides messages alone: a link is answered whatever its inputs are called this time."""
    if NVJITLINK is None:
        return
    write("inputs.py", r'''
import ctypes as C, hashlib, sys
n, j = C.CDLL(sys.argv[1]), C.CDLL(sys.argv[2]); z = C.c_size_t()
def made(source):
    p = C.c_void_p(); o = (C.c_char_p * 2)(b"-arch=sm_90", b"-rdc=true")
    assert n.nvrtcCreateProgram(C.byref(p), source.encode(), b"k.cu", 0, None, None) == 0 and n.nvrtcCompileProgram(p, 2, o) == 0
    n.nvrtcGetCUBINSize(p, C.byref(z)); d = C.create_string_buffer(z.value); n.nvrtcGetCUBIN(p, d)
    return d.raw
def log(h):
    j.nvJitLinkGetErrorLogSize(h, C.byref(z)); d = C.create_string_buffer(b"untouched", z.value + 10); j.nvJitLinkGetErrorLog(h, d)
    return d.value
h = C.c_void_p(); assert j.nvJitLinkCreate(C.byref(h), 1, (C.c_char_p * 1)(b"-arch=sm_90")) == 0
for name, source in zip(sys.argv[4:6], ("__device__ int f(int x) { return x + 7; }", "__device__ int f(int); extern \"C\" __global__ void k(int* a) { *a = f(*a); }" if sys.argv[3] == "good" else "__device__ int f(int x) { return x; }")):
    d = made(source); print(j.nvJitLinkAddData(h, 1, d, C.c_size_t(len(d)), name.encode()))
print(j.nvJitLinkAddData(h, 1, b"rubbish", C.c_size_t(7), b"not-a-cubin") if sys.argv[3] == "bad" else "", j.nvJitLinkComplete(h))
j.nvJitLinkGetLinkedCubinSize(h, C.byref(z)); d = C.create_string_buffer(max(1, z.value)); j.nvJitLinkGetLinkedCubin(h, d)
print(hashlib.sha256(d.raw).hexdigest() if sys.argv[3] == "good" else "", log(h))
h = C.c_void_p(3); print(j.nvJitLinkCreate(C.byref(h), 1, (C.c_char_p * 1)(b"-no-such-option")), h.value not in (3, None), log(h), j.nvJitLinkDestroy(C.byref(h)))
h = C.c_void_p(3); print(j.nvJitLinkCreate(C.byref(h), 0, (C.c_char_p * 1)()), j.nvJitLinkCreate(C.byref(C.c_void_p()), 0, None), j.nvJitLinkComplete(None))
h = C.c_void_p(); j.nvJitLinkCreate(C.byref(h), 1, (C.c_char_p * 1)(b"-arch=sm_90")); print([j.nvJitLinkAddData(h, kind, None, C.c_size_t(0), b"none") for kind in (1, 2, 3)], log(h))
''')
    for kind, first, made in (("good", "/tmp/one/first_piece.o", 3), ("good", "/tmp/other/another_piece.o", 0), ("twice", "twice_in_this.o", None), ("bad", "bad_with_this.o", None)):
        words = [PYTHON, SCRATCH / "inputs.py", NVRTC, NVJITLINK, kind, first, "/tmp/" + first[5:] + ".second"]
        want, done = bare(*words).stdout, under(*words)
        check(done.stdout == want, f"a link that is {kind}", want, done.stdout, done.stderr)
        check(made is None or f" {made} made" in done.stderr, f"{made} were made", done.stderr)


@test
def compiles_side_by_side():
    """One that cannot be kept reads its headers itself, whoever else is compiling in the same process; a pipe is read by the compiler alone."""
    write("side/named.h", "#define WHEN __TIME__\n")
    write("side.py", r'''
import ctypes as C, sys, threading
n = C.CDLL(sys.argv[1]); said = []
def compiled(text, *options):
    p = C.c_void_p(); o = [b"-arch=compute_90", *options]
    n.nvrtcCreateProgram(C.byref(p), text, None, 0, None, None); status = n.nvrtcCompileProgram(p, len(o), (C.c_char_p * len(o))(*o))
    z = C.c_size_t(); n.nvrtcGetProgramLogSize(p, C.byref(z)); log = C.create_string_buffer(max(1, z.value)); n.nvrtcGetProgramLog(p, log)
    said.append((status, log.value))
include = b"-I" + sys.argv[2].encode()
def timed():
    for i in range(12): compiled(b"#include <named.h>\n__device__ char const* w = WHEN; __global__ void t() {} // %d" % i, include)
def kept():
    for i in range(12): compiled(b"__global__ void k(int* a) { *a = %d; }" % i)
threads = [threading.Thread(target=f) for f in (timed, kept, timed, kept)]
for t in threads: t.start()
for t in threads: t.join()
print(sorted(set(said)))
''')
    done = under(PYTHON, SCRATCH / "side.py", NVRTC, SCRATCH / "side", KILN_WORKERS=0)
    check(done.stdout == "[(0, b'')]\n", "all compile", done.stdout, done.stderr)
    write("pipe.py", r'''
import ctypes as C, os, sys, threading
n = C.CDLL(sys.argv[1]); os.mkfifo(sys.argv[2] + "/piped.h")
def feed():
    try:
        with open(sys.argv[2] + "/piped.h", "w") as f: f.write("#define V 3\n")
    except OSError: pass  # nobody reads it to the end
t = threading.Thread(target=feed, daemon=True); t.start()
p = C.c_void_p(); o = (C.c_char_p * 2)(b"-arch=compute_90", b"-I" + sys.argv[2].encode())
n.nvrtcCreateProgram(C.byref(p), b"#include <piped.h>\n__global__ void k(int* a) { *a = V; }", None, 0, None, None); print(n.nvrtcCompileProgram(p, 2, o)); os.unlink(sys.argv[2] + "/piped.h")
''')
    (SCRATCH / "pipes").mkdir()
    words = [PYTHON, SCRATCH / "pipe.py", NVRTC, SCRATCH / "pipes"]
    want, done = bare(*words).stdout, under(*words)
    check(done.stdout == want, "a header that is a pipe", want, done.stdout, done.stderr)


@test
def what_is_the_programs_alone():
    """What the compiler finds in the program's process and nowhere else: descriptors, and how its thread computes."""
    write("alone.py", r'''
import ctypes as C, hashlib, os, struct, sys
m, n = C.CDLL("libm.so.6"), C.CDLL(sys.argv[1]); fd = os.dup2(os.open(sys.argv[2], os.O_RDONLY), 77); z = C.c_size_t()
upward, (place, small_ones_are_zero) = {"x86_64": (0x800, (28, 0x8040)), "aarch64": (0x400000, (0, 1 << 24))}[os.uname().machine]
def compute(how):
    m.fesetround(upward if how == "upward" else 0)
    all = bytearray(64); m.fegetenv((C.c_char * 64).from_buffer(all)); word, = struct.unpack_from("<I", all, place)
    struct.pack_into("<I", all, place, word | small_ones_are_zero if how == "fast" else word & ~small_ones_are_zero)
    assert m.fesetenv((C.c_char * 64).from_buffer(all)) == 0
def compiled(text, *options, kind="PTX"):
    p = C.c_void_p(); o = (C.c_char_p * len(options))(*options)
    n.nvrtcCreateProgram(C.byref(p), text, None, 0, None, None); status = n.nvrtcCompileProgram(p, len(options), o)
    getattr(n, f"nvrtcGet{kind}Size")(p, C.byref(z)); d = C.create_string_buffer(max(1, z.value)); getattr(n, f"nvrtcGet{kind}")(p, d)
    return status, d.raw
def linked(first, last):
    """Begun by a thread that computes in one way, and ended in another."""
    h = C.c_void_p(); compute(first); j.nvJitLinkCreate(C.byref(h), 2, (C.c_char_p * 2)(b"-arch=sm_90", b"-lto"))
    for part in parts: assert j.nvJitLinkAddData(h, 3, part, C.c_size_t(len(part)), b"part") == 0
    compute(last); status = j.nvJitLinkComplete(h); compute("usually")
    j.nvJitLinkGetLinkedCubinSize(h, C.byref(z)); d = C.create_string_buffer(z.value); j.nvJitLinkGetLinkedCubin(h, d); j.nvJitLinkDestroy(C.byref(h))
    return status, d.raw
def tell(what, status, bytes): print(what, status, hashlib.sha256(bytes).hexdigest()[:12])
tell("file", *compiled(b'#include "/proc/self/fd/%d"\n__global__ void k(int* a) { *a = V; }' % fd, b"-arch=compute_90"))
ways = ["upward", "fast", "usually"][::int(sys.argv[3])]
for how in ways:
    compute(how); said = compiled(b"__global__ void k(double* a) { constexpr double c = 0.1 * 0.1 * 0.7; a[0] = c; a[1] = sinf(0.3f); a[2] = ceil(1e-300 * 1e-10); }", b"-arch=compute_90"); compute("usually")
    tell(how, *said)
if sys.argv[4:]:
    j = C.CDLL(sys.argv[4]); lto = (b"-arch=sm_90", b"-dlto", b"-rdc=true")
    parts = [compiled(text, *lto, kind="LTOIR")[1] for text in (b"__device__ double f(double x) { return ceil(x * 1e-10); }", b'__device__ double f(double); extern "C" __global__ void k(double* a) { *a = f(1e-300); }')]
    for how in ways: tell(f"link {how}", *linked("usually", how))
    tell("link begun otherwise", *linked("fast", "usually"))
''')
    header = write("alone/v.h", "#define V 5\n")
    seen = {}
    for workers in (1, 0):
        for order in (1, -1):
            words = [PYTHON, SCRATCH / "alone.py", NVRTC, header, order, *filter(None, [NVJITLINK])]
            # NVRTC's own cache, beside a driver, has what another thread made and computes otherwise.
            place = {"KILN_CACHE_DIR": SCRATCH / f"alone.{workers}.{order}", "CUDA_CACHE_DISABLE": 1}
            want, done = bare(*words, CUDA_CACHE_DISABLE=1).stdout, under(*words, KILN_WORKERS=workers, **place)
            check(done.stdout == want, f"workers {workers}, order {order}", want, done.stdout, done.stderr)
            done = under(*words, **place)
            check(done.stdout == want, f"workers {workers}, order {order}, again", want, done.stdout, done.stderr)
            seen |= dict(line.split(" 0 ") for line in want.splitlines())
    if os.uname().machine != "x86_64":  # there the newest compilers work out numbers by themselves, whatever their thread does
        check(len({seen[how] for how in ("upward", "fast", "usually")}) == 3, "how a thread computes makes a difference", seen)
        check(NVJITLINK is None or seen["link fast"] != seen["link usually"], "when a link ends", seen)


@test
def the_program_is_itself():
    check(under("sh", "-c", "exit 7", status=7).returncode == 7, "the exit status is the program's")
    run("run", "--", "/no/such/program", status=127)
    killed = run("run", "--", "sh", "-c", "kill -TERM $$", status=None)
    check(killed.returncode == -signal.SIGTERM, "a signal that ends it ends kiln run", killed.returncode)
    odd = run("run", "--record", SCRATCH / "odd.json", "--", "sh", "-c", "exit 7", "bad\udcff", status=7)
    check(json.loads((SCRATCH / "odd.json").read_text())["program"][-1] == "bad\ufffd", "nor is a word that is no text in its way", odd)
    done = under("sh", "-c", "cat; echo to-stderr >&2")
    check(done.stdout == "" and done.stderr == "to-stderr\n", "nothing is added where nothing was compiled", done)
    child = subprocess.Popen([CLI, "run", "--", "sh", "-c", "trap 'exit 9' USR1; echo ready; while :; do sleep 0.05; done"],
                             stdout=subprocess.PIPE, text=True, env={**os.environ, "KILN_CACHE_DIR": str(CACHE)})
    child.stdout.readline()
    child.send_signal(signal.SIGUSR1)
    check(child.wait(30) == 9, "signals are passed on")
    for key in (signal.SIGVTALRM, signal.SIGPROF, signal.SIGIO, signal.SIGPWR, signal.SIGRTMIN, signal.SIGRTMAX,  # these ended kiln run, and the program with it
                signal.SIGINT, signal.SIGQUIT):  # sent to kiln run alone, and not by a terminal, which tells both
        child = subprocess.Popen([CLI, "run", "--", PYTHON, "-uc", f"import signal, sys\nsignal.signal({int(key)}, lambda *_: sys.exit(8))\nprint('ready')\nsignal.pause()"],
                                 stdout=subprocess.PIPE, text=True, env={**os.environ, "KILN_CACHE_DIR": str(CACHE)})
        child.stdout.readline()
        child.send_signal(key)
        check(child.wait(30) == 8, f"{key.name} is passed on")
    for option in (("--json",), ("--record", SCRATCH / "odd.json")):
        done = subprocess.run([CLI, "run", *map(str, option), "--", "sh", "-c", "exit 7", b"caf\xe9"], capture_output=True, env={**os.environ, "KILN_CACHE_DIR": str(CACHE)})
        check(done.returncode == 7, "a word that is no text", done)
    check(json.loads((SCRATCH / "odd.json").read_text())["program"][:2] == ["sh", "-c"], "is recorded as well as can be")
    for option in ("-v", "--json"):  # nobody reads what kiln run says of it
        unread, end = os.pipe()
        os.close(unread)
        done = subprocess.run([CLI, "run", option, "--", "sh", "-c", "exit 7"], stderr=end, env={**os.environ, "KILN_CACHE_DIR": str(CACHE)})
        os.close(end)
        check(done.returncode == 7, "nor does it matter who listens", done)
    done = under("sh", "-c", 'echo "$LD_AUDIT"', LD_AUDIT="/some/where.so")
    check(done.stdout.startswith("/some/where.so:"), "an auditor that was there stays", done.stdout)
    one(100)
    done = under("sh", "-c", f'exec "{PYTHON}" "$0" "$@"', SCRATCH / "one.py", NVRTC, KERNEL % 100, "-arch=sm_90")
    check(not json.loads(done.stdout)["loaded"] and " 0 made" in done.stderr, "children are served", done.stdout, done.stderr)
    for options in ((), ("--json",)):
        words = ["a", "--", "b", "-v", "--json", "--", ""]
        done = under("printf", "<%s>", *words, options=options)
        check(done.stdout == "".join(f"<{w}>" for w in words), "the program's words are its own", done.stdout)
    # Called by a name that the folder has, too: what belongs to kiln is looked for where kiln is.
    write("decoy/kiln", "")
    (SCRATCH / "decoy/kiln").chmod(0o755)
    write("decoy/kiln-worker", f"#!/bin/sh\ntouch {SCRATCH}/decoy/used\n").chmod(0o755)
    words = ["run", "-v", "--", PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 101, "-arch=sm_90"]
    for more in ((), ("--json",)):
        done = run(f"PATH={BIN}:{os.environ['PATH']}", "kiln", *words[:2], *more, *words[2:], program="env", cwd=SCRATCH / "decoy")
        check("no stand-ins" not in done.stderr and not (SCRATCH / "decoy/used").exists(), "what lies here is not ours", done.stderr)
        check('"made"' in done.stderr or "made 'k'" in done.stderr or "answered" in done.stderr, "it is served", done.stderr)
    again = run("run", "--", CLI, "run", "--", "sh", "-c", 'echo "$LD_AUDIT"')
    check(again.stdout.count("hook.so") == 1, "kiln run in kiln run", again.stdout)


# What a shell does for one job at its terminal: whoever stops it is told, and it goes on in the foreground.
write("shell.py", r"""
import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    if sys.argv[1] == "foreground": os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL); os.execv(sys.argv[2], sys.argv[2:])
while True:
    _, status = os.waitpid(job, os.WUNTRACED); os.tcsetpgrp(0, os.getpgrp())
    if not os.WIFSTOPPED(status): break
    print("stopped by", os.WSTOPSIG(status) == signal.SIGSTOP and "SIGSTOP" or "a terminal", flush=True)
    os.tcsetpgrp(0, job); os.killpg(job, signal.SIGCONT)
print("ended", os.waitstatus_to_exitcode(status), flush=True)
""")
# Of a job: Ctrl-Z does with it what it wants.
write("job.py", r"""
import os, signal, sys
mode = sys.argv[1]
def stopped(*_): os.write(1, b"stops\n"); os.kill(os.getpid(), signal.SIGSTOP)
went = []
def went_on(*_): went or os.write(1, b"goes on\n"); went.append(1)
signal.signal(signal.SIGCONT, went_on)
if mode == "ignores": signal.signal(signal.SIGTSTP, signal.SIG_IGN)
if mode == "handles": signal.signal(signal.SIGTSTP, stopped)
os.write(1, b"ready\n")
while os.read(0, 100).strip() != b"end": pass
sys.exit(4)
""")


def at_a_terminal(keys, where, *words):
    """What a terminal shows of a job: `keys` are typed, each when the text before it is there."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(PYTHON, [PYTHON, str(SCRATCH / "shell.py"), where, *map(str, words)], {**os.environ, "KILN_CACHE_DIR": str(CACHE)})
    shown, typed = "", 0
    mode = termios.tcgetattr(terminal)
    mode[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSANOW, mode)
    try:
        while select.select([terminal], [], [], 60)[0]:
            shown += os.read(terminal, 1000).decode().replace("\r", "")
            while keys and keys[0][0] in shown[typed:]:
                typed = shown.index(keys[0][0], typed) + len(keys[0][0])
                os.write(terminal, keys.pop(0)[1])
        os.kill(pid, signal.SIGKILL)
        shown += "hangs"
    except OSError:  # nobody is left
        pass
    os.waitpid(pid, 0)
    os.close(terminal)
    return shown


@test
def a_job_of_a_shell():
    """Ctrl-Z, fg and bg do with the program what they do without us."""
    ctrl_z, end = b"\x1a", b"end\n"
    for mode, where, keys in (("stops", "foreground", [("ready\n", ctrl_z), ("goes on\n", end)]), ("handles", "foreground", [("ready\n", ctrl_z), ("goes on\n", end)]),
                              ("ignores", "foreground", [("ready\n", ctrl_z + end)]), ("reads", "background", [("goes on\n", end)])):
        words = [PYTHON, SCRATCH / "job.py", mode]
        want, got = at_a_terminal(list(keys), where, *words), at_a_terminal(list(keys), where, CLI, "run", "--", *words)
        check(got == want and "ended 4" in want, f"one that {mode} in the {where}", got, want)


@test
def a_program_that_stops_is_seen_to_be_stopped():
    """By who started kiln run, who may have no terminal, and may or may not be the one who continues it."""
    def starts(text, *before):
        text = "import os, signal, sys, time\nme, kiln = os.getpid(), os.getppid()\ndef is_stopped(pid): return open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[0] == 'T'\n" + text
        return subprocess.Popen([*before, CLI, "run", "--", PYTHON, "-uc", text], env={**os.environ, "KILN_CACHE_DIR": str(CACHE)})

    def ended(child, options=0):
        for _ in range(6000):
            pid, status = os.waitpid(child.pid, options | os.WNOHANG)
            if pid:
                if not os.WIFSTOPPED(status):
                    child.returncode = os.waitstatus_to_exitcode(status)
                return status
            time.sleep(0.01)
        child.kill()
        child.wait()
        return None

    for times in (1, 3):
        child = starts(f"for _ in range({times}): os.kill(me, signal.SIGSTOP)\nsys.exit(7)")
        for _ in range(times):
            status = ended(child, os.WUNTRACED)
            check(status is not None and os.WIFSTOPPED(status) and os.WSTOPSIG(status) == signal.SIGSTOP, "stopped as it is", status)
            child.send_signal(signal.SIGCONT)
        check(ended(child) == 7 << 8, "who continues kiln run continues it", child.returncode)
    other = "if os.fork() == 0:\n    while not (is_stopped(me) and is_stopped(kiln)): time.sleep(0.01)\n    os.kill(me, signal.%s)\n    os._exit(0)\nos.kill(me, signal.SIGSTOP)\nsys.exit(5)"
    check(ended(starts(other % "SIGCONT")) == 5 << 8, "who continues it continues kiln run")
    check(ended(starts(other % "SIGKILL")) == signal.SIGKILL, "who ends it ends kiln run")
    if subprocess.run(["unshare", "-pf", "true"], capture_output=True).returncode == 0:
        check(ended(starts("os.kill(me, signal.SIGSTOP)\nsys.exit(6)", "unshare", "-pf")) == 6 << 8, "the first process of a container cannot be stopped")


@test
def what_is_out_of_reach_runs_as_it_is():
    compiler = shutil.which("cc")
    if compiler is None:
        return
    write("still.c", "int main(void) { return 3; }\n")
    built = subprocess.run([compiler, "-static", "-o", SCRATCH / "still", SCRATCH / "still.c"], capture_output=True)
    if built.returncode == 0:
        done = under(SCRATCH / "still", options=("-v",), status=3)
        check("linked statically" in done.stderr, "a static program is named", done.stderr)
    subprocess.run([compiler, "-o", SCRATCH / "raised", SCRATCH / "still.c"], check=True)
    os.chmod(SCRATCH / "raised", 0o4755)
    done = under(SCRATCH / "raised", options=("-v",), status=3)
    check("raised privileges" not in done.stderr, "who owns it has no more rights by its mode", done.stderr)
    if os.geteuid() == 0:
        os.chown(SCRATCH / "raised", 65534, 65534)
        os.chmod(SCRATCH / "raised", 0o4755)
        done = under(SCRATCH / "raised", options=("-v",), status=3)
        check("raised privileges" in done.stderr, "and one with another's rights", done.stderr)
        done = under(SCRATCH / "raised", options=("--jit=forbid", "-q"), status=3)
        check("what it compiles is not forbidden" in done.stderr, "who forbids is told, whatever else is said", done.stderr)
        os.chown(SCRATCH / "raised", 0, 0)
    os.chmod(SCRATCH / "raised", 0o755)
    try:
        # cap_net_raw, permitted: the loader is as careful with it.
        os.setxattr(SCRATCH / "raised", "security.capability", bytes.fromhex("0100000200200000000000000000000000000000"))
        done = under(SCRATCH / "raised", options=("-v",), status=3)
        check("raised privileges" in done.stderr, "by capabilities of its file", done.stderr)
    except OSError:
        print("capabilities of files cannot be set here: not tried")
    if shutil.which("musl-gcc"):
        write("musl.c", "#include <stdlib.h>\n#include <stdio.h>\nint main(void) { puts(getenv(\"LD_AUDIT\") ? \"audited\" : \"\"); return 4; }\n")
        subprocess.run(["musl-gcc", "-o", SCRATCH / "musl", SCRATCH / "musl.c"], check=True)
        subprocess.run(["musl-gcc", "-static", "-o", SCRATCH / "still", SCRATCH / "musl.c"], check=True)
        for program, why in (("musl", "runs on musl"), ("still", "linked statically")):
            done = under(SCRATCH / program, options=("-v",), status=4)
            check(why in done.stderr and done.stdout == "audited\n", "another libc", done.stdout, done.stderr)


@test
def raised_privileges_take_nothing():
    """A program that becomes root by its file's mode is not given our libraries, nor anything of who started it."""
    compiler = shutil.which("cc")
    if compiler is None or os.geteuid() != 0:
        return
    nobody = 65534
    place = pathlib.Path(tempfile.mkdtemp(prefix="kiln-raised-"))
    try:
        place.chmod(0o755)
        (place / "cache").mkdir()
        os.chown(place / "cache", nobody, nobody)
        write("raising.c", "#include <dlfcn.h>\n#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n"
              "int main(int n, char** v) { void* h = dlopen(v[1], RTLD_NOW); char line[4096]; int ours = 0; FILE* maps = fopen(\"/proc/self/maps\", \"r\");\n"
              "while (fgets(line, sizeof line, maps)) ours |= strstr(line, \"hook.so\") || strstr(line, \"standins\"); printf(\"%d %d %d\\n\", h != 0, geteuid(), ours); return 0; }\n")
        subprocess.run([compiler, "-o", place / "raising", SCRATCH / "raising.c", "-ldl"], check=True)
        env = {**{k: v for k, v in os.environ.items() if not k.startswith("KILN_")}, "KILN_CACHE_DIR": str(place / "cache"), "HOME": str(place)}

        def as_nobody(mode):
            (place / "raising").chmod(mode)
            return subprocess.run([CLI, "run", "--", place / "raising", NVRTC], capture_output=True, text=True, env=env, user=nobody, group=nobody, extra_groups=[], cwd=place)

        plain = as_nobody(0o755)
        if plain.returncode != 0:
            print("another user cannot run kiln here: not tried", plain.stderr)
            return
        check(plain.stdout == f"1 {nobody} 1\n", "served as what it is", plain)
        raised = as_nobody(0o4755)
        check(raised.returncode == 0 and raised.stdout in ("1 0 0\n", f"1 {nobody} 1\n"), "root's program has nothing of ours in it", raised)
    finally:
        shutil.rmtree(place)


@test
def every_way_to_the_library():
    compiler = shutil.which("cc")
    if compiler is None:
        return
    write("linked.c", r'''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
typedef int (*any)();
#ifdef LINKED
int nvrtcCreateProgram(); int nvrtcCompileProgram(); int nvrtcGetCUBINSize();
#endif
static int use(any create, any compile, any size, int v) {
    void* p = 0; char source[99]; char const* options[] = {"-arch=sm_90"}; size_t n = 0;
    snprintf(source, sizeof source, "extern \"C\" __global__ void w(int* a) { *a = %d; }", v);
    int (*c)(void**, char const*, char const*, int, void*, void*) = (void*)create; int (*d)(void*, int, char const**) = (void*)compile; int (*s)(void*, size_t*) = (void*)size;
    int const r = c(&p, source, "w.cu", 0, 0, 0) || d(p, 1, options) || s(p, &n); printf("%zu ", n); return r || n < 1000;
}
int main(int count, char** v) {
#ifdef LINKED
    return use((any)nvrtcCreateProgram, (any)nvrtcCompileProgram, (any)nvrtcGetCUBINSize, 77);
#else
    int flags = RTLD_NOW | (strchr(v[1], 'g') ? RTLD_GLOBAL : RTLD_LOCAL) | (strchr(v[1], 'd') ? RTLD_DEEPBIND : 0);
    void* h = strchr(v[1], 'm') ? dlmopen(LM_ID_NEWLM, v[2], RTLD_NOW) : dlopen(v[2], flags);
    if (!h) { puts(dlerror()); return 9; }
    struct link_map* m = 0; dlinfo(h, RTLD_DI_LINKMAP, &m); printf("%s ", m->l_name);
    char const* node = v[3];
    return use((any)dlvsym(h, "nvrtcCreateProgram", node), (any)dlsym(h, "nvrtcCompileProgram"), (any)dlsym(h, "nvrtcGetCUBINSize"), 77);
#endif
}
''')
    node = NVRTC.name
    opener, linked, lazy = SCRATCH / "opener", SCRATCH / "linked", SCRATCH / "lazy"
    subprocess.run([compiler, "-w", "-o", opener, SCRATCH / "linked.c", "-ldl"], check=True)
    for program, binding in ((linked, "now"), (lazy, "lazy")):
        subprocess.run([compiler, "-w", "-DLINKED", "-o", program, SCRATCH / "linked.c", NVRTC, f"-Wl,-rpath,{NVRTC.parent}", f"-Wl,-z,{binding}", "-ldl"], check=True)
    under(linked)
    ways = {"linked": [linked], "linked, lazily": [lazy], "by path": [opener, "l", NVRTC, node], "by path, global": [opener, "g", NVRTC, node],
            "by path, bound deep": [opener, "d", NVRTC, node], "by name": ["env", f"LD_LIBRARY_PATH={NVRTC.parent}", opener, "l", node, node]}
    for way, words in ways.items():
        done = under(*words, options=("-v",))
        check(" answered 'w'" in done.stderr and "no version information" not in done.stderr, f"{way}: served", done.stdout, done.stderr)
    done = under(opener, "l", NVRTC, node)
    check(done.stdout.startswith(str(NVRTC) + " "), "the library has its own name", done.stdout)
    done = under(opener, "m", NVRTC, node, options=("-v",))
    check("answered" not in done.stderr.replace("0 compiles answered", ""), "a namespace of its own is left alone", done.stderr)


@test
def a_library_nobody_knows_is_left_alone():
    compiler = shutil.which("cc")
    if compiler is None:
        return
    write("odd/odd.c", "int nvrtcVersion(int* a, int* b) { *a = 99; *b = 1; return 0; }\nint nvrtcUnheardOf(void) { return 5; }\n")
    odd = SCRATCH / "odd" / NVRTC.name
    subprocess.run([compiler, "-shared", "-fPIC", f"-Wl,-soname,{NVRTC.name}", "-o", odd, SCRATCH / "odd/odd.c"], check=True)
    ask = "import ctypes as C, sys; n = C.CDLL(sys.argv[1]); a = C.c_int(); n.nvrtcVersion(C.byref(a), C.byref(C.c_int())); print(a.value, n.nvrtcUnheardOf())"
    done = under(PYTHON, "-c", ask, odd)
    check(done.stdout == "99 5\n", "it is itself", done)
    (SCRATCH / "odd" / "rubbish").mkdir()
    rubbish = SCRATCH / "odd" / "rubbish" / NVRTC.name
    for data in (b"", b"rubbish" * 1000, b"\x7fELF" + b"\2" * 9000):
        rubbish.write_bytes(data)
        done = under(PYTHON, "-c", "import ctypes, sys\ntry: ctypes.CDLL(sys.argv[1])\nexcept OSError: print('refused')", rubbish)
        check(done.stdout == "refused\n", "rubbish is the loader's business", done)


@test
def libraries_by_any_path():
    """However a library is named, it is that very file, it is served, and the program sees the name it gave."""
    write("named_library.py", r'''
import ctypes as C, sys
n = C.CDLL(sys.argv[1]); a, b, p = C.c_int(), C.c_int(), C.c_void_p(); version = n.nvrtcVersion(C.byref(a), C.byref(b))
n.nvrtcCreateProgram(C.byref(p), b'extern "C" __global__ void n(int* a) { *a = 460; }', None, 0, None, None)
status = n.nvrtcCompileProgram(p, 1, (C.c_char_p * 1)(b"-arch=sm_90"))
class link_map(C.Structure): _fields_ = [("address", C.c_void_p), ("name", C.c_char_p)]
m = C.POINTER(link_map)(); C.CDLL(None).dlinfo(C.c_void_p(n._handle), 2, C.byref(m))
print(version, a.value, status, m.contents.name.decode())
''')
    soname, real, builtins = NVRTC.name, os.path.realpath(NVRTC), [f for f in NVRTC.parent.glob("libnvrtc-builtins*.so*")]

    def folder(name, **links):
        place = SCRATCH / "paths" / name
        place.mkdir(parents=True)
        for file, to in links.items():
            (place / file).symlink_to(to)
        for file in builtins:
            (place / file.name).symlink_to(os.path.realpath(file))
        return place

    plain, colon, dollar = (folder(n, **{soname: real}) for n in ("plain", "a:b", "a$b c"))
    developer = folder("developer", **{"libnvrtc.so": real})
    whole = folder("whole", **{soname + ".0.99": real})
    # What has the soname beside it is another library.
    other = folder("other", **{soname + ".0.99": real})
    compiler = shutil.which("cc")
    if compiler is not None:
        write("paths/other.c", "int nvrtcVersion(int* a, int* b) { *a = 99; *b = 1; return 0; }\n")
        subprocess.run([compiler, "-shared", "-fPIC", f"-Wl,-soname,{soname}", "-o", other / soname, SCRATCH / "paths/other.c"], check=True)
    ways = [(plain, f"{plain}//{soname}"), (plain, f"{plain}///{soname}"), (plain, f"/{plain}/{soname}"), (plain, f"{plain}/./{soname}"), (plain, f"./{soname}"),
            (SCRATCH, f"paths/plain/{soname}"), (SCRATCH, f"{colon}/{soname}"), (SCRATCH, f"{dollar}/{soname}"), (SCRATCH, f"{developer}/libnvrtc.so"),
            (SCRATCH, f"{whole}/{soname}.0.99"), (SCRATCH, f"{other}/{soname}.0.99"), (plain, soname)]
    words = [PYTHON, SCRATCH / "named_library.py"]
    under(*words, NVRTC)
    for directory, name in ways:
        search = {"LD_LIBRARY_PATH": "."} if name == soname else {}
        want = run(*words[1:], name, program=PYTHON, cwd=directory, **search).stdout
        done = run("run", "-v", "--", *words, name, cwd=directory, **search)
        check(done.stdout == want and want.split()[2] == "0", f"{name}: the same", done.stdout, want, done.stderr)
        check(" answered 'n'" in done.stderr or " made 'n'" in done.stderr, f"{name}: served", done.stderr)
        again = run("run", "--jit=forbid", "--", *words, name, cwd=directory, **search)
        check(again.stdout == want and "forbidden" not in again.stderr, f"{name}: answered", again.stdout, again.stderr)
    # Two names of one file are one library, whichever was first.
    mixed = "import ctypes as C, sys; a, b, p = C.CDLL(sys.argv[1]), C.CDLL(sys.argv[2]), C.c_void_p(); s = b'__global__ void m() {}'; print(a.nvrtcCreateProgram(C.byref(p), s, None, 0, None, None), b.nvrtcCompileProgram(p, 0, None))"
    for first, second in ((f"{plain}/{soname}", f"./{soname}"), (f"./{soname}", f"{plain}/{soname}"), (f"{plain}/./{soname}", f"{plain}//{soname}")):
        done = run("run", "--", PYTHON, "-c", mixed, first, second, cwd=plain)
        check(done.stdout == "0 0\n", "made by one name and compiled by another", first, second, done.stdout, done.stderr)
    # The stand-ins' own place may be called anything, too.
    for place in ("with $ORIGIN", "with $LIB:and blank"):
        done = under(*words, NVRTC, options=("-v",), KILN_CACHE_DIR=SCRATCH / "paths" / place)
        check("1 made" in done.stderr, "a cache with words of the loader in its name", done.stdout, done.stderr)


# Does what its words say: o1:NAME opens, g1:NAME globally, n1:NAME only what is loaded, x1 closes; v1 asks for the version, m12 makes with one and
# compiles with the other, q1:NAME asks for a function; d:PLACE goes there, f:NAME opens as descriptor 100, s:COMMAND, k:N shuts out a call for ever.
# b1:NAME opens by dlmopen, l1:NAME in a thread of little stack; =12 are they one, e asks all for the version, a1 and r1 what the loader says of it,
# p12 opens by the name it says, 1 wants to be the only thread, z are removed compilers mapped, c1 cancels a compile, + and - make and destroy a program.
OPENS_AND_CLOSES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
static void *h[128], *kept;
static int without(int number) {
    struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog all = {4, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all);
}
static void compile(void* one, void* other) {
    int (*create)(void**, char const*, char const*, int, void*, void*) = dlsym(one, "nvrtcCreateProgram");
    int (*make)(void*, int, char const**) = dlsym(other, "nvrtcCompileProgram"); int (*size)(void*, size_t*) = dlsym(one, "nvrtcGetPTXSize");
    void* p = 0; size_t n = 0; char const* options[] = {"-arch=sm_90"};
    int const created = create(&p, "extern \"C\" __global__ void m(int* a) { *a = 480; }", "m.cu", 0, 0, 0), made = make(p, 1, options);
    printf("made %d %d %d\n", created, made, size(p, &n) || n < 100);
}
static void* in_thread(void* name) { return dlopen(name, RTLD_NOW); }
static int cancel(void* payload, void* other) { ++*(int*)payload; return 1; }
static void watched(void* one) {
    int (*create)(void**, char const*, char const*, int, void*, void*) = dlsym(one, "nvrtcCreateProgram"); int (*make)(void*, int, char const**) = dlsym(one, "nvrtcCompileProgram");
    int (*watch)(void*, void*, void*) = dlsym(one, "nvrtcSetFlowCallback"); void* p = 0; int calls = 0;
    if (!watch) return;
    create(&p, "extern \"C\" __global__ void c(int* a) { *a = 481; }", "c.cu", 0, 0, 0); printf("kept %d\n", make(p, 0, 0));
    create(&p, "extern \"C\" __global__ void c(int* a) { *a = 481; }", "c.cu", 0, 0, 0); watch(p, cancel, &calls);
    int const status = make(p, 0, 0); printf("cancelled %d %d\n", status, calls > 0);
}
int main(int count, char** words) {
    setvbuf(stdout, 0, _IONBF, 0);
    for (int i = 1; i < count; ++i) {
        char const *w = words[i], *name = strchr(w, ':') ? strchr(w, ':') + 1 : ""; void** const at = h + (unsigned char)w[1];
        if (w[0] == 'o' || w[0] == 'g' || w[0] == 'n')
            *at = dlopen(name, RTLD_LAZY | (w[0] == 'g' ? RTLD_GLOBAL : w[0] == 'n' ? RTLD_NOLOAD : 0)), printf("%c %s\n", w[0], *at ? "yes" : "no");
        if (w[0] == 'x') printf("closed %d\n", dlclose(*at));
        if (w[0] == 'v') { int a = 0, b = 0; int (*f)(int*, int*) = *at ? dlsym(*at, "nvrtcVersion") : 0; printf("version %d", f ? f(&a, &b) : -1); printf(" %d.%d\n", a, b); }
        if (w[0] == 'u') { int (*f)(void) = dlsym(*at, "uses"); printf("uses %d\n", f()); }
        if (w[0] == 'm') compile(*at, h[(unsigned char)w[2]]);
        if (w[0] == 'q') printf("%s %d\n", name, dlsym(w[1] == '*' ? RTLD_DEFAULT : *at, name) != 0);
        if (w[0] == 'd' && chdir(name)) return 3;
        if (w[0] == 'f') dup2(open(name, O_RDONLY), 100);
        if (w[0] == 's' && system(name)) return 3;
        if (w[0] == 'k' && without(atoi(name))) return 77;
        if (w[0] == 'b') *at = dlmopen(LM_ID_BASE, name, RTLD_NOW), printf("b %s\n", *at ? "yes" : "no");
        if (w[0] == '=') printf("the same %d\n", *at == h[(unsigned char)w[2]]);
        if (w[0] == 'e') { int a = 0, b = 0; int (*f)(int*, int*) = dlsym(RTLD_DEFAULT, "nvrtcVersion"); printf("of all %d %d\n", f ? f(&a, &b) : -1, a); }
        if (w[0] == 'a' || w[0] == 'p') {
            Dl_info about = {0}; struct link_map* map = 0; dladdr(dlsym(*at, "nvrtcVersion"), &about); dlinfo(*at, RTLD_DI_LINKMAP, &map);
            if (w[0] == 'a') printf("in %s %s %d\n", about.dli_fname, map->l_name, (char*)map->l_addr == (char*)about.dli_fbase);
            else h[(unsigned char)w[2]] = dlopen(about.dli_fname, RTLD_NOW), puts("pinned");
        }
        if (w[0] == 'r') { char origin[9999] = ""; printf("origin %d %s\n", dlinfo(*at, RTLD_DI_ORIGIN, origin), origin); }
        if (w[0] == 'l') {
            pthread_attr_t how; pthread_t thread; pthread_attr_init(&how); printf("small %d\n", pthread_attr_setstacksize(&how, 18432));
            pthread_create(&thread, &how, in_thread, (void*)name); pthread_join(thread, at);
        }
        if (w[0] == '1') printf("alone %d\n", unshare(CLONE_NEWUSER) == 0 || errno == EPERM);
        if (w[0] == 'z') printf("held %d\n", system("grep -q 'libnvrtc.*(deleted)' /proc/$PPID/maps") == 0);
        if (w[0] == 'c') watched(*at);
        if (w[0] == '+') { int (*f)(void**, char const*, char const*, int, void*, void*) = dlsym(*at, "nvrtcCreateProgram"); printf("created %d\n", f(&kept, "", "e.cu", 0, 0, 0)); }
        if (w[0] == '-') { int (*f)(void**) = dlsym(*at, "nvrtcDestroyProgram"); printf("destroyed %d\n", f(&kept)); }
    }
    return 0;
}
"""


def opens_and_closes():
    """The program above, and a folder with another compiler of the same name; None where nothing can be compiled."""
    compiler, program, other = shutil.which("cc"), SCRATCH / "opens/program", SCRATCH / "opens/other" / NVRTC.name
    if compiler is None:
        return None
    write("opens/program.c", OPENS_AND_CLOSES)
    write("opens/other/other.c", "int nvrtcVersion(int* a, int* b) { *a = 99; *b = 1; return 0; }\n")
    write("opens/user.c", "int nvrtcVersion(int*, int*); int uses(void) { int a = 0, b = 0; nvrtcVersion(&a, &b); return a; }\n")
    subprocess.run([compiler, "-w", "-pthread", "-o", program, SCRATCH / "opens/program.c", "-ldl"], check=True)
    subprocess.run([compiler, "-shared", "-fPIC", f"-Wl,-soname,{NVRTC.name}", "-o", other, SCRATCH / "opens/other/other.c"], check=True)
    subprocess.run([compiler, "-shared", "-fPIC", f"-Wl,-rpath,{other.parent}", "-o", SCRATCH / "opens/libuser.so", SCRATCH / "opens/user.c", other], check=True)
    return program, other


def as_without(program, what, *words, options=(), before=lambda: None, **environment):
    """The same output and the same end with Kiln as without."""
    for state in ("cold", "warm"):
        before()
        want = bare(program, *words, status=None, **environment)
        before()
        done = under(program, *words, options=("-v", *options), status=None, **environment)
        check((done.returncode, done.stdout) == (want.returncode, want.stdout), f"{what}, {state}", words, done, want)
    return done


@test
def a_library_that_was_closed_is_gone():
    """As without us: what is opened next is looked for anew, by whatever name."""
    made = opens_and_closes()
    if made is None:
        return
    program, other = made
    user, turned = SCRATCH / "opens/libuser.so", SCRATCH / "opens/turned"

    def turn(to=NVRTC.parent):
        turned.unlink(missing_ok=True)
        turned.symlink_to(to)

    first = {"LD_LIBRARY_PATH": f"{other.parent}:{NVRTC.parent}"}
    # The compiler's own parts, without which it compiles nothing alone, and not the compiler.
    parts = SCRATCH / "opens/parts"
    parts.mkdir()
    for part in NVRTC.parent.glob("libnvrtc-builtins.so*"):
        (parts / part.name).symlink_to(part)
    for options in ((), ("--eager",)):
        for use in (["v1"], ["m11"], []):
            done = as_without(program, "by path, then by search", f"o1:{NVRTC}", *use, "x1", f"o1:{NVRTC.name}", "v1", options=options, **first)
            check("version 0 99.1" in done.stdout, "the other one", done)
            as_without(program, "by path, then what links to it", f"o1:{NVRTC}", *use, "x1", f"o2:{user}", "u2", options=options, LD_LIBRARY_PATH=parts)
            as_without(program, "globally, then what links to it", f"g1:{NVRTC}", *use, "x1", "q*:nvrtcVersion", f"o2:{user}", "u2", options=options, LD_LIBRARY_PATH=parts)
            as_without(program, "one relative name", f"d:{NVRTC.parent}", f"o1:./{NVRTC.name}", *use, "x1", f"d:{other.parent}", f"o1:./{NVRTC.name}", "v1", "q1:nvrtcGetPTX", options=options)
            as_without(program, "a link that was turned", f"o1:{turned}/{NVRTC.name}", *use, "x1", f"s:ln -sfn {other.parent} {turned}", f"o1:{turned}/{NVRTC.name}", "v1", "q1:nvrtcGetPTX",
                       options=options, before=turn)
            as_without(program, "the first by another name", f"o1:{turned}/{NVRTC.name}", *use, "x1", f"s:ln -sfn {other.parent} {turned}", f"o1:{NVRTC}", "v1", "m11", options=options, before=turn)
        as_without(program, "only what is loaded", f"o1:{NVRTC}", "v1", "x1", f"n2:{NVRTC.name}", f"n3:{NVRTC}", options=options)
    # The same name, and other parts by now.
    compiler, turn_parts = shutil.which("cc"), f"s:rm {parts}/*; cp {SCRATCH}/opens/nothing.so {parts}/{next(NVRTC.parent.glob('libnvrtc-builtins.so.*.*')).name}"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", SCRATCH / "opens/nothing.so", "-x", "c", "/dev/null"], check=True)

    def whole():
        for part in (*parts.iterdir(),):
            part.unlink()
        for part in NVRTC.parent.glob("libnvrtc-builtins.so*"):
            (parts / part.name).symlink_to(part)

    for settings in ({"options": ()}, {"options": ("--eager",)}, {"KILN_WORKERS": "0"}):
        as_without(program, "other built-ins", f"o1:{NVRTC}", "m11", "x1", turn_parts, f"o1:{NVRTC}", "m11", before=whole, LD_LIBRARY_PATH=parts, **settings)
    again = [w for k in range(40) for w in (f"o1:{NVRTC}", "v1", "x1", f"o2:{other}", "v2", "x2")]
    done = as_without(program, "many times", *again, f"o1:{NVRTC}", "m11", f"o2:{NVRTC}", f"o3:{NVRTC.name}", "m12", "m23", "x1", "x2", "m33")
    check(" answered 'm'" in done.stderr and "without Kiln" not in done.stderr, "and is served", done.stderr)


@test
def every_function_has_a_jump():
    """What a stand-in has and the bridge has not would be left to the library."""
    nm, folder = shutil.which("nm"), BIN.parent / "lib/kiln/intercept"
    if nm is None:
        return

    def functions(*files):
        lines = subprocess.run([nm, "-D", "--defined-only", *files], check=True, capture_output=True, text=True).stdout.splitlines()
        return {line.split()[2].split("@")[0] for line in lines if len(line.split()) == 3 and line.split()[1] == "T"}

    jumps, all = functions(folder / "bridge.so"), functions(*folder.glob("libnv*.so.*"))
    check(all - jumps == {"kiln_opened", "kiln_closed", "kiln_at_exit", "kiln_finalize"} and jumps < all, "one list of all", all ^ jumps)


@test
def what_the_loader_tells():
    """Of a library that was closed and opened again, by whatever call: as without us."""
    made = opens_and_closes()
    if made is None:
        return
    program, other = made
    A, B = f"{NVRTC}", f"{other}"
    for options in ((), ("--eager",)):
        said = {"options": options, "LD_LIBRARY_PATH": str(NVRTC.parent)}
        for use in (["v1"], ["m11"], []):
            opened = [f"o1:{A}", *use, "x1", f"o1:{A}"]
            as_without(program, "its name and folder", *opened, "a1", "r1", f"d:{NVRTC.parent}", f"o2:./{NVRTC.name}", "a2", "r2", "x1", "x2", f"o1:./{NVRTC.name}", "a1", "r1", **said)
            as_without(program, "pinned by its name", *opened, "p12", "=12", "x1", "v2", f"n3:{A}", "x2", "x3", f"n3:{A}", **said)
            # One that was global once is not for ever, and the order is that of opening.
            globally = [f"g1:{A}", *use, "x1", "e", f"g2:{B}", "v2", "e"]
            as_without(program, "global once", *globally, f"o1:{A}", "v1", "e", "x2", "e", "x1", "e", **said)
            as_without(program, "global twice", *globally, f"g1:{A}", "e", "x2", "e", "x1", "e", **said)
            as_without(program, "what was found keeps it", f"g1:{A}", "e", "x1", f"n2:{A}", "e", **said)
            # Past the hook, which is not asked: one file is one library all the same.
            link = f"{NVRTC.parent}/.//{NVRTC.name}"
            as_without(program, "dlmopen, then dlopen", f"b1:{link}", f"o2:{A}", "=12", "m12", "m21", **said)
            done = as_without(program, "dlopen, then dlmopen", f"o1:{A}", *use, f"b2:{link}", "=12", "m12", "m21", "x1", "v2", "x2", f"n1:{A}", **said)
            check("without Kiln" not in done.stderr, "and is served", done.stderr)
    for before in ([], [f"n1:{A}"], [f"o1:{A}", f"o2:{A}", "x1", "x2"]):
        done = under(program, *before, f"b1:{A}", "v1")
        check(f"loaded without Kiln: {NVRTC.name} (it was opened by dlmopen())" in done.stderr, "the reason", done.stderr)
    as_without(program, "a small stack", f"l1:{A}", "v1", "x1", f"l1:{A}", "v1", f"l2:{NVRTC.parent}/libnvrtc.alt.so.13")
    as_without(program, "a callback that cancels", f"o1:{A}", "c1", LD_LIBRARY_PATH=NVRTC.parent)


# Compiles, or links, in main and in an exit handler that was registered before; a compile that is watched is made in the program itself.
EXITS = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void* h;
static char const* salt;
static int plain;
static int go_on(void* payload, void* other) { return 0; }
static void compile(int number) {
    int (*create)(void**, char const*, char const*, int, void*, void*) = dlsym(h, "nvrtcCreateProgram"); int (*make)(void*, int, char const**) = dlsym(h, "nvrtcCompileProgram");
    int (*watch)(void*, void*, void*) = dlsym(h, "nvrtcSetFlowCallback"), (*destroy)(void**) = dlsym(h, "nvrtcDestroyProgram"); char text[200]; void* p = 0;
    sprintf(text, "extern \"C\" __global__ void e(int* a) { *a = %d; }\n// %s", number, number ? salt : "");
    create(&p, text, "e.cu", 0, 0, 0);
    if (watch && !plain) watch(p, go_on, 0);
    int const made = make(p, 0, 0); printf("compiled %d %d\n", made, destroy(&p));
}
static void link(int number) {
    int (*create)(void**, unsigned, char const**) = dlsym(h, "nvJitLinkCreate"), (*destroy)(void**) = dlsym(h, "nvJitLinkDestroy"), (*complete)(void*) = dlsym(h, "nvJitLinkComplete");
    int (*add)(void*, int, void const*, size_t, char const*) = dlsym(h, "nvJitLinkAddData"); char const* options[] = {"-arch=sm_90"}; char text[300]; void* k = 0;
    sprintf(text, ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k%d() { ret; }\n// %s\n", number, salt);
    int const created = create(&k, 1, options), added = add(k, 2, text, strlen(text) + 1, "x"), linked = complete(k); printf("linked %d %d %d %d\n", created, added, linked, destroy(&k));
}
static void (*work)(int);
static void at_exit(void) { work(2); puts("the end"); }
static void* thread(void* none) { return 0; }
int main(int count, char** words) {
    setvbuf(stdout, 0, _IONBF, 0);
    h = dlopen(words[1], RTLD_NOW); work = strstr(words[1], "nvrtc") ? compile : link; salt = words[2]; plain = words[3] != 0;
    if (work == compile) compile(0);
    atexit(at_exit);
    work(1);
    if (words[3] && !strcmp(words[3], "in a thread")) { pthread_t last; pthread_create(&last, 0, thread, 0); }
    if (words[3]) pthread_exit(0);
    return 3;
}
"""


@test
def exit_handlers_may_compile():
    """The real library is opened late. It is ended after all that the program registered, as if it were not."""
    compiler, program = shutil.which("cc"), SCRATCH / "exits"
    if compiler is None:
        return
    write("exits.c", EXITS)
    subprocess.run([compiler, "-w", "-pthread", "-o", program, SCRATCH / "exits.c", "-ldl"], check=True)
    under(program, NVRTC, "filled", status=3)
    for library in filter(None, (NVRTC, NVJITLINK)):
        for options in ((), ("--eager",), ("--verify",)):
            for number in range(4):
                words = [library, f"{options}{number}"]
                want, done = bare(program, *words, status=3), under(program, *words, options=options, status=None)
                check((done.returncode, done.stdout) == (want.returncode, want.stdout), "compiled and linked at exit", words, done, want)
        # Where main has ended before: glibc calls exit() when the last thread ends, and a thread of ours would be the last again.
        for last in ("in main", "in a thread"):
            for settings in ({}, {"KILN_WORKERS": "0"}):
                words = [library, f"{last}{settings}", last]
                want, done = bare(program, *words), under(program, *words, status=None, **settings)
                check((done.returncode, done.stdout) == (want.returncode, want.stdout) and "the end" in want.stdout, "when the last thread has ended", words, done, want)


# A watcher that does what it is told, and who calls it.
CALLBACKS = r"""
#include <dlfcn.h>
#include <cstdio>
#include <cstring>
#include <pthread.h>
#include <stdexcept>
static void* h; static char const *mode, *salt; static int calls;
template <class F> static F* of(F*& f, char const* name) { return f = reinterpret_cast<F*>(dlsym(h, name)); }
static int watcher(void*, void*) {
    ++calls;
    if (!strcmp(mode, "throws")) throw std::runtime_error("mine");
    if (!strcmp(mode, "ends its thread")) pthread_exit(reinterpret_cast<void*>(9));
    if (!strcmp(mode, "cancels its thread")) { pthread_cancel(pthread_self()); pthread_testcancel(); }
    return !strcmp(mode, "cancels once") && calls == 1;
}
static void* body(void*) {
    int (*create)(void**, char const*, char const*, int, void*, void*); int (*make)(void*, int, char const**); int (*watch)(void*, int (*)(void*, void*), void*); int (*destroy)(void**); int (*size)(void*, size_t*);
    of(create, "nvrtcCreateProgram"), of(make, "nvrtcCompileProgram"), of(watch, "nvrtcSetFlowCallback"), of(destroy, "nvrtcDestroyProgram"), of(size, "nvrtcGetPTXSize");
    char text[200]; void* p = nullptr; size_t n = 0; int made = -1;
    sprintf(text, "extern \"C\" __global__ void w(int* a) { *a = 482; }\n// %s", salt);
    create(&p, text, "w.cu", 0, 0, 0);
    if (mode[0]) watch(p, watcher, nullptr);
    try { made = make(p, 0, 0); } catch (std::exception const& e) { printf("caught %s\n", e.what()); }
    int const has = size(p, &n); printf("made %d, has %d, asked %d\n", made, has, calls > 0); printf("destroyed %d\n", destroy(&p));
    return nullptr;
}
int main(int, char** words) {
    setvbuf(stdout, nullptr, _IONBF, 0); h = dlopen(words[1], RTLD_NOW); salt = words[2]; mode = words[3]; pthread_t thread; void* out;
    if (!dlsym(h, "nvrtcSetFlowCallback")) return 0;
    pthread_create(&thread, nullptr, body, nullptr); pthread_join(thread, &out); printf("thread %ld\n", long(out)); printf("closed %d\n", dlclose(h));
}
"""


@test
def callbacks_of_the_program():
    """One that throws, or ends its thread, does so through us; one that cancels is heard, whoever asked it."""
    compiler, program = shutil.which("c++"), SCRATCH / "callbacks"
    if compiler is None:
        return
    write("callbacks.cpp", CALLBACKS)
    subprocess.run([compiler, "-w", "-pthread", "-o", program, SCRATCH / "callbacks.cpp", "-ldl"], check=True)
    for mode in ("throws", "ends its thread", "cancels its thread", "cancels once"):
        for options in ((), ("--eager",), ("--verify",)):
            words = [program, NVRTC, f"{mode} {options}"]
            want = bare(*words, mode, status=None)
            for state in ("cold", "warm"):
                done = under(*words, mode, options=options, status=None)
                check((done.returncode, done.stdout) == (want.returncode, want.stdout), f"a watcher that {mode}, {state}", done, want)
                under(*words, "")


# A watcher that leaves a compile for good, and everybody who compiles after it.
LEAVING = r"""
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <stdexcept>
#include <unistd.h>
static void* h; static char const *mode, *salt; static int calls; static jmp_buf back; static bool again, really;
static int (*create)(void**, char const*, char const*, int, void*, void*); static int (*make)(void*, int, char const**); static int (*watch)(void*, int (*)(void*, void*), void*); static int (*destroy)(void**); static int (*size)(void*, size_t*);
template <class F> static void of(F*& f, char const* name) { f = reinterpret_cast<F*>(dlsym(h, name)); }
static int goes_on(void*, void*) { return 0; }
static void* made_by(char const* what) { static char text[300]; void* p = nullptr; sprintf(text, "extern \"C\" __global__ void w(int* a) { *a = 482; }\n// %s %s", salt, what); create(&p, text, "w.cu", 0, 0, 0); return p; }
static void tell(char const* what, int made, void* p) { size_t n = 0; int const has = size(p, &n), gone = destroy(&p); printf("%s: made %d, has %d, destroyed %d\n", what, made, has, gone); }
static void one(char const* what, bool watched) { void* const p = made_by(what); if (watched) watch(p, goes_on, nullptr); tell(what, make(p, 0, 0), p); }
// At its first question the compiler holds a lock of its own, which it never gives back if it is left then.
static int leaves(void*, void*) {
    if (++calls != 2) return 0;
    if (!strcmp(mode, "throws")) throw std::runtime_error("mine");
    if (!strcmp(mode, "jumps")) longjmp(back, 1);
    if (!strcmp(mode, "ends its thread")) pthread_exit(reinterpret_cast<void*>(9));
    if (!strcmp(mode, "cancels its thread")) { pthread_cancel(pthread_self()); pthread_testcancel(); }
    if (!strcmp(mode, "compiles")) { one("within, watched", true); one("within", false); }
    return 0;
}
static void* leaving(void*) {
    static void* p; static volatile int made; p = made_by("leaves"); made = -1;
    if (again) make(p, 0, 0);
    if (really) make(p, 0, 0);
    watch(p, leaves, nullptr);
    if (!setjmp(back)) { try { made = make(p, 0, 0); } catch (std::exception const& e) { printf("caught %s\n", e.what()); } }
    else puts("jumped");
    tell("leaves", made, p); one("the same thread, watched", true); one("the same thread", false);
    return nullptr;
}
static void* other(void*) { one("another thread, watched", true); one("another thread", false); return nullptr; }
int main(int, char** words) {
    setvbuf(stdout, nullptr, _IONBF, 0); h = dlopen(words[1], RTLD_NOW); salt = words[2]; mode = words[3]; again = words[4][0] != 'o'; really = words[4][0] == 'r'; alarm(atoi(words[5])); pthread_t thread; void* out;
    of(create, "nvrtcCreateProgram"), of(make, "nvrtcCompileProgram"), of(watch, "nvrtcSetFlowCallback"), of(destroy, "nvrtcDestroyProgram"), of(size, "nvrtcGetPTXSize");
    if (!watch) return 0;
    pthread_create(&thread, nullptr, leaving, nullptr); pthread_join(thread, &out); printf("thread %ld\n", long(out));
    pthread_create(&thread, nullptr, other, nullptr); pthread_join(thread, &out); printf("thread %ld\n", long(out));
    one("main, watched", true); printf("asked %d, closed %d\n", calls > 1, dlclose(h));
}
"""


@test
def callbacks_that_leave_keep_nobody_waiting():
    """While a function of the program runs nothing of ours is held: it may never come back, and others may compile meanwhile."""
    compiler, program = shutil.which("c++"), SCRATCH / "leaving"
    if compiler is None:
        return
    write("leaving.cpp", LEAVING)
    subprocess.run([compiler, "-w", "-pthread", "-o", program, SCRATCH / "leaving.cpp", "-ldl"], check=True)
    for mode in ("throws", "jumps", "ends its thread", "cancels its thread", "compiles"):
        for which in ("once", "again", "really again"):  # the first compile, one by the library itself, one that it calls the watcher of directly
            want = bare(program, NVRTC, "", mode, which, 20, status=None)
            if want.returncode != 0:  # a compiler that holds its lock longer
                continue
            for settings in ({}, {"KILN_WORKERS": "0"}):
                done = under(program, NVRTC, f"{mode} {which} {settings}", mode, which, 120, status=None, **settings)
                check((done.returncode, done.stdout) == (0, want.stdout), f"a watcher that {mode}", which, done, want)


@test
def a_compiler_that_was_closed_is_not_touched():
    """Its file may be written over, and its room is free."""
    made = opens_and_closes()
    if made is None:
        return
    program, _ = made
    place = SCRATCH / "opens/own"

    def fresh():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        shutil.copy(os.path.realpath(NVRTC), place / NVRTC.name)

    for settings in ({"options": ()}, {"options": ("--eager",)}, {"KILN_WORKERS": "0"}):
        for use in (["v1"], ["m11"]):
            opened = [f"o1:{place}/{NVRTC.name}", *use, "x1"]
            for what, then in {"cut off": f"s:truncate -s 0 {place}/{NVRTC.name}", "written over": f"s:cat /dev/zero | head -c 50000000 > {place}/{NVRTC.name}"}.items():
                as_without(program, what, *opened, then, f"o2:{place}/{NVRTC.name}", f"o3:{NVRTC}", "v3", before=fresh, LD_LIBRARY_PATH=NVRTC.parent, **settings)
            as_without(program, "removed", *opened, f"s:rm {place}/{NVRTC.name}", "z", before=fresh, LD_LIBRARY_PATH=NVRTC.parent, **settings)


@test
def no_thread_of_ours_stays():
    """A process of several threads may not unshare its user namespace, and much else."""
    made = opens_and_closes()
    if made is None:
        return
    for workers in ("1", "0"):
        for number in range(3):
            words = [f"o1:{NVRTC}", "m11", "1"]
            want, done = bare(made[0], *words), under(made[0], *words, KILN_WORKERS=workers, KILN_CACHE_DIR=SCRATCH / f"alone/{workers}/{number}")
            # A compiler may leave one of its own behind, where it has a driver beside it: then Kiln's worker has that.
            check(done.stdout in (want.stdout, want.stdout.replace("alone 0", "alone 1")) and "1 made" in done.stderr, "none is left", done, want)


@test
def one_file_is_one_library():
    """Served or left alone, by whatever names it is opened: what one makes the other could not read."""
    made = opens_and_closes()
    if made is None:
        return
    program, other = made
    odd = SCRATCH / "opens/odd.so"
    odd.symlink_to(os.path.realpath(NVRTC))
    deep = "." + "/." * 300
    places = {"a name that is not a compiler's": odd, "a long name": f"{NVRTC.parent}/{deep}/{NVRTC.name}", "words of the loader": f"$ORIGIN/{os.path.relpath(NVRTC, program.parent)}",
              "another spelling": f"{NVRTC.parent}//{NVRTC.name}", "a descriptor": "/proc/self/fd/100", "by search": NVRTC.name}
    for what, name in places.items():
        for first, second in ((NVRTC, name), (name, NVRTC)):
            as_without(program, what, f"f:{NVRTC}", f"o1:{first}", f"o2:{second}", "m12", "m21", f"n3:{name}", f"n4:{NVRTC}")
    done = as_without(program, "many spellings of another", f"o1:{NVRTC}", *(f"o9:{other.parent}/{'./' * k}{other.name}" for k in range(70)), f"o2:{NVRTC.parent}//{NVRTC.name}", "m12", "m21")
    check("without Kiln" not in done.stderr, "are one file", done.stderr)
    cache = SCRATCH / "opens/cache"
    as_without(program, "after the cache was removed", f"o1:{NVRTC}", f"s:rm -rf {cache}", f"o2:{NVRTC.parent}//{NVRTC.name}", "m12", "m21", "x1", "m22", KILN_CACHE_DIR=cache)
    # By search, and then by all its names.
    as_without(program, "only what is loaded", f"o1:{NVRTC.name}", f"n2:{NVRTC.parent}//{NVRTC.name}", f"n3:{odd}", "m12", "m31")
    # What it made while it was left alone is kept over the last dlclose(); and the other way round.
    done = as_without(program, "left alone before", f"b1:{NVRTC}", "+1", "x1", f"o1:{NVRTC}", "-1", "m11")
    check(" answered 'm'" in done.stderr, "and is served then", done.stderr)
    as_without(program, "left alone meanwhile", f"o1:{NVRTC}", "+1", "x1", f"b1:{NVRTC}", "x1", f"o1:{NVRTC}", "-1", "m11")
    # A name whose meaning changes before the first use.
    as_without(program, "through /proc/self/cwd", f"d:{NVRTC.parent}", f"o1:/proc/self/cwd/{NVRTC.name}", f"d:{other.parent}", "v1")
    as_without(program, "through a descriptor", f"f:{NVRTC.parent}", f"o1:/proc/self/fd/100/{NVRTC.name}", f"f:{other.parent}", "v1")


@test
def what_is_left_alone_is_said():
    opened = "import ctypes, sys; ctypes.CDLL(sys.argv[1]); print('opened')"
    place = SCRATCH / "left"
    place.mkdir()
    (place / "libnvrtc.alt.so.13").symlink_to(os.path.realpath(NVRTC))
    done = under(PYTHON, "-c", opened, place / "libnvrtc.alt.so.13")
    check("loaded without Kiln: libnvrtc.alt.so.13" in done.stderr, "one line says so", done.stderr)
    done = under(PYTHON, "-c", opened, place / "libnvrtc.alt.so.13", options=("-q", "--jit=forbid"))
    check("libnvrtc.alt.so.13' was loaded without Kiln" in done.stderr and "not forbidden" in done.stderr, "who forbids is told in any case", done.stderr)
    space = "import ctypes as C, sys; d = C.CDLL(None).dlmopen; d.restype = C.c_void_p; print(bool(d(C.c_long(-1), sys.argv[1].encode(), 2)))"
    done = under(PYTHON, "-c", space, NVRTC)
    check(done.stdout == "False\n" or "in a namespace of its own" in done.stderr, "dlmopen", done.stdout, done.stderr)
    done = under(PYTHON, "-c", opened, NVRTC)
    check("without Kiln" not in done.stderr, "what is served is not named", done.stderr)
    # Whatever the reason is, and however long the name.
    (place / "odd.so").symlink_to(os.path.realpath(NVRTC))
    reasons = {place / "odd.so": "odd.so (its file is not called as a compiler is)", f"{place}{'/.' * 300}/libnvrtc.alt.so.13": "libnvrtc.alt.so.13 (there is no stand-in for it)",
               f"{NVRTC.parent}{'/.' * 300}/{NVRTC.name}": f"{NVRTC.name} (its path is too long, or leads nowhere)"}
    for name, said in reasons.items():
        done = under(PYTHON, "-c", opened, name)
        check(f"loaded without Kiln: {said}" in done.stderr, "the library and the reason", name, done.stderr)
    # Kiln where the loader cannot name it, and without its parts.
    for name, parts in (("kiln of mine", True), ("a:b", True), ("alone", False)):
        folder = SCRATCH / "left" / name
        (folder / "bin").mkdir(parents=True)
        for file in ("kiln", "kiln-foreign-worker"):
            if (BIN / file).exists():
                shutil.copy2(BIN / file, folder / "bin" / file)
        if parts:
            shutil.copytree(BIN.parent / "lib/kiln/intercept", folder / "lib/kiln/intercept")
        words = ["run", "--jit=forbid", "--", PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 470, "-arch=sm_90"]
        done = run(*words, program=folder / "bin/kiln")
        said = "1 forbidden" in done.stderr if parts else "nothing is answered; what it compiles is not forbidden" in done.stderr
        check(said, f"{name}: served or said", done.stdout, done.stderr)


@test
def limits_of_the_program():
    compiler = shutil.which("cc")
    if compiler is None:
        return
    write("opens.c", "#include <dlfcn.h>\n#include <stdio.h>\nint main(int n, char** v) { void* h = dlopen(v[1], RTLD_NOW); puts(h ? \"opened\" : dlerror()); return 0; }\n")
    subprocess.run([compiler, "-o", SCRATCH / "opens", SCRATCH / "opens.c", "-ldl"], check=True)
    for blocks in (0, 1, 4, 100, 1000, 10000):
        fresh = SCRATCH / f"limited-{blocks}"
        done = run("run", "--", "sh", "-c", f'ulimit -f {blocks}; exec "$0" "$1"', SCRATCH / "opens", NVRTC, KILN_CACHE_DIR=fresh)
        check(done.stdout == "opened\n", "files of the program may be small", blocks, done)
        check(not list(fresh.glob("run/standins/*.part")), "nothing is left behind", blocks)
    # Descriptors that run out come back.
    write("none_left.py", r'''
import ctypes as C, os, sys
n = C.CDLL(sys.argv[1]); a, b, p, all = C.c_int(), C.c_int(), C.c_void_p(), []
try:
    while True: all.append(os.open("/dev/null", 0))
except OSError: pass
n.nvrtcVersion(C.byref(a), C.byref(b))
for f in all: os.close(f)
print(n.nvrtcVersion(C.byref(a), C.byref(b)), n.nvrtcCreateProgram(C.byref(p), b"__global__ void d() {}", None, 0, None, None), n.nvrtcCompileProgram(p, 0, None))
''')
    done = under("sh", "-c", 'ulimit -n 64; exec "$0" "$@"', PYTHON, SCRATCH / "none_left.py", NVRTC, KILN_CACHE_DIR=SCRATCH / "limited")
    check(done.stdout == "0 0 0\n", "a failure of the moment is not kept", done)


@test
def threads_of_the_program():
    """No call of a stand-in is one where a thread is cancelled, libraries may keep much for each thread, and threads may be small."""
    compiler = shutil.which("cc")
    if compiler is None:
        return
    write("cancelled.c", r'''
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
static void* h; static int done;
static void* work(void* x) {
    void* p = 0; int (*c)(void**, char const*, char const*, int, void*, void*) = dlsym(h, "nvrtcCreateProgram"); int (*d)(void*, int, void*) = dlsym(h, "nvrtcCompileProgram");
    pthread_cancel(pthread_self()); int const made = c(&p, "__global__ void c() {}", "c.cu", 0, 0, 0);
    done = 1 + made + d(p, 0, 0); pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, 0); return x;
}
int main(int n, char** v) { pthread_t t; void* r; h = dlopen(v[1], RTLD_NOW); pthread_create(&t, 0, work, 0); pthread_join(t, &r); printf("%d %d\n", done, r == PTHREAD_CANCELED); return 0; }
''')
    subprocess.run([compiler, "-w", "-o", SCRATCH / "cancelled", SCRATCH / "cancelled.c", "-ldl", "-pthread"], check=True)
    for again in range(2):
        done = under(SCRATCH / "cancelled", NVRTC)
        check(done.stdout == "1 0\n", "a compile is no cancellation point", done)
    write("much.c", "__attribute__((tls_model(\"initial-exec\"))) __thread char much[3000]; int use(int i) { return much[i] = 1; }\n")
    write("threads.c", "#include <pthread.h>\n#include <stdio.h>\nint use(int);\nstatic void* f(void* x) { return use(5) ? 0 : x; }\n"
          "int main(void) { pthread_attr_t a; pthread_t t; void* r; pthread_attr_init(&a); pthread_attr_setstacksize(&a, 16384); int e = pthread_create(&t, &a, f, 0); if (!e) pthread_join(t, &r); printf(\"%d\\n\", e); return e != 0; }\n")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", SCRATCH / "libmuch.so", SCRATCH / "much.c"], check=True)
    subprocess.run([compiler, "-o", SCRATCH / "threads", SCRATCH / "threads.c", SCRATCH / "libmuch.so", f"-Wl,-rpath,{SCRATCH}", "-pthread"], check=True)
    bare(SCRATCH / "threads")
    under(SCRATCH / "threads")
    under("sh", "-c", SCRATCH / "threads")
    run("audit", "--", SCRATCH / "threads", status=None)
    check("0" in run("audit", "--", SCRATCH / "threads", status=None).stdout.split(), "and under kiln audit")
    mine = under("sh", "-c", "echo $GLIBC_TUNABLES", GLIBC_TUNABLES="glibc.malloc.check=0").stdout
    check(mine.startswith("glibc.malloc.check=0:"), "the user's own are kept", mine)
    mine = under("sh", "-c", "echo $GLIBC_TUNABLES", GLIBC_TUNABLES="glibc.rtld.optional_static_tls=600").stdout
    check(mine == "glibc.rtld.optional_static_tls=600\n", "and not changed", mine)
    built = subprocess.run([compiler, "-fsanitize=thread", "-o", SCRATCH / "watched", SCRATCH / "still.c"], capture_output=True) if write("still.c", "int main(void) { return 3; }\n") else None
    if built.returncode == 0 and subprocess.run([SCRATCH / "watched"], capture_output=True).returncode == 3:
        done = under(SCRATCH / "watched", options=("-v",), status=3)
        check("runs as without Kiln: libtsan" in done.stderr, "one that keeps too much runs without us", done.stderr)
        run("audit", "--", SCRATCH / "watched", status=3)


@test
def relative_settings():
    place = SCRATCH / "relative"
    (place / "sub").mkdir(parents=True)
    words = ["sh", "-c", 'cd sub; exec "$0" "$@"', PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 480, "-arch=sm_90"]
    for again in range(2):
        run("run", "--", *words, cwd=place, KILN_EVENTS="events.jsonl", KILN_CACHE_DIR="kept", KILN_CACHE_PATH_RO="other::/not/there")
    check((place / "events.jsonl").exists() and not list((place / "sub").iterdir()), "nothing in the program's own folder", list(place.rglob("*"))[:20])
    done = run("run", "--jit=forbid", "--", *words, cwd=place, KILN_CACHE_PATH_RO="nothing:kept", KILN_CACHE_DIR=SCRATCH / "relative.empty")
    check("1 compiles answered" in done.stderr, "a list of relative folders", done.stderr)
    shown = run("run", "--", "sh", "-c", "echo $KILN_CACHE_PATH_RO", cwd=place, KILN_CACHE_PATH_RO="a::/b").stdout
    check(shown == f"{place}/a::/b\n", "each of them", shown)
    done = run("run", "-v", "--", *words, cwd=place, KILN_CACHE_DIR="kept", NVRTC_HOME="/opt/nvrtc")
    check("1 compiles answered" in done.stderr, "a variable that is a place changes no result", done.stderr)


@test
def failures_do_not_queue():
    """Ranks whose compile fails take as long as one and what the machine is short of, not one after the other."""
    write("fails.py", r'''
import ctypes as C, sys, time
n = C.CDLL(sys.argv[1]); p = C.c_void_p(); begin = time.monotonic()
n.nvrtcCreateProgram(C.byref(p), sys.argv[2].encode(), None, 0, None, None)
status = n.nvrtcCompileProgram(p, 1, (C.c_char_p * 1)(b"-arch=sm_90"))
print(status, begin, time.monotonic())
''')
    source = LONG % 490 + "\n__global__ void wrong() { asm(\"nonsense;\"); }"
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("KILN_")}, "KILN_CACHE_DIR": str(SCRATCH / "queue"), "KILN_WORKERS": "0"}
    ranks = [subprocess.Popen([CLI, "run", "-q", "--", PYTHON, SCRATCH / "fails.py", NVRTC, source], stdout=subprocess.PIPE, text=True, env=env) for _ in range(6)]
    said = [r.communicate()[0].split() for r in ranks]
    check(all(s[0] != "0" for s in said), "none compiles", said)
    ends = sorted(float(s[2]) for s in said)
    first = ends[0] - min(float(s[1]) for s in said)
    check(ends[-1] - ends[1] < 2.5 * first, "all that waited go on at once", first, ends)


@test
def nothing_of_ours_is_visible():
    if shutil.which("nm") is None:
        return
    def exported(file):
        lines = subprocess.run(["nm", "-D", "--defined-only", file], capture_output=True, text=True, check=True).stdout.split("\n")
        return {line.split()[2].split("@")[0] for line in lines if " T " in line or " A " in line}

    place = SCRATCH / "visible"
    for file in filter(None, (NVRTC, NVJITLINK)):
        under(PYTHON, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", file, KILN_CACHE_DIR=place / file.name)
        copies = list((place / file.name / "run/standins").iterdir())
        bridge, standin = sorted(copies, key=lambda f: f.suffix != ".bridge")
        seen = {n for n in exported(bridge) if n.isprintable()}
        check({n for n in seen if n != file.name and n != "KILN_NODE"} == {n for n in exported(file) if re.match("(__)?nv", n)}, f"{file.name}: what the real one exports", seen ^ exported(file))
        check({n for n in exported(standin) if n.isprintable()} <= {file.name}, f"{file.name}: nothing is found behind it", exported(standin))


@test
def a_search_for_leaks_is_not_misled():
    """AddressSanitizer guesses where memory of a thread is, by where it begins: ours must not lie where it guesses wrong."""
    for file in sorted((BIN.parent / "lib/kiln/intercept").glob("lib*")):
        data = file.read_bytes()
        start, size, count = *struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54)
        parts = [struct.unpack_from("<IIQQQQQQ", data, start + i * size) for i in range(count)]
        check(all(part[7] % 32 == 0 for part in parts if part[0] == 7), f"{file.name}: where its threads' memory begins", parts)
    compiler = shutil.which("gcc")
    if compiler is None:
        return
    write("leaks.c", r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int nvrtcVersion(int*, int*);
int main(void) { int a, b; printf("%d\n", nvrtcVersion(&a, &b)); return 0; }
""")
    built = subprocess.run([compiler, "-w", "-fsanitize=address", "-o", SCRATCH / "leaks", SCRATCH / "leaks.c", NVRTC, f"-Wl,-rpath,{NVRTC.parent}"], capture_output=True)
    if built.returncode != 0 or bare(SCRATCH / "leaks", status=None).returncode != 0:  # no sanitizer here, or none that works
        return
    for state in ("cold", "warm"):
        done = under(SCRATCH / "leaks", KILN_CACHE_DIR=SCRATCH / "leaks.cache", status=None)
        check((done.returncode, done.stdout) == (0, "0\n"), f"nothing is found, {state}", done)


@test
def foreign_work_is_among_the_events():
    events = SCRATCH / "events.jsonl"
    one(150, KILN_EVENTS=events)
    one(150, KILN_EVENTS=events)
    one(151, source="this is no program", KILN_EVENTS=events)
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    kinds = [line["kind"] for line in lines]
    check(kinds == ["note", "missed", "compiling", "compiled", "waited", "note", "found", "note", "missed", "compiling", "compile_failed", "waited"],
          "made, answered, failed", *lines)
    made, found = lines[3], lines[6]
    check(made["unit"] == found["unit"] == "k" and made["target"] == "sm_90" and made["key"] == found["key"], "what it was", made, found)
    name = pathlib.Path(PYTHON).name + " one.py"
    check(all(name in line.get("detail", "") for line in lines if line["kind"] != "missed"), "each says for whom", *lines)
    check(lines[4]["ns"] > found["ns"] > 0, "who made it stood still", lines[4], found)
    said = data("events", events, "--summary")
    check(said["blocked"] == 2 and said["unreadable"] == 0, "kiln events", said)
    check({c["what"] for c in said["compiles"]} == {"headers-read"}, "no compile of a stranger has precompiled headers", said["compiles"])
    check("k" in run("status", events).stdout, "kiln status")
    run("trace", events, "-o", SCRATCH / "trace.json")
    trace = (SCRATCH / "trace.json").read_text()
    check(f'"{name} {made["pid"]}"' in trace and '"compile"' in trace, "kiln trace names the program", trace)
    check(f"k ({name})" in run("cache", "list").stdout, "and so does kiln cache", run("cache", "list").stdout)
    # What was kept and is damaged is made again, and tells of itself.
    events.unlink()
    before = set(CACHE.glob("v1/*/*.kiln"))
    one(153)
    entry, = (f for f in CACHE.glob("v1/*/*.kiln") if f not in before)
    text = bytearray(entry.read_bytes())
    text[-9] ^= 1
    entry.write_bytes(text)
    _, said = one(153, options=("-v",), KILN_EVENTS=events)
    check("made 'k'" in said and "what was kept is damaged: bad-digest" in said, "why it is made again", said)
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    check([(line["kind"], line.get("reason")) for line in lines][:3] == [("note", "program"), ("rejected", "bad-digest"), ("missed", "unusable")], "a damaged entry", *lines)
    check(data("cache", "stats")["rejected"].get("bad-digest") == 1, "is counted", data("cache", "stats"))
    # A file that cannot be written is nobody's problem.
    done, _ = one(152, KILN_EVENTS="/proc/nowhere/events")
    check(done["status"] == 0, "no events, and no harm", done)


@test
def who_waits_for_another_says_so():
    events, cache = SCRATCH / "joined.jsonl", {"KILN_CACHE_DIR": SCRATCH / "joined"}
    write("joined.py", r'''
import ctypes as C, sys, threading
n = C.CDLL(sys.argv[1]); options = (C.c_char_p * 1)(b"-arch=sm_90"); together = threading.Barrier(3)
def compiled():
    p = C.c_void_p(); n.nvrtcCreateProgram(C.byref(p), sys.argv[2].encode(), None, 0, None, None); together.wait()
    print(n.nvrtcCompileProgram(p, 1, options))
threads = [threading.Thread(target=compiled) for _ in range(3)]
for t in threads: t.start()
for t in threads: t.join()
''')
    slow = "template <int N> struct s { static __device__ int f(int x) { return s<N - 1>::f(x * N + 1) ^ s<N - 1>::f(x + N); } };\n" \
           'template <> struct s<0> { static __device__ int f(int x) { return x; } };\nextern "C" __global__ void k(int* a) { *a = s<15>::f(*a); }'
    done = under(PYTHON, SCRATCH / "joined.py", NVRTC, slow, options=("--json",), KILN_EVENTS=events, **cache)
    happenings = json.loads(done.stderr)["happenings"]
    check(sorted(h["what"] for h in happenings) == ["answered", "answered", "made"], "one makes it", *happenings)
    # Who came when it was there already has not waited.
    joined = [h for h in happenings if h["what"] == "answered" and h.get("waited_us", 0) > 0]
    check(joined, "the others wait for it", *happenings)
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    waits = [line for line in lines if line["kind"] == "waited"]
    check(len(waits) == 1 + len(joined), "a wait for each", *lines)
    check(max(line["ns"] for line in lines if line["kind"] == "found") < min(w["ns"] for w in waits), "and is not read meanwhile", *lines)
    check(data("events", events, "--summary")["blocked"] == 1 + len(joined), "kiln events", run("events", events, "--summary").stdout)
    check(data("status", events)["waits"] == 1 + len(joined), "kiln status", data("status", events))
    stats = data("cache", "stats", **cache)
    check(stats["blocked"] == 1 + len(joined) and stats["served_without_waiting"] == 2 - len(joined), "kiln cache stats", stats)


@test
def forbidden_is_forbidden():
    done, said = one(200, options=("--jit=forbid",))
    check(done["status"] == 6 and "--jit=forbid" in done["log"] and "request" in done["log"], "what is not kept fails to compile", done)
    check("would have been compiled" in said and "1 forbidden" in said, "and is named", said)
    # By the request that it is kept under, whatever the folder is called this time.
    write("request.py", r'''
import ctypes as C, os, sys
n = C.CDLL(sys.argv[1]); p = C.c_void_p(); options = (C.c_char_p * 1)(b"-arch=sm_90")
n.nvrtcCreateProgram(C.byref(p), b'extern "C" __global__ void k(int* a) { *a = 202; }', f"/tmp/x{os.getpid()}/k.cu".encode(), 0, None, None)
n.nvrtcCompileProgram(p, 1, options); z = C.c_size_t(); n.nvrtcGetProgramLogSize(p, C.byref(z)); log = C.create_string_buffer(z.value); n.nvrtcGetProgramLog(p, log)
print(log.value.decode())
''')
    words, events = [PYTHON, SCRATCH / "request.py", NVRTC], SCRATCH / "forbidden.jsonl"
    asked = set()
    for _ in range(2):
        done = under(*words, options=("--jit=forbid", "--json"), KILN_EVENTS=events)
        asked |= {re.search("request ([0-9a-f]{64})", done.stdout).group(1), json.loads(done.stderr)["happenings"][0]["request"]}
    kept = json.loads(under(*words, options=("--json",)).stderr)["happenings"][0]
    check(asked == {kept["request"]} and kept["what"] == "made", "one request", asked, kept)
    named = [json.loads(line) for line in events.read_text().splitlines()]
    check({line["request"] for line in named if line["kind"] != "note"} == {kept["request"][:16]}, "in events, too", *named)
    one(200)
    done, said = one(200, options=("--jit=forbid",))
    check(done["status"] == 0 and not done["loaded"] and " 0 made" in said, "what is kept is answered", done, said)
    _, said = one(201, options=("--jit=warn",))
    check("made 'k'" in said, "warn names what was made", said)


@test
def a_difference_is_found():
    entries = set(CACHE.glob("v1/*/*.kiln"))
    one(300)
    mine = [f for f in CACHE.glob("v1/*/*.kiln") if f not in entries]
    one(301)
    # The bytes of one kernel under the key of another cannot be had by moving files: the address is checked.
    theirs = [f for f in CACHE.glob("v1/*/*.kiln") if f not in entries and f not in mine]
    check(len(mine) == 1 and len(theirs) == 1, "one entry each", mine, theirs)
    shutil.copy(theirs[0], mine[0])
    want, _ = one(300, kiln=False)
    got, said = one(300, options=("--verify",))
    check(got["cubin"] == want["cubin"], "an entry under another's name is not used", said)
    compiler = shutil.which("cc")
    if compiler is None:
        return
    # A linker that says something else each time.
    outputs = "".join(f'int nvJitLinkGet{kind}Size(void* h, size_t* s) {{ *s = {size}; return 0; }}\nint nvJitLinkGet{kind}(void* h, char* d) {{ {text} return 0; }}\n'
                      for kind, size, text in (("LinkedCubin", 5, 'memcpy(d, getenv("SAYS"), 5);'), ("LinkedPtx", 0, ""), ("LinkedLTOIR", 0, ""), ("ErrorLog", 0, ""), ("InfoLog", 0, "")))
    write("moody/moody.c", '#include <stdlib.h>\n#include <string.h>\nint nvJitLinkVersion(unsigned* a, unsigned* b) { *a = 13; *b = 0; return 0; }\nint nvJitLinkCreate(void** h, unsigned n, char const** o) { *h = malloc(1); return 0; }\n'
          'int nvJitLinkDestroy(void** h) { free(*h); *h = 0; return 0; }\nint nvJitLinkAddData(void* h, int t, void const* d, size_t s, char const* n) { return 0; }\nint nvJitLinkAddFile(void* h, int t, char const* n) { return 0; }\n'
          'int nvJitLinkComplete(void* h) { return strcmp(getenv("SAYS"), "never") == 0 ? 6 : 0; }\n' + outputs)
    moody = SCRATCH / "moody/libnvJitLink.so.13"
    subprocess.run([compiler, "-shared", "-fPIC", "-Wl,--build-id", f"-Wl,-soname,{moody.name}", "-o", moody, SCRATCH / "moody/moody.c"], check=True)
    write("ask.py", "import ctypes as C, sys; j = C.CDLL(sys.argv[1]); h = C.c_void_p(); j.nvJitLinkCreate(C.byref(h), 0, (C.c_char_p * 1)()); j.nvJitLinkAddData(h, 1, b'x', C.c_size_t(1), b'x')\n"
          "status = j.nvJitLinkComplete(h); d = C.create_string_buffer(6); j.nvJitLinkGetLinkedCubin(h, d) if status == 0 else None; print(status, d.value.decode())")
    ask, verify = [PYTHON, SCRATCH / "ask.py", moody], ("--verify",)
    # What differs is removed, and the next run makes it anew.
    for says, options, want, status in (("first", (), "0 first", 0), ("other", (), "0 first", 0), ("other", verify, "0 other", 1), ("other", (), "0 other", 0), ("never", verify, "6 ", 1),
                                        ("first", (), "0 first", 0), ("first", verify, "0 first", 0)):
        done = under(*ask, options=options, status=status, SAYS=says)
        check(done.stdout == want + "\n", f"a linker that says '{says}' {options}", done.stdout, done.stderr)
        check(("it is removed from the cache" in done.stderr) == (status == 1), "what became of it", done.stderr)
    done = under(*ask, options=verify, status=1, SAYS="other", KILN_READONLY=1)
    check("it stays in a cache or capsule that cannot be written" in done.stderr, "where nothing may be removed", done.stderr)
    under("sh", "-c", '"$@"; exit 5', "-", *ask, options=verify, status=1, SAYS="other")


@test
def a_time_is_no_difference():
    """How long the assembler took; and that NVRTC's own cache, beside a driver, has no words of it."""
    for number in (960, 961):
        one(961, "--ptxas-options=-v", kiln=False)
        for _ in range(2):
            _, said = one(number, "--ptxas-options=-v", options=("--verify",))
            check("1 made again and the same, 0 different" in said, "how long the assembler took", said)


@test
def a_text_of_two_forms_is_no_difference():
    # NVRTC 13.0 numbers the registers of this one in two ways, one or the other from compile to compile: the same code.
    source = """__device__ double series(double x, double q) {
    double const far = __longlong_as_double(0x7ff0000000000000), none = __longlong_as_double(0x7ff8000000000000);
    if (x == 1) return far;
    if (x < 1) return none;
    if (q <= 0) { if (q == floor(q)) return far; if (x != floor(x)) return none; }
    double sum = pow(q, -x), last = 0;
    for (int i = 0; i < 9 || q < 9; ++i) { q += 1; last = pow(q, -x); sum += last; if (last < 1e-16 * sum) return sum; }
    return sum;
}
extern "C" __global__ void k(double* o, double const* p, int n) {
    double out[4];
    #pragma unroll
    for (int j = 0; j < 4; ++j) if (j < n) out[j] = series(p[j], p[j + 4]);
    #pragma unroll
    for (int j = 0; j < 4; ++j) o[j] = out[j];
}"""
    one(0, source=source)
    for _ in range(6):
        _, said = one(0, source=source, options=("--verify",))
        check("1 made again and the same, 0 different" in said, "one of its forms", said)


@test
def names_of_a_process_are_no_difference():
    # What is internal NVRTC names after the first name that others can see, and where there are templates alone after the time and its process.
    source = "namespace { __device__ int hidden = %d; } template <class T> __global__ void k(T* a) { *a += hidden++; } template __global__ void k<int>(int*);"
    apart = {one(0, kiln=False, source=source % 7)[0]["cubin"] for _ in range(2)}
    check(len(apart) == 2, "two processes give it two names", apart)
    kept, _ = one(0, source=source % 7)
    got, said = one(0, source=source % 7, options=("--verify",))
    check(got["cubin"] == kept["cubin"] and "1 made again and the same, 0 different" in said, "an answer with a name of another process", said)
    _, said = one(0, source=source % 8, options=("--verify",))
    check("1 made again and the same, 0 different" in said and " 1 made" in said, "and one that a worker made", said)


@test
def misses_go_to_workers():
    want, _ = one(700, kiln=False)
    got, said = one(700, options=("--json",))
    happened = json.loads(said)["happenings"]
    check(got == {**want, "loaded": False} and [h["what"] for h in happened] == ["made"], "made elsewhere: the compiler is not mapped", got, said)
    # Without one, the program compiles itself: no such program, one that is no worker, one that ends at once.
    for number, none in enumerate(({"KILN_WORKER": "/nowhere/kiln-worker"}, {"KILN_WORKER": "/bin/cat"}, {"KILN_WORKER": "/bin/false"}, {"KILN_WORKERS": 0})):
        want, _ = one(710 + number, kiln=False)
        got, said = one(710 + number, **none)
        check(got == {**want, "loaded": True} and " 1 made" in said, f"{none}: no worker", got, want, said)
    # What does not compile says the same, in whatever order it is asked.
    bad = 'extern "C" __global__ void k(int* a) { *a = nonsense; }'
    want, _ = one(0, kiln=False, source=bad)
    got, said = one(0, source=bad)
    check(got == {**want, "loaded": False} and want["status"] == 6 and "1 did not compile" in said, "a failure is passed on", got, want, said)
    # A worker that is killed in the middle: the program compiles itself.
    program = [PYTHON, SCRATCH / "one.py", NVRTC, LONG % 720, "-arch=sm_90"]
    child = subprocess.Popen([CLI, "run", "--", *program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env={**os.environ, "KILN_CACHE_DIR": str(CACHE)})
    worker = None
    while worker is None and child.poll() is None:
        worker = next((c for c in children_of(child.pid) if name_of(c) in ("kiln-worker", "kiln-foreign-wo") and "libnvrtc-builtins" in maps_of(c)), None)
    check(worker is not None, "a worker was at work")
    os.kill(int(worker), signal.SIGKILL)
    out, said = child.communicate(timeout=200)
    got = json.loads(out)
    check(got["status"] == 0 and got["loaded"] and " 1 made" in said, "a killed worker costs time alone", got, said)
    # One that is stopped: after a while nobody waits for it.
    program[3] = LONG % 721
    child = subprocess.Popen([CLI, "run", "--", *program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env={**os.environ, "KILN_CACHE_DIR": str(CACHE)})
    worker = None
    while worker is None and child.poll() is None:
        worker = next((c for c in children_of(child.pid) if "libnvrtc-builtins" in maps_of(c)), None)
    check(worker is not None, "a worker was at work")
    os.kill(int(worker), signal.SIGSTOP)
    out, said = child.communicate(timeout=200)
    check(json.loads(out)["status"] == 0 and " 1 made" in said, "a stopped worker costs time alone", out, said)
    # A program that is killed in the middle, while kiln run goes on: its worker ends with it.
    endless = 'extern "C" __global__ void k(double* a) {' + "".join(f"a[{i}] = pow(a[{i + 1}], a[{i}] + {i}) + sin(a[{i}]);\n" for i in range(400)) + "}"
    child = subprocess.Popen([CLI, "run", "--", "sh", "-c", '"$0" "$@" & echo $!; read rest', *[str(w) for w in program[:3]], endless, "-arch=sm_90"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "KILN_CACHE_DIR": str(CACHE)})
    compiling, worker, end = int(child.stdout.readline()), None, time.time() + 60
    while worker is None and child.poll() is None and time.time() < end:
        worker = next((c for c in children_of(child.pid) if "libnvrtc-builtins" in maps_of(c)), None)
    os.kill(compiling, signal.SIGKILL)
    check(worker is not None, "a worker was at work for it")
    end = time.time() + 20
    while worker in children_of(child.pid) and name_of(worker) and state_of(worker) != "Z" and time.time() < end:
        time.sleep(0.01)
    check(time.time() < end, "the worker of a program that died is gone")
    child.communicate("\n", timeout=60)
    # A program that closes what it does not know, and opens files or sockets of its own there: nothing of ours is written to them, and they
    # stay open.
    write("closer.py", r'''
import ctypes as C, os, select, socket, sys
n = C.CDLL(sys.argv[1])
def compiled(text):
    p = C.c_void_p(); o = (C.c_char_p * 1)(b"-arch=sm_90")
    n.nvrtcCreateProgram(C.byref(p), text, None, 0, None, None)
    return n.nvrtcCompileProgram(p, 1, o)
first = compiled(b"__global__ void a() {} // %d" % os.getpid())
ours = [int(f) for f in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{f}") and os.readlink(f"/proc/self/fd/{f}").startswith("socket:")]
os.closerange(3, 256)
if sys.argv[2] == "files":
    mine = [os.open(sys.argv[3], os.O_RDWR | os.O_CREAT) for _ in range(200)]
    grown = lambda: os.path.getsize(sys.argv[3])
else:
    pairs = [socket.socketpair() for _ in range(100)]
    mine = [s.fileno() for pair in pairs for s in pair]
    def grown():
        ready = select.select([s for pair in pairs for s in pair], [], [], 0)[0]
        return len(ready)
about = [(os.fstat(f).st_dev, os.fstat(f).st_ino) for f in mine]
second = compiled(b"__global__ void b() {} // %d" % os.getpid())
def still(f, what):
    try: return (os.fstat(f).st_dev, os.fstat(f).st_ino) == what
    except OSError: return False
print(first, second, grown(), all(map(still, mine, about)), len(ours) > 0 and set(ours) <= set(mine))
''')
    for kind in ("files", "sockets"):
        done = under(PYTHON, SCRATCH / "closer.py", NVRTC, kind, SCRATCH / "mine")
        check(done.stdout == "0 0 0 True True\n", f"{kind} of the program are its own", done.stdout, done.stderr)


@test
def headers_are_read_ahead():
    if not (CUDA / "include/cuda_fp16.h").exists():
        return
    write("ahead.py", r'''
import ctypes as C, os, sys, time
known, n = os.environ.get("KILN_RUN_KNOWN", ""), C.CDLL(sys.argv[1])
end = time.time() + float(sys.argv[3])
while not os.path.exists(known) and time.time() < end: time.sleep(0.002)
def read(): return int(open("/proc/self/io").read().split()[1])
p = C.c_void_p(); o = (C.c_char_p * 2)(b"-arch=sm_90", b"-I" + sys.argv[2].encode()); before = read()
n.nvrtcCreateProgram(C.byref(p), b"#include <cuda_fp16.h>\nextern \"C\" __global__ void half_sum(__half* a) { *a = *a + *a; }", None, 0, None, None)
print(n.nvrtcCompileProgram(p, 2, o), os.path.exists(known), read() - before)
''')

    def ahead(patience):
        done = under(PYTHON, SCRATCH / "ahead.py", NVRTC, CUDA / "include", patience)
        status, known, read = done.stdout.split()
        return status, known == "True", int(read), done.stderr

    status, known, _, said = ahead(0)
    check(status == "0" and not known and " 1 made" in said, "the first run knows nothing", said)
    kept = "".join(f.read_text() for f in (CACHE / "run/memory").iterdir())
    check(f"{CUDA}/include/cuda_fp16.h\n" in kept, "it leaves what the next one will need", kept)
    status, known, with_list, said = ahead(60)
    check(status == "0" and known and " 0 made" in said, "the second has it read while it starts", said)
    shutil.rmtree(CACHE / "run/memory")
    status, known, without, said = ahead(0)
    check(status == "0" and not known and without > 3 * with_list, "and reads less itself", with_list, without)
    left = [f.name for f in (CACHE / "run").iterdir() if f.name.split("-")[0] in ("known", "headers", "door", "log", "trial")]
    check(not left, "nothing is left behind", left)
    # A run that is killed cannot tidy up: others do, once a day, after a week.
    check((CACHE / "run/swept").exists(), "the day of the last time is kept")
    os.utime(CACHE / "run/swept", (time.time() - 2 * 86400,) * 2)
    long_ago, lately = CACHE / "run/log-1-0123456789abcdef", CACHE / "run/log-2-0123456789abcdef"
    for file in (long_ago, lately):
        file.touch()
    os.utime(long_ago, (time.time() - 8 * 86400,) * 2)
    under("true")
    check(not long_ago.exists() and lately.exists(), "what killed runs left goes after a week")
    lately.unlink()


@test
def trouble_on_the_way():
    # Killed in the middle of a compile: nothing is left that harms the next.
    long_source = LONG % os.getpid()
    child = subprocess.Popen([CLI, "run", "--", PYTHON, SCRATCH / "one.py", NVRTC, long_source, "-arch=sm_90"], stdout=subprocess.DEVNULL,
                             env={**os.environ, "KILN_CACHE_DIR": str(CACHE)})
    while child.poll() is None and not any("libnvrtc-builtins" in maps_of(c) for c in children_of(child.pid)):
        continue
    child.kill()
    child.wait(30)
    done, _ = one(0, source=long_source)
    check(done["status"] == 0, "after a kill the next one compiles", done)
    # Few descriptors, and no file may grow: the program does what it did without us.
    for limit in ("ulimit -n 32", "ulimit -f 0"):
        words = [PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 400, "-arch=sm_90"]
        done = under("sh", "-c", limit + '; exec "$0" "$@"', *words, KILN_CACHE_DIR=SCRATCH / ("limited" + limit[-2:].strip()))
        check(json.loads(done.stdout)["status"] == 0, limit, done.stderr)
    # So few for kiln run itself that nobody who asks for a worker can be let in: the program, which has enough, does not wait for one.
    for number in range(4, 12):
        words = [PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % (20_000 + number), "-arch=sm_90"]
        started = time.time()
        done = run("-c", f'ulimit -S -n {number}; exec "$0" "$@"', CLI, "run", "--", "sh", "-c", 'ulimit -S -n 256; exec "$0" "$@"', *words, program="sh", status=None, KILN_CACHE_DIR=SCRATCH / "few")
        check(done.returncode == 0 and json.loads(done.stdout)["status"] == 0, f"{number} descriptors for kiln run", done)
        check(time.time() - started < 9, f"{number} descriptors: nobody waits", time.time() - started)
        check(" 1 made" in done.stderr or number == 4, f"{number} descriptors: what happened is told", done.stderr)
    check(not [f for f in (SCRATCH / "few/run").iterdir() if f.name.startswith(("door-", "log-"))], "nothing is left", *(SCRATCH / "few/run").iterdir())
    # Nothing open at all: what kiln run opens is not taken for standard error, and the program has nothing that it would not have.
    listing = 'import os, sys; open(sys.argv[1], "w").write(" ".join(f for f in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + f)))'
    run("-c", 'exec "$0" "$@" <&- >&- 2>&-', CLI, "run", "-v", "--", PYTHON, "-c", listing, SCRATCH / "with", program="sh", KILN_CACHE_DIR=SCRATCH / "closed")
    run("-c", 'exec "$0" "$@" <&- >&- 2>&-', PYTHON, "-c", listing, SCRATCH / "without", program="sh")
    check((SCRATCH / "with").read_text() == (SCRATCH / "without").read_text(), "the same descriptors", (SCRATCH / "with").read_text(), (SCRATCH / "without").read_text())
    check(not any(b"kiln: " in f.read_bytes() for f in (SCRATCH / "closed").rglob("*") if f.is_file() and "standins" not in f.parts), "nothing is told to a file", *(SCRATCH / "closed").rglob("*"))
    # No folder to run copies from.
    done = under(PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 401, "-arch=sm_90", KILN_RUN_COPIES="/proc/self", HOME="/nowhere")
    check(json.loads(done.stdout)["status"] == 0, "nowhere to put copies", done.stderr)


# Runs a command as if the kernel did not have a system call (seccomp): old kernels, sandboxes.
WITHOUT_CALL = r'''
import ctypes as C, os, platform, struct, sys
arch = {"aarch64": 0xC00000B7, "x86_64": 0xC000003E}[platform.machine()]
load, equal, give, allow, no_such_call, kill = 0x20, 0x15, 0x06, 0x7FFF0000, 0x50000 | 38, 0x80000000
refusal = kill if os.environ.get("REFUSAL") == "kill" else no_such_call
steps = [(load, 0, 0, 4), (equal, 0, 2, arch), (load, 0, 0, 0), (equal, 1, 0, int(sys.argv[1])), (give, 0, 0, allow), (give, 0, 0, refusal)]
code = C.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
class program(C.Structure): _fields_ = [("count", C.c_ushort), ("code", C.c_void_p)]
libc = C.CDLL(None)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, C.byref(program(len(steps), C.cast(code, C.c_void_p))), 0, 0): sys.exit(77)
if sys.argv[2] != "-": os.execvp(sys.argv[2], sys.argv[2:])
'''


@test
def kernels_and_sandboxes_that_know_less():
    write("without.py", WITHOUT_CALL)
    pidfd_open = 434
    words = [PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 470, "-arch=sm_90"]
    started = time.time()
    done = run(SCRATCH / "without.py", pidfd_open, CLI, "run", "--", *words, program=PYTHON, status=None)
    if done.returncode != 77:
        check(not json.loads(done.stdout)["loaded"] and " 1 made" in done.stderr, "a worker makes it all the same", done.stdout, done.stderr)
        check(time.time() - started < 9, "nobody waits for one that does not come", time.time() - started)
    # Who started us may not want to hear of its children.
    write("deaf.py", "import os, signal, sys\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\nos.execvp(sys.argv[1], sys.argv[1:])\n")
    told = "import signal, sys; sys.exit(5 if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN else 6)"
    run(SCRATCH / "deaf.py", CLI, "run", "--", PYTHON, "-c", told, program=PYTHON, status=5)
    if not mounts_are_possible():
        return
    # Nothing in /proc: where kiln lies is known all the same; whether a worker sees the same files is not.
    write("plain.py", (SCRATCH / "one.py").read_text().replace("loaded = ", "loaded = None # "))
    words[1], words[3] = SCRATCH / "plain.py", KERNEL % 471
    for what in (" 1 made", "1 compiles answered"):
        done = run(*mounted("mount -t tmpfs none /proc", CLI, "run", "--", *words)[1:], program="unshare")
        check(json.loads(done.stdout)["status"] == 0 and what in done.stderr, "without /proc", done.stdout, done.stderr)


@test
def without_a_home():
    words = [PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 475, "-arch=sm_90"]
    want = bare(*words).stdout
    env = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "XDG_")) and k != "HOME"}
    for more in ({}, {"HOME": ""}, {"HOME": "/nowhere"}, {"HOME": "relative"}, {"TMPDIR": "/nowhere"}):
        done = subprocess.run([CLI, "run", "--", *map(str, words)], capture_output=True, text=True, cwd=SCRATCH, env={**env, **more})
        check(done.returncode == 0 and {**json.loads(done.stdout), "loaded": 0} == {**json.loads(want), "loaded": 0}, f"with {more} alone", done)
    check(not (SCRATCH / "relative").exists(), "nothing is made where the program happens to be")


CALLS = {"socket": (198, 41), "connect": (203, 42), "flock": (32, 73), "inotify_init1": (26, 294), "memfd_create": (279, 319), "renameat2": (276, 316), "statx": (291, 332),
             "getrandom": (278, 318), "ftruncate": (46, 77), "fsync": (82, 74), "mkdirat": (34, 258), "unlinkat": (35, 263), "utimensat": (88, 280), "fallocate": (47, 285), "ppoll": (73, 271),
         "getdents64": (61, 217), "statfs": (43, 137), "fstatfs": (44, 138), "getpid": (172, 39), "prctl": (167, 157), "clone3": (435, 435), "readlinkat": (78, 267)}


def in_a_sandbox(first_kernel, command, **environment):
    """Whatever of ours is refused in a sandbox costs an answer at most. command: of the words of a program, and of what its sandbox is made by."""
    write("without.py", WITHOUT_CALL)
    for number, (name, numbers) in enumerate(CALLS.items()):
        sandbox = [PYTHON, SCRATCH / "without.py", numbers[platform.machine() == "x86_64"]]
        words = [PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % (first_kernel + number), "-arch=sm_90"]
        want = bare(*sandbox, *words, status=None, **environment)
        if want.returncode != 0:  # not without us either
            continue
        for state in ("empty", "full"):
            done = bare(*command(sandbox, words), status=None, **environment)
            check(done.returncode == 0 and {**json.loads(done.stdout), "loaded": 0} == {**json.loads(want.stdout), "loaded": 0}, f"without {name}, cache {state}", done)


@test
def sandboxes_that_refuse_a_call():
    """Kiln is in the sandbox, too: it does with what there is."""
    in_a_sandbox(10_000, lambda sandbox, words: [*sandbox, CLI, "run", "--", *words])


@test
def sandboxes_of_a_program_alone():
    """It may end who makes a call that the compiler does not make."""
    in_a_sandbox(10_100, lambda sandbox, words: [CLI, "run", "--", *sandbox, *words])
    in_a_sandbox(10_200, lambda sandbox, words: [CLI, "run", "--", *sandbox, *words], REFUSAL="kill")


SHUT_IN = r'''
import ctypes as C, os, sys
library, how, numbers = sys.argv[1], sys.argv[2], sys.argv[3:]
n = C.CDLL(library)
def shut(number):
    sys.argv[1:] = [number, "-"]
    exec(open(os.path.dirname(os.path.abspath(sys.argv[0])) + "/without.py").read(), {})
if how == "used": n.nvrtcVersion(C.byref(C.c_int()), C.byref(C.c_int()))
for number in numbers: shut(number)
major, minor, p, size = C.c_int(), C.c_int(), C.c_void_p(), C.c_size_t()
print(n.nvrtcVersion(C.byref(major), C.byref(minor)), major.value)
print(n.nvrtcCreateProgram(C.byref(p), b'extern "C" __global__ void shut_in(int* a) { *a = 7; }', b"s.cu", 0, None, None), n.nvrtcCompileProgram(p, 1, (C.c_char_p * 1)(b"-arch=sm_90")))
print(n.nvrtcGetPTXSize(p, C.byref(size)) or size.value > 100, n.nvrtcDestroyProgram(C.byref(p)), flush=True)
'''


@test
def programs_that_shut_themselves_in():
    """After the library was opened: a filter that ends who makes calls of ours."""
    write("without.py", WITHOUT_CALL)
    write("shut_in.py", SHUT_IN)
    numbers = [CALLS[name][platform.machine() == "x86_64"] for name in ("socket", "connect", "flock", "renameat2", "statx", "mkdirat", "unlinkat", "getpid", "clone3")]
    for how in ("not used", "used"):
        words = [PYTHON, SCRATCH / "shut_in.py", NVRTC, how, *numbers]
        want = bare(*words, status=None, REFUSAL="kill")
        if want.returncode != 0:
            continue
        for state in ("empty", "full"):
            done = under(*words, status=None, REFUSAL="kill")
            check((done.returncode, done.stdout) == (0, want.stdout), f"{how}, cache {state}", done, want.stdout)


@test
def what_was_opened_and_is_gone():
    """--eager: the real library is there as early as without us."""
    whole = SCRATCH / "gone"
    whole.mkdir()
    for file in pathlib.Path(NVRTC).parent.glob("libnvrtc*"):
        (whole / file.name).symlink_to(file) if file.name.startswith("libnvrtc-") else shutil.copy(file, whole / file.name)
    write("gone.py", "import ctypes as C, os, sys\nn = C.CDLL(sys.argv[1])\nos.rename(sys.argv[1], sys.argv[1] + '.away')\nmajor, minor = C.c_int(), C.c_int()\n"
                     "print(n.nvrtcVersion(C.byref(major), C.byref(minor)))\nos.rename(sys.argv[1] + '.away', sys.argv[1])\nprint(n.nvrtcVersion(C.byref(major), C.byref(minor)))\n")
    words = [PYTHON, SCRATCH / "gone.py", whole / pathlib.Path(NVRTC).name]
    check(bare(*words).stdout == "0\n0\n", "without us")
    check(under(*words, options=["--eager"]).stdout == "0\n0\n", "opened at once")
    check(under(*words, KILN_DISABLE="1").stdout.endswith("\n0\n"), "a failure of the moment is not for ever")


@test
def a_thousand_forks():
    """Children of a program with threads, each of which is answered: nobody is left a lock that nobody opens."""
    compiler = shutil.which("cc")
    if compiler is None:
        return
    write("forks.c", r'''
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static int (*create)(void**, char const*, char const*, int, void*, void*), (*compile)(void*, int, char const**), (*size)(void*, size_t*), (*destroy)(void**);
static volatile int stop;
static int one(void) {
    void* p = 0; char const* options[] = {"-arch=sm_90"}; size_t n = 0;
    int const bad = create(&p, "extern \"C\" __global__ void forked(int* a) { *a = 3; }", "f.cu", 0, 0, 0) || compile(p, 1, options) || size(p, &n) || n < 1000;
    return destroy(&p) || bad;
}
static void* busy(void* none) { while (!stop) if (one()) exit(9); return none; }
int main(int count, char** v) {
    void* h = dlopen(v[1], RTLD_NOW);
    create = dlsym(h, "nvrtcCreateProgram"); compile = dlsym(h, "nvrtcCompileProgram"); size = dlsym(h, "nvrtcGetCUBINSize"); destroy = dlsym(h, "nvrtcDestroyProgram");
    if (one()) return 2;
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i) pthread_create(threads + i, 0, busy, 0);
    for (int i = 0; i < atoi(v[2]); ++i) {
        pid_t const child = fork();
        if (child == 0) { alarm(60); int const bad = one(); if (i % 2) exit(bad); _exit(bad); }
        int status = -1;
        if (waitpid(child, &status, 0) != child || status) { printf("fork %d: %x\n", i, status); return 3; }
    }
    stop = 1;
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], 0);
    return 0;
}
''')
    subprocess.run([compiler, "-w", "-O1", "-pthread", "-o", SCRATCH / "forks", SCRATCH / "forks.c", "-ldl"], check=True)
    under(SCRATCH / "forks", NVRTC, 0)
    done = under(SCRATCH / "forks", NVRTC, 2500)
    check(" 0 made" in done.stderr, "all were answered", done.stdout, done.stderr)


@test
def the_first_use_and_fork():
    """A child of fork() is answered although a thread of its parent was just using the library for the first time."""
    write("first.py", r'''
import ctypes as C, os, signal, sys, threading, time
n = C.CDLL(sys.argv[1]); begun = threading.Event(); a, b = C.c_int(), C.c_int()
def ask(): begun.set(); n.nvrtcVersion(C.byref(a), C.byref(b))
thread = threading.Thread(target=ask); thread.start(); begun.wait(); children = []
for i in range(6):
    child = os.fork()
    if child == 0:
        signal.alarm(60); x, y = C.c_int(), C.c_int(); bad = n.nvrtcVersion(C.byref(x), C.byref(y)); os._exit(bad or x.value < 12)
    children.append(child); time.sleep(float(sys.argv[2]))
thread.join(); print([os.waitpid(c, 0)[1] for c in children])
''')
    for pause in ("0.0005", "0.004"):
        done = under(PYTHON, SCRATCH / "first.py", NVRTC, pause, KILN_CACHE_DIR=SCRATCH / ("first" + pause))
        check(done.stdout == "[0, 0, 0, 0, 0, 0]\n", "every child is answered", done.stdout, done.stderr)


@test
def descriptors_of_the_program():
    """A program that closes what it does not know and opens files of its own finds nothing of ours in them."""
    write("closes.py", r'''
import ctypes as C, os, sys
n = C.CDLL(sys.argv[1])
def one(number):
    p = C.c_void_p(); options = (C.c_char_p * 1)(b"-arch=sm_90")
    return n.nvrtcCreateProgram(C.byref(p), b'extern "C" __global__ void k(int* a) { *a = %d; }' % number, None, 0, None, None) or n.nvrtcCompileProgram(p, 1, options)
said = [one(981)]; os.closerange(3, 256)
mine = [os.open(f"{sys.argv[2]}/{i}", os.O_RDWR | os.O_CREAT, 0o600) for i in range(16)]
said += [one(981), one(982)]; print(said, sum(os.fstat(f).st_size for f in mine))
''')
    (SCRATCH / "its-own").mkdir()
    for workers in ("1", "0"):
        events = SCRATCH / f"closed-{workers}.jsonl"
        done = under(PYTHON, SCRATCH / "closes.py", NVRTC, SCRATCH / "its-own", KILN_EVENTS=events, KILN_WORKERS=workers)
        check(done.stdout == "[0, 0, 0] 0\n", "its files are its own", done.stdout, done.stderr)
        check(len(events.read_text().splitlines()) >= 4, "and the events go on", events.read_text())


@test
def nobody_is_left_wondering():
    """What is made again each time, and what is not served, is said with its reason."""
    words = [PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 480, "-arch=sm_90"]
    done = under(*words, KILN_CACHE_DIR="/proc/nowhere")
    check("1 made" in done.stderr and "1 could not be kept: see 'kiln doctor'" in done.stderr, "it was not kept", done.stderr)
    done = under(*words, options=("-v",), KILN_CACHE_DIR=SCRATCH / "tiny", KILN_MAX_SIZE=100)
    check("1 could not be kept: larger than KILN_MAX_SIZE\n" in done.stderr and "new; not kept: larger" in done.stderr, "a bound of one's own is no case for the doctor", done.stderr)
    done = under(*words, KILN_DISABLE=1)
    check("1 left to the library itself: no cache directory" in done.stderr, "why it was not served", done.stderr)
    done = under(*words, KILN_CACHE_DIR=SCRATCH / "wondering")
    check("kept" not in done.stderr and "left" not in done.stderr, "nothing to say", done.stderr)


def children_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def state_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


def maps_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return ""


@test
def many_at_once_make_it_once():
    compiler = shutil.which("cc")
    if compiler is None:
        return
    write("rank.c", r'''
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char** v) {
    void* h = dlopen(v[1], RTLD_NOW);
    int (*create)(void**, char const*, char const*, int, void*, void*) = dlsym(h, "nvrtcCreateProgram");
    int (*compile)(void*, int, char const**) = dlsym(h, "nvrtcCompileProgram"), (*size)(void*, size_t*) = dlsym(h, "nvrtcGetCUBINSize");
    for (int k = 0; k < 3; ++k) {
        void* p = 0; char source[99]; char const* options[] = {"-arch=sm_90"}; size_t n = 0;
        snprintf(source, sizeof source, "extern \"C\" __global__ void rank%d(int* a) { *a = %d; }", k, k);
        if (create(&p, source, "rank.cu", 0, 0, 0) || compile(p, 1, options) || size(p, &n)) return 1;
        printf("%zu ", n);
    }
    return 0;
}
''')
    subprocess.run([compiler, "-w", "-o", SCRATCH / "rank", SCRATCH / "rank.c", "-ldl"], check=True)
    # Each rank under a kiln run of its own, as launchers do it; and all of them under one.
    alone = [CLI, "run", "--json", "--", SCRATCH / "rank", NVRTC]
    together = [CLI, "run", "--json", "--", "sh", "-c", 'for i in $(seq 64); do "$0" "$1" & done; wait', SCRATCH / "rank", NVRTC]
    for name, words, count in (("own", alone, 64), ("one", together, 1)):
        env = {**os.environ, "KILN_CACHE_DIR": str(SCRATCH / ("ranks" + name))}
        ranks = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) for _ in range(count)]
        ends = [r.communicate(timeout=250) for r in ranks]
        check({r.returncode for r in ranks} == {0}, "all end well", *(said for _, said in ends))
        all_happenings = [h["what"] for _, said in ends for h in json.loads(said)["happenings"]]
        check(all_happenings.count("made") == 3 and all_happenings.count("answered") == 64 * 3 - 3,
              f"{name}: three things, each made once", {h: all_happenings.count(h) for h in set(all_happenings)})
        sizes = {o for o, _ in ends} if count > 1 else {ends[0][0][:len(ends[0][0]) // 64]}
        check(len(sizes) == 1, "the same for all", sizes)


@test
def who_waits_need_not_read():
    """Of many that wait for one compile, each would read all its headers to see that the answer fits: who made it leaves what they are."""
    if not (CUDA / "include/cccl/cuda/std/complex").exists():
        return
    write("waiter.py", r'''
import ctypes as C, os, sys
n = C.CDLL(sys.argv[1])
def read(): return int(open("/proc/self/io").read().split()[1])
p = C.c_void_p(); o = (C.c_char_p * 2)(b"-arch=sm_90", b"-I" + sys.argv[2].encode()); before = read()
n.nvrtcCreateProgram(C.byref(p), b"#include <cuda/std/complex>\nextern \"C\" __global__ void k(cuda::std::complex<float>* a) { *a = *a * *a; }", None, 0, None, None)
print(n.nvrtcCompileProgram(p, 2, o), read() - before)
''')
    words = [PYTHON, SCRATCH / "waiter.py", NVRTC, CUDA / "include/cccl"]
    mine = {"KILN_CACHE_DIR": str(SCRATCH / "waiters")}
    one(800, **mine)  # what the compiler is has been read
    ranks = [subprocess.Popen([CLI, "run", "-v", "--", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **mine}) for _ in range(6)]
    ends = [r.communicate(timeout=250) for r in ranks]
    waited = [int(out.split()[1]) for out, said in ends if " answered 'k'" in said and out.startswith("0 ")]
    check(len(waited) == 5, "one made it, for all", *ends)
    (cost,) = [float(m.group(1)) for _, said in ends if (m := re.search(r" 1 made in ([\d.]+) s", said))]
    for _, said in ends:
        if told := re.search(r"answered in ([\d.]+) s, 0 made, ([\d.]+) s not waited", said):
            check(float(told.group(2)) <= max(0, cost - float(told.group(1))) + 0.2, "and who waited is not told otherwise", said, cost)
    shutil.rmtree(SCRATCH / "waiters/run")
    alone = int(under(*words, **mine).stdout.split()[1])
    check(min(waited) * 2 < alone, "who waited read less than who comes later", waited, alone)


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


@test
def the_cache_changes_under_a_program():
    write("while.py", WHILE)
    words = [PYTHON, SCRATCH / "while.py", NVRTC]
    want = bare(*words, "true").stdout
    place, other = SCRATCH / "changing", SCRATCH / "changing.other"
    rubbish = "find %s -name '*.kiln' -exec sh -c 'echo rubbish > \"$1\"' - {} \\;" % place
    for what, happens in (("vanishes", f"rm -rf {place}"), ("is replaced", f"mv {place} {other} && mkdir {place}"), ("is a file", f"rm -rf {place} && touch {place}"),
                          ("is damaged", rubbish), ("is emptied", f"find {place} -type f -delete")):
        for again in range(2):
            done = under(*words, happens, KILN_CACHE_DIR=place)
            check(done.stdout == want, f"the cache {what}: nothing else changes", done.stdout, want, done.stderr)
        for left in (place, other):
            shutil.rmtree(left, ignore_errors=True)
            left.unlink(missing_ok=True)


@test
def places_that_refuse():
    if not mounts_are_possible():
        return
    words = [PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 450, "-arch=sm_90"]
    want = bare(*words).stdout
    place = SCRATCH / "small"
    place.mkdir()
    small = f"mount -t tmpfs -o size=64k,mode=700 none {place}"
    everywhere = " && ".join(f"mount -t tmpfs -o noexec none {p}" for p in ("/tmp", "/dev/shm"))
    environment = {"KILN_CACHE_DIR": place}
    refusing = {"a full disk": f"{small}; head -c 60000 /dev/zero > {place}/filler", "one full to the last byte": f"{small}; cat /dev/zero > {place}/filler",
                "a read-only disk": f"{small}; mount -o remount,ro {place}", "a disk where nothing may be executed": f"{small.replace('64k', '64m')},noexec"}
    for what, script in refusing.items():
        done = run(*mounted(script, CLI, "run", "--", *words)[1:], program="unshare", **environment)
        got = json.loads(done.stdout)
        check({**got, "loaded": 0} == {**json.loads(want), "loaded": 0}, f"{what}: the answer is the same", got, want, done.stderr)
        check("1 could not be kept" in done.stderr or "executed" in what, f"{what}: and somebody is told", done.stderr)
    if pathlib.Path("/tmp") in pathlib.Path(CLI).parents:
        print("kiln itself lies in /tmp: that nothing there may be executed is not tried")
        return
    # Nowhere at all: everything this program could write to forbids execution. Its own files are on /tmp and stay visible by another name.
    script = f"mount --bind {SCRATCH} /mnt && {everywhere}"
    words[1] = "/mnt/one.py"
    done = run(*mounted(script, CLI, "run", "-v", "--", *words)[1:], program="unshare", cwd="/", KILN_CACHE_DIR="/dev/shm/cache", HOME="/dev/shm")
    check(json.loads(done.stdout)["status"] == 0 and "nothing is answered" in done.stderr, "no place to run copies from", done.stdout, done.stderr)
    before = set(SCRATCH.iterdir())
    run(*mounted(f"cd /mnt; XDG_RUNTIME_DIR=; export XDG_RUNTIME_DIR; {script.replace('/mnt &&', '/mnt && cd /mnt &&')}", CLI, "run", "--", *words)[1:], program="unshare", cwd="/", KILN_CACHE_DIR="/dev/shm/cache", HOME="/dev/shm")
    check(set(SCRATCH.iterdir()) == before, "nor one that is made in the working directory", *set(SCRATCH.iterdir()) - before)


@test
def a_compiler_upgraded_in_place():
    folder = SCRATCH / "upgraded"
    folder.mkdir()
    for file in NVRTC.parent.glob("libnvrtc*.so*"):
        if "builtins" in file.name:
            (folder / file.name).symlink_to(file)
    own = folder / NVRTC.name
    shutil.copy(NVRTC, own)
    notes = subprocess.run(["readelf", "-n", own], capture_output=True, text=True).stdout if shutil.which("readelf") else ""
    found = re.search(r"Build ID: ([0-9a-f]+)", notes)
    if not found:
        return
    data = own.read_bytes()
    build_id = bytes.fromhex(found.group(1))
    check(data.count(build_id) == 1, "one build id")
    (folder / "next").write_bytes(data.replace(build_id, bytes(b ^ 0xFF for b in build_id)))
    write("while.py", WHILE)
    words = [PYTHON, SCRATCH / "while.py", own]
    want = bare(*words, "true").stdout
    kept = {"KILN_CACHE_DIR": SCRATCH / "upgrades"}
    check(under(*words, "true", **kept).stdout == want, "before the upgrade", want)
    replace = f"cp {folder}/next {folder}/new && mv {folder}/new {own}"
    done = under(*words, replace, options=("-v",), **kept)
    check(done.stdout == want, "upgraded while the program runs", done.stdout, done.stderr)
    done = under(*words, "true", options=("-v",), **kept)
    check(done.stdout == want and done.stderr.count(" made 'w'") == 2, "another compiler has other answers", done.stdout, done.stderr)
    # What the new one makes while the old one is meant is not the old one's answer. The first answer loads no compiler.
    mixed = {"KILN_CACHE_DIR": SCRATCH / "upgrades.mixed"}

    def put_back():
        shutil.copy(NVRTC, folder / "old")
        os.replace(folder / "old", own)

    put_back()
    under(*words, "true", "1", **mixed)
    done = under(*words, replace, options=("-v",), **mixed)
    check(done.stdout == want and "made" not in done.stderr.replace(" 0 made", "") and "1 left to the library itself" in done.stderr, "left to the library", done.stderr)
    put_back()
    done = under(*words, "true", options=("-v",), **mixed)
    check(done.stdout == want and done.stderr.count(" answered 'w'") == 2 and done.stderr.count(" made 'w'") == 1, "nothing was kept of it", done.stderr)
    # The same of its built-ins, which have no build id.
    builtins = [f for f in folder.iterdir() if "builtins" in f.name]
    for file in builtins:
        text = file.read_bytes()
        file.unlink()
        file.write_bytes(text)
        (folder / ("next-" + file.name)).write_bytes(text + b"\0")
    mixed = {"KILN_CACHE_DIR": SCRATCH / "upgrades.builtins", "LD_LIBRARY_PATH": folder}
    under(*words, "true", "1", **mixed)
    replace = " && ".join(f"mv {folder}/next-{file.name} {file}" for file in builtins)
    done = under(*words, replace, options=("-v",), **mixed)
    check(done.stdout == want and " made 'w'" not in done.stderr and "1 left to the library itself" in done.stderr, "other built-ins are another compiler", done.stderr)


def a_folder_with_nvrtc(name):
    """NVRTC and its built-ins as links in a folder of their own."""
    folder = SCRATCH / name
    folder.mkdir()
    for file in NVRTC.parent.glob("libnvrtc*.so*"):
        (folder / file.name).symlink_to(os.path.realpath(file))
    return folder


@test
def other_builtins_are_another_compiler():
    """NVRTC is given its built-ins by the loader: those that were opened before, or that the user's path has, and not those beside it."""
    folder, others = a_folder_with_nvrtc("builtins"), SCRATCH / "builtins.others"
    others.mkdir()
    for file in folder.glob("libnvrtc-builtins.so.*"):
        (others / file.name).write_bytes(file.read_bytes().replace(b"unsigned int vx = 1", b"unsigned int vx = 7"))
    write("opens.py", "import ctypes, sys\nif sys.argv[1] != '-': ctypes.CDLL(sys.argv[1])\nsys.argv = sys.argv[1:]\nexec(open(%r).read())\n" % str(SCRATCH / "one.py"))
    words = [folder / NVRTC.name, 'extern "C" __global__ void k(int* a) { dim3 d; *a = d.x; }', "-arch=sm_90"]
    first = next(iter(sorted(others.iterdir())))
    ways = {"beside": ("-", folder), "the user's": ("-", others), "opened before": (first, folder)}

    def cubin(done):
        got = json.loads(done.stdout)
        check(got["status"] == 0, "it compiles", got, done.stderr)
        return got["cubin"]

    want = {way: cubin(bare(PYTHON, SCRATCH / "opens.py", opened, *words, LD_LIBRARY_PATH=path)) for way, (opened, path) in ways.items()}
    check(want["beside"] != want["the user's"] == want["opened before"], "built-ins make a difference", want)
    for workers in (1, 0):
        place = {"KILN_CACHE_DIR": SCRATCH / f"builtins.cache.{workers}", "KILN_WORKERS": workers}
        for again in range(2):
            for way, (opened, path) in ways.items():
                done = under(PYTHON, SCRATCH / "opens.py", opened, *words, LD_LIBRARY_PATH=path, **place)
                check(cubin(done) == want[way], f"built-ins {way}, workers {workers}, time {again}", want, done.stdout, done.stderr)
                # The same two, whoever the loader has them from.
                made = again == 0 and way != "opened before"
                check(f" {int(made)} made" in done.stderr and f"{int(not made)} compiles answered" in done.stderr, f"built-ins {way} have answers of their own", done.stderr)
    # One that was replaced by a verified answer would be found out, too.
    done = under(PYTHON, SCRATCH / "opens.py", "-", *words, options=("--verify",), LD_LIBRARY_PATH=others, KILN_CACHE_DIR=SCRATCH / "builtins.cache.1")
    check("1 made again and the same, 0 different" in done.stderr, "and verified", done.stderr)


@test
def a_compiler_replaced_before_its_first_use():
    """What is at the library's place by then is another one, and neither its answers nor its name are taken for those of the one that was loaded."""
    folder = a_folder_with_nvrtc("replaced")
    own = folder / NVRTC.name
    found = re.search(r"Build ID: ([0-9a-f]+)", subprocess.run(["readelf", "-n", own], capture_output=True, text=True).stdout) if shutil.which("readelf") else None
    if not found:
        return
    build_id = bytes.fromhex(found.group(1))
    (folder / "next").write_bytes(NVRTC.read_bytes().replace(build_id, bytes(b ^ 0xFF for b in build_id)))
    write("late.py", "import ctypes, os, sys\nn = ctypes.CDLL(sys.argv[1]); assert os.system(sys.argv[2]) == 0\nsys.argv = [sys.argv[0], sys.argv[1], *sys.argv[3:]]\nexec(open(%r).read())\n" % str(SCRATCH / "one.py"))
    replace = f"ln {folder}/next {folder}/new && mv {folder}/new {own}"
    words = [KERNEL % 470, "-arch=sm_90"]
    kept = {"KILN_CACHE_DIR": SCRATCH / "replaced.cache"}
    old = os.readlink(own)

    def put_back():
        (folder / "old").symlink_to(old)
        os.replace(folder / "old", own)

    want = bare(PYTHON, SCRATCH / "late.py", own, "true", *words).stdout
    # The new one has an answer already; the old one has none.
    subprocess.run(replace, shell=True, check=True)
    done = under(PYTHON, SCRATCH / "late.py", own, "true", *words, **kept)
    check(" 1 made" in done.stderr, "the new one's", done.stderr)
    for source in (470, 471):
        put_back()
        done = under(PYTHON, SCRATCH / "late.py", own, replace, KERNEL % source, "-arch=sm_90", options=("-v",), **kept)
        check(json.loads(done.stdout)["status"] == 0 and (source != 470 or json.loads(done.stdout)["cubin"] == json.loads(want)["cubin"]), "it compiles", done.stdout)
        check("0 compiles answered" in done.stderr and " 0 made" in done.stderr and "1 left to the library itself: the compiler was replaced" in done.stderr, "left to the library", done.stderr)
    done = under(PYTHON, SCRATCH / "late.py", own, "true", KERNEL % 471, "-arch=sm_90", **kept)
    check(" 1 made" in done.stderr, "and nothing was kept of it", done.stderr)


# Runs a program that may not read what is below a folder (Landlock), or has not root's right to read everything.
CONFINED = r"""
import ctypes as C, os, sys
libc = C.CDLL(None, use_errno=True); how, folder = sys.argv[1], os.path.realpath(sys.argv[2])
def call(number, *words):
    answer = libc.syscall(number, *words)
    if answer < 0: sys.exit(77)
    return answer
if "landlock" in how:
    class rule(C.Structure): _pack_ = 1; _fields_ = [("allowed", C.c_uint64), ("parent", C.c_int)]
    read = C.c_uint64(4); rules = call(444, C.byref(read), 8, 0); above = "/"
    for part in folder.strip("/").split("/"):
        for name in os.listdir(above):
            if name == part: continue
            try: fd = os.open(os.path.join(above, name), os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
            except OSError: continue
            libc.syscall(445, rules, 1, C.byref(rule(4, fd)), 0); os.close(fd)
        above = os.path.join(above, part)
    if "kept" not in how: libc.prctl(38, 1, 0, 0, 0)
    call(446, rules, 0)
else:
    head = (C.c_uint32 * 2)(0x20080522, 0); sets = (C.c_uint32 * 6)(); call({"x86_64": 125, "aarch64": 90}[os.uname().machine], head, sets)
    for i in (0, 1): sets[i] &= ~6
    for i in (1, 2): libc.prctl(24, i, 0, 0, 0)  # nor is a root given them back
    call({"x86_64": 126, "aarch64": 91}[os.uname().machine], head, sets)
if "ahead" in how:  # and what was read for it is there
    import time
    known, end = os.environ.get("KILN_RUN_KNOWN", ""), time.time() + 60
    while not os.path.exists(known) and time.time() < end: time.sleep(0.002)
os.execv(sys.argv[3], sys.argv[3:])
"""


@test
def a_program_that_may_read_less():
    """A worker has the rights of who started the run. What the program itself would be refused it is refused with us, too."""
    write("confined.py", CONFINED)
    secret = write("secret/secret.h", "#define VALUE 9\n").parent
    source = '#include "secret.h"\nextern "C" __global__ void k(int* a) { *a = VALUE; }'
    words = [PYTHON, SCRATCH / "one.py", NVRTC, source, "-arch=sm_90", f"-I{secret}"]
    if os.geteuid() == 0:
        os.chown(secret / "secret.h", 65534, 65534)
        os.chmod(secret / "secret.h", 0o600)
    same = lambda done: {**json.loads(done.stdout), "loaded": 0}
    tried = 0
    for how in ("landlock", "landlock, rights kept", "capabilities"):
        confined = [PYTHON, SCRATCH / "confined.py", how, secret, *words]
        want = bare(*confined, status=None)
        if want.returncode != 0 or same(want)["status"] == 0:  # not a root, or no Landlock
            print(f"not tried: {how}")
            continue
        tried += 1
        for number, workers in enumerate((1, 1, 0)):
            done = under(*confined, KILN_WORKERS=workers, KILN_CACHE_DIR=SCRATCH / f"confined.{tried}")
            check(same(done) == same(want), f"{how}, workers {workers}, time {number}", want.stdout, done.stdout, done.stderr)
    # Nor is it answered because somebody else has read the headers for it.
    headers = CUDA / "include"
    if not tried or not (headers / "cuda_fp16.h").exists():
        return
    source = '#include <cuda_fp16.h>\nextern "C" __global__ void k(__half* a) { *a = *a + *a; }'
    words = [PYTHON, SCRATCH / "one.py", NVRTC, source, "-arch=sm_90", f"-I{headers}"]
    confined = [PYTHON, SCRATCH / "confined.py", "landlock ahead", headers, *words]
    want = bare(*confined, status=None, KILN_RUN_KNOWN="/")
    if want.returncode != 0 or same(want)["status"] == 0:
        return
    (SCRATCH / "nothing").mkdir()
    free = [PYTHON, SCRATCH / "confined.py", "landlock", SCRATCH / "nothing", *words]
    kept = {"KILN_CACHE_DIR": SCRATCH / "confined.ahead"}
    check(" 1 made" in under(*free, **kept).stderr, "somebody else may")
    free[2] = "landlock ahead"
    done = under(*free, **kept)
    check("1 compiles answered" in done.stderr, "who may read them is answered", done.stderr)
    done = under(*confined, **kept)
    check(same(done) == same(want), "who may not is not", want.stdout, done.stdout, done.stderr)


@test
def names_of_ours_are_not_to_be_had():
    """Folders have names of ours while something is compiled. A program that looks for them, or speaks of them, sees what it would without us."""
    paste = "#define C(a, b) D(a, b)\n#define D(a, b) a##b\n"
    ask = '#if __has_include(%s)\n#define FOUND 1\n#else\n#define FOUND 0\n#endif\nextern "C" __global__ void k(int* a) { *a = FOUND; }'
    write("work/include/speaks.h", '#warning "/.kiln/i0/x.h is not a file"\n')
    write("work/include/asks.h", '#if __has_include("/.kiln/i0/warns.h")\n#define FOUND 1\n#else\n#define FOUND 0\n#endif\n')
    folder = f"-I{WORK}/include"
    sources = {"a file": [ask % '"/.kiln/i0/warns.h"'],
               "through a macro": ["#define K kiln\n" + ask % "</.K/i0/warns.h>"],
               "through an option": [ask % "</.K/i0/warns.h>", "-DK=kiln"],
               "over a line's end": [ask % '"/.ki\\\nln/i0/warns.h"'],
               "of pieces": [paste + ask % "</.C(ki,ln)/i0/warns.h>"],
               "in a header": ['#include <asks.h>\nextern "C" __global__ void k(int* a) { *a = FOUND; }'],
               "in a message": ['#include <warns.h>\n#warning "see /.kiln/i0/ and /.kiln/s/x"\nextern "C" __global__ void k(int* a) { *a = f(); }'],
               "in a message of a header": ['#include <speaks.h>\nextern "C" __global__ void k(int* a) { *a = 1; }'],
               "in an error": ['#include <warns.h>\n#error "/.kiln/i0/"']}
    for workers in (1, 0):
        for what, (source, *options) in sources.items():
            want, _ = one(0, folder, *options, kiln=False, source=source)
            for again in range(2):
                got, said = one(0, folder, *options, source=source, KILN_WORKERS=workers, KILN_CACHE_DIR=SCRATCH / f"ours.{workers}")
                check({**got, "loaded": 0} == {**want, "loaded": 0}, f"{what}, workers {workers}, time {again}", want, got, said)


@test
def forks_while_others_compile():
    """A child whose parent's other threads are in the compiler at that moment: it is not left a lock that nobody opens."""
    compiler = shutil.which("cc")
    if compiler is None:
        return
    write("busy.c", r"""
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static int (*create)(void**, char const*, char const*, int, void*, void*), (*compile)(void*, int, char const**), (*destroy)(void**), (*watch)(void*, int (*)(void*, void*), void*);
static char const* text;
static sem_t inside, forked;
static atomic_int calls;
static int called(void* none, void* nothing) { if (calls++ == 0) { sem_post(&inside); sem_wait(&forked); } return 0; }
static int one(int which, int (*callback)(void*, void*)) {
    char* source = malloc(strlen(text) + 64); void* p = 0; char const* options[] = {"-arch=sm_90"};
    sprintf(source, "#define NUMBER %d\n%s", which, text);
    int const bad = create(&p, source, 0, 0, 0, 0) || (callback && watch(p, callback, 0)) || compile(p, 1, options);
    free(source);
    return destroy(&p) || bad;
}
static void* busy(void* none) { void* bad = one(0, called) ? &calls : 0; sem_post(&inside); return bad; }
int main(int count, char** v) {
    void* h = dlopen(v[1], RTLD_NOW); int const many = atoi(v[3]);
    create = dlsym(h, "nvrtcCreateProgram"); compile = dlsym(h, "nvrtcCompileProgram"); destroy = dlsym(h, "nvrtcDestroyProgram"); text = v[2];
    if (!(watch = dlsym(h, "nvrtcSetFlowCallback"))) return 0;
    sem_init(&inside, 0, 0); sem_init(&forked, 0, 0);
    pthread_t thread; void* bad = 0; int children[8], status = 0;
    pthread_create(&thread, 0, busy, 0);
    sem_wait(&inside);
    for (int i = 0; i < many; ++i) if ((children[i] = fork()) == 0) { alarm(atoi(v[4])); _exit(one(1 + i, 0)); }
    sem_post(&forked);
    for (int i = 0; i < many; ++i) { waitpid(children[i], &status, 0); if (status) { printf("child %d: %x\n", i, status); bad = &calls; } }
    void* failed = 0; pthread_join(thread, &failed);
    printf("%d in the compiler\n", calls > 0);
    return bad || failed;
}
""")
    subprocess.run([compiler, "-w", "-O1", "-pthread", "-o", SCRATCH / "busy", SCRATCH / "busy.c", "-ldl"], check=True)
    text = LONG.replace("%d", "NUMBER")
    done = under(SCRATCH / "busy", NVRTC, text, 4, 200, KILN_WORKERS=1, KILN_CACHE_DIR=SCRATCH / "busy.cache", status=None)
    check(done.returncode == 0 and done.stdout in ("", "1 in the compiler\n"), "every child comes to an end", done.stdout, done.stderr)


@test
def the_example_starts_ranks():
    words = [SOURCE / "examples/run/ranks.sh", "2", PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 550, "-arch=sm_90"]
    done = run(*words[1:], program=words[0], KILN=CLI, KILN_CACHE_DIR=SCRATCH / "ranks.example")
    check(len(done.stdout.splitlines()) == 2 and done.stderr.count(", 1 made") == 1 and done.stderr.count("1 compiles answered") == 1, "one makes it, one is answered", done.stdout, done.stderr)
    run("2", "sh", "-c", 'exit $((RANK * 5))', program=words[0], status=5, KILN=CLI)


@test
def containers_share_what_they_have():
    if not mounts_are_possible():
        return
    for name, value in (("first", 1), ("second", 1)):
        write(f"{name}/app/include/v.h", f"#define V {value}\n")
        for folder in ("cuda", "store", "app"):
            (SCRATCH / name / folder).mkdir(exist_ok=True)
    shared, fresh = SCRATCH / "shared", SCRATCH / "fresh"
    shared.mkdir(), fresh.mkdir()
    source = "#include <v.h>\nextern \"C\" __global__ void k(int* a) { *a = V; }"

    def container(name, *options, store=shared, status=0):
        home = SCRATCH / name
        script = f"mount --bind {CUDA.resolve()} {home}/cuda && mount --bind {store} {home}/store"
        program = [PYTHON, SCRATCH / "one.py", home / "cuda" / NVRTC.relative_to(CUDA), source, "-arch=sm_90", f"-I{home}/app/include", f"-I{home}/app"]
        done = run(*mounted(script, CLI, "run", *options, "--", *program)[1:], program="unshare", status=status, cwd=home, KILN_CACHE_DIR=home / "store")
        return json.loads(done.stdout), done.stderr

    first, said = container("first", "--record", SCRATCH / "first/record.json")
    check(first["status"] == 0 and " 1 made" in said, "the first container makes it", said)
    second, said = container("second")
    check(second == first and " 0 made" in said, "the second, where everything has another path, finds it", second, said)
    run("key", SCRATCH / "ship.pem")
    run("capsule", "build", "-o", SCRATCH / "ship.capsule", "--sign", SCRATCH / "ship.pem", SCRATCH / "first/record.json", KILN_CACHE_DIR=shared)
    second, said = container("second", "--capsule", SCRATCH / "ship.capsule", "--key", SCRATCH / "ship.pem.pub", "--jit=forbid", store=fresh)
    check(second == {**first, "loaded": False} and "1 compiles answered" in said, "a capsule of the one starts the other warm", second, said)
    # A container that the program itself starts: kiln run, and its workers, see other files than it does.
    write("inner/v.h", "#define V 9\n")
    inside = mounted(f"mount --bind {SCRATCH}/inner {SCRATCH}/first/app/include", PYTHON, SCRATCH / "one.py", NVRTC, source, "-arch=sm_90", f"-I{SCRATCH}/first/app/include")
    want = json.loads(run(*inside[1:], program="unshare").stdout)
    got = json.loads(under(*inside, KILN_CACHE_DIR=SCRATCH / "inner.cache").stdout)
    check(got["cubin"] == want["cubin"] != first["cubin"], "what counts is what the program sees", got, want)
    write("second/app/include/v.h", "#define V 2\n")
    second, said = container("second")
    check(second["cubin"] != first["cubin"] and " 1 made" in said, "unless its files are others", second, said)


@test
def recordings_are_replayed_for_others():
    record, mine = SCRATCH / "replay.json", {"KILN_CACHE_DIR": SCRATCH / "replay.cache"}
    write("replay/v.h", "#define V 7\n")
    write("three.py", r'''
import ctypes as C, sys
n = C.CDLL(sys.argv[1])
for text, options in ((b"#include <v.h>\n__global__ void plain(int* a) { *a = V; }", sys.argv[3:5]), (b"__global__ void told(int* a) { *a = ARCH; }", [sys.argv[3], "-DARCH=90"]),
                      (b"__global__ void nowhere() {}", ["-DX"])):
    p = C.c_void_p(); words = (C.c_char_p * len(options))(*(o.encode() for o in options))
    assert n.nvrtcCreateProgram(C.byref(p), text, None, 0, None, None) == 0
    print(n.nvrtcCompileProgram(p, len(options), words))
''')
    words = [PYTHON, SCRATCH / "three.py", NVRTC, "-"]
    include = f"-I{SCRATCH}/replay"
    done = under(*words, "-arch=sm_90", include, options=("--record", record), **mine)
    check(done.stdout.split() == ["0"] * 3, "recorded", done.stdout, done.stderr)
    made = data("replay", record, "--arch", "sm_80,sm_100", "-o", SCRATCH / "others.json", status=3, **mine)
    states = {(r["name"], r["target"]): (r["state"], r["why"]) for r in made["requests"]}
    check(all(states["plain", t][0] == "made" for t in ("sm_80", "sm_100")), "made for others", states)
    check(all(states["told", t][0] == "not allowed" and "repeats" in states["told", t][1] for t in ("sm_80", "sm_100")), "or said why not", states)
    check(all(states["nowhere", t][0] == "not allowed" and "no architecture" in states["nowhere", t][1] for t in ("sm_80", "sm_100")), "or said why not", states)
    again = data("replay", record, "--arch", "sm_80", status=3, **mine)
    check({r["state"] for r in again["requests"]} == {"was there", "not allowed"}, "the second time it is there", again)
    # The compiler that KILN_NVRTC names, also by the name of its file.
    (SCRATCH / "no-toolkit").mkdir()
    run("replay", record, "--arch", "sm_87", status=1, KILN_CUDA_PATH=SCRATCH / "no-toolkit", **mine)
    for named, arch in ((NVRTC, "sm_87"), (NVRTC.resolve(), "sm_89")):
        made = data("replay", record, "--arch", arch, status=3, KILN_CUDA_PATH=SCRATCH / "no-toolkit", KILN_NVRTC=named, **mine)
        check({r["state"] for r in made["requests"]} == {"made", "not allowed"}, f"KILN_NVRTC={named}", made)
    # On the other GPU the program finds it, also in a capsule of what was made.
    run("capsule", "build", "-o", SCRATCH / "others.capsule", SCRATCH / "others.json", **mine)
    done = under(*words, "-arch=sm_80", include, options=("-v", "--capsule", SCRATCH / "others.capsule", "--unsigned"), KILN_CACHE_DIR=SCRATCH / "replay.other")
    check("answered 'plain' for sm_80" in done.stderr, "answered on another GPU", done.stderr)
    check(run("replay", record, SCRATCH / "no-such-profile", status=1).returncode == 1, "one or the other")
    # The record travels with what belongs to it, and says what is missing.
    (SCRATCH / "carried").mkdir()
    for name in ("replay.json", "replay.json.requests", "replay.json.caches"):
        shutil.move(SCRATCH / name, SCRATCH / "carried" / name)
    moved = data("replay", SCRATCH / "carried/replay.json", "--arch", "sm_80", status=3, **mine)
    check(len(moved["requests"]) == 3, "a record that was moved", moved)
    run("capsule", "build", "-o", SCRATCH / "carried.capsule", SCRATCH / "carried/replay.json", **mine)
    # A library that a record names is somebody's code: only compilers that are found here are run.
    compiler = shutil.which("cc")
    notes = subprocess.run(["readelf", "-n", NVRTC], capture_output=True, text=True).stdout if shutil.which("readelf") else ""
    found = re.search(r"Build ID: ([0-9a-f]+)", notes)
    if compiler and found:
        evil = SCRATCH / "evil" / NVRTC.name
        write("evil/e.c", f'#include <stdio.h>\n__attribute__((constructor)) static void run(void) {{ fclose(fopen("{SCRATCH}/evil/ran", "w")); }}\n')
        subprocess.run([compiler, "-shared", "-fPIC", "-o", evil, SCRATCH / "evil/e.c", f"-Wl,-soname,{NVRTC.name}", f"-Wl,--build-id=0x{found.group(1)}"], check=True)
        for file in NVRTC.parent.glob("libnvrtc-builtins.so*"):
            (SCRATCH / "evil" / file.name).symlink_to(file)
        own, theirs = str(NVRTC).encode(), str(evil).encode()
        for file in (SCRATCH / "carried/replay.json.requests").iterdir():
            text = file.read_bytes()
            check(own in text, "a request names its library", file)
            file.write_bytes(text.replace(len(own).to_bytes(4, "little") + own, len(theirs).to_bytes(4, "little") + theirs))
        made = data("replay", SCRATCH / "carried/replay.json", "--arch", "sm_86", status=3, **mine)
        check(not (SCRATCH / "evil/ran").exists(), "the record's library is not opened", made)
        check({r["state"] for r in made["requests"]} == {"made", "not allowed"}, "what is here makes it", made)
    shutil.rmtree(SCRATCH / "carried/replay.json.requests")
    run("replay", SCRATCH / "carried/replay.json", status=1, **mine)
    shutil.rmtree(SCRATCH / "carried/replay.json.caches")
    done = run("capsule", "build", "-o", SCRATCH / "carried.capsule", SCRATCH / "carried/replay.json", status=1, **mine)
    check("are not there" in done.stderr, "what is missing is said", done.stderr)


@test
def links_are_named_by_replay():
    if NVJITLINK is None:
        return
    write("link.py", r'''
import ctypes as C, sys
n, j = C.CDLL(sys.argv[1]), C.CDLL(sys.argv[2]); p, h, z = C.c_void_p(), C.c_void_p(), C.c_size_t()
n.nvrtcCreateProgram(C.byref(p), b'extern "C" __global__ void k(int* a) { *a = 7; }', b"k.cu", 0, None, None)
assert n.nvrtcCompileProgram(p, 2, (C.c_char_p * 2)(b"-arch=sm_90", b"-dlto")) == 0
n.nvrtcGetLTOIRSize(p, C.byref(z)); d = C.create_string_buffer(z.value); n.nvrtcGetLTOIR(p, d)
assert j.nvJitLinkCreate(C.byref(h), 2, (C.c_char_p * 2)(b"-arch=sm_90", b"-lto")) == 0 and j.nvJitLinkAddData(h, 3, d, z, b"k") == 0
print(j.nvJitLinkComplete(h))
''')
    record, mine = SCRATCH / "links.json", {"KILN_CACHE_DIR": SCRATCH / "links.cache"}
    done = under(PYTHON, SCRATCH / "link.py", NVRTC, NVJITLINK, options=("--record", record), **mine)
    check(done.stdout == "0\n", "linked", done.stdout, done.stderr)
    here = data("replay", record, **mine)
    check([r["state"] for r in here["requests"]] == ["was there"] * 2, "for its own architecture it is there", here)
    others = data("replay", record, "--arch", "sm_80,sm_90", status=3, **mine)
    link = {(r["target"], r["state"], "nvJitLink" in r["why"]) for r in others["requests"] if r["name"] == "k"}
    check(link == {("sm_80", "made", False), ("sm_80", "not allowed", True), ("sm_90", "was there", False)}, "for others it is named", others)
    run("cache", "clear", **mine)
    gone = data("replay", record, status=3, **mine)
    check({r["state"] for r in gone["requests"]} == {"made", "not allowed"}, "and where it is gone", gone)


@test
def what_is_recorded_into_one_file_is_one_record():
    record, mine = SCRATCH / "both.json", {"KILN_CACHE_DIR": SCRATCH / "both.cache"}
    words = [PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 610]
    env = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")} | {k: str(v) for k, v in mine.items()}
    ranks = [subprocess.Popen([CLI, "run", "--record", record, "--", *words, f"-arch=sm_{arch}"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env) for arch in (75, 80, 86, 89, 90)]
    check([r.wait(timeout=200) for r in ranks] == [0] * 5, "ranks end well", *(r.stderr.read() for r in ranks))
    check(sorted(h["target"] for h in json.loads(record.read_text())["happenings"]) == [f"sm_{a}" for a in (75, 80, 86, 89, 90)], "what each asked for", record.read_text())
    # And one run after the other.
    done = under(*words, "-arch=sm_100", options=("--record", record), **mine)
    check("added to" in done.stderr and f"{record}.requests" in done.stderr, "it is said", done.stderr)
    check(len(list(SCRATCH.glob("both.json.requests/*"))) == 6 and not (SCRATCH / "both.json.requests/.lock").exists(), "all requests", *SCRATCH.glob("both.json.requests/*"))
    check(run("capsule", "build", "-o", SCRATCH / "both.capsule", record, **mine).stderr.count(": 6 answers") == 1, "and all answers")
    check("6 of 6 ready" in run("replay", record, **mine).stdout, "are one record")
    under("true", options=("--no-frameworks", "--record", record), **mine)
    both = json.loads(record.read_text())
    check(both["caches"] == "both.json.caches" and len(both["happenings"]) == 6, "and stay so", both)
    # Something else is not written over, and nothing is started.
    write("letter.txt", "Dear Sir\n")
    done = under("echo", "started", options=("--record", SCRATCH / "letter.txt"), status=1, **mine)
    check(done.stdout == "" and "no record of 'kiln run'" in done.stderr and (SCRATCH / "letter.txt").read_text() == "Dear Sir\n", "another's file", done)
    # A record that cannot be written is told of; how the program ended stays.
    (SCRATCH / "vanishing").mkdir()
    for status, want in ((0, 1), (7, 7)):
        (SCRATCH / "vanishing").mkdir(exist_ok=True)
        done = under("sh", "-c", f"rm -rf {SCRATCH}/vanishing; exit {status}", options=("--record", SCRATCH / "vanishing/a.json"), status=want, **mine)
        check("vanishing/a.json" in done.stderr, "what could not be written", done.stderr)
    # A record of nothing makes no capsule.
    under("true", options=("--no-frameworks", "--record", SCRATCH / "nothing.json"), **mine)
    done = run("capsule", "build", "-o", SCRATCH / "nothing.capsule", SCRATCH / "nothing.json", status=1, **mine)
    check("nothing to pack" in done.stderr and not (SCRATCH / "nothing.capsule").exists(), "nothing", done)


@test
def variables_of_caches_that_are_not_ours():
    record, show = SCRATCH / "vars.json", ["sh", "-c", "env | grep -E '^(JAX_|CUDA_CACHE_)' | sort"]
    script = ["sh", "-c", 'mkdir -p "$TRITON_CACHE_DIR"; echo x > "$TRITON_CACHE_DIR/x"']
    under(*script, options=("--record", record))
    run("capsule", "build", "-o", SCRATCH / "vars.capsule", record)
    own = {"JAX_COMPILATION_CACHE_DIR": "/mine", "CUDA_CACHE_PATH": "/mine"}
    for options in (("--record", SCRATCH / "vars2.json"), ("--capsule", SCRATCH / "vars.capsule", "--unsigned")):
        done = under(*show, options=options, **own)
        check(done.stdout.split() == ["CUDA_CACHE_PATH=/mine", "JAX_COMPILATION_CACHE_DIR=/mine"], "the user's own are left alone", options, done.stdout)
    done = under(*show, options=("-v", "--capsule", SCRATCH / "vars.capsule", "--unsigned"))
    check(done.stdout == "", "nothing of JAX in it", done.stdout)
    check("vars.capsule: 0 answers, caches of triton\n" in done.stderr, "what it brings is told to who asks", done.stderr)
    done = under(*show, options=("--record", SCRATCH / "vars3.json"))
    check("JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES=none\n" in done.stdout and "CUDA_CACHE_MAXSIZE=" in done.stdout, "ours has what it needs", done.stdout)


@test
def capsules():
    record, capsule = SCRATCH / "rec.json", SCRATCH / "app.capsule"
    words = [PYTHON, SCRATCH / "one.py", NVRTC, KERNEL % 600, "-arch=sm_90"]
    script = 'mkdir -p "$TRITON_CACHE_DIR/x"; echo "{\\"child_paths\\": {\\"k\\": \\"$TRITON_CACHE_DIR/x/k.cubin\\"}}" > "$TRITON_CACHE_DIR/x/__grp__k.json"; exec "$0" "$@"'
    under("sh", "-c", script, *words, options=("--record", record))
    data = json.loads(record.read_text())
    check(data["format"] == "kiln-run" and data["happenings"][0]["what"] == "made", "the record", data)
    run("key", SCRATCH / "k.pem")
    run("key", SCRATCH / "other.pem")
    run("capsule", "build", "-o", capsule, "--sign", SCRATCH / "k.pem", record)
    said = run("capsule", "inspect", capsule).stdout
    check("nvrtc" in said and "caches/triton" in said, "what is inside", said)
    check("0 bad" in run("capsule", "verify", capsule).stdout, "all good")
    elsewhere = {"KILN_CACHE_DIR": SCRATCH / "container"}
    done = under(*words, options=("--capsule", capsule), status=1, **elsewhere)
    check("nobody vouches" in done.stderr, "not without a key", done.stderr)
    run("run", "--capsule", capsule, "--key", SCRATCH / "other.pem.pub", "--", "true", status=1, **elsewhere)
    done = under("sh", "-c", 'cat "$TRITON_CACHE_DIR/x/__grp__k.json" >&2; exec "$0" "$@"', *words,
                 options=("--capsule", capsule, "--key", SCRATCH / "k.pem.pub", "--jit=forbid"), **elsewhere)
    check(not json.loads(done.stdout)["loaded"] and "1 compiles answered" in done.stderr, "answered from the capsule", done.stdout, done.stderr)
    place = re.search(r'"k": "([^"]*)/x/k.cubin"', done.stderr).group(1)
    check(place.startswith(str(SCRATCH / "container")) and place.endswith("caches/triton"), "Triton's list names the new place", place)
    done = under("sh", "-c", 'echo "$TRITON_CACHE_DIR"', options=("--capsule", capsule, "--key", SCRATCH / "k.pem.pub"), TRITON_CACHE_DIR="/mine", **elsewhere)
    check(done.stdout == "/mine\n", "what the user set stays", done.stdout)
    bad = bytearray(capsule.read_bytes())
    bad[len(bad) // 3] ^= 1
    (SCRATCH / "bad.capsule").write_bytes(bad)
    run("capsule", "verify", SCRATCH / "bad.capsule", status=1)
    run("run", "--capsule", SCRATCH / "bad.capsule", "--key", SCRATCH / "k.pem.pub", "--", "true", status=1, KILN_CACHE_DIR=SCRATCH / "container2")
    # One that is cut off anywhere is refused; one there is no room for is done without.
    whole = capsule.read_bytes()
    for part in (0, 1, 7, 16, 64, len(whole) // 4, len(whole) // 2, len(whole) - 200, len(whole) - 1):
        (SCRATCH / "cut.capsule").write_bytes(whole[:part])
        for trust in (("--key", SCRATCH / "k.pem.pub"), ("--unsigned",)):
            done = run("run", "--capsule", SCRATCH / "cut.capsule", *trust, "--", "echo", "started", status=1, KILN_CACHE_DIR=SCRATCH / "container3")
            check(done.stdout == "" and "cut.capsule" in done.stderr, f"{part} bytes of a capsule", done.stdout, done.stderr)
    # The same of one with a byte changed or cut off wherever chance has it: refused, or what it holds is what was put in.
    chance = random.Random(20)
    for number in range(40):
        at = chance.randrange(len(whole))
        changed = whole[:at] if number % 2 else whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1:]
        (SCRATCH / "chance.capsule").write_bytes(changed)
        for trust in (("--key", SCRATCH / "k.pem.pub"), ("--unsigned",)):
            done = run("run", "--capsule", SCRATCH / "chance.capsule", *trust, "--", "echo", "started", status=None, KILN_CACHE_DIR=SCRATCH / "container4")
            check((done.returncode, done.stdout) in ((1, ""), (0, "started\n")), f"byte {at} of {len(whole)}", done)
            check(done.returncode == 1 or trust[0] == "--unsigned" or "starts without" not in done.stderr, f"byte {at} of {len(whole)}", done)
        shutil.rmtree(SCRATCH / "container4", ignore_errors=True)
    # Of a version to come: refused, and said why.
    head = whole[:8] + (2).to_bytes(4, "little") + whole[12:16]
    (SCRATCH / "newer.capsule").write_bytes(head + hashlib.sha256(head).digest() + whole[48:])
    for command in (("capsule", "inspect", SCRATCH / "newer.capsule"), ("run", "--capsule", SCRATCH / "newer.capsule", "--unsigned", "--", "echo", "started")):
        done = run(*command, status=1)
        check(done.stdout == "" and "version" in done.stderr, "a version nobody here knows", done)
    if os.geteuid() == 0:
        # Somebody else's file is a capsule like any other; somebody else's folder is not ours to unpack in, and what lies there not to be used.
        shutil.copy(capsule, SCRATCH / "theirs.capsule")
        os.chown(SCRATCH / "theirs.capsule", 65534, 65534)
        theirs = {"KILN_CACHE_DIR": SCRATCH / "theirs", "TMPDIR": SCRATCH}
        done = under(*words, options=("--capsule", SCRATCH / "theirs.capsule", "--key", SCRATCH / "k.pem.pub"), **theirs)
        check("1 compiles answered" in done.stderr, "by its signature", done.stderr)
        for folder in (SCRATCH / "theirs/run", *(SCRATCH / "theirs/run").rglob("*")):
            os.chown(folder, 65534, 65534)
        done = under(*words, "-DX", options=("-v", "--capsule", SCRATCH / "theirs.capsule", "--key", SCRATCH / "k.pem.pub"), **theirs)
        check(json.loads(done.stdout)["status"] == 0 and not any(f.stat().st_uid == 0 for f in (SCRATCH / "theirs/run").rglob("*")), "nothing of ours in another's folder", done.stderr)
    if mounts_are_possible():
        (SCRATCH / "narrow").mkdir()
        script = f"mount -t tmpfs -o size=24k,mode=700 none {SCRATCH}/narrow"
        done = run(*mounted(script, CLI, "run", "--capsule", capsule, "--key", SCRATCH / "k.pem.pub", "--", *words)[1:], program="unshare", KILN_CACHE_DIR=SCRATCH / "narrow")
        check(json.loads(done.stdout)["status"] == 0 and "starts without it" in done.stderr, "no room for a capsule", done.stdout, done.stderr)
    # Unpacked once for each content, found where the path has a colon, and gone when it is not used any longer.
    colon = {"KILN_CACHE_DIR": SCRATCH / "with:colon"}
    for copy in ("one.capsule", "two.capsule"):
        shutil.copy(capsule, SCRATCH / copy)
        done = under(*words, options=("--capsule", SCRATCH / copy, "--key", SCRATCH / "k.pem.pub", "--jit=forbid"), **colon)
        check(json.loads(done.stdout)["status"] == 0 and "1 compiles answered" in done.stderr, "a colon in the path", done.stdout, done.stderr)
    unpacked = SCRATCH / "with:colon/run/capsules"
    check(len(list(unpacked.iterdir())) == 1, "one folder for one content", *unpacked.iterdir())
    (unpacked / "part-1234").mkdir()
    for folder in unpacked.iterdir():
        os.utime(folder, (time.time() - 40 * 86400,) * 2)
    os.utime(SCRATCH / "with:colon/run/swept", (time.time() - 2 * 86400,) * 2)
    under("true", **colon)
    check(not list(unpacked.iterdir()), "what nobody uses goes", *unpacked.iterdir())
    under(*words, options=("--capsule", capsule, "--key", SCRATCH / "k.pem.pub"), **colon)
    for options in (("--dry-run",), ()):
        said = run("cache", "clear", *options, **colon).stdout
        check("and 1 unpacked capsule (" in said, "what goes is counted", said)
    check(not unpacked.exists(), "cache clear takes it along")
    done = run("capsule", "unpack", capsule, SCRATCH / "out")
    check((SCRATCH / "out/caches/triton/x/__grp__k.json").exists() and "signature unchecked" in done.stderr, "unpacked", done.stderr)
    done = run("capsule", "unpack", capsule, SCRATCH / "out2", "--key", SCRATCH / "k.pem")
    check("k.pem: this is the private key" in done.stderr and "signature good" in done.stderr, "a private key is for signing", done.stderr)


run_tests()
