# SPDX-License-Identifier: Apache-2.0
"""`kiln run`. What decides that an answer fits: names, headers, folders, and which compiler it is."""

import json
import os
import re
import shutil
import subprocess

from _run import CLI, CUDA, KERNEL, NVRTC, PYTHON, SCRATCH, WHILE, WORK, bare, check, mounted, mounts_are_possible, one, run, run_tests, test, under, write

# As one.py, with a name and headers of its own.
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


run_tests()
